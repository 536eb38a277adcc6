"""Breadth-first search.

A step is a cell leaving the first-in, first-out queue. The start is the first step, the goal the last. A cell that
leaves the queue puts its undiscovered open neighbours into it in the order N, E, S, W; that is the canonical
tie-break (any order among the neighbours of one cell is legal). No cell enters the queue twice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit


@njit
def trace_bfs(
    openings: NDArray[np.uint8],
    start: int,
    goal: int,
    out: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    seen: NDArray[np.uint8],
    came: NDArray[np.uint8],
) -> int | np.int64:
    """Write the trace to `out` and return its length; 0 when the goal cannot be reached.

    out: room for n*n + 4 cells. came: afterwards, came[k] is the place in `out` of the parent of out[k].
    """
    cells = len(neighbours)
    for cell in range(cells):
        seen[cell] = 0
    # `out` is the queue itself: what leaves a queue is what entered it. So the search may stop when the goal enters.
    out[0] = start
    came[0] = 0
    seen[start] = 1
    head = 0
    tail: int | np.int64 = 1
    while seen[goal] == 0:
        if head == tail:
            return 0
        cell = out[head]
        ways = np.int64(openings[cell])
        for direction in range(4):  # without branches: write always, move on only if the neighbour is new
            neighbour = neighbours[cell, direction]
            new = (ways >> direction) & 1 & (np.int64(seen[neighbour]) ^ 1)
            out[tail] = neighbour
            came[tail] = head
            seen[neighbour] |= new
            tail += new
        head += 1
    while out[tail - 1] != goal:
        tail -= 1
    return tail
