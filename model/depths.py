"""Mixture-of-Depths (Raposo et al., arXiv 2404.02258): a depth takes the best tokens, the others pass it by.

In training a sequence's k = ceil(capacity x length) tokens with the highest scores are taken. That looks at the whole
sequence, so it cannot be done while writing one token after another. Outside of training a token is therefore taken by
what it says alone: where a predictor, trained on the states to foretell the choice, says so; or where the score itself,
trained by the same loss, is positive. How often the two choices differ is measured, see `Taken`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.config import ModelConfig
from lol_data.model.grouped import linear, new_matrix


@dataclass(frozen=True)
class Taken:
    """Which tokens one depth took; N tokens, one sequence behind the other.

    scores: fp32 (N,), the router's logits. guesses: fp32 (N,), logits of being among the best k, from the token alone.
    best: bool (N,), whether it is. taken: bool (N,), whether it was computed. sequence: int64 (N,), of each token.
    """

    scores: Tensor
    guesses: Tensor
    best: Tensor
    taken: Tensor
    sequence: Tensor


def best_of_each(scores: Tensor, sequence: Tensor, capacity: float) -> Tensor:
    """The ceil(capacity x length) highest scores of each sequence, as bool (N,); of equal ones the earlier.

    scores: (N,). sequence: int64 (N,), rising, the sequence of each.
    """
    lengths = torch.bincount(sequence)
    order = torch.argsort(scores, descending=True, stable=True)
    order = order[torch.argsort(sequence[order], stable=True)]  # by sequence, each by falling score
    starts = (lengths.cumsum(0) - lengths)[sequence]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    wanted = torch.ceil(capacity * lengths.double() - 1e-9).long()[sequence]
    return rank - starts < wanted


class DepthRouter(nn.Module):
    """Scores of the tokens at one depth, and who decides outside of training.

    vector: fp32 (d,) with a linear router; with an MLP, the depth's vector beside the state, (2 d,) -> (d,) -> 1.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        d = config.width
        self.dropout = config.depth_dropout
        self.vector = nn.Parameter(torch.randn(d) * 0.02)
        mlp = config.depth_router == "mlp"
        self.hidden = new_matrix(d, 2 * d) if mlp else None
        self.out = nn.Parameter(torch.randn(d) * 0.02) if mlp else None
        predictor = config.depth_sampling == "predictor"
        self.guess_hidden = new_matrix(d // 2, d) if predictor else None
        self.guess_out = nn.Parameter(torch.zeros(d // 2)) if predictor else None

    def scores(self, h: Tensor) -> Tensor:
        """Logits, fp32 (N,), of states h (N, d), which are normed first."""
        u = F.dropout(F.rms_norm(h.float(), h.shape[-1:]), self.dropout, self.training)
        if self.hidden is None or self.out is None:
            return u @ self.vector
        hidden = linear(u, self.hidden[:, : u.shape[1]]) + self.hidden[:, u.shape[1] :] @ self.vector
        return F.gelu(hidden) @ self.out

    def guesses(self, h: Tensor, scores: Tensor) -> Tensor:
        """Logits of being taken, fp32 (N,). The predictor's own loss trains nothing but the predictor."""
        if self.guess_hidden is None or self.guess_out is None:
            return scores
        u = F.rms_norm(h.detach().float(), h.shape[-1:])
        return F.gelu(linear(u, self.guess_hidden)) @ self.guess_out


class RaggedCache:
    """Keys and values of one attention that saw another number of tokens of every sequence, (B, H, capacity, d_h)."""

    def __init__(self, batch: int, heads: int, capacity: int, width: int, dtype: torch.dtype, device: torch.device):
        self.keys = torch.zeros(batch, heads, capacity, width, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        self.lengths = torch.zeros(batch, dtype=torch.long, device=device)

    def fill(self, k: Tensor, v: Tensor, lengths: Tensor) -> None:
        """The first tokens: k, v (B, H, T, d_h), of which each sequence has so many."""
        self.keys[:, :, : k.shape[2]], self.values[:, :, : v.shape[2]] = k, v
        self.lengths = lengths

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rows: Tensor) -> Tensor:
        """One more token of some sequences, (n, H, 1, d_h) each, against those before it and itself: (n, 1, d)."""
        at = self.lengths[rows]
        self.keys[rows, :, at], self.values[rows, :, at] = k[:, :, 0], v[:, :, 0]
        self.lengths[rows] += 1
        longest = int(self.lengths.max())
        mask = torch.arange(longest, device=q.device) < self.lengths[rows][:, None]
        keys, values = self.keys[rows, :, :longest], self.values[rows, :, :longest]
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask[:, None, None])
        return mixed.transpose(1, 2).flatten(2)

    def keep(self, rows: Tensor) -> None:
        """Drop all sequences of the batch but these."""
        self.keys, self.values, self.lengths = self.keys[rows], self.values[rows], self.lengths[rows]
