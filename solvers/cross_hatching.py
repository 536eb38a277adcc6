"""Cross-hatching.

A step is a placement (box, cell, digit): the rows and columns that hold the digit leave one empty cell of the box for
it. It is a hidden single of a box, proved from placed digits alone. The canonical order sweeps over the digits 1 to 9,
for each over the boxes 18 to 26, again and again, and places as it goes; the trace ends when the grid is full or a
sweep has placed nothing. (Any order is legal in which each placement is justified at that moment.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import CELLS_OF, DIGITS, Scratch, is_single, places, read_places, toggle_place
from lol_data.sudokus import DIGIT, UNIT


@njit
def trace_cross_hatching(puzzle: NDArray[np.uint8], out: NDArray[np.uint8], scratch: Scratch) -> int:
    """Write the trace to `out` (room for 3 symbols an empty cell) and return its length: 3 a placement."""
    count, before = read_places(puzzle, scratch), -1
    length = 0
    while count and count != before:
        before = count
        for digit in range(9):
            boxes = DIGITS & ~scratch.where[digit, 2]
            while boxes:
                unit = 18 + lowest_bit(boxes)
                boxes &= boxes - 1
                mask = places(unit, digit, scratch)
                if is_single(mask):
                    cell = np.int64(CELLS_OF[unit, lowest_bit(mask)])
                    toggle_place(cell, digit, scratch)
                    out[length] = UNIT + unit
                    out[length + 1] = cell
                    out[length + 2] = DIGIT + 1 + digit
                    length += 3
                    count -= 1
    return length
