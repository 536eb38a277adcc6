"""What a GPU makes of all this, in stages: kernels, throughput, a maze model, a sudoku model, and a page about them.

    python benchmarks/gpu_reference.py [--stages kernels throughput maze page] [--minutes 5] [--n 1000]
        [--out runs/gpu-reference] [--set maze:train.batch=512 ...] [--toy]

Each stage writes OUT/STAGE.json as soon as it is done and needs no other one; a stage that fails says so in its file,
and the next one begins. `page` gathers what is there into OUT/gpu-reference.json and OUT/gpu-reference.md.

    kernels     every Triton kernel against its plain reference, at several shapes, with times
    throughput  training steps of LoL, of its fixed path and of a dense model of the same work, with kernels and
                without: tokens/s, and the share of the matmul rate that this device reached in the same rounds
    maze        data made on the spot and held on the device, a model trained for so many minutes, then evaluated:
                prompted and on the forced path, n test problems under every strategy
    sudoku      the same

With the defaults kernels, throughput and one task take about nine minutes of an H200. `--toy` takes a minute on a CPU
and shows only that the stages run; the page then says that it has no figures of a GPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpu_kernels
import gpu_page
import torch
from torch.profiler import ProfilerActivity, profile

from lol_data import evaluations, runs
from lol_data.evaluations import Request
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings
from lol_data.shards.engines import default_workers
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.training.config import load_config
from lol_data.training.data import Sequences
from lol_data.training.loop import Trainer
from lol_data.training.machine import pick_device
from lol_data.training.schedule import depth_at
from training import STEPS, Arm, matmul_rate, settings_of

SHAPE = ("width=32", "heads=2", "hidden=48", "prelude=1", "blocks=3", "depth=2", "coda=1")
TOY = [*(f"model.{item}" for item in SHAPE), "train.batch=16", "train.micro_batch=8", "train.validation_problems=2"]
# For minutes in place of hours: compiling takes one of them, and small steps pay (docs/results/factors.md).
MINUTES = ["train.compile=no", "train.batch=512", "train.micro_batch=256"]
SETTINGS = {"maze": MazeSettings(size=8), "sudoku": SudokuSettings()}
CONFIGS = {"maze": "gpu", "sudoku": "sudoku-gpu"}
PROBLEMS = {"maze": 2_000_000, "sudoku": 400_000}
TOY_PROBLEMS = {"maze": 2_000, "sudoku": 200}
TIMED_STEPS = 3
LONGEST = 12  # kernels that are named
START_SHARE = 0.9  # of the minutes are planned for, since validation and checkpoints take their part


@dataclass(frozen=True)
class Options:
    """The command line. settings: `TASK:section.field=value`."""

    out: Path
    minutes: float
    n: int
    toy: bool
    settings: Sequence[str]
    device: torch.device

    def changes(self, task: str) -> list[str]:
        """Settings of a task's configuration."""
        own = [text.split(":", 1)[1] for text in self.settings if text.startswith(task + ":")]
        return [*(TOY if self.toy else MINUTES), *own]


def measure_throughput(options: Options) -> dict[str, Any]:
    """Rates of several arms that take turns; see `benchmarks/training.py`."""
    plain = load_config(CONFIGS["maze"], options.changes("maze"))
    count, rounds = (400, 1) if options.toy else (100_000, 5)
    sequences = Sequences.of(generate_mazes(SETTINGS["maze"], 0, 0, count), plain.strategy_field)
    arms = settings_of(plain, ())
    if options.device.type == "cuda":
        arms |= {"LoL with kernels": ["train.kernels=yes"], "LoL without": ["train.kernels=no"]}
    running = []
    for name, settings in arms.items():
        config = load_config(CONFIGS["maze"], ["train.growth=0", *options.changes("maze"), *settings])
        running.append(Arm(name, Trainer(config, sequences, sequences, options.device)))
    for arm in running:
        for _ in range(STEPS):
            arm.trainer.run_step()
    rates: list[float] = []
    for _ in range(rounds):
        for arm in running:
            arm.round()
        rates.append(matmul_rate(torch.bfloat16, options.device, *((256,) * 3 if options.toy else (8192,) * 3)))
    first = running[0]
    best = max(running, key=lambda arm: arm.sequences[-1] if arm.name.startswith("LoL") else 0)
    return {
        "profile": profile_step(best.trainer) | {"arm": best.name},
        "config": plain.to_json(),
        "matmul_rate": rates,
        "machine": first.trainer.machine,
        "arms": {
            arm.name: {
                "sequences_per_second": arm.sequences,
                "tokens_per_second": arm.tokens,
                "share_of_matmul": [own / rate for own, rate in zip(arm.flops, rates, strict=True)],
                "of_first": [own / other for own, other in zip(arm.sequences, first.sequences, strict=True)],
                "kernels": arm.trainer.machine.get("kernels", False),
            }
            for arm in running
        },
    }


def profile_step(trainer: Trainer) -> dict[str, Any]:
    """Where a step's time goes: seconds of a step, the share of it in which the device computes, the longest kernels.

    {"seconds", "busy", "longest": [{"name", "share", "calls"}]}; shares are of the step's time under the profiler.
    """
    cuda = trainer.device.type == "cuda"
    kind = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
    with profile(activities=[kind]) as found:
        began = time.perf_counter()
        trainer.run_step()
        seconds = time.perf_counter() - began
    events = [(event.self_device_time_total if cuda else event.self_cpu_time_total, event)
              for event in found.key_averages()]  # fmt: skip
    events.sort(key=lambda pair: -pair[0])
    longest = [{"name": event.key[:60], "share": spent / 1e6 / seconds, "calls": event.count}
               for spent, event in events[:LONGEST]]  # fmt: skip
    return {"seconds": seconds, "busy": sum(spent for spent, _ in events) / 1e6 / seconds, "longest": longest}


