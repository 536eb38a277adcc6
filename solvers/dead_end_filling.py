"""Dead-end filling.

A step is a cell being filled. The work goes in rounds: a round fills every cell that has exactly one open unfilled
neighbour when the round begins, in the order of the cell numbers; the start and the goal are never filled. It ends
when a round finds no such cell. In a perfect maze exactly the path is then left; loops stay.
(Any order is legal that fills a cell only when it is a dead end at that moment.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.solvers.grid import lowest_bit

ENDPOINT = 16 | 32  # two openings that never close keep the start and the goal from looking like dead ends


@njit
def trace_dead_end_filling(
    openings: NDArray[np.uint8],
    start: int,
    goal: int,
    out: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    left: NDArray[np.uint8],
    waves: NDArray[np.uint64],
) -> int:
    """Write the trace to `out` (room for n*n cells) and return its length, which may be 0.

    left: the openings not yet filled in. waves: (2, 4) bit sets of cells, this round's and the next one's; taking
    the lowest bit first yields the order of the cell numbers without a sort.
    """
    cells = len(neighbours)
    words = (cells + 63) >> 6
    one = np.uint64(1)
    for cell in range(cells):
        left[cell] = openings[cell]
    left[start] = np.int64(left[start]) | ENDPOINT
    left[goal] = np.int64(left[goal]) | ENDPOINT
    for word in range(words):
        bits = np.uint64(0)
        for cell in range(word << 6, min(cells, (word + 1) << 6)):
            ways = np.int64(left[cell])
            dead = (ways != 0) & ((ways & (ways - 1)) == 0)
            bits |= np.uint64(dead) << np.uint64(cell & 63)
        waves[0, word] = bits
    length, before, now = 0, -1, 0
    while length != before:
        before = length
        for word in range(words):
            waves[now ^ 1, word] = 0
        for word in range(words):
            bits = waves[now, word]
            while bits:
                cell = (word << 6) + lowest_bit(bits)
                bits &= bits - one
                out[length] = cell
                length += 1
                ways = np.int64(left[cell])
                if ways == 0:
                    continue  # two cells shut off from the rest: its only neighbour went in this same round
                left[cell] = 0
                direction = lowest_bit(ways)
                neighbour = np.int64(neighbours[cell, direction])
                ways = np.int64(left[neighbour]) & ~(1 << (direction ^ 2))
                left[neighbour] = ways
                dead = (ways != 0) & ((ways & (ways - 1)) == 0)
                place = np.uint64(neighbour & 63)
                rest = waves[now ^ 1, neighbour >> 6] & ~(one << place)
                waves[now ^ 1, neighbour >> 6] = rest | (np.uint64(dead) << place)
        now ^= 1
    return length
