"""Random sudokus with their canonical traces.

Settings, then the kernel that fills a block of rows, then the function to call. Row i is a pure function of (settings,
seed, i), whatever block, thread or process makes it.

A row draws its number of clues first, uniformly, and holds it until a puzzle with that many clues is accepted, so the
numbers stay uniform. A puzzle is what `remove_givens` leaves of a random solved grid, taking the cells in random order.
It is accepted when the canonical backtracking trace has at least one undo and at most MAX_TRIES tries.

That trace depends on the names of the digits, which are tried in ascending order; what the other strategies can do
does not. So a puzzle is tried with up to RELABELLINGS random namings before the next grid is drawn. Of puzzles that
differ in names only, all that are acceptable are equally likely; and up to names, the puzzles that are kept are closer
to those that removal leaves: at 30 clues one naming is accepted for 25 % of them, one of sixteen for 73 %; at 33 clues
for 50 % and 91 %, at 36 for 77 % and 98 %.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import LolDataError, UsageError
from lol_data.generators.rng import advance, below, check_seed, draw, is_integer, row_state
from lol_data.generators.sudoku_grid import GridScratch, draw_grid, grid_scratch, shuffle
from lol_data.generators.sudoku_removal import RemovalScratch, removal_scratch, remove_givens
from lol_data.jit import njit
from lol_data.solvers.sudoku_grid import Scratch, scratch
from lol_data.solvers.sudoku_tracing import Values, collect, trace_buffers, trace_sudoku
from lol_data.sudokus import CELLS, MAX_CLUES, MAX_TRIES, MIN_CLUES, Sudokus, TracedSudokus

MIN_UNDOS = 1
LEAST_CLUES, MOST_CLUES = 24, 64  # a row of 24 takes 8 ms, of 23 ten times as long; of 64 a millisecond, rising
RELABELLINGS = 16
MAX_GRIDS = 1 << 14  # per row; a row that needs more is reported instead of searched for without end

_TASK = np.uint64(0x7375646F6B75)  # "sudoku"
_CONDITIONS = (MAX_TRIES, MIN_UNDOS, True)


@dataclass(frozen=True)
class SudokuSettings:
    """What kind of sudokus: least and most clues; every number between is equally likely."""

    clues: tuple[int, int] = (MIN_CLUES, MAX_CLUES)

    def validate(self) -> None:
        """Raise UsageError, in one line, for settings that cannot be met in reasonable time."""
        two = isinstance(self.clues, tuple | list) and len(self.clues) == 2 and all(map(is_integer, self.clues))
        if not two or not LEAST_CLUES <= self.clues[0] <= self.clues[1] <= MOST_CLUES:
            raise UsageError(
                f"clues {self.clues!r} are not two integers, least and most, from {LEAST_CLUES} to {MOST_CLUES}"
            )


@njit
def _fill_rows(
    first: int,
    seed: np.uint64,
    task: np.uint64,
    clue_range: tuple[int, int],
    max_grids: int,
    puzzle: NDArray[np.uint8],
    solution: NDArray[np.uint8],
    values: Values,
    offsets: NDArray[np.int64],
    grid_scratch: GridScratch,
    removal_scratch: RemovalScratch,
    scratch: Scratch,
) -> int:
    """Make rows first, first + 1, ...; the number made, less than asked for when the next one was given up."""
    least, most = clue_range
    grid = np.empty(CELLS, np.uint8)
    for row in range(len(puzzle)):
        state = advance(row_state(task, seed, np.uint64(first + row)))
        clues = least + below(draw(state), most - least + 1)
        order, names = np.arange(CELLS), np.arange(1, 10)
        kept = False
        for _ in range(max_grids):
            state = draw_grid(state, grid, grid_scratch)
            state = shuffle(state, order)
            if not remove_givens(grid, order, clues, removal_scratch):
                continue
            for _ in range(RELABELLINGS):
                state = shuffle(state, names)
                for cell in range(CELLS):
                    puzzle[row, cell] = solution[row, cell] = names[grid[cell] - 1]
                for k in range(CELLS - clues):
                    puzzle[row, removal_scratch.empty[k]] = 0
                kept = trace_sudoku(puzzle[row], _CONDITIONS, row, values, offsets, scratch)
                if kept:
                    break
            if kept:
                break
        if not kept:
            return row
    return len(puzzle)


def generate_sudokus(settings: SudokuSettings, seed: int, lo: int, hi: int) -> TracedSudokus:
    """Rows lo <= id < hi of the data set that (settings, seed) names.

    Runs without the interpreter lock, one thread, no shared state. Raises UsageError for settings, seeds or ids that
    make no sense, and LolDataError when the search for a row was given up.
    """
    settings.validate()
    key = check_seed(seed)
    lo, hi = operator.index(lo), operator.index(hi)
    if not 0 <= lo <= hi < 2**63:
        raise UsageError(f"ids {lo}..{hi} are not a range of non-negative integers")
    least, most = (operator.index(number) for number in settings.clues)
    rows = hi - lo
    puzzle, solution = np.empty((rows, CELLS), np.uint8), np.empty((rows, CELLS), np.uint8)
    values, offsets = trace_buffers(rows)
    task = _TASK ^ np.uint64(least << 48 | most << 56)  # every range of clues has a stream of its own
    made = _fill_rows(
        lo,
        key,
        task,
        (least, most),
        MAX_GRIDS,
        puzzle,
        solution,
        values,
        offsets,
        grid_scratch(),
        removal_scratch(),
        scratch(),
    )
    if made < rows:
        raise LolDataError(
            f"sudokus of {least} to {most} clues are too rare: row {lo + made} found none in {MAX_GRIDS:,} grids; "
            "choose other numbers of clues"
        )
    return collect(Sudokus(np.arange(lo, hi, dtype=np.uint64), puzzle, solution), values, offsets)
