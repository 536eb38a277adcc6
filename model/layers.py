"""Blocks: the weights of one Transformer layer, and the fixed layers before and behind the core.

Inside the model a sequence stands in *slot order*: strategy field, problem, suffix. Positions (for the rotary
embedding and for causality) are still those of the text, where the field comes after the problem. In slot order the
field can be cut off as a prefix, and everything but the field is plain causal attention.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    """Which slots a pass covers, and the means to compute them.

    cos, sin: fp32 (T, d_h / 2), rotary angles of the slots' positions. field: strategy field slots at the front (0 once
    they are cut off). prompt: slots of window 0, the field's included.
    """

    cos: Tensor
    sin: Tensor
    field: int
    prompt: int
    heads: int
    ops: Ops
    matmul: torch.dtype
    attention: torch.dtype


def attend(q: Tensor, k: Tensor, v: Tensor, span: Span) -> Tensor:
    """Causal attention in slot order that keeps the field for itself: (B, H, T, d_h) each -> (B, T, d).

    A position outside the field reads the positions outside the field up to itself. A field position reads the whole
    problem and the field up to itself.
    """
    field = span.field
    mixed = attend_window(q[:, :, field:], k[:, :, field:], v[:, :, field:])
    if field:
        mask = torch.ones(field, span.prompt, dtype=torch.bool, device=q.device)
        mask[:, :field] = mask[:, :field].tril()
        keys, values = k[:, :, : span.prompt], v[:, :, : span.prompt]
        own = F.scaled_dot_product_attention(q[:, :, :field], keys, values, attn_mask=mask)
        mixed = torch.cat([own.transpose(1, 2).flatten(2), mixed], 1)
    return mixed


def attend_window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Plain causal attention over all positions given: (B, H, T, d_h) each -> (B, T, d).

    The scores of equation (1). A window has one block, so queries and keys always come from the same projections.
    """
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


def attend_cached(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One new position against all positions up to itself: q (B, H, 1, d_h), keys (B, H, T, d_h) -> (B, 1, d)."""
    return F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).flatten(2)


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


class FixedLayer(nn.Module):
    """A prelude or coda layer: its own block, RMSNorm with gains, full causal attention."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.block = Block(width, hidden)
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.feed_forward_norm = nn.Parameter(torch.ones(width))

    def forward(self, h: Tensor, span: Span, cache: KeyValueCache | None = None) -> Tensor:
        """h (B, T, d) in slot order -> the next h.

        With a cache, keys and values outside the field are added to it; a filled cache takes one position at a time.
        """
        ops = span.ops
        u = ops.norm_film(h, self.attention_norm, None, span.matmul)
        q, k, v = ops.rotate(linear(u, self.block.qkv), span.cos, span.sin, span.heads, span.attention)
        if cache is not None and cache.length:
            mixed = attend_cached(q, *cache.append(k, v))
        else:
            mixed = attend(q, k, v, span)
            if cache is not None:
                cache.append(k[:, :, span.field :], v[:, :, span.field :])
        h = ops.add(h, linear(mixed.to(span.matmul), self.block.out))
        u = ops.norm_film(h, self.feed_forward_norm, None, span.matmul)
        return ops.add(h, linear(ops.swiglu(linear(u, self.block.up)), self.block.down))
