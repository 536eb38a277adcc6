"""Causal attention inside of windows, in slot order: the scores of equation (1).

A window has one block, so its queries and keys always come from the same projections. A position outside the strategy
field reads the positions outside the field up to itself, in its window. A field position reads the whole problem and
the field up to itself.

Two ways to the same values. `short_attention` is for a CPU and windows of up to `SHORT` slots: plain batched products
with a derivative by hand, about twice as fast there as PyTorch's fused attention, whose memory no longer counts at that
size. `fused_attention` is for everything else.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lol_data.model.ops import turn

SHORT = 256
Slices = list[tuple[int, int]]


def causal_mask(length: int, field: int, prompt: int, device: torch.device, reach: int | None = None) -> Tensor:
    """What is added to scores, fp32 (T, T): 0 where a slot reads another, else -inf. The first `prompt` slots are
    window 0, and the first `field` of them the strategy field. reach: a slot outside the field reads so many slots,
    itself included, and no more."""
    slot = torch.arange(length, device=device)
    row, column = slot[:, None], slot
    reads = (column <= row) & ((column >= field) | (row < field))
    if reach is not None:
        reads &= (row - column < reach) | (row < field)
    reads |= (row < field) & (column >= field) & (column < prompt)
    return torch.zeros(length, length, device=device).masked_fill_(~reads, -torch.inf)


def is_short(slices: Slices, field: int, device: torch.device) -> bool:
    """Whether `short_attention` is the better way."""
    return device.type == "cpu" and field + max(end - start for start, end in slices) <= SHORT


class _ShortAttention(torch.autograd.Function):
    """Rotation and attention in one: the gradients of queries, keys and values meet in one tensor without detours."""

    @staticmethod
    def forward(ctx, qkv: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, heads: int, slices: Slices, dtype):
        batch, length, width = qkv.shape
        head = width // (3 * heads)
        turned = qkv.view(batch, length, 3, heads, head).permute(2, 0, 3, 1, 4)
        turned = turned.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
        turn(turned[:2], cos, sin)
        mixed = qkv.new_empty(batch, length, heads, head, dtype=dtype)
        weights = []
        for (start, end), (q, k, v) in zip(slices, _windows(turned, slices), strict=True):
            first = 0 if start == 0 else len(mask) - (end - start)
            scores = torch.baddbmm(mask[first:, first:][: end - start, : end - start], q, k.mT, alpha=head**-0.5)
            weights.append(scores.softmax(-1).to(dtype))
            mixed[:, start:end] = torch.bmm(weights[-1], v.to(dtype)).view(batch, heads, -1, head).transpose(1, 2)
        ctx.save_for_backward(turned, cos, sin, *weights)
        ctx.slices, ctx.dtype = slices, qkv.dtype
        return mixed.flatten(2)

    @staticmethod
    def backward(ctx, grad: Tensor):
        turned, cos, sin, *all_weights = ctx.saved_tensors
        _, batch, heads, length, head = turned.shape
        grad = grad.view(batch, length, heads, head).transpose(1, 2)
        out = torch.empty_like(turned)
        windows = zip(ctx.slices, _windows(turned, ctx.slices), all_weights, strict=True)
        for (start, end), (q, k, v), weights in windows:
            dtype = weights.dtype
            upstream = grad[:, :, start:end].reshape(batch * heads, end - start, head).to(dtype)
            pulls = torch.bmm(upstream, v.to(dtype).mT)
            # The softmax's derivative; a weight of 0 stops what the mask hid.
            pulls = weights * (pulls - (pulls * weights).sum(-1, keepdim=True, dtype=torch.float32).to(dtype))
            parts = torch.bmm(pulls, k.to(dtype)), torch.bmm(pulls.mT, q.to(dtype)), torch.bmm(weights.mT, upstream)
            for whole, part in zip(out, parts, strict=True):
                whole[:, :, start:end] = part.view(batch, heads, end - start, head)
        out[:2] *= head**-0.5
        turn(out[:2], cos, -sin)
        out = out.permute(1, 3, 0, 2, 4).to(ctx.dtype, memory_format=torch.contiguous_format)
        return out.flatten(2), None, None, None, None, None, None


def _windows(turned: Tensor, slices: Slices):
    """q, k and v of each window, (B * H, T_k, d_h) each, views of (3, B, H, T, d_h)."""
    for start, end in slices:
        yield turned[:, :, :, start:end].flatten(1, 2).unbind(0)


def short_attention(
    qkv: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, heads: int, slices: Slices, dtype: torch.dtype
) -> Tensor:
    """Equation (1), from (B, T, 3 d) -> what each slot read, (B, T, d), in a number format for the products.

    Queries and keys are rotated here. cos, sin: fp32 (T, d_h / 2). mask: see `causal_mask`. Scores and softmax are
    fp32 always.
    """
    return _ShortAttention.apply(qkv, cos, sin, mask, heads, slices, dtype)


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, slices: Slices, field: int, prompt: int, reach: int | None = None
) -> Tensor:
    """The same from rotated queries, keys and values, (B, H, T, d_h) each -> (B, T, d)."""
    mixed = []
    for start, end in slices:
        if start == 0 and field:
            mask = causal_mask(min(end, prompt), field, prompt, q.device)[:field]
            keys, values = k[:, :, : len(mask.mT)], v[:, :, : len(mask.mT)]
            mixed.append(F.scaled_dot_product_attention(q[:, :, :field], keys, values, attn_mask=mask.to(q.dtype)))
            start = field
        own_q, own_k, own_v = (part[:, :, start:end] for part in (q, k, v))
        if reach is None or reach >= end - start:
            mixed.append(F.scaled_dot_product_attention(own_q, own_k, own_v, is_causal=True))
        else:
            mask = causal_mask(end - start, 0, 0, q.device, reach).to(q.dtype)
            mixed.append(F.scaled_dot_product_attention(own_q, own_k, own_v, attn_mask=mask))
    return torch.cat([part.transpose(1, 2).flatten(2) for part in mixed], 1)


def attend_cached(q: Tensor, keys: Tensor, values: Tensor, reach: int | None = None) -> Tensor:
    """One new position against all, or the last so many, up to itself: q (B, H, 1, d_h), keys (B, H, T, d_h) ->
    (B, 1, d)."""
    if reach is not None:
        keys, values = keys[:, :, -reach:], values[:, :, -reach:]
    return F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).flatten(2)
