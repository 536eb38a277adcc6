"""What the comparisons at equal training FLOPs share: arms, their steps, training and evaluating them, the table.

The budget is what the first arm spends in so many steps, forward and backward by formula; every other one trains for
the steps that spend as much, with its own schedule over them. Runs share the CPUs, a thread each, and go on where they
were when the command was stopped; finished ones are not repeated. Afterwards every run writes the answers to the same
test problems, with the strategy named (the `prompted` protocol).

Columns: weights stored, and those that one token meets; training FLOPs a token at full depth; steps; sequences/s of
one thread beside as many other runs as there are CPUs. Losses are of the validation split, mean of the seeds with
(least..most). Rates are of all seeds' outputs together, with Wilson's 95 % interval: seeds answer the same problems, so
an interval says how sure the rate of these models is, not how another seed would do. The rest is of the last step: the
mean gate, how even the loads of the blocks are (1: all the same), windows of validation outputs whose block is their
strategy's template's, and how often a Mixture-of-Depths foretells its own choice.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lol_data.evaluators.intervals import wilson
from lol_data.model.config import ModelConfig
from lol_data.model.formulas import count_parameters, flops_per_sequence
from lol_data.shards.engines import default_workers
from lol_data.shards.reader import open_dataset
from lol_data.tokenization.tasks import Traced
from lol_data.training.config import RunConfig, load_config
from lol_data.training.data import Sequences
from lol_data.training.schedule import capacity_at, depth_at

RATES = ("adherence", "legality", "answer", "joint")
# Of the last step, mean of the seeds: metric, heading, unit.
EXTRAS = {
    "gate": ("mean gate", 1),
    "load_entropy": ("load entropy", 1),
    "template_selection": ("own path = template, %", 100),
    "validation_foretold": ("foretold, %", 100),
}
SAMPLE = 2000  # problems whose lengths stand for all


@dataclass(frozen=True)
class Arm:
    """A configuration, changed by `settings` as `--set` takes them."""

    name: str
    config: str
    settings: tuple[str, ...] = ()

    def load(self) -> RunConfig:
        """The configuration."""
        return load_config(self.config, list(self.settings))


@dataclass(frozen=True)
class Work:
    """What a configuration spends on the data: mean training FLOPs of a sequence."""

    config: RunConfig
    shape: ModelConfig
    lengths: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(arm: Arm, traced: Traced) -> Work:
        """From the lengths of the sequences of some problems."""
        config = arm.load()
        sequences = Sequences.of(traced, config.strategy_field)
        shape = config.model_config(sequences.layout)
        lengths, counts = np.unique(sequences.lengths(np.arange(len(sequences))), return_counts=True)
        return Work(config, shape, lengths, counts)

    def sequence(self, depth: int, capacity: float) -> float:
        """At a depth and a capacity."""
        each = [flops_per_sequence(self.shape, int(n), depth, capacity).training for n in self.lengths]
        return float(np.average(each, weights=self.counts))

    def total(self, steps: int) -> float:
        """Of a run of so many steps."""
        train, known, total = self.config.train, {}, 0.0
        for step in range(steps):
            key = (
                depth_at(step, steps, self.shape.depth, train.growth),
                round(capacity_at(step, steps, self.shape.capacity, train.capacity_warmup), 2),
            )
            if key not in known:
                known[key] = self.sequence(*key)
            total += train.batch * known[key]
        return total

    def steps_for(self, budget: float) -> int:
        """The steps whose work comes nearest to a budget."""
        low, high = 1, 1
        while self.total(high) < budget:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.total(middle) < budget else (low, middle)
        return min((low, high), key=lambda steps: abs(self.total(steps) - budget))


def command(*words: str) -> None:
    """One lol-data command on one thread; its output goes to standard error when it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "lol_data.cli", *words]
    done = subprocess.run(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-2000:]}")


