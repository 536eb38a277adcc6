"""Maze rows on disk: one explicit Arrow schema, and the way between it and `TracedMazes`.

Both directions move whole buffers: a `Ragged` column is an Arrow binary array (its values are the data buffer, its
offsets the offsets buffer at 32 bits), so no row is ever touched from Python.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.errors import DamageError
from lol_data.mazes import (
    MAX_SIZE,
    MAZE_STRATEGIES,
    MIN_SIZE,
    Mazes,
    TracedMazes,
    pack_passages,
    passage_bytes,
    unpack_passages,
)
from lol_data.ragged import Ragged

# No column is nullable, and there is no schema metadata: both would be one more thing in which shards could differ.
MAZE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.uint64(), nullable=False),
        pa.field("size", pa.uint8(), nullable=False),
        pa.field("passages", pa.binary(), nullable=False),
        pa.field("start", pa.uint8(), nullable=False),
        pa.field("goal", pa.uint8(), nullable=False),
        pa.field("answer", pa.binary(), nullable=False),
        *(pa.field(name, pa.binary(), nullable=False) for name in MAZE_STRATEGIES),
    ]
)
PROBLEM_COLUMNS = ("id", "size", "passages", "start", "goal", "answer")


def to_batch(traced: TracedMazes) -> pa.RecordBatch:
    """The rows as one record batch of MAZE_SCHEMA; values are shared with `traced`, not copied.

    Raises OverflowError when a column holds 2 GiB or more (32-bit offsets): hand over fewer rows.
    """
    mazes, rows = traced.mazes, len(traced)
    width = passage_bytes(mazes.size)
    passages = Ragged(
        pack_passages(mazes.openings, mazes.size).reshape(-1), np.arange(rows + 1, dtype=np.int64) * width
    )
    columns = [
        pa.array(mazes.id),
        pa.array(np.full(rows, mazes.size, np.uint8)),
        _binary(passages),
        pa.array(mazes.start),
        pa.array(mazes.goal),
        _binary(traced.answer),
        *(_binary(traced.traces[name]) for name in MAZE_STRATEGIES),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MAZE_SCHEMA)


def check_table(table: pa.Table, path: Path | str, strategies: Collection[str] = MAZE_STRATEGIES) -> int:
    """The size of the mazes in the rows of one file, 0 when there are none.

    Raises DamageError, naming `path`, when they are not mazes of one size in rising order of id.
    """
    for name in (*PROBLEM_COLUMNS, *strategies):
        position = table.schema.get_field_index(name)
        expected = MAZE_SCHEMA.field(name)
        if position < 0 or not table.schema.field(position).type.equals(expected.type):
            raise DamageError(f"{path}: column {name} is missing or is not {expected.type}")
        if table.column(position).null_count:
            raise DamageError(f"{path}: column {name} has nulls")
    if not table.num_rows:
        return 0
    ids, sizes = table["id"].to_numpy(), table["size"].to_numpy()
    size = int(sizes[0])
    if (sizes != size).any() or not MIN_SIZE <= size <= MAX_SIZE:
        raise DamageError(f"{path}: the rows are not mazes of one size from {MIN_SIZE} to {MAX_SIZE}")
    if (ids[1:] <= ids[:-1]).any():
        raise DamageError(f"{path}: the ids do not rise")
    for name in ("start", "goal", "answer", *strategies):
        chunks = table[name].chunks
        values = [_parts(chunk)[0] if chunk.type == pa.binary() else chunk.to_numpy() for chunk in chunks]
        if any(part.max(initial=0) >= size * size for part in values):
            raise DamageError(f"{path}: column {name} holds a cell beyond {size} x {size}")
    if any((np.diff(_parts(chunk)[1]) != passage_bytes(size)).any() for chunk in table["passages"].chunks):
        raise DamageError(f"{path}: a passages bitmap is not {passage_bytes(size)} bytes long")
    return size


def from_tables(
    tables: list[pa.Table], size: int, strategies: Collection[str] = MAZE_STRATEGIES, workers: int = 1
) -> TracedMazes:
    """The rows of all tables (checked, mazes of `size`) in order, as arrays of their own, for any number of bytes.

    `tables` is emptied, and a column let go as soon as it is copied: the peak is the result and `workers` columns.
    Raises DamageError when a bitmap is not that of a maze.
    """
    names = [*PROBLEM_COLUMNS, *strategies]
    chunks = {name: [chunk for table in tables for chunk in table[name].chunks if len(chunk)] for name in names}
    tables.clear()

    def column(name: str) -> NDArray | Ragged:
        parts = chunks.pop(name)
        if name == "passages":
            return _openings(parts, size)
        if MAZE_SCHEMA.field(name).type == pa.binary():
            return _ragged(parts)
        dtype = MAZE_SCHEMA.field(name).type.to_pandas_dtype()
        return np.concatenate([np.empty(0, dtype), *(part.to_numpy() for part in parts)])

    with ThreadPoolExecutor(workers) as pool:
        columns: dict[str, Any] = dict(zip(names, pool.map(column, names), strict=True))
    mazes = Mazes(size, columns["id"], columns["passages"], columns["start"], columns["goal"])
    return TracedMazes(mazes, columns["answer"], {name: columns[name] for name in strategies})


def from_table(table: pa.Table, path: Path | str) -> TracedMazes:
    """The rows of one file, checked. Raises DamageError, naming `path`."""
    size = check_table(table, path)
    try:
        return from_tables([table], size or MIN_SIZE)
    except DamageError as error:
        raise DamageError(f"{path}: {error}") from None


def _binary(rows: Ragged) -> pa.BinaryArray:
    if rows.offsets[-1] >= 2**31:
        raise OverflowError(f"{rows.offsets[-1]} bytes in one binary column; 32-bit offsets end at 2 GiB")
    buffers = [None, pa.py_buffer(rows.offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(rows.values))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(rows), buffers)


def _parts(chunk: pa.BinaryArray) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The values of a chunk and its offsets into Arrow's buffer, int32 (rows + 1,), both shared with it."""
    _, offset_buffer, value_buffer = chunk.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    if value_buffer is None or value_buffer.size == 0:
        return np.empty(0, np.uint8), offsets
    return np.frombuffer(value_buffer, np.uint8)[offsets[0] : offsets[-1]], offsets


def _ragged(chunks: Sequence[pa.BinaryArray]) -> Ragged:
    parts = [_parts(chunk) for chunk in chunks]
    values = np.empty(sum(len(part) for part, _ in parts), np.uint8)
    offsets = np.zeros(sum(len(chunk) for chunk in chunks) + 1, np.int64)
    row = end = 0
    for part, part_offsets in parts:
        rows = len(part_offsets) - 1
        values[end : end + len(part)] = part
        np.add(part_offsets[1:], end - int(part_offsets[0]), out=offsets[row + 1 : row + 1 + rows], dtype=np.int64)
        row, end = row + rows, end + len(part)
    return Ragged(values, offsets)


def _openings(chunks: Sequence[pa.BinaryArray], size: int) -> NDArray[np.uint8]:
    openings = np.empty((sum(len(chunk) for chunk in chunks), size * size), np.uint8)
    row = 0
    for chunk in chunks:
        packed = _parts(chunk)[0].reshape(-1, passage_bytes(size))
        unpack_passages(packed, size, openings[row : row + len(packed)])
        row += len(packed)
    return openings
