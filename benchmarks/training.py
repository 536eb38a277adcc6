"""Training throughput of a configuration, arms interleaved in one run so that a shared machine disturbs all alike.

    python benchmarks/training.py [--config quickstart] [--size 5] [--rounds 5] ARM ...

An ARM is a list of settings such as `train.micro_batch=32,train.compile=yes`; the plain configuration is always the
first arm. Per arm: median sequences/s and tokens/s at full depth (padding not counted), its ratio to the first arm, the
share of padding, and matmul FLOP/s as a share of this machine's own matmul rate in that number format.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.training.config import load_config
from lol_data.training.data import Sequences
from lol_data.training.loop import Trainer
from lol_data.training.machine import pick_device

STEPS = 4  # per arm and round


def matmul_rate(dtype: torch.dtype, device: torch.device) -> float:
    """FLOP/s of a matmul of the shape that a block's largest one has."""
    a, b = torch.randn(4096, 512, device=device).to(dtype), torch.randn(512, 1536, device=device).to(dtype)
    best = float("inf")
    for _ in range(10):
        started = time.perf_counter()
        product = a @ b
        product[0, 0].item()
        best = min(best, time.perf_counter() - started)
    return 2 * 4096 * 512 * 1536 / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="quickstart")
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("arms", nargs="*")
    options = parser.parse_args()
    device = pick_device()
    traced = generate_mazes(MazeSettings(size=options.size), 0, 0, 20_000)
    arms = {}
    for arm in ["", *options.arms]:
        config = load_config(options.config, ["train.growth=0", *(item for item in arm.split(",") if item)])
        sequences = Sequences.of(traced, config.strategy_field)
        arms[arm or options.config] = Trainer(config, sequences, sequences, device)
    for trainer in arms.values():
        trainer.run_step()
    rates: dict[str, list[tuple[float, float, float]]] = {name: [] for name in arms}
    for _ in range(options.rounds):
        for name, trainer in arms.items():
            tokens, padding, started = trainer.tokens_seen, 0.0, time.perf_counter()
            for _ in range(STEPS):
                padding += trainer.run_step()["padding"] / STEPS
            seconds = time.perf_counter() - started
            rates[name].append(
                (STEPS * trainer.train.batch / seconds, (trainer.tokens_seen - tokens) / seconds, padding)
            )
    first = statistics.median(rate[0] for rate in next(iter(rates.values())))
    print(f"{'arm':<44}{'sequences/s':>12}{'tokens/s':>11}{'ratio':>7}{'padding':>9}{'of matmul rate':>16}")
    for name, values in rates.items():
        sequences_s, tokens_s, padding = (statistics.median(column) for column in zip(*values, strict=True))
        model = arms[name].model
        block = sum(parameter.numel() for parameter in model.library[0].parameters())
        active = block * (model.config.prelude + model.config.depth + model.config.coda) + model.head.numel()
        share = 6 * active * tokens_s / matmul_rate(model.matmul_dtype, device)
        line = (
            f"{name:<44}{sequences_s:>12.1f}{tokens_s:>11,.0f}{sequences_s / first:>7.2f}{padding:>9.1%}{share:>16.1%}"
        )
        print(line)


if __name__ == "__main__":
    main()
