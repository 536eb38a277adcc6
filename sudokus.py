"""What a sudoku is, for every room: cells, units, the symbols of a trace, a batch of traced sudokus.

Cells 0-80 are numbered row * 9 + column; units 0-8 are the rows, 9-17 the columns, 18-26 the boxes. A grid is 81 digits
with 0 for an empty cell.

A trace is a string of symbols, one byte each, that can be read without knowing the strategy:

    cell c    c            0 .. 80
    digit d   DIGIT + d    81 .. 89
    unit u    UNIT + u     90 .. 116
    wave      WAVE         117, ends a wave
    undo      UNDO         118

    naked_single     cell digit              each step
    hidden_single    unit cell digit         each step
    cross_hatching   unit cell digit         each step, the unit a box
    propagation      cell digit ... wave     each wave
    backtracking     cell digit | undo cell  each try | each undo
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.ragged import Ragged

SUDOKU_STRATEGIES = ("naked_single", "hidden_single", "cross_hatching", "propagation", "backtracking")
NAKED_SINGLE, HIDDEN_SINGLE, CROSS_HATCHING, PROPAGATION, BACKTRACKING = range(len(SUDOKU_STRATEGIES))
CELLS = 81
DIGIT, UNIT, WAVE, UNDO = 80, 90, 117, 118
SYMBOLS = 119
MIN_CLUES, MAX_CLUES = 30, 36
MAX_TRIES = 256  # of a backtracking trace


@dataclass(frozen=True, slots=True)
class Sudokus:
    """A batch of sudokus. id: uint64 (B,). puzzle: uint8 (B, 81), 0 for empty. solution: uint8 (B, 81)."""

    id: NDArray[np.uint64]
    puzzle: NDArray[np.uint8]
    solution: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: NDArray[np.integer]) -> Sudokus:
        """The given rows, in the given order."""
        return Sudokus(self.id[rows], self.puzzle[rows], self.solution[rows])

    @property
    def clues(self) -> NDArray[np.uint8]:
        """Number of givens, uint8 (B,)."""
        return np.count_nonzero(self.puzzle, axis=1).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class TracedSudokus:
    """Sudokus with one canonical trace per strategy, as symbols (uint8)."""

    sudokus: Sudokus
    traces: dict[str, Ragged]

    def __len__(self) -> int:
        return len(self.sudokus)

    @property
    def id(self) -> NDArray[np.uint64]:
        """Numbers of the rows, uint64 (B,)."""
        return self.sudokus.id

    def take(self, rows: NDArray[np.integer]) -> TracedSudokus:
        """The given rows, in the given order."""
        return TracedSudokus(self.sudokus.take(rows), {name: trace.take(rows) for name, trace in self.traces.items()})
