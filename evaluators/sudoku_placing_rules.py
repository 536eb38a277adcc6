"""The rules of the strategies that only place digits: naked and hidden singles, cross-hatching, propagation.

Every rule replays one trace and returns (steps, reason, complete, canonical): how many of the first steps are legal,
why the next one is not (NONE if there is none), whether the trace is legal and ends where it must, and whether every
choice on the way was the canonical one as well.

Arguments of every rule: trace uint8, symbols; givens uint8 (81,); start uint16 (81,), the candidates under the givens;
empty, how many cells are to be filled; and scratch arrays of 81 uint16 whose content does not matter. The puzzle may
have no solution or many: no rule looks for one.

A strategy that sweeps places whatever it meets, so the next step of a canonical trace is the first justified placement
behind the last one, round the end of the sweep if need be. The sweep is searched only while the trace is canonical.
"""

from __future__ import annotations

from lol_data.evaluators.sudoku_board import (
    ALL,
    CELLS_OF,
    DIGIT_COUNT,
    FIRST_BOX,
    OPEN,
    UNITS,
    UNITS_OF,
    fit_fault,
    form_fault,
    place,
    single_places,
)
from lol_data.evaluators.sudoku_reasons import (
    AFTER_END,
    CELL_NOT_IN_UNIT,
    EMPTY_TRACE,
    EMPTY_WAVE,
    NONE,
    NOT_A_BOX,
    NOT_A_UNIT,
    NOT_FORCED_IN_THIS_WAVE,
    NOT_THE_ONLY_DIGIT,
    NOT_THE_ONLY_PLACE,
    UNFINISHED_STEP,
    WAVE_INCOMPLETE,
)
from lol_data.jit import njit
from lol_data.sudokus import CELLS, DIGIT, UNIT, WAVE

UNKNOWN = -1


@njit
def only_digit(fit):
    """Has an empty cell exactly one candidate? False for a filled cell."""
    return fit & (fit - 1) == OPEN  # the lowest bit taken off


@njit
def naked_single_rule(trace, givens, start, empty, candidates):
    """Any empty cell that exactly one digit fits, until the grid is full. Canonical: the cells row by row."""
    if len(trace) == 0 and empty > 0:
        return 0, EMPTY_TRACE, False, False
    candidates[:] = start
    canonical, at, steps = True, CELLS - 1, 0
    for i in range(0, len(trace), 2):
        if steps == empty:
            return steps, AFTER_END, False, False
        fault = form_fault(trace, i)
        if fault != NONE:
            return steps, fault, False, False
        cell, bit = trace[i], 1 << trace[i + 1] - DIGIT - 1
        fault = fit_fault(candidates, givens, cell, bit)
        if fault != NONE:
            return steps, fault, False, False
        if not only_digit(candidates[cell]):
            return steps, NOT_THE_ONLY_DIGIT, False, False
        if canonical:
            at = (at + 1) % CELLS
            while not only_digit(candidates[at]):
                at = (at + 1) % CELLS
            canonical = at == cell
        place(candidates, cell, bit)
        steps += 1
    return steps, NONE, steps == empty, canonical and steps == empty


@njit
def next_in_units(candidates, unit, bit):
    """The first digit, as a bit, with a single place in units 0-26, digits ascending, behind (unit, bit)."""
    found = single_places(candidates, unit) & -(bit << 1)
    while found == 0:
        unit = (unit + 1) % UNITS
        found = single_places(candidates, unit)
    return unit, found & -found


@njit
def next_in_boxes(candidates, single, unit, bit):
    """The first digit, as a bit, with a single place in digits ascending, boxes 18-26, behind (unit, bit).

    single: int16 (27,), the single places of a unit as far as they are known, or UNKNOWN.
    """
    while True:
        unit += 1
        if unit == UNITS:
            unit = FIRST_BOX
            bit = bit << 1 if bit < 256 else 1
        if single[unit] == UNKNOWN:
            single[unit] = single_places(candidates, unit)
        if single[unit] & bit:
            return unit, bit


