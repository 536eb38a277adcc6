"""The rule check of `verify`: the same verdict on every row as `judge_mazes` gives trace by trace."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators.maze_rules import canonical_rows, judge_mazes
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import EAST, MAZE_STRATEGIES, WEST, TracedMazes
from lol_data.mazes_jsonl import read_maze, to_mazes
from lol_data.ragged import Ragged
from lol_data.solvers import trace_mazes

ROWS = 60
SOUND = {size: generate_mazes(MazeSettings(size=size), 4, 0, ROWS) for size in (3, 5, 8, 15)}
COLUMNS = ("answer", *MAZE_STRATEGIES)


def through_judge(traced: TracedMazes):
    rows = np.arange(len(traced))
    good = np.ones(len(traced), bool)
    for code, name in enumerate(MAZE_STRATEGIES):
        verdicts = judge_mazes(traced.mazes, rows, np.full(len(rows), code), traced.traces[name], traced.answer)
        good &= verdicts.canonical & verdicts.answer_correct
    return good


def with_row(traced, column, row, cells):
    """`traced` with other cells in one row of one column."""
    rows = list(traced.answer if column == "answer" else traced.traces[column])
    rows[row] = np.asarray(cells, np.uint8)
    changed = Ragged.from_rows(rows)
    if column == "answer":
        return replace(traced, answer=changed)
    return replace(traced, traces=traced.traces | {column: changed})


def cells_of(traced, column, row):
    return (traced.answer if column == "answer" else traced.traces[column])[row].tolist()


@pytest.mark.parametrize("size", SOUND)
def test_generated_rows_are_good(size):
    assert canonical_rows(SOUND[size]).all() and len(canonical_rows(SOUND[size].take(np.arange(0)))) == 0


@pytest.mark.parametrize("column", COLUMNS)
def test_a_fault_in_one_column_refuses_its_row_alone(column):
    traced = with_row(SOUND[8], column, 17, cells_of(SOUND[8], column, 17)[:-1])
    assert np.flatnonzero(~canonical_rows(traced)).tolist() == [17]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_equal_to_judge_mazes_on_damaged_rows(data):
    size = data.draw(st.sampled_from(list(SOUND)))
    traced = SOUND[size]
    for _ in range(data.draw(st.integers(1, 6))):
        column, row = data.draw(st.sampled_from(COLUMNS)), data.draw(st.integers(0, ROWS - 1))
        cells = cells_of(traced, column, row)
        at, other = (data.draw(st.integers(0, max(0, len(cells) - 1))) for _ in range(2))
        fault = data.draw(st.sampled_from(("value", "swap", "cut", "more", "repeat", "other column", "endpoint")))
        if fault == "value" and cells:
            cells[at] = data.draw(st.integers(0, 255))
        elif fault == "swap" and cells:
            cells[at], cells[other] = cells[other], cells[at]
        elif fault == "cut":
            cells = cells[:at]
        elif fault == "more":
            cells.append(data.draw(st.integers(0, 255)))
        elif fault == "repeat" and cells:
            cells.insert(at, cells[at])
        elif fault == "other column":
            cells = cells_of(traced, data.draw(st.sampled_from(COLUMNS)), row)
        elif fault == "endpoint":
            goal = traced.mazes.goal.copy()
            goal[row] = data.draw(st.sampled_from([cell for cell in range(size**2) if cell != traced.mazes.start[row]]))
            traced = replace(traced, mazes=replace(traced.mazes, goal=goal))
        traced = with_row(traced, column, row, cells)
    np.testing.assert_array_equal(canonical_rows(traced), through_judge(traced))


def test_a_longer_way_round_a_loop_is_refused():
    edges = [[0, 1], [1, 2], [2, 5], [5, 8], [0, 3], [3, 6], [6, 7], [7, 8]]  # a ring: 0 to 5 by 1 and 2, or by 3 to 8
    traced = trace_mazes(to_mazes([read_maze({"size": 3, "edges": edges, "start": 0, "goal": 5})]))
    assert canonical_rows(traced).all()
    longer = with_row(traced, "answer", 0, [0, 3, 6, 7, 8, 5])
    assert not canonical_rows(longer).any() and not through_judge(longer).any()


def test_another_maze_under_the_same_traces_is_refused():
    openings = SOUND[5].mazes.openings.copy()
    row, cell = next((row, cell) for row in range(ROWS) for cell in range(4) if not openings[row, cell] & EAST)
    openings[row, cell] |= EAST
    openings[row, cell + 1] |= WEST
    traced = replace(SOUND[5], mazes=replace(SOUND[5].mazes, openings=openings))
    np.testing.assert_array_equal(canonical_rows(traced), through_judge(traced))
    assert not canonical_rows(traced)[row]


def test_a_problem_that_is_not_well_formed_refuses_its_row_alone():
    mazes = SOUND[5].mazes
    openings, start, goal = mazes.openings.copy(), mazes.start.copy(), mazes.goal.copy()
    openings[3, 0] |= WEST  # into the border
    openings[4, 7] ^= EAST  # one side of a passage only
    openings[5, 7] |= 16
    goal[6] = start[6]
    goal[7], start[8] = 25, 255
    traced = replace(SOUND[5], mazes=replace(mazes, openings=openings, start=start, goal=goal))
    assert np.flatnonzero(~canonical_rows(traced)).tolist() == [3, 4, 5, 6, 7, 8]


def test_columns_of_other_lengths_are_an_error():
    short = replace(SOUND[5], answer=SOUND[5].answer.take(np.arange(ROWS - 1)))
    with pytest.raises(ValueError, match="59 answers for 60 rows"):
        canonical_rows(short)
