"""How to compute on this machine: number format and compilation, decided by measurement, kept out of the model."""

from __future__ import annotations

import time
from typing import Any

import torch

from lol_data.model.lol import LibraryOfLayers
from lol_data.model.ops import compiled_ops, compiler_available
from lol_data.training.config import TrainConfig

COMPILE_FROM_STEPS = 300  # compiling takes about a minute of a CPU; a shorter run does not earn it back


def pick_device(name: str | None = None) -> torch.device:
    """The named device, else the GPU if there is one."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def bf16_pays(device: torch.device) -> bool:
    """Whether matrices multiply clearly faster in bf16 than in fp32 here."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return _matmul_seconds(torch.float32) > 1.5 * _matmul_seconds(torch.bfloat16)


def _matmul_seconds(dtype: torch.dtype) -> float:
    a, b = torch.ones(1024, 256, dtype=dtype), torch.ones(256, 512, dtype=dtype)
    best = float("inf")
    for _ in range(7):
        started = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - started)
    return best


def prepare(model: LibraryOfLayers, train: TrainConfig) -> dict[str, Any]:
    """Set the model's number formats and operations for training; returns what was chosen."""
    device = model.device
    if train.precision == "bf16" or (train.precision == "auto" and bf16_pays(device)):
        model.matmul_dtype = torch.bfloat16
        # On a CPU the bf16 backward of attention is slower than its fp32 one.
        model.attention_dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    wanted = train.compile == "yes" or (train.compile == "auto" and train.steps >= COMPILE_FROM_STEPS)
    compiled = wanted and compiler_available(device)
    if compiled:
        model.ops = compiled_ops()
    return {
        "device": str(device),
        "matmul": str(model.matmul_dtype).removeprefix("torch."),
        "compiled": compiled,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
