"""Keys and fingerprints of sudokus."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.generators.sudoku_fingerprint import sudoku_fingerprint, sudoku_key
from lol_data.generators.sudoku_grid import solved_grids
from lol_data.sudokus import Sudokus

# Two grids with many symmetries of their own.
CYCLIC = [[(3 * r + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)]
BLOCKWISE = [[3 * ((r + c // 3) % 3) + (r // 3 + c) % 3 + 1 for c in range(9)] for r in range(9)]
SYMMETRIC = np.array([CYCLIC, BLOCKWISE], np.uint8).reshape(2, 81)


def batch(grids: np.ndarray) -> Sudokus:
    return Sudokus(np.zeros(len(grids), np.uint64), np.zeros((len(grids), 81), np.uint8), grids)


def prints_of(grids: np.ndarray) -> np.ndarray:
    return sudoku_fingerprint(batch(grids.reshape(-1, 81)))


def lines(bands: Iterable[int], within: Iterable[Iterable[int]]) -> list[int]:
    return [3 * band + line for band, triple in zip(bands, within, strict=True) for line in triple]


TRIPLE = st.permutations(range(3))
LINES = st.builds(lines, TRIPLE, st.tuples(TRIPLE, TRIPLE, TRIPLE))


@settings(max_examples=200, deadline=None)
@given(LINES, LINES, st.permutations(range(1, 10)), st.booleans())
def test_equivalent_grids_share_a_fingerprint(rows, columns, names, transposed):
    grids = np.concatenate([solved_grids(1, 20), SYMMETRIC]).reshape(-1, 9, 9)
    image = np.array([0, *names], np.uint8)[grids[:, rows][:, :, columns]]
    image = image.transpose(0, 2, 1) if transposed else image
    assert np.array_equal(prints_of(image), prints_of(grids))


@pytest.mark.parametrize("swap", [(0, 3), (2, 6), (5, 8)])
def test_rows_of_two_bands_may_not_be_exchanged(swap):
    # Such images are no sudokus, so a fingerprint blind to the bands would be weaker than it looks.
    grids = solved_grids(2, 500).reshape(-1, 9, 9)
    image = grids.copy()
    image[:, list(swap)] = grids[:, list(swap[::-1])]
    assert not (prints_of(image) == prints_of(grids)).any()


def test_small_changes_that_leave_a_grid_solved_change_the_fingerprint():
    # Two digits that fill the corners of a rectangle in two boxes can be exchanged.
    changed = []
    for grid in solved_grids(3, 300).reshape(-1, 9, 9):
        for top in range(9):
            for bottom in range(top + 1, top - top % 3 + 3):
                pairs = {(int(grid[top, c]), int(grid[bottom, c])): c for c in range(9)}
                for (a, b), column in pairs.items():
                    other = pairs.get((b, a))
                    if other is not None and other > column:
                        image = grid.copy()
                        image[[[top], [bottom]], [column, other]] = grid[[[bottom], [top]], [column, other]]
                        changed.append((grid, image))
    assert len(changed) > 300
    before, after = (prints_of(np.array(grids)) for grids in zip(*changed, strict=True))
    assert (before != after).mean() > 0.99


def test_100000_grids_have_hardly_a_fingerprint_in_common():
    prints = prints_of(solved_grids(4, 100_000))
    assert len(np.unique(prints)) >= 100_000 - 6  # 0.9 equivalent pairs are expected
    bits = ((prints[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(0)
    assert abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(100_000)


@pytest.mark.slow
def test_a_million_grids_share_fingerprints_as_often_as_they_are_equivalent():
    # n^2 / 2 pairs, one in 5,472,730,538 equivalent: 91 expected. Fewer would mean that equivalent grids differ.
    shared = 1_000_000 - len(np.unique(prints_of(solved_grids(7, 1_000_000))))
    assert abs(shared - 91) < 5 * np.sqrt(91)


def test_symmetric_grids_are_told_apart():
    assert len(set(prints_of(SYMMETRIC).tolist())) == 2


def test_only_the_solution_makes_the_fingerprint_and_only_the_puzzle_the_key():
    made = generate_sudokus(SudokuSettings(), 0, 0, 50).sudokus
    other_puzzle = Sudokus(made.id + np.uint64(1), made.solution, made.solution)
    assert np.array_equal(sudoku_fingerprint(other_puzzle), sudoku_fingerprint(made))
    other_solution = Sudokus(made.id + np.uint64(1), made.puzzle, made.puzzle)
    assert np.array_equal(sudoku_key(other_solution), sudoku_key(made))
    assert sudoku_key(made).dtype == sudoku_fingerprint(made).dtype == np.uint64


def test_every_cell_counts_in_the_key():
    puzzle = generate_sudokus(SudokuSettings(), 0, 0, 1).sudokus.puzzle
    changed = np.repeat(puzzle, 82, axis=0)
    changed[np.arange(81), np.arange(81)] ^= 1
    assert len(set(sudoku_key(Sudokus(np.zeros(82, np.uint64), changed, changed)).tolist())) == 82


def test_keys_are_pinned():
    made = generate_sudokus(SudokuSettings(), 0, 0, 1).sudokus
    assert (int(sudoku_key(made)[0]), int(sudoku_fingerprint(made)[0])) == (16505900418865859124, 18133252188942560654)
