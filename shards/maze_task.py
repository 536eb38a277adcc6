"""Mazes: their problems, their rows on disk, and what their card says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.generators.fingerprint import maze_fingerprint, maze_key
from lol_data.generators.maze import MazeSettings, generate_mazes
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
from lol_data.shards.arrow import (
    binary,
    column_fault,
    greatest,
    matrix,
    numbers,
    of_equal_width,
    ragged,
    take_columns,
    widths_differ,
)
from lol_data.shards.kernels import first_visits

PROBLEM_COLUMNS = ("id", "size", "passages", "start", "goal", "answer")
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
_EXITS = np.array([openings.bit_count() for openings in range(16)], np.uint8)
_TRACES = {
    "bfs": "cells in the order they leave the FIFO queue, start first, up to and including the goal",
    "dfs": "the walk of a depth-first search: every move, moves back to a parent included, up to the goal",
    "astar": "cells in the order A* closes them: least f = g + Manhattan distance, then least h, then first inserted",
    "bidirectional": "cells expanded in turn from the start's and the goal's queue, until an expansion touches the "
    "other side",
    "dead_end_filling": "rounds: all cells with one open neighbour (start and goal never) in index order, until none "
    "is left",
}


class MazeTask:
    """See `task.Task`."""

    name = "maze"
    problem = "maze"
    promise = "a maze with the passages of a tree"
    strategies: tuple[str, ...] = MAZE_STRATEGIES
    length_unit = "cells"
    symmetries = "the 8 symmetries, start and goal exchanged"
    schema = MAZE_SCHEMA

    def fields(self, settings: MazeSettings) -> dict[str, Any]:
        return {**asdict(settings), "min_path": settings.least_path}

    def settings_of(self, fields: Mapping[str, Any]) -> MazeSettings:
        return MazeSettings(**fields)

    def generate(self, settings: MazeSettings, seed: int, lo: int, hi: int) -> TracedMazes:
        return generate_mazes(settings, seed, lo, hi)

    def keys(self, traced: TracedMazes) -> NDArray[np.uint64]:
        return maze_key(traced.mazes)

    def fingerprints(self, traced: TracedMazes) -> NDArray[np.uint64]:
        return maze_fingerprint(traced.mazes)

    def problems(self, traced: TracedMazes) -> NDArray[np.uint8]:
        mazes = traced.mazes
        return np.concatenate([mazes.openings, mazes.start[:, None], mazes.goal[:, None]], axis=1)

    def sound(self, traced: TracedMazes, settings: MazeSettings) -> NDArray[np.bool_]:
        """By the number of passages, n*n - 1."""
        if settings.loops:
            return np.ones(len(traced), bool)
        return _EXITS[traced.mazes.openings].sum(1) == 2 * (settings.size**2 - 1)

    def columns(self, traced: TracedMazes) -> dict[str, Ragged]:
        """For `passages` the openings, which hold the same."""
        mazes = traced.mazes
        return {
            "passages": of_equal_width(mazes.openings),
            "start": of_equal_width(mazes.start[:, None]),
            "goal": of_equal_width(mazes.goal[:, None]),
            "answer": traced.answer,
            **{name: traced.traces[name] for name in MAZE_STRATEGIES},
        }

    def orders(self, traced: TracedMazes) -> dict[str, Ragged]:
        """The cells in the order of their first visit: a depth-first walk comes back to cells, and only the order
        tells strategies apart."""
        return {**traced.traces, "dfs": first_visits(traced.traces["dfs"])}

    def measures(self, traced: TracedMazes) -> dict[str, NDArray[np.integer]]:
        mazes = traced.mazes
        exits = _EXITS[mazes.openings]
        one, other = (np.divmod(column.astype(np.int64), mazes.size) for column in (mazes.start, mazes.goal))
        return {
            "dead_ends": np.count_nonzero(exits == 1, axis=1),
            "junctions": np.count_nonzero(exits > 2, axis=1),
            "manhattan_distance": abs(one[0] - other[0]) + abs(one[1] - other[1]),
        }

    def places(self, traced: TracedMazes) -> dict[str, NDArray[np.int64]]:
        mazes, shape = traced.mazes, (traced.mazes.size, traced.mazes.size)
        parts = {"start": mazes.start, "goal": mazes.goal}
        return {name: np.bincount(cells, minlength=shape[0] ** 2).reshape(shape) for name, cells in parts.items()}

    def to_batch(self, traced: TracedMazes) -> pa.RecordBatch:
        mazes, rows = traced.mazes, len(traced)
        columns = [
            pa.array(mazes.id),
            pa.array(np.full(rows, mazes.size, np.uint8)),
            binary(of_equal_width(pack_passages(mazes.openings, mazes.size))),
            pa.array(mazes.start),
            pa.array(mazes.goal),
            binary(traced.answer),
            *(binary(traced.traces[name]) for name in MAZE_STRATEGIES),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=MAZE_SCHEMA)

    def check(self, table: pa.Table, settings: MazeSettings | None, strategies: Collection[str]) -> str | None:
        fault = column_fault(table, MAZE_SCHEMA, (*PROBLEM_COLUMNS, *strategies))
        if fault or not table.num_rows:
            return fault
        sizes = table["size"].to_numpy()
        size = int(sizes[0])
        if (sizes != size).any() or not MIN_SIZE <= size <= MAX_SIZE:
            return f"the rows are not mazes of one size from {MIN_SIZE} to {MAX_SIZE}"
        if settings is not None and size != settings.size:
            return f"its mazes are not {settings.size} x {settings.size}"
        for name in ("start", "goal", "answer", *strategies):
            if greatest(table[name]) >= size * size:
                return f"column {name} holds a cell beyond {size} x {size}"
        if widths_differ(table["passages"], passage_bytes(size)):
            return f"a passages bitmap is not {passage_bytes(size)} bytes long"
        return None

    def from_tables(
        self, tables: list[pa.Table], settings: MazeSettings, strategies: Collection[str], workers: int = 1
    ) -> TracedMazes:
        size = settings.size
        readers: dict[str, Any] = {"id": partial(numbers, dtype=np.uint64)}
        readers |= {name: partial(numbers, dtype=np.uint8) for name in ("start", "goal")}
        readers["passages"] = lambda chunks: _openings(chunks, size)
        readers |= dict.fromkeys(("answer", *strategies), ragged)
        columns = take_columns(tables, readers, workers)
        mazes = Mazes(size, columns["id"], columns["passages"], columns["start"], columns["goal"])
        return TracedMazes(mazes, columns["answer"], {name: columns[name] for name in strategies})

    def title(self, settings: MazeSettings) -> str:
        return f"mazes of {settings.size} x {settings.size} cells"

    def column_rows(self, settings: MazeSettings) -> list[tuple[str, str, str]]:
        size, cells = settings.size, settings.size**2
        return [
            ("`id`", "uint64", "number of the row; the row is a pure function of settings, seed and id"),
            ("`size`", "uint8", f"{size}"),
            (
                "`passages`",
                f"binary, {passage_bytes(size)} bytes",
                f"bitmap of {cells} bits of open east edges, then {cells} bits of open south edges, in cell order, "
                "least significant bit first",
            ),
            ("`start`, `goal`", "uint8", "cells"),
            ("`answer`", "binary", "the path from start to goal"),
            *((f"`{name}`", "binary", _TRACES[name]) for name in MAZE_STRATEGIES),
        ]

    def notes(self, settings: MazeSettings) -> dict[str, str]:
        size, cells = settings.size, settings.size**2
        return {
            "about": f"One row is one problem: a maze with a start and a goal, its path, and one canonical trace per "
            f"strategy. Cells are numbered `row*{size}+column`. Equivalent mazes "
            f"({self.symmetries}) are always in the same split.",
            "encoding": "Paths and traces hold one byte per cell number.",
            "use": f"""cells = np.frombuffer(row["bfs"], np.uint8)                     # cell numbers of one trace
bits = np.unpackbits(np.frombuffer(row["passages"], np.uint8), bitorder="little")
east, south = bits[:{cells}], bits[{cells}:{2 * cells}]                     # east[c]: from cell c one can go east""",
        }


def _openings(chunks: Any, size: int) -> NDArray[np.uint8]:
    openings = np.empty((sum(len(chunk) for chunk in chunks), size * size), np.uint8)
    row = 0
    for chunk in chunks:
        packed = matrix([chunk], passage_bytes(size))
        unpack_passages(packed, size, openings[row : row + len(packed)])
        row += len(packed)
    return openings
