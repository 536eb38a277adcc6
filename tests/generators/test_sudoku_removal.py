"""Removal of givens: what several cells at a time leave is what one cell at a time leaves, and it is solvable."""

from __future__ import annotations

import numpy as np
import pytest

from lol_data.generators.sudoku_grid import solved_grids
from lol_data.generators.sudoku_removal import removal_scratch, remove_givens

UNITS = [
    *([9 * r + c for c in range(9)] for r in range(9)),
    *([9 * r + c for r in range(9)] for c in range(9)),
    *([27 * b + 3 * s + 9 * r + c for r in range(3) for c in range(3)] for b in range(3) for s in range(3)),
]
PEERS = [set().union(*(unit for unit in UNITS if cell in unit)) - {cell} for cell in range(81)]


def closed_by_naked_singles(puzzle: list[int]) -> bool:
    grid, changed = list(puzzle), True
    while changed:
        changed = False
        for cell in range(81):
            fit = set(range(1, 10)) - {grid[peer] for peer in PEERS[cell]}
            if grid[cell] == 0 and len(fit) == 1:
                grid[cell], changed = fit.pop(), True
    return 0 not in grid


def closed_by_cross_hatching(puzzle: list[int]) -> bool:
    grid, changed = list(puzzle), True
    while changed:
        changed = False
        for box in UNITS[18:]:
            for digit in set(range(1, 10)) - {grid[cell] for cell in box}:
                fit = [c for c in box if grid[c] == 0 and all(grid[peer] != digit for peer in PEERS[c])]
                if len(fit) == 1:
                    grid[fit[0]], changed = digit, True
    return 0 not in grid


def remove_one_by_one(solution: list[int], order: list[int], clues: int) -> list[int] | None:
    puzzle, emptied = list(solution), []
    for cell in order:
        if len(emptied) == 81 - clues:
            break
        puzzle[cell] = 0
        if closed_by_naked_singles(puzzle) and closed_by_cross_hatching(puzzle):
            emptied.append(cell)
        else:
            puzzle[cell] = solution[cell]
    return emptied if len(emptied) == 81 - clues else None


@pytest.mark.parametrize("clues", [24, 27, 30, 36, 49, 64, 80, 81])
def test_removal_is_that_of_one_cell_at_a_time(clues):
    rng = np.random.default_rng(clues)
    scratch = removal_scratch()
    given_up = 0
    for solution in solved_grids(clues, 4):
        order = rng.permutation(81)
        expected = remove_one_by_one(solution.tolist(), order.tolist(), clues)
        assert remove_givens(solution, order, clues, scratch) == (expected is not None)
        if expected is None:
            given_up += 1
        else:
            assert scratch.empty[: 81 - clues].tolist() == expected
    assert given_up < 4 or clues == 24


def test_most_orders_come_down_to_30_clues():
    rng = np.random.default_rng(0)
    scratch = removal_scratch()
    reached = [remove_givens(solution, rng.permutation(81), 30, scratch) for solution in solved_grids(9, 2000)]
    assert np.mean(reached) > 0.99
