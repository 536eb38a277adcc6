"""Random solved grids, close to uniform over all 6.67e21.

A grid is drawn in two parts.

The *frame* is boxes 1, 2, 3, 4 and 7: the first band and the first stack. Box 1 is a random permutation. Beside it, the
digits of a row of box 1 have to go to the two other rows in boxes 2 and 3; there are 56 ways to say which three digits
go where, and each of the six triples is put in one of 6 orders: 56 * 6**6 bands, all equally likely. The first stack is
the same, transposed. Every one of the 9! * (56 * 6**6)**2 frames is equally likely.

The *corner* is the other 36 cells. The empty cell with the fewest digits that fit takes one of them at random, until
the grid is full or some cell has none. The product of the numbers of digits that fitted is the corner's *weight*: its
path has probability 1 / weight. (So the mean weight, 0 for dead ends, is the mean number of corners that complete a
frame, 2692.96. A test measures that: no grid is out of reach.)

A dead end is thrown away with its frame, and a full grid is kept with probability min(1, weight / MAX_WEIGHT). Without
the cap, the grids would be exactly uniform. With it, all grids of weight up to MAX_WEIGHT are equally likely, heavier
ones less. Measured on 4 million attempts: the heavier grids are 17 % of all; no grid is more than 1.07 times as likely
as it should be, the heaviest seen came up at 4 % of their share, and the total variation distance from the uniform
distribution is 0.053. A higher cap would be closer and slower: 0.01 at 40,000, in 2.6 times the time.
"""

from __future__ import annotations

import operator
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.generators.rng import advance, below, check_seed, draw, row_state
from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit
from lol_data.solvers.sudoku_grid import DIGITS, POPCOUNT, UNITS_OF
from lol_data.sudokus import CELLS

MAX_WEIGHT = 1 << 14

_TASK = np.uint64(0x67726964)  # "grid": none of these is the grid of a sudoku of the same seed and row
_CORNER = np.array(
    [
        27 * band + 9 * row + 3 * stack + column
        for band, stack, row, column in product((1, 2), (1, 2), range(3), range(3))
    ],
    np.int16,
)
_FRAME = np.setdiff1d(np.arange(CELLS, dtype=np.int16), _CORNER)
_ORDERS = np.array(list(permutations(range(3))), np.int16)
# Which digits of the three rows of box 1 are marked, as bits: as many in rows 1 and 2 as are left unmarked in row 3.
_SPLITS = np.array(
    [
        split
        for split in product(range(8), repeat=3)
        if split[0].bit_count() == split[1].bit_count() == 3 - split[2].bit_count()
    ],
    np.int16,
)


class GridScratch(NamedTuple):
    """One set per kernel call, never shared between threads."""

    free: NDArray[np.int16]  # (27,) digits not yet placed in each unit, as bits; only the units of the corner count
    cells: NDArray[np.int16]  # (37,) empty cells of the corner, and one place to spare


def grid_scratch() -> GridScratch:
    """Fresh memory."""
    return GridScratch(np.zeros(27, np.int16), np.zeros(len(_CORNER) + 1, np.int16))


@njit
def shuffle(state: np.uint64, items: NDArray) -> np.uint64:
    """Put items in a uniformly random order (Fisher-Yates), whatever order they are in."""
    for left in range(len(items), 1, -1):
        state = advance(state)
        place = below(draw(state), left)
        items[place], items[left - 1] = items[left - 1], items[place]
    return state


@njit
def _write_in_some_order(
    state: np.uint64, digits: int | np.int64, grid: NDArray[np.uint8], first: int, step: int
) -> np.uint64:
    """Write a set of three digits to the cells first, first + step and first + 2 * step."""
    state = advance(state)
    order = below(draw(state), 6)
    for k in range(3):
        grid[first + step * _ORDERS[order, k]] = lowest_bit(digits) + 1
        digits &= digits - 1
    return state


