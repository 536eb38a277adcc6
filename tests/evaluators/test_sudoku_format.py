"""What a sudoku trace looks like: that of its strategy, whatever its cells and digits are."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators.sudoku_format import NO_FORMAT, sudoku_formats
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.ragged import Ragged
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE

cells, digits = st.integers(0, 80), st.integers(DIGIT + 1, DIGIT + 9)
placements = st.tuples(cells, digits)
lines, boxes = st.integers(UNIT, UNIT + 17), st.integers(UNIT + 18, UNIT + 26)
undos = st.tuples(st.just(UNDO), cells)
wave = st.just((WAVE,))


def steps(*kinds):
    """Some of each kind, in any order."""
    lists = [st.lists(kind, min_size=1) for kind in kinds]
    return st.tuples(*lists).flatmap(lambda parts: st.permutations([*itertools.chain(*parts)]))


WRITTEN = {
    "naked_single": steps(placements),
    "hidden_single": st.one_of(
        steps(st.tuples(lines, cells, digits)),
        steps(st.tuples(lines, cells, digits), st.tuples(boxes, cells, digits)),
    ),
    "cross_hatching": steps(st.tuples(boxes, cells, digits)),
    "propagation": steps(placements, wave),
    "backtracking": steps(placements, undos),
    None: st.one_of(
        st.just([]),
        steps(wave),
        steps(undos),
        steps(placements, st.tuples(boxes, cells, digits)),
        steps(st.tuples(lines, cells, digits), wave),
        steps(st.tuples(lines, cells, digits), undos),
        steps(placements, wave, undos),
    ),
}


def formats(*traces):
    found = sudoku_formats(Ragged.from_rows(np.array(trace, np.int16) for trace in traces)).tolist()
    return [None if code == NO_FORMAT else SUDOKU_STRATEGIES[code] for code in found]


@pytest.mark.parametrize("strategy", WRITTEN)
@settings(deadline=None)  # the first call compiles
@given(st.data())
def test_steps_of_any_cells_and_digits_look_like_their_strategy(strategy, data):
    trace = [symbol for step in data.draw(WRITTEN[strategy]) for symbol in step]
    assert formats(trace) == [strategy]


UNFINISHED = [[3], [UNIT], [UNIT, 3], [UNDO]]
NO_STEPS = [*UNFINISHED, [DIGIT + 1], [3, 3], [UNIT, 3, 3], [UNIT, UNIT], [UNDO, DIGIT + 1], [-1], [300]]


@pytest.mark.parametrize("end", NO_STEPS, ids=str)
def test_what_is_no_step_ends_the_look(end):
    before = [5, DIGIT + 3, UNDO, 5]
    traces = [end, [*before, *end], before]
    assert formats(*traces) == [None, "backtracking", "backtracking"]
    if end not in UNFINISHED:
        assert formats([*before, *end, WAVE]) == ["backtracking"]  # the wave is not looked at


def test_every_canonical_trace_looks_like_its_strategy():
    traced = generate_sudokus(SudokuSettings(), 3, 0, 200)
    for code, name in enumerate(SUDOKU_STRATEGIES):
        assert (sudoku_formats(traced.traces[name]) == code).all(), name
