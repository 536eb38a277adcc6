"""The rule check of `verify`: the same verdict on every row as `judge_sudokus` gives trace by trace."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators.sudoku_rules import canonical_sudoku_rows, judge_sudokus
from lol_data.ragged import Ragged
from lol_data.sudokus import SUDOKU_STRATEGIES, SYMBOLS, Sudokus, TracedSudokus

from .sudoku_reference import random_problems

ROWS = 8


def sound():
    found = random_problems(ROWS, 21)
    grids = (np.array([problem[k] for problem in found], np.uint8) for k in (0, 1))
    traces = {name: Ragged.from_rows([problem[2][name] for problem in found]) for name in SUDOKU_STRATEGIES}
    return TracedSudokus(Sudokus(np.arange(ROWS, dtype=np.uint64), *grids), traces)


SOUND = sound()


def through_judge(traced: TracedSudokus):
    rows = np.arange(len(traced))
    good = np.ones(len(traced), bool)
    answers = Ragged.from_rows(traced.sudokus.solution)
    for code, name in enumerate(SUDOKU_STRATEGIES):
        verdicts = judge_sudokus(traced.sudokus, rows, np.full(len(rows), code), traced.traces[name], answers)
        good &= verdicts.canonical & verdicts.answer_correct
    return good


def with_trace(traced, name, row, symbols):
    rows = list(traced.traces[name])
    rows[row] = np.asarray(symbols, np.uint8)
    return replace(traced, traces=traced.traces | {name: Ragged.from_rows(rows)})


def with_grid(traced, name, row, cell, digit):
    grid = getattr(traced.sudokus, name).copy()
    grid[row, cell] = digit
    return replace(traced, sudokus=replace(traced.sudokus, **{name: grid}))


def test_sound_rows_are_good():
    assert canonical_sudoku_rows(SOUND).all() and len(canonical_sudoku_rows(SOUND.take(np.arange(0)))) == 0


@pytest.mark.parametrize("name", SUDOKU_STRATEGIES)
def test_a_fault_in_one_trace_refuses_its_row_alone(name):
    cut = SOUND.traces[name][5][: -3 if name in ("hidden_single", "cross_hatching") else -2]
    assert np.flatnonzero(~canonical_sudoku_rows(with_trace(SOUND, name, 5, cut))).tolist() == [5]


def test_a_fault_in_a_grid_refuses_its_row_alone():
    given = int(np.flatnonzero(SOUND.sudokus.puzzle[3])[0])
    wrong = SOUND.sudokus.solution[3, given] % 9 + 1
    for name, digit in (("solution", wrong), ("solution", 0), ("solution", 12), ("puzzle", wrong), ("puzzle", 0)):
        traced = with_grid(SOUND, name, 3, given, digit)
        assert np.flatnonzero(~canonical_sudoku_rows(traced)).tolist() == [3]
    for digit in (10, 255):
        assert not canonical_sudoku_rows(with_grid(SOUND, "puzzle", 3, given, digit))[3]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_equal_to_judge_sudokus_on_damaged_rows(data):
    traced = SOUND
    for _ in range(data.draw(st.integers(1, 5))):
        name, row = data.draw(st.sampled_from(SUDOKU_STRATEGIES)), data.draw(st.integers(0, ROWS - 1))
        symbols = traced.traces[name][row].tolist() or [0]
        at, other = (data.draw(st.integers(0, len(symbols) - 1)) for _ in range(2))
        fault = data.draw(st.sampled_from(("value", "swap", "cut", "more", "repeat", "other trace", "solution")))
        if fault == "value":
            symbols[at] = data.draw(st.integers(0, SYMBOLS))
        elif fault == "swap":
            symbols[at], symbols[other] = symbols[other], symbols[at]
        elif fault == "cut":
            symbols = symbols[:at]
        elif fault == "more":
            symbols.append(data.draw(st.integers(0, 255)))
        elif fault == "repeat":
            symbols.insert(at, symbols[at])
        elif fault == "other trace":
            symbols = traced.traces[data.draw(st.sampled_from(SUDOKU_STRATEGIES))][row]
        else:
            cell, digit = data.draw(st.integers(0, 80)), data.draw(st.integers(0, 10))
            traced = with_grid(traced, "solution", row, cell, digit)
        traced = with_trace(traced, name, row, symbols)
    np.testing.assert_array_equal(canonical_sudoku_rows(traced), through_judge(traced))


def test_columns_that_do_not_fit_are_an_error():
    short = SOUND.traces | {"propagation": SOUND.traces["propagation"].take(np.arange(ROWS - 1))}
    with pytest.raises(ValueError, match="7 propagation for 8 rows"):
        canonical_sudoku_rows(replace(SOUND, traces=short))
    with pytest.raises(ValueError, match="solution must be uint8"):
        canonical_sudoku_rows(replace(SOUND, sudokus=replace(SOUND.sudokus, solution=SOUND.sudokus.solution[:, :80])))
