"""Names for the contents of a maze problem: one exact, one equal for equivalent problems; and the splits.

Two problems are equivalent when one of the 8 symmetries of the square, with start and goal exchanged or not, turns
one into the other. The fingerprint hashes the least of these 16 images, so equivalent problems always fall into the
same split and no symmetry leaks from training to test.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.generators.rng import fold, mix
from lol_data.jit import njit
from lol_data.mazes import Mazes
from lol_data.solvers.grid import STEPS

SPLITS = ("train", "validation", "test")
_FOUR = np.uint64(4)


@lru_cache
def symmetries(size: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """The 8 symmetries of the square, the identity first.

    to: uint8 (8, n*n), where each cell goes. source: uint8 (8, n*n), the inverse. turned: uint8 (8, 16), what
    becomes of a cell's openings.
    """
    row, col = np.divmod(np.arange(size * size), size)
    to = np.empty((8, size * size), np.uint8)
    turned = np.zeros((8, 16), np.uint8)
    for symmetry in range(8):
        transpose, flip_rows, flip_cols = symmetry & 1, symmetry & 2, symmetry & 4
        r, c = (col, row) if transpose else (row, col)
        r, c = (size - 1 - r if flip_rows else r), (size - 1 - c if flip_cols else c)
        to[symmetry] = r * size + c
        for direction, (down, right) in enumerate(STEPS):
            d, e = (right, down) if transpose else (down, right)
            image = STEPS.index((-d if flip_rows else d, -e if flip_cols else e))
            turned[symmetry] |= (((np.arange(16) >> direction) & 1) << image).astype(np.uint8)
    return to, np.argsort(to, axis=1).astype(np.uint8), turned


@njit
def _hash_image(
    size: int,
    start: np.int64,
    goal: np.int64,
    openings: NDArray[np.uint8],
    source: NDArray[np.uint8],
    turned: NDArray[np.uint8],
) -> np.uint64:
    """64-bit hash of (size, start, goal, openings seen through one symmetry)."""
    cells = len(openings)
    key = mix(np.uint64((size << 16) | (start << 8) | goal))
    for first in range(0, cells, 16):
        word = np.uint64(0)
        for cell in range(first, min(first + 16, cells)):
            word = (word << _FOUR) | np.uint64(turned[openings[source[cell]]])
        key = fold(key, word)
    return key


@njit
def _is_less(
    openings: NDArray[np.uint8],
    source: NDArray[np.uint8],
    turned: NDArray[np.uint8],
    best_source: NDArray[np.uint8],
    best_turned: NDArray[np.uint8],
) -> bool:
    for cell in range(len(openings)):
        mine, best = turned[openings[source[cell]]], best_turned[openings[best_source[cell]]]
        if mine != best:
            return mine < best
    return False


@njit
def _keys(
    size: int,
    openings: NDArray[np.uint8],
    start: NDArray[np.uint8],
    goal: NDArray[np.uint8],
    source: NDArray[np.uint8],
    turned: NDArray[np.uint8],
    out: NDArray[np.uint64],
) -> None:
    for row in range(len(openings)):
        out[row] = _hash_image(size, np.int64(start[row]), np.int64(goal[row]), openings[row], source[0], turned[0])


@njit
def _fingerprints(
    size: int,
    openings: NDArray[np.uint8],
    start: NDArray[np.uint8],
    goal: NDArray[np.uint8],
    to: NDArray[np.uint8],
    source: NDArray[np.uint8],
    turned: NDArray[np.uint8],
    out: NDArray[np.uint64],
) -> None:
    for row in range(len(openings)):
        maze = openings[row]
        best, best_low, best_high = -1, np.int64(0), np.int64(0)
        for symmetry in range(8):
            # Of an image and the one with start and goal exchanged, the less is that with the lower cell first.
            one, other = np.int64(to[symmetry, start[row]]), np.int64(to[symmetry, goal[row]])
            low, high = min(one, other), max(one, other)
            less = best < 0 or low < best_low or (low == best_low and high < best_high)
            if not less and low == best_low and high == best_high:
                less = _is_less(maze, source[symmetry], turned[symmetry], source[best], turned[best])
            if less:
                best, best_low, best_high = symmetry, low, high
        out[row] = _hash_image(size, best_low, best_high, maze, source[best], turned[best])


def maze_key(mazes: Mazes) -> NDArray[np.uint64]:
    """Hash of the exact contents (size, openings, start, goal), uint64 (B,); ids do not enter.

    Here and below the rows have to be mazes: cells inside the grid, openings under 16, nothing open at the border.
    """
    _, source, turned = symmetries(mazes.size)
    out = np.empty(len(mazes), np.uint64)
    _keys(mazes.size, *_columns(mazes), source, turned, out)
    return out


def maze_fingerprint(mazes: Mazes) -> NDArray[np.uint64]:
    """Hash of the least, as (start, goal, openings), of the 16 equivalent images, uint64 (B,)."""
    to, source, turned = symmetries(mazes.size)
    out = np.empty(len(mazes), np.uint64)
    _fingerprints(mazes.size, *_columns(mazes), to, source, turned, out)
    return out


def _columns(mazes: Mazes) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    columns = [np.ascontiguousarray(column) for column in (mazes.openings, mazes.start, mazes.goal)]
    return columns[0], columns[1], columns[2]


def assign_splits(fingerprints: NDArray[np.uint64], validation_share: float, test_share: float) -> NDArray[np.uint8]:
    """Index into SPLITS for every fingerprint, uint8 (B,), from the fingerprint alone.

    Of the range of fingerprints, the lowest `test_share` is test and the next `validation_share` is validation.
    Raises UsageError unless both shares are at least 0 and at most 1 together.
    """
    if not (validation_share >= 0 and test_share >= 0 and validation_share + test_share <= 1):
        raise UsageError(f"validation share {validation_share} and test share {test_share} must be >= 0, sum <= 1")
    position = (fingerprints >> np.uint64(11)) * 2.0**-53  # exact, in [0, 1)
    splits = np.zeros(len(fingerprints), np.uint8)
    splits[position < validation_share + test_share] = SPLITS.index("validation")
    splits[position < test_share] = SPLITS.index("test")
    return splits
