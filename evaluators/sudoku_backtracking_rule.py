"""The rule of backtracking. What it returns, and the arguments: see sudoku_placing_rules."""

from __future__ import annotations

import numpy as np

from lol_data.evaluators.sudoku_board import ALL, DIGIT_COUNT, UNITS_OF, form_fault
from lol_data.evaluators.sudoku_reasons import (
    AFTER_END,
    ALREADY_FILLED,
    ALREADY_TRIED,
    DIGIT_IN_PEERS,
    EMPTY_TRACE,
    GIVEN_CHANGED,
    NONE,
    NOT_A_CELL,
    UNDO_NOT_LAST,
    UNDO_TOO_EARLY,
    UNFINISHED_STEP,
    WRONG_CELL_ORDER,
)
from lol_data.jit import njit
from lol_data.sudokus import CELLS, DIGIT, UNDO

FRESH = -1  # no cell was tried yet at the open depth


@njit
def static_order(start, choices, order):
    """Fill choices[cell], the number of candidates, and order: the empty cells, fewest candidates first, then by cell.

    start: uint16 (81,), candidates under the givens. choices, order: uint8 (81,).
    """
    first = np.zeros(11, np.int64)  # place in order of the next cell with this many candidates
    for cell in range(CELLS):
        choices[cell] = DIGIT_COUNT[start[cell] & ALL]
        if start[cell]:
            first[choices[cell] + 1] += 1
    for count in range(10):
        first[count + 1] += first[count]
    for cell in range(CELLS):
        if start[cell]:
            order[first[choices[cell]]] = cell
            first[choices[cell]] += 1


@njit
def fitting(used, cell):
    """Mask of the digits that stand in no unit of a cell."""
    row, column, box = UNITS_OF[cell]
    return ALL & ~(used[row] | used[column] | used[box])


@njit
def flip(used, cell, bit):
    """Enter a digit in the units of a cell, or take it out."""
    row, column, box = UNITS_OF[cell]
    used[row] ^= bit
    used[column] ^= bit
    used[box] ^= bit


@njit
def dead_end(used, grid, choices, order, depth, empty):
    """Does no digit fit some cell that may be the next one?"""
    k = depth
    while k > 0 and choices[order[k - 1]] == choices[order[depth]]:
        k -= 1
    while k < empty and choices[order[k]] == choices[order[depth]]:
        if grid[order[k]] == 0 and fitting(used, order[k]) == 0:
            return True
        k += 1
    return False


@njit
def backtracking_rule(trace, givens, given_used, choices, order, empty, used, grid, standing, tried):
    """Try a digit that fits at the next depth; undo the last one standing when nothing is left to try behind it.

    The cell of a depth is any one with the fewest candidates under the givens among the empty cells; it stays the same
    until the depth above changes. Canonical: the first such cell, digits ascending.

    given_used: uint16 (27,). choices, order: of static_order. used: uint16 (27,). grid, standing: uint8 (81,). tried:
    uint16 (82,), the digits tried at every depth since the depth above changed.
    """
    if len(trace) == 0 and empty > 0:
        return 0, EMPTY_TRACE, False, False
    used[:] = given_used
    grid[:] = givens
    depth, here, canonical, steps = 0, FRESH, True, 0
    tried[0] = 0
    for i in range(0, len(trace), 2):
        if depth == empty:
            return steps, AFTER_END, False, False
        if trace[i] == UNDO:
            if i + 1 == len(trace):
                return steps, UNFINISHED_STEP, False, False
            cell = trace[i + 1]
            if cell >= CELLS:
                return steps, NOT_A_CELL, False, False
            if depth == 0 or cell != standing[depth - 1]:
                return steps, UNDO_NOT_LAST, False, False
            if here == FRESH:
                canonical &= fitting(used, order[depth]) == 0
                exhausted = canonical or dead_end(used, grid, choices, order, depth, empty)
            else:
                exhausted = fitting(used, here) & ~tried[depth] == 0
            if not exhausted:
                return steps, UNDO_TOO_EARLY, False, False
            depth -= 1
            flip(used, cell, 1 << grid[cell] >> 1)
            grid[cell] = 0
            here = cell
        else:
            fault = form_fault(trace, i)
            if fault != NONE:
                return steps, fault, False, False
            cell, bit = trace[i], 1 << trace[i + 1] - DIGIT - 1
            if grid[cell]:
                return steps, GIVEN_CHANGED if givens[cell] else ALREADY_FILLED, False, False
            due = choices[cell] == choices[order[depth]] if here == FRESH else cell == here
            if not due:
                return steps, WRONG_CELL_ORDER, False, False
            fit = fitting(used, cell)
            if not fit & bit:
                return steps, DIGIT_IN_PEERS, False, False
            if tried[depth] & bit:
                return steps, ALREADY_TRIED, False, False
            left = fit & ~tried[depth]
            canonical &= cell == order[depth] and bit == left & -left
            standing[depth] = cell
            tried[depth] |= bit
            depth += 1
            tried[depth] = 0
            here = FRESH
            flip(used, cell, bit)
            grid[cell] = trace[i + 1] - DIGIT
        steps += 1
    return steps, NONE, depth == empty, canonical and depth == empty
