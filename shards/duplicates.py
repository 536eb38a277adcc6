"""Exact duplicates over the whole data set: of equal problems only the one with the lowest id stays.

Keys are 64 bits, so equal keys are candidates only; the problems themselves decide. Every unit keeps its keys in order,
so that a slice of the range of keys can be read from each without the rest: memory is that of one slice at any n, and
every key is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lol_data.shards.kernels import problem_bytes
from lol_data.shards.plan import BLOCK, DatasetPlan

KEY_BYTES = 12  # per id, in memory and on disk
SLICE_KEYS = 2**22  # keys held at a time, 32 MB and as much again while they are sorted
_NEAR = 64  # candidates closer than this are derived in one go


class UnitKeys(NamedTuple):
    """The keys of all ids of a unit, rising, uint64 (ids,), and the row in the unit of each, uint32 (ids,)."""

    keys: NDArray[np.uint64]
    rows: NDArray[np.uint32]

    @staticmethod
    def of(keys: NDArray[np.uint64]) -> UnitKeys:
        """From keys in order of id."""
        order = np.argsort(keys, kind="stable")
        return UnitKeys(keys[order], order.astype(np.uint32))

    def to_bytes(self) -> bytes:
        """The form on disk: the keys, then the rows, both little-endian."""
        return self.keys.astype("<u8").tobytes() + self.rows.astype("<u4").tobytes()

    @staticmethod
    def open(path: Path, ids: int) -> UnitKeys:
        """The keys of a unit of `ids` ids on disk, read when they are looked at. Raises OSError, ValueError."""
        if not ids:
            return UnitKeys.of(np.empty(0, np.uint64))
        keys = np.memmap(path, "<u8", "r", 0, (ids,))
        return UnitKeys(keys, np.memmap(path, "<u4", "r", keys.nbytes, (ids,)))


def duplicate_ids(
    plan: DatasetPlan, keys_of: Callable[[int], UnitKeys], slice_keys: int = SLICE_KEYS
) -> NDArray[np.int64]:
    """The ids to drop, rising, int64. keys_of(unit) gives the keys of a unit."""
    candidates = _candidates(plan, keys_of, max(1, -(-plan.n // slice_keys)))
    if not len(candidates):
        return candidates
    problems = _problems(plan, candidates)
    first = np.unique(problems, return_index=True)[1]  # the index of the first, so the lowest id, of each
    return np.delete(candidates, first)


def _candidates(plan: DatasetPlan, keys_of: Callable[[int], UnitKeys], slices: int) -> NDArray[np.int64]:
    """Ids whose key occurs more than once, rising."""
    found = [np.empty(0, np.int64)]
    edges = [index * 2**64 // slices for index in range(slices + 1)]
    for low, high in pairwise(edges):
        ordered = np.sort(np.concatenate([_between(keys_of(unit), low, high).keys for unit in range(plan.units)]))
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if not len(repeated):
            continue
        for unit in range(plan.units):
            inside = _between(keys_of(unit), low, high)
            found.append(inside.rows[np.isin(inside.keys, repeated)].astype(np.int64) + plan.unit_ids(unit).start)
    return np.unique(np.concatenate(found))


def _between(unit: UnitKeys, low: int, high: int) -> UnitKeys:
    begin = np.searchsorted(unit.keys, np.uint64(low))
    end = np.searchsorted(unit.keys, np.uint64(high - 1), side="right")
    return UnitKeys(unit.keys[begin:end], unit.rows[begin:end])


def _problems(plan: DatasetPlan, ids: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """The problems of the given rising ids, derived again."""
    parts = []
    cuts = np.flatnonzero(np.diff(ids) > _NEAR) + 1
    for run in np.split(ids, cuts):
        for begin in range(int(run[0]), int(run[-1]) + 1, BLOCK):
            wanted = run[(run >= begin) & (run < begin + BLOCK)]
            traced = plan.block(begin, min(begin + BLOCK, int(run[-1]) + 1)).traced
            parts.append(problem_bytes(plan.task.problems(traced.take(wanted - begin))))
    return np.concatenate(parts)
