"""Sudokus on which other people's programs went wrong, through `solve` and `check` as a user calls them."""

import json
import time

import pytest

from lol_data.evaluators.sudoku_jsonl import check_lines
from lol_data.solvers.sudoku_jsonl import solve_lines
from lol_data.sudokus import SUDOKU_STRATEGIES

SIX = "92..8.65.6..2.43..3..5.9.72.7.953.......7.......6..5....142..3.....31..6.6.7..1.."
TWO = "349618572782359000651742389273895000195476238864231957527164893918523764436987125"  # 75 givens
LOST_CLUE = "........2.2..5.8.1......3..7.4.9........8541.....37...18....9....7..9...2...4..58"
WITH_CLUE = "........2.2..5.8.1......3..7.4.9........8541...5.37...18....9....7..9...2...4..58"  # r6c3 = 5
COLUMN_CONFLICT = "....................1..6.9...841...7..2.5.6..6...124...2.5..9...................."
ROW_CONFLICT = "5..2.4.96.711697.54287...425.964.28319...5.142...129..8...835.97.25263719..9..4.8"
MANY = "49675.8..21869375..5.48..69" + "." * 54

SOLUTION = "".join(str((3 * (row % 3) + row // 3 + column) % 9 + 1) for row in range(9) for column in range(9))
PLACING = ("naked_single", "hidden_single", "propagation", "cross_hatching")
BOX = [18 + cell // 27 * 3 + cell % 9 // 3 for cell in range(81)]
PEERS = [
    [b for b in range(81) if a != b and (a // 9 == b // 9 or a % 9 == b % 9 or BOX[a] == BOX[b])] for a in range(81)
]


def without(*cells):
    return "".join("." if cell in cells else digit for cell, digit in enumerate(SOLUTION))


def solve(puzzle):
    """Status by strategy, and what else is said, by name."""
    results = list(solve_lines([puzzle]))
    assert [result["strategy"] for result in results] == list(SUDOKU_STRATEGIES)
    return results


def check(puzzle, strategy, steps, answer=SOLUTION):
    (verdict,) = check_lines([json.dumps({"puzzle": puzzle, "strategy": strategy, "steps": steps, "answer": answer})])
    return verdict


def refused(puzzle, strategy, steps):
    """(first illegal step, reason)"""
    verdict = check(puzzle, strategy, steps)
    assert not (verdict["legal"] or verdict["complete"] or verdict["joint"])
    return verdict["first_illegal_step"], verdict["illegal_reason"]


def holds(puzzle, strategy, step):
    """Is the placement of a step legal? A wave has its marker behind it, which may come too early."""
    return check(puzzle, strategy, [step])["first_illegal_step"] != 0


def step(strategy, unit, cell):
    """The right digit in a cell, in the form of a placing strategy."""
    placement = [cell, int(SOLUTION[cell])]
    if strategy == "propagation":
        return [placement]
    return placement if strategy == "naked_single" else [unit, *placement]


def solutions(puzzle):
    """All solutions of a puzzle, by brute force, fewest digits first."""
    fits = {
        cell: set("123456789") - {puzzle[peer] for peer in PEERS[cell]} for cell in range(81) if puzzle[cell] in ".0"
    }
    if not fits:
        return [puzzle]
    cell = min(fits, key=lambda cell: len(fits[cell]))
    return [full for digit in fits[cell] for full in solutions(puzzle[:cell] + digit + puzzle[cell + 1 :])]


# ---------------------------------------------------------------- how many solutions


@pytest.mark.parametrize(("puzzle", "count"), [(SIX, 6), (TWO, 2), (LOST_CLUE, 26)])
def test_several_solutions_are_counted_and_each_is_a_right_answer(puzzle, count):
    for result in solve(puzzle):
        assert (result["status"], result["solutions"]) == ("multiple_solutions", count)
        assert "answer" not in result and "steps" not in result
    found = solutions(puzzle)
    assert len(set(found)) == count
    assert [check(puzzle, "naked_single", [], full)["answer_reason"] for full in found] == ["none"] * count


def test_one_clue_more_leaves_one_solution():
    assert {result["strategy"]: result["status"] for result in solve(WITH_CLUE)} == dict.fromkeys(
        SUDOKU_STRATEGIES, "stuck"
    )
    (only,) = solutions(WITH_CLUE)
    assert check(WITH_CLUE, "naked_single", [], only)["answer_reason"] == "none"
    (other, *_) = (full for full in solutions(LOST_CLUE) if full != only)
    assert check(WITH_CLUE, "naked_single", [], other)["answer_reason"] == "given_changed"


def test_a_loose_puzzle_is_counted_at_once():
    solve(MANY)  # compiles
    began = time.perf_counter()
    assert {result["status"] for result in solve(MANY)} == {"multiple_solutions"}
    assert time.perf_counter() - began < 1  # others search for ever


@pytest.mark.parametrize(
    ("puzzle", "fault"), [(COLUMN_CONFLICT, "1 stands twice in column 5"), (ROW_CONFLICT, "1 sta")]
)
def test_givens_that_break_the_rules_are_a_conflict(puzzle, fault):
    assert [result["status"] for result in solve(puzzle)] == ["conflict"] * 5
    for strategy in SUDOKU_STRATEGIES:
        verdict = check(puzzle, strategy, [])
        assert verdict["error"].startswith(f"conflict: {fault}") and "legal" not in verdict


# ---------------------------------------------------------------- malformed lines and steps


@pytest.mark.parametrize(
    ("puzzle", "error"),
    [
        (SIX[:80], "puzzle has 80 characters, not 81"),
        (SIX + ".", "puzzle has 82 characters, not 81"),
        (SIX.replace("8", "B", 1), "puzzle has 'B' at character 4; only 1 to 9, . and 0 may stand there"),
        (SIX.replace(".", "_", 1), "puzzle has '_' at character 2; only 1 to 9, . and 0 may stand there"),
    ],
)
def test_a_malformed_puzzle_is_refused_with_its_reason(puzzle, error):
    (result,) = solve_lines([puzzle])
    assert (result["status"], result["error"]) == ("malformed", error)
    assert check(puzzle, "naked_single", [])["error"] == error


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([[3, 0]], "steps[0]: digit 0 is not in 1 to 9"),
        ([[3, 10]], "steps[0]: digit 10 is not in 1 to 9"),
        ([[-9, 3]], "steps[0]: cell -9 is not in 0 to 80"),  # row 0
        ([[81, 3]], "steps[0]: cell 81 is not in 0 to 80"),  # column 10 of the last row
        ([[0, 10, 3]], "steps[0]: a step must be [cell, digit]"),  # row, column, digit
    ],
)
def test_a_step_that_is_none_is_refused_with_its_reason(steps, error):
    assert check(without(0, 40), "naked_single", steps)["error"] == error


PUZZLE = without(0, 40)


@pytest.mark.parametrize("strategy", PLACING)
def test_a_cell_filled_twice_and_a_changed_given(strategy):
    once = step(strategy, BOX[0], 0)
    twice = [once * 2] if strategy == "propagation" else [once] * 2
    assert refused(PUZZLE, strategy, twice) == (1, "already_filled")
    assert refused(PUZZLE, strategy, [step(strategy, BOX[1], 1)]) == (0, "given_changed")


def test_backtracking_refuses_both_too():
    once = ["try", 0, int(SOLUTION[0])]
    assert refused(PUZZLE, "backtracking", [once, once]) == (1, "already_filled")
    assert refused(PUZZLE, "backtracking", [["try", 1, int(SOLUTION[1])]]) == (0, "given_changed")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SOLUTION.replace("9", "0"), "out_of_range"),
        (SOLUTION[:80], "wrong_length"),
        (SOLUTION + "1", "wrong_length"),
        ("2" + SOLUTION[1:], "duplicate_in_unit"),
        (SOLUTION[:1] + "1" + SOLUTION[2:], "given_changed"),
    ],
)
def test_wrong_answers(answer, reason):
    assert check(PUZZLE, "naked_single", [], answer)["answer_reason"] == reason


# ---------------------------------------------------------------- what a strategy may do


def test_a_hidden_single_of_a_line_is_none_of_a_box():
    # Column 0 holds no 1 but in cell 0; the box has two empty cells that take a 1.
    (elsewhere,) = (cell for cell in range(1, 81, 9) if SOLUTION[cell] == SOLUTION[0])
    puzzle = without(0, 1, elsewhere)
    assert check(puzzle, "hidden_single", [[9, 0, 1]])["legal"]
    assert refused(puzzle, "cross_hatching", [[9, 0, 1]]) == (0, "not_a_box")
    assert refused(puzzle, "cross_hatching", [[18, 0, 1]]) == (0, "not_the_only_place")
    assert refused(puzzle, "hidden_single", [[18, 0, 1]]) == (0, "not_the_only_place")


@pytest.mark.parametrize("cell", range(0, 81, 7))
def test_the_last_cell_of_a_box_is_legal_for_every_placing_strategy(cell):
    row, column = divmod(cell, 9)
    puzzle = without(cell, 9 * row + (column + 3) % 9, 9 * ((row + 3) % 9) + column)  # last in its box alone
    for strategy in PLACING:
        assert holds(puzzle, strategy, step(strategy, BOX[cell], cell))


@pytest.mark.parametrize("unit", [0, 9])
def test_the_last_cell_of_a_line_is_cross_hatching_only_where_the_box_says_so_too(unit):
    near = 1 if unit == 9 else 9  # another empty cell of the box, in another row or column
    line = [near // 9 * 9 + k for k in range(9)] if unit == 0 else [near + 9 * k for k in range(9)]
    (same,) = (cell for cell in line if SOLUTION[cell] == SOLUTION[0])
    box_says_no, box_says_so = without(0, near, same), without(0, near)
    for puzzle in (box_says_no, box_says_so):
        for strategy in ("naked_single", "hidden_single", "propagation"):
            assert holds(puzzle, strategy, step(strategy, unit, 0))
        assert refused(puzzle, "cross_hatching", [[unit, 0, 1]]) == (0, "not_a_box")
    assert refused(box_says_no, "cross_hatching", [[18, 0, 1]]) == (0, "not_the_only_place")
    assert check(box_says_so, "cross_hatching", [[18, 0, 1]])["legal"]
