"""Extra passages: a spanning tree becomes a maze with loops. For out-of-distribution sets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.generators.rng import advance, draw
from lol_data.jit import njit

_ONE = np.uint64(1)


def loop_threshold(loops: float) -> np.uint64:
    """A probability as an integer out of 2**63, rounded up: 0 is never, 2**63 is always.

    Raises UsageError unless it is a number from 0 to 1.
    """
    number = isinstance(loops, float | int | np.floating | np.integer) and not isinstance(loops, bool)
    if not number or not 0 <= loops <= 1:
        raise UsageError(f"loops {loops!r} is not a number from 0 to 1, the chance of each wall to be opened")
    return np.uint64(math.ceil(float(loops) * 2.0**63))


@njit
def open_walls(
    state: np.uint64,
    openings: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    walls: NDArray[np.uint16],
    threshold: np.uint64,
) -> np.uint64:
    """Open every wall with probability threshold / 2**63; returns the state of the row's stream behind it.

    walls: as in `TreeScratch`. A wall that is open already stays so, whatever is drawn for it.
    """
    for wall in walls:
        state = advance(state)
        if draw(state) >> _ONE < threshold:
            cell, direction = np.int64(wall) >> 1, 1 + (np.int64(wall) & 1)
            other = np.int64(neighbours[cell, direction])
            openings[cell] = np.int64(openings[cell]) | (1 << direction)
            openings[other] = np.int64(openings[other]) | (1 << (direction ^ 2))
    return state
