"""Uniform spanning trees of the n x n grid by Wilson's algorithm (1996).

From every cell not yet in the tree a random walk runs until it meets the tree; the walk, its loops erased, joins the
tree. Loops are erased by remembering only the last way out of each cell.

The walk takes each of four directions with probability 1/4 and stays where it is when the border is in the way. That
keeps the tree exactly uniform: a tree comes up with a probability proportional to the product of its cells' step
probabilities (all of them 1/4, one per cell but the root), and standing still is just one more loop to erase. So a
step costs two random bits and a table lookup: no division, no draw per step, no case for the border.

The root does not matter for the distribution, but the expected number of steps, 4 times the sum of the effective
resistances between root and cells, is least for a root in the middle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.generators.rng import advance, draw
from lol_data.generators.tree_scratch import TreeScratch
from lol_data.jit import njit

_TWO, _THREE = np.uint64(2), np.uint64(3)


@njit
def wilson_tree(
    state: np.uint64, openings: NDArray[np.uint8], neighbours: NDArray[np.uint8], scratch: TreeScratch
) -> np.uint64:
    """Write a tree's openings, uint8 (n*n,), and return the state of the row's stream behind it.

    neighbours: as in `solvers.grid`. All four kinds of trees are called like this.
    """
    cells = len(neighbours)
    in_tree, way = scratch.mark, scratch.work
    for at in range(cells):
        openings[at] = 0
        in_tree[at] = 0
    size = 1
    while size * size < cells:
        size += 1
    in_tree[(size // 2) * size + size // 2] = 1
    bits, left = np.uint64(0), 0
    for first in range(cells):
        cell = np.int64(first)
        while in_tree[cell] == 0:
            if left == 0:
                state = advance(state)
                bits, left = draw(state), 32
            direction = np.int64(bits & _THREE)
            bits >>= _TWO
            left -= 1
            way[cell] = direction
            cell = np.int64(neighbours[cell, direction])
        cell = np.int64(first)
        while in_tree[cell] == 0:
            in_tree[cell] = 1
            direction = np.int64(way[cell])
            openings[cell] = np.int64(openings[cell]) | (1 << direction)
            cell = np.int64(neighbours[cell, direction])
            openings[cell] = np.int64(openings[cell]) | (1 << (direction ^ 2))
    return state
