"""What is computed for every row while it passes: its content hash, strategies with equal orders, what differs.

The content hash of a set of rows is the sum of its row hashes modulo 2^64. It depends on the rows alone: not on their
order, the shard size, the encoding or the library that wrote the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lol_data.generators.rng import GOLDEN, mix
from lol_data.jit import njit
from lol_data.ragged import Ragged


def row_hashes(ids: NDArray[np.uint64], columns: Mapping[str, Ragged]) -> NDArray[np.uint64]:
    """One 64-bit hash per row, uint64 (B,), over its id and every column of bytes, in their order."""
    out = ids.copy()
    weights = _weights(max((int(column.lengths.max(initial=0)) for column in columns.values()), default=0))
    for column in columns.values():
        _hash_column(np.ascontiguousarray(column.values), column.offsets, weights, out)
    return out


def content_hash(hashes: NDArray[np.uint64]) -> int:
    """The hash of a set of rows, from its row hashes."""
    return int(hashes.sum(dtype=np.uint64))


def pairs_of(strategies: Sequence[str]) -> list[str]:
    """Every pair of strategies, as "bfs=dfs"."""
    return [f"{a}={b}" for a, b in combinations(strategies, 2)]


def equal_orders(orders: Mapping[str, Ragged], keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Kept rows in which two strategies have the same order, int64, one per pair as in `pairs_of`."""
    pairs = combinations(orders.values(), 2)
    return np.array([_count_equal(a.values, a.offsets, b.values, b.offsets, keep) for a, b in pairs], np.int64)


def first_visits(walks: Ragged) -> Ragged:
    """Every walk without the steps to a cell that it has been to; values uint8."""
    values, offsets = np.empty_like(walks.values), np.zeros_like(walks.offsets)
    _first_visits(walks.values, walks.offsets, values, offsets)
    return Ragged(values[: offsets[-1]], offsets)


def problem_bytes(problems: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    """Every row of a matrix (B, width) as one value, (B,): equal values, equal rows."""
    # A last byte that is never zero: NumPy strips trailing zeros of its bytes type when values are compared.
    rows = np.concatenate([problems, np.ones((len(problems), 1), np.uint8)], axis=1)
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)


@njit
def common_ids(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where two rising lists hold the same ids: indices into a and into b, both int64 (ids in common,) and rising."""
    in_a, in_b = np.empty((2, min(len(a), len(b))), np.int64)
    i = j = found = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            in_a[found], in_b[found] = i, j
            found += 1
        before = a[i] <= b[j]
        j += b[j] <= a[i]
        i += before
    return in_a[:found], in_b[:found]


def differing(a: Ragged, a_rows: NDArray[np.int64], b: Ragged, b_rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether row a_rows[k] of a and row b_rows[k] of b differ in length or in a value, bool (K,). Values: uint8."""
    return _differing(a.values, a.offsets, a_rows, b.values, b.offsets, b_rows)


@njit
def _differing(
    a: NDArray[np.uint8],
    a_offsets: NDArray[np.int64],
    a_rows: NDArray[np.int64],
    b: NDArray[np.uint8],
    b_offsets: NDArray[np.int64],
    b_rows: NDArray[np.int64],
) -> NDArray[np.bool_]:
    out = np.empty(len(a_rows), np.bool_)
    for k in range(len(a_rows)):
        i, j = a_offsets[a_rows[k]], b_offsets[b_rows[k]]
        length = a_offsets[a_rows[k] + 1] - i
        if b_offsets[b_rows[k] + 1] - j != length:
            out[k] = True
            continue
        bits = np.uint8(0)
        for step in range(length):  # to the end even so: without a way out the loop is vectorised
            bits |= a[i + step] ^ b[j + step]
        out[k] = bits != 0
    return out


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
def _first_visits(
    values: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.uint8], out_offsets: NDArray[np.int64]
) -> None:
    seen, end = np.zeros(256, np.int64), 0  # the row in which a cell was seen last, from 1
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            cell = values[k]
            out[end] = cell
            end += seen[cell] != row + 1
            seen[cell] = row + 1
        out_offsets[row + 1] = end


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
