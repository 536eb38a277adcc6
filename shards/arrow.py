"""Rows of bytes as Arrow binary columns and back, whole buffers at a time: no row is ever touched from Python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.ragged import Ragged

Chunks = Sequence[pa.Array]


def binary(rows: Ragged) -> pa.BinaryArray:
    """Rows of uint8 as a binary array on the same values.

    Raises OverflowError when they hold 2 GiB or more (32-bit offsets): hand over fewer rows.
    """
    if rows.offsets[-1] >= 2**31:
        raise OverflowError(f"{rows.offsets[-1]} bytes in one binary column; 32-bit offsets end at 2 GiB")
    buffers = [None, pa.py_buffer(rows.offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(rows.values))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(rows), buffers)


def of_equal_width(rows: NDArray[np.uint8]) -> Ragged:
    """The rows of a matrix (B, width)."""
    return Ragged(rows.reshape(-1), np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1])


def parts(chunk: pa.BinaryArray) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The values of a chunk and its offsets into Arrow's buffer, int32 (rows + 1,), both shared with it."""
    _, offset_buffer, value_buffer = chunk.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    if value_buffer is None or value_buffer.size == 0:
        return np.empty(0, np.uint8), offsets
    return np.frombuffer(value_buffer, np.uint8)[offsets[0] : offsets[-1]], offsets


def ragged(chunks: Chunks) -> Ragged:
    """Binary chunks as rows of uint8 of their own."""
    pieces = [parts(chunk) for chunk in chunks]
    values = np.empty(sum(len(piece) for piece, _ in pieces), np.uint8)
    offsets = np.zeros(sum(len(chunk) for chunk in chunks) + 1, np.int64)
    row = end = 0
    for piece, piece_offsets in pieces:
        rows = len(piece_offsets) - 1
        values[end : end + len(piece)] = piece
        np.add(piece_offsets[1:], end - int(piece_offsets[0]), out=offsets[row + 1 : row + 1 + rows], dtype=np.int64)
        row, end = row + rows, end + len(piece)
    return Ragged(values, offsets)


def matrix(chunks: Chunks, width: int) -> NDArray[np.uint8]:
    """Binary or string chunks whose rows all have `width` bytes, uint8 (rows, width)."""
    return np.concatenate([np.empty(0, np.uint8), *(parts(chunk)[0] for chunk in chunks)]).reshape(-1, width)


def numbers(chunks: Chunks, dtype: np.dtype | type) -> NDArray:
    """Chunks of a column of numbers as one array."""
    return np.concatenate([np.empty(0, dtype), *(chunk.to_numpy() for chunk in chunks)])


def take_columns(
    tables: list[pa.Table], readers: dict[str, Callable[[Chunks], Any]], workers: int = 1
) -> dict[str, Any]:
    """Every column of `readers`, all tables one after another, through its reader.

    `tables` is emptied, and a column let go as soon as it is copied: the peak is the result and `workers` columns.
    """
    chunks = {name: [chunk for table in tables for chunk in table[name].chunks if len(chunk)] for name in readers}
    tables.clear()
    with ThreadPoolExecutor(workers) as pool:
        return dict(zip(readers, pool.map(lambda name: readers[name](chunks.pop(name)), list(readers)), strict=True))


def widths_differ(column: pa.ChunkedArray, width: int) -> bool:
    """Whether a row of a binary or string column has not `width` bytes."""
    return any((np.diff(parts(chunk)[1]) != width).any() for chunk in column.chunks)


def greatest(column: pa.ChunkedArray) -> int:
    """The greatest byte or number of a column, 0 when there is none."""
    values = [chunk.to_numpy() if pa.types.is_integer(chunk.type) else parts(chunk)[0] for chunk in column.chunks]
    return max((int(part.max(initial=0)) for part in values), default=0)


def column_fault(table: pa.Table, schema: pa.Schema, columns: Collection[str]) -> str | None:
    """What is wrong with the columns of a table: one is missing, of another type, or has nulls."""
    for name in columns:
        position, expected = table.schema.get_field_index(name), schema.field(name).type
        if position < 0 or not table.schema.field(position).type.equals(expected):
            return f"column {name} is missing or is not {expected}"
        if table.column(position).null_count:
            return f"column {name} has nulls"
    return None
