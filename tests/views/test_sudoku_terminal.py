"""The drawing for a terminal: some by hand, and what every drawing keeps to."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.sudokus import SUDOKU_STRATEGIES
from lol_data.views.sudoku_reasons import reasons
from lol_data.views.sudoku_terminal import sudoku_text

from .sudoku_common import LITERAL, cell_of, fitting, pictures

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

HIDDEN_2 = """\
     c1  c2  c3  c4  c5  c6  c7  c8  c9      c1  c2  c3  c4  c5  c6  c7  c8  c9
   ┏━━━┯━━━┯━━━┳━━━┯━━━┯━━━┳━━━┯━━━┯━━━┓   ┏━━━┯━━━┯━━━┳━━━┯━━━┯━━━┳━━━┯━━━┯━━━┓
r1 ┃   │   │   ┃ 6 │ 8 │   ┃   │   │   ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨
r2 ┃ 8 │ 5 │(2)┃   │ 4 │   ┃ 6 │   │   ┃   ┃ 1 │   │   ┃   │   │   ┃   │   │   ┃
   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨
r3 ┃ × │ × │ × ┃ × │ 7 │ 3 ┃[2]│ 8 │ 4 ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┣━━━┿━━━┿━━━╋━━━┿━━━┿━━━╋━━━┿━━━┿━━━┫   ┣━━━┿━━━┿━━━╋━━━┿━━━┿━━━╋━━━┿━━━┿━━━┫
r4 ┃   │   │   ┃   │ 1 │   ┃ 7 │   │ 5 ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨
r5 ┃ 3 │ 4 │ 7 ┃(2)│   │ 8 ┃   │ 1 │ 6 ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨
r6 ┃   │   │ 1 ┃   │   │   ┃ 8 │ 4 │   ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┣━━━┿━━━┿━━━╋━━━┿━━━┿━━━╋━━━┿━━━┿━━━┫   ┣━━━┿━━━┿━━━╋━━━┿━━━┿━━━╋━━━┿━━━┿━━━┫
r7 ┃   │ 2 │ 5 ┃   │ 9 │ 4 ┃ 3 │ 6 │   ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨
r8 ┃   │ 7 │   ┃   │   │   ┃ 5 │   │   ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨   ┠───┼───┼───╂───┼───┼───╂───┼───┼───┨
r9 ┃ 6 │ 8 │   ┃ 7 │ 3 │   ┃   │   │ 1 ┃   ┃   │   │   ┃   │   │   ┃   │   │   ┃
   ┗━━━┷━━━┷━━━┻━━━┷━━━┷━━━┻━━━┷━━━┷━━━┛   ┗━━━┷━━━┷━━━┻━━━┷━━━┷━━━┻━━━┷━━━┷━━━┛
sudoku 7, hidden_single: before step 2 of 3
step 2: r3c7 = 2, hidden single in row 3: 2 fits no other empty cell: r3c1 r3c2
    r3c3 see it at r2c3, r3c4 at r5c4
candidates: r3c1 1 9, r3c2 1 6 9, r3c3 6 9, r3c4 1 5 9, r3c7 1 2 9
"""

BELOW_UNDO = """\
sudoku 7, backtracking: before step 14 of 14
step 14: undo 6 at r4c6: nothing is left for r6c2, 6 tried, and its peers hold 1
    4 8 in row 6, 2 5 7 9 in column 2, 3 in box 4
