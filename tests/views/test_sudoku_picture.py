"""What is drawn of a sudoku: rows become pictures, traces are replayed as they went, damage is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import DamageError, UsageError
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.ragged import Ragged
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE, TracedSudokus
from lol_data.views.sudoku_picture import CELLS_OF, PEERS, UNITS_OF, Step, sudoku_picture_of, unit_name

from .sudoku_common import LITERAL, UNITS, peers, pictures


def symbols(strategy, steps):
    """The trace of a list of steps, by the table in lol_data.sudokus."""
    out = []
    for step in steps:
        out += [] if step.unit is None else [UNIT + step.unit]
        out += [symbol for cell, digit in step.placed for symbol in (cell, DIGIT + digit)]
        out += [] if step.undone is None else [UNDO, step.undone]
        out += [WAVE] if strategy == "propagation" else []
    return out


def test_a_row_becomes_a_picture():
    traced = generate_sudokus(SudokuSettings(), 1, 10, 14)
    picture = sudoku_picture_of(traced, 2)
    assert (picture.id, picture.name, picture.clues) == (12, "sudoku 12", traced.sudokus.clues[2])
    assert list(picture.puzzle) == traced.sudokus.puzzle[2].tolist()
    assert list(picture.solution) == traced.sudokus.solution[2].tolist()
    assert tuple(picture.traces) == SUDOKU_STRATEGIES
    for strategy, trace in picture.traces.items():
        assert symbols(strategy, trace) == traced.traces[strategy][2].tolist()


@pytest.mark.parametrize("row", [-1, 4])
def test_a_row_that_does_not_exist(row):
    with pytest.raises(UsageError, match=f"row {row} does not exist; there are 4 rows"):
        sudoku_picture_of(generate_sudokus(SudokuSettings(), 1, 10, 14), row)


def test_requests_that_make_no_sense():
    with pytest.raises(UsageError, match="'ids' is unknown; choose from naked_single, hidden_single"):
        LITERAL.trace("ids")
    for step in (0, 4, -1):
        with pytest.raises(UsageError, match=f"step {step} does not exist; hidden_single has 3 steps"):
            LITERAL.check_step("hidden_single", step)
    with pytest.raises(UsageError, match="step 3 of which strategy"):
        LITERAL.check_step(None, 3)
    LITERAL.check_step("hidden_single", 3)
    LITERAL.check_step("hidden_single", None)


def test_units_and_peers():
    assert [unit_name(unit) for unit in range(27)] == list(UNITS)
    assert [set(cells) for cells in CELLS_OF] == list(UNITS.values())
    for cell in range(81):
        assert set(PEERS[cell]) == peers(cell) and len(PEERS[cell]) == 20
        assert [cell in CELLS_OF[unit] for unit in UNITS_OF[cell]] == [True] * 3


@settings(deadline=None, max_examples=25)
@given(pictures, st.sampled_from(SUDOKU_STRATEGIES))
def test_replayed_traces(picture, strategy):
    grids, made = picture.grids(strategy), picture.placements(strategy)
    assert len(grids) == len(picture.traces[strategy]) + 1
    assert (grids[0], grids[-1]) == (picture.puzzle, picture.solution)
    for step, grid in enumerate(grids, 1):
        standing = {placement.cell: placement.digit for placement in made if placement.stands_before(step)}
        assert grid == tuple(standing.get(cell, given) for cell, given in enumerate(picture.puzzle))
        assert not any(picture.puzzle[cell] for cell in standing)
    undos = sum(placement.undone is not None for placement in made)
    assert len(made) - undos == 81 - picture.clues
    if strategy == "backtracking":
        assert picture.count(strategy).startswith(f"{len(made)} tries, {undos} undo")
    else:
        assert undos == 0


def test_counts():
    counts = {"hidden_single": "3 steps", "propagation": "1 wave", "backtracking": "11 tries, 3 undos"}
    assert {strategy: LITERAL.count(strategy) for strategy in counts} == counts


def without(cells):
    return tuple(0 if cell in cells else digit for cell, digit in enumerate(LITERAL.solution))


OTHERWISE = tuple(Step(((cell, digit),)) for cell, digit in ((9, 2), (11, 8), (27, 8), (29, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"puzzle": (6, *LITERAL.puzzle[1:])}, "the puzzle has a digit twice in row 1"),
        ({"puzzle": (3, *LITERAL.puzzle[1:]), "traces": {}}, "the puzzle has a digit twice in column 1"),
        ({"puzzle": (1, *LITERAL.puzzle[1:]), "traces": {}}, "the solution has 7 at r1c1, the puzzle 1"),
        ({"puzzle": LITERAL.puzzle[:80]}, "the puzzle is not 81 digits"),
        ({"puzzle": (10, *LITERAL.puzzle[1:])}, "the puzzle is not 81 digits"),
        ({"solution": without({0}), "traces": {}}, "the solution has 0 at r1c1"),
        ({"traces": {"naked_single": (Step(((3, 6),)),)}}, "naked_single step 1 places 6 at r1c4, where 6 stands"),
        ({"traces": {"naked_single": (Step(((40, 4),)),)}}, "step 1 places 4 at r5c5, where a peer holds it"),
        ({"traces": {"backtracking": (Step(undone=40),)}}, "step 1 undoes r5c5, which was not tried last"),
        ({"traces": {"backtracking": (*LITERAL.traces["backtracking"][:2], Step(undone=40))}}, "step 3 undoes r5c5"),
        ({"puzzle": without({9, 11, 27, 29}), "traces": {"backtracking": OTHERWISE}}, "fills the grid otherwise"),
    ],
)
def test_what_no_search_can_have_made_is_damage(change, message):
    with pytest.raises(DamageError, match=message):
        replace(LITERAL, **change)


@pytest.mark.parametrize(
    ("strategy", "broken"),
    [
        ("naked_single", [40]),
        ("naked_single", [40, 40]),
        ("hidden_single", [40, DIGIT + 5]),
        ("cross_hatching", [UNIT + 27, 40, DIGIT + 5]),
        ("propagation", [40, DIGIT + 5]),
        ("backtracking", [UNDO, 200]),
        ("backtracking", [255, 255]),
    ],
)
def test_symbols_that_are_no_trace_are_damage(strategy, broken):
    traced = generate_sudokus(SudokuSettings(), 1, 10, 11)
    traces = {strategy: Ragged.from_rows([broken], np.uint8)}
    with pytest.raises(DamageError, match=f"sudoku 10: {strategy}: not the symbols of a {strategy} trace"):
        sudoku_picture_of(TracedSudokus(traced.sudokus, traces), 0)
