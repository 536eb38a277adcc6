"""Givens removed from a solved grid, as long as the puzzle can be solved by naked singles alone and by cross-hatching
alone.

Such a puzzle has one solution (every placement is forced), and hidden singles and propagation solve it too: what
cross-hatching places, they may place.

Cells are taken in a given order, and a cell is emptied unless the puzzle could not be solved then. One pass is enough:
a placement that is forced stays so when further cells are filled. Hence what could not be emptied once can never be
later, and several cells can be emptied one after another exactly when they can be emptied all at once; so many are
tried together first, and fewer when that fails. For the same reason a check may end as soon as the cells just emptied
are back: the rest is a puzzle known to be solvable.

As the solution is known, a check never looks for a digit: it asks of each empty cell whether its digit is forced now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.sudoku_grid import DIGITS, PLACE_IN, UNITS_OF
from lol_data.sudokus import CELLS

AT_ONCE = 32  # cells emptied by the first check; nearly every order allows that many

_LINES_OF_BANDS = np.array([[7 * (m & 1) | 56 * (m >> 1 & 1) | 448 * (m >> 2), 73 * m] for m in range(8)], np.int16)
_ROWS, _COLUMNS = _LINES_OF_BANDS.T.copy()  # (8,) cells of a box, as bits, in the rows or columns that bits name


class RemovalScratch(NamedTuple):
    """One set per kernel call, never shared between threads."""

    empty: NDArray[np.int16]  # (81,) the cells emptied so far
    known: NDArray[np.int16]  # (27,) what a check knows: 9 bits for each unit, or for each digit and box
    missing: NDArray[np.int16]  # (81,) empty cells whose digit a check has not placed yet


def removal_scratch() -> RemovalScratch:
    """Fresh memory."""
    return RemovalScratch(np.zeros(CELLS, np.int16), np.zeros(27, np.int16), np.zeros(CELLS, np.int16))


@njit
def _naked_singles_fill(solution: NDArray[np.uint8], count: int, fresh: int, scratch: RemovalScratch) -> bool:
    """Do naked singles fill the last `fresh` of the first `count` cells in `empty`?"""
    empty, placed, missing = scratch
    for unit in range(27):
        placed[unit] = DIGITS
    for k in range(count):
        cell = np.int64(empty[count - 1 - k])
        missing[k] = cell
        others = ~(1 << np.int64(solution[cell]) - 1)
        placed[UNITS_OF[cell, 0]] &= others
        placed[UNITS_OF[cell, 1]] &= others
        placed[UNITS_OF[cell, 2]] &= others
    while fresh:
        left, fresh_left = 0, 0
        for k in range(count):
            cell = np.int64(missing[k])
            digit = 1 << np.int64(solution[cell]) - 1
            row, column, box = np.int64(UNITS_OF[cell, 0]), np.int64(UNITS_OF[cell, 1]), np.int64(UNITS_OF[cell, 2])
            if placed[row] | placed[column] | placed[box] | digit == DIGITS:
                placed[row] |= digit
                placed[column] |= digit
                placed[box] |= digit
            else:
                missing[left] = cell
                left += 1
                fresh_left += k < fresh
        if left == count:
            return False
        count, fresh = left, fresh_left
    return True


@njit
def _cross_hatching_fills(solution: NDArray[np.uint8], count: int, fresh: int, scratch: RemovalScratch) -> bool:
    """Does cross-hatching fill the last `fresh` of the first `count` cells in `empty`?"""
    empty, known, missing = scratch
    rows, columns, boxes = known[:9], known[9:18], known[18:]  # lines that hold each digit; empty cells of each box
    for k in range(9):
        rows[k] = columns[k] = DIGITS
        boxes[k] = 0
    for k in range(count):
        cell = np.int64(empty[count - 1 - k])
        missing[k] = cell
        digit = np.int64(solution[cell]) - 1
        rows[digit] &= ~(1 << np.int64(UNITS_OF[cell, 0]))
        columns[digit] &= ~(1 << np.int64(UNITS_OF[cell, 1]) - 9)
        boxes[np.int64(UNITS_OF[cell, 2]) - 18] |= 1 << np.int64(PLACE_IN[cell, 2])
    while fresh:
        left, fresh_left = 0, 0
        for k in range(count):
            cell = np.int64(missing[k])
            digit = np.int64(solution[cell]) - 1
            row, column, box = (
                np.int64(UNITS_OF[cell, 0]),
                np.int64(UNITS_OF[cell, 1]) - 9,
                np.int64(UNITS_OF[cell, 2]) - 18,
            )
            place = 1 << np.int64(PLACE_IN[cell, 2])
            taken = _ROWS[rows[digit] >> (row - row % 3) & 7] | _COLUMNS[columns[digit] >> (column - column % 3) & 7]
            if boxes[box] & ~taken == place:
                rows[digit] |= 1 << row
                columns[digit] |= 1 << column
                boxes[box] &= ~place
            else:
                missing[left] = cell
                left += 1
                fresh_left += k < fresh
        if left == count:
            return False
        count, fresh = left, fresh_left
    return True


@njit
def remove_givens(solution: NDArray[np.uint8], order: NDArray[np.int64], clues: int, scratch: RemovalScratch) -> bool:
    """Empty cells in the given order until `clues` are left: the first 81 - clues cells in `scratch.empty`.

    solution: digits 1 to 9, (81,). order: the cells, (81,). False if the order ends before.
    """
    empty, wanted = scratch.empty, CELLS - clues
    count, position, many = 0, 0, AT_ONCE
    while count < wanted:
        many = min(many, wanted - count, CELLS - position)
        if many == 0:
            return False
        for k in range(many):
            empty[count + k] = order[position + k]
        fine = _naked_singles_fill(solution, count + many, many, scratch)
        if fine and _cross_hatching_fills(solution, count + many, many, scratch):
            count += many
            position += many
            many *= 2
        elif many == 1:
            position += 1
        else:
            many //= 2
    return True
