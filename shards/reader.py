"""Reading a finished data set into flat arrays, as fast as Parquet decodes: whole Arrow buffers, never Python rows."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lol_data.errors import DamageError, UsageError
from lol_data.shards.engines import default_workers
from lol_data.shards.manifest import MANIFEST, WORK, FileEntry, Manifest
from lol_data.shards.task import Task, check_rows, task_named
from lol_data.shards.unit import data_dir


@dataclass(frozen=True, slots=True)
class Dataset:
    """A finished data set: where it is, and its manifest."""

    path: Path
    manifest: Manifest

    @property
    def task(self) -> Task:
        """What its rows are of. Raises DamageError for a task that this version does not know."""
        return task_named(self.manifest.task)

    @property
    def settings(self) -> Any:
        """The settings of its problems, MazeSettings or SudokuSettings. Raises DamageError."""
        try:
            return self.task.settings_of(self.manifest.settings)
        except TypeError as error:
            raise DamageError(f"{self.path}: its settings are none that this version knows: {error}") from None

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.manifest.splits)

    def rows(self, split: str) -> int:
        """Rows of a split. Raises UsageError for a split that is not there."""
        return sum(entry.rows for entry in self._files(split))

    def read_split(
        self,
        split: str,
        limit: int | None = None,
        columns: Collection[str] | None = None,
        workers: int | None = None,
    ) -> Any:
        """The first `limit` rows of a split in order of id, TracedMazes or TracedSudokus, in memory of their own.

        columns: the strategies whose traces are wanted, by default all; the problem and the answer always come.
        Raises UsageError (no such split or strategy) and DamageError (a file missing, damaged, or with other rows
        than the manifest says).
        """
        task, settings = self.task, self.settings
        strategies = tuple(task.strategies if columns is None else columns)
        unknown = [name for name in strategies if name not in task.strategies]
        if unknown:
            raise UsageError(f"{unknown[0]!r} is no strategy: choose from {', '.join(task.strategies)}")
        if limit is not None and limit < 0:
            raise UsageError(f"limit is {limit}; it must be 0 or more")
        wanted, left = [], self.rows(split) if limit is None else min(limit, self.rows(split))
        for entry in self._files(split):
            if left and entry.rows:
                wanted.append((entry, min(left, entry.rows)))
                left -= min(left, entry.rows)

        def read(item: tuple[FileEntry, int]) -> pa.Table:
            entry, rows = item
            return read_file(task, data_dir(self.path) / entry.name, entry.rows, rows, settings, strategies)

        workers = workers or default_workers()
        with ThreadPoolExecutor(workers) as pool:
            tables = list(pool.map(read, wanted))
        try:
            return task.from_tables(tables, settings, strategies, workers)
        except DamageError as error:
            raise DamageError(f"{self.path}, split {split}: {error}; `lol-data verify` names the file") from None

    def read_row(self, id: int | None = None) -> Any:
        """The row of an id, by default the first one of its shard 0, as a batch of one.

        Raises UsageError when there is no such row, DamageError.
        """
        unit = (id or 0) // self.manifest.shard_rows
        for entry in self.manifest.files:
            if entry.rows and entry.name.split("-")[1] == f"{unit:05d}":
                rows = read_rows(self.task, data_dir(self.path) / entry.name, entry.rows, self.settings)
                found = np.flatnonzero(rows.id == id)[:1] if id is not None else np.zeros(1, np.int64)
                if len(found):
                    return rows.take(found)
        last = self.manifest.n - 1
        why = "was left out as a duplicate" if id is not None and 0 <= id <= last else f"does not exist: 0 to {last}"
        raise UsageError(f"{self.path}: row {id} {why}")

    def _files(self, split: str) -> list[FileEntry]:
        if split not in self.manifest.splits:
            raise UsageError(f"{self.path}: no split {split!r}; it has {', '.join(self.manifest.splits)}")
        return [entry for entry in self.manifest.files if entry.split == split]


def open_dataset(path: Path | str, expect_task: str | None = None) -> Dataset:
    """The data set in a directory. Raises UsageError when there is none, or it is of another task; DamageError."""
    path = Path(path)
    if not path.is_dir():
        raise UsageError(f"{path}: no such directory; make a data set with `lol-data gen-maze --out {path}`")
    try:
        manifest = Manifest.read(path / MANIFEST)
    except FileNotFoundError:
        if (path / WORK / "plan.json").exists():
            raise UsageError(f"{path}: is not finished; run the command that began it again") from None
        raise UsageError(f"{path}: holds no data set (no {MANIFEST})") from None
    if expect_task is not None and manifest.task != expect_task:
        raise UsageError(f"{path}: is a {manifest.task} data set, not {expect_task}")
    return Dataset(path, manifest)


def read_file(
    task: Task,
    path: Path,
    rows: int,
    limit: int | None = None,
    settings: Any | None = None,
    strategies: Collection[str] | None = None,
) -> pa.Table:
    """The first `limit` rows of one file of `rows` rows (of `settings`), every page held to its checksum, checked.

    strategies: the traces to read, by default all. Raises DamageError, naming the path.
    """
    limit, strategies = rows if limit is None else limit, task.strategies if strategies is None else strategies
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            found = file.metadata.num_rows
            groups, covered = 0, 0
            while covered < limit and groups < file.num_row_groups:
                covered += file.metadata.row_group(groups).num_rows
                groups += 1
            names = [name for name in task.schema.names if name not in task.strategies or name in strategies]
            table = file.read_row_groups(list(range(groups)), columns=names, use_threads=False).slice(0, limit)
    except FileNotFoundError:
        raise DamageError(f"{path}: is missing") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or ["not a Parquet file"])[0]
        raise DamageError(f"{path}: cannot be read: {reason}") from None
    if found != rows or table.num_rows < limit:
        raise DamageError(f"{path}: has {found:,} rows, the manifest says {rows:,}")
    check_rows(task, table, path, settings, strategies)
    return table


def read_rows(task: Task, path: Path, rows: int, settings: Any) -> Any:
    """All `rows` rows of one file, read as `read_file` does. Raises DamageError, naming the path."""
    table = read_file(task, path, rows, settings=settings)
    try:
        return task.from_tables([table], settings, task.strategies, 1)
    except DamageError as error:
        raise DamageError(f"{path}: {error}") from None
