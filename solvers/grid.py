"""Lookup tables and scratch memory that the tracers of one size share, and the one bit trick they need."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # row and column change of directions N, E, S, W; d ^ 2 is the way back


def _lowest_bit(typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of an integer, as int64; undefined for 0. One instruction."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = builder.zext(args[0], ir.IntType(64)) if args[0].type.width < 64 else args[0]
        return builder.cttz(wide, ir.Constant(ir.IntType(1), 1))

    return types.int64(word), codegen


lowest_bit: Any = intrinsic(_lowest_bit)


class Grid(NamedTuple):
    """Constant tables of one size, which the kernels only read.

    neighbours: uint8 (n*n, 4), the cell in direction N, E, S, W, or the cell itself at the border, so that a
    lookup is never out of bounds. distance: uint8 (n*n, n*n), Manhattan.
    """

    neighbours: NDArray[np.uint8]
    distance: NDArray[np.uint8]


class Scratch(NamedTuple):
    """Small arrays that the tracers overwrite; one set per kernel call, never shared between threads.

    `cell` arrays have one entry per cell and a few to spare, because some kernels write one place too far
    rather than branch.
    """

    seen: NDArray[np.uint8]  # (cell,) discovered, by which side, or the cost so far
    came: NDArray[np.uint8]  # (cell,) parent: a slot of the queue (bfs) or a cell (dfs)
    left: NDArray[np.uint8]  # (cell,) directions not yet tried or not yet closed
    queues: NDArray[np.uint8]  # (2, cell) one FIFO per side
    link: NDArray[np.uint8]  # (2, 256) linked FIFO buckets of astar: the node behind each node
    tail: NDArray[np.uint8]  # (2, 32) their last nodes
    waves: NDArray[np.uint64]  # (2, 4) bit sets of cells


def grid(size: int) -> Grid:
    """Fresh tables for size x size cells, one set per kernel call.

    Numba counts references to an array with atomic operations: threads that shared one would slow each other down.
    """
    row, col = np.divmod(np.arange(size * size), size)
    neighbours = np.empty((size * size, 4), np.uint8)
    for direction, (down, right) in enumerate(STEPS):
        r, c = row + down, col + right
        inside = (r >= 0) & (r < size) & (c >= 0) & (c < size)
        neighbours[:, direction] = np.where(inside, r * size + c, row * size + col)
    distance = np.abs(row[:, None] - row) + np.abs(col[:, None] - col)
    return Grid(neighbours, distance.astype(np.uint8))


def scratch(size: int) -> Scratch:
    """Fresh scratch memory for size x size cells."""
    cell = size * size + 8
    return Scratch(
        seen=np.zeros(cell, np.uint8),
        came=np.zeros(cell, np.uint8),
        left=np.zeros(cell, np.uint8),
        queues=np.zeros((2, cell), np.uint8),
        link=np.zeros((2, 256), np.uint8),
        tail=np.zeros((2, 32), np.uint8),
        waves=np.zeros((2, 4), np.uint64),
    )
