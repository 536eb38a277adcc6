"""Every sudoku tracer against a naive reference, on puzzles with one, several and no solutions, and one by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.solvers.sudoku_grid import scratch
from lol_data.solvers.sudoku_tracing import collect, trace_buffers, trace_sudoku, trace_sudokus
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE, Sudokus

from .plain_sudoku import PEERS, batch, digits_of, fitting, homes, random_givens, solved_grid, with_clues

MAX_TRIES = 300

# ---- references: a grid as a list of digits, everything recomputed in the plainest way ----


def naked_single(grid):
    trace, before = [], None
    while trace != before:
        before = trace[:]
        for cell in range(81):
            if grid[cell] == 0 and len(fitting(grid, cell)) == 1:
                (grid[cell],) = fitting(grid, cell)
                trace += [cell, DIGIT + grid[cell]]
    return trace


def hidden_single(grid):
    trace, before = [], None
    while trace != before:
        before = trace[:]
        for unit in range(27):
            for digit in range(1, 10):
                trace += place_if_only_home(grid, unit, digit)
    return trace


def cross_hatching(grid):
    trace, before = [], None
    while trace != before:
        before = trace[:]
        for digit in range(1, 10):
            for box in range(18, 27):
                trace += place_if_only_home(grid, box, digit)
    return trace


def place_if_only_home(grid, unit, digit):
    cells = homes(grid, unit, digit)
    if len(cells) != 1:
        return []
    grid[cells[0]] = digit
    return [UNIT + unit, cells[0], DIGIT + digit]


def propagation(grid):
    trace = []
    while True:
        wave = {(c, d) for c in range(81) if grid[c] == 0 and len(fitting(grid, c)) == 1 for d in fitting(grid, c)}
        for unit in range(27):
            for digit in range(1, 10):
                cells = homes(grid, unit, digit)
                if len(cells) == 1:
                    wave.add((cells[0], digit))
        two_digits = len({cell for cell, _ in wave}) < len(wave)
        digit_twice = any(d == e and c in PEERS[b] for b, d in wave for c, e in wave)
        if not wave or two_digits or digit_twice:
            return trace
        for cell, digit in sorted(wave):
            grid[cell] = digit
            trace += [cell, DIGIT + digit]
        trace.append(WAVE)


def backtracking(grid):
    cells = sorted((c for c in range(81) if grid[c] == 0), key=lambda c: (len(fitting(grid, c)), c))
    trace, tries = [], 0

    def search(depth):
        """Has the search ended, full or at the limit?"""
        nonlocal tries
        if depth == len(cells):
            return True
        for digit in sorted(fitting(grid, cells[depth])):
            if tries == MAX_TRIES:
                return True
            tries += 1
            grid[cells[depth]] = digit
            trace.extend([cells[depth], DIGIT + digit])
            if search(depth + 1):
                return True
            grid[cells[depth]] = 0
            trace.extend([UNDO, cells[depth]])
        return False

    search(0)
    return trace


REFERENCES = dict(
    zip(SUDOKU_STRATEGIES, (naked_single, hidden_single, cross_hatching, propagation, backtracking), strict=True)
)


def assert_equal_to_references(grids):
    traced = trace_sudokus(batch(grids), MAX_TRIES)
    assert tuple(traced.traces) == SUDOKU_STRATEGIES
    for row, grid in enumerate(grids):
        for name, reference in REFERENCES.items():
            assert traced.traces[name][row].tolist() == reference(grid[:]), (name, grid)


# ---- against the references ----


@pytest.fixture(scope="module")
def grids():
    rng = random.Random(1)
    return [solved_grid(rng) for _ in range(20)]


@pytest.mark.parametrize("clues", [22, 27, 31, 36, 50, 70])
def test_part_of_a_solution_equals_the_references(grids, clues):
    rng = random.Random(clues)
    assert_equal_to_references([with_clues(grid, clues, rng) for grid in grids])


@pytest.mark.parametrize("clues", [5, 20, 30, 45, 81])
def test_givens_without_a_solution_equal_the_references(clues):
    rng = random.Random(clues)
    assert_equal_to_references([random_givens(clues, rng) for _ in range(25)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(20, 60), st.integers(0, 3))
def test_any_puzzle_with_a_few_wrong_digits_equals_the_references(grids, seed, clues, wrong):
    rng = random.Random(seed)
    grid = with_clues(rng.choice(grids), clues, rng)
    for cell in rng.sample(range(81), wrong):
        grid[cell] = 0
        grid[cell] = rng.choice([0, *fitting(grid, cell)])
    assert_equal_to_references([grid])


def test_the_random_puzzles_reach_every_end(grids):
    rng = random.Random(8)
    easy = trace_sudokus(batch([with_clues(grid, 45, rng) for grid in grids]))
    assert (easy.traces["naked_single"].lengths == 2 * 36).any()
    assert (easy.traces["cross_hatching"].lengths == 3 * 36).any()
    bad = [random_givens(45, rng) for _ in range(40)]
    contradictions = [grid for grid in bad if len(propagation(grid[:])) < len(propagation_without_check(grid[:]))]
    assert contradictions  # waves that the reference, and so the tracer, refused
    assert any(trace[-2:-1].tolist() == [UNDO] for trace in trace_sudokus(batch(bad)).traces["backtracking"])


def propagation_without_check(grid):
    """One wave after the last good one."""
    trace = propagation(grid)
    return trace + [c for c in range(81) if grid[c] == 0 and len(fitting(grid, c)) == 1]


def test_full_and_empty_grids(grids):
    full = trace_sudokus(batch([grids[0]]))
    assert all(len(trace.values) == 0 for trace in full.traces.values())
    assert_equal_to_references([grids[0], [0] * 81])


def test_no_rows():
    assert len(trace_sudokus(batch([]))) == 0


# ---- one puzzle by hand ----

# The empty cells: 0 and 1 of row 0, 28 of row 3, 72 and 74 of row 8. Rows 0 and 8 lack 3 and 5, row 3 lacks 5; columns
# 0 and 1 lack 3 and 5, column 2 lacks 5; boxes 18 and 24 lack 3 and 5, box 21 lacks 5. So 28 and 74 take only 5, and
# the other three take 3 or 5.
BY_HAND = "..46789126721953481983425678.9761423426853791713924856961537284287419635.4.286179"
GOLDEN = {
    # sweep 1: 28, 74. Then column 1 has its 5, and so has row 8: 1, 72. Then row 0 has its 3: 0
    "naked_single": [28, 85, 74, 85, 1, 83, 72, 83, 0, 85],
    # row 0: two places for either. Row 3: 28. Row 8: 3 in 72 only, as column 2 has one; 5. Column 0: 5. Column 1: 3
    "hidden_single": [93, 28, 85, 98, 72, 83, 98, 74, 85, 99, 0, 85, 100, 1, 83],
    # 3: two places in box 18, one in 24. 5: two in box 18, one in 21 and in 24. Again 3: one in box 18; 5: too
    "cross_hatching": [114, 72, 83, 111, 28, 85, 114, 74, 85, 108, 1, 83, 108, 0, 85],
    # wave 1: 28 and 74 take one digit; 3 has one place in column 1 and one in row 8. Wave 2: what is left
    "propagation": [1, 83, 28, 85, 72, 83, 74, 85, WAVE, 0, 85, WAVE],
    # order: 28 and 74 with one digit, then 0, 1, 72 with two. 0 = 3 leaves nothing for 1, whose column has 5 by now
    "backtracking": [28, 85, 74, 85, 0, 83, UNDO, 0, 0, 85, 1, 83, 72, 83],
}


def test_golden_puzzle():
    traced = trace_sudokus(batch([digits_of(BY_HAND)]))
    assert {name: trace[0].tolist() for name, trace in traced.traces.items()} == GOLDEN


# ---- the kernel that the generator calls ----


@pytest.mark.parametrize(
    ("puzzle", "conditions", "kept"),
    [
        (BY_HAND, (6, 1, True), True),
        (BY_HAND, (6, 2, True), False),  # one undo
        (BY_HAND, (5, 1, True), False),  # six tries
        (BY_HAND, (5, 1, False), True),  # cut off
        ("." * 81, (256, 0, True), False),
        ("." * 81, (256, 0, False), True),
    ],
)
def test_a_refused_puzzle_is_not_appended(puzzle, conditions, kept):
    values, offsets = trace_buffers(2)
    first = np.array(digits_of(BY_HAND), np.uint8)
    assert trace_sudoku(first, (256, 1, True), 0, values, offsets, scratch())
    assert trace_sudoku(np.array(digits_of(puzzle), np.uint8), conditions, 1, values, offsets, scratch()) == kept
    assert (offsets[:, 2] > offsets[:, 1]).any() == kept
    traced = collect(batch([digits_of(BY_HAND)]), values, offsets[:, :2])
    assert {name: trace[0].tolist() for name, trace in traced.traces.items()} == GOLDEN


def test_backtracking_stops_at_the_limit_of_tries():
    traced = trace_sudokus(batch([[0] * 81]), 50)
    assert np.count_nonzero(traced.traces["backtracking"][0] > DIGIT) == 50 + np.count_nonzero(
        traced.traces["backtracking"][0] == UNDO
    )


# ---- what is no puzzle ----


def test_what_is_no_puzzle_is_refused_by_id(grids):
    bad = batch([grids[0], grids[1]])
    bad.puzzle[1, 0] = bad.puzzle[1, 8]
    with pytest.raises(UsageError, match="sudoku 101 has a digit twice"):
        trace_sudokus(bad)
    bad.puzzle[1, 0] = 10
    with pytest.raises(UsageError, match="sudoku 101 has a digit above 9"):
        trace_sudokus(bad)
    with pytest.raises(UsageError, match="shape"):
        trace_sudokus(Sudokus(bad.id, bad.puzzle[:, :80], bad.solution))


def test_input_need_not_be_contiguous(grids):
    rng = random.Random(3)
    puzzles = [with_clues(grid, 34, rng) for grid in grids]
    whole = batch(puzzles)
    half = trace_sudokus(Sudokus(whole.id[::2], whole.puzzle[::2], whole.solution[::2]))
    for name, trace in trace_sudokus(whole).traces.items():
        assert np.array_equal(trace.take(np.arange(0, len(puzzles), 2)).values, half.traces[name].values)
