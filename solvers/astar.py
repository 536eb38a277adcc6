"""A* with the Manhattan distance.

A step is a cell being closed. The open cell closed next has the least f = g + h, among those the least h, among those
the one inserted first; g is the number of moves from the start, h the Manhattan distance to the goal. A closed cell
inserts its open neighbours in the order N, E, S, W. The goal is the last step.

In a maze with loops a cell may be found again with a smaller g while it is open: it is then inserted anew, as the
latest, and its older entry is void. The heuristic is consistent, so a closed cell is never opened again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit

UNKNOWN = 255  # above every cost: the longest path has 225 cells


@njit
def trace_astar(
    openings: NDArray[np.uint8],
    start: int,
    goal: int,
    out: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    distance: NDArray[np.uint8],
    cost: NDArray[np.uint8],
    link: NDArray[np.uint8],
    tail: NDArray[np.uint8],
) -> int:
    """Write the trace to `out` (room for n*n cells) and return its length; 0 when the goal cannot be reached.

    A move changes f by 0 or 2, so the open cells have one of two values of f: a pair of levels, each with a FIFO
    bucket per h, takes the place of a heap. Bucket h of a level is a linked list that hangs on node cells + h (at
    most 225 + 28, so a node fits one byte); a bit set per level says which buckets hold something.
    """
    cells = len(neighbours)
    one = np.uint64(1)
    for place in range(cells):
        cost[place] = UNKNOWN
    for bucket in range(tail.shape[1]):
        tail[0, bucket] = (cells + bucket) & 255
        tail[1, bucket] = (cells + bucket) & 255
    h = distance[goal]
    cost[start] = 1  # g + 1, so that 0 can stand for "closed"
    link[0, cells + np.int64(h[start])] = start
    tail[0, h[start]] = start
    level = 0
    current, following = one << np.uint64(h[start]), np.uint64(0)
    length = 0
    while True:
        if current == 0:
            if following == 0:
                return 0
            current, following = following, np.uint64(0)
            level ^= 1
        bucket = lowest_bit(current)
        root = cells + bucket
        cell = np.int64(link[level, root])
        if cell == tail[level, bucket]:
            tail[level, bucket] = root
            current &= current - one
        else:
            link[level, root] = link[level, cell]
        cheaper = np.int64(cost[cell]) + 1
        if cheaper == 1:
            continue  # a void entry
        cost[cell] = 0
        out[length] = cell
        length += 1
        if cell == goal:
            return length
        ways = np.int64(openings[cell])
        while ways:
            neighbour = np.int64(neighbours[cell, lowest_bit(ways)])
            ways &= ways - 1
            if cheaper >= cost[neighbour]:
                continue
            cost[neighbour] = cheaper
            at = np.int64(h[neighbour])
            target = level
            if at > bucket:  # away from the goal: f grows by 2
                target ^= 1
                following |= one << np.uint64(at)
            else:
                current |= one << np.uint64(at)
            link[target, tail[target, at]] = neighbour
            tail[target, at] = neighbour
