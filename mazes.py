"""What a maze is, for every room: cells, directions, the bitmap on disk, a batch of traced mazes.

Cells of an n x n maze are numbered r * n + c. The neighbours of a cell are always taken in the order
north, east, south, west; bit d of a cell's *openings* says that the passage in direction d is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import DamageError
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


def unpack_passages(packed: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Openings, uint8 (B, n*n), from bitmaps, uint8 (B, passage_bytes).

    Raises DamageError for an opening in the outer border or a set bit past the end.
    """
    cells = size * size
    bits = np.unpackbits(packed, axis=1, bitorder="little").astype(bool)
    if bits[:, 2 * cells :].any():
        raise DamageError("passages: a bit past the end of the bitmap is set")
    east = bits[:, :cells].reshape(-1, size, size)
    south = bits[:, cells : 2 * cells].reshape(-1, size, size)
    if east[:, :, -1].any() or south[:, -1, :].any():
        raise DamageError("passages: the outer border of a maze is open")
    openings = np.zeros((len(packed), size, size), np.uint8)
    openings[east] |= EAST
    openings[:, :, 1:][east[:, :, :-1]] |= WEST
    openings[south] |= SOUTH
    openings[:, 1:, :][south[:, :-1, :]] |= NORTH
    return openings.reshape(-1, cells)
