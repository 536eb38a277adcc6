"""Training and evaluation by path: which data set, which run, which configuration, when the user names none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lol_data.errors import UsageError
from lol_data.shards.manifest import MANIFEST
from lol_data.shards.reader import Dataset, open_dataset
from lol_data.tokenization.tasks import AnyLayout, layout_for

DATASETS, RUNS = Path("datasets"), Path("runs")
Note = Callable[[str], None]


def newest(folder: Path, marker: str, hint: str) -> Path:
    """The subfolder of `folder` whose `marker` file is newest; raises UsageError with the hint if there is none."""
    found = sorted(folder.glob(f"*/{marker}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(f"nothing under {folder}/ to work with; {hint}")
    return found[-1].parent


def find_dataset(path: Path | None, note: Note) -> Dataset:
    """The data set at a path, or the newest one under datasets/."""
    if path is None:
        path = newest(DATASETS, MANIFEST, "make one with: lol-data gen-maze --n 100000")
        note(f"data: {path}")
    return open_dataset(path)


def dataset_layout(dataset: Dataset, field: int) -> AnyLayout:
    """The layout of a data set's sequences."""
    return layout_for({**dataset.manifest.settings, "task": dataset.manifest.task}, field)


def data_identity(dataset: Dataset, layout: AnyLayout) -> dict[str, Any]:
    """What a run remembers of its data: path, task, size where there is one, content hash."""
    return {
        "path": str(dataset.path.resolve()),
        **layout.about,
        "content_hash": dataset.manifest.content_hash,
    }


def default_config(task: str, device: str) -> str:
    """The configuration that is taken for a task on a kind of device, cpu or cuda."""
    machine = "gpu" if device == "cuda" else "cpu"
    return machine if task == "maze" else f"{task}-{machine}"


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

    Without a configuration, the default one of the task and machine is taken. A resumed run takes its data and
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
    # Loaded before the data is looked for, so that a wrong word is told at once; the task may then choose another one.
    resolved = load_config(config or default_config("maze", place.type), settings)
    dataset = find_dataset(Path(before["data"]["path"]) if before and data is None else data, note)
    if config is None and before and not settings:
        resolved = RunConfig.from_json(before["config"])
    elif config is None:
        resolved = load_config(default_config(dataset.manifest.task, place.type), settings)
    out = out or _new_run(f"{dataset.path.name}-{config or place.type}")
    field, limit = resolved.strategy_field, resolved.train.problems or None
    sequences = Sequences.of(dataset.read_split("train", limit), field)
    held_out = dataset.read_split("validation", resolved.train.validation_problems)
    if not len(held_out):
        raise UsageError(f"{dataset.path}: its validation split is empty; make a larger set or --validation-share")
    machine = before["machine"] if before else None
    trainer = Trainer(resolved, sequences, Sequences.of(held_out, field), place, machine)
    note(f"run: {out} ({sum(p.numel() for p in trainer.model.parameters()):,} parameters, {place})")
    line = train_run(trainer, out, data_identity(dataset, sequences.layout), resume, note)
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
    field = RunConfig.from_json(about_run["config"]).strategy_field
    layout, trained = dataset_layout(dataset, field), layout_for(about_run["data"], field)
    if layout != trained:
        raise UsageError(f"{dataset.path} has {layout.kind}; {run} was trained on {trained.kind}")
    model, checkpoint = load_trained(run, layout, pick_device(device), note)
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
    total, done = len(arms) * len(layout.strategies) * len(test), 0

    def tick(outputs: int) -> None:
        nonlocal done
        done += outputs
        progress(done, total)

    for name, template in arms:
        result = evaluation.evaluate(model, layout.problems(test), name, paths, template, batch, tick)
        folders.append(evaluation.write_result(result, out or run / "eval", about))
        summaries.append({**about, **result.summary})
    return summaries, folders


def _new_run(name: str) -> Path:
    number = 1
    while (RUNS / f"{name}-{number}").exists():
        number += 1
    return RUNS / f"{name}-{number}"