@njit
def _draw_band(state: np.uint64, grid: NDArray[np.uint8], along: int, across: int) -> np.uint64:
    """Fill the two boxes beside box 1, uniformly. along, across: from a cell to the next in its row, in its column.

    With along and across exchanged, it is the two boxes under box 1.
    """
    state = advance(state)
    split = below(draw(state), len(_SPLITS))
    a, b, c = np.int64(0), np.int64(0), np.int64(0)
    marked_a, marked_b, marked_c = np.int64(0), np.int64(0), np.int64(0)
    for k in range(3):
        cell = k * along
        digit_a = 1 << np.int64(grid[cell]) - 1
        digit_b = 1 << np.int64(grid[cell + across]) - 1
        digit_c = 1 << np.int64(grid[cell + 2 * across]) - 1
        a, b, c = a | digit_a, b | digit_b, c | digit_c
        marked_a |= digit_a * (_SPLITS[split, 0] >> k & 1)
        marked_b |= digit_b * (_SPLITS[split, 1] >> k & 1)
        marked_c |= digit_c * (_SPLITS[split, 2] >> k & 1)
    # In box 2, the first row takes the marked digits of the others, the last row those of the first.
    rows = (a, b, c)
    beside = (marked_b | marked_c, (a & ~marked_a) | (c & ~marked_c), marked_a | (b & ~marked_b))
    for k in range(3):
        first = k * across + 3 * along
        state = _write_in_some_order(state, beside[k], grid, first, along)
        state = _write_in_some_order(state, DIGITS & ~(rows[k] | beside[k]), grid, first + 3 * along, along)
    return state


@njit
def _draw_corner(state: np.uint64, grid: NDArray[np.uint8], scratch: GridScratch) -> tuple[np.uint64, int | np.int64]:
    """Fill the corner; the state behind it, and the weight or 0 for a dead end."""
    free, cells = scratch.free, scratch.cells
    for unit in range(27):
        free[unit] = DIGITS
    for k in range(len(_FRAME)):
        cell = np.int64(_FRAME[k])
        others = ~(1 << np.int64(grid[cell]) - 1)
        free[UNITS_OF[cell, 0]] &= others
        free[UNITS_OF[cell, 1]] &= others
    left = len(_CORNER)
    for k in range(left):
        cells[k] = _CORNER[k]
    weight = np.int64(1)
    while left:
        place, fewest, digits = 0, np.int64(10), np.int64(0)
        for k in range(left):
            cell = np.int64(cells[k])
            fit = np.int64(free[UNITS_OF[cell, 0]] & free[UNITS_OF[cell, 1]] & free[UNITS_OF[cell, 2]])
            count = np.int64(POPCOUNT[fit])
            if count < fewest:
                place, fewest, digits = k, count, fit
                if count < 2:
                    break
        if fewest == 0:
            return state, 0
        if fewest > 1:
            weight *= fewest
            state = advance(state)
            for _ in range(below(draw(state), fewest)):
                digits &= digits - 1
        digit = lowest_bit(digits)
        cell = np.int64(cells[place])
        left -= 1
        for k in range(place, left):  # in order: of equals, the first in box 5, 6, 8, 9 is filled
            cells[k] = cells[k + 1]
        grid[cell] = digit + 1
        others = ~(1 << digit)
        free[UNITS_OF[cell, 0]] &= others
        free[UNITS_OF[cell, 1]] &= others
        free[UNITS_OF[cell, 2]] &= others
    return state, weight


@njit
def try_grid(state: np.uint64, grid: NDArray[np.uint8], scratch: GridScratch) -> tuple[np.uint64, int | np.int64]:
    """One frame and one attempt at its corner: the state behind them, and the weight or 0 for a dead end."""
    box = grid[:9]
    for digit in range(9):
        box[digit] = digit + 1
    state = shuffle(state, box)
    for k in range(3):
        grid[9 + k], grid[18 + k] = box[3 + k], box[6 + k]
    state = _draw_band(state, grid, 1, 9)
    state = _draw_band(state, grid, 9, 1)
    return _draw_corner(state, grid, scratch)


@njit
def draw_grid(state: np.uint64, grid: NDArray[np.uint8], scratch: GridScratch) -> np.uint64:
    """Write a solved grid, digits 1 to 9 as uint8 (81,), and return the state of the row's stream behind it."""
    while True:
        state, weight = try_grid(state, grid, scratch)
        state = advance(state)
        if below(draw(state), MAX_WEIGHT) < weight:
            return state


@njit
def _fill_grids(seed: np.uint64, grids: NDArray[np.uint8], scratch: GridScratch) -> None:
    for row in range(len(grids)):
        draw_grid(row_state(_TASK, seed, np.uint64(row)), grids[row], scratch)


def solved_grids(seed: int, count: int) -> NDArray[np.uint8]:
    """Random solved grids, uint8 (count, 81), without any selection by their puzzles.

    Row k is a pure function of (seed, k). Raises UsageError for what makes no sense.
    """
    key, count = check_seed(seed), operator.index(count)
    if count < 0:
        raise UsageError(f"count {count} is negative")
    grids = np.empty((count, CELLS), np.uint8)
    _fill_grids(key, grids, grid_scratch())
    return grids
