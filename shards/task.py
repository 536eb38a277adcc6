"""What a data set's task has to say of itself; everything else in this room serves all tasks alike.

A task knows its problems, where its rows stand in Arrow, and what to tell people; `maze_task` and `sudoku_task` are the
two there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.errors import DamageError
from lol_data.ragged import Ragged


class Settings(Protocol):
    """What kind of problems; a frozen dataclass."""

    def validate(self) -> None:
        """Raise UsageError, in one line, for settings that cannot be."""


class Traced(Protocol):
    """A batch of B problems with one trace per strategy."""

    @property
    def id(self) -> NDArray[np.uint64]: ...

    @property
    def traces(self) -> dict[str, Ragged]: ...

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.integer]) -> Any: ...


class Task(Protocol):
    """One kind of problem. B: rows of a batch."""

    name: str
    problem: str  # one problem, in a word
    promise: str  # what `sound` looks at
    strategies: tuple[str, ...]
    length_unit: str  # what the length of a trace counts
    symmetries: str  # what equivalent problems differ in
    schema: pa.Schema  # no column nullable and no metadata: both would be one more thing in which shards could differ

    # ---- problems ----

    def fields(self, settings: Any) -> dict[str, Any]:
        """The settings as they are stored, defaults resolved: the same rows, the same fields."""

    def settings_of(self, fields: Mapping[str, Any]) -> Any:
        """The settings again. Raises TypeError for fields that are others."""

    def generate(self, settings: Any, seed: int, lo: int, hi: int) -> Any:
        """Rows lo <= id < hi."""

    def keys(self, traced: Any) -> NDArray[np.uint64]:
        """Equal for equal problems, uint64 (B,)."""

    def fingerprints(self, traced: Any) -> NDArray[np.uint64]:
        """Equal for equivalent problems, uint64 (B,)."""

    def problems(self, traced: Any) -> NDArray[np.uint8]:
        """The problem of every row as bytes, (B, width): equal rows, equal problems."""

    def sound(self, traced: Any, settings: Any) -> NDArray[np.bool_]:
        """Whether every problem is of the promised kind, bool (B,), found out without the generator."""

    def columns(self, traced: Any) -> dict[str, Ragged]:
        """Every column that is not the id or the same in all rows, under its name on disk, as rows of uint8."""

    def orders(self, traced: Any) -> dict[str, Ragged]:
        """Per strategy what tells its trace from that of another one, as rows of uint8."""

    def measures(self, traced: Any) -> dict[str, NDArray[np.integer]]:
        """Features of the problems worth a distribution, small non-negative integers (B,) each."""

    def places(self, traced: Any) -> dict[str, NDArray[np.int64]]:
        """How often every cell of the grid plays a part, int64 (rows of the grid, columns of the grid) per part."""

    # ---- rows on disk ----

    def to_batch(self, traced: Any) -> pa.RecordBatch:
        """The rows as one batch of the schema; values are shared, not copied."""

    def check(self, table: pa.Table, settings: Any | None, strategies: Collection[str]) -> str | None:
        """What is wrong with the rows of one file, None if nothing is. settings: of the data set, if they are known."""

    def from_tables(self, tables: list[pa.Table], settings: Any, strategies: Collection[str], workers: int) -> Any:
        """The rows of all tables (checked) in order, as arrays of their own; `tables` is emptied.

        Raises DamageError for what `check` leaves to this.
        """

    # ---- the card ----

    def title(self, settings: Any) -> str:
        """Behind "7,200,000 ": "mazes of 8 x 8 cells"."""

    def column_rows(self, settings: Any) -> list[tuple[str, str, str]]:
        """(column, type, meaning) of every column."""

    def notes(self, settings: Any) -> dict[str, str]:
        """ "about", "encoding" and "use" (Python that decodes a row) of the card."""


@cache
def task_named(name: str) -> Task:
    """The task of a data set. Raises DamageError for a name that is none."""
    from lol_data.shards.maze_task import MazeTask
    from lol_data.shards.sudoku_task import SudokuTask

    for task in (MazeTask(), SudokuTask()):
        if task.name == name:
            return task
    raise DamageError(f"task {name!r} is none that this version knows")


def check_rows(
    task: Task, table: pa.Table, path: Path | str, settings: Any | None, strategies: Collection[str]
) -> None:
    """Raise DamageError, naming `path`, unless the rows of one file are those of the task in rising order of id."""
    fault = task.check(table, settings, strategies)
    if fault is None and table.num_rows:
        ids = table["id"].to_numpy()
        fault = "the ids do not rise" if (ids[1:] <= ids[:-1]).any() else None
    if fault is not None:
        raise DamageError(f"{path}: {fault}")
