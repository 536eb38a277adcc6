"""How many solutions has a sudoku? Counted up to a limit, as two are enough to know that a puzzle is bad.

Algorithm X of Knuth without the links: the search always takes the question with the fewest answers, either "which
digit goes into this cell?" or "into which cell of this unit goes this digit?". One answer is a forced placement, none
a dead end; both end the search for a question.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import (
    CELLS_OF,
    DIGITS,
    POPCOUNT,
    Scratch,
    fits,
    has_conflict,
    places,
    read_digits,
    read_places,
    scratch,
    toggle,
)
from lol_data.sudokus import CELLS

_NO_UNIT = -1


class _Search(NamedTuple):
    """The questions on the way to the node at hand, one a depth."""

    unit: NDArray[np.int16]  # (82,) _NO_UNIT for a question about a cell
    item: NDArray[np.int16]  # (82,) the cell or the digit asked about
    left: NDArray[np.int16]  # (82,) answers not yet tried: digits, or places in the unit
    cell: NDArray[np.int16]  # (82,) the placement made
    digit: NDArray[np.int16]  # (82,)


@njit
def _ask(depth: int, grid: NDArray[np.uint8], scratch: Scratch, search: _Search) -> None:
    """Choose the question of a depth: the one with the fewest answers."""
    fewest = 10
    for cell in range(CELLS):
        if grid[cell]:
            continue
        mask = fits(cell, scratch.placed)
        if POPCOUNT[mask] < fewest:
            fewest = POPCOUNT[mask]
            search.unit[depth], search.item[depth], search.left[depth] = _NO_UNIT, cell, mask
            if fewest < 2:
                return
    for unit in range(27):
        digits = DIGITS & ~scratch.placed[unit]
        while digits:
            digit = lowest_bit(digits)
            digits &= digits - 1
            mask = places(unit, digit, scratch)
            if POPCOUNT[mask] < fewest:
                fewest = POPCOUNT[mask]
                search.unit[depth], search.item[depth], search.left[depth] = unit, digit, mask
                if fewest < 2:
                    return


@njit
def _count(grid: NDArray[np.uint8], limit: int, solution: NDArray[np.uint8], scratch: Scratch, search: _Search) -> int:
    """Solutions of one grid, at most `limit`; the first is written to `solution`. The grid comes back as it was."""
    empty = read_digits(grid, scratch)
    read_places(grid, scratch)
    if empty == 0:
        solution[:] = grid
        return 1
    found, depth = 0, 0
    _ask(0, grid, scratch, search)
    while depth >= 0:
        left = np.int64(search.left[depth])
        if left == 0:
            depth -= 1
            if depth >= 0:
                toggle(np.int64(search.cell[depth]), np.int64(search.digit[depth]), scratch)
                grid[search.cell[depth]] = 0
            continue
        search.left[depth] = left & (left - 1)
        unit, item, answer = np.int64(search.unit[depth]), np.int64(search.item[depth]), lowest_bit(left)
        cell, digit = (item, answer) if unit == _NO_UNIT else (np.int64(CELLS_OF[unit, answer]), item)
        search.cell[depth], search.digit[depth] = cell, digit
        toggle(cell, digit, scratch)
        grid[cell] = digit + 1
        depth += 1
        if depth < empty:
            _ask(depth, grid, scratch, search)
            continue
        found += 1
        if found == 1:
            solution[:] = grid
        if found == limit:
            return found
        search.left[depth] = 0
    return found


@njit
def _count_rows(
    puzzles: NDArray[np.uint8],
    skip: NDArray[np.bool_],
    limit: int,
    counts: NDArray[np.int64],
    solutions: NDArray[np.uint8],
    scratch: Scratch,
    search: _Search,
) -> None:
    grid = np.empty(CELLS, np.uint8)
    for row in range(len(puzzles)):
        if not skip[row]:
            grid[:] = puzzles[row]
            counts[row] = _count(grid, limit, solutions[row], scratch, search)


def count_solutions(puzzles: NDArray[np.uint8], limit: int = 2) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """How many solutions each puzzle has, at most `limit`, int64 (B,), and the first one found, uint8 (B, 81).

    puzzles: uint8 (B, 81), 0 for an empty cell. A puzzle whose givens conflict has none; a row without a solution is 0
    throughout. An empty grid takes 40 us, the worst known one without a solution about 10 ms. Raises UsageError for
    another shape, a digit above 9 or a limit below 1.
    """
    if puzzles.dtype != np.uint8 or puzzles.ndim != 2 or puzzles.shape[1] != CELLS:
        raise UsageError(f"puzzles have shape {puzzles.shape} of {puzzles.dtype}, not (rows, {CELLS}) of uint8")
    if (puzzles > 9).any():
        raise UsageError(f"puzzle {np.argmax((puzzles > 9).any(axis=1))} has a digit above 9")
    if limit < 1:
        raise UsageError(f"a limit of {limit} solutions counts nothing; choose 1 or more")
    counts, solutions = np.zeros(len(puzzles), np.int64), np.zeros(puzzles.shape, np.uint8)
    search = _Search(*(np.zeros(CELLS + 1, np.int16) for _ in range(5)))
    _count_rows(puzzles, has_conflict(puzzles), limit, counts, solutions, scratch(), search)
    return counts, solutions
