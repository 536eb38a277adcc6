"""A data set in the forms that other programs read: lists in Parquet, lines of JSON, lines of plain text.

    list    a new directory, one Parquet file per file of the data set: binary columns become list<uint8>
    jsonl   one line per problem and strategy, what `lol-data check` reads
    text    one line per problem and strategy, {"id", "strategy", "prompt", "completion"}

Everything is written under a hidden temporary name beside its place and renamed at the end, so that nothing
half-written ever has the name that was asked for. Rows are read file by file; memory stays flat.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lol_data.errors import LolDataError, RefusedError, UsageError
from lol_data.files import whole
from lol_data.shards.engines import Progress
from lol_data.shards.export_lines import LINES, LinesOf
from lol_data.shards.manifest import FileEntry
from lol_data.shards.reader import Dataset, read_file
from lol_data.shards.unit import data_dir

FORMATS = ("list", "jsonl", "text")
BATCH = 1024  # problems turned into lines at a time: their text stays in cache
LIST_OPTIONS = {
    "compression": "zstd",
    "compression_level": 1,
    "write_page_checksum": True,
    "row_group_size": 8192,
}


@dataclass(frozen=True, slots=True)
class ExportResult:
    """problems: rows of the data set written. records: rows or lines written for them."""

    format: str
    problems: int
    records: int


def export_dataset(
    dataset: Dataset,
    format: str,
    out: Path | str | IO[bytes],
    split: str | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> ExportResult:
    """Write the first `limit` problems of a split, by default all of all splits one after another, in a format.

    out: where nothing is yet; lines may also go to a binary stream. Raises UsageError (no such format, split or place),
    RefusedError (`out` is there already), DamageError (the data set), LolDataError (cannot be written); after any of
    them, and after an interrupt, nothing is left at `out`.
    """
    if format not in FORMATS:
        raise UsageError(f"format {format!r} is unknown: choose from {', '.join(FORMATS)}")
    if limit is not None and limit < 0:
        raise UsageError(f"limit is {limit}; it must be 0 or more")
    if isinstance(out, str | Path) and data_dir(dataset.path).resolve() in Path(out).resolve().parents:
        raise UsageError(f"{out}: is among the files of the data set itself; choose another place")
    wanted = _wanted(dataset, split, limit)
    total, done = sum(rows for _, rows in wanted), 0

    def tick(rows: int) -> None:
        nonlocal done
        done += rows
        if progress:
            progress(done, total)

    tick(0)
    if format == "list":
        if not isinstance(out, str | Path):
            raise UsageError("the list format makes a directory: give it a path, not a stream")
        with _published(Path(out)) as folder:
            folder.mkdir()
            _write_lists(dataset, wanted, folder, tick)
        return ExportResult(format, total, total)
    lines_of = LINES[format][dataset.task.name]
    with _new_file(Path(out)) if isinstance(out, str | Path) else _stream(out) as file:
        _write_lines(dataset, wanted, lines_of, file, tick)
    return ExportResult(format, total, total * len(dataset.task.strategies))


def _wanted(dataset: Dataset, split: str | None, limit: int | None) -> list[tuple[FileEntry, int]]:
    """The files to read, split by split, and how many of the rows of each."""
    splits = dataset.splits if split is None else (split,)
    left = sum(dataset.rows(name) for name in splits)
    left = left if limit is None else min(left, limit)
    wanted = []
    for name in splits:
        for entry in dataset.manifest.files:
            if entry.split == name:
                wanted.append((entry, min(left, entry.rows)))
                left -= wanted[-1][1]
    return wanted


def _write_lines(
    dataset: Dataset,
    wanted: list[tuple[FileEntry, int]],
    lines_of: LinesOf,
    file: IO[bytes],
    tick: Callable[[int], None],
) -> None:
    for entry, rows in wanted:
        if not rows:
            continue
        task, settings = dataset.task, dataset.settings
        table = read_file(task, data_dir(dataset.path) / entry.name, entry.rows, rows, settings)
        for begin in range(0, rows, BATCH):
            batch = table.slice(begin, BATCH)
            size = batch.num_rows
            # The lines follow each other in the array's buffer exactly as they are to stand in the file.
            lines = lines_of(task.from_tables([batch], settings, task.strategies, 1)).buffers()[2]
            file.write(memoryview(lines))
            tick(size)


def _write_lists(
    dataset: Dataset, wanted: list[tuple[FileEntry, int]], folder: Path, tick: Callable[[int], None]
) -> None:
    for entry, rows in wanted:
        if entry.rows and not rows:
            continue  # behind the limit
        path = data_dir(dataset.path) / entry.name
        table = read_file(dataset.task, path, entry.rows, rows, dataset.settings)
        columns = {name: _as_lists(table[name].combine_chunks()) for name in table.column_names}
        fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
        lists = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
        pq.write_table(lists, folder / entry.name, **LIST_OPTIONS)
        tick(rows)


def _as_lists(column: pa.Array) -> pa.Array:
    """A binary column as list<uint8>, on the same buffers; any other column as it is."""
    if column.type != pa.binary():
        return column
    _, offsets, values = column.buffers()
    length = 0 if values is None else values.size
    numbers = pa.Array.from_buffers(pa.uint8(), length, [None, values])
    item = pa.list_(pa.field("element", pa.uint8(), nullable=False))
    return pa.Array.from_buffers(item, len(column), [None, offsets], offset=column.offset, children=[numbers])


@contextmanager
def _new_file(target: Path) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the block ends well, and is gone when it does not."""
    with _published(target) as draft, open(draft, "xb") as file:
        yield file


@contextmanager
def _published(target: Path) -> Iterator[Path]:
    """A name beside `target` that is renamed to it at the end. Raises RefusedError, UsageError, LolDataError."""
    if os.path.lexists(target):
        raise RefusedError(f"{target}: is there already; remove it, or choose another name")
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent}: no such directory; make it first")
    try:
        with whole(target, target.with_name(f".{target.name}.{os.getpid()}.part")) as draft:
            yield draft
    except OSError as error:
        raise LolDataError(
            f"{target}: cannot be written: {error.strerror or error}; nothing half-written was left"
        ) from error


@contextmanager
def _stream(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Somebody else's stream. A reader that has gone away is no fault of ours and is left to the caller."""
    try:
        yield file
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LolDataError(f"the output cannot be written: {error.strerror or error}") from error
