"""Constraint propagation, in waves.

A step is a wave: every placement (cell, digit) that one of two rules forces on the grid as it stands when the wave
begins, in the order of the cells. The rules: only one digit fits the cell, or in some unit the digit fits no other
cell. The trace ends when the grid is full or a wave is empty. On a grid without a solution a wave may contradict
itself (two digits for a cell, or a digit twice in a unit); it is then left out, and the trace ends.
(A wave that leaves a forced placement out is illegal; the order inside a wave is free.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import UNITS_OF, Integer, Scratch, fits, is_single, read_digits, toggle_digit
from lol_data.sudokus import DIGIT, WAVE


@njit
def trace_propagation(puzzle: NDArray[np.uint8], out: NDArray[np.uint8], scratch: Scratch) -> int:
    """Write the trace to `out` (room for 3 symbols an empty cell) and return its length: 2 a placement, 1 a wave."""
    cells, placed = scratch.cells, scratch.placed
    count, before = read_digits(puzzle, scratch), -1
    length = 0
    while count and count != before:
        _look(count, scratch)
        before = count
        count = 0
        begin = length
        for k in range(before):
            cell = np.int64(cells[k])
            mask = _forced(cell, scratch)
            if mask == 0:
                cells[count] = cell
                count += 1
                continue
            if not is_single(mask) or mask & ~fits(cell, placed):
                return begin
            digit = lowest_bit(mask)
            toggle_digit(cell, digit, scratch)
            out[length] = cell
            out[length + 1] = DIGIT + 1 + digit
            length += 2
        if length > begin:
            out[length] = WAVE
            length += 1
    return length


@njit
def _look(count: int, scratch: Scratch) -> None:
    """Set `masks` of the `count` empty cells and `seen` of the units."""
    cells, placed, masks, seen = scratch.cells, scratch.placed, scratch.masks, scratch.seen
    for unit in range(27):
        seen[unit, 0] = seen[unit, 1] = 0
    for k in range(count):
        cell = np.int64(cells[k])
        mask = fits(cell, placed)
        masks[cell] = mask
        for kind in range(3):
            unit = UNITS_OF[cell, kind]
            seen[unit, 1] |= seen[unit, 0] & mask
            seen[unit, 0] |= mask


@njit
def _forced(cell: Integer, scratch: Scratch) -> Integer:
    """The digits that either rule forces in an empty cell."""
    mask = np.int64(scratch.masks[cell])
    if is_single(mask):
        return mask
    elsewhere = mask
    for kind in range(3):
        elsewhere &= scratch.seen[UNITS_OF[cell, kind], 1]
    return mask & ~elsewhere
