"""Hidden singles.

A step is a placement (unit, cell, digit): the digit is not placed in the unit, a row, column or box, and fits no other
empty cell of it. The canonical order sweeps over the units 0 to 26, in each over the digits 1 to 9, again and again,
and places as it goes; the trace ends when the grid is full or a sweep has placed nothing. (Any order is legal in which
each placement is justified at that moment.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import (
    CELLS_OF,
    DIGITS,
    Scratch,
    is_single,
    places,
    read_digits,
    read_places,
    toggle,
)
from lol_data.sudokus import DIGIT, UNIT


@njit
def trace_hidden_single(puzzle: NDArray[np.uint8], out: NDArray[np.uint8], scratch: Scratch) -> int:
    """Write the trace to `out` (room for 3 symbols an empty cell) and return its length: 3 a placement."""
    count, before = read_digits(puzzle, scratch), -1
    read_places(puzzle, scratch)
    length = 0
    while count and count != before:
        before = count
        for unit in range(27):
            digits = DIGITS & ~np.int64(scratch.placed[unit])
            while digits:
                digit = lowest_bit(digits)
                digits &= digits - 1
                mask = places(unit, digit, scratch)
                if is_single(mask):
                    cell = np.int64(CELLS_OF[unit, lowest_bit(mask)])
                    toggle(cell, digit, scratch)
                    out[length] = UNIT + unit
                    out[length + 1] = cell
                    out[length + 2] = DIGIT + 1 + digit
                    length += 3
                    count -= 1
    return length
