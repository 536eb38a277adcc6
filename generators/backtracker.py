"""Spanning trees by the recursive backtracker: depth-first search that picks among the unvisited neighbours at random.

From a random cell the walker moves into a neighbour not yet visited, each equally likely, and back along its trail
when there is none. Long corridors and few dead ends: not uniform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.generators.rng import advance, below, draw
from lol_data.generators.tree_scratch import TreeScratch
from lol_data.jit import njit

# For a mask of directions: how many it holds, and the k-th of them at [4 * mask + k].
_WAYS = np.array([mask.bit_count() for mask in range(16)], np.uint8)
_WAY = np.array([([d for d in range(4) if mask >> d & 1] + [0] * 4)[:4] for mask in range(16)], np.uint8).reshape(-1)


@njit
def backtracker_tree(
    state: np.uint64, openings: NDArray[np.uint8], neighbours: NDArray[np.uint8], scratch: TreeScratch
) -> np.uint64:
    """Write a tree's openings, uint8 (n*n,), and return the state of the row's stream behind it; see `wilson_tree`."""
    cells = len(neighbours)
    visited, trail = scratch.mark, scratch.work
    for at in range(cells):
        openings[at] = 0
        visited[at] = 0
    state = advance(state)
    cell = np.int64(below(draw(state), cells))
    visited[cell] = 1
    missing, depth = cells - 1, 0
    while missing:
        # The border's own cell stands for the neighbour that is not there, and is visited.
        free = (
            np.int64(visited[neighbours[cell, 0]])
            | np.int64(visited[neighbours[cell, 1]]) << 1
            | np.int64(visited[neighbours[cell, 2]]) << 2
            | np.int64(visited[neighbours[cell, 3]]) << 3
        ) ^ 15
        if free == 0:
            depth -= 1
            cell = np.int64(trail[depth])
            continue
        state = advance(state)
        direction = np.int64(_WAY[4 * free + below(draw(state), _WAYS[free])])
        trail[depth] = cell
        depth += 1
        openings[cell] = np.int64(openings[cell]) | (1 << direction)
        cell = np.int64(neighbours[cell, direction])
        openings[cell] = 1 << (direction ^ 2)
        visited[cell] = 1
        missing -= 1
    return state
