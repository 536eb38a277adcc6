"""Tables and scratch memory that the sudoku tracers share, and the two questions that their rules ask of a grid.

A digit is a bit here: digit d is bit d - 1 of a mask, and is passed around as d - 1. Which digits fit a cell is read
from the digits placed in its three units (`fits`); which cells of a unit a digit fits, from the rows, columns and boxes
that already hold the digit (`places`). Neither loops over cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.sudokus import CELLS

Integer = int | np.int64  # to Numba the same

DIGITS = 0b111_111_111
_FIRST_OF_THREE = 0b001_001_001

# Masks are signed, or Numba would turn differences into floating point; indices are not, or it would make sure that
# they are not negative at every use, which takes as long as the work itself.
_ROW, _COLUMN = np.divmod(np.arange(CELLS), 9)
_BOX = _ROW // 3 * 3 + _COLUMN // 3
UNITS_OF = np.stack([_ROW, 9 + _COLUMN, 18 + _BOX], axis=1).astype(np.uint8)  # (81, 3) row, column and box of a cell
CELLS_OF = np.concatenate(  # (27, 9) cells of a unit, ascending
    [np.argsort(UNITS_OF[:, kind], kind="stable").reshape(9, 9) for kind in range(3)], dtype=np.uint8, casting="unsafe"
)
PLACE_IN = np.stack([_COLUMN, _ROW, _ROW % 3 * 3 + _COLUMN % 3], axis=1).astype(np.uint8)  # (81, 3) index in CELLS_OF
POPCOUNT = np.array([mask.bit_count() for mask in range(512)], np.int16)
_THIRD = np.arange(9, dtype=np.int16) // 3
_REST = np.arange(9, dtype=np.int16) % 3
_TRIPLE = np.array([(m & 1) * 7 | (m >> 1 & 1) * 56 | (m >> 2) * 448 for m in range(8)], np.int16)  # each bit thrice


class Scratch(NamedTuple):
    """Small arrays that the tracers overwrite; one set per kernel call, never shared between threads."""

    placed: NDArray[np.int16]  # (27,) digits placed in each unit
    where: NDArray[np.int16]  # (9, 3) rows, columns and boxes that hold each digit
    empty: NDArray[np.int16]  # (27,) empty cells of each unit, as bits in the order of CELLS_OF
    cells: NDArray[np.uint8]  # (81,) the empty cells, in the order that a strategy takes them
    masks: NDArray[np.int16]  # (81,) digits: that fit a cell, or not yet tried
    seen: NDArray[np.int16]  # (27, 2) digits that fit a cell of each unit, and that fit two or more
    tried: NDArray[np.uint8]  # (81,) the digit that is in the cell at each depth of a search


def scratch() -> Scratch:
    """Fresh scratch memory."""
    return Scratch(
        placed=np.zeros(27, np.int16),
        where=np.zeros((9, 3), np.int16),
        empty=np.zeros(27, np.int16),
        cells=np.zeros(CELLS, np.uint8),
        masks=np.zeros(CELLS, np.int16),
        seen=np.zeros((27, 2), np.int16),
        tried=np.zeros(CELLS, np.uint8),
    )


@njit
def read_digits(puzzle: NDArray[np.uint8], scratch: Scratch) -> int:
    """Set `placed`, and `cells` to the empty cells, row-major; their number. Enough for `fits`."""
    placed, cells = scratch.placed, scratch.cells
    for unit in range(27):
        placed[unit] = 0
    count = 0
    for cell in range(CELLS):
        bit = (1 << np.int64(puzzle[cell])) >> 1  # no bit for an empty cell
        placed[UNITS_OF[cell, 0]] |= bit
        placed[UNITS_OF[cell, 1]] |= bit
        placed[UNITS_OF[cell, 2]] |= bit
        cells[count] = cell
        count += bit == 0
    return count


@njit
def read_places(puzzle: NDArray[np.uint8], scratch: Scratch) -> int:
    """Set `where` and `empty`; the number of empty cells. Enough for `places`."""
    where, empty = scratch.where, scratch.empty
    for digit in range(9):
        where[digit, 0] = where[digit, 1] = where[digit, 2] = 0
    for unit in range(27):
        empty[unit] = DIGITS
    count = CELLS
    for cell in range(CELLS):
        if puzzle[cell]:
            toggle_place(cell, np.int64(puzzle[cell]) - 1, scratch)
            count -= 1
    return count


@njit
def toggle_digit(cell: Integer, digit: Integer, scratch: Scratch) -> None:
    """Note a placement, or take one back, in `placed`."""
    for kind in range(3):
        scratch.placed[UNITS_OF[cell, kind]] ^= 1 << digit


@njit
def toggle_place(cell: Integer, digit: Integer, scratch: Scratch) -> None:
    """Note a placement, or take one back, in `where` and `empty`."""
    for kind in range(3):
        unit = np.int64(UNITS_OF[cell, kind])
        scratch.where[digit, kind] ^= 1 << (unit - 9 * kind)
        scratch.empty[unit] ^= 1 << np.int64(PLACE_IN[cell, kind])


@njit
def toggle(cell: Integer, digit: Integer, scratch: Scratch) -> None:
    """Both."""
    toggle_digit(cell, digit, scratch)
    toggle_place(cell, digit, scratch)


@njit
def fits(cell: Integer, placed: NDArray[np.int16]) -> Integer:
    """The digits that fit a cell: those that none of its peers holds."""
    taken = placed[UNITS_OF[cell, 0]] | placed[UNITS_OF[cell, 1]] | placed[UNITS_OF[cell, 2]]
    return DIGITS & ~taken


@njit
def places(unit: Integer, digit: Integer, scratch: Scratch) -> Integer:
    """The empty cells of a unit that a digit fits, as bits in the order of CELLS_OF. The unit must not hold it yet."""
    rows, columns, boxes = scratch.where[digit, 0], scratch.where[digit, 1], scratch.where[digit, 2]
    if unit < 9:
        taken = columns | _TRIPLE[boxes >> 3 * _THIRD[unit] & 7]
    elif unit < 18:
        taken = rows | (boxes >> _THIRD[unit - 9] & _FIRST_OF_THREE) * 7
    else:
        box = unit - 18
        taken = _TRIPLE[rows >> 3 * _THIRD[box] & 7] | (columns >> 3 * _REST[box] & 7) * _FIRST_OF_THREE
    return scratch.empty[unit] & ~taken


@njit
def is_single(mask: Integer) -> bool:
    """Is exactly one bit set?"""
    return mask != 0 and mask & (mask - 1) == 0


@njit
def _has_conflict(puzzles: NDArray[np.uint8], found: NDArray[np.bool_]) -> None:
    for row in range(len(puzzles)):
        for unit in range(27):
            seen: Integer = 0
            for k in range(9):
                bit = (1 << np.int64(puzzles[row, CELLS_OF[unit, k]])) >> 1
                found[row] |= seen & bit != 0
                seen |= bit


def has_conflict(puzzles: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Does some unit hold a digit twice? puzzles: (B, 81) digits 0 to 9; shape (B,)."""
    found = np.zeros(len(puzzles), bool)
    _has_conflict(np.ascontiguousarray(puzzles), found)
    return found
