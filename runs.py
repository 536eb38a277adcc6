"""Training and evaluation by path: which data set, which run, which configuration, when the user names none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lol_data.errors import UsageError
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.shards.manifest import MANIFEST
from lol_data.shards.reader import Dataset, open_dataset

DATASETS, RUNS = Path("datasets"), Path("runs")
Note = Callable[[str], None]


def newest(folder: Path, marker: str, hint: str) -> Path:
    """The subfolder of `folder` whose `marker` file is newest; raises UsageError with the hint if there is none."""
    found = sorted(folder.glob(f"*/{marker}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(f"nothing under {folder}/ to work with; {hint}")
    return found[-1].parent


def find_dataset(path: Path | None, note: Note) -> Dataset:
    """The maze data set at a path, or the newest one under datasets/."""
    if path is None:
        path = newest(DATASETS, MANIFEST, "make one with: lol-data gen-maze --n 100000")
        note(f"data: {path}")
    return open_dataset(path, expect_task="maze")


def data_identity(dataset: Dataset) -> dict[str, Any]:
    """What a run remembers of its data."""
    manifest = dataset.manifest
    return {
        "path": str(dataset.path.resolve()),
        "task": manifest.task,
        "size": int(manifest.settings["size"]),
        "content_hash": manifest.content_hash,
    }


def train(
    data: Path | None,
    config: str | None,
    out: Path | None,
    resume: bool,
    settings: list[str],
    device: str | None,
    note: Note,
) -> tuple[Path, dict[str, Any]]:
    """Train or go on training; returns the run folder and the last line of metrics.

    Without a configuration, `gpu` or `cpu` is taken, whichever the machine is. A resumed run takes its data and
    configuration from its own run.json where they are not given.
    """
    from lol_data.training.config import RunConfig, load_config
    from lol_data.training.data import Sequences
    from lol_data.training.loop import Trainer, train_run
    from lol_data.training.machine import pick_device
    from lol_data.training.run_folder import read_run

    place = pick_device(device)
    before = None
    if resume:
        out = out or newest(RUNS, "run.json", "train one with: lol-data train")
        before = read_run(out)
    if before and config is None and not settings:
        resolved = RunConfig.from_json(before["config"])
    else:
        resolved = load_config(config or ("gpu" if place.type == "cuda" else "cpu"), settings)
    dataset = find_dataset(Path(before["data"]["path"]) if before and data is None else data, note)
    out = out or _new_run(f"{dataset.path.name}-{config or place.type}")
    layout_field, limit = resolved.strategy_field, resolved.train.problems or None
    sequences = Sequences.of(dataset.read_split("train", limit), layout_field)
    held_out = dataset.read_split("validation", resolved.train.validation_problems)
    if not len(held_out):
        raise UsageError(f"{dataset.path}: its validation split is empty; make a larger set or --validation-share")
    machine = before["machine"] if before else None
    trainer = Trainer(resolved, sequences, Sequences.of(held_out, layout_field), place, machine)
    note(f"run: {out} ({sum(p.numel() for p in trainer.model.parameters()):,} parameters, {place})")
    line = train_run(trainer, out, data_identity(dataset), resume, note)
    return out, line


def evaluate(
    run: Path | None,
    data: Path | None,
    protocol: str,
    kind: str,
    n: int,
    template_problems: int,
    out: Path | None,
    batch: int,
    device: str | None,
    note: Note,
    progress: Callable[[int, int], None],
) -> tuple[list[dict[str, Any]], list[Path]]:
    """Evaluate a run's newest checkpoint on test problems; returns each protocol's summary and results folder.

    Templates come from the validation split, scores from the test split. `all` is prompted, forced with both kinds of
    template, and neutral.
    """
    from lol_data.evaluators import evaluate as evaluation
    from lol_data.evaluators.protocols import PROTOCOLS
    from lol_data.evaluators.templates import KINDS, observe_paths
    from lol_data.tokenization.maze import MazeLayout
    from lol_data.training.config import RunConfig
    from lol_data.training.machine import pick_device
    from lol_data.training.run_folder import load_trained, read_run

    if protocol not in (*PROTOCOLS, "all"):
        raise UsageError(f"--protocol {protocol}: use {', '.join(PROTOCOLS)} or all")
    if kind not in KINDS:
        raise UsageError(f"--template {kind}: use {' or '.join(KINDS)}")
    for name, value in (("--n", n), ("--template-problems", template_problems), ("--batch", batch)):
        if value < 1:
            raise UsageError(f"{name} is {value}; it must be 1 or more")
    run = run or newest(RUNS, "run.json", "train one with: lol-data train")
    about_run = read_run(run)
    dataset = find_dataset(data or Path(about_run["data"]["path"]), note)
    size = int(dataset.manifest.settings["size"])
    if size != about_run["data"]["size"]:
        raise UsageError(
            f"{dataset.path} has {size}x{size} mazes; {run} was trained on size {about_run['data']['size']}"
        )
    field = RunConfig.from_json(about_run["config"]).strategy_field
    model, checkpoint = load_trained(run, MazeLayout(size, field).prompt_length, pick_device(device), note)
    test = dataset.read_split("test", n, columns=())
    if not len(test):
        raise UsageError(f"{dataset.path}: its test split is empty; make a larger set or --test-share")
    if len(test) < n:
        note(f"{dataset.path}: the test split has {len(test)} problems, not {n}")
    arms = [(protocol, kind)]
    if protocol == "all":
        arms = [("prompted", kind), *(("forced", each) for each in KINDS), ("neutral", kind)]
    paths = None
    if any(name == "forced" for name, _ in arms):
        validation = dataset.read_split("validation", template_problems)
        if not len(validation):
            raise UsageError(f"{dataset.path}: its validation split is empty, templates need it")
        paths = observe_paths(model, validation)
    about = {
        "run": str(run),
        "checkpoint": checkpoint.name,
        "data": str(dataset.path),
        "content_hash": dataset.manifest.content_hash,
        "n": len(test),
    }
    summaries, folders = [], []
    total, done = len(arms) * len(MAZE_STRATEGIES) * len(test), 0

    def tick(outputs: int) -> None:
        nonlocal done
        done += outputs
        progress(done, total)

    for name, template in arms:
        result = evaluation.evaluate(model, test.mazes, name, paths, template, batch, tick)
        folders.append(evaluation.write_result(result, out or run / "eval", about))
        summaries.append({**about, **result.summary})
    return summaries, folders


def _new_run(name: str) -> Path:
    number = 1
    while (RUNS / f"{name}-{number}").exists():
        number += 1
    return RUNS / f"{name}-{number}"
