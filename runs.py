"""Training and evaluation by path: which data set, which run, which configuration, when the user names none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lol_data.errors import UsageError
from lol_data.shards.manifest import MANIFEST
from lol_data.shards.reader import Dataset, open_dataset
from lol_data.tokenization.tasks import AnyLayout, layout_for

if TYPE_CHECKING:
    from lol_data.training.config import RunConfig
    from lol_data.training.loop import Trainer

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
    tensorboard: bool = False,
) -> tuple[Path, dict[str, Any]]:
    """Train or go on training; returns the run folder and the last line of metrics.

    Without a configuration, the default one of the task and machine is taken. A resumed run takes its data and
    configuration from its own run.json where they are not given. Under torchrun only the first process returns.
    """
    from lol_data import distributed
    from lol_data.training.loop import train_run
    from lol_data.training.tensorboard import require_tensorboard

    if tensorboard:
        require_tensorboard()
    with distributed.processes():
        note = distributed.only_first(note)
        if resume and out is None:
            out = distributed.from_first(lambda: newest(RUNS, "run.json", "train one with: lol-data train"))
        trainer, dataset, name = _prepare(data, config, out if resume else None, settings, device, note)
        run = out or distributed.from_first(lambda: _new_run(name))
        parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
        together = f", {distributed.count()} processes" if distributed.count() > 1 else ""
        note(f"run: {run} ({parameters:,} parameters, {trainer.device}{together})")
        identity = data_identity(dataset, trainer.sequences.layout)
        return run, train_run(trainer, run, identity, resume, note, tensorboard)


def plan(data: Path | None, config: str | None, settings: list[str], device: str | None, note: Note) -> dict[str, Any]:
    """What a training run will take: see `lol_data.training.estimate`. Nothing is written."""
    from lol_data.training.estimate import estimate

    return estimate(_prepare(data, config, None, settings, device, note)[0])


def configuration(data: Path | None, config: str | None, settings: list[str], device: str | None) -> RunConfig:
    """The configuration that a training run would have; without data, that of mazes."""
    from lol_data.training.config import load_config
    from lol_data.training.machine import pick_device

    task = "maze" if data is None or config else open_dataset(data).manifest.task
    return load_config(config or default_config(task, pick_device(device).type), settings)


def _prepare(
    data: Path | None, config: str | None, again: Path | None, settings: list[str], device: str | None, note: Note
) -> tuple[Trainer, Dataset, str]:
    """A trainer, its data set, and a name for a run of it. again: the run that is to go on, if one is."""
    from lol_data.training.config import RunConfig, load_config
    from lol_data.training.data import Sequences
    from lol_data.training.loop import Trainer
    from lol_data.training.machine import pick_device
    from lol_data.training.run_folder import read_run

    place = pick_device(device)
    before = read_run(again) if again else None
    # Loaded before the data is looked for, so that a wrong word is told at once; the task may then choose another one.
    resolved = load_config(config or default_config("maze", place.type), settings)
    dataset = find_dataset(Path(before["data"]["path"]) if before and data is None else data, note)
    if config is None and before:
        resolved = RunConfig.from_json(before["config"]).override(settings)
    elif config is None:
        resolved = load_config(default_config(dataset.manifest.task, place.type), settings)
    field, limit = resolved.strategy_field, resolved.train.problems or None
    sequences = Sequences.of(dataset.read_split("train", limit), field)
    held_out = dataset.read_split("validation", resolved.train.validation_problems)
    if not len(held_out):
        raise UsageError(f"{dataset.path}: its validation split is empty; make a larger set or --validation-share")
    machine = before["machine"] if before else None
    trainer = Trainer(resolved, sequences, Sequences.of(held_out, field), place, machine)
    return trainer, dataset, f"{dataset.path.name}-{Path(config).stem if config else place.type}"


def _new_run(name: str) -> Path:
    number = 1
    while (RUNS / f"{name}-{number}").exists():
        number += 1
    return RUNS / f"{name}-{number}"
