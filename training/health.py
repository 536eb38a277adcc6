"""What a step's routes say about the router: loads, gates, and whether the bias overrules the probabilities."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lol_data.model.routing import Choice
from lol_data.model.windows import Windows


class RouteStatistics:
    """Sums over the windows of one step. Windows that begin behind a sequence's end are padding and do not count."""

    def __init__(self, depth: int, blocks: int, device: torch.device):
        self.counts = torch.zeros(depth, blocks, dtype=torch.long, device=device)
        # windows, argmax p = block taken, gate, highest p, lowest p: sums over all windows but the prompt's
        self.sums = torch.zeros(5, dtype=torch.float64, device=device)

    def add(self, choices: list[Choice], windows: Windows, length: int, lengths: Tensor) -> None:
        """Count one micro-batch: sequences of `lengths` (B,) tokens, padded to `length`."""
        for level, choice in enumerate(choices, start=1):
            starts = torch.tensor([start for start, _ in windows.slices(length, level)], device=lengths.device)
            real = starts < lengths[:, None]
            self.counts[level - 1] += torch.bincount(choice.ids[real], minlength=self.counts.shape[1])
            real[:, 0] = False
            p, taken, gates = choice.probabilities[real], choice.ids[real], choice.gates[real]
            values = (torch.ones_like(gates), p.argmax(-1) == taken, gates, p.amax(-1), p.amin(-1))
            self.sums += torch.stack([value.double().sum() for value in values])

    def metrics(self, bias: Tensor) -> dict[str, float | int | list]:
        """Plain numbers for a line of metrics."""
        windows, agreeing, gates, high, low = self.sums.tolist()
        windows = max(windows, 1.0)
        load = self.counts.sum(0).double()
        share = load / load.sum()
        entropy = -(share * share.clamp(min=1e-12).log()).sum().item() / math.log(max(2, len(share)))
        return {
            "load_entropy": round(entropy, 4),
            "least_load": round(share.min().item(), 4),
            "most_load": round(share.max().item(), 4),
            "gate": round(gates / windows, 4),
            "agreement": round(agreeing / windows, 4),
            "bias_range": round((bias.max() - bias.min()).item(), 5),
            "probability_range": round((high - low) / windows, 4),
        }