def train_and_evaluate(arm: Arm, steps: int, seed: int, data: Path, folder: Path, n: int) -> dict[str, Any]:
    """One run, from wherever it stands; returns its last validation loss, its speed and the counts of its rates."""
    run = folder / f"{arm.name}-{seed}"
    settings = {"train.steps": steps, "train.seed": seed, "train.validation_problems": 500}
    settings |= {"train.validate_every": steps, "train.checkpoint_every": 200, "train.keep": 1}
    changes = [*arm.settings, *(f"{key}={value}" for key, value in settings.items())]
    words = [word for change in changes for word in ("--set", change)]
    summary = run / "eval" / "prompted" / "summary.json"
    if not summary.exists():
        print(f"{run.name}: {steps} steps", file=sys.stderr)
        resume = ["--resume"] if (run / "run.json").exists() else []
        command("train", "--data", str(data), "--config", arm.config, "--out", str(run), *words, *resume)
        command("eval", "--run", str(run), "--data", str(data), "--protocol", "prompted", "--n", str(n))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    late = lines[len(lines) // 2 :]
    batch = arm.load().train.batch
    return {
        "loss": lines[-1]["validation_loss"],
        "flops": sum(line["flops"] for line in lines),
        "speed": batch * len(late) / sum(line["seconds"] for line in late),
        **{name: lines[-1].get(name) for name in EXTRAS},
        "summary": json.loads(summary.read_text()),
    }


def spread(values: list[float], form: str) -> str:
    """Mean with (least..most)."""
    return f"{statistics.mean(values):{form}} ({min(values):{form}}..{max(values):{form}})"


def row(name: str, work: Work, steps: int, found: list[dict[str, Any]]) -> list[str]:
    """One line of the table."""
    counted = count_parameters(work.shape)
    tokens = float(np.average(work.lengths, weights=work.counts))
    cells = [
        name,
        f"{counted.stored / 1e6:.2f}",
        f"{counted.active / 1e6:.2f}",
        f"{work.sequence(work.shape.depth, work.shape.capacity) / tokens / 1e6:.1f}",
        f"{len(found)}",
        f"{steps:,}",
        spread([one["speed"] for one in found], ".0f"),
        spread([one["loss"] for one in found], ".4f"),
    ]
    for rate in RATES:
        right = total = 0
        for one in found:
            for values in one["summary"]["strategies"].values():
                right += round(values[rate]["rate"] * values["n"])
                total += values["n"]
        rate_of, low, high = (100 * wilson(right, total)[part] for part in ("rate", "low", "high"))
        cells.append(f"{rate_of:.1f} ({low:.1f}..{high:.1f})")
    for name, (_, unit) in EXTRAS.items():
        values = [one[name] for one in found if one[name] is not None]
        cells.append(f"{statistics.mean(values) * unit:.{2 if unit == 1 else 1}f}" if values else "")
    return cells


def main(arms: Sequence[Arm], folder: str, description: str) -> None:
    """The command line. arms: the first one sets the budget. folder: where runs go by default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=600, help=f"steps of {arms[0].name}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n", type=int, default=200, help="test problems, each under all strategies")
    parser.add_argument("--only", nargs="*", default=[arm.name for arm in arms], metavar="NAME")
    parser.add_argument("--folder", type=Path, default=Path(folder))
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--out", type=Path, help="write the Markdown to this file, too")
    options = parser.parse_args()
    data = options.folder / "mazes"
    command("gen-maze", "--n", str(options.problems), "--size", "5", "--out", str(data))
    dataset = open_dataset(data)
    sample = dataset.read_split("train", SAMPLE)
    budget = Work.of(arms[0], sample).total(options.budget)
    chosen = [arm for arm in arms if arm.name in options.only]
    works = {arm.name: Work.of(arm, sample) for arm in chosen}
    steps = {name: work.steps_for(budget) for name, work in works.items()}
    tasks = [(arm, seed) for seed in range(options.seeds) for arm in chosen]
    with ThreadPoolExecutor(default_workers()) as pool:
        results = pool.map(
            lambda task: train_and_evaluate(task[0], steps[task[0].name], task[1], data, options.folder, options.n),
            tasks,
        )
        found: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in chosen}
        for (arm, _), result in zip(tasks, results, strict=True):
            found[arm.name].append(result)
    head = ["", "stored, M", "active, M", "MFLOP/token", "seeds", "steps", "sequences/s", "validation loss"]
    head += [f"{rate}, %" for rate in RATES] + [title for title, _ in EXTRAS.values()]
    lines = [
        f"{budget / 1e15:.2f} PFLOP of training each; n = {options.n} test mazes x 5 strategies x seeds; "
        f"{options.problems:,} mazes of 5x5, {dataset.manifest.content_hash[:16]}.",
        "",
        *(f"| {' | '.join(cells)} |" for cells in (head, ["---", *["---:"] * (len(head) - 1)])),
        *(f"| {' | '.join(row(arm.name, works[arm.name], steps[arm.name], found[arm.name]))} |" for arm in chosen),
    ]
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")
