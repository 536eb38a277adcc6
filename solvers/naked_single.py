"""Naked singles.

A step is a placement (cell, digit): every other digit is placed among the cell's twenty peers, so one digit fits. The
canonical order sweeps over the cells row-major, again and again, and places as it goes; the trace ends when the grid is
full or a sweep has placed nothing. (Any order is legal in which each placement is justified at that moment.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import Scratch, fits, is_single, read_digits, toggle_digit
from lol_data.sudokus import DIGIT


@njit
def trace_naked_single(puzzle: NDArray[np.uint8], out: NDArray[np.uint8], scratch: Scratch) -> int:
    """Write the trace to `out` (room for 2 symbols an empty cell) and return its length: 2 a placement."""
    cells, placed = scratch.cells, scratch.placed
    count, before = read_digits(puzzle, scratch), -1
    length = 0
    while count != before:
        before = count
        count = 0
        for k in range(before):
            cell = np.int64(cells[k])
            mask = fits(cell, placed)
            if is_single(mask):
                digit = lowest_bit(mask)
                toggle_digit(cell, digit, scratch)
                out[length] = cell
                out[length + 1] = DIGIT + 1 + digit
                length += 2
            else:
                cells[count] = cell
                count += 1
    return length
