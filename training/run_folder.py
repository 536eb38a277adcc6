"""A run is a folder with one writer: run.json (what it is), metrics.jsonl (a line a step), checkpoints/, lock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from lol_data.errors import DamageError, RefusedError, UsageError
from lol_data.files import draft_of, write_whole
from lol_data.model.build import make_model
from lol_data.model.transformer import Transformer
from lol_data.shards.lock import directory_lock
from lol_data.tokenization.tasks import AnyLayout
from lol_data.training.checkpoint import load_model, newest_checkpoint
from lol_data.training.config import RunConfig

ABOUT, METRICS, LOCK, DIVERGED = "run.json", "metrics.jsonl", ".lock", "diverged.json"
MADE_BY = "made_by"  # field of a published run: the command that makes its data set
LENGTHS = "lengths"  # field of a run whose length was changed: [step, steps of the run up to it], oldest first


@contextmanager
def open_run(run: Path, about: dict[str, Any], resume: bool) -> Iterator[None]:
    """Make a new run's folder, or reopen one with `resume`, and hold it against other writers.

    Raises RefusedError where another run, another configuration, other data or another writer is there. Only the length
    of a run may change, see `note_length`.
    """
    there = {path.name for path in run.iterdir()} if run.exists() else set()
    if there - {LOCK, draft_of(run / ABOUT).name} and ABOUT not in there:
        raise RefusedError(f"{run} is not empty and not a run; choose another --out")
    if (run / ABOUT).exists():
        if not resume:
            raise RefusedError(f"{run} holds a run already; add --resume to go on with it, or choose another --out")
        before = read_run(run)
        if MADE_BY in before:
            raise RefusedError(f"{run} was published to be evaluated, without its optimiser; choose another --out")
        before["config"] = RunConfig.from_json(before["config"]).to_json()  # fields that came later have their defaults
        before["config"]["train"]["steps"] = about["config"]["train"]["steps"]
        for name in ("config", "data"):
            if before[name] != about[name]:
                change = _difference(before[name], about[name])
                raise RefusedError(f"{run}: {name} changed: {change}; choose another --out")
    run.mkdir(parents=True, exist_ok=True)
    with directory_lock(run / LOCK):
        if not (run / ABOUT).exists():
            _write_about(run, about)
        yield


def _write_about(run: Path, about: dict[str, Any]) -> None:
    write_whole(run / ABOUT, json.dumps(about, indent=1))


def note_length(run: Path, step: int, steps: int) -> int | None:
    """Write into run.json that a run, now at `step`, has `steps` steps; returns what it had if that was another number.

    From there on it follows the learning rate and the growth of a run of that length. Raises UsageError where the new
    end is not ahead.
    """
    about = read_run(run)
    before = about["config"]["train"]["steps"]
    if steps == before:
        return None
    if steps <= step:
        raise UsageError(f"{run} is at step {step} already; set train.steps to more than that")
    about["config"]["train"]["steps"] = steps
    _write_about(run, about | {LENGTHS: [*about.get(LENGTHS, []), [step, before]]})
    return before


def read_run(run: Path) -> dict[str, Any]:
    """run.json of a run folder. Raises UsageError if there is none, DamageError if it cannot be read."""
    try:
        about = json.loads((run / ABOUT).read_text(encoding="utf-8"))
        if missing := {"config", "data", "machine"} - set(about):
            raise ValueError(f"without {missing}")
    except OSError as error:
        raise UsageError(f"{run} is not a run (no {ABOUT}); train one with: lol-data train") from error
    except (ValueError, TypeError) as error:
        raise DamageError(f"{run / ABOUT} is damaged; choose another --out") from error
    return about


def own_data(run: Path, about: dict[str, Any]) -> Path:
    """Where the data set of a run lies, about: its run.json. Raises UsageError where a published run's is not there."""
    path = Path(about["data"]["path"])
    if MADE_BY in about and not path.exists():
        raise UsageError(f"{path}, the data set of {run}, is not here; make it: {about[MADE_BY]}")
    return path


def load_trained(run: Path, layout: AnyLayout, device: torch.device, say=print) -> tuple[Transformer, Path]:
    """The model of a run's newest good checkpoint, in evaluation mode and fp32, and the checkpoint's folder."""
    config = RunConfig.from_json(read_run(run)["config"])
    folder = newest_checkpoint(run, say)
    if folder is None:
        raise UsageError(f"{run} has no complete checkpoint yet; go on with: lol-data train --out {run} --resume")
    model = make_model(config.model_config(layout)).to(device)
    load_model(folder, model)
    return model.eval(), folder


def cut_metrics(path: Path, steps: int) -> dict[str, Any]:
    """Drop the lines of metrics behind a step, and a torn one; returns the last line kept, {} if there is none."""
    kept: list[dict[str, Any]] = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:
            break
        if line["step"] <= steps:
            kept.append(line)
    write_whole(path, "".join(json.dumps(line) + "\n" for line in kept))
    return kept[-1] if kept else {}


def note_divergence(run: Path, step: int, loss: float, samples: list[int]) -> None:
    """Keep what a run broke at: the step, its loss and all samples of its batch."""
    values = {"step": step, "loss": str(loss), "samples": samples}
    (run / DIVERGED).write_text(json.dumps(values), encoding="utf-8")


def _difference(before: Any, after: Any, name: str = "") -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        parts = [
            _difference(before.get(key), after.get(key), f"{name}.{key}".lstrip("."))
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        ]
        return "; ".join(parts)
    return f"{name} {before!r} -> {after!r}"
