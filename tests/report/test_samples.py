"""Which outputs the browser gets, in which order, and how traces of sudokus are taken apart."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.report.samples import FAULTS, choose, sudoku_steps
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, SYMBOLS, UNDO, UNIT, WAVE
from lol_data.sudokus_jsonl import steps_of


def table(rows):
    """Samples (asked, number of failed verdicts, first illegal step)."""
    columns = {name: [rank >= failed for _, failed, _ in rows] for rank, name in enumerate(FAULTS)}
    asked = pa.array([asked for asked, _, _ in rows]).dictionary_encode()
    first = pa.array([first for *_, first in rows], pa.int32())
    return pa.table({"asked": asked, "first_illegal_step": first, **columns})


def test_the_worst_come_first_and_the_sooner_illegal_among_equals():
    rows = [("a", 1, 5), ("a", 3, 2), ("a", 0, -1), ("a", 3, 1), ("a", 3, -1), ("a", 0, -1)]
    assert choose(table(rows), worst=9, best=1).tolist() == [3, 1, 4, 0, 2]


def test_every_strategy_has_its_share():
    rows = [("a", 5, 0)] * 4 + [("b", 1, 7)] * 3 + [("b", 0, -1)] * 3
    assert choose(table(rows), worst=2, best=2).tolist() == [0, 1, 4, 5, 7, 8]
    assert choose(table([]), worst=2, best=2).tolist() == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(-1, 5)), max_size=40))
def test_what_is_chosen_is_never_better_than_what_is_left(rows):
    kept = choose(table(rows), worst=3, best=1)
    failed = [rows[k][1] for k in kept]
    assert failed == sorted(failed, reverse=True) and len(set(kept.tolist())) == len(kept)
    for name in "abc":
        faulty = [failed for asked, failed, _ in rows if asked == name and failed]
        shown = [rows[k][1] for k in kept if rows[k][0] == name and rows[k][1]]
        assert sorted(shown, reverse=True) == sorted(faulty, reverse=True)[:3]


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_canonical_traces_come_apart_into_their_steps(strategy):
    traced = generate_sudokus(SudokuSettings(), 0, 0, 3)
    for trace in traced.traces[strategy]:
        steps, starts = sudoku_steps(trace.tolist(), strategy)
        assert starts[0] == 0 and len(starts) == len(steps) and all(step[0] != 3 for step in steps)
        known = steps_of(strategy, trace)
        if strategy == "propagation":
            waves = [[[step[1], step[2]] for step in part if step[0] == 0] for part in split(steps)]
            assert waves == [[list(pair) for pair in wave] for wave in known]
        elif strategy == "backtracking":
            assert [["undo", step[1]] if step[0] else ["try", step[1], step[2]] for step in steps] == known
        elif strategy == "naked_single":
            assert [step[1:3] for step in steps] == known and {step[3] for step in steps} == {-1}
        else:
            assert [[step[3], *step[1:3]] for step in steps] == known


def split(steps):
    waves = [[]]
    for step in steps:
        if step == [2]:
            waves.append([])
        else:
            waves[-1].append(step)
    assert waves[-1] == []
    return waves[:-1]


@given(st.lists(st.integers(0, SYMBOLS - 1), max_size=30), st.sampled_from(SUDOKU_STRATEGIES))
def test_any_symbols_come_apart(symbols, strategy):
    steps, starts = sudoku_steps(symbols, strategy)
    assert len(steps) == len(starts) and all(np.diff(starts) > 0)
    assert all(step[0] != 3 for step in steps[:-1])
    if symbols:
        assert starts[0] == 0
        kind, *rest = steps[-1]
        size = {0: 3 if rest[-1:] != [-1] else 2, 1: 2, 2: 1}
        assert kind == 3 or starts[-1] + size[kind] == len(symbols)


def test_what_is_no_step_ends_the_trace():
    cell_digit = [5, DIGIT + 3]
    assert sudoku_steps([*cell_digit, 5], "naked_single") == ([[0, 5, 3, -1], [3]], [0, 2])
    assert sudoku_steps([UNIT, *cell_digit, *cell_digit], "hidden_single") == ([[0, 5, 3, 0], [3]], [0, 3])
    assert sudoku_steps([UNDO, 5, WAVE], "backtracking") == ([[1, 5], [3]], [0, 2])
    assert sudoku_steps([WAVE, UNDO, 5], "propagation") == ([[2], [3]], [0, 1])
