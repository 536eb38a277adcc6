"""How states lie in memory, and attention over them.

Inside the model a sequence stands in *slot order*: strategy field, problem, suffix. Positions (for the rotary
embedding and for causality) are still those of the text, where the field comes after the problem. In slot order the
field can be cut off as a prefix, and everything but the field is plain causal attention. A field that everybody reads
stays where it is in the text.

States are *rows*, fp32 (M, d): the tokens of all sequences of a batch one behind the other, without the padding, which
nothing but attention ever sees. `Span.rows` says which slot of which sequence each row is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lol_data.model.attention import (
    Front,
    Slices,
    attend_cached,
    causal_mask,
    fused_attention,
    in_tiles,
    tiled_attention,
)
from lol_data.model.grouped import Dispatch
from lol_data.model.ops import Ops

if TYPE_CHECKING:
    from lol_data.model.layers import KeyValueCache


@dataclass(frozen=True)
class Span:
    """Which slots of B sequences a pass covers, and the means to compute them.

    rows: from the B * T slots to the rows of the states, the filling last; None: every slot has its row. shape: (B, T).
    cos, sin: fp32 (T, d_h / 2), or (B, 1, T, d_h / 2), rotary angles of the slots' positions. front: the slots of
    window 0, first those of a strategy field that only the router reads. tile: see `Dispatch.of`. made: what a pass
    makes once, see `cast` and `mask`; its parts share it.
    """

    rows: Dispatch | None
    shape: tuple[int, int]
    cos: Tensor
    sin: Tensor
    front: Front
    heads: int
    ops: Ops
    matmul: torch.dtype
    attention: torch.dtype
    tile: int
    made: dict[tuple, Any] = field(default_factory=dict)

    def cast(self, weight: Tensor) -> Tensor:
        """A weight in the format of the products, converted once a pass: all uses then add up their gradients before
        they are converted back, which takes a third of the memory traffic."""
        key = id(weight), torch.is_grad_enabled()
        if key not in self.made:
            self.made[key] = weight.to(self.matmul)
        return self.made[key]

    def mask(self, reach: int | None) -> Tensor:
        """See `causal_mask`, of these slots."""
        key = self.shape[1], self.front, reach
        if key not in self.made:
            self.made[key] = causal_mask(self.shape[1], self.front, self.cos.device, reach)
        return self.made[key]

    @property
    def tokens(self) -> int:
        """Rows that are no filling."""
        return self.shape[0] * self.shape[1] if self.rows is None else len(self.rows.source) - len(self.rows.filling)

    @property
    def slots(self) -> Tensor:
        """The slot of each token, int64 (N,), rising, counted through all sequences."""
        if self.rows is not None:
            return self.rows.source[: self.tokens]
        return torch.arange(self.shape[0] * self.shape[1], device=self.cos.device)

    @property
    def sequence(self) -> Tensor:
        """The sequence of each token, int64 (N,), rising."""
        return self.slots // self.shape[1]

    @cached_property
    def ends(self) -> list[int]:
        """The slot behind the last token of each sequence."""
        last = self.slots % self.shape[1]
        ends = torch.zeros(self.shape[0], dtype=torch.int64, device=last.device)
        return ends.scatter_reduce_(0, self.sequence, last + 1, "amax").tolist()

    def attend(
        self,
        qkv: Tensor,
        slices: Slices,
        rows: Dispatch | None = None,
        cache: KeyValueCache | None = None,
        reach: int | None = None,
        mix: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
    ) -> Tensor:
        """What each row read in its window, (M, d), from the queries, keys and values of all rows, (M, 3 d).

        slices: the windows' slots, [start, end). rows: where the slots' rows are, if not in `self.rows`. cache: gets
        the keys and values outside the field; a filled one takes one position at a time, which reads it all. reach: a
        slot reads so many slots, itself included, and no more. mix: in place of all that, from rotated queries, keys
        and values, (B, H, T, d_h) each, to (B, T, d).
        """
        rows = rows or self.rows
        slots = (rows.unsort(qkv) if rows else qkv).view(*self.shape, -1)
        if cache is None and mix is None and in_tiles(slices, qkv.device):
            given = self.heads, slices, self.matmul, self.ends, self.front, reach
            mixed = tiled_attention(slots, self.cos, self.sin, self.mask(reach), *given)
        else:
            q, k, v = self.ops.rotate(slots, self.cos, self.sin, self.heads, self.attention)
            if mix is not None:
                mixed = mix(q, k, v)
            elif cache is not None and cache.length:
                mixed = attend_cached(q, *cache.append(k, v), reach)
            else:
                mixed = fused_attention(q, k, v, slices, self.front, reach)
                if cache is not None:
                    cache.append(k[:, :, self.front.field :], v[:, :, self.front.field :])
        mixed = mixed.flatten(0, 1).to(self.matmul)
        return rows.sort(mixed) if rows else mixed

    def unsort(self, x: Tensor) -> Tensor:
        """Rows (M, ...) -> slots (B * T, ...)."""
        return self.rows.unsort(x) if self.rows else x

    def part(self, start: int, end: int) -> tuple[Dispatch, Span]:
        """The rows of the slots start .. end - 1 of every sequence, and the pass over them alone."""
        batch, length = self.shape
        slot = torch.arange(length, device=self.cos.device).repeat(batch)
        place = source = torch.arange(batch * length, device=slot.device)
        if self.rows:
            place, source = self.rows.place, self.rows.source
            slot = slot[source].index_fill(0, self.rows.filling, -1)
        kept = Dispatch.keep((slot >= start) & (slot < end), self.tile)
        old = source[kept.source]  # slots of all sequences, one behind the other
        new = old // length * (end - start) + old % length - start
        rows = Dispatch(
            kept.place[place.view(batch, length)[:, start:end].flatten()],
            new.index_fill(0, kept.filling, 0),
            kept.filling,
            kept.sizes,
        )
        cos, sin, front = self.cos[start:end], self.sin[start:end], self.front.part(start, end)
        return kept, replace(self, rows=rows, shape=(batch, end - start), cos=cos, sin=sin, front=front)

    def choose(self, taken: Tensor) -> tuple[Dispatch, Span]:
        """The rows of some tokens, bool (N,), and the pass over them alone: each sequence's move together, K slots for
        the longest, and keep their true positions. The field must be no other than the rest."""
        batch, length = self.shape
        rows = len(self.rows.source) if self.rows else batch * length
        kept = Dispatch.keep(F.pad(taken, (0, rows - len(taken))), self.tile)
        old = (self.rows.source if self.rows else torch.arange(rows, device=taken.device))[: len(taken)][taken]
        sequence = old // length
        counts = torch.bincount(sequence, minlength=batch)
        slots = max(1, int(counts.max()))
        number = torch.arange(len(old), device=taken.device)
        new = sequence * slots + number - (counts.cumsum(0) - counts)[sequence]
        place = new.new_full((batch * slots,), len(kept.source) - 1)
        place[new] = number
        source = F.pad(new, (0, len(kept.source) - len(new)))
        cos, sin = (angle.new_zeros(batch * slots, angle.shape[-1]) for angle in (self.cos, self.sin))
        cos[new], sin[new] = self.cos[old % length], self.sin[old % length]
        cos, sin = (angle.view(batch, 1, slots, -1) for angle in (cos, sin))
        rows_left = Dispatch(place, source, kept.filling, kept.sizes)
        return kept, replace(self, rows=rows_left, shape=(batch, slots), cos=cos, sin=sin)
