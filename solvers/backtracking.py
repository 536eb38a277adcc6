"""Backtracking, depth first in a static order.

A step is a try (cell, digit) or an undo of a cell. The empty cells are sorted once, by the number of digits that fit
them in the given grid, fewest first, then row-major. The search tries the next cell's digits in ascending order, those
that fit the grid as it stands; when none is left it undoes the last cell tried and goes on with that cell's next digit.
It ends when the grid is full or every digit has been tried in vain.

A search that counts again at every step would never guess on a puzzle that naked singles solve; its trace would be
theirs. Hence the static order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import POPCOUNT, Scratch, fits, read_digits, toggle_digit
from lol_data.sudokus import CELLS, DIGIT, UNDO


@njit
def trace_backtracking(
    puzzle: NDArray[np.uint8], max_tries: int, out: NDArray[np.uint8], scratch: Scratch
) -> tuple[int, int, int]:
    """Write the trace to `out` (room for 4 * max_tries symbols); its length, the tries and the undos.

    The grid is full if tries - undos is the number of empty cells. A search that needs more than `max_tries` tries
    stops before the next one and says max_tries + 1; what it did until then is written.
    """
    cells, placed, left, tried = scratch.cells, scratch.placed, scratch.masks, scratch.tried
    count = _static_order(puzzle, scratch)
    length, tries, undos, depth = 0, 0, 0, 0
    if count:
        left[0] = fits(np.int64(cells[0]), placed)
    while depth < count:
        mask = np.int64(left[depth])
        if mask:
            if tries == max_tries:
                return length, max_tries + 1, undos
            cell, digit = np.int64(cells[depth]), lowest_bit(mask)
            left[depth] = mask & (mask - 1)
            tried[depth] = digit
            toggle_digit(cell, digit, scratch)
            out[length] = cell
            out[length + 1] = DIGIT + 1 + digit
            tries += 1
            depth += 1
            if depth < count:
                left[depth] = fits(np.int64(cells[depth]), placed)
        else:
            if depth == 0:
                break
            depth -= 1
            cell, digit = np.int64(cells[depth]), np.int64(tried[depth])
            toggle_digit(cell, digit, scratch)
            out[length] = UNDO
            out[length + 1] = cell
            undos += 1
        length += 2
    return length, tries, undos


@njit
def _static_order(puzzle: NDArray[np.uint8], scratch: Scratch) -> int:
    """Sort `cells`; the number of empty cells."""
    cells, rank = scratch.cells, scratch.masks
    count = read_digits(puzzle, scratch)
    for k in range(count):
        cell = np.int64(cells[k])
        rank[cell] = POPCOUNT[fits(cell, scratch.placed)]
    done, number = 0, 0
    while done < count:
        for place in range(CELLS):
            if puzzle[place] == 0 and rank[place] == number:
                cells[done] = place
                done += 1
        number += 1
    return count