@njit
def hidden_single_rule(trace, givens, start, empty, boxes, candidates, single):
    """Any digit that fits exactly one empty cell of a unit, until the grid is full.

    boxes: cross-hatching, where the unit must be a box. Canonical: see next_in_units and next_in_boxes.
    """
    if len(trace) == 0 and empty > 0:
        return 0, EMPTY_TRACE, False, False
    candidates[:] = start
    single[:] = UNKNOWN
    canonical, at_unit, at_bit, steps = True, UNITS - 1, 256, 0
    for i in range(0, len(trace), 3):
        if steps == empty:
            return steps, AFTER_END, False, False
        unit = trace[i] - UNIT
        if not 0 <= unit < UNITS:
            return steps, NOT_A_UNIT, False, False
        if i + 1 == len(trace):
            return steps, UNFINISHED_STEP, False, False
        fault = form_fault(trace, i + 1)
        if fault != NONE:
            return steps, fault, False, False
        if boxes and unit < FIRST_BOX:
            return steps, NOT_A_BOX, False, False
        cell, bit = trace[i + 1], 1 << trace[i + 2] - DIGIT - 1
        fault = fit_fault(candidates, givens, cell, bit)
        if fault != NONE:
            return steps, fault, False, False
        row, column, box = UNITS_OF[cell]
        if unit != row and unit != column and unit != box:
            return steps, CELL_NOT_IN_UNIT, False, False
        if not single_places(candidates, unit) & bit:
            return steps, NOT_THE_ONLY_PLACE, False, False
        if canonical:
            if boxes:
                at_unit, at_bit = next_in_boxes(candidates, single, at_unit, at_bit)
            else:
                at_unit, at_bit = next_in_units(candidates, at_unit, at_bit)
            canonical = at_unit == unit and at_bit == bit
            for k in range(3):  # the boxes that hold peers of the cell
                single[18 + (box - 18) // 3 * 3 + k] = UNKNOWN
                single[18 + box % 3 + 3 * k] = UNKNOWN
        place(candidates, cell, bit)
        steps += 1
    return steps, NONE, steps == empty, canonical and steps == empty


@njit
def find_forced(candidates, forced):
    """Set forced[cell] to the digits that either rule forces into a cell now; returns how many in all."""
    for cell in range(CELLS):
        fit = candidates[cell]
        forced[cell] = fit & ALL if only_digit(fit) else 0
    for unit in range(UNITS):
        single = single_places(candidates, unit)
        if single:
            for k in range(9):
                cell = CELLS_OF[unit, k]
                forced[cell] |= candidates[cell] & single
    count = 0
    for cell in range(CELLS):
        count += DIGIT_COUNT[forced[cell]]
    return count


@njit
def propagation_rule(trace, givens, start, empty, candidates, forced):
    """Waves: every placement that either rule forces on the grid as the wave finds it, then the marker.

    The trace ends with the marker behind the last placement. Where the givens force two digits into one cell, or one
    digit twice into a unit, the wave can never be closed. Canonical: each wave in the order of the cells.
    """
    if len(trace) == 0 and empty > 0:
        return 0, EMPTY_TRACE, False, False
    candidates[:] = start
    due, made = 0, 0  # placements of this wave: left to be made, and made
    last, canonical, steps, i = -1, True, 0, 0
    while i < len(trace):
        if empty == 0 and made == 0:
            return steps, AFTER_END, False, False
        if trace[i] == WAVE:
            if made == 0 or due > 0:
                return steps, EMPTY_WAVE if made == 0 else WAVE_INCOMPLETE, False, False
            made, last = 0, -1
            i += 1
        else:
            fault = form_fault(trace, i)
            if fault != NONE:
                return steps, fault, False, False
            cell, bit = trace[i], 1 << trace[i + 1] - DIGIT - 1
            fault = fit_fault(candidates, givens, cell, bit)
            if fault != NONE:
                return steps, fault, False, False
            if made == 0:
                due = find_forced(candidates, forced)
            if not forced[cell] & bit:
                return steps, NOT_FORCED_IN_THIS_WAVE, False, False
            canonical &= cell > last
            last = cell
            place(candidates, cell, bit)
            made += 1
            due -= 1
            empty -= 1
            i += 2
        steps += 1
    complete = empty == 0 and made == 0
    return steps, NONE, complete, canonical and complete
