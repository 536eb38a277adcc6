"""A run for others: what is needed to evaluate it and to see how it was trained, small enough for a repository.

OUT/run.json                                    configuration, versions, and the command that makes its data set
OUT/metrics.jsonl                               every so-manieth step, and all validation losses
OUT/checkpoints/step-N/model.safetensors        matrices in bf16, all else as it was
                       state.json, DONE         no optimiser: such a run can be evaluated, not gone on with
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lol_data.errors import LolDataError, RefusedError, UsageError
from lol_data.files import whole
from lol_data.generators.maze import MazeSettings
from lol_data.generators.sudoku import SudokuSettings
from lol_data.shards.manifest import Manifest
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.training.checkpoint import cause, newest_checkpoint, seal_checkpoint
from lol_data.training.run_folder import ABOUT, MADE_BY, METRICS, read_run

LINES = 400  # of metrics that are kept, besides those with a validation loss


def publish(run: Path, data: Path | None, out: Path, note: Callable[[str], None]) -> dict[str, Any]:
    """Write a run's newest checkpoint and its papers into a new folder. data: its data set, where that has moved.

    Returns {"checkpoint", "bytes", "made_by"}. Raises UsageError for no run, no checkpoint or other data, RefusedError
    where the folder holds something, LolDataError where it cannot be written.
    """
    about = read_run(run)
    checkpoint = newest_checkpoint(run, note)
    if checkpoint is None:
        raise UsageError(f"{run} has no complete checkpoint yet; go on with: lol-data train --out {run} --resume")
    dataset = open_dataset(data or Path(about["data"]["path"]))
    if dataset.manifest.content_hash != about["data"]["content_hash"]:
        raise UsageError(f"{dataset.path} is not what {run} was trained on; name that data set with --data")
    if out.exists() and any(out.iterdir()):
        raise RefusedError(f"{out} is not empty; choose another --out")
    # Not datasets/NAME, which is where somebody's own data set of that kind would be.
    place = Path("datasets") / f"{out.name}-{dataset.manifest.content_hash[:6]}"
    made_by = f"{generation_command(dataset.manifest)} --out {place}"
    about["data"]["path"], about[MADE_BY] = str(place), made_by
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with whole(out) as draft:
            _write(run, checkpoint, about, draft)
    except (OSError, SafetensorError) as error:
        raise LolDataError(f"{out}: cannot be written: {cause(error)}") from error
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return {"checkpoint": checkpoint.name, "bytes": size, MADE_BY: made_by}


def _write(run: Path, checkpoint: Path, about: dict[str, Any], out: Path) -> None:
    folder = out / "checkpoints" / checkpoint.name
    folder.mkdir(parents=True)
    tensors = load_file(checkpoint / "model.safetensors")
    save_file({name: _rounded(name, tensor) for name, tensor in tensors.items()}, folder / "model.safetensors")
    shutil.copyfile(checkpoint / "state.json", folder / "state.json")
    seal_checkpoint(folder)
    lines = (run / METRICS).read_text(encoding="utf-8").splitlines()
    every = max(1, len(lines) // LINES)
    kept = [line for k, line in enumerate(lines, 1) if k % every == 0 or k == len(lines) or '"validation_loss"' in line]
    (out / METRICS).write_text("".join(line + "\n" for line in kept), encoding="utf-8")
    (out / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _rounded(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Matrices take nearly all of the room; the router's decide on routes and stay as they are."""
    small = tensor.ndim < 2 or name.startswith("router.")
    return tensor if small else tensor.to(torch.bfloat16)


def generation_command(manifest: Manifest) -> str:
    """The command that makes a data set with the same rows."""
    plan = {item.name: item.default for item in fields(DatasetPlan)}
    words: dict[str, Any] = {"n": manifest.n}
    if manifest.task == "maze":
        usual = MazeSettings(size=manifest.settings["size"])
        known = {"min_path": usual.least_path, "algorithm": usual.algorithm, "loops": usual.loops}
        words["size"] = usual.size
        words |= {name: value for name, value in manifest.settings.items() if known.get(name, value) != value}
    elif (clues := tuple(manifest.settings["clues"])) != SudokuSettings().clues:
        words["clues"] = f"{clues[0]}:{clues[1]}"
    words["seed"] = manifest.seed
    for name in ("shard_rows", "validation_share", "test_share"):
        if getattr(manifest, name) != plan[name]:
            words[name] = getattr(manifest, name)
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in words.items())
    return f"lol-data gen-{manifest.task} {options}"
