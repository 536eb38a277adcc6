"""Lines of sudokus: what `solve` says of each, and steps to symbols and back."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.solvers.sudoku_jsonl import MOST_TRIES, solve_lines
from lol_data.solvers.sudoku_tracing import trace_sudokus
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE
from lol_data.sudokus_jsonl import parse_steps, steps_of

from .plain_sudoku import PEERS, UNITS, batch, digits_of, solved_grid, with_clues

BY_HAND = "..46789126721953481983425678.9761423426853791713924856961537284287419635.4.286179"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
CONFLICT = "....................1..6.9...841...7..2.5.6..6...124...2.5..9...................."
NO_SOLUTION = ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4........."
SIX = "92..8.65.6..2.43..3..5.9.72.7.953.......7.......6..5....142..3.....31..6.6.7..1.."
SEVENTEEN = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"
STEPS = {
    "naked_single": [[28, 5], [74, 5], [1, 3], [72, 3], [0, 5]],
    "hidden_single": [[3, 28, 5], [8, 72, 3], [8, 74, 5], [9, 0, 5], [10, 1, 3]],
    "cross_hatching": [[24, 72, 3], [21, 28, 5], [24, 74, 5], [18, 1, 3], [18, 0, 5]],
    "propagation": [[[1, 3], [28, 5], [72, 3], [74, 5]], [[0, 5]]],
    "backtracking": [
        *(["try", 28, 5], ["try", 74, 5], ["try", 0, 3], ["undo", 0], ["try", 0, 5]),
        *(["try", 1, 3], ["try", 72, 3]),
    ],
}


def solve(*lines: str | bytes, strategy: str | None = None) -> list[dict]:
    return list(solve_lines(lines, strategy))


# ---- solving ----


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_a_solved_line(strategy):
    (result,) = solve(json.dumps({"id": "a", "puzzle": BY_HAND}), strategy=strategy)
    assert result == {
        "id": "a",
        "puzzle": BY_HAND,
        "strategy": strategy,
        "steps": STEPS[strategy],
        "answer": SOLUTION,
        "status": "solved",
    }


def test_the_strategy_of_the_line_and_all_of_them():
    lines = [json.dumps({"puzzle": BY_HAND, "strategy": "propagation"}), BY_HAND.replace(".", "0").encode() + b"\r\n"]
    results = solve(*lines)
    assert [result["strategy"] for result in results] == ["propagation", *SUDOKU_STRATEGIES]
    assert [result["steps"] for result in results] == [STEPS["propagation"], *STEPS.values()]
    assert [result["strategy"] for result in solve(*lines, strategy="naked_single")] == ["naked_single"] * 2


@pytest.mark.parametrize(
    ("puzzle", "status", "more"),
    [
        (CONFLICT, "conflict", {}),
        ("5..2.4.96.711697.54287...425.964.28319...5.142...129..8...835.97.25263719..9..4.8", "conflict", {}),
        (NO_SOLUTION, "no_solution", {}),
        (SIX, "multiple_solutions", {"solutions": 6}),
        (
            "349618572782359000651742389273895000195476238864231957527164893918523764436987125",
            "multiple_solutions",
            {"solutions": 2},
        ),
        (
            "........2.2..5.8.1......3..7.4.9........8541.....37...18....9....7..9...2...4..58",
            "multiple_solutions",
            {"solutions": 26},
        ),
        ("49675.8..21869375..5.48..69" + "." * 54, "multiple_solutions", {"solutions": 100}),
    ],
)
def test_puzzles_without_exactly_one_solution(puzzle, status, more):
    (result,) = solve(puzzle, strategy="hidden_single")
    assert result == {"puzzle": puzzle, "strategy": "hidden_single", "status": status} | more


def test_one_clue_more_makes_the_solution_unique():
    puzzle = "........2.2..5.8.1......3..7.4.9........8541...5.37...18....9....7..9...2...4..58"
    assert solve(puzzle, strategy="propagation")[0]["status"] in ("solved", "stuck")


def test_stuck_says_how_far_it_came():
    results = {result["strategy"]: result for result in solve(SEVENTEEN)}
    naked = results["naked_single"]
    assert naked["status"] == "stuck" and naked["placements"] == len(naked["steps"]) == 1
    ((cell, digit),) = naked["steps"]
    assert digits_of(naked["answer"]) == [digit if c == cell else given for c, given in enumerate(digits_of(SEVENTEEN))]
    assert results["hidden_single"]["status"] == "solved"
    assert set(digits_of(results["hidden_single"]["answer"])) == set(range(1, 10))
    back = results["backtracking"]
    tries = sum(step[0] == "try" for step in back["steps"])
    assert back["status"] == "stuck" and tries == MOST_TRIES
    assert back["placements"] == 2 * tries - len(back["steps"])
    assert back["error"] == f"gave up after {MOST_TRIES} tries"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (BY_HAND[:80], "puzzle has 80 characters, not 81"),
        (BY_HAND + ".", "puzzle has 82 characters, not 81"),
        ("x" + BY_HAND[1:], "puzzle has 'x' at character 0"),
        (BY_HAND[:80] + "²", r"puzzle has '\xb2' at character 80"),
        (json.dumps({"puzzle": BY_HAND[:80] + " "}), "puzzle has ' ' at character 80"),
        (json.dumps({"puzzle": 7}), "puzzle must be a string of 81 characters"),
        (json.dumps({"id": "a"}), "puzzle is missing"),
        (json.dumps({"id": 1.5, "puzzle": BY_HAND}), "id must be a string or an integer"),
        (json.dumps({"puzzle": BY_HAND, "strategy": "bfs"}), "strategy must be one of naked_single, "),
        (json.dumps({"puzzle": BY_HAND, "strategy": []}), "strategy must be one of naked_single, "),
        (json.dumps([BY_HAND]), "not a JSON object but a list"),
        ('{"puzzle"', "not JSON"),
        (b"\xff" * 81, "not UTF-8: byte 0"),
    ],
)
def test_a_malformed_line_stops_nobody(line, error):
    good = json.dumps({"puzzle": BY_HAND, "strategy": "naked_single"})
    before, bad, after = solve(good, "\n", line, good)
    assert before == after and before["status"] == "solved"
    assert bad["line"] == 3 and bad["status"] == "malformed" and "\n" not in bad["error"]
    assert bad["error"].startswith(error)


def test_the_id_of_a_malformed_line_is_kept():
    assert solve('{"id": "p7", "puzzle": "12"}')[0]["id"] == "p7"


def test_an_unknown_strategy_is_refused_at_once():
    with pytest.raises(UsageError, match="unknown strategy 'bfs'"):
        solve_lines([BY_HAND], "bfs")


def test_answers_are_solutions():
    rng = random.Random(2)
    puzzles = [with_clues(solved_grid(rng), 36, rng) for _ in range(10)]
    results = solve(*("".join(map(str, puzzle)) for puzzle in puzzles))
    solved = [result for result in results if result["status"] == "solved"]
    assert solved
    for result in solved:
        answer = digits_of(result["answer"])
        assert all({answer[cell] for cell in unit} == set(range(1, 10)) for unit in UNITS)
        assert all(given in (0, digit) for given, digit in zip(digits_of(result["puzzle"]), answer, strict=True))


# ---- steps and symbols ----


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_traces_survive_the_way_through_steps(strategy):
    rng = random.Random(4)
    puzzles = [with_clues(solved_grid(rng), clues, rng) for clues in (25, 30, 40, 81)]
    for trace in trace_sudokus(batch(puzzles)).traces[strategy]:
        steps = json.loads(json.dumps(steps_of(strategy, trace)))
        back = parse_steps(strategy, steps)
        assert isinstance(back, np.ndarray) and back.dtype == np.uint8
        assert np.array_equal(back, trace)


cells, digits, units = st.integers(0, 80), st.integers(1, 9), st.integers(0, 26)
placements = st.tuples(cells, digits).map(list)
moves = st.one_of(st.tuples(st.just("try"), cells, digits), st.tuples(st.just("undo"), cells)).map(list)
FORMS = {
    "naked_single": placements,
    "hidden_single": st.tuples(units, cells, digits).map(list),
    "cross_hatching": st.tuples(units, cells, digits).map(list),
    "propagation": st.lists(placements, max_size=5),
    "backtracking": moves,
}


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
@given(data=st.data())
def test_steps_survive_the_way_through_symbols(strategy, data):
    steps = data.draw(st.lists(FORMS[strategy], max_size=20))
    symbols = parse_steps(strategy, steps)
    assert isinstance(symbols, np.ndarray)
    assert steps_of(strategy, symbols) == steps


def test_symbols_by_hand():
    def symbols(strategy, steps):
        return parse_steps(strategy, steps).tolist()

    assert symbols("naked_single", [[80, 9]]) == [80, DIGIT + 9]
    assert symbols("hidden_single", [[26, 80, 9]]) == [UNIT + 26, 80, DIGIT + 9]
    assert symbols("cross_hatching", [[0, 0, 1]]) == [UNIT, 0, DIGIT + 1]
    assert symbols("propagation", [[[0, 1], [5, 2]], []]) == [0, DIGIT + 1, 5, DIGIT + 2, WAVE, WAVE]
    assert symbols("backtracking", [["try", 3, 4], ["undo", 3]]) == [3, DIGIT + 4, UNDO, 3]


@pytest.mark.parametrize(
    ("strategy", "steps", "reason"),
    [
        ("naked_single", [[0, 0]], "steps[0]: digit 0 is not in 1 to 9"),
        ("naked_single", [[0, 1], [3, 10]], "steps[1]: digit 10 is not in 1 to 9"),
        ("naked_single", [[81, 1]], "steps[0]: cell 81 is not in 0 to 80"),
        ("naked_single", [[-1, 1]], "steps[0]: cell -1 is not in 0 to 80"),
        ("naked_single", [[10**30, 1]], "steps[0]: cell a huge number is not in 0 to 80"),
        ("naked_single", [[True, 1]], "steps[0]: cell must be an integer"),
        ("naked_single", [[1.0, 1]], "steps[0]: cell must be an integer"),
        ("naked_single", [["1", 1]], "steps[0]: cell must be an integer"),
        ("naked_single", [[1, 1, 1]], "steps[0]: a step must be [cell, digit]"),
        ("naked_single", [7], "steps[0]: a step must be [cell, digit]"),
        ("naked_single", {"0": [0, 1]}, "steps must be a list"),
        ("naked_single", None, "steps must be a list"),
        ("hidden_single", [[0, 1]], "steps[0]: a step must be [unit, cell, digit]"),
        ("hidden_single", [[27, 0, 1]], "steps[0]: unit 27 is not in 0 to 26"),
        ("cross_hatching", [[18, 81, 1]], "steps[0]: cell 81 is not in 0 to 80"),
        ("propagation", [[0, 1]], "steps[0]: placement 0 of the wave: a step must be [cell, digit]"),
        ("propagation", [[[0, 1]], [[0, 1], [1, 0]]], "steps[1]: placement 1 of the wave: digit 0 is not in 1 to 9"),
        ("propagation", ["wave"], "steps[0]: a wave must be a list of [cell, digit]"),
        ("backtracking", [[0, 1]], 'steps[0]: a step must be ["try", cell, digit] or ["undo", cell]'),
        ("backtracking", [["undo", 0, 1]], 'steps[0]: a step must be ["try", cell, digit] or ["undo", cell]'),
        ("backtracking", [["try", 0]], 'steps[0]: a step must be ["try", cell, digit] or ["undo", cell]'),
        ("backtracking", [["undo", 81]], "steps[0]: cell 81 is not in 0 to 80"),
        ("backtracking", [[]], 'steps[0]: a step must be ["try", cell, digit] or ["undo", cell]'),
    ],
)
def test_malformed_steps_have_a_reason(strategy, steps, reason):
    assert parse_steps(strategy, steps) == reason


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
@given(values=st.lists(st.integers(0, 255), min_size=1, max_size=12))
def test_symbols_either_survive_or_are_refused(strategy, values):
    symbols = np.array(values, np.uint8)
    try:
        steps = steps_of(strategy, symbols)
    except ValueError:
        return
    assert np.array_equal(parse_steps(strategy, steps), symbols)


def test_symbols_of_another_strategy_are_refused():
    for strategy, other in [("naked_single", "hidden_single"), ("propagation", "naked_single")]:
        with pytest.raises(ValueError, match=f"not the symbols of a {strategy} trace"):
            steps_of(strategy, parse_steps(other, STEPS[other]))


def test_peers_are_twenty():
    assert {len(peers) for peers in PEERS} == {20}  # the reference stands on them
