"""Spanning trees by Prim's algorithm on the frontier of edges, each equally likely to be next.

The tree grows from a random cell. Its frontier is every edge from a cell inside to a cell outside; one of them, each
equally likely, joins the tree. Short paths and many dead ends: not uniform. (With random weights drawn once per edge,
least first, Prim's algorithm would make Kruskal's trees; a new draw among the frontier each time does not.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.generators.rng import advance, below, draw
from lol_data.generators.tree_scratch import TreeScratch
from lol_data.jit import njit


@njit
def prim_tree(
    state: np.uint64, openings: NDArray[np.uint8], neighbours: NDArray[np.uint8], scratch: TreeScratch
) -> np.uint64:
    """Write a tree's openings, uint8 (n*n,), and return the state of the row's stream behind it; see `wilson_tree`."""
    cells = len(neighbours)
    in_tree, frontier = scratch.mark, scratch.work
    for at in range(cells):
        openings[at] = 0
        in_tree[at] = 0
    state = advance(state)
    cell = np.int64(below(draw(state), cells))
    in_tree[cell] = 1
    missing = cells - 1
    length: int | np.int64 = 0
    while True:
        for direction in range(4):  # without branches: write always, move on only if the neighbour is outside
            other = np.int64(neighbours[cell, direction])
            frontier[length] = 4 * other + direction
            length += np.int64(in_tree[other]) ^ 1
        if missing == 0:
            return state
        # An edge whose far cell has joined meanwhile is dropped when it comes up: the others stay equally likely.
        while in_tree[cell]:
            state = advance(state)
            place = below(draw(state), length)
            length -= 1
            edge = np.int64(frontier[place])
            frontier[place] = frontier[length]
            cell = edge >> 2
        in_tree[cell] = 1
        missing -= 1
        back = (edge & 3) ^ 2
        openings[cell] = 1 << back
        other = np.int64(neighbours[cell, back])
        openings[other] = np.int64(openings[other]) | (1 << (back ^ 2))
