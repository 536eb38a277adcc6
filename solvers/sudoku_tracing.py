"""All traces of a block of sudokus in one kernel, which the generator shares.

The kernel fills one flat buffer per strategy and their row offsets, as in lol_data.solvers.tracing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.jit import njit
from lol_data.ragged import Ragged
from lol_data.solvers.backtracking import trace_backtracking
from lol_data.solvers.cross_hatching import trace_cross_hatching
from lol_data.solvers.hidden_single import trace_hidden_single
from lol_data.solvers.naked_single import trace_naked_single
from lol_data.solvers.propagation import trace_propagation
from lol_data.solvers.sudoku_grid import Scratch, has_conflict, scratch
from lol_data.sudokus import CELLS, MAX_TRIES, SUDOKU_STRATEGIES, Sudokus, TracedSudokus

NAKED_SINGLE, HIDDEN_SINGLE, CROSS_HATCHING, PROPAGATION, BACKTRACKING = range(5)  # the order of `values` and `offsets`
Values = tuple[NDArray[np.uint8], ...]


def trace_buffers(rows: int, max_tries: int = MAX_TRIES) -> tuple[Values, NDArray[np.int64]]:
    """Five flat buffers with room for `rows` sudokus, and offsets, int64 (5, rows + 1)."""
    room = (2 * CELLS, 3 * CELLS, 3 * CELLS, 3 * CELLS, 4 * max_tries)
    return tuple(np.empty(rows * symbols, np.uint8) for symbols in room), np.zeros((5, rows + 1), np.int64)


def collect(sudokus: Sudokus, values: Values, offsets: NDArray[np.int64]) -> TracedSudokus:
    """The filled buffers as a batch."""
    traces = zip(SUDOKU_STRATEGIES, values, offsets, strict=True)
    return TracedSudokus(sudokus, {name: Ragged(flat[: ends[-1]], ends) for name, flat, ends in traces})


@njit
def trace_sudoku(
    puzzle: NDArray[np.uint8],
    conditions: tuple[int, int, bool],
    row: int,
    values: Values,
    offsets: NDArray[np.int64],
    scratch: Scratch,
) -> bool:
    """Append the five traces of one puzzle as row `row`; False, and nothing appended, if it is refused.

    conditions: most tries and least undos of the backtracking trace, and whether to refuse a puzzle that some strategy
    does not fill or that needs more tries. Without that a trace may end stuck, and backtracking ends at the limit.
    """
    max_tries, min_undos, must_fill = conditions
    back = values[BACKTRACKING][offsets[BACKTRACKING, row] :]
    back_length, tries, undos = trace_backtracking(puzzle, max_tries, back, scratch)
    if undos < min_undos or (must_fill and tries > max_tries):
        return False
    empty = np.int64(0)
    for cell in range(CELLS):
        empty += puzzle[cell] == 0
    naked = values[NAKED_SINGLE][offsets[NAKED_SINGLE, row] :]
    naked_length = trace_naked_single(puzzle, naked, scratch)
    cross = values[CROSS_HATCHING][offsets[CROSS_HATCHING, row] :]
    cross_length = trace_cross_hatching(puzzle, cross, scratch)
    # Whatever cross-hatching fills, the other two fill, as its placements are theirs too.
    if must_fill and (tries - undos < empty or naked_length < 2 * empty or cross_length < 3 * empty):
        return False
    hidden = values[HIDDEN_SINGLE][offsets[HIDDEN_SINGLE, row] :]
    hidden_length = trace_hidden_single(puzzle, hidden, scratch)
    waves = values[PROPAGATION][offsets[PROPAGATION, row] :]
    waves_length = trace_propagation(puzzle, waves, scratch)

    offsets[NAKED_SINGLE, row + 1] = offsets[NAKED_SINGLE, row] + naked_length
    offsets[HIDDEN_SINGLE, row + 1] = offsets[HIDDEN_SINGLE, row] + hidden_length
    offsets[CROSS_HATCHING, row + 1] = offsets[CROSS_HATCHING, row] + cross_length
    offsets[PROPAGATION, row + 1] = offsets[PROPAGATION, row] + waves_length
    offsets[BACKTRACKING, row + 1] = offsets[BACKTRACKING, row] + back_length
    return True


@njit
def _trace_rows(
    puzzles: NDArray[np.uint8], max_tries: int, values: Values, offsets: NDArray[np.int64], scratch: Scratch
) -> None:
    for row in range(len(puzzles)):
        trace_sudoku(puzzles[row], (max_tries, 0, False), row, values, offsets, scratch)


def check_puzzles(sudokus: Sudokus) -> None:
    """Raise UsageError, naming the id, unless every puzzle is 81 digits 0 to 9 without a conflict."""
    puzzles = sudokus.puzzle
    if puzzles.dtype != np.uint8 or puzzles.shape != (len(sudokus), CELLS):
        raise UsageError(f"puzzles have shape {puzzles.shape} of {puzzles.dtype}, not {(len(sudokus), CELLS)} of uint8")
    beyond = np.any(puzzles > 9, axis=1)
    faults = {
        "has a digit above 9": beyond,
        "has a digit twice in a row, column or box": has_conflict(np.where(beyond[:, None], np.uint8(0), puzzles)),
    }
    for fault, rows in faults.items():
        if rows.any():
            raise UsageError(f"sudoku {sudokus.id[np.argmax(rows)]} {fault}")


def trace_sudokus(sudokus: Sudokus, max_tries: int = MAX_TRIES) -> TracedSudokus:
    """The canonical traces of given puzzles, of which only `id` and `puzzle` are read.

    A strategy that cannot fill a grid leaves a trace that ends stuck; backtracking also stops after `max_tries` tries.
    Raises UsageError, naming the id, for a row that is no puzzle.
    """
    check_puzzles(sudokus)
    values, offsets = trace_buffers(len(sudokus), max_tries)
    _trace_rows(np.ascontiguousarray(sudokus.puzzle), max_tries, values, offsets, scratch())
    return collect(sudokus, values, offsets)
