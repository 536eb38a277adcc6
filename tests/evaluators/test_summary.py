"""Wilson intervals by golden values, and the counts of a summary by hand-made verdicts."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.evaluators.intervals import wilson
from lol_data.evaluators.summary import APART, conflict_matrix, conflict_table, percent, summarise, table
from lol_data.evaluators.verdicts import Verdicts
from lol_data.mazes import MAZE_STRATEGIES


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (0, 200, 0.0, 0.018845),
        (200, 200, 0.981155, 1.0),
        (99, 100, 0.945513, 0.998233),
        (1, 2, 0.094531, 0.905469),
        (8, 10, 0.490162, 0.943318),
    ],
)
def test_known_intervals(hits, n, low, high):
    interval = wilson(hits, n)
    assert interval["rate"] == hits / n
    assert interval["low"] == pytest.approx(low, abs=1e-6)
    assert interval["high"] == pytest.approx(high, abs=1e-6)


def test_nothing_observed_is_nothing_known():
    interval = wilson(0, 0)
    assert interval["rate"] is None
    assert (interval["low"], interval["high"]) == (0.0, 1.0)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))))
def test_intervals_hold_the_rate_rise_with_it_and_mirror(case):
    hits, n = case
    one, more = wilson(hits, n), wilson(hits + 1, n)
    assert 0 <= one["low"] <= one["rate"] <= one["high"] <= 1
    assert one["low"] < more["low"] or hits == n - 1 == 0
    assert one["high"] < more["high"] or more["high"] == 1
    mirror = wilson(n - hits, n)
    assert mirror["low"] == pytest.approx(1 - one["high"], abs=1e-12)
    many = wilson(10 * hits, 10 * n)
    assert many["high"] - many["low"] < one["high"] - one["low"]


def hand_made(**columns) -> Verdicts:
    """Verdicts of which only the given columns say anything."""
    count = len(columns["asked"])
    empty = {
        name: np.zeros(count, np.uint8 if name in ("parse_reason", "illegal_reason", "answer_reason") else bool)
        for name in Verdicts.__dataclass_fields__
        if name not in ("strategies", "illegal_names", "answer_names", "first_illegal_step", *columns)
    }
    columns = {name: np.array(values) for name, values in columns.items()}
    return Verdicts(MAZE_STRATEGIES, ("none",), ("none",), **empty, **columns, first_illegal_step=np.full(count, -1))


BFS, DFS, ASTAR = 0b1, 0b10, 0b100
T, F = True, False


@pytest.fixture
def verdicts() -> Verdicts:
    return hand_made(
        asked=np.array([0, 0, 0, 0, 1, 1, 1], np.uint8),
        identified=np.array([BFS, ASTAR, BFS | DFS, 0, DFS | ASTAR, 0, DFS], np.uint8),
        parsed=[T, T, T, F, T, T, T],
        adherent=[T, F, T, F, T, F, T],
        legal=[T, F, T, F, T, T, T],
        answer_correct=[T, T, F, F, T, F, T],
        joint=[T, F, F, F, T, F, F],
    )


def test_the_confusion_matrix_counts_single_several_and_none(verdicts):
    confusion = summarise(verdicts)["confusion"]
    none = dict.fromkeys([*MAZE_STRATEGIES, "ambiguous", "none"], 0)
    assert confusion["bfs"] == {**none, "bfs": 1, "astar": 1, "ambiguous": 1, "none": 1}
    assert confusion["dfs"] == {**none, "dfs": 1, "ambiguous": 1, "none": 1}
    assert confusion["astar"] == none
    assert sum(sum(row.values()) for row in confusion.values()) == len(verdicts)


def test_rates_are_counted_per_strategy_asked_for(verdicts):
    summary = summarise(verdicts)
    bfs, dfs = summary["strategies"]["bfs"], summary["strategies"]["dfs"]
    assert (bfs["n"], dfs["n"], summary["strategies"]["astar"]["n"], summary["overall"]["n"]) == (4, 3, 0, 7)
    counts = {"adherence": (2, 2), "legality": (2, 3), "answer": (2, 2), "joint": (1, 1), "unparsable": (1, 0)}
    for name, (first, second) in counts.items():
        assert bfs[name] == wilson(first, 4)
        assert dfs[name] == wilson(second, 3)
        assert summary["overall"][name] == wilson(first + second, 7)
    assert "fallback_rate" not in bfs


def test_outputs_that_fell_back_are_also_left_out(verdicts):
    summary = summarise(verdicts, np.array([F, F, T, F, T, T, T]))
    bfs, dfs = summary["strategies"]["bfs"], summary["strategies"]["dfs"]
    assert (bfs["fallback_rate"], dfs["fallback_rate"]) == (0.25, 1.0)
    inside = {"adherence": wilson(1, 3), "legality": wilson(1, 3), "answer": wilson(2, 3), "joint": wilson(1, 3)}
    outside = {"adherence": wilson(1, 1), "legality": wilson(1, 1), "answer": wilson(0, 1), "joint": wilson(0, 1)}
    assert bfs["supported"] == {"n": 3, **inside}
    assert bfs["fell_back"] == {"n": 1, **outside}
    assert dfs["supported"]["n"] == 0
    assert dfs["supported"]["joint"]["rate"] is None
    assert summary["overall"]["fallback_rate"] == pytest.approx(4 / 7)
    assert bfs["adherence"] == wilson(2, 4)  # the plain rates keep them


def test_single_rates_bound_the_joint_one(verdicts):
    bounds = summarise(replace(verdicts, complete=verdicts.legal))["strategies"]["dfs"]["joint_bounds"]
    assert bounds == {"low": pytest.approx(1 / 3), "high": pytest.approx(2 / 3)}  # of 2, 3, 3 and 2 in 3
    assert "joint_bounds" not in summarise(verdicts)["strategies"]["astar"]


def test_a_conflict_names_who_was_followed(verdicts):
    matrix = conflict_matrix(verdicts, np.array([1, 2, 1, 1, 0, 0, 0]))
    assert set(matrix) == {"bfs", "dfs", "astar"}
    assert matrix["dfs"]["bfs"]["path"] == wilson(2, 3)
    assert matrix["dfs"]["bfs"]["field"] == wilson(1, 3)  # the ambiguous one
    assert matrix["astar"]["bfs"]["field"] == wilson(1, 1)
    assert matrix["dfs"]["bfs"]["identified"] == {
        **dict.fromkeys(MAZE_STRATEGIES, 0),
        "bfs": 1,
        "ambiguous": 1,
        "none": 1,
    }
    text = conflict_table({"matrix": matrix, "strategies": dict.fromkeys(MAZE_STRATEGIES)})
    assert "66.7 / 33.3" in text and len({len(line) for line in text.splitlines()[1:]}) == 1
    assert conflict_table({"strategies": {}}) == ""


def test_the_table_has_a_line_a_strategy_and_columns_that_line_up(verdicts):
    lines = table(summarise(verdicts)).splitlines()
    assert [line.split()[0] for line in lines[2:]] == [*MAZE_STRATEGIES, "all"]
    assert len({len(line) for line in lines}) == 1
    assert "50.0 [15.0- 85.0]" in lines[2]


def test_looks_are_a_rate_of_their_own_where_there_are_any(verdicts):
    looks = np.where(np.arange(7) < 3, verdicts.asked, 255)
    summary = summarise(verdicts, formats=looks)
    assert summary["overall"]["format"] == wilson(3, 7)
    found = summary["strategies"]["bfs"]
    assert found["format"] == wilson(int((looks == 0).sum()), found["n"])
    assert table(summary).splitlines()[0].split() == ["strategy", "n", "format", *APART]
    assert "format" not in summarise(verdicts)["overall"] and "format" not in table(summarise(verdicts))


def test_percentages_are_equally_wide():
    assert percent(wilson(0, 200)) == "  0.0 [ 0.0-  1.9]"
    widths = {len(percent(wilson(hits, 200))) for hits in range(201)}
    assert widths == {len(percent(wilson(0, 0)))}
    assert percent(wilson(0, 0)) == "    - [ 0.0-100.0]"


def test_a_summary_is_strict_json(verdicts):
    """NaN is no JSON: other programs' readers refuse it."""
    text = json.dumps(summarise(verdicts, np.zeros(7, bool)), allow_nan=False)
    assert json.loads(text)["strategies"]["astar"]["n"] == 0
