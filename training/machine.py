"""How to compute on this machine: number format and compilation, decided by measurement, kept out of the model."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from lol_data.model.ops import compiled_ops, compiler_available
from lol_data.model.transformer import Transformer
from lol_data.training.config import TrainConfig

# A CPU's bf16 matmul compiles a kernel per shape; a run meets some thousands of shapes, and the default keeps 1024.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")

COMPILE_FROM_STEPS = 2000  # compiling takes about a minute; a shorter run does not earn it back


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


def choose(device: torch.device, train: TrainConfig) -> dict[str, Any]:
    """How to train on a device: {"matmul": "float32" or "bfloat16", "compiled": bool}, kept with the run."""
    bf16 = train.precision == "bf16" or (train.precision == "auto" and bf16_pays(device))
    # On a CPU calling the compiled pieces costs what their fusion saves (benchmarks/training.py train.compile=yes).
    pays = device.type == "cuda" and train.steps >= COMPILE_FROM_STEPS
    wanted = train.compile == "yes" or (train.compile == "auto" and pays)
    return {"matmul": "bfloat16" if bf16 else "float32", "compiled": wanted and compiler_available(device)}


def apply(choice: dict[str, Any], model: Transformer) -> None:
    """Set a model's number formats and operations."""
    if choice["matmul"] == "bfloat16":
        model.matmul_dtype = torch.bfloat16
        # On a CPU the bf16 backward of attention is slower than its fp32 one.
        model.attention_dtype = torch.bfloat16 if model.device.type == "cuda" else torch.float32
        model.tile = 32 if model.device.type == "cpu" else 1
    if choice["compiled"]:
        model.ops = compiled_ops()
