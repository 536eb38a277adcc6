"""Other people's maze outputs and problems by the line: whatever is on a line, every other line is judged."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.evaluators.maze_jsonl import check_lines
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.jsonl import LineError, to_line
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import goal_reachable, problem_record, read_maze, to_mazes
from lol_data.solvers.maze_jsonl import solve_lines

GOOD = {
    "id": "a",
    "size": 3,
    "edges": [[0, 1], [1, 2], [5, 2]],
    "start": 0,
    "goal": 5,
    "strategy": "bfs",
    "trace": [0, 1, 2, 5],
    "answer": [0, 1, 2, 5],
}


def changed(**fields):
    return json.dumps({**GOOD, **fields})


def without(name):
    return json.dumps({key: value for key, value in GOOD.items() if key != name})


BAD = [
    ("{", "not JSON"),
    ("nothing", "not JSON"),
    ('{"id": 1} {"id": 2}', "not JSON"),
    (b"\xff\xfe{}", "not UTF-8"),
    ("[1]", "not a JSON object but a list"),
    ("null", "not a JSON object but null"),
    ("[" * 1000 + "]" * 1000, "nested too deep"),
    ('{"trace": ' + "[" * 100_000, "nested too deep"),
    ('{"id": ' + "9" * 5000 + "}", "a number is too long"),
    (" " * (1 << 20) + "{}", "longer than"),
    (changed()[:-1] + ', "trace": [0]}', "a field is given twice"),
    *((without(name), f"{name} is missing") for name in GOOD if name != "id"),
    (changed(id=1.5), "id must be a string or an integer, not a fraction"),
    (changed(id=True), "id must be a string or an integer, not true"),
    (changed(size=2), "size 2 is not in 3 to 15"),
    (changed(size=16), "size 16 is not in 3 to 15"),
    (changed(size=10**400), "size a huge number"),
    (changed(size=3.0), "size must be an integer, not a fraction"),
    (changed(size=True), "size must be an integer, not true"),
    (changed(size="3"), "size must be an integer, not a string"),
    (changed(start=float("nan")), "NaN is no number"),
    (changed(start=float("-inf")), "-Infinity is no number"),
    (changed(start=9), "start: 9 is outside the grid"),
    (changed(goal=-1), "goal: -1 is outside the grid"),
    (changed(start=5), "start and goal are the same cell"),
    (changed(edges={}), "edges must be a list of pairs, not an object"),
    (changed(edges=[[0, 1], [1]]), "edges[1] must be a pair"),
    (changed(edges=[[0, 1, 2]]), "edges[0] must be a pair"),
    (changed(edges=["01"]), "edges[0] must be a pair"),
    (changed(edges=[[0, True]]), "edges[0] must be an integer, not true"),
    (changed(edges=[[2, 3]]), "edges[0] joins 2 and 3, which are no neighbours"),
    (changed(edges=[[0, 4]]), "edges[0] joins 0 and 4"),
    (changed(edges=[[4, 4]]), "edges[0] joins 4 and 4"),
    (changed(edges=[[6, 9]]), "edges[0]: 9 is outside the grid"),
    (changed(edges=[[-1, 0]]), "edges[0]: -1 is outside the grid"),
    (changed(edges=[[0, 1], [1, 0]]), "edges[1] gives the passage between 0 and 1 a second time"),
    (changed(strategy="bsf"), 'not "bsf"'),
    (changed(strategy=0), "not an integer"),
    (changed(strategy=["bfs"]), "not a list"),
    (changed(strategy="x\n" * 100), "strategy must be one of"),
    (changed(trace="0125"), "trace must be a list"),
    (changed(trace=[0, 1.0]), "trace[1] must be an integer, not a fraction"),
    (changed(trace=[False, 1]), "trace[0] must be an integer, not false"),
    (changed(trace=[0, None]), "trace[1] must be an integer, not null"),
    (changed(trace=[0] * 5000), "trace has 5000 entries"),
    (changed(answer=None), "answer must be a list"),
    (changed(answer=[[0]]), "answer[0] must be an integer, not a list"),
]


@pytest.mark.parametrize(("line", "error"), BAD, ids=[str(k) for k in range(len(BAD))])
def test_a_bad_line_is_named_and_the_next_one_judged(line, error):
    before, bad, after = check_lines([json.dumps(GOOD), line, json.dumps(GOOD)])
    assert before["joint"] and after["joint"] and (before["line"], after["line"]) == (1, 3)
    assert set(bad) == {"line", "id", "error"} and bad["line"] == 2
    assert error in bad["error"] and "\n" not in bad["error"] and len(bad["error"]) < 250
    assert bad["id"] in (None, "a")


def test_a_good_line_gives_every_verdict_by_name():
    (verdict,) = check_lines([json.dumps(GOOD).encode()])
    assert verdict == {
        "line": 1,
        "id": "a",
        "strategy": "bfs",
        "parsed": True,
        "parse_reason": "ok",
        "legal": True,
        "first_illegal_step": None,
        "illegal_reason": "none",
        "complete": True,
        "canonical": True,
        "identified": ["bfs", "dfs", "astar"],
        "identified_exact": True,
        "adherent": True,
        "answer_correct": True,
        "answer_reason": "none",
        "joint": True,
    }


def test_cells_outside_the_grid_are_judged_not_refused():
    trace, answer = check_lines([changed(trace=[0, 1, 10**30]), changed(answer=[0, -1])])
    assert (trace["first_illegal_step"], trace["illegal_reason"]) == (2, "out_of_range") and trace["answer_correct"]
    assert answer["answer_reason"] == "out_of_range" and answer["legal"]
    (empty,) = check_lines([changed(trace=[], answer=[])])
    assert (empty["illegal_reason"], empty["answer_reason"]) == ("empty_trace", "empty_answer")


def test_line_numbers_blank_lines_byte_order_mark_and_extra_fields():
    lines = [b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), b"\n", "   \r\n", changed(id=None, note=[[1]]), without("id")]
    results = list(check_lines(lines))
    assert [result["line"] for result in results] == [1, 4, 5]
    assert [result["id"] for result in results] == ["a", None, None]
    assert all(result["joint"] for result in results)
    assert list(check_lines([])) == []


def test_sizes_may_mix_and_lines_pass_through_in_order():
    lines, strategies = [], []
    for k, size in enumerate((3, 8, 15)):
        mazes = generate_mazes(MazeSettings(size=size), 1, 0, 2000).mazes
        lines += [(k, to_line(problem_record(mazes, row))) for row in range(len(mazes))]
    order = np.random.default_rng(0).permutation(len(lines))
    lines = [lines[k] for k in order]
    strategies = [MAZE_STRATEGIES[k % 5] for k in range(len(lines))]
    asked = [line[:-1] + f',"strategy":"{name}"}}' for (_, line), name in zip(lines, strategies, strict=True)]
    solved = list(solve_lines(asked))
    assert len(solved) == len(lines) and all(record["status"] == "solved" for record in solved)
    assert [record["strategy"] for record in solved] == strategies
    assert [record["size"] for record in solved] == [(3, 8, 15)[k] for k, _ in lines]
    verdicts = list(check_lines(map(to_line, solved)))
    assert [verdict["line"] for verdict in verdicts] == list(range(1, len(lines) + 1))
    assert all(verdict["joint"] and verdict["canonical"] for verdict in verdicts)
    assert [verdict["id"] for verdict in verdicts] == [record["id"] for record in solved]


def test_solve_gives_one_object_per_strategy_or_says_why_not():
    unreachable = changed(id=2, edges=[[0, 1], [5, 2]])
    problem = {key: GOOD[key] for key in ("id", "size", "edges", "start", "goal")}
    results = list(solve_lines([json.dumps(problem), "{", unreachable], "bidirectional"))
    assert results[0] == {
        **problem,
        "strategy": "bidirectional",
        "trace": [0, 5, 1],
        "answer": [0, 1, 2, 5],
        "status": "solved",
    }
    assert results[1]["status"] == "malformed" and results[1]["line"] == 2 and "not JSON" in results[1]["error"]
    assert results[2]["status"] == "no_solution" and results[2]["id"] == 2 and "trace" not in results[2]
    every = list(solve_lines([json.dumps(problem)]))
    assert [record["strategy"] for record in every] == list(MAZE_STRATEGIES)
    assert all(verdict["joint"] for verdict in check_lines(map(to_line, every)))
    assert [record["strategy"] for record in solve_lines([json.dumps(GOOD)])] == ["bfs"]
    assert next(solve_lines([changed(strategy="x")]))["status"] == "malformed"
    with pytest.raises(UsageError, match="unknown strategy"):
        solve_lines([], "x")


def test_problems_round_trip():
    mazes = generate_mazes(MazeSettings(size=5), 3, 0, 20).mazes
    back = to_mazes([read_maze(problem_record(mazes, row)) for row in range(20)])
    assert (back.openings == mazes.openings).all() and (back.start == mazes.start).all()
    assert (back.goal == mazes.goal).all() and goal_reachable(back).all()


def test_reachable():
    far = [[0, 3], [3, 6], [6, 7], [7, 8], [8, 5], [5, 2], [2, 1]]  # every direction, against the order of cells
    apart = [edge for edge in far if edge != [8, 5]]
    mazes = to_mazes([read_maze({"size": 3, "edges": edges, "start": 0, "goal": 1}) for edges in (far, apart, [])])
    assert goal_reachable(mazes).tolist() == [True, False, False]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.text(max_size=40)
        | st.dictionaries(st.sampled_from(sorted(GOOD)), values).map(lambda fields: changed(**fields)),
        max_size=6,
    )
)
def test_no_line_stops_the_rest(lines):
    results = list(check_lines([*lines, json.dumps(GOOD)]))
    assert results[-1].get("joint") and len(results) <= len(lines) + 1
    for result in [*results, *solve_lines(lines)]:
        json.dumps(result, allow_nan=False)
        assert "error" not in result or "\n" not in result["error"]


def test_errors_are_value_errors():
    with pytest.raises(LineError, match="size is missing"):
        read_maze({})
    assert issubclass(LineError, ValueError)
