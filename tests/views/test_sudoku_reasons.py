"""The reasons hold: whatever they name is really there, and a step without a reason is damage."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import DamageError
from lol_data.views.sudoku_picture import Step
from lol_data.views.sudoku_reasons import describe, reasons

from .sudoku_common import LITERAL, UNITS, cell_of, fitting, peers, pictures

NAME = r"r\dc\d"
NAMES = rf"{NAME}(?: {NAME})*"


def numbers(text):
    return set(map(int, text.split()))


def check_holders(text, grid, cell):
    """The digits that the text finds among the peers of a cell, each of which must be there."""
    found = set()
    for digits, unit in re.findall(r"((?:\d )+)in ((?:row|column|box) \d)", text):
        assert cell in UNITS[unit]
        assert numbers(digits) <= {grid[peer] for peer in UNITS[unit] - {cell}}
        assert not found & numbers(digits)  # each is named once
        found |= numbers(digits)
    return found


def check_naked(text, grid):
    cell, digit = re.match(rf"({NAME}) = (\d), naked single: its peers hold every other digit, ", text).groups()
    assert check_holders(text.split("digit, ")[1], grid, cell_of(cell)) == set(range(1, 10)) - {int(digit)}
    return cell_of(cell), int(digit)


def check_hidden(text, grid, rule):
    match = re.match(rf"({NAME}) = (\d), {rule} in ((?:row|column|box) \d): (.*)", text)
    cell, digit, unit, why = cell_of(match[1]), int(match[2]), UNITS[match[3]], match[4]
    assert cell in unit
    others, ruled_out = {other for other in unit - {cell} if grid[other] == 0}, set()
    if rule == "cross-hatching":
        for line, number, holder in re.findall(rf"((?:row|column) \d) has its (\d) at ({NAME})", why):
            assert grid[cell_of(holder)] == int(number) == digit and cell_of(holder) in UNITS[line]
            ruled_out |= UNITS[line] & others
    else:
        for names, holder in re.findall(rf"({NAMES})(?: sees? it)? at ({NAME})", why):
            assert grid[cell_of(holder)] == digit
            for name in names.split():
                assert cell_of(holder) in peers(cell_of(name)) and cell_of(name) not in ruled_out
                ruled_out.add(cell_of(name))
    assert ruled_out == others
    assert (why == "it is the last empty cell there") == (not others)
    return cell, digit


def check_placement(text, grid):
    if ", naked single:" in text:
        return check_naked(text, grid)
    return check_hidden(text, grid, "cross-hatching" if "cross-hatching" in text else "hidden single")


@settings(deadline=None, max_examples=15)
@given(pictures, st.sampled_from(("naked_single", "hidden_single", "cross_hatching", "propagation")))
def test_every_placement_has_a_reason_that_holds(picture, strategy):
    found = reasons(picture, strategy)
    for step, held, grid in zip(picture.traces[strategy], found, picture.grids(strategy), strict=False):
        assert tuple(check_placement(reason.text, grid) for reason in held) == step.placed
        for reason in held:
            assert reason.rule.replace(" ", "_").replace("-", "_") in (strategy, "naked_single", "hidden_single")
            assert all(grid[holder] for holder in reason.holders)
            assert all(grid[cell] == 0 and holder in peers(cell) for holder, cell in reason.ruled_out)
    assert len(found) == len(picture.traces[strategy])


@settings(deadline=None, max_examples=15)
@given(pictures)
def test_tries_and_undos(picture):
    order = sorted(range(81), key=lambda cell: (len(fitting(picture.puzzle, cell)), cell))
    order = [cell for cell in order if picture.puzzle[cell] == 0]
    tried = [set() for _ in order]  # digits tried at each depth
    depth = 0
    for step, (reason,), grid in zip(
        picture.traces["backtracking"],
        reasons(picture, "backtracking"),
        picture.grids("backtracking"),
        strict=False,
    ):
        if step.undone is None:
            pattern = rf"try (\d) at ({NAME}) \(cell (\d+) of (\d+)\): (?:the only digit that fits|([\d ]+) fit"
            pattern += r"(?:, ([\d ]+) tried before)?, (?:([\d ]+) left|the last one))"
            match = re.fullmatch(pattern, reason.text)
            cell, digit, fits = cell_of(match[2]), int(match[1]), fitting(grid, cell_of(match[2]))
            assert ((cell, digit),) == step.placed
            assert (cell, int(match[3]), int(match[4])) == (order[depth], depth + 1, len(order))
            assert fits == (numbers(match[5]) if match[5] else {digit})
            if match[5]:
                assert numbers(match[6] or "") == tried[depth]
                assert numbers(match[7] or "") == fits - tried[depth] - {digit}
            tried[depth].add(digit)
            depth += 1
            if depth < len(order):
                tried[depth] = set()
        else:
            pattern = rf"undo (\d) at ({NAME}): nothing is left for ({NAME}), (?:([\d ]+) tried, and )?its peers hold "
            match = re.match(pattern, reason.text)
            dead = cell_of(match[3])
            assert (cell_of(match[2]), int(match[1]), dead) == (step.undone, grid[step.undone], order[depth])
            held = check_holders(reason.text.split("hold ")[1], grid, dead)
            assert numbers(match[4] or "") == tried[depth] and held | tried[depth] == set(range(1, 10))
            depth -= 1


def test_reasons_of_a_literal_sudoku():
    assert describe(LITERAL, "naked_single")[2] == (
        "r6c5 = 6, naked single: its peers hold every other digit, 1 4 8 in row 6, 3 5 7 9 in column 5, 2 in box 5"
    )
    assert describe(LITERAL, "hidden_single")[1] == (
        "r3c7 = 2, hidden single in row 3: 2 fits no other empty cell: r3c1 r3c2 r3c3 see it at r2c3, r3c4 at r5c4"
    )
    assert describe(LITERAL, "cross_hatching")[0] == (
        "r1c6 = 2, cross-hatching in box 2: row 2 has its 2 at r2c3, column 4 has its 2 at r5c4; "
        "no other empty cell is left"
    )
    assert describe(LITERAL, "propagation") == ["18 placements at once, 3 naked singles and 15 hidden singles"]
    assert describe(LITERAL, "backtracking")[8:10] == [
        "undo 6 at r4c2: nothing is left for r4c6, its peers hold 1 5 6 7 in row 4, 3 4 8 9 in column 6, 2 in box 5",
        "try 9 at r4c2 (cell 8 of 45): 6 9 fit, 6 tried before, the last one",
    ]


TRIES = LITERAL.traces["backtracking"]


@pytest.mark.parametrize(
    ("strategy", "steps", "message"),
    [
        ("naked_single", (Step(((0, 7),)),), "step 1 does not hold: nothing forces 7 at r1c1"),
        ("hidden_single", (Step(((0, 7),), 0),), "step 1 does not hold: nothing forces 7 at r1c1"),
        ("hidden_single", (Step(((9, 8),), 2),), "step 1 does not hold"),  # true in row 2, but row 3 is named
        ("cross_hatching", (Step(((9, 8),), 1),), "step 1 does not hold"),  # a row is no box
        ("propagation", (Step(((1, 3), (0, 7))),), "step 1 does not hold: nothing forces 7 at r1c1"),
        ("backtracking", (*TRIES[:3], Step(((0, 7),))), "step 4 does not hold: 7 at r1c1 is not due"),
        ("backtracking", (*TRIES[:8], Step(undone=28), Step(((28, 6),))), "step 10 does not hold: 6 at r4c2 is not"),
        ("backtracking", (*TRIES[:9], Step(((32, 6),))), "step 10 does not hold: 6 at r4c6 is not due"),
        ("backtracking", (*TRIES[:9], Step(undone=20)), "step 10 does not hold: there is something left to try"),
        ("backtracking", (*TRIES[:3], Step(undone=54)), "step 4 does not hold: there is something left to try"),
    ],
)
def test_a_step_without_a_reason_is_damage(strategy, steps, message):
    with pytest.raises(DamageError, match=f"sudoku 7: {strategy} {message}"):
        reasons(replace(LITERAL, traces={strategy: steps}), strategy)


@settings(deadline=None, max_examples=25)
@given(pictures, st.data())
def test_digits_that_are_right_but_not_yet_forced(picture, data):
    loose = [c for c in range(81) if picture.puzzle[c] == 0 and len(fitting(picture.puzzle, c)) > 1]
    cell = data.draw(st.sampled_from(loose))
    step = Step(((cell, picture.solution[cell]),))
    with pytest.raises(DamageError, match="step 1 does not hold"):
        describe(replace(picture, traces={"naked_single": (step,)}), "naked_single")
