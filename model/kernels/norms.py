"""RMSNorm and FiLM, equation (9), in one pass over memory each way.

The plain version keeps the normed rows for its backward pass; here those are computed again from the rows themselves,
which the residual stream keeps anyway, and one number per row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from lol_data.model.kernels import launch
from lol_data.model.ops import EPSILON

HELD = 2048  # numbers that a program works on at a time
PROGRAMS = 512  # of the backward pass: enough for any GPU, few enough to add up what each leaves


@triton.jit
def _norm(h, scale, offset, out, inverses, rows, width, EPSILON: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    inside = column < width
    there = (row < rows)[:, None] & inside[None, :]
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    x = tl.load(h + at, mask=there, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x, 1) / width + EPSILON)
    y = x * inverse[:, None] * tl.load(scale + column, mask=inside, other=0.0)[None, :]
    if offset is not None:
        y += tl.load(offset + column, mask=inside, other=0.0)[None, :]
    tl.store(out + at, y.to(out.dtype.element_ty), mask=there)
    tl.store(inverses + row, inverse, mask=row < rows)


@triton.jit
def _norm_gradient(
    h, scale, inverses, grad, grad_h, by_scale, by_offset, rows, width, each, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    # Each program takes `each` rows one behind the other, and leaves its share of the two sums over rows.
    program = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    inside = column < width
    gain = tl.load(scale + column, mask=inside, other=0.0)[None, :]
    scale_sum = tl.zeros((ROWS, WIDTH), tl.float32)
    offset_sum = tl.zeros((ROWS, WIDTH), tl.float32)
    end = tl.minimum((program + 1) * each, rows)
    for first in range(program * each, end, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < end)[:, None] & inside[None, :]
        at = row.to(tl.int64)[:, None] * width + column[None, :]
        x = tl.load(h + at, mask=there, other=0.0).to(tl.float32)
        g = tl.load(grad + at, mask=there, other=0.0).to(tl.float32)
        inverse = tl.load(inverses + row, mask=row < end, other=0.0)[:, None]
        unit = x * inverse
        by_unit = g * unit
        along = tl.sum(by_unit * gain, 1)[:, None] / width  # what the norm takes back
        tl.store(grad_h + at, ((g * gain - unit * along) * inverse).to(grad_h.dtype.element_ty), mask=there)
        scale_sum += by_unit
        offset_sum += g
    tl.store(by_scale + program * width + column, tl.sum(scale_sum, 0), mask=inside)
    if by_offset is not None:
        tl.store(by_offset + program * width + column, tl.sum(offset_sum, 0), mask=inside)


def _sizes(width: int) -> dict[str, int]:
    whole = triton.next_power_of_2(width)
    return {"WIDTH": whole, "ROWS": max(1, HELD // whole), "num_warps": 4 if whole <= HELD else 8}


class _NormFilm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h: Tensor, scale: Tensor, offset: Tensor | None, dtype: torch.dtype) -> Tensor:
        h, scale = h.contiguous(), scale.contiguous()
        (rows, width), sizes = h.shape, _sizes(h.shape[1])
        out = torch.empty_like(h, dtype=dtype)
        inverses = h.new_empty(rows, dtype=torch.float32)
        offset = None if offset is None else offset.contiguous()
        programs = triton.cdiv(rows, sizes["ROWS"])
        launch(_norm, programs, h, scale, offset, out, inverses, rows, width, EPSILON=EPSILON, **sizes)
        ctx.save_for_backward(h, scale, inverses)
        ctx.has_offset = offset is not None
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        h, scale, inverses = ctx.saved_tensors
        (rows, width), sizes = h.shape, _sizes(h.shape[1])
        each = triton.cdiv(triton.cdiv(rows, PROGRAMS), sizes["ROWS"]) * sizes["ROWS"]
        programs = triton.cdiv(rows, each) if rows else 0
        grad_h = torch.empty_like(h)
        sums = scale.new_empty(2 if ctx.has_offset else 1, programs, width)
        parts = sums[0], sums[1] if ctx.has_offset else None
        launch(
            _norm_gradient, programs, h, scale, inverses, grad.contiguous(), grad_h, *parts, rows, width, each, **sizes
        )
        totals = sums.sum(1)
        return grad_h, totals[0], totals[1] if ctx.has_offset else None, None


def norm_film(h: Tensor, scale: Tensor, offset: Tensor | None, dtype: torch.dtype) -> Tensor:
    """u = gamma * RMSNorm(h) + beta in a number format: h (M, d), scale and offset fp32 (d,) -> (M, d).

    As `ops.norm_film`; without `offset` a plain scaled RMSNorm. Sums are fp32.
    """
    return _NormFilm.apply(h, scale, offset, dtype)
