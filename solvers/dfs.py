"""Depth-first search, as a walk.

A step is a cell that the walker stands on. The first step is the start; every move adds one step, into a cell not
visited before or, when the cell has no unvisited open neighbour left, back to the cell it was first entered from. The
walk ends on the goal. The canonical choice among unvisited neighbours is the first in the order N, E, S, W.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit


@njit
def trace_dfs(
    openings: NDArray[np.uint8],
    start: int,
    goal: int,
    out: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    seen: NDArray[np.uint8],
    came: NDArray[np.uint8],
    left: NDArray[np.uint8],
) -> int:
    """Write the trace to `out` (room for 2*n*n cells) and return its length; 0 when the goal cannot be reached."""
    cells = len(neighbours)
    for cell in range(cells):
        seen[cell] = 0
    here = np.int64(start)
    seen[here] = 1
    left[here] = openings[here]
    out[0] = here
    length = 1
    while here != goal:
        ways = np.int64(left[here])
        if ways == 0:
            if here == start:
                return 0
            here = np.int64(came[here])
        else:
            direction = lowest_bit(ways)
            left[here] = ways & (ways - 1)
            there = np.int64(neighbours[here, direction])
            if seen[there]:
                continue  # met by another way round a loop
            seen[there] = 1
            came[there] = here
            left[there] = np.int64(openings[there]) & ~(1 << (direction ^ 2))
            here = there
        out[length] = here
        length += 1
    return length
