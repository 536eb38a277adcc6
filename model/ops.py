"""The elementwise parts of a block, each one function, so that a compiler can fuse it.

Between them stand matrix products and attention, which libraries do best. `compile_ops` swaps in compiled versions
for a whole process; the formulas stay in one place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

EPSILON = 1e-6


def _norm_film(h: Tensor, scale: Tensor, offset: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Equation (9), u = gamma * RMSNorm(h) + beta, for h (..., d); without `offset` a plain scaled RMSNorm."""
    h = h.float()
    u = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + EPSILON)
    return (u * scale if offset is None else torch.addcmul(offset, u, scale)).to(dtype)


def _rotate(qkv: Tensor, cos: Tensor, sin: Tensor, heads: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Heads and rotary positions: qkv (B, T, 3 d), cos and sin (T, d_h / 2) -> q, k, v, each (B, H, T, d_h)."""
    batch, length, width = qkv.shape
    qkv = qkv.view(batch, length, 3 * heads, width // (3 * heads)).transpose(1, 2)
    qk, v = qkv[:, : 2 * heads].float(), qkv[:, 2 * heads :]
    a, b = qk.chunk(2, -1)
    # x cos + (-b, a) sin, queries and keys at once
    qk = torch.addcmul(qk * torch.cat([cos, cos], -1), torch.cat([-b, a], -1), torch.cat([sin, sin], -1)).to(dtype)
    return qk[:, :heads], qk[:, heads:], v.to(dtype)


def _swiglu(up: Tensor) -> Tensor:
    """silu(a) * b for up = [a, b], (..., 2 m) -> (..., m)."""
    a, b = up.chunk(2, -1)
    return F.silu(a) * b


def _add(h: Tensor, update: Tensor) -> Tensor:
    """The residual stream stays in fp32."""
    return h + update


def _gate(h: Tensor, gate: Tensor, attention: Tensor, feed_forward: Tensor) -> Tensor:
    """Equation (6), y = h + alpha (E(h) - h), where E(h) - h is the sum of the two residual updates; gate (B, T, 1)."""
    return torch.addcmul(h, gate, attention.float() + feed_forward)


class Ops:
    """The functions in use, plain or compiled."""

    norm_film: Callable[..., Tensor] = staticmethod(_norm_film)
    rotate: Callable[..., tuple[Tensor, Tensor, Tensor]] = staticmethod(_rotate)
    swiglu: Callable[..., Tensor] = staticmethod(_swiglu)
    add: Callable[..., Tensor] = staticmethod(_add)
    gate: Callable[..., Tensor] = staticmethod(_gate)


PLAIN = Ops()


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
