"""Router inputs, equation (5): means of windows and of what came before them, from the rows as they lie.

One program takes some columns of one sequence, window by window; nothing but the result is written.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from lol_data.model.kernels import launch

SIZES = {"ROWS": 32, "COLUMNS": 64}


@triton.jit
def _prefix(h, bounds, opening, vector, weights, decay, out, windows, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    across = tl.cdiv(width, COLUMNS)
    sequence = tl.program_id(0) // across
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    first = tl.load(h + tl.load(opening + sequence).to(tl.int64) * width + column, mask=inside, other=0.0)
    own = out + sequence.to(tl.int64) * windows * width + column
    tl.store(own, 0.5 * (first + tl.load(vector + column, mask=inside, other=0.0)), mask=inside)
    total = tl.zeros((COLUMNS,), tl.float32)
    start = tl.load(bounds + sequence * windows)
    for k in range(1, windows):
        end = tl.load(bounds + sequence * windows + k)  # of window k - 1
        kept = tl.zeros((ROWS, COLUMNS), tl.float32)
        for at in range(start, end, ROWS):
            row = at + tl.arange(0, ROWS)
            there = (row < end)[:, None] & inside[None, :]
            kept += tl.load(h + row.to(tl.int64)[:, None] * width + column[None, :], mask=there, other=0.0)
        total = tl.sum(kept, 0) / tl.maximum(end - start, 1) + decay * total
        tl.store(own + k * width, total / tl.load(weights + k), mask=inside)
        start = end


@triton.jit
def _prefix_gradient(
    grad, bounds, opening, weights, decay, grad_h, windows, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    # Windows from the last one on, which no router input contains, to the first.
    across = tl.cdiv(width, COLUMNS)
    sequence = tl.program_id(0) // across
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    own = grad + sequence.to(tl.int64) * windows * width + column
    opener = tl.load(opening + sequence)
    of_opener = 0.5 * tl.load(own, mask=inside, other=0.0)
    carried = tl.zeros((COLUMNS,), tl.float32)
    end = tl.load(bounds + (sequence + 1) * windows)
    for passed in range(windows):
        k = windows - 1 - passed
        start = tl.load(bounds + sequence * windows + k)
        each = carried / tl.maximum(end - start, 1)
        for at in range(start, end, ROWS):
            row = at + tl.arange(0, ROWS)
            there = (row < end)[:, None] & inside[None, :]
            value = each[None, :] + tl.where(row == opener, 1.0, 0.0)[:, None] * of_opener[None, :]
            tl.store(grad_h + row.to(tl.int64)[:, None] * width + column[None, :], value, mask=there)
        # What r_k holds of window k - 1, and through the running sum of all before it; weights[0] stands for nothing.
        carried = tl.load(own + k * width, mask=inside, other=0.0) / tl.load(weights + k) + decay * carried
        end = start


@lru_cache(maxsize=1024)
def _weights(windows: int, decay: float, device: torch.device) -> Tensor:
    """Of all windows before each: fp32 (K,), the first 1."""
    weights, weight = [1.0], 0.0
    for _ in range(1, windows):
        weight = decay * weight + 1
        weights.append(weight)
    with torch.inference_mode(False):
        return torch.tensor(weights, device=device)


class _RouterInputs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h: Tensor, bounds: Tensor, opening: Tensor, tokens: int, depth_vector: Tensor, decay: float):
        h, width = h.contiguous(), h.shape[1]
        windows = (len(bounds) - 1) // len(opening)
        weights = _weights(windows, decay, h.device)
        out = h.new_empty(len(opening), windows, width)
        programs = len(opening) * triton.cdiv(width, SIZES["COLUMNS"])
        arguments = h, bounds, opening, depth_vector.contiguous(), weights, decay, out, windows, width
        launch(_prefix, programs, *arguments, **SIZES)
        ctx.bounds, ctx.opening, ctx.weights, ctx.decay = bounds, opening, weights, decay
        ctx.rows, ctx.tokens = len(h), tokens
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        grad = grad.contiguous()
        batch, windows, width = grad.shape
        grad_h = grad.new_empty(ctx.rows, width)
        grad_h[ctx.tokens :] = 0
        programs = batch * triton.cdiv(width, SIZES["COLUMNS"])
        arguments = grad, ctx.bounds, ctx.opening, ctx.weights, ctx.decay, grad_h, windows, width
        launch(_prefix_gradient, programs, *arguments, **SIZES)
        return grad_h, None, None, None, 0.5 * grad[:, 0].sum(0), None


def router_inputs(
    h: Tensor, bounds: Tensor, opening: Tensor, tokens: int, depth_vector: Tensor, decay: float
) -> Tensor:
    """r_k of every window, fp32 (B, K, d); as `routing.prefix_means` of `routing.window_means`.

    h: rows, fp32 (M, d), of which the first `tokens` lie in windows. bounds: int32 (B K + 1,), the first row of each
    window, all sequences one behind the other, and the end of the last. opening: int64 (B,), the row of each
    sequence's first token, in window 0. depth_vector: (d,). decay: of equation (5), see there.
    """
    return _RouterInputs.apply(h, bounds.contiguous(), opening.contiguous(), tokens, depth_vector, decay)
