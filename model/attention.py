"""Causal attention inside of windows, in slot order: the scores of equation (1).

A window has one block, so its queries and keys always come from the same projections. A position outside the strategy
field reads the positions outside the field up to itself, in its window. A field position reads the whole problem and
the field up to itself. A problem that is read as a whole (`Front`) shows itself to each of its positions too, but for
<bos>: from its state alone comes the route of window 0, which is to be the same for all problems.

Two ways to the same values. `tiled_attention` is for a CPU and windows of up to `LONGEST` slots: plain batched products
over tiles of the scores that fit into a core's cache, with a derivative by hand, about twice as fast there as PyTorch's
fused attention. `fused_attention` is for everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lol_data.model.ops import turn

LONGEST = 2048  # slots of a window in tiles: its weights are kept for the derivative
WHOLE = 256  # slots of a window that is not cut into tiles of queries
TILE = 128  # queries of a tile
SCORES = 2**19  # of a tile, over all heads of some sequences: 2 MB
Slices = list[tuple[int, int]]


@dataclass(frozen=True)
class Front:
    """The slots at the front of a pass: `field` of a strategy field, then the problem up to slot `prompt`.

    whole: every slot of the problem but its first one reads all of it.
    """

    field: int = 0
    prompt: int = 0
    whole: bool = False

    @property
    def readers(self) -> int:
        """Slots at the front among which some read ahead."""
        return self.prompt if self.whole else self.field

    def part(self, start: int, end: int) -> Front:
        """What of it lies in the slots [start, end)."""
        field, prompt = (max(0, min(slot, end) - start) for slot in (self.field, self.prompt))
        return replace(self, field=field, prompt=prompt)


NO_FRONT = Front()


def causal_mask(length: int, front: Front, device: torch.device, reach: int | None = None) -> Tensor:
    """What is added to scores, fp32 (T, T): 0 where a slot reads another, else -inf. reach: a slot reads so many slots,
    itself included, and no more, if it is not one of those that read the whole problem."""
    field = front.field
    slot = torch.arange(length, device=device)
    row, column = slot[:, None], slot
    reads = (column <= row) & ((column >= field) | (row < field))
    if reach is not None:
        reads &= (row - column < reach) | (row < field)
    reads |= (row < front.readers) & (row != field) & (column >= field) & (column < front.prompt)
    return torch.zeros(length, length, device=device).masked_fill_(~reads, -torch.inf)


def in_tiles(slices: Slices, device: torch.device) -> bool:
    """Whether `tiled_attention` is the better way."""
    return device.type == "cpu" and max(end - start for start, end in slices) <= LONGEST


@dataclass(frozen=True)
class _Tile:
    """Queries [start, end) and the keys [first, last) that they read, in slots. alone: no other tile reads these."""

    start: int
    end: int
    first: int
    last: int
    alone: bool


_Part = tuple[_Tile, slice]  # a tile of a few sequences


def _tiles(slices: Slices, front: Front, reach: int | None) -> Iterator[_Tile]:
    for begin, stop in slices:
        if stop - begin <= WHOLE:
            yield _Tile(begin, stop, begin, stop, True)
            continue
        for start in range(begin, stop, TILE):
            end = min(start + TILE, stop)
            ahead = start < front.readers
            first = begin if reach is None or ahead else max(begin, start - reach + 1)
            yield _Tile(start, end, first, max(end, min(front.prompt, stop)) if ahead else end, False)


def _parts(tiles: Iterable[_Tile], ends: list[int], heads: int) -> Iterator[_Part]:
    """Every tile, for as many sequences at a time as fit, cut where all of those have ended."""
    for tile in tiles:
        step = max(1, SCORES // (heads * (tile.end - tile.start) * (tile.last - tile.first)))
        for first in range(0, len(ends), step):
            longest = max(ends[first : first + step])
            if longest > tile.start:
                cut = replace(tile, end=min(tile.end, longest), last=min(tile.last, longest))
                yield cut, slice(first, first + step)


class _TiledAttention(torch.autograd.Function):
    """Rotation and attention in one: the gradients of queries, keys and values meet in one tensor without detours."""

    @staticmethod
    def forward(ctx, qkv: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, heads: int, parts: list[_Part], dtype):
        batch, length, width = qkv.shape
        head = width // (3 * heads)
        turned = qkv.view(batch, length, 3, heads, head).permute(2, 0, 3, 1, 4)
        turned = turned.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
        turn(turned[:2], cos, sin)
        low = turned.to(dtype)
        mixed = qkv.new_zeros(batch, length, heads, head, dtype=dtype)
        weights = []
        for tile, rows in parts:
            q, k = _cut(turned[0], rows, tile.start, tile.end), _cut(turned[1], rows, tile.first, tile.last)
            seen = mask[tile.start : tile.end, tile.first : tile.last]
            weights.append(torch.baddbmm(seen, q, k.mT, alpha=head**-0.5).softmax(-1).to(dtype))
            read = torch.bmm(weights[-1], _cut(low[2], rows, tile.first, tile.last))
            mixed[rows, tile.start : tile.end] = read.unflatten(0, (-1, heads)).transpose(1, 2)
        ctx.save_for_backward(low, cos, sin, *weights)
        ctx.parts, ctx.dtype = parts, qkv.dtype
        return mixed.flatten(2)

    @staticmethod
    def backward(ctx, grad: Tensor):
        low, cos, sin, *all_weights = ctx.saved_tensors
        _, batch, heads, length, head = low.shape
        grad = grad.view(batch, length, heads, head).transpose(1, 2).to(low.dtype)
        out = torch.zeros_like(low, dtype=torch.float32)
        for (tile, rows), weights in zip(ctx.parts, all_weights, strict=True):
            q, upstream = (_cut(x, rows, tile.start, tile.end) for x in (low[0], grad))
            k, v = (_cut(x, rows, tile.first, tile.last) for x in low[1:])
            pulls = torch.bmm(upstream, v.mT)
            # The softmax's derivative; a weight of 0 stops what the mask hid.
            pulls = weights * (pulls - (pulls * weights).sum(-1, keepdim=True, dtype=torch.float32).to(low.dtype))
            for whole, part, start, end in (
                (out[0], torch.bmm(pulls, k), tile.start, tile.end),
                (out[1], torch.bmm(pulls.mT, q), tile.first, tile.last),
                (out[2], torch.bmm(weights.mT, upstream), tile.first, tile.last),
            ):
                there, part = whole[rows, :, start:end], part.unflatten(0, (-1, heads))
                there.copy_(part) if tile.alone else there.add_(part)
        out[:2] *= head**-0.5
        turn(out[:2], cos, -sin)
        out = out.permute(1, 3, 0, 2, 4).to(ctx.dtype, memory_format=torch.contiguous_format)
        return out.flatten(2), None, None, None, None, None, None


def _cut(x: Tensor, rows: slice, start: int, end: int) -> Tensor:
    """Slots of some sequences, (B', H, T', d_h) of (B, H, T, d_h), as (B' H, T', d_h)."""
    return x[rows, :, start:end].flatten(0, 1)


def tiled_attention(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    mask: Tensor,
    heads: int,
    slices: Slices,
    dtype: torch.dtype,
    ends: list[int],
    front: Front,
    reach: int | None = None,
) -> Tensor:
    """Equation (1), from (B, T, 3 d) -> what each slot read, (B, T, d), in a number format for the products.

    Queries and keys are rotated here. cos, sin: fp32 (T, d_h / 2). mask: of `causal_mask`, with the same front
    and reach. ends: slots of each sequence; what those behind them read is of no use. Scores and softmax are fp32
    always.
    """
    parts = list(_parts(_tiles(slices, front, reach), ends, heads))
    return _TiledAttention.apply(qkv, cos, sin, mask, heads, parts, dtype)


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, slices: Slices, front: Front = NO_FRONT, reach: int | None = None
) -> Tensor:
    """The same from rotated queries, keys and values, (B, H, T, d_h) each -> (B, T, d)."""
    attend, mixed = F.scaled_dot_product_attention, []
    for begin, end in slices:
        first = begin  # of the queries that read nothing ahead
        if begin < front.readers:
            first, last = min(end, front.readers), min(end, front.prompt)
            mask = causal_mask(last, front, q.device)[:first]
            mixed.append(attend(q[:, :, :first], k[:, :, :last], v[:, :, :last], attn_mask=mask.to(q.dtype)))
            begin = min(end, front.field)
        if first == end:
            continue
        # Queries from `begin` on, though some have their values by now: so the mask is one that PyTorch knows.
        own_q, own_k, own_v = (part[:, :, begin:end] for part in (q, k, v))
        if reach is None or reach >= end - begin:
            read = attend(own_q, own_k, own_v, is_causal=True)
        else:
            mask = causal_mask(end - begin, NO_FRONT, q.device, reach).to(q.dtype)
            read = attend(own_q, own_k, own_v, attn_mask=mask)
        mixed.append(read[:, :, first - begin :])
    return torch.cat([part.transpose(1, 2).flatten(2) for part in mixed], 1)


def attend_cached(q: Tensor, keys: Tensor, values: Tensor, reach: int | None = None) -> Tensor:
    """One new position against all, or the last so many, up to itself: q (B, H, 1, d_h), keys (B, H, T, d_h) ->
    (B, 1, d)."""
    if reach is not None:
        keys, values = keys[:, :, -reach:], values[:, :, -reach:]
    return F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).flatten(2)
