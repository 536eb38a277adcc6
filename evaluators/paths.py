"""Paths laid down in part: some cells from outside, the others left to the router."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lol_data.model.routing import ForcedPath

OWN = -1  # in place of a block: the router's choice. In place of a gate stands NaN.


class PartialPath(ForcedPath):
    """A forced path in which a block may be OWN, the router's choice, and a gate NaN, its probability of the block."""

    ids: Tensor
    gates: Tensor

    def keep(self, rows: Tensor) -> PartialPath:
        """Only the given rows of the batch."""
        return PartialPath(self.ids[rows], self.gates[rows])

    def apply(self, probabilities: Tensor, own_ids: Tensor, depth: int, first_window: int) -> tuple[Tensor, Tensor]:
        """ids and gates (B, K) of the windows first_window, first_window + 1, ... at a depth counted from 1."""
        ids = self._cut(self.ids, own_ids, depth, first_window)
        ids = torch.where(ids == OWN, own_ids, ids)
        gates = self._cut(self.gates, own_ids, depth, first_window)
        return ids, torch.where(gates.isnan(), probabilities.gather(2, ids[..., None])[..., 0], gates)


@dataclass(frozen=True)
class Paths:
    """R paths over D depths and K windows.

    ids: int64 (R, D, K), OWN where the router chooses. gates: fp32 (R, D, K), NaN where its probability counts.
    """

    ids: NDArray[np.int64]
    gates: NDArray[np.float32]

    def forced(self, rows: NDArray[np.integer], device: torch.device) -> PartialPath:
        """The given paths, int (B,), one for each row of a batch."""
        ids, gates = torch.from_numpy(self.ids[rows]), torch.from_numpy(self.gates[rows])
        return PartialPath(ids.to(device), gates.to(device))

    def own_blocks(self) -> Paths:
        """The same gates, every block left to the router."""
        return Paths(np.full_like(self.ids, OWN), self.gates)

    def own_gates(self) -> Paths:
        """The same blocks, every gate left to the router."""
        return Paths(self.ids, np.full_like(self.gates, np.nan))

    def where(self, cells: NDArray[np.bool_]) -> Paths:
        """Only the cells given, bool and broadcastable to (R, D, K); the others are left to the router."""
        return Paths(np.where(cells, self.ids, OWN), np.where(cells, self.gates, np.float32(np.nan)))
