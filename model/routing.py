"""Which block a window takes: prefix means, probabilities, selection bias, gates, forced paths (equations 5, 6, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Choice:
    """The route of every window at one depth; K windows.

    ids: int64 (B, K). gates: fp32 (B, K), the raw probability of the block taken, unless a forced path gives it.
    probabilities: fp32 (B, K, L), raw.
    """

    ids: Tensor
    gates: Tensor
    probabilities: Tensor


@dataclass(frozen=True)
class ForcedPath:
    """A path laid down from outside: the block and the gate of each (row, depth, window).

    ids: int64 (B, D, K) or None, to keep the model's own choice. gates: fp32 (B, D, K) or None, to take the router's
    own probability of the block. A row of 1 serves the whole batch; windows past K take the last one's.
    """

    ids: Tensor | None
    gates: Tensor | None

    def keep(self, rows: Tensor) -> ForcedPath:
        """Only the given rows of the batch."""
        parts = (part if part is None or len(part) == 1 else part[rows] for part in (self.ids, self.gates))
        return ForcedPath(*parts)

    def apply(self, probabilities: Tensor, own_ids: Tensor, depth: int, first_window: int) -> tuple[Tensor, Tensor]:
        """ids and gates (B, K) of the windows first_window, first_window + 1, ... at a depth counted from 1."""
        ids = own_ids if self.ids is None else self._cut(self.ids, own_ids, depth, first_window)
        if self.gates is None:
            return ids, probabilities.gather(2, ids[..., None])[..., 0]
        return ids, self._cut(self.gates, own_ids, depth, first_window)

    @staticmethod
    def _cut(values: Tensor, like: Tensor, depth: int, first_window: int) -> Tensor:
        windows = torch.arange(first_window, first_window + like.shape[1], device=values.device)
        return values[:, depth - 1, windows.clamp(max=values.shape[2] - 1)].expand(like.shape)


def prefix_means(h: Tensor, slices: list[tuple[int, int]], first: Tensor, depth_vector: Tensor) -> Tensor:
    """Router inputs r_k of equation (5), (B, K, d): the equal-weight mean of the means of all earlier windows.

    h: fp32 (B, T, d), the input of this depth. first: (B, d), the state of the first token, for window 0.
    """
    r = [0.5 * (first + depth_vector)]
    total = torch.zeros_like(first)
    for k, (start, end) in enumerate(slices[:-1], start=1):
        total = total + h[:, start:end].mean(1)
        r.append(total / k)
    return torch.stack(r, 1)


class Router(nn.Module):
    """Equation (6). Everything is fp32, under autocast and bf16 models too.

    weight: (1, L, d), or (D, L, d) with a router per depth. bias: the selection bias b_m, (L,), a buffer that the
    trainer moves by the sign rule; it enters the choice only, never the gate.
    """

    bias: Tensor

    def __init__(self, width: int, blocks: int, matrices: int, noise: float):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(matrices, blocks, width) * 0.02)
        self.register_buffer("bias", torch.zeros(blocks))
        self.noise = noise

    def forward(self, r: Tensor, depth: int, first_window: int = 0, forced: ForcedPath | None = None) -> Choice:
        """Router inputs (B, K, d) of windows first_window, ... at a depth counted from 1 -> their routes."""
        weight = self.weight[min(depth, len(self.weight)) - 1]
        logits = r.float() @ weight.float().t()
        if self.training and self.noise:
            logits = logits + self.noise * torch.randn_like(logits)
        probabilities = logits.softmax(-1)
        ids = (probabilities + self.bias).argmax(-1)
        if forced is not None:
            return Choice(*forced.apply(probabilities, ids, depth, first_window), probabilities)
        return Choice(ids, probabilities.gather(2, ids[..., None])[..., 0], probabilities)
