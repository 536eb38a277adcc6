"""The elementwise parts of a block, each one function, so that a compiler can fuse it.

Between them stand matrix products and attention, which libraries do best. `compile_ops` swaps in compiled versions
for a whole process; the formulas stay in one place.
"""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

EPSILON = 1e-6


class _NormFilm(torch.autograd.Function):
    """The derivative by hand takes two thirds of autograd's time on a CPU: it needs fewer passes over memory."""

    @staticmethod
    def forward(ctx, h: Tensor, scale: Tensor, offset: Tensor | None, dtype: torch.dtype) -> Tensor:
        h = h.float()
        norm = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
        inverse = norm.square_().div_(h.shape[-1]).add_(EPSILON).rsqrt_()
        unit = h * inverse
        ctx.save_for_backward(unit, inverse, scale)
        ctx.has_offset = offset is not None
        return (unit * scale if offset is None else torch.addcmul(offset, unit, scale)).to(dtype)

    @staticmethod
    def backward(ctx, grad: Tensor):
        unit, inverse, scale = ctx.saved_tensors
        grad = grad.to(unit.dtype)
        by_unit = grad * unit
        along = (by_unit @ scale)[:, None]  # what the norm takes back: the part of the gradient along h
        grad_h = (grad * scale).addcmul_(unit, along, value=-1 / unit.shape[-1]).mul_(inverse)
        return grad_h, by_unit.sum(0), grad.sum(0) if ctx.has_offset else None, None


def _norm_film(h: Tensor, scale: Tensor, offset: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Equation (9), u = gamma * RMSNorm(h) + beta, for h (M, d); without `offset` a plain scaled RMSNorm."""
    return _NormFilm.apply(h, scale, offset, dtype)


class _Rotate(torch.autograd.Function):
    """Turns queries and keys in place, in one tensor that holds the values too; the way back turns by -angle."""

    @staticmethod
    def forward(ctx, qkv: Tensor, cos: Tensor, sin: Tensor, heads: int, dtype: torch.dtype):
        split = qkv.unflatten(-1, (3 * heads, -1)).transpose(1, 2)
        out = split.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
        turn(out[:, : 2 * heads], cos, sin)
        ctx.angles, ctx.dtype = (cos, sin), qkv.dtype
        return out.to(dtype).split(heads, 1)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        cos, sin = ctx.angles
        grad = torch.cat(grads, 1).float()
        turn(grad[:, : 2 * len(grads[0][0])], cos, -sin)
        return grad.transpose(1, 2).to(ctx.dtype, memory_format=torch.contiguous_format).flatten(2), *[None] * 4


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """x cos + (-b, a) sin for x = [a, b], (..., T, d_h), in place."""
    a, b = x.chunk(2, -1)
    a_sin = a * sin
    a.mul_(cos).addcmul_(b, sin, value=-1)
    b.mul_(cos).add_(a_sin)


def _rotate(qkv: Tensor, cos: Tensor, sin: Tensor, heads: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Heads and rotary positions: qkv (B, T, 3 d), cos and sin (T, d_h / 2) -> q, k, v, each (B, H, T, d_h)."""
    return _Rotate.apply(qkv, cos, sin, heads, dtype)


def _swiglu(up: Tensor) -> Tensor:
    """silu(a) * b for up = [a, b], (..., 2 m) -> (..., m)."""
    a, b = up.chunk(2, -1)
    return F.silu(a) * b


def _add(h: Tensor, update: Tensor) -> Tensor:
    """The residual stream stays in fp32."""
    return h + update


def _gate(h: Tensor, gate: Tensor, attention: Tensor, feed_forward: Tensor) -> Tensor:
    """Equation (6), y = h + alpha (E(h) - h), where E(h) - h is the sum of the two residual updates; gate (M, 1)."""
    return torch.addcmul(h, gate, attention.float() + feed_forward)


class Ops:
    """The functions in use, plain or compiled."""

    norm_film: Callable[..., Tensor] = staticmethod(_norm_film)
    rotate: Callable[..., tuple[Tensor, Tensor, Tensor]] = staticmethod(_rotate)
    swiglu: Callable[..., Tensor] = staticmethod(_swiglu)
    add: Callable[..., Tensor] = staticmethod(_add)
    gate: Callable[..., Tensor] = staticmethod(_gate)


PLAIN = Ops()


def with_norm(ops: Ops, norm_film: Callable[..., Tensor]) -> Ops:
    """The same operations but for the norm."""
    changed = copy.copy(ops)
    changed.norm_film = norm_film
    return changed


@cache
def compiled_ops() -> Ops:
    """Fused versions for any batch and length; compiling takes some seconds at first use."""
    ops = Ops()
    for name in ("norm_film", "rotate", "swiglu", "add", "gate"):
        setattr(ops, name, torch.compile(getattr(PLAIN, name), dynamic=True))
    return ops


def compiler_available(device: torch.device) -> bool:
    """Whether `torch.compile` can work here: Triton's own tools on a GPU, a C++ compiler on a CPU."""
    if device.type == "cuda":
        return True
    return shutil.which(os.environ.get("CXX", "g++")) is not None or shutil.which("clang++") is not None