def train_and_evaluate(options: Options, task: str) -> dict[str, Any]:
    """A model of the task, trained for so many minutes."""
    folder, times = options.out / task, {}
    problems = (TOY_PROBLEMS if options.toy else PROBLEMS)[task]
    share = 0.1 if options.toy else 0.01
    plan = DatasetPlan(problems, SETTINGS[task], 0, validation_share=share, test_share=share, task_name=task)
    began = time.perf_counter()
    generate_dataset(plan, folder / "data", default_workers())
    times["data"] = time.perf_counter() - began
    changes = options.changes(task)
    began = time.perf_counter()
    steps = steps_for(options, task, changes)
    times["plan"] = time.perf_counter() - began
    changes += [f"train.steps={steps}", f"train.validate_every={max(1, steps // 20)}"]
    changes += [f"train.checkpoint_every={max(1, steps // 4)}", "train.keep=1"]
    began = time.perf_counter()
    run, last = runs.train(folder / "data", CONFIGS[task], folder / "run", False, changes, str(options.device), say)
    times["training"] = time.perf_counter() - began
    began = time.perf_counter()
    request = Request(
        run, n=options.n, template_problems=min(500, 10 * options.n), batch=5 * options.n, device=str(options.device)
    )
    summaries = []
    for protocol in ("prompted", "forced"):
        found, _ = evaluations.evaluate(request, protocol, "selection", say, lambda done, total: None)
        summaries += found
    times["evaluation"] = time.perf_counter() - began
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    manifest = open_dataset(folder / "data").manifest
    return {
        "task": task,
        "problems": problems,
        "content_hash": manifest.content_hash,
        "steps": steps,
        "sequences": steps * load_config(CONFIGS[task], changes).train.batch,
        "seconds": {name: round(value, 1) for name, value in times.items()},
        "flops": sum(line["flops"] for line in lines),
        "step_seconds": sum(line["seconds"] for line in lines),
        "last": last,
        "curve": [line for line in lines if "validation_loss" in line],
        "summaries": summaries,
        "config": changes,
    }


def steps_for(options: Options, task: str, changes: Sequence[str]) -> int:
    """The steps that fit into the minutes: a few are timed at the least and the greatest depth of the core."""
    if options.toy:
        return 8
    dataset = open_dataset(options.out / task / "data")
    probe = load_config(CONFIGS[task], [*changes, "train.steps=1000"])
    sequences = Sequences.of(dataset.read_split("train", 50_000), probe.strategy_field)
    trainer = Trainer(probe, sequences, sequences, options.device)
    depth, growth = trainer.model.config.depth, probe.train.growth
    seconds = {}
    for level, step in ((1, 0), (depth, 999)):
        trainer.step = step if growth or level == depth else 999
        trainer.run_step()
        trainer.step = step
        began = time.perf_counter()
        for _ in range(TIMED_STEPS):
            trainer.run_step()
            trainer.step = step
        seconds[level] = (time.perf_counter() - began) / TIMED_STEPS
    slope = (seconds[depth] - seconds[1]) / max(1, depth - 1)
    mean_depth = sum(depth_at(step, 1000, depth, growth) for step in range(1000)) / 1000
    return max(10, int(60 * options.minutes * START_SHARE / (seconds[1] + slope * (mean_depth - 1))))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def machine(device: torch.device) -> dict[str, Any]:
    """What the figures were taken on."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        triton = version("triton")
    except PackageNotFoundError:
        triton = "none"
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {"device": device.type, "name": name, "torch": torch.__version__, "triton": triton,
            "python": platform.python_version(), "threads": torch.get_num_threads()}  # fmt: skip


STAGES: dict[str, Callable[[Options], dict[str, Any]]] = {
    "kernels": lambda options: gpu_kernels.check(options.device, options.toy),
    "throughput": measure_throughput,
    "maze": lambda options: train_and_evaluate(options, "maze"),
    "sudoku": lambda options: train_and_evaluate(options, "sudoku"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", nargs="*", default=["kernels", "throughput", "maze", "page"],
                        choices=[*STAGES, "page"])  # fmt: skip
    parser.add_argument("--minutes", type=float, default=5.0, help="of training, per task")
    parser.add_argument("--n", type=int, help="test problems, each under all strategies; default 1000, toy 2")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu-reference"))
    parser.add_argument("--set", dest="settings", nargs="*", default=[], metavar="TASK:SETTING")
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--device")
    given = parser.parse_args()
    device = pick_device(given.device)
    if given.toy:
        torch.set_num_threads(1)  # more would wait for each other at this size
    n = given.n or (2 if given.toy else 1000)
    options = Options(given.out, given.minutes, n, given.toy, given.settings, device)
    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for stage in given.stages:
        if stage == "page":
            print(gpu_page.write(options.out, [*STAGES]))
            continue
        say(f"stage {stage}")
        began = time.perf_counter()
        try:
            found = STAGES[stage](options)
        except Exception:
            found = {"error": traceback.format_exc()}
            failed.append(stage)
            say(found["error"])
        found |= {"toy": options.toy, "machine_is": machine(device), "took": round(time.perf_counter() - began, 1)}
        (options.out / f"{stage}.json").write_text(json.dumps(found, indent=1))
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
