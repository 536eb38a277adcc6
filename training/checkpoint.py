"""Checkpoints: safetensors and JSON in a folder of their own, the marker DONE last, published by one rename.

RUN/checkpoints/step-00001500/model.safetensors      parameters and the selection bias
                              optimizer.safetensors  "<optimiser>/<parameter>/<state>"
                              state.json             step and whatever the trainer adds
                              DONE                   sha256 of these files

One that was published (`publish.py`) has no optimiser.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lol_data.errors import DamageError, LolDataError
from lol_data.files import sync
from lol_data.shards.manifest import file_sha256

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


def save_checkpoint(run: Path, step: int, model: nn.Module, optimizers: list, state: dict[str, Any], keep: int) -> Path:
    """Write the checkpoint of a step and drop all but the `keep` newest complete ones.

    Raises LolDataError where it cannot be written; those before it are still there then.
    """
    try:
        return _save(run, step, model, optimizers, state, keep)
    except (OSError, SafetensorError) as error:
        raise LolDataError(f"{run}: the checkpoint of step {step} cannot be written: {cause(error)}") from error


def cause(error: OSError | SafetensorError) -> str:
    """Why something could not be written, in one line."""
    return str(error).strip().splitlines()[-1]


def _save(run: Path, step: int, model: nn.Module, optimizers: list, state: dict[str, Any], keep: int) -> Path:
    root = run / "checkpoints"
    final, draft = root / f"step-{step:08d}", root / f".draft-{step:08d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, draft / FILES[0])
    save_file(_optimizer_tensors(model, optimizers), draft / FILES[1])
    (draft / FILES[2]).write_text(json.dumps({"step": step, **state}, indent=1), encoding="utf-8")
    seal_checkpoint(draft)
    if final.exists():
        shutil.rmtree(final)
    draft.rename(final)
    sync(root)
    complete = [folder for folder in sorted(root.glob("step-*")) if not _broken(folder)]
    for old in {*root.glob("step-*"), *root.glob(".draft-*")} - set(complete[-keep:]):
        shutil.rmtree(old)
    return final


def seal_checkpoint(folder: Path) -> None:
    """Write the marker of a checkpoint whose files are all there, everything synced. Raises OSError."""
    written = [folder / name for name in FILES if (folder / name).exists()]
    for path in written:
        sync(path)
    (folder / "DONE").write_text(json.dumps({path.name: file_sha256(path) for path in written}), encoding="utf-8")
    sync(folder / "DONE")
    sync(folder)


def newest_checkpoint(run: Path, warn=lambda text: None) -> Path | None:
    """The newest checkpoint whose files are as they were written; `warn` is told of every one passed over."""
    for folder in sorted((run / "checkpoints").glob("step-*"), reverse=True):
        broken = _broken(folder)
        if not broken:
            return folder
        warn(f"{folder}: {broken} is damaged or missing; trying the checkpoint before it")
    return None


def _broken(folder: Path) -> str:
    """The first file of a checkpoint that is not as it was written, "" if there is none."""
    try:
        expected = json.loads((folder / "DONE").read_text(encoding="utf-8"))
        names = {FILES[0], FILES[2], *expected}
    except (OSError, ValueError, TypeError):
        return "DONE"
    for name in sorted(names):
        try:
            if file_sha256(folder / name) != expected[name]:
                return name
        except (OSError, KeyError, TypeError):
            return name
    return ""


def load_model(folder: Path, model: nn.Module) -> dict[str, Any]:
    """Read a checkpoint's weights into a model and return its state; raises DamageError if they do not fit."""
    try:
        tensors = load_file(folder / FILES[0], device=str(next(model.parameters()).device))
        model.load_state_dict(tensors)
        return json.loads((folder / FILES[2]).read_text(encoding="utf-8"))
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        detail = str(error).strip().splitlines()
        raise DamageError(f"{folder}: the checkpoint does not fit this model ({detail[-1].strip()})") from error


def load_optimizers(folder: Path, model: nn.Module, optimizers: list) -> None:
    """Read optimiser states saved by `save_checkpoint`."""
    tensors = load_file(folder / FILES[1], device=str(next(model.parameters()).device))
    parameters = dict(model.named_parameters())
    for key, tensor in tensors.items():
        index, name, entry = key.split("/")
        optimizers[int(index)].state[parameters[name]][entry] = tensor.cpu() if entry == "step" else tensor


def _optimizer_tensors(model: nn.Module, optimizers: list) -> dict[str, Tensor]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{index}/{names[id(parameter)]}/{entry}": torch.as_tensor(value).contiguous()
        for index, optimizer in enumerate(optimizers)
        for parameter, state in optimizer.state.items()
        for entry, value in state.items()
    }
