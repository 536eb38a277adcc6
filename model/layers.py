"""Blocks: the weights of one Transformer layer, and the fixed layers before and behind the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.experts import Experts
from lol_data.model.grouped import new_matrix
from lol_data.model.span import Span


class Block(nn.Module):
    """Weights of attention and SwiGLU, without biases: qkv (3 d, d), out (d, d), up (2 m, d), down (d, m).

    With more than one expert there is a mixture of them in place of `up` and `down`.
    """

    def __init__(self, width: int, hidden: int, experts: int = 1, top: int = 1):
        super().__init__()
        # A new block is close to the identity, so that depth can be added without a jump.
        self.qkv, self.out = new_matrix(3 * width, width), new_matrix(width, width, 0.1)
        if experts == 1:
            self.up, self.down = new_matrix(2 * hidden, width), new_matrix(width, hidden, 0.1)
        self.experts = Experts(width, hidden, experts, top) if experts > 1 else None

    def product(self, span: Span) -> Callable[[Tensor, str], Tensor]:
        """Of rows (M, d_in) with the named weights."""
        return lambda x, name: F.linear(x, span.cast(getattr(self, name)))


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
    experts: Experts | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The two sublayers of a block on rows h (M, d): h with the first update added, then both updates, (M, d) each.

    scale, offset: of the norms in front of attention and of the feed-forward network, (d,) each. product: of rows with
    the named weights of their block. attention: see `Span.attend`. experts: in place of the feed-forward network.
    """
    ops = span.ops
    u = ops.norm_film(h, scale[0], offset[0], span.matmul)
    attended = product(attention(product(u, "qkv")), "out")
    middle = ops.add(h, attended)
    u = ops.norm_film(middle, scale[1], offset[1], span.matmul)
    fed = experts(u, span) if experts else product(ops.swiglu(product(u, "up")), "down")
    return middle, attended, fed


class FixedLayer(nn.Module):
    """A prelude or coda layer: its own block, RMSNorm with gains, full causal attention."""

    def __init__(self, width: int, hidden: int, experts: int = 1, top: int = 1):
        super().__init__()
        self.block = Block(width, hidden, experts, top)
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.feed_forward_norm = nn.Parameter(torch.ones(width))

    def forward(self, h: Tensor, span: Span, cache: KeyValueCache | None = None) -> Tensor:
        """Rows h (M, d) -> the next h; cache: see `Span.attend`."""
        gains = self.attention_norm, self.feed_forward_norm
        attention = partial(span.attend, slices=[(0, span.shape[1])], cache=cache)
        product, experts = self.block.product(span), self.block.experts
        middle, _, fed = apply_block(h, gains, (None, None), product, attention, span, experts)
        return span.ops.add(middle, fed)
