"""What a step's routes say about the router: loads, gates, whether the bias overrules the probabilities; warnings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lol_data.evaluators.templates import KINDS, PathStatistics
from lol_data.model.routing import Choice
from lol_data.model.windows import Windows

CLOSED, OPEN = 0.02, 0.98  # gates beyond these pass nearly nothing on, or leave the router without a gradient


class RouteStatistics:
    """Sums over the windows of one step. Windows that begin behind a sequence's end are padding and do not count.

    counts: int64 (D, L), windows that took each block. sums: float64 (7,), over all windows but the prompt's: windows,
    those whose block is the most probable one, gate, highest p, lowest p, closed gates, open gates.
    """

    def __init__(self, depth: int, blocks: int, device: torch.device):
        self.counts = torch.zeros(depth, blocks, dtype=torch.long, device=device)
        self.sums = torch.zeros(7, dtype=torch.float64, device=device)

    @torch.no_grad()
    def add(self, choices: list[Choice], windows: Windows, length: int, lengths: Tensor) -> None:
        """Count one micro-batch: sequences of `lengths` (B,) tokens, padded to `length`."""
        blocks = torch.arange(self.counts.shape[1], device=lengths.device)
        for level, choice in enumerate(choices, start=1):
            real = real_windows(windows, level, length, lengths)
            self.counts[level - 1] += ((choice.ids[..., None] == blocks) & real[..., None]).sum((0, 1))
            real[:, 0] = False
            p, gates = choice.probabilities, choice.gates
            agreeing, closed, wide = p.argmax(-1) == choice.ids, gates < CLOSED, gates > OPEN
            values = (torch.ones_like(gates), agreeing, gates, p.amax(-1), p.amin(-1), closed, wide)
            self.sums += torch.stack([(value.double() * real).sum() for value in values])

    def metrics(self, bias: Tensor) -> dict[str, Any]:
        """Plain numbers for a line of metrics; loads are shares of each depth's windows, (D, L)."""
        windows, agreeing, gates, high, low, closed, wide = self.sums.tolist()
        windows = max(windows, 1.0)
        load = self.counts.sum(0).double()
        share = load / load.sum()
        entropy = -(share * share.clamp(min=1e-12).log()).sum().item() / math.log(max(2, len(share)))
        loads = self.counts.double() / self.counts.sum(1, keepdim=True)
        return {
            "load_entropy": round(entropy, 4),
            "least_load": round(share.min().item(), 4),
            "most_load": round(share.max().item(), 4),
            "loads": [[round(value, 4) for value in row] for row in loads.tolist()],
            "gate": round(gates / windows, 4),
            "gates_closed": round(closed / windows, 4),
            "gates_open": round(wide / windows, 4),
            "agreement": round(agreeing / windows, 4),
            "bias_range": round((bias.max() - bias.min()).item(), 5),
            "probability_range": round((high - low) / windows, 4),
        }


def real_windows(windows: Windows, level: int, length: int, lengths: Tensor) -> Tensor:
    """Which windows of a padded batch hold a token: bool (B, K), K windows of `length` positions, lengths (B,)."""
    starts = torch.tensor([start for start, _ in windows.slices(length, level)], device=lengths.device)
    return starts < lengths[:, None]


class PathAgreement:
    """Routes seen in a pass over validation problems, and how often they are those of the strategy's template."""

    def __init__(self, strategies: int, depth: int, windows: Windows, longest: int, blocks: int):
        """longest: tokens of the longest sequence."""
        self.windows = windows
        most = max(len(windows.slices(longest, level)) for level in range(1, depth + 1))
        self.counts = np.zeros((strategies, depth, most), np.int64)
        self.chosen = np.zeros((strategies, depth, most, blocks), np.int64)
        self.probability = np.zeros((strategies, depth, most, blocks))

    def add(self, choices: list[Choice], length: int, lengths: Tensor, strategies: NDArray[np.int64]) -> None:
        """Count one batch: lengths (B,), its sequences' strategies (B,)."""
        for level, choice in enumerate(choices, start=1):
            real = real_windows(self.windows, level, length, lengths).cpu().numpy()
            row, k = real.nonzero()
            cell: Any = strategies[row], level - 1, k  # numpy.add.at: a cell comes up many times
            np.add.at(self.counts, cell, 1)
            np.add.at(self.chosen, (*cell, choice.ids.cpu().numpy()[real]), 1)
            np.add.at(self.probability, cell, choice.probabilities.double().cpu().numpy()[real])

    def tensors(self) -> list[Tensor]:
        """The sums, sharing memory, for adding them up over processes."""
        return [torch.from_numpy(part) for part in (self.counts, self.chosen, self.probability)]

    def metrics(self) -> dict[str, float]:
        """Share of the windows that took their template's block, for both kinds of template."""
        paths = PathStatistics(self.counts, self.chosen, self.probability)
        return {f"template_{kind}": round(self._agreement(paths, kind), 4) for kind in KINDS}

    def _agreement(self, paths: PathStatistics, kind: str) -> float:
        ids = paths.template(kind).ids
        agreeing = np.take_along_axis(self.chosen, ids[..., None], -1)[..., 0]
        return float(agreeing.sum() / self.counts.sum())


class Watch:
    """Says once, each, that a block starves, that the bias overrules the probabilities, that the gates saturate.

    Judged on averages that forget with a rate of 1/50 a step and begin healthy, so that it takes tens of steps.
    """

    RATE = 0.02

    def __init__(self, blocks: int):
        self.loads = [1 / blocks] * blocks
        self.shares = {"agreement": 1.0, "gates_closed": 0.0, "gates_open": 0.0}
        self.said: list[str] = []

    def look(self, line: dict[str, Any]) -> list[str]:
        """Take in a line of metrics; returns the new warnings."""
        loads = [sum(column) / len(line["loads"]) for column in zip(*line["loads"], strict=True)]
        self.loads = [self._mix(old, new) for old, new in zip(self.loads, loads, strict=True)]
        self.shares = {name: self._mix(old, line[name]) for name, old in self.shares.items()}
        new = {name: text for name, text in self._troubles(line).items() if name not in self.said}
        self.said += new
        return [f"step {line['step']}: {text}" for text in new.values()]

    def _mix(self, old: float, new: float) -> float:
        return old + self.RATE * (new - old)

    def _troubles(self, line: dict[str, Any]) -> dict[str, str]:
        troubles = {}
        agreement, closed, wide = self.shares.values()
        least, even = min(self.loads), 1 / len(self.loads)
        if least < even / 10:
            troubles["starved"] = (
                f"block {self.loads.index(least)} starves: it gets {least:.2%} of the windows, an even share is "
                f"{even:.2%}; a larger train.bias_rate would lift it"
            )
        if agreement < 0.5:
            troubles["overruled"] = (
                f"the selection bias overrules the probabilities: only {agreement:.0%} of the windows take "
                f"their most probable block (bias range {line['bias_range']}, probability range "
                f"{line['probability_range']}); lower train.bias_rate"
            )
        if closed + wide > 0.95:
            troubles["saturated"] = (
                f"the gates saturate: {closed:.0%} are below {CLOSED}, {wide:.0%} above {OPEN}; lower train.router_rate"
            )
        return troubles

    def state(self) -> dict[str, Any]:
        """For a checkpoint: what `restore` takes."""
        return {"loads": self.loads, "shares": self.shares, "said": self.said}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.loads, self.shares, self.said = state["loads"], state["shares"], state["said"]
