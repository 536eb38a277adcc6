"""The answer: a shortest path from start to goal, both included.

A perfect maze has only one. With loops it is the one that breadth-first search finds: each cell's parent is the cell
that discovered it first, with neighbours taken in the order N, E, S, W.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit


@njit
def trace_path(
    searched: NDArray[np.uint8], searched_length: int | np.int64, came: NDArray[np.uint8], out: NDArray[np.uint8]
) -> int:
    """Write the path to `out` and return its length in cells.

    searched, came: the trace and the parents that `trace_bfs` left; its last cell is the goal. out: room for n*n.
    """
    length = 1
    slot: int | np.int64 = searched_length - 1
    while slot > 0:
        slot = np.int64(came[slot])
        length += 1
    slot = searched_length - 1
    for place in range(length - 1, -1, -1):
        out[place] = searched[slot]
        slot = np.int64(came[slot])
    return length
