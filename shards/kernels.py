"""What is computed for every row while it passes: its content hash, its openings, strategies with equal traces.

The content hash of a set of rows is the sum of its row hashes modulo 2^64. It depends on the rows alone: not on their
order, the shard size, the encoding or the library that wrote the file.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lol_data.generators.rng import GOLDEN, mix
from lol_data.jit import njit
from lol_data.mazes import MAZE_STRATEGIES, Mazes, TracedMazes
from lol_data.ragged import Ragged

STRATEGY_PAIRS = tuple(f"{a}={b}" for a, b in combinations(MAZE_STRATEGIES, 2))


def row_hashes(traced: TracedMazes) -> NDArray[np.uint64]:
    """One 64-bit hash per row, uint64 (B,), over id, size, openings, start, goal, answer and every trace."""
    mazes = traced.mazes
    out = mazes.id + np.uint64(mazes.size)
    cells = mazes.size**2
    grid = Ragged(mazes.openings.reshape(-1), np.arange(len(mazes) + 1, dtype=np.int64) * cells)
    ends = Ragged(np.stack([mazes.start, mazes.goal], 1).reshape(-1), np.arange(len(mazes) + 1, dtype=np.int64) * 2)
    columns = [grid, ends, traced.answer, *(traced.traces[name] for name in MAZE_STRATEGIES)]
    longest = max((int(column.lengths.max(initial=0)) for column in columns), default=0)
    weights = _weights(longest)
    for column in columns:
        _hash_column(np.ascontiguousarray(column.values), column.offsets, weights, out)
    return out


def content_hash(hashes: NDArray[np.uint64]) -> int:
    """The hash of a set of rows, from its row hashes."""
    return int(hashes.sum(dtype=np.uint64))


def equal_traces(traced: TracedMazes, keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Kept rows in which two strategies have the very same trace, int64 (len(STRATEGY_PAIRS),)."""
    traces = [traced.traces[name] for name in MAZE_STRATEGIES]
    pairs = combinations(traces, 2)
    return np.array([_count_equal(a.values, a.offsets, b.values, b.offsets, keep) for a, b in pairs], np.int64)


def problem_bytes(mazes: Mazes) -> NDArray[np.bytes_]:
    """The problem of every row as one fixed-width value, (B,): equal values, equal problems."""
    rows = np.concatenate([mazes.openings, mazes.start[:, None], mazes.goal[:, None]], axis=1)
    # A last byte that is never zero: NumPy strips trailing zeros of its bytes type when values are compared.
    rows = np.concatenate([rows, np.ones((len(rows), 1), np.uint8)], axis=1)
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)


@njit
def _weights(length: int) -> NDArray[np.uint64]:
    """Odd 64-bit weights: an odd weight makes any change of one value change the sum."""
    weights = np.empty(length, np.uint64)
    for j in range(length):
        weights[j] = mix(np.uint64(j + 1) * GOLDEN) | np.uint64(1)
    return weights


@njit
def _hash_column(
    values: NDArray[np.uint8], offsets: NDArray[np.int64], weights: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    for row in range(len(out)):
        begin, end = offsets[row], offsets[row + 1]
        total = np.uint64(end - begin)
        # Multilinear: no step waits for the one before, so this runs as fast as the vector unit multiplies.
        for j in range(end - begin):
            total += (np.uint64(values[begin + j]) + np.uint64(1)) * weights[j]
        out[row] = mix((out[row] * GOLDEN) ^ total)


@njit
def _count_equal(
    a: NDArray[np.uint8],
    a_offsets: NDArray[np.int64],
    b: NDArray[np.uint8],
    b_offsets: NDArray[np.int64],
    keep: NDArray[np.bool_],
) -> int:
    count = 0
    for row in range(len(keep)):
        length = a_offsets[row + 1] - a_offsets[row]
        if not keep[row] or b_offsets[row + 1] - b_offsets[row] != length:
            continue
        same = True
        for j in range(length):
            if a[a_offsets[row] + j] != b[b_offsets[row] + j]:
                same = False
                break
        count += same
    return count
