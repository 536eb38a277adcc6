"""The counting solver against brute force, on published puzzles and on grids that make others search for ever."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from lol_data.errors import UsageError
from lol_data.solvers.sudoku_count import count_solutions

from .plain_sudoku import UNITS, digits_of, random_givens, solutions, solved_grid, with_clues


def count(text: str, limit: int = 2) -> int:
    return int(count_solutions(np.array([digits_of(text)], np.uint8), limit)[0][0])


def array(grids: list[list[int]]) -> np.ndarray:
    return np.array(grids, np.uint8)


PUBLISHED = {
    "92..8.65.6..2.43..3..5.9.72.7.953.......7.......6..5....142..3.....31..6.6.7..1..": 6,
    "349618572782359000651742389273895000195476238864231957527164893918523764436987125": 2,
    "........2.2..5.8.1......3..7.4.9........8541.....37...18....9....7..9...2...4..58": 26,
    "........2.2..5.8.1......3..7.4.9........8541...5.37...18....9....7..9...2...4..58": 1,
    "....................1..6.9...841...7..2.5.6..6...124...2.5..9....................": 0,  # conflict
    "5..2.4.96.711697.54287...425.964.28319...5.142...129..8...835.97.25263719..9..4.8": 0,  # conflict
    "000000010400000000020000000000050407008000300001090000300400200050100000000806000": 1,  # 17 clues
    "..............3.85..1.2.......5.7.....4...1...9.......5......73..2.1........4...9": 1,  # 17 clues
    "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..": 1,
    ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4.........": 0,  # no conflict
    "12345678........................................................................9": 0,
}


@pytest.mark.parametrize(("puzzle", "solutions_"), PUBLISHED.items())
def test_published_puzzles(puzzle, solutions_):
    assert count(puzzle, 100) == solutions_
    assert count(puzzle) == min(2, solutions_)


@pytest.mark.parametrize("clues", [24, 28, 33, 45])
def test_counts_equal_brute_force(clues):
    rng = random.Random(clues)
    grids = [with_clues(solved_grid(rng), clues, rng) for _ in range(12)]
    grids += [random_givens(clues, rng) for _ in range(12)]
    expected = [solutions(grid, 60) for grid in grids]
    counts, first = count_solutions(array(grids), 60)
    assert counts.tolist() == [len(found) for found in expected]
    for grid, found, one in zip(grids, expected, first.tolist(), strict=True):
        if len(found) < 60:  # brute force knows them all
            assert one in found if found else not any(one)
        assert all(given in (0, digit) for given, digit in zip(grid, one, strict=True)) or not found
    few, _ = count_solutions(array(grids))
    assert few.tolist() == [min(2, len(found)) for found in expected]


def test_the_brute_force_cases_have_none_one_and_several():
    rng = random.Random(28)
    counts, _ = count_solutions(array([with_clues(solved_grid(rng), 28, rng) for _ in range(12)]), 60)
    none, _ = count_solutions(array([random_givens(45, rng) for _ in range(12)]), 60)
    assert (counts > 1).any() and (counts < 60).any() and (none == 0).any()


def test_the_first_solution_is_a_solution():
    _, first = count_solutions(np.zeros((1, 81), np.uint8))
    assert all({first[0, cell] for cell in unit} == set(range(1, 10)) for unit in UNITS)


def test_a_full_grid_and_no_rows():
    grid = solved_grid(random.Random(0))
    counts, first = count_solutions(array([grid]))
    assert counts.tolist() == [1] and first[0].tolist() == grid
    counts, first = count_solutions(np.zeros((0, 81), np.uint8))
    assert counts.shape == (0,) and first.shape == (0, 81)


def test_givens_that_conflict_have_no_solution():
    full = solved_grid(random.Random(0))
    swapped = [full[1], full[0], *full[2:]]  # full, and wrong in two columns only
    counts, first = count_solutions(array([swapped, digits_of("1...1" + "." * 76), full]))
    assert counts.tolist() == [0, 0, 1] and not first[:2].any()


def test_known_numbers_of_solutions():
    # An unfilled band under two filled ones: its columns are known as sets of three, one to a row of each column.
    solution = digits_of("534678912672195348198342567859761423426853791713924856961537284287419635345286179")
    top = solution[:54] + [0] * 27
    assert count_solutions(array([top]), 10**6)[0][0] == len(solutions(top, 10**6))
    # Two digits that are nowhere: swapping them gives another solution each time.
    rest = [0 if digit in (1, 2) else digit for digit in solution]
    found = count_solutions(array([rest]), 1000)[0][0]
    assert found == len(solutions(rest, 1000)) and found % 2 == 0


def test_the_limit_is_exact():
    for limit in (1, 2, 3, 99, 5000):
        assert count("." * 81, limit) == limit


def test_hard_grids_take_milliseconds():
    rng = random.Random(5)
    grids = [digits_of("." * 81), digits_of("49675.8..21869375..5.48..69" + "." * 54)]
    grids += [random_givens(clues, rng) for clues in range(1, 81)]
    grids += [digits_of(text) for text in PUBLISHED]
    count_solutions(array(grids[:1]))
    begin = time.perf_counter()
    counts, _ = count_solutions(array(grids))
    assert time.perf_counter() - begin < 1  # 0.02 s on an idle core
    assert counts[:2].tolist() == [2, 2]


def test_wrong_input_is_refused():
    with pytest.raises(UsageError, match="shape"):
        count_solutions(np.zeros((1, 80), np.uint8))
    with pytest.raises(UsageError, match="above 9"):
        count_solutions(np.full((1, 81), 10, np.uint8))
    with pytest.raises(UsageError, match="limit of 0"):
        count_solutions(np.zeros((1, 81), np.uint8), 0)


def test_the_puzzles_are_not_touched():
    puzzles = array([digits_of("." * 81)])
    puzzles.flags.writeable = False
    count_solutions(puzzles)
