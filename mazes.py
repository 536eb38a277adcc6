"""What a maze is, for every room: cells, directions, the bitmap on disk, a batch of traced mazes.

Cells of an n x n maze are numbered r * n + c. The neighbours of a cell are always taken in the order
north, east, south, west; bit d of a cell's *openings* says that the passage in direction d is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import DamageError
from lol_data.jit import njit
from lol_data.ragged import Ragged

MAZE_STRATEGIES = ("bfs", "dfs", "astar", "bidirectional", "dead_end_filling")
NORTH, EAST, SOUTH, WEST = 1, 2, 4, 8
MIN_SIZE, MAX_SIZE = 3, 15  # 15 x 15 cells still fit one byte a cell and fewer than 256 tokens


@dataclass(frozen=True, slots=True)
class Mazes:
    """A batch of maze problems of one size.

    id: uint64 (B,). openings: uint8 (B, n*n), bits NORTH, EAST, SOUTH, WEST. start, goal: uint8 (B,).
    """

    size: int
    id: NDArray[np.uint64]
    openings: NDArray[np.uint8]
    start: NDArray[np.uint8]
    goal: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: NDArray[np.integer]) -> Mazes:
        """The given rows, in the given order."""
        return Mazes(self.size, self.id[rows], self.openings[rows], self.start[rows], self.goal[rows])


@dataclass(frozen=True, slots=True)
class TracedMazes:
    """Maze problems with their path (`answer`) and one canonical trace per strategy, as cell ids (uint8)."""

    mazes: Mazes
    answer: Ragged
    traces: dict[str, Ragged]

    def __len__(self) -> int:
        return len(self.mazes)

    @property
    def id(self) -> NDArray[np.uint64]:
        """Numbers of the rows, uint64 (B,)."""
        return self.mazes.id

    def take(self, rows: NDArray[np.integer]) -> TracedMazes:
        """The given rows, in the given order."""
        traces = {name: trace.take(rows) for name, trace in self.traces.items()}
        return TracedMazes(self.mazes.take(rows), self.answer.take(rows), traces)


def default_min_path(size: int) -> int:
    """Least length of an accepted path, in cells: 12 for 8 x 8, else floor(1.5 n)."""
    return 3 * size // 2


def passage_bytes(size: int) -> int:
    """Bytes of the passage bitmap of one maze."""
    return (2 * size * size + 7) // 8


def pack_passages(openings: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """The bitmap on disk, uint8 (B, passage_bytes): n*n bits of open east edges, then n*n of south ones.

    Bit k of the bitmap is bit k % 8 (least significant first) of byte k // 8.
    """
    bits = np.concatenate([(openings & EAST) != 0, (openings & SOUTH) != 0], axis=1)
    return np.packbits(bits, axis=1, bitorder="little")


def unpack_passages(
    packed: NDArray[np.uint8], size: int, openings: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Openings, uint8 (B, n*n), from bitmaps, uint8 (B, passage_bytes); written to `openings` when it is given.

    Raises DamageError for an opening in the outer border or a set bit past the end.
    """
    if openings is None:
        openings = np.empty((len(packed), size * size), np.uint8)
    if _unpack(packed, size, openings) >= 0:
        raise DamageError("a passages bitmap opens the outer border of its maze, or has a bit past its end")
    return openings


@njit
def _unpack(packed: NDArray[np.uint8], size: int, openings: NDArray[np.uint8]) -> int:
    """Fill `openings`; -1, or the first row whose bitmap is not that of a maze."""
    cells, width = size * size, packed.shape[1]
    bits = np.zeros(8 * width, np.uint8)
    north = np.zeros(cells, np.uint8)  # its first row stays 0: nothing is north of it
    for row in range(len(packed)):
        # No branch on a bit: the bits are random, and half of the guesses would be wrong.
        for byte in range(width):
            for bit in range(8):
                bits[8 * byte + bit] = packed[row, byte] >> bit & 1
        east, south = bits[:cells], bits[cells : 2 * cells]
        bad = np.uint8(0)
        for line in range(size):
            bad |= east[line * size + size - 1] | south[cells - size + line]
        for past in range(2 * cells, 8 * width):
            bad |= bits[past]
        if bad:
            return row
        north[size:] = south[: cells - size]
        # East of the last cell of a row is shut, so the bit before a cell is that of its west, across rows too.
        openings[row, 0] = east[0] * EAST | south[0] * SOUTH
        for cell in range(1, cells):
            openings[row, cell] = north[cell] * NORTH | east[cell] * EAST | south[cell] * SOUTH | east[cell - 1] * WEST
    return -1
