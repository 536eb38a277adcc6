"""What a Mixture-of-Depths is trained by besides the loss of its tokens, and what is watched of it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lol_data.model.config import ModelConfig
from lol_data.model.depths import Taken
from lol_data.model.routing import Choice
from lol_data.training.config import TrainConfig

MOST = 64  # taking depths that the histogram tells apart


def depth_loss(choices: list[Choice], train: TrainConfig, capacity: float, tokens: int, sequences: int) -> Tensor:
    """One micro-batch's part, mean over the depths that take some. tokens, sequences: of the whole step.

    Foretelling: binary cross-entropy of the guesses against the choice. Balance: squared distance of a sequence's mean
    probability from the capacity; of the choice itself, which has no gradient and always that mean, it would be idle.
    Entropy: of the probabilities, to be large.
    """
    taken = [choice.taken for choice in choices if choice.taken]
    total = torch.zeros((), device=taken[0].scores.device)
    for one in taken:
        best, p = one.best.float(), one.scores.sigmoid()
        guessed = F.binary_cross_entropy_with_logits(one.guesses, best, reduction="sum")
        total = total + train.guess_weight * guessed / tokens
        if train.depth_balance_weight:
            apart = _sequence_means(p, one) - capacity
            total = total + train.depth_balance_weight * apart.square().sum() / sequences
        if train.depth_entropy_weight:
            entropy = F.binary_cross_entropy_with_logits(one.scores, p, reduction="sum")
            total = total - train.depth_entropy_weight * entropy / tokens
    return total / len(taken)


def _sequence_means(p: Tensor, one: Taken) -> Tensor:
    lengths = torch.bincount(one.sequence).clamp(min=1)
    return torch.zeros(len(lengths), device=p.device).index_add(0, one.sequence, p) / lengths


class DepthStatistics:
    """How many tokens were taken, how often that was foretold, and how many depths each token took.

    sums: float64 (3 + MOST + 1,): tokens times taking depths; of them, taken; foretold rightly; then a histogram.
    """

    def __init__(self, config: ModelConfig, depth: int, device: torch.device):
        self.sums = torch.zeros(4 + MOST, dtype=torch.float64, device=device)
        self.depths = sum(config.takes_some(level) for level in range(1, depth + 1))

    @torch.no_grad()
    def add(self, choices: list[Choice]) -> None:
        """Count one micro-batch."""
        taken = [choice.taken for choice in choices if choice.taken]
        if not taken:
            return
        for one in taken:
            right = (one.guesses > 0) == one.best
            self.sums[:3] += torch.stack([torch.ones_like(right), one.taken, right]).double().sum(1)
        each = torch.stack([one.taken for one in taken]).sum(0).clamp(max=MOST)
        self.sums[3:] += torch.bincount(each, minlength=MOST + 1)

    def metrics(self, prefix: str = "") -> dict[str, Any]:
        """Plain numbers for a line of metrics, none where every depth takes all: shares of tokens."""
        if not self.depths:
            return {}
        seen, taken, right = self.sums[:3].tolist()
        histogram = (self.sums[3:] / self.sums[3:].sum()).tolist()[: self.depths + 1]
        return {
            f"{prefix}taken": round(taken / seen, 4),
            f"{prefix}foretold": round(right / seen, 4),
            f"{prefix}depths_taken": [round(share, 4) for share in histogram],
        }
