"""Blocks: the weights of one Transformer layer, and the fixed layers before and behind the core.

Inside the model a sequence stands in *slot order*: strategy field, problem, suffix. Positions (for the rotary
embedding and for causality) are still those of the text, where the field comes after the problem. In slot order the
field can be cut off as a prefix, and everything but the field is plain causal attention.

States are *rows*, fp32 (M, d): the tokens of all sequences of a batch one behind the other, without the padding, which
nothing but attention ever sees. `Span.rows` says which slot of which sequence each row is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.attention import (
    SHORT,
    Slices,
    attend_cached,
    causal_mask,
    fused_attention,
    is_short,
    short_attention,
)
from lol_data.model.grouped import Dispatch
from lol_data.model.ops import Ops


class Block(nn.Module):
    """Weights of attention and SwiGLU, without biases: qkv (3 d, d), out (d, d), up (2 m, d), down (d, m)."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.qkv = nn.Parameter(torch.empty(3 * width, width))
        self.out = nn.Parameter(torch.empty(width, width))
        self.up = nn.Parameter(torch.empty(2 * hidden, width))
        self.down = nn.Parameter(torch.empty(width, hidden))
        for weight in (self.qkv, self.up):
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
        # A new block is close to the identity, so that depth can be added without a jump.
        for weight in (self.out, self.down):
            nn.init.normal_(weight, std=0.1 * weight.shape[1] ** -0.5)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T in the dtype of x."""
    return F.linear(x, weight.to(x.dtype))


@dataclass(frozen=True)
class Span:
    """Which slots of B sequences a pass covers, and the means to compute them.

    rows: from the B * T slots to the rows of the states, the filling last; None: every slot has its row. shape: (B, T).
    cos, sin: fp32 (T, d_h / 2), rotary angles of the slots' positions. field: strategy field slots at the front (0 once
    they are cut off). prompt: slots of window 0, the field's included.
    """

    rows: Dispatch | None
    shape: tuple[int, int]
    cos: Tensor
    sin: Tensor
    field: int
    prompt: int
    heads: int
    ops: Ops
    matmul: torch.dtype
    attention: torch.dtype

    def attend(
        self, qkv: Tensor, slices: Slices, rows: Dispatch | None = None, cache: KeyValueCache | None = None
    ) -> Tensor:
        """What each row read in its window, (M, d), from the queries, keys and values of all rows, (M, 3 d).

        slices: the windows' slots, [start, end). rows: where the slots' rows are, if not in `self.rows`. cache: gets
        the keys and values outside the field; a filled one takes one position at a time, which reads it all.
        """
        rows = rows or self.rows
        slots = (rows.unsort(qkv) if rows else qkv).view(*self.shape, -1)
        if cache is None and is_short(slices, self.field, qkv.device):
            mask = causal_mask(min(SHORT, self.shape[1]), self.field, self.prompt, qkv.device)
            mixed = short_attention(slots, self.cos, self.sin, mask, self.heads, slices, self.matmul)
        else:
            q, k, v = self.ops.rotate(slots, self.cos, self.sin, self.heads, self.attention)
            if cache is not None and cache.length:
                mixed = attend_cached(q, *cache.append(k, v))
            else:
                mixed = fused_attention(q, k, v, slices, self.field, self.prompt)
                if cache is not None:
                    cache.append(k[:, :, self.field :], v[:, :, self.field :])
        mixed = mixed.flatten(0, 1).to(self.matmul)
        return rows.sort(mixed) if rows else mixed

    def unsort(self, x: Tensor) -> Tensor:
        """Rows (M, ...) -> slots (B * T, ...)."""
        return self.rows.unsort(x) if self.rows else x

    def part(self, start: int, end: int, tile: int) -> tuple[Dispatch, Span]:
        """The rows of the slots start .. end - 1 of every sequence, and the pass over them alone."""
        batch, length = self.shape
        slot = torch.arange(length, device=self.cos.device).repeat(batch)
        place = source = torch.arange(batch * length, device=slot.device)
        if self.rows:
            place, source = self.rows.place, self.rows.source
            slot = slot[source].index_fill(0, self.rows.filling, -1)
        kept = Dispatch.keep((slot >= start) & (slot < end), tile)
        old = source[kept.source]  # slots of all sequences, one behind the other
        new = old // length * (end - start) + old % length - start
        rows = Dispatch(
            kept.place[place.view(batch, length)[:, start:end].flatten()],
            new.index_fill(0, kept.filling, 0),
            kept.filling,
            kept.sizes,
        )
        angles = self.cos[start:end], self.sin[start:end]
        field = max(0, min(self.field, end) - start)
        return kept, replace(self, rows=rows, shape=(batch, end - start), cos=angles[0], sin=angles[1], field=field)


class KeyValueCache:
    """Keys and values of one attention, (B, H, capacity, d_h) each, filled from the front."""

    def __init__(self, batch: int, heads: int, capacity: int, width: int, dtype: torch.dtype, device: torch.device):
        self.keys = torch.empty(batch, heads, capacity, width, dtype=dtype, device=device)
        self.values = torch.empty_like(self.keys)
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add positions and return everything held so far."""
        end = self.length + k.shape[2]
        self.keys[:, :, self.length : end] = k
        self.values[:, :, self.length : end] = v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep(self, rows: Tensor) -> None:
        """Drop all rows of the batch but these."""
        self.keys, self.values = self.keys[rows], self.values[rows]


def apply_block(
    h: Tensor,
    scale: Sequence[Tensor] | Tensor,
    offset: Sequence[Tensor | None] | Tensor,
    product: Callable[[Tensor, str], Tensor],
    attention: Callable[[Tensor], Tensor],
    span: Span,
) -> tuple[Tensor, Tensor, Tensor]:
    """The two sublayers of a block on rows h (M, d): h with the first update added, then both updates, (M, d) each.

    scale, offset: of the norms in front of attention and of the feed-forward network, (d,) each. product: of rows with
    the named weights of their block. attention: see `Span.attend`.
    """
    ops = span.ops
    u = ops.norm_film(h, scale[0], offset[0], span.matmul)
    attended = product(attention(product(u, "qkv")), "out")
    middle = ops.add(h, attended)
    u = ops.norm_film(middle, scale[1], offset[1], span.matmul)
    return middle, attended, product(ops.swiglu(product(u, "up")), "down")


class FixedLayer(nn.Module):
    """A prelude or coda layer: its own block, RMSNorm with gains, full causal attention."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.block = Block(width, hidden)
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.feed_forward_norm = nn.Parameter(torch.ones(width))

    def forward(self, h: Tensor, span: Span, cache: KeyValueCache | None = None) -> Tensor:
        """Rows h (M, d) -> the next h; cache: see `Span.attend`."""
        middle, _, fed = apply_block(
            h,
            (self.attention_norm, self.feed_forward_norm),
            (None, None),
            lambda x, name: linear(x, getattr(self.block, name)),
            lambda qkv: span.attend(qkv, [(0, span.shape[1])], cache=cache),
            span,
        )
        return span.ops.add(middle, fed)
