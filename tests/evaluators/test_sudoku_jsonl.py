"""Other people's sudoku outputs by the line: whatever is on a line, every other line is judged."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators.sudoku_jsonl import check_lines
from lol_data.sudokus import SUDOKU_STRATEGIES
from lol_data.sudokus_jsonl import steps_of

from .sudoku_reference import canonical, digits_of, random_problems

PUZZLE = "123456789456789123789123456234567891567891234891234567345.78912.78.12345.1234567."
ANSWER = PUZZLE.replace("345.78912", "345678912").replace(".78.12345", "678912345").replace(".1234567.", "912345678")
GOOD = {
    "id": "a",
    "puzzle": PUZZLE,
    "strategy": "naked_single",
    "steps": [[57, 6], [66, 9], [72, 9], [80, 8], [63, 6]],
    "answer": ANSWER,
}


def changed(**fields):
    return json.dumps({**GOOD, **fields})


def without(name):
    return json.dumps({key: value for key, value in GOOD.items() if key != name})


BAD = [
    ("{", "not JSON"),
    ("nothing", "not JSON"),
    (b"\xff\xfe{}", "not UTF-8"),
    ("[1]", "not a JSON object but a list"),
    (PUZZLE, "not JSON"),
    (changed()[:-1] + ', "steps": []}', "a field is given twice"),
    *((without(name), f"{name} is missing") for name in ("puzzle", "steps", "answer")),
    (without("strategy"), "strategy must be one of"),
    (changed(id=1.5), "id must be a string or an integer"),
    (changed(strategy="bfs"), "strategy must be one of"),
    (changed(puzzle=PUZZLE[:80]), "80 characters"),
    (changed(puzzle=PUZZLE + "."), "82 characters"),
    (changed(puzzle=PUZZLE[:80] + "x"), "'x'"),
    (changed(puzzle=81), "puzzle must be"),
    (changed(puzzle="11" + "." * 79), "conflict: 1 stands twice in row 1"),
    (
        changed(puzzle="....................1..6.9...841...7..2.5.6..6...124...2.5..9...................."),
        "conflict: 1 stands twice in column 5",
    ),
    (changed(steps=None), "steps must be a list"),
    (changed(steps=[[57, 6], 63]), "steps[1]"),
    (changed(steps=[[57, 0]]), "steps[0]: digit 0 is not in 1 to 9"),
    (changed(steps=[[57, 10]]), "digit 10 is not in 1 to 9"),
    (changed(steps=[[81, 1]]), "cell 81 is not in 0 to 80"),
    (changed(steps=[[-1, 1]]), "cell -1 is not in 0 to 80"),
    (changed(steps=[[18, 57, 6]]), "steps[0]"),
    (changed(strategy="hidden_single", steps=[[27, 57, 6]]), "unit 27"),
    (changed(strategy="backtracking", steps=[["redo", 57, 6]]), "steps[0]"),
    (changed(strategy="propagation", steps=[[57, 6]]), "steps[0]"),
    (changed(answer=None), "answer must be a string"),
    (changed(answer=[6] * 81), "answer must be a string"),
]


@pytest.mark.parametrize(("line", "error"), BAD, ids=[str(k) for k in range(len(BAD))])
def test_a_bad_line_is_named_and_the_next_one_judged(line, error):
    before, bad, after = check_lines([json.dumps(GOOD), line, json.dumps(GOOD)])
    assert before["joint"] and after["joint"] and (before["line"], after["line"]) == (1, 3)
    assert set(bad) == {"line", "id", "error"} and bad["line"] == 2
    assert error in bad["error"] and "\n" not in bad["error"] and len(bad["error"]) < 250


def test_a_good_line_gives_every_verdict_by_name():
    (verdict,) = check_lines([json.dumps(GOOD).encode()])
    assert verdict == {
        "line": 1,
        "id": "a",
        "strategy": "naked_single",
        "parsed": True,
        "parse_reason": "ok",
        "legal": True,
        "first_illegal_step": None,
        "illegal_reason": "none",
        "complete": True,
        "canonical": True,
        "identified": ["naked_single"],
        "identified_exact": True,
        "adherent": True,
        "answer_correct": True,
        "answer_reason": "none",
        "joint": True,
    }


@pytest.mark.parametrize(
    ("steps", "step", "reason"),
    [
        ([], 0, "empty_trace"),
        ([[57, 6], [57, 6]], 1, "already_filled"),
        ([[0, 2]], 0, "given_changed"),
        ([[57, 6], [66, 6]], 1, "digit_in_peers"),
    ],
)
def test_illegal_steps_are_judged(steps, step, reason):
    (verdict,) = check_lines([changed(steps=steps)])
    assert (verdict["first_illegal_step"], verdict["illegal_reason"]) == (step, reason) and verdict["answer_correct"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty_answer"),
        (ANSWER[:80], "wrong_length"),
        (ANSWER + "1", "wrong_length"),
        (PUZZLE, "out_of_range"),
        (ANSWER[:80] + "x", "out_of_range"),
        (ANSWER[:80] + "٨", "out_of_range"),  # a digit, but not one of ours
        ("2" + ANSWER[1:], "given_changed"),
        (ANSWER[:80] + "9", "duplicate_in_unit"),
    ],
)
def test_wrong_answers_are_judged(answer, reason):
    (verdict,) = check_lines([changed(answer=answer)])
    assert (verdict["answer_correct"], verdict["answer_reason"]) == (False, reason) and verdict["canonical"]


def test_every_strategy_comes_back_from_its_steps():
    lines = []
    for puzzle, solution, traces in random_problems(3, 31):
        for strategy in SUDOKU_STRATEGIES:
            steps = steps_of(strategy, np_symbols(traces[strategy]))
            grids = {"puzzle": "".join(map(str, puzzle)), "answer": "".join(map(str, solution))}
            lines.append(json.dumps({"id": len(lines), "strategy": strategy, "steps": steps, **grids}))
    verdicts = list(check_lines(["", *lines]))
    assert [verdict["id"] for verdict in verdicts] == list(range(15)) and verdicts[0]["line"] == 2
    assert [verdict["strategy"] for verdict in verdicts] == list(SUDOKU_STRATEGIES) * 3
    assert all(verdict["joint"] and verdict["canonical"] for verdict in verdicts)


def test_the_good_line_is_the_canonical_one():
    symbols = canonical(digits_of(PUZZLE), "naked_single")
    assert steps_of("naked_single", np_symbols(symbols)) == GOOD["steps"]
    assert list(check_lines([])) == []


def np_symbols(trace):
    return np.array(trace, np.uint8)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 82) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.text(max_size=40)
        | st.dictionaries(st.sampled_from(sorted(GOOD)), values).map(lambda fields: changed(**fields))
        | st.tuples(st.sampled_from(SUDOKU_STRATEGIES), st.lists(st.lists(st.integers(-1, 81), max_size=3))).map(
            lambda pair: changed(strategy=pair[0], steps=pair[1])
        ),
        max_size=6,
    )
)
def test_no_line_stops_the_rest(lines):
    results = list(check_lines([*lines, json.dumps(GOOD)]))
    assert results[-1].get("joint") and len(results) <= len(lines) + 1
    for result in results:
        json.dumps(result, allow_nan=False)
        assert "error" not in result or "\n" not in result["error"]
