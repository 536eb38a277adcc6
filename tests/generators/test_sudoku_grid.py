"""Random solved grids: valid, whole, nearly uniform."""

from __future__ import annotations

import numpy as np
import pytest

from lol_data.errors import UsageError
from lol_data.generators.rng import row_state
from lol_data.generators.sudoku_grid import MAX_WEIGHT, grid_scratch, shuffle, solved_grids, try_grid
from lol_data.jit import njit

ATTEMPTS = 200_000


@njit
def fill_attempts(grids, weights, scratch):
    for row in range(len(grids)):
        weights[row] = try_grid(row_state(np.uint64(1), np.uint64(2), np.uint64(row)), grids[row], scratch)[1]


@pytest.fixture(scope="module")
def attempts() -> tuple[np.ndarray, np.ndarray]:
    """Grids, uint8 (ATTEMPTS, 9, 9), and their weights."""
    grids, weights = np.empty((ATTEMPTS, 81), np.uint8), np.empty(ATTEMPTS, np.int64)
    fill_attempts(grids, weights, grid_scratch())
    return grids.reshape(-1, 9, 9), weights


def boxes_as_rows(grids: np.ndarray) -> np.ndarray:
    return grids.reshape(-1, 3, 3, 3, 3).transpose(0, 1, 3, 2, 4).reshape(-1, 9, 9)


def assert_even(counts: np.ndarray) -> None:
    """Chi-square within five standard deviations of what equal probabilities give."""
    freedom, expected = counts.size - 1, counts.sum() / counts.size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


def test_grids_are_solved():
    made = solved_grids(2**64 - 1, 20_000)
    assert made.dtype == np.uint8
    grids = made.reshape(-1, 9, 9)
    for lines in (grids, grids.transpose(0, 2, 1), boxes_as_rows(grids)):
        assert (np.sort(lines, axis=2) == np.arange(1, 10)).all()


def test_grids_are_distinct_and_digits_even_in_every_cell():
    made = solved_grids(0, 100_000)
    assert len(np.unique(made, axis=0)) == 100_000
    for cell in range(81):
        assert_even(np.bincount(made[:, cell], minlength=10)[1:])


def test_weights_estimate_the_number_of_sudoku_grids(attempts):
    # Felgenhauer and Jarvis, 2005. An attempt that could not reach some grids would estimate too few.
    frames = 362_880 * (56 * 6**6) ** 2
    _, weights = attempts
    error = weights.std() / np.sqrt(ATTEMPTS)
    assert error < 20
    assert abs(weights.mean() - 6_670_903_752_021_072_936_960 / frames) < 5 * error


def test_weights_are_those_of_solved_grids(attempts):
    grids, weights = attempts
    full = (np.sort(grids, axis=1) == np.arange(1, 10)[:, None]).all((1, 2))
    assert full[weights > 0].all()
    assert 0.7 < (weights > 0).mean() < 0.85


def test_kept_grids_are_close_to_uniform(attempts):
    # An attempt comes to a grid with probability 1 / weight (times that of the frame), and is kept as `draw_grid` says.
    weights = attempts[1].astype(float)
    uniform, kept = weights / weights.sum(), np.minimum(weights, MAX_WEIGHT) / np.minimum(weights, MAX_WEIGHT).sum()
    assert abs(uniform - kept).sum() / 2 < 0.06
    assert (kept / np.where(uniform > 0, uniform, 1)).max() < 1.08


@pytest.mark.parametrize("transposed", [False, True])
def test_all_frames_are_equally_likely(attempts, transposed):
    grids = attempts[0].transpose(0, 2, 1) if transposed else attempts[0]
    names = np.zeros((ATTEMPTS, 10), np.uint8)
    np.put_along_axis(names, grids[:, :3, :3].reshape(-1, 9).astype(np.intp), np.arange(9, dtype=np.uint8)[None], 1)
    band = np.take_along_axis(names, grids[:, :3, :].reshape(-1, 27).astype(np.intp), 1).reshape(-1, 3, 9)
    sets = (1 << band[:, :, 3:6].astype(np.int64)).sum(2)
    _, splits = np.unique(sets, axis=0, return_counts=True)
    assert len(splits) == 56
    assert_even(splits)
    for row in range(3):
        for first in (3, 6):
            triple = band[:, row, first : first + 3]
            _, orders = np.unique(np.argsort(triple, axis=1), axis=0, return_counts=True)
            assert len(orders) == 6
            assert_even(orders)


def test_shuffles_are_uniform():
    @njit
    def count_orders(counts, items):
        for k in range(24 * 1000):
            shuffle(row_state(np.uint64(0), np.uint64(0), np.uint64(k)), items)
            counts[items[0], items[1], items[2]] += 1

    counts = np.zeros((4, 4, 4), np.int64)
    count_orders(counts, np.arange(4))
    assert (counts > 0).sum() == 24
    assert_even(counts[counts > 0])


def test_row_k_depends_on_seed_and_k_only():
    assert np.array_equal(solved_grids(5, 30)[:10], solved_grids(5, 10))
    assert not (solved_grids(5, 100) == solved_grids(6, 100)).all(1).any()
    assert solved_grids(5, 0).shape == (0, 81)


@pytest.mark.parametrize(("seed", "count"), [(-1, 1), (0, -1)])
def test_requests_that_are_refused(seed, count):
    with pytest.raises(UsageError):
        solved_grids(seed, count)