candidates: r6c2 6
"""


def drawn(text):
    """The three characters in each cell of the left and of the right grid."""
    rows = [line for line in text.splitlines() if re.match(r"r\d ┃", line)]
    return tuple([row[begin + 4 * k : begin + 4 * k + 3] for row in rows for k in range(9)] for begin in (4, 44))


def below(text):
    return text.split("┛\n")[1]


def test_a_step_by_hand():
    assert sudoku_text(LITERAL, "hidden_single", step=2) == HIDDEN_2


def test_an_undo_by_hand():
    text = sudoku_text(LITERAL, "backtracking", step=14)
    assert below(text) == BELOW_UNDO
    left, right = drawn(text)
    assert (left[32], left[46], right[32], right[46]) == ("[6]", " ! ", "11 ", "   ")
    proving = {cell for cell in range(81) if left[cell].startswith("(")}
    assert all(str(LITERAL.grids("backtracking")[13][cell]) == left[cell][1] for cell in proving)
    assert {left[cell][1] for cell in proving} == set("12345789")


def test_a_wave_tells_every_placement_and_is_called_a_wave():
    text = sudoku_text(LITERAL, "propagation", step=1)
    head, count, *lines = below(text).splitlines()
    assert head == "sudoku 7, propagation: before wave 1 of 1"
    assert count == "wave 1: 18 placements at once, 3 naked singles and 15 hidden singles"
    ((wave),) = LITERAL.traces["propagation"]
    told = re.findall(r"(r\dc\d) = (\d), (?:naked|hidden) single", " ".join(lines))
    assert tuple((cell_of(name), int(digit)) for name, digit in told) == wave.placed
    framed = {cell: text for cell, text in enumerate(drawn(text)[0]) if text.startswith("[")}
    assert framed == {cell: f"[{digit}]" for cell, digit in wave.placed}


def test_the_puzzle_beside_its_solution():
    text = sudoku_text(LITERAL)
    assert drawn(text) == ([f" {digit or ' '} " for digit in LITERAL.puzzle], [f" {d} " for d in LITERAL.solution])
    assert below(text) == "sudoku 7: 36 givens\n"


@settings(deadline=None, max_examples=30)
@given(pictures, st.sampled_from(SUDOKU_STRATEGIES))
def test_digits_beside_their_steps(picture, strategy):
    text = sudoku_text(picture, strategy)
    digits, numbers = drawn(text)
    assert [int(digit) for digit in digits] == list(picture.solution)
    last = {c: step for step, made in enumerate(picture.traces[strategy], 1) for c, _ in made.placed}
    assert {cell: int(number) for cell, number in enumerate(numbers) if number.strip()} == last
    assert below(text) == f"{picture.name}, {strategy}: {picture.clues} givens, {picture.count(strategy)}\n"


@settings(deadline=None, max_examples=60)
@given(pictures, st.sampled_from(SUDOKU_STRATEGIES), st.data())
def test_the_grid_before_a_step(picture, strategy, data):
    step = data.draw(st.integers(1, len(picture.traces[strategy])))
    text = sudoku_text(picture, strategy, step=step)
    digits, numbers = drawn(text)
    grid, made, held = (
        picture.grids(strategy)[step - 1],
        picture.traces[strategy][step - 1],
        reasons(picture, strategy)[step - 1],
    )
    placed = dict(made.placed)
    for cell, shown in enumerate(digits):
        if cell in placed:
            assert shown == f"[{placed[cell]}]"
        elif cell == made.undone:
            assert shown == f"[{grid[cell]}]"
        elif grid[cell]:
            assert shown.strip(" ()") == str(grid[cell])
            assert ("(" in shown) == (len(held) == 1 and cell in held[0].holders)
        else:
            assert shown in ("   ", " × ", " ! ")
            assert (shown == " × ") == (len(held) == 1 and cell in {out for _, out in held[0].ruled_out})
    assert all(not number.strip() or int(number) < step for number in numbers)
    assert {c for c in range(81) if numbers[c].strip()} == {c for c in range(81) if grid[c] and not picture.puzzle[c]}
    listed = " ".join(below(text).split("candidates: ")[1].split())
    for entry in listed.split(", "):
        name, *found = entry.split()
        assert set(found) - {"none"} == set(map(str, fitting(grid, cell_of(name))))


@settings(deadline=None, max_examples=40)
@given(pictures, st.sampled_from((None, *SUDOKU_STRATEGIES)), st.booleans())
def test_colour_changes_no_character_and_80_columns_are_enough(picture, strategy, at_the_end):
    step = len(picture.traces[strategy]) if strategy and at_the_end else None
    plain = sudoku_text(picture, strategy, step=step)
    coloured = sudoku_text(picture, strategy, colour=True, step=step)
    assert ESCAPE.search(coloured)
    assert ESCAPE.sub("", coloured) == plain
    assert max(map(len, plain.splitlines())) == 80
    assert all(line == line.rstrip() for line in plain.splitlines())


def test_givens_are_bold():
    text = sudoku_text(LITERAL, "naked_single", colour=True)
    assert text.count("\x1b[1m") == LITERAL.clues


def test_requests_that_make_no_sense():
    with pytest.raises(UsageError, match="unknown"):
        sudoku_text(LITERAL, "ids")
    with pytest.raises(UsageError, match="step 4 does not exist"):
        sudoku_text(LITERAL, "hidden_single", step=4)
    with pytest.raises(UsageError, match="step 1 of which strategy"):
        sudoku_text(LITERAL, step=1)
