"""Hand-made outputs: one for every verdict, every reason, and the faults seen in other people's checkers."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators.sudoku_reasons import SUDOKU_ANSWER, SUDOKU_ILLEGAL
from lol_data.evaluators.sudoku_rules import judge_sudokus
from lol_data.evaluators.verdicts import PARSE_REASONS
from lol_data.ragged import Ragged
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE, Sudokus

from .sudoku_reference import digits_of

SOLUTION = tuple((3 * (r % 3) + r // 3 + c) % 9 + 1 for r in range(9) for c in range(9))


def without(*cells):
    return tuple(0 if cell in cells else digit for cell, digit in enumerate(SOLUTION))


def sudokus(*puzzles):
    grids = np.array(puzzles, np.uint8).reshape(-1, 81)
    return Sudokus(np.arange(len(grids), dtype=np.uint64), grids, np.zeros_like(grids))


def judge(puzzle, strategy, trace, answer=SOLUTION, **more):
    rows = Ragged.from_rows([trace], np.int64), Ragged.from_rows([answer], np.int64)
    return judge_sudokus(sudokus(puzzle), [0], [SUDOKU_STRATEGIES.index(strategy)], *rows, **more).row(0)


def placements(*steps):
    """(cell, digit) or (unit, cell, digit) each."""
    return [symbol for *unit, cell, digit in steps for symbol in (*(UNIT + u for u in unit), cell, DIGIT + digit)]


# Five empty cells; rows 6, 7, 8 and boxes 24, 25, 26 (left to right):
#     . . . | . 58 . | . .  .      58: 7     64: 1 or 7
#     . 64 . | . 67 . | . .  .      67: 1 or 7
#     . 73 . | . .  . | . 79 .      73: 1 or 7     79: 7
KNOT = without(58, 64, 67, 73, 79)
CANONICAL = {
    "naked_single": placements((58, 7), (67, 1), (79, 7), (64, 7), (73, 1)),
    "hidden_single": placements((6, 58, 7), (7, 64, 7), (8, 73, 1), (8, 79, 7), (13, 67, 1)),
    "cross_hatching": placements((25, 67, 1), (25, 58, 7), (26, 79, 7), (24, 73, 1), (24, 64, 7)),
    "propagation": [*placements((58, 7), (67, 1), (73, 1), (79, 7)), WAVE, *placements((64, 7)), WAVE],
    "backtracking": [*placements((58, 7), (79, 7), (64, 1)), UNDO, 64, *placements((64, 7), (67, 1), (73, 1))],
}


def test_the_knot_is_drawn_as_the_grid_has_it():
    assert {cell: SOLUTION[cell] for cell, digit in enumerate(KNOT) if digit == 0} == {
        58: 7,
        64: 7,
        67: 1,
        73: 1,
        79: 7,
    }


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_a_canonical_output_has_every_verdict(strategy):
    verdict = judge(KNOT, strategy, CANONICAL[strategy])
    assert verdict == {
        "asked": strategy,
        "parsed": True,
        "parse_reason": "ok",
        "legal": True,
        "first_illegal_step": None,
        "illegal_reason": "none",
        "complete": True,
        "canonical": True,
        # Whatever is legal in a box alone is a legal hidden single.
        "identified": ["hidden_single", "cross_hatching"] if strategy == "cross_hatching" else [strategy],
        "identified_exact": True,
        "adherent": True,
        "answer_correct": True,
        "answer_reason": "none",
        "joint": True,
    }
    json.dumps(verdict)


STEPS = dict(zip(SUDOKU_STRATEGIES, (5, 5, 5, 7, 7), strict=True))  # of the canonical traces
FIRST_WAVE = CANONICAL["propagation"][:9]
AT_64 = placements((58, 7), (79, 7), (64, 1))  # leaves no digit for 67 and 73
# (strategy, trace, first illegal step, reason)
ILLEGAL = [
    *((strategy, [], 0, "empty_trace") for strategy in SUDOKU_STRATEGIES),
    *((strategy, [*CANONICAL[strategy], 0], n, "after_end") for strategy, n in STEPS.items()),
    ("backtracking", [*CANONICAL["backtracking"], UNDO, 73], 7, "after_end"),
    ("propagation", [*CANONICAL["propagation"], WAVE], 7, "after_end"),
    # symbols that form no step
    ("naked_single", [58], 0, "unfinished_step"),
    ("naked_single", [*placements((58, 7)), 67], 1, "unfinished_step"),
    ("hidden_single", [UNIT + 6], 0, "unfinished_step"),
    ("cross_hatching", [UNIT + 25, 67], 0, "unfinished_step"),
    ("propagation", [58], 0, "unfinished_step"),
    ("backtracking", [58], 0, "unfinished_step"),
    ("backtracking", [*AT_64, UNDO], 3, "unfinished_step"),
    ("naked_single", [DIGIT + 7, 58], 0, "not_a_cell"),
    ("naked_single", [-1, DIGIT + 7], 0, "not_a_cell"),
    ("naked_single", [256 + 58, DIGIT + 7], 0, "not_a_cell"),
    ("naked_single", [1 << 40, DIGIT + 7], 0, "not_a_cell"),
    ("naked_single", [UNIT + 6, 58, DIGIT + 7], 0, "not_a_cell"),
    ("hidden_single", [UNIT + 6, DIGIT + 7, 58], 0, "not_a_cell"),
    ("propagation", [UNDO, 58], 0, "not_a_cell"),
    ("backtracking", [WAVE], 0, "not_a_cell"),
    ("backtracking", [*AT_64, UNDO, DIGIT + 1], 3, "not_a_cell"),
    ("naked_single", [58, DIGIT + 0], 0, "not_a_digit"),
    ("naked_single", [58, DIGIT + 10], 0, "not_a_digit"),
    ("hidden_single", [UNIT + 6, 58, 7], 0, "not_a_digit"),
    ("propagation", [58, WAVE], 0, "not_a_digit"),
    ("backtracking", [58, UNDO], 0, "not_a_digit"),
    ("hidden_single", placements((58, 7)), 0, "not_a_unit"),
    ("hidden_single", [UNIT + 27, 58, DIGIT + 7], 0, "not_a_unit"),
    ("cross_hatching", [UNDO, 58], 0, "not_a_unit"),
    # cells and digits
    ("naked_single", placements((0, SOLUTION[0])), 0, "given_changed"),
    ("hidden_single", placements((6, 57, 7)), 0, "given_changed"),
    ("propagation", placements((0, 2)), 0, "given_changed"),
    ("backtracking", placements((0, 2)), 0, "given_changed"),
    ("naked_single", placements((58, 7), (58, 7)), 1, "already_filled"),
    ("cross_hatching", placements((25, 67, 1), (25, 67, 1)), 1, "already_filled"),
    ("propagation", placements((58, 7), (58, 1)), 1, "already_filled"),
    ("backtracking", placements((58, 7), (58, 7)), 1, "already_filled"),
    ("naked_single", placements((64, 5)), 0, "digit_in_peers"),
    ("naked_single", placements((58, 7), (67, 7)), 1, "digit_in_peers"),  # 7 was placed, not given
    ("hidden_single", placements((13, 67, 1), (7, 64, 1)), 1, "digit_in_peers"),
    ("propagation", placements((58, 7), (67, 7)), 1, "digit_in_peers"),
    ("backtracking", placements((58, 1)), 0, "digit_in_peers"),
    ("backtracking", placements((58, 7), (79, 7), (67, 7)), 2, "digit_in_peers"),
    # the rules of the strategies
    ("naked_single", placements((64, 7)), 0, "not_the_only_digit"),
    ("naked_single", placements((73, 1)), 0, "not_the_only_digit"),  # a hidden single
    ("hidden_single", placements((7, 58, 7)), 0, "cell_not_in_unit"),
    ("cross_hatching", placements((24, 58, 7)), 0, "cell_not_in_unit"),
    ("hidden_single", placements((13, 58, 7)), 0, "not_the_only_place"),  # 67 in that column
    ("hidden_single", placements((7, 64, 7)), 0, "not_the_only_place"),
    ("cross_hatching", placements((25, 58, 7)), 0, "not_the_only_place"),
    ("cross_hatching", placements((6, 58, 7)), 0, "not_a_box"),
    ("cross_hatching", placements((25, 67, 1), (8, 73, 1)), 1, "not_a_box"),
    ("propagation", placements((64, 7)), 0, "not_forced_in_this_wave"),
    ("propagation", placements((67, 1), (73, 1), (64, 7)), 2, "not_forced_in_this_wave"),  # forced now, not before
    ("propagation", [WAVE], 0, "empty_wave"),
    ("propagation", [*FIRST_WAVE, WAVE], 5, "empty_wave"),
    ("propagation", [*placements((58, 7), (67, 1), (73, 1)), WAVE], 3, "wave_incomplete"),
    ("backtracking", placements((64, 1)), 0, "wrong_cell_order"),
    ("backtracking", placements((58, 7), (67, 1)), 1, "wrong_cell_order"),
    ("backtracking", [*AT_64, UNDO, 64, *placements((67, 1))], 4, "wrong_cell_order"),
    ("backtracking", [*AT_64, UNDO, 64, *placements((64, 1))], 4, "already_tried"),
    ("backtracking", [UNDO, 58], 0, "undo_not_last"),
    ("backtracking", [*AT_64, UNDO, 79], 3, "undo_not_last"),
    ("backtracking", [*AT_64, UNDO, 64, UNDO, 64], 4, "undo_not_last"),
    ("backtracking", [*placements((58, 7)), UNDO, 58], 1, "undo_too_early"),
    ("backtracking", [*AT_64, UNDO, 64, UNDO, 79], 4, "undo_too_early"),
    ("backtracking", [*AT_64[:4], *placements((64, 7)), UNDO, 64], 3, "undo_too_early"),
]


@pytest.mark.parametrize(("strategy", "trace", "step", "reason"), ILLEGAL)
def test_illegal_step(strategy, trace, step, reason):
    verdict = judge(KNOT, strategy, trace)
    assert (verdict["legal"], verdict["first_illegal_step"], verdict["illegal_reason"]) == (False, step, reason)
    assert not (verdict["complete"] or verdict["canonical"] or verdict["joint"])
    assert verdict["answer_correct"]  # nonsense before a right answer changes neither verdict


def test_every_reason_has_a_case():
    assert {reason for *_, reason in ILLEGAL} == set(SUDOKU_ILLEGAL) - {"none"}
    assert {reason for _, reason in WRONG_ANSWERS} == set(SUDOKU_ANSWER) - {"none"}


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_a_trace_that_stops_early_is_legal_and_not_complete(strategy):
    last = {"hidden_single": 3, "cross_hatching": 3, "propagation": 1}.get(strategy, 2)
    verdict = judge(KNOT, strategy, CANONICAL[strategy][:-last])  # propagation: full, with the last wave open
    assert verdict["legal"] and not verdict["complete"] and not verdict["canonical"] and not verdict["joint"]
    assert verdict["first_illegal_step"] is None and verdict["illegal_reason"] == "none"
    assert not verdict["identified_exact"]


@pytest.mark.parametrize(
    ("strategy", "trace"),
    [
        ("naked_single", placements((79, 7), (73, 1), (64, 7), (67, 1), (58, 7))),
        ("hidden_single", placements((16, 79, 7), (8, 73, 1), (24, 64, 7), (7, 67, 1), (6, 58, 7))),
        ("hidden_single", placements((6, 58, 7), (7, 64, 7), (24, 73, 1), (8, 79, 7), (13, 67, 1))),  # another unit
        ("propagation", [*placements((79, 7), (67, 1), (58, 7), (73, 1)), WAVE, *placements((64, 7)), WAVE]),
        ("backtracking", placements((79, 7), (58, 7), (67, 1), (73, 1), (64, 7))),  # other cells, and no undo
        ("backtracking", placements((58, 7), (79, 7), (64, 7), (67, 1), (73, 1))),  # the greater digit first
    ],
)
def test_another_order_is_legal_and_not_canonical(strategy, trace):
    verdict = judge(KNOT, strategy, trace)
    assert verdict["joint"] and verdict["complete"] and not verdict["canonical"], verdict


def test_a_box_that_stands_for_a_column_counts_for_the_strategy():
    in_column = placements((25, 67, 1), (25, 58, 7), (26, 79, 7), (10, 73, 1), (24, 64, 7))
    assert judge(KNOT, "hidden_single", in_column)["identified"] == ["hidden_single"]
    crossed = judge(KNOT, "cross_hatching", in_column)
    assert (crossed["first_illegal_step"], crossed["illegal_reason"]) == (3, "not_a_box") and not crossed["adherent"]


def test_a_trace_has_the_form_of_its_strategy():
    for strategy in SUDOKU_STRATEGIES:
        for other in {"naked_single", "hidden_single", "backtracking"} - {strategy}:
            verdict = judge(KNOT, other, CANONICAL[strategy])
            assert verdict["adherent"] == ((strategy, other) == ("cross_hatching", "hidden_single"))


def test_the_longest_legal_prefix_identifies_when_no_whole_trace_fits():
    hidden = placements((6, 58, 7), (7, 64, 7), (8, 64, 7))
    verdict = judge(KNOT, "hidden_single", hidden)
    assert verdict["identified"] == ["hidden_single"] and not verdict["identified_exact"] and verdict["adherent"]
    assert not verdict["legal"] and not verdict["joint"]
    assert judge(KNOT, "hidden_single", placements((6, 58, 7), (6, 58, 7)))["identified"] == []  # one step says nothing
    waves = judge(KNOT, "backtracking", [*FIRST_WAVE, *placements((64, 1))])
    assert waves["identified"] == ["propagation"] and not waves["adherent"]


@pytest.mark.parametrize("damage", [[], placements((24, 64, 1)), [UNDO, 58], [DIGIT]])
def test_steps_of_cross_hatching_are_those_of_hidden_singles_too(damage):
    begun = CANONICAL["cross_hatching"][:6]
    for asked in SUDOKU_STRATEGIES:
        verdict = judge(KNOT, asked, [*begun, *damage])
        assert verdict["identified"] == ["hidden_single", "cross_hatching"] and not verdict["identified_exact"]
        assert verdict["adherent"] == (asked in verdict["identified"]) and not verdict["joint"]
    assert judge(KNOT, "cross_hatching", [*begun[:3], *damage])["identified"] == []  # one step says nothing
    further = judge(KNOT, "cross_hatching", [*begun, *placements((8, 73, 1)), *damage])  # in a row
    assert further["identified"] == ["hidden_single"] and not further["adherent"]


# ---------------------------------------------------------------- last cells


@pytest.mark.parametrize("cell", [0, 40, 62])
def test_the_last_empty_cell_of_a_box_is_legal_for_every_placing_strategy(cell):
    box = 18 + cell // 27 * 3 + cell % 9 // 3
    row, column = divmod(cell, 9)
    others = [9 * row + (column + 3) % 9, 9 * ((row + 3) % 9) + column]  # so that it is last in its box alone
    puzzle, digit = without(cell, *others), SOLUTION[cell]
    assert judge(puzzle, "naked_single", placements((cell, digit)))["legal"]
    assert judge(puzzle, "hidden_single", placements((box, cell, digit)))["legal"]
    assert judge(puzzle, "cross_hatching", placements((box, cell, digit)))["legal"]
    assert judge(puzzle, "propagation", placements((cell, digit)))["legal"]


@pytest.mark.parametrize(("unit", "near"), [(0, 9), (9, 1)])  # row 0 and column 0, with a second empty cell of the box
def test_the_last_empty_cell_of_a_line_is_legal_for_cross_hatching_only_where_the_box_says_so(unit, near):
    digit = SOLUTION[0]
    line = range(near - near % 9, near - near % 9 + 9) if unit == 0 else range(near % 9, 81, 9)
    (same,) = (cell for cell in line if SOLUTION[cell] == digit)
    puzzle = without(0, near, same)  # the digit fits `near` too
    assert judge(puzzle, "naked_single", placements((0, digit)))["legal"]
    assert judge(puzzle, "hidden_single", placements((unit, 0, digit)))["legal"]
    assert judge(puzzle, "propagation", placements((0, digit)))["legal"]
    assert judge(puzzle, "cross_hatching", placements((18, 0, digit)))["illegal_reason"] == "not_the_only_place"
    assert judge(puzzle, "cross_hatching", placements((unit, 0, digit)))["illegal_reason"] == "not_a_box"
    assert judge(without(0, near), "cross_hatching", placements((18, 0, digit)))["legal"]


# ---------------------------------------------------------------- odd puzzles


def test_a_full_grid_needs_no_step_and_allows_none():
    for strategy in SUDOKU_STRATEGIES:
        verdict = judge(SOLUTION, strategy, [])
        assert verdict["joint"] and verdict["canonical"] and verdict["identified"] == list(SUDOKU_STRATEGIES)
    assert judge(SOLUTION, "propagation", [WAVE])["illegal_reason"] == "after_end"


def test_a_wave_that_contradicts_itself_is_never_closed():
    grid = [0] * 81
    grid[3:9], grid[18:20] = [1, 2, 3, 4, 5, 6], [7, 8]  # only 9 fits cells 0, 1 and 2
    wave = judge(grid, "propagation", [*placements((0, 9)), WAVE])
    assert (wave["first_illegal_step"], wave["illegal_reason"]) == (1, "wave_incomplete")
    for strategy in ("naked_single", "propagation"):
        verdict = judge(grid, strategy, placements((0, 9), (1, 9)))
        assert (verdict["first_illegal_step"], verdict["illegal_reason"]) == (1, "digit_in_peers")


def test_a_wave_that_forces_two_digits_into_one_cell_is_never_closed():
    grid = [0] * 81
    for cell, digit in {13: 1, 25: 1, 37: 1, 65: 1, 12: 2, 24: 2, 28: 2, 56: 2}.items():
        grid[cell] = digit  # row 0 takes a 1, and column 0 a 2, in cell 0 alone
    assert judge(grid, "hidden_single", placements((0, 0, 1)))["legal"]
    assert judge(grid, "hidden_single", placements((9, 0, 2)))["legal"]
    wave = judge(grid, "propagation", placements((0, 1), (0, 2)))
    assert (wave["first_illegal_step"], wave["illegal_reason"]) == (1, "already_filled")
    others = [step for cell in range(1, 81) for digit in range(1, 10) for step in [placements((cell, digit))]]
    forced = [step for step in others if judge(grid, "propagation", step)["legal"]]
    closed = judge(grid, "propagation", [*placements((0, 1)), *(symbol for step in forced for symbol in step), WAVE])
    assert closed["illegal_reason"] == "wave_incomplete"


SIX = digits_of("92..8.65.6..2.43..3..5.9.72.7.953.......7.......6..5....142..3.....31..6.6.7..1..")
TWO = digits_of("349618572782359000651742389273895000195476238864231957527164893918523764436987125")
CONFLICTS = [
    ("....................1..6.9...841...7..2.5.6..6...124...2.5..9....................", "1 stands twice in column 5"),
    ("5..2.4.96.711697.54287...425.964.28319...5.142...129..8...835.97.25263719..9..4.8", "1 stands twice in row 2"),
    ("11" + "." * 79, "1 stands twice in row 1"),
    ("1" + "." * 8 + "1" + "." * 71, "1 stands twice in column 1"),
    ("1" + "." * 9 + "1" + "." * 70, "1 stands twice in box 1"),
]


def test_a_puzzle_with_several_solutions_has_several_right_answers():
    holes = [cell for cell, digit in enumerate(TWO) if digit == 0]
    missing = [digit for digit in range(1, 10) for _ in range(9 - TWO.count(digit))]
    right = set()
    for digits in set(permutations(missing)):
        answer = list(TWO)
        for cell, digit in zip(holes, digits, strict=True):
            answer[cell] = digit
        if judge(TWO, "naked_single", [], answer)["answer_correct"]:
            right.add(tuple(answer))
    assert len(right) == 2
    for answer in right:  # either is reached by backtracking, and neither by a single
        assert judge(TWO, "backtracking", placements(*((cell, answer[cell]) for cell in holes)), answer)["joint"]
        assert (
            judge(TWO, "naked_single", placements((holes[0], answer[holes[0]])))["illegal_reason"]
            == "not_the_only_digit"
        )
    assert judge(SIX, "naked_single", [])["illegal_reason"] == "empty_trace"


@pytest.mark.parametrize(("text", "fault"), CONFLICTS)
def test_givens_that_break_the_rules_are_refused(text, fault):
    with pytest.raises(ValueError, match=f"sudoku 0: {fault}"):
        judge(digits_of(text), "naked_single", [])


# ---------------------------------------------------------------- answers


def with_digit(cell, digit):
    return [*SOLUTION[:cell], digit, *SOLUTION[cell + 1 :]]


SWAPPED = [SOLUTION[{64: 67, 67: 64}.get(cell, cell)] for cell in range(81)]
WRONG_ANSWERS = [
    ([], "empty_answer"),
    (SOLUTION[:80], "wrong_length"),
    ([*SOLUTION, 1], "wrong_length"),
    (KNOT, "out_of_range"),
    ([digit % 9 for digit in SOLUTION], "out_of_range"),  # every 9 a 0
    (with_digit(80, 10), "out_of_range"),
    (with_digit(80, -1), "out_of_range"),
    (with_digit(80, 256 + SOLUTION[80]), "out_of_range"),
    (with_digit(0, 2), "given_changed"),
    ([digit % 9 + 1 for digit in SOLUTION], "given_changed"),  # a right grid of another puzzle
    (SWAPPED, "duplicate_in_unit"),
    (with_digit(58, 1), "duplicate_in_unit"),
]


@pytest.mark.parametrize(("answer", "reason"), WRONG_ANSWERS)
def test_wrong_answer_after_a_right_trace(answer, reason):
    verdict = judge(KNOT, "naked_single", CANONICAL["naked_single"], answer)
    assert (verdict["answer_correct"], verdict["answer_reason"]) == (False, reason)
    assert verdict["legal"] and verdict["complete"] and verdict["canonical"] and verdict["adherent"]
    assert not verdict["joint"]


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize("code", range(1, len(PARSE_REASONS)))
def test_an_unparsed_output_has_no_other_verdict(code):
    verdict = judge(KNOT, "naked_single", CANONICAL["naked_single"], parse_reason=[code])
    assert verdict["parse_reason"] == PARSE_REASONS[code]
    assert verdict["identified"] == [] and verdict["first_illegal_step"] is None
    assert not any(value for value in verdict.values() if isinstance(value, bool))


def test_rows_point_at_puzzles():
    two = sudokus(KNOT, without(0))
    traces = Ragged.from_rows([placements((0, 1)), CANONICAL["naked_single"], placements((0, 1)), placements((0, 1))])
    answers = Ragged.from_rows([SOLUTION] * 4)
    verdicts = judge_sudokus(two, [1, 0, 0, 1], [0, 0, 0, 4], traces, answers)
    assert verdicts.joint.tolist() == [True, True, False, True]
    assert verdicts.table()["identified"].to_pylist()[3] == ["naked_single", "backtracking"]
    assert len(judge_sudokus(two, [], [], Ragged.from_rows([]), Ragged.from_rows([])).table()) == 0


def test_arguments_that_do_not_fit_are_refused():
    one, knot = Ragged.from_rows([[4]]), sudokus(KNOT)
    with pytest.raises(ValueError, match="rows must be in 0 to 0"):
        judge_sudokus(knot, [1], [0], one, one)
    with pytest.raises(ValueError, match="asked must be in 0 to 4"):
        judge_sudokus(knot, [0], [5], one, one)
    with pytest.raises(ValueError, match="rows must be integers"):
        judge_sudokus(knot, [0.0], [0], one, one)
    with pytest.raises(ValueError, match="0 answers for 1 rows"):
        judge_sudokus(knot, [0], [0], one, Ragged.from_rows([]))
    with pytest.raises(ValueError, match="traces must be integers"):
        judge_sudokus(knot, [0], [0], Ragged.from_rows([[0.5]], np.float64), one)
    with pytest.raises(ValueError, match="offsets"):
        judge_sudokus(knot, [0], [0], Ragged(np.zeros(1, np.uint8), np.array([0, 5])), one)
    with pytest.raises(ValueError, match="puzzle must be uint8"):
        judge_sudokus(Sudokus(knot.id, knot.puzzle[:, :80], knot.solution), [0], [0], one, one)
    with pytest.raises(ValueError, match="10 in cell 3 is no digit"):
        judge_sudokus(sudokus([10 * (cell == 3) for cell in range(81)]), [0], [0], one, one)


numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 260) | st.sampled_from(CANONICAL["propagation"])
starts = st.sampled_from([trace[:n] for trace in CANONICAL.values() for n in range(len(trace) + 1)])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(starts, st.lists(numbers), st.lists(numbers), st.integers(0, 4)), min_size=1, max_size=5))
def test_any_integers_get_total_verdicts(outputs):
    traces = [[*start, *more] for start, more, _, _ in outputs]
    asked = [code for *_, code in outputs]
    rows = Ragged.from_rows(traces, np.int64), Ragged.from_rows([answer for _, _, answer, _ in outputs], np.int64)
    v = judge_sudokus(sudokus(KNOT), np.zeros(len(outputs), int), asked, *rows)
    assert (v.legal == (v.first_illegal_step == -1)).all() and (v.legal == (v.illegal_reason == 0)).all()
    assert (v.first_illegal_step <= [len(trace) for trace in traces]).all()
    assert (v.complete <= v.legal).all() and (v.canonical <= v.complete).all()
    asked_bit = (v.identified >> v.asked & 1).astype(bool)
    assert (v.adherent == asked_bit).all() and (v.complete == (asked_bit & v.identified_exact)).all()
    assert (v.answer_correct == (v.answer_reason == 0)).all()
    assert (v.joint == (v.adherent & v.legal & v.complete & v.answer_correct)).all()
    for k, trace in enumerate(traces):
        assert v.canonical[k] == (trace == CANONICAL[SUDOKU_STRATEGIES[asked[k]]])
