"""Tables and scratch memory that the spanning-tree kernels of one size share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TreeScratch(NamedTuple):
    """One set per kernel call, never shared between threads.

    A wall between two neighbouring cells has the number 2 * cell, if it stands east of the cell, or 2 * cell + 1, if it
    stands south.
    """

    walls: NDArray[np.uint16]  # (2*n*(n-1),) every wall, only read
    mark: NDArray[np.uint8]  # (n*n,) what an algorithm knows of each cell: in the tree or not, or in which piece
    work: NDArray[np.uint16]  # (2*n*(n-1) + 4,) its cells or edges; Prim writes up to 4 places too far


def tree_scratch(size: int) -> TreeScratch:
    """Fresh memory for size x size cells."""
    cell = np.arange(size * size)
    has_wall = np.stack([cell % size < size - 1, cell < size * (size - 1)], axis=1)
    walls = np.flatnonzero(has_wall).astype(np.uint16)
    return TreeScratch(walls, np.zeros(size * size, np.uint8), np.zeros(len(walls) + 4, np.uint16))
