"""The board on which the sudoku rules replay a trace, and the rule of the answer.

Digit d is bit d - 1 of a mask. `candidates`, uint16 (81,), has for an empty cell the digits that fit it, that is, those
not placed in its row, column or box, and the bit OPEN; for a filled cell it has 0. The tracers have a board of their
own: a fault in one of the two shows as a disagreement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.sudoku_reasons import (
    ALREADY_FILLED,
    ANSWER_DUPLICATE,
    ANSWER_EMPTY,
    ANSWER_GIVEN_CHANGED,
    ANSWER_OK,
    ANSWER_OUT_OF_RANGE,
    ANSWER_WRONG_LENGTH,
    DIGIT_IN_PEERS,
    GIVEN_CHANGED,
    NONE,
    NOT_A_CELL,
    NOT_A_DIGIT,
    UNFINISHED_STEP,
)
from lol_data.jit import njit
from lol_data.sudokus import CELLS, DIGIT

UNITS, FIRST_BOX = 27, 18
ALL, OPEN = 0x1FF, 0x200

DIGIT_COUNT = np.array([mask.bit_count() for mask in range(ALL + 1)], np.uint8)
UNIT_NAMES = [f"{kind} {k}" for kind in ("row", "column", "box") for k in range(1, 10)]  # for people, from 1

_cell = np.arange(CELLS)
UNITS_OF = np.stack([_cell // 9, 9 + _cell % 9, 18 + _cell // 27 * 3 + _cell % 9 // 3], axis=1).astype(np.uint8)
CELLS_OF = np.array([np.nonzero(np.equal(UNITS_OF, unit).any(axis=1))[0] for unit in range(UNITS)], np.uint8)
_see = (UNITS_OF[:, None] == UNITS_OF).any(axis=2) & ~np.eye(CELLS, dtype=bool)
PEERS_OF = np.array([np.nonzero(row)[0] for row in _see], np.uint8)


@njit
def read_givens(givens, used, candidates):
    """Fill used, uint16 (27,): the digits of each unit, and candidates; returns the number of empty cells.

    Returns -1 where a given is no digit, or stands twice in a unit.
    """
    used[:] = 0
    for cell in range(CELLS):
        if givens[cell] > 9:
            return -1
        bit = 1 << givens[cell] >> 1
        row, column, box = UNITS_OF[cell]
        if (used[row] | used[column] | used[box]) & bit:
            return -1
        used[row] |= bit
        used[column] |= bit
        used[box] |= bit
    empty = 0
    for cell in range(CELLS):
        row, column, box = UNITS_OF[cell]
        candidates[cell] = (OPEN | ALL & ~(used[row] | used[column] | used[box])) * (givens[cell] == 0)
        empty += givens[cell] == 0
    return empty


def given_fault(givens: NDArray[np.uint8]) -> str | None:
    """What is wrong with givens, uint8 (81,), 0 for none: a digit above 9, or twice in a unit. None if nothing is."""
    for cell in np.flatnonzero(givens > 9).tolist():
        return f"{givens[cell]} in cell {cell} is no digit"
    for unit, name in enumerate(UNIT_NAMES):
        count = np.bincount(givens[CELLS_OF[unit]], minlength=10)[1:]
        if (count > 1).any():
            return f"{np.argmax(count > 1) + 1} stands twice in {name}"
    return None


@njit
def place(candidates, cell, bit):
    """Fill an empty cell."""
    candidates[cell] = 0
    for k in range(20):
        candidates[PEERS_OF[cell, k]] &= ~bit


@njit
def single_places(candidates, unit):
    """Mask of the digits that fit exactly one empty cell of a unit."""
    once, twice = 0, 0
    for k in range(9):
        fit = candidates[CELLS_OF[unit, k]]
        twice |= once & fit
        once |= fit
    return once & ~twice & ALL


@njit
def form_fault(trace, i):
    """Why the symbols from trace[i] on are not a cell and a digit; NONE if they are."""
    if trace[i] >= CELLS:
        return NOT_A_CELL
    if i + 1 == len(trace):
        return UNFINISHED_STEP
    return NONE if DIGIT < trace[i + 1] <= DIGIT + 9 else NOT_A_DIGIT


@njit
def fit_fault(candidates, givens, cell, bit):
    """Why a digit cannot stand in a cell now; NONE if it can."""
    if candidates[cell] == 0:
        return GIVEN_CHANGED if givens[cell] else ALREADY_FILLED
    return NONE if candidates[cell] & bit else DIGIT_IN_PEERS


@njit
def answer_fault(givens, answer, used):
    """Why an answer, the 81 digits of the full grid, breaks the rules or the givens; ANSWER_OK if it does not."""
    if len(answer) == 0:
        return ANSWER_EMPTY
    if len(answer) != CELLS:
        return ANSWER_WRONG_LENGTH
    used[:] = 0
    changed, seen_twice = False, 0
    for cell in range(CELLS):
        digit = answer[cell]
        if not 1 <= digit <= 9:
            return ANSWER_OUT_OF_RANGE
        changed |= givens[cell] != 0 and givens[cell] != digit
        bit = 1 << digit >> 1
        row, column, box = UNITS_OF[cell]
        seen_twice |= (used[row] | used[column] | used[box]) & bit
        used[row] |= bit
        used[column] |= bit
        used[box] |= bit
    if changed:
        return ANSWER_GIVEN_CHANGED
    return ANSWER_DUPLICATE if seen_twice else ANSWER_OK
