"""The strategy that a sudoku trace is written like, by the look of its steps alone and without the puzzle.

The five strategies write steps of different kinds (`lol_data.sudokus`), so a trace can look like one strategy's without
a step that its rules allow. How many do is the rate `format`, to be held against `adherence`, which asks for the rules:
a path that changes the first and not the second changes the format, not the search. Maze strategies all write cells, so
there the look of a trace says nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.sudoku_board import FIRST_BOX
from lol_data.jit import njit
from lol_data.ragged import Ragged
from lol_data.sudokus import (
    BACKTRACKING,
    CELLS,
    CROSS_HATCHING,
    DIGIT,
    HIDDEN_SINGLE,
    NAKED_SINGLE,
    PROPAGATION,
    UNDO,
    UNIT,
    WAVE,
)

NO_FORMAT = 255


def sudoku_formats(traces: Ragged) -> NDArray[np.uint8]:
    """The code of SUDOKU_STRATEGIES that each of M traces is written like, uint8 (M,), or NO_FORMAT.

    traces: M rows of symbols, integers of any kind. They are read up to the first symbol that makes no step. If all
    steps name a unit, it is cross-hatching where those are boxes and hidden single where one is not; if none does,
    propagation where waves end, backtracking where there is an undo, naked single where there is neither. What mixes
    these or places nothing is NO_FORMAT.
    """
    return _formats(traces.values, traces.offsets)


@njit
def _formats(traces, offsets):
    formats = np.empty(len(offsets) - 1, np.uint8)
    for k in range(len(formats)):
        formats[k] = _format(traces[offsets[k] : offsets[k + 1]])
    return formats


@njit
def _format(trace):
    plain, units, boxes, waves, undos = 0, 0, 0, 0, 0
    at, end = 0, len(trace)
    while at < end:
        symbol = trace[at]
        if symbol == WAVE:
            waves += 1
            at += 1
            continue
        undo, unit = symbol == UNDO, UNIT <= symbol < WAVE
        cell = at + (undo or unit)
        at = cell + (1 if undo else 2)
        if at > end or not 0 <= trace[cell] < CELLS or not (undo or DIGIT < trace[cell + 1] < UNIT):
            break
        undos += undo
        units += unit
        boxes += unit and symbol >= UNIT + FIRST_BOX
        plain += not (undo or unit)
    if units:
        if plain or waves or undos:
            return NO_FORMAT
        return CROSS_HATCHING if boxes == units else HIDDEN_SINGLE
    if not plain or (waves and undos):
        return NO_FORMAT
    return PROPAGATION if waves else BACKTRACKING if undos else NAKED_SINGLE
