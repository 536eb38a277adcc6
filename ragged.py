"""Rows of different lengths in two flat arrays, the form that Arrow, Numba and NumPy share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Offsets, int64 (rows + 1,), of rows of the given lengths."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class Ragged:
    """Row `i` is `values[offsets[i]:offsets[i + 1]]`.

    values: any dtype, shape (total,). offsets: int64, shape (rows + 1,), starting at 0 and rising.
    """

    values: NDArray
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of every row, shape (rows,)."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.integer]) -> Ragged:
        """The given rows, in the given order."""
        rows = np.asarray(rows, dtype=np.int64)
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        offsets = offsets_of(lengths)
        source = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Ragged(self.values[source], offsets)

    @staticmethod
    def from_rows(rows: Iterable[Iterable[int] | NDArray], dtype: type | np.dtype = np.uint8) -> Ragged:
        """Pack a sequence of rows."""
        arrays = [np.asarray(row, dtype=dtype).reshape(-1) for row in rows]
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype)
        return Ragged(values, offsets_of([len(array) for array in arrays]))
