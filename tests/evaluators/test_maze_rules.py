"""Hand-made outputs: one for every verdict, every reason, and every fault seen in other people's checkers."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators.maze_reasons import MAZE_ANSWER, MAZE_ILLEGAL
from lol_data.evaluators.maze_rules import judge_mazes
from lol_data.evaluators.verdicts import PARSE_REASONS, Verdicts
from lol_data.mazes import MAZE_STRATEGIES, Mazes
from lol_data.mazes_jsonl import read_maze, to_mazes
from lol_data.ragged import Ragged


def maze(size, edges, start, goal):
    return to_mazes([read_maze({"size": size, "edges": edges, "start": start, "goal": goal})])


def judge(problem, strategy, trace, answer=(), **more):
    rows = Ragged.from_rows([trace], np.int64), Ragged.from_rows([answer], np.int64)
    return judge_mazes(problem, [0], [MAZE_STRATEGIES.index(strategy)], *rows, **more).row(0)


# 0-1-2    A tree. From 4 every side is open; 8 hangs on 5, 6 on 7, 2 on 1 and 0 on 1.
#   |
# 3-4-5    Distances to the goal 8: 4 has 2, 5 and 7 have 1, 1 and 3 have 3.
#   | |
# 6-7 8
CROSS = maze(3, [[0, 1], [1, 2], [1, 4], [3, 4], [4, 5], [4, 7], [6, 7], [5, 8]], 4, 8)
PATH = [4, 5, 8]
CANONICAL = {
    "bfs": [4, 1, 5, 7, 3, 2, 0, 8],
    "dfs": [4, 1, 2, 1, 0, 1, 4, 5, 8],
    "astar": [4, 5, 8],
    "bidirectional": [4, 8],
    "dead_end_filling": [0, 2, 3, 6, 1, 7],
}


@pytest.mark.parametrize("strategy", MAZE_STRATEGIES)
def test_a_canonical_output_has_every_verdict(strategy):
    verdict = judge(CROSS, strategy, CANONICAL[strategy], PATH)
    assert verdict == {
        "asked": strategy,
        "parsed": True,
        "parse_reason": "ok",
        "legal": True,
        "first_illegal_step": None,
        "illegal_reason": "none",
        "complete": True,
        "canonical": True,
        "identified": ["dfs", "astar"] if strategy == "astar" else [strategy],  # straight there is a legal walk too
        "identified_exact": True,
        "adherent": True,
        "answer_correct": True,
        "answer_reason": "none",
        "joint": True,
    }
    json.dumps(verdict)


# (strategy, trace, first illegal step, reason)
ILLEGAL = [
    ("bfs", [], 0, "empty_trace"),
    ("dfs", [], 0, "empty_trace"),
    ("astar", [], 0, "empty_trace"),
    ("bidirectional", [], 0, "empty_trace"),
    ("dead_end_filling", [], 0, "empty_trace"),
    ("bfs", [1, 4], 0, "wrong_start"),
    ("dfs", [5, 8], 0, "wrong_start"),
    ("astar", [5, 8], 0, "wrong_start"),
    ("bidirectional", [8, 4], 0, "wrong_start"),
    ("bfs", [4, 9], 1, "out_of_range"),
    ("bfs", [-1], 0, "out_of_range"),
    ("dfs", [4, 256 + 1], 1, "out_of_range"),
    ("dfs", [1 << 40], 0, "out_of_range"),
    ("astar", [4, 5, 255], 2, "out_of_range"),
    ("astar", [-4], 0, "out_of_range"),
    ("bidirectional", [4, 200], 1, "out_of_range"),
    ("dead_end_filling", [0, -3], 1, "out_of_range"),
    ("bfs", [4, 1, 5, 7, 3, 2, 0, 8, 6], 8, "after_end"),
    ("dfs", [4, 5, 8, 5], 3, "after_end"),
    ("astar", [4, 5, 8, 7], 3, "after_end"),
    ("bidirectional", [4, 8, 5], 2, "after_end"),
    ("dead_end_filling", [0, 2, 3, 6, 1, 7, 4], 6, "after_end"),
    ("bfs", [4, 1, 4], 2, "already_closed"),
    ("astar", [4, 5, 4], 2, "already_closed"),
    ("bfs", [4, 8], 1, "not_in_frontier"),
    ("astar", [4, 0], 1, "not_in_frontier"),
    ("bidirectional", [4, 0], 1, "not_in_frontier"),
    ("bfs", [4, 1, 2], 2, "queue_order"),  # a child of 1 before 1's siblings
    ("bfs", [4, 1, 5, 7, 3, 8], 5, "queue_order"),  # a child of 5 before those of 1
    ("astar", [4, 1], 1, "lower_f_open"),
    ("bidirectional", [4, 5], 1, "wrong_side"),  # one side expanded twice
    ("bidirectional", [4, 4], 1, "already_closed"),
    ("dfs", [4, 8], 1, "not_adjacent"),
    ("dfs", [4, 4], 1, "not_adjacent"),
    ("dfs", [4, 1, 2, 3], 3, "not_adjacent"),  # numbers differ by one, but the row ends between them
    ("dfs", [4, 1, 2, 5], 3, "wall"),
    ("dfs", [4, 7, 8], 2, "wall"),
    ("dfs", [4, 1, 4], 2, "backed_up_too_early"),
    ("dfs", [4, 3, 4, 3], 3, "already_visited"),
    ("dead_end_filling", [4], 0, "start_or_goal_filled"),
    ("dead_end_filling", [0, 8], 1, "start_or_goal_filled"),  # the goal is a dead end, and stays
    ("dead_end_filling", [0, 0], 1, "already_filled"),
    ("dead_end_filling", [1], 0, "not_a_dead_end"),  # three open neighbours
    ("dead_end_filling", [7], 0, "not_a_dead_end"),  # two of them
]


@pytest.mark.parametrize(("strategy", "trace", "step", "reason"), ILLEGAL)
def test_illegal_step(strategy, trace, step, reason):
    verdict = judge(CROSS, strategy, trace, PATH)
    assert (verdict["legal"], verdict["first_illegal_step"], verdict["illegal_reason"]) == (False, step, reason)
    assert not (verdict["complete"] or verdict["canonical"] or verdict["joint"])
    assert verdict["answer_correct"]  # nonsense before a right answer changes neither verdict


def test_every_reason_has_a_case():
    assert {reason for *_, reason in ILLEGAL} == set(MAZE_ILLEGAL) - {"none"}
    assert {reason for _, reason in WRONG_ANSWERS} == set(MAZE_ANSWER) - {"none", "not_shortest"}


WRONG_ANSWERS = [
    ([], "empty_answer"),
    ([4, 5, 9], "out_of_range"),
    ([4, -1], "out_of_range"),
    ([5, 8], "wrong_start"),
    ([8, 5, 4], "wrong_start"),
    ([4, 5], "wrong_end"),
    ([4], "wrong_end"),
    ([4, 8], "not_adjacent"),
    ([4, 7, 8], "wall"),
    ([4, 1, 4, 5, 8], "repeated_cell"),
    ([4, 5, 8, 8], "not_adjacent"),
    ([4, 5, 8, 5], "repeated_cell"),
]


@pytest.mark.parametrize(("answer", "reason"), WRONG_ANSWERS)
def test_wrong_answer_after_a_right_trace(answer, reason):
    verdict = judge(CROSS, "bfs", CANONICAL["bfs"], answer)
    assert (verdict["answer_correct"], verdict["answer_reason"]) == (False, reason)
    assert verdict["legal"] and verdict["complete"] and verdict["canonical"] and verdict["adherent"]
    assert not verdict["joint"]


@pytest.mark.parametrize("strategy", MAZE_STRATEGIES)
def test_a_trace_that_stops_early_is_legal_and_not_complete(strategy):
    verdict = judge(CROSS, strategy, CANONICAL[strategy][:-1], PATH)
    assert verdict["legal"] and not verdict["complete"] and not verdict["canonical"] and not verdict["joint"]
    assert verdict["first_illegal_step"] is None and verdict["illegal_reason"] == "none"
    assert not verdict["identified_exact"]


@pytest.mark.parametrize(
    ("strategy", "trace"),
    [
        ("bfs", [4, 3, 7, 5, 1, 6, 8]),  # siblings in another order, and their children in that order
        ("dfs", [4, 7, 6, 7, 4, 3, 4, 5, 8]),
        ("dead_end_filling", [6, 7, 0, 3, 2, 1]),
    ],
)
def test_another_order_among_equals_is_legal_and_not_canonical(strategy, trace):
    verdict = judge(CROSS, strategy, trace, PATH)
    assert verdict["joint"] and verdict["complete"] and not verdict["canonical"]
    assert verdict["identified"] == [strategy]


def test_a_bfs_trace_is_no_dfs_trace():
    verdict = judge(CROSS, "dfs", CANONICAL["bfs"], PATH)
    assert verdict["identified"] == ["bfs"] and verdict["identified_exact"]
    assert not verdict["adherent"] and not verdict["legal"] and not verdict["joint"] and verdict["answer_correct"]


def test_a_trace_may_fit_several_strategies():
    corridor = maze(3, [[0, 1], [1, 2], [2, 5]], 0, 5)
    verdict = judge(corridor, "dfs", [0, 1, 2, 5], [0, 1, 2, 5])
    assert verdict["identified"] == ["bfs", "dfs", "astar"] and verdict["identified_exact"] and verdict["joint"]


def test_the_longest_legal_prefix_identifies_when_no_whole_trace_fits():
    verdict = judge(CROSS, "dfs", [4, 1, 2, 1, 0, 0])
    assert verdict["identified"] == ["dfs"] and not verdict["identified_exact"]
    assert verdict["adherent"] and not verdict["legal"] and not verdict["joint"]
    assert judge(CROSS, "dfs", [4, 1, 8])["identified"] == []  # bfs and dfs are level
    assert judge(CROSS, "dead_end_filling", [0, 0])["identified"] == []  # one legal step says nothing


def test_queue_order_is_not_cell_order():
    # Start 9 of an 8 x 8 maze, its four neighbours open, and a child behind each of them.
    problem = maze(8, [[1, 9], [9, 10], [9, 17], [8, 9], [0, 1], [10, 11], [17, 25], [8, 16]], 9, 16)
    path = [9, 8, 16]
    right = judge(problem, "bfs", [9, 1, 10, 17, 8, 0, 11, 25, 16], path)
    assert right["canonical"] and right["joint"]
    # Among siblings the order is free; the children must then follow in the order of their parents.
    by_id = judge(problem, "bfs", [9, 1, 8, 10, 17, 0, 16], path)
    assert by_id["legal"] and by_id["complete"] and not by_id["canonical"]
    mixed = judge(problem, "bfs", [9, 1, 8, 10, 17, 0, 11, 16], path)
    assert (mixed["first_illegal_step"], mixed["illegal_reason"]) == (6, "queue_order")


def test_astar_ties():
    # Two ways of equal length to the goal, around the wall between 0 and 3.
    ring = maze(3, [[0, 1], [1, 2], [2, 5], [5, 8], [0, 3], [3, 6], [6, 7], [7, 8]], 0, 8)
    assert judge(ring, "astar", [0, 1, 2, 5, 8], [0, 3, 6, 7, 8])["canonical"]
    other = judge(ring, "astar", [0, 3, 1, 6, 7, 8], [0, 1, 2, 5, 8])
    assert other["legal"] and other["complete"] and not other["canonical"] and other["answer_correct"]


def test_loops():
    # 0-1-2   A ring with a tail. The way round by 6 is longer.
    # |   |
    # 3   5
    # | . |
    # 6-7-8
    ring = maze(3, [[0, 1], [1, 2], [2, 5], [5, 8], [0, 3], [3, 6], [6, 7], [7, 8]], 0, 5)
    short, long = [0, 1, 2, 5], [0, 3, 6, 7, 8, 5]
    assert judge(ring, "bfs", [0, 1, 3, 2, 6, 5], short)["joint"]
    assert judge(ring, "bfs", [0, 3, 1, 6, 2, 7, 5], short)["joint"]
    assert judge(ring, "dfs", long, long)["answer_reason"] == "not_shortest"
    assert judge(ring, "dfs", long, short)["joint"]
    nothing_to_fill = judge(ring, "dead_end_filling", [], short)
    assert nothing_to_fill["legal"] and nothing_to_fill["complete"] and nothing_to_fill["joint"]
    assert judge(ring, "dead_end_filling", [1], short)["illegal_reason"] == "after_end"


def test_bidirectional_turns_and_touch():
    corridor = maze(3, [[0, 1], [1, 2], [2, 5], [5, 4], [4, 3], [3, 6], [6, 7], [7, 8]], 0, 8)
    assert not judge(corridor, "bidirectional", [0, 8, 1, 7, 2, 6, 5])["complete"]
    # 3 is expanded next to 4, which the start's side knows from 5: they have met, though no cell was expanded twice.
    assert judge(corridor, "bidirectional", [0, 8, 1, 7, 2, 6, 5, 3])["complete"]
    beyond = judge(corridor, "bidirectional", [0, 8, 1, 7, 2, 6, 5, 3, 4])
    assert (beyond["first_illegal_step"], beyond["illegal_reason"]) == (8, "after_end")
    joined_too_early = judge(corridor, "bidirectional", [0, 8, 1, 7, 4])
    assert (joined_too_early["first_illegal_step"], joined_too_early["illegal_reason"]) == (4, "not_in_frontier")
    one_sided = judge(corridor, "bidirectional", [0, 1, 2, 5, 4, 3, 6, 7, 8])
    assert (one_sided["first_illegal_step"], one_sided["illegal_reason"]) == (1, "wrong_side")
    goal_first = judge(corridor, "bidirectional", [0, 8, 7])
    assert (goal_first["first_illegal_step"], goal_first["illegal_reason"]) == (2, "wrong_side")


def test_bidirectional_passes_over_an_empty_side():
    apart = maze(3, [[0, 1], [7, 8], [6, 7], [3, 6]], 0, 8)  # the goal cannot be reached
    verdict = judge(apart, "bidirectional", [0, 8, 1, 7, 6, 3])
    assert verdict["legal"] and not verdict["complete"]
    assert judge(apart, "bidirectional", [0, 8, 1, 7, 6, 3, 0])["illegal_reason"] == "already_closed"
    assert judge(apart, "bfs", [0, 1, 8])["illegal_reason"] == "not_in_frontier"
    assert judge(apart, "bfs", [0, 1], [0, 1])["answer_reason"] == "wrong_end"


@pytest.mark.parametrize("code", range(1, len(PARSE_REASONS)))
def test_an_unparsed_output_has_no_other_verdict(code):
    verdict = judge(CROSS, "bfs", CANONICAL["bfs"], PATH, parse_reason=[code])
    assert verdict["parse_reason"] == PARSE_REASONS[code]
    assert verdict["identified"] == [] and verdict["first_illegal_step"] is None
    assert not any(value for name, value in verdict.items() if isinstance(value, bool))


def test_rows_point_at_problems_and_table_has_names():
    two = to_mazes([read_maze({"size": 3, "edges": [[0, 1], [1, 2]], "start": a, "goal": 2 - a}) for a in (0, 2)])
    traces = Ragged.from_rows([[2, 1, 0], [0, 1, 2], [2, 1, 0]])
    verdicts = judge_mazes(two, [1, 0, 0], [0, 1, 2], traces, traces, [0, 0, 2])
    assert verdicts.joint.tolist() == [True, True, False]
    table = verdicts.table()
    assert table["asked"].to_pylist() == ["bfs", "dfs", "astar"]
    assert table["identified"].to_pylist() == [["bfs", "dfs", "astar"]] * 2 + [[]]
    assert table["parse_reason"].to_pylist() == ["ok", "ok", "bad_token"]
    assert [verdicts.row(k)["identified"] for k in range(3)] == table["identified"].to_pylist()
    assert len(judge_mazes(two, [], [], Ragged.from_rows([]), Ragged.from_rows([])).table()) == 0


def test_arguments_that_do_not_fit_are_refused():
    one = Ragged.from_rows([[4]])
    with pytest.raises(ValueError, match="rows must be in 0 to 0"):
        judge_mazes(CROSS, [1], [0], one, one)
    with pytest.raises(ValueError, match="asked must be in 0 to 4"):
        judge_mazes(CROSS, [0], [5], one, one)
    with pytest.raises(ValueError, match="rows must be integers"):
        judge_mazes(CROSS, [0.0], [0], one, one)
    with pytest.raises(ValueError, match="0 answers for 1 rows"):
        judge_mazes(CROSS, [0], [0], one, Ragged.from_rows([]))
    with pytest.raises(ValueError, match="traces must be integers"):
        judge_mazes(CROSS, [0], [0], Ragged.from_rows([[0.5]], np.float64), one)
    with pytest.raises(ValueError, match="offsets"):
        judge_mazes(CROSS, [0], [0], Ragged(np.zeros(1, np.uint8), np.array([0, 5])), one)
    for cell, bits in ((0, 1), (0, 8), (8, 2), (8, 4), (2, 2), (3, 8), (0, 16), (0, 4)):  # borders, and one-sided ones
        openings = CROSS.openings.copy()
        openings[0, cell] |= bits
        with pytest.raises(ValueError, match="maze 0"):
            judge_mazes(Mazes(3, CROSS.id, openings, CROSS.start, CROSS.goal), [0], [0], one, one)
    with pytest.raises(ValueError, match="maze 0"):
        judge_mazes(Mazes(3, CROSS.id, CROSS.openings, CROSS.start, CROSS.start), [0], [0], one, one)


numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 260) | st.integers(0, 8)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.lists(numbers), st.lists(numbers), st.integers(0, 4)), min_size=1, max_size=5))
def test_any_integers_get_total_verdicts(outputs):
    traces, answers, asked = zip(*outputs, strict=True)
    verdicts = judge_mazes(
        CROSS,
        np.zeros(len(outputs), int),
        asked,
        Ragged.from_rows(traces, np.int64),
        Ragged.from_rows(answers, np.int64),
    )
    check_consistency(verdicts, [len(trace) for trace in traces])


def check_consistency(v: Verdicts, lengths):
    """What must hold between the verdicts on any parsed outputs."""
    assert (v.legal == (v.first_illegal_step == -1)).all()
    assert (v.legal == (v.illegal_reason == 0)).all()
    assert (v.first_illegal_step < np.maximum(lengths, 1)).all()
    assert (v.complete <= v.legal).all() and (v.canonical <= v.complete).all()
    asked_bit = (v.identified >> v.asked & 1).astype(bool)
    assert (v.adherent == asked_bit).all()
    assert (v.complete == (asked_bit & v.identified_exact)).all()
    assert (v.answer_correct == (v.answer_reason == 0)).all()
    assert (v.joint == (v.adherent & v.legal & v.complete & v.answer_correct)).all()
    inexact = v.identified[~v.identified_exact].astype(int)
    assert (inexact & (inexact - 1) == 0).all(), "at most one strategy by prefix"
    assert (v.identified < 32).all() and v.parsed.all()
