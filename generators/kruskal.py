"""Spanning trees by Kruskal's algorithm with walls of equal weight in random order.

All walls between neighbouring cells are taken in a uniformly random order; a wall falls if the cells on its two sides
are not connected yet. Close to uniform trees, but not uniform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.generators.rng import advance, below, draw
from lol_data.generators.tree_scratch import TreeScratch
from lol_data.jit import njit


@njit
def kruskal_tree(
    state: np.uint64, openings: NDArray[np.uint8], neighbours: NDArray[np.uint8], scratch: TreeScratch
) -> np.uint64:
    """Write a tree's openings, uint8 (n*n,), and return the state of the row's stream behind it; see `wilson_tree`."""
    cells = len(neighbours)
    group, order = scratch.mark, scratch.work
    left = len(scratch.walls)
    for at in range(left):
        order[at] = scratch.walls[at]
    for at in range(cells):
        openings[at] = 0
        group[at] = at
    missing: int | np.int64 = cells - 1
    while missing:
        state = advance(state)
        place = below(draw(state), left)
        left -= 1
        wall = np.int64(order[place])
        order[place] = order[left]
        cell, direction = wall >> 1, 1 + (wall & 1)
        other = np.int64(neighbours[cell, direction])
        # Every cell knows its group and a union renames one group in all cells: a vector instruction or two, cheaper
        # than the guesses of a union-find tree. So is doing it, to no effect, for two cells of the same group.
        mine, theirs = group[cell], group[other]
        fresh = np.int64(mine != theirs)
        for at in range(cells):
            group[at] = mine if group[at] == theirs else group[at]
        openings[cell] = np.int64(openings[cell]) | fresh << direction
        openings[other] = np.int64(openings[other]) | fresh << (direction ^ 2)
        missing -= fresh
    return state
