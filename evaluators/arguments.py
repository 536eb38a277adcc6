"""Checks of the arrays that the rule checkers are given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lol_data.ragged import Ragged

NO_VALUE = 255  # stands for every number that is not in 0 to 254; no task gives it a meaning


def codes(name: str, values: ArrayLike, count: int, below: int) -> NDArray[np.integer]:
    """`values` as an array of integers (count,), each in 0 to below - 1. Raises ValueError."""
    array = np.asarray(values)
    if array.shape != (count,) or (count and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be integers ({count},), not {array.dtype} {array.shape}")
    if count and (array.min() < 0 or array.max() >= below):
        raise ValueError(f"{name} must be in 0 to {below - 1}")
    return array


def byte_rows(name: str, rows: Ragged, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The values of `count` rows of integers as uint8, NO_VALUE for any that does not fit, and the offsets.

    Raises ValueError.
    """
    values, offsets = rows.values, rows.offsets
    if len(rows) != count:
        raise ValueError(f"{len(rows)} {name} for {count} rows")
    if values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, not {values.dtype}")
    if offsets[0] < 0 or offsets[-1] > len(values) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{name}: offsets must rise from 0 to the number of values")
    if values.dtype != np.uint8:
        values = np.where((values >= 0) & (values < NO_VALUE), values, NO_VALUE).astype(np.uint8)
    return np.ascontiguousarray(values), offsets
