"""Training throughput of a configuration at full depth, as a Markdown table.

    python benchmarks/training.py [--config quickstart] [--size 5] [--rounds 7] [--threads N]
        [--set SETTING ...] -- ARM ...

An ARM is a list of settings such as `train.micro_batch=16,train.compile=yes`. The plain configuration comes first, then
two controls of the same active work, then the arms. `fixed path`: the same core, depth l always takes its own block
with gate 1, nothing is routed. `dense`: an ordinary Transformer with as many layers as a token passes here, full causal
attention everywhere. Arms take turns, a few steps each, so that a shared machine disturbs all alike.

Columns: medians over the rounds with (least..most). Tokens are real ones, padding is not counted; FLOP/s are those that
the equations need, forward and backward, again without padding; the last two columns divide them by the rate at which
this machine multiplied large matrices in bf16 and in fp32 during the same rounds. `of the first`: sequences/s against
the first arm of the same round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.model.config import ModelConfig
from lol_data.training.config import RunConfig, load_config
from lol_data.training.data import Sequences
from lol_data.training.loop import Trainer
from lol_data.training.machine import pick_device

STEPS = 4  # per arm and round
MATMUL = 2048, 1024, 1024


@dataclass
class Arm:
    """A trainer and what its rounds gave: per round, sequences, tokens and FLOPs a second, and padding."""

    name: str
    trainer: Trainer
    sequences: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    padding: list[float] = field(default_factory=list)

    def round(self) -> None:
        """Some steps, timed."""
        tokens, started = self.trainer.tokens_seen, time.perf_counter()
        lines = [self.trainer.run_step() for _ in range(STEPS)]
        seconds = time.perf_counter() - started
        self.sequences.append(STEPS * self.trainer.train.batch / seconds)
        self.tokens.append((self.trainer.tokens_seen - tokens) / seconds)
        self.flops.append(sum(line["flops"] for line in lines) / seconds)
        self.padding.append(statistics.mean(line["padding"] for line in lines))


def matmul_rate(
    dtype: torch.dtype, device: torch.device, rows: int = MATMUL[0], inner: int = MATMUL[1], columns: int = MATMUL[2]
) -> float:
    """FLOP/s of large square-like products, the best of some."""
    a, b = torch.randn(rows, inner, device=device).to(dtype), torch.randn(inner, columns, device=device).to(dtype)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        (a @ b)[0, 0].item()
        best = min(best, time.perf_counter() - started)
    return 2 * rows * inner * columns / best


def settings_of(config: RunConfig, arms: Sequence[str]) -> dict[str, list[str]]:
    """The settings of each arm by its name; the plain configuration and the controls first."""
    depth = config.model.get("depth", ModelConfig.depth)
    fixed = ["model.router=fixed", f"model.blocks={depth}"]
    dense = [*fixed, "model.attention=full", "model.film=block"]
    return {"LoL": [], "fixed path": fixed, "dense": dense, **{arm: arm.split(",") for arm in arms}}


def spread(values: Sequence[float], form: str) -> str:
    """Median with (least..most)."""
    middle, low, high = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low}..{high})"


def table(arms: Sequence[Arm], rates: dict[str, list[float]]) -> str:
    """The measurements as Markdown."""
    names = ["arm", "sequences/s", "tokens/s", "padding", "GFLOP/s", "of the first", *(f"of {name}" for name in rates)]
    rows = [names, ["---", *["---:"] * (len(names) - 1)]]
    for arm in arms:
        ratios = [own / first for own, first in zip(arm.sequences, arms[0].sequences, strict=True)]
        shares = [
            spread([own / rate for own, rate in zip(arm.flops, each, strict=True)], ".1%") for each in rates.values()
        ]
        rows.append(
            [
                arm.name,
                spread(arm.sequences, ".1f"),
                spread(arm.tokens, ",.0f"),
                f"{statistics.mean(arm.padding):.1%}",
                spread([flops / 1e9 for flops in arm.flops], ",.0f"),
                spread(ratios, ".2f"),
                *shares,
            ]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="quickstart")
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="of the CPU; default: all")
    parser.add_argument("--set", dest="settings", nargs="*", default=[], help="settings of all arms")
    parser.add_argument("arms", nargs="*", metavar="ARM")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = pick_device()
    plain = load_config(options.config, options.settings)
    sequences = Sequences.of(generate_mazes(MazeSettings(size=options.size), 0, 0, 20_000), plain.strategy_field)
    arms = [
        Arm(
            name,
            Trainer(
                load_config(options.config, ["train.growth=0", *options.settings, *settings]),
                sequences,
                sequences,
                device,
            ),
        )
        for name, settings in settings_of(plain, options.arms).items()
    ]
    for arm in arms:
        for _ in range(STEPS):  # kernels are compiled at the first use of a shape
            arm.trainer.run_step()
    rates: dict[str, list[float]] = {"bf16 matmul": [], "fp32 matmul": []}
    for _ in range(options.rounds):
        for arm in arms:
            arm.round()
        rates["bf16 matmul"].append(matmul_rate(torch.bfloat16, device))
        rates["fp32 matmul"].append(matmul_rate(torch.float32, device))
    place = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} threads"
    matmuls = (f"{statistics.median(values) / 1e9:,.0f} GFLOP/s {name}" for name, values in rates.items())
    name = " ".join([options.config, *options.settings])
    print(f"`{name}`, {options.size}x{options.size} mazes, {place}, torch {torch.__version__};")
    print(f"{options.rounds} rounds of {STEPS} steps; {', '.join(matmuls)}\n\n{table(arms, rates)}")


if __name__ == "__main__":
    main()
