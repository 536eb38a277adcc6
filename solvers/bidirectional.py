"""Bidirectional breadth-first search.

A step is a cell being expanded. Two first-in, first-out queues, one holding the start and one the goal, take turns,
the start's first. Expanding a cell looks at its open neighbours in the order N, E, S, W (the canonical order; any is
legal) and discovers, for its side, those that neither side has discovered. The expansion of a cell with a neighbour
that the other side has already discovered *touches*: that cell is recorded as the last step and the search ends. The
start and the goal count as discovered by their sides from the outset, so a start beside the goal gives one step; so
does a start that is the goal.

If a queue runs empty the other side goes on alone; as long as the goal can be reached, neither does before the touch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit


@njit
def trace_bidirectional(
    openings: NDArray[np.uint8],
    start: int,
    goal: int,
    out: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    side: NDArray[np.uint8],
    queues: NDArray[np.uint8],
) -> int:
    """Write the trace to `out` (room for n*n cells) and return its length; 0 when the goal cannot be reached.

    side: 1 or 2 for a cell that the start's or the goal's side has discovered. queues: (2, n*n + 4).
    """
    cells = len(neighbours)
    out[0] = start
    if start == goal:
        return 1
    for cell in range(cells):
        side[cell] = 0
    queues[0, 0], queues[1, 0] = start, goal
    side[start], side[goal] = 1, 2
    mine, length = 0, 0
    head, tail, other_head, other_tail = 0, 1, 0, 1
    while head < tail:  # an empty queue means that this side's part of the maze is closed off
        cell = queues[mine, head]
        head += 1
        out[length] = cell
        length += 1
        ways = np.int64(openings[cell])
        touched = 0
        for direction in range(4):
            neighbour = neighbours[cell, direction]
            owner = np.int64(side[neighbour])
            is_open = (ways >> direction) & 1
            new = is_open & (owner == 0)
            touched |= is_open & (owner == 2 - mine)
            queues[mine, tail] = neighbour
            side[neighbour] = owner | (new << mine)
            tail += new
        if touched:
            return length
        mine ^= 1
        head, other_head = other_head, head
        tail, other_tail = other_tail, tail
    return 0
