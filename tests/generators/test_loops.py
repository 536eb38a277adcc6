"""Walls opened behind the tree: how many, which, and from which random numbers."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.loops import loop_threshold, open_walls
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.rng import row_state
from lol_data.generators.spanning_tree import spanning_trees
from lol_data.generators.tree_scratch import tree_scratch
from lol_data.solvers.grid import grid
from lol_data.solvers.tracing import check_problems

COUNT = 20_000


def opened(size: int, loops: float, count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    """Trees, and the same with walls opened, uint8 (count, n*n)."""
    trees = spanning_trees("wilson", size, 0, count)
    mazes, neighbours, walls = trees.copy(), grid(size).neighbours, tree_scratch(size).walls
    for row in range(count):
        state = np.uint64(row_state(np.uint64(1), np.uint64(0), np.uint64(row)))
        open_walls(state, mazes[row], neighbours, walls, loop_threshold(loops))
    return trees, mazes


def passages(openings: np.ndarray) -> np.ndarray:
    return np.bitwise_count(openings).sum(1) // 2


@pytest.mark.parametrize("loops", [0.02, 0.3, 0.9])
def test_the_number_of_loops_is_binomial(loops):
    trees, mazes = opened(8, loops)
    assert ((trees & ~mazes) == 0).all()
    counts = np.bincount(passages(mazes) - passages(trees), minlength=50)
    expected = COUNT * np.array([comb(49, k) * loops**k * (1 - loops) ** (49 - k) for k in range(50)])
    likely = expected >= 5
    tails = COUNT - expected[likely].sum()
    statistic = ((counts - expected) ** 2 / expected)[likely].sum() + (counts[~likely].sum() - tails) ** 2 / tails
    freedom = likely.sum()
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_every_wall_is_as_likely():
    trees, mazes = opened(5, 0.25)
    for bit in (2, 4):
        shut = (trees & bit) == 0
        shut[:, np.arange(25) % 5 == 4 if bit == 2 else np.arange(25) >= 20] = False
        for cell in np.flatnonzero(shut.any(0)):
            rows = shut[:, cell]
            share = ((mazes[rows, cell] & bit) != 0).mean()
            assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / rows.sum())


@pytest.mark.parametrize("size", range(3, 16))
def test_ends_of_the_range(size):
    trees, mazes = opened(size, 0.0, 20)
    assert np.array_equal(trees, mazes)
    field = generate_mazes(MazeSettings(size, 2, loops=1), 0, 0, 20).mazes
    assert (passages(field.openings) == 2 * size * (size - 1)).all()
    check_problems(field)  # a closed border, and two sides to each passage


@pytest.mark.parametrize("loops", [0.01, 0.1, 0.5])
def test_looped_mazes_are_mazes(loops):
    mazes = generate_mazes(MazeSettings(8, loops=loops), 0, 0, 2000).mazes
    check_problems(mazes)
    more = passages(mazes.openings) - 63
    # Keeping long paths only favours mazes with few loops.
    assert 0.3 * 49 * loops < more.mean() < 49 * loops


@given(st.floats(0, 1), st.floats(0, 1))
def test_thresholds_are_in_order(one, other):
    low, high = (int(loop_threshold(loops)) for loops in sorted([one, other]))
    assert low <= high <= 2**63
    assert (high > 0) == (max(one, other) > 0)
    assert high - 1 < max(one, other) * 2.0**63 <= high or high >= 2**53


@pytest.mark.parametrize(
    ("loops", "threshold"), [(0, 0), (0.0, 0), (5e-324, 1), (0.25, 2**61), (1, 2**63), (1.0, 2**63)]
)
def test_exact_thresholds(loops, threshold):
    assert int(loop_threshold(loops)) == threshold


@pytest.mark.parametrize("loops", [-1e-9, 1.0000001, float("nan"), float("-inf"), True, "1", None, 1j])
def test_thresholds_that_are_refused(loops):
    with pytest.raises(UsageError, match="loops"):
        loop_threshold(loops)
