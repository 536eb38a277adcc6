"""How to compute on this machine: number format, compilation and kernels, decided by measurement, kept out of the
model.

Compilation and kernels go together: what is compiled are single elementwise functions (`model/ops.py`), kernels are
called beside them and never from inside one, and the norm, which there is of both kinds, is the kernel.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lol_data.errors import UsageError
from lol_data.model import kernels
from lol_data.model.ops import PLAIN, compiled_ops, compiler_available, with_norm
from lol_data.model.routing import ForcedPath
from lol_data.model.transformer import Transformer
from lol_data.training.config import TrainConfig
from lol_data.training.data import Batch

# A CPU's bf16 matmul compiles a kernel per shape; a run meets some thousands of shapes, and the default keeps 1024.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")

COMPILE_FROM_STEPS = 2000  # compiling takes about a minute; a shorter run does not earn it back
PASSES = 7  # forward and backward, of which the fastest counts; the first ones compile and fill caches
ALIKE = 0.05  # largest difference of two gradients, against their size, that rounding to bf16 explains


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


def choose(device: torch.device, train: TrainConfig, model: Transformer, batch: Callable[[], Batch]) -> dict[str, Any]:
    """How to train a model on a device, kept with the run.

    {"matmul": "float32" or "bfloat16", "compiled": bool, "kernels": bool}, and "kernels_why", what was measured, where
    kernels were tried: on a micro-batch of the run, from `batch`.
    """
    bf16 = train.precision == "bf16" or (train.precision == "auto" and bf16_pays(device))
    # On a CPU calling the compiled pieces costs what their fusion saves (benchmarks/training.py train.compile=yes).
    pays = device.type == "cuda" and train.steps >= COMPILE_FROM_STEPS
    wanted = train.compile == "yes" or (train.compile == "auto" and pays)
    choice: dict[str, Any] = {
        "matmul": "bfloat16" if bf16 else "float32",
        "compiled": wanted and compiler_available(device),
        "kernels": train.kernels == "yes",
    }
    if train.kernels == "auto" and device.type == "cuda":
        choice |= compare_kernels(model, choice, batch())
    return choice


def apply(choice: dict[str, Any], model: Transformer) -> None:
    """Set a model's number formats and operations. Raises UsageError for kernels that cannot be had."""
    if choice["matmul"] == "bfloat16":
        model.matmul_dtype = torch.bfloat16
        # On a CPU the bf16 backward of attention is slower than its fp32 one.
        model.attention_dtype = torch.bfloat16 if model.device.type == "cuda" else torch.float32
        model.tile = 32 if model.device.type == "cpu" else 1
    model.ops = compiled_ops() if choice["compiled"] else PLAIN
    model.kernels = None
    if choice.get("kernels"):  # runs of earlier versions do not say
        if reason := kernels.why_not(model.device, model.matmul_dtype):
            raise UsageError(f"there are no Triton kernels here: {reason}; set train.kernels to auto or no")
        model.kernels = kernels.load()
        model.ops = with_norm(model.ops, model.kernels.norm_film)


def compare_kernels(model: Transformer, choice: dict[str, Any], batch: Batch) -> dict[str, Any]:
    """Whether a model is faster with kernels than computed as chosen otherwise: {"kernels", "kernels_why"}.

    They must also give the same gradient, and a machine on which they fail in any way does without.
    """
    training = model.training
    model.eval()  # without noise; nothing is counted
    path = None
    if model.config.router != "fixed":  # rounding must not send a window another way; every block is used
        depth, blocks = model.config.depth, model.config.blocks
        windows = max(len(model.windows.slices(batch.tokens.shape[1], level)) for level in range(1, depth + 1))
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(blocks, (len(batch.tokens), depth, windows), generator=generator)
        path = ForcedPath(ids.to(model.device), None)
    apply({**choice, "kernels": False}, model)
    plain, expected = _pass_seconds(model, batch, path)
    try:
        apply({**choice, "kernels": True}, model)
        seconds, gradient = _pass_seconds(model, batch, path)
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        return {"kernels": False, "kernels_why": f"they do not work here: {said}"}
    finally:
        model.zero_grad(set_to_none=True)
        model.train(training)
    difference = ((gradient - expected).norm() / expected.norm()).item()
    if not difference <= ALIKE:  # NaN too
        return {"kernels": False, "kernels_why": f"their gradient is {difference:.1%} off"}
    times = f"{seconds:.4f} s forward and backward, {plain:.4f} s without"
    return {"kernels": seconds < plain, "kernels_why": times}


def _pass_seconds(model: Transformer, batch: Batch, path: ForcedPath | None) -> tuple[float, Tensor]:
    """Of the fastest of some passes over a batch, and the gradient of all parameters in a row."""
    best = float("inf")
    for _ in range(PASSES):
        model.zero_grad(set_to_none=True)
        _wait(model.device)
        started = time.perf_counter()
        logits, _ = model(batch.tokens, forced=path, lengths=batch.lengths)
        logits.square().mean().backward()
        _wait(model.device)
        best = min(best, time.perf_counter() - started)
    parameters = list(model.parameters())
    gradients = [torch.zeros_like(own) if own.grad is None else own.grad for own in parameters]
    return best, torch.cat([gradient.flatten() for gradient in gradients])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def kernels_note(choice: dict[str, Any]) -> str | None:
    """A line that says whether kernels are in use and why, where they were tried."""
    if "kernels_why" not in choice:
        return None
    return f"Triton kernels: {'in use' if choice['kernels'] else 'not used'}, {choice['kernels_why']}"
