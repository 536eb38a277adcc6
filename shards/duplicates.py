"""Exact duplicates over the whole data set: of equal problems only the one with the lowest id stays.

Keys are 64 bits, so equal keys are candidates only; the problems themselves decide. Memory stays flat at any n: keys
are looked at in slices of their range.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lol_data.shards.kernels import problem_bytes
from lol_data.shards.plan import BLOCK, DatasetPlan

SLICE_KEYS = 2**25  # keys held at a time, 256 MB
_NEAR = 64  # candidates closer than this are derived in one go


def duplicate_ids(
    plan: DatasetPlan, keys_of: Callable[[int], NDArray[np.uint64]], slice_keys: int = SLICE_KEYS
) -> NDArray[np.int64]:
    """The ids to drop, rising, int64. keys_of(unit) gives the keys of all ids of a unit, uint64 (ids,)."""
    candidates = _candidates(plan, keys_of, max(1, -(-plan.n // slice_keys)))
    if not len(candidates):
        return candidates
    problems = _problems(plan, candidates)
    first = np.unique(problems, return_index=True)[1]  # the index of the first, so the lowest id, of each
    return np.delete(candidates, first)


def _candidates(plan: DatasetPlan, keys_of: Callable[[int], NDArray[np.uint64]], slices: int) -> NDArray[np.int64]:
    """Ids whose key occurs more than once, rising."""
    found = [np.empty(0, np.int64)]
    edges = [index * 2**64 // slices for index in range(slices + 1)]
    for low, high in pairwise(edges):
        inside = [_between(keys_of(unit), low, high) for unit in range(plan.units)]
        ordered = np.sort(np.concatenate(inside))
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if not len(repeated):
            continue
        for unit in range(plan.units):
            rows = np.flatnonzero(np.isin(keys_of(unit), repeated))
            found.append(rows + plan.unit_ids(unit).start)
    return np.unique(np.concatenate(found))


def _between(keys: NDArray[np.uint64], low: int, high: int) -> NDArray[np.uint64]:
    return keys[(keys >= np.uint64(low)) & (keys <= np.uint64(high - 1))]


def _problems(plan: DatasetPlan, ids: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """The problems of the given rising ids, derived again."""
    parts = []
    cuts = np.flatnonzero(np.diff(ids) > _NEAR) + 1
    for run in np.split(ids, cuts):
        for begin in range(int(run[0]), int(run[-1]) + 1, BLOCK):
            wanted = run[(run >= begin) & (run < begin + BLOCK)]
            mazes = plan.block(begin, min(begin + BLOCK, int(run[-1]) + 1)).traced.mazes
            parts.append(problem_bytes(mazes.take(wanted - begin)))
    return np.concatenate(parts)
