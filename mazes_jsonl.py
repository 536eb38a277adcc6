"""Maze problems and outputs as lines of JSON, the form that is shared with other people's programs.

    {"id", "size", "edges": [[a, b], ...], "start", "goal", "strategy", "trace": [...], "answer": [...]}

`edges` are the open passages, each once, in either direction. `id` is a string, an integer or absent. Fields that are
not named here are left alone. Reading one line either gives what it says or raises LineError with one clear line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.jsonl import LineError, Record, kind, read_field, read_id, short
from lol_data.mazes import EAST, MAX_SIZE, MAZE_STRATEGIES, MIN_SIZE, NORTH, SOUTH, WEST, Mazes

MAX_STEPS = 4096  # the longest legal trace, a depth-first walk on 15 x 15 cells, has 449
NO_CELL = -1  # stands for an integer that is no cell id, however large


@dataclass(frozen=True, slots=True)
class MazeLine:
    """One problem: the object as read, and what its fields mean. openings: n*n bytes, as in Mazes."""

    record: Record
    size: int
    openings: bytes
    start: int
    goal: int


def read_maze(record: Record) -> MazeLine:
    """The problem in an object. Raises LineError."""
    read_id(record)
    size = _integer("size", read_field(record, "size"))
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise LineError(f"size {short(size)} is not in {MIN_SIZE} to {MAX_SIZE}")
    start, goal = (_cell(name, read_field(record, name), size) for name in ("start", "goal"))
    if start == goal:
        raise LineError(f"start and goal are the same cell, {start}")
    return MazeLine(record, size, _openings(read_field(record, "edges"), size), start, goal)


def read_strategy(record: Record) -> int:
    """The code of the strategy in an object. Raises LineError."""
    name = read_field(record, "strategy")
    if not isinstance(name, str) or name not in MAZE_STRATEGIES:
        shown = short(name) if isinstance(name, str) else kind(name)
        raise LineError(f"strategy must be one of {', '.join(MAZE_STRATEGIES)}, not {shown}")
    return MAZE_STRATEGIES.index(name)


def read_cells(record: Record, name: str) -> list[int]:
    """A list of integers, NO_CELL for one that cannot be a cell of any maze. Raises LineError."""
    values = read_field(record, name)
    if not isinstance(values, list):
        raise LineError(f"{name} must be a list of integers, not {kind(values)}")
    if len(values) > MAX_STEPS:
        raise LineError(f"{name} has {len(values)} entries, more than {MAX_STEPS}")
    for k, value in enumerate(values):
        if type(value) is not int:
            raise LineError(f"{name}[{k}] must be an integer, not {kind(value)}")
    return [value if 0 <= value < MAX_SIZE * MAX_SIZE else NO_CELL for value in values]


def to_mazes(lines: Sequence[MazeLine]) -> Mazes:
    """A batch of problems of one size; the ids of the batch are the places in it."""
    size = lines[0].size
    joined = bytearray().join(line.openings for line in lines)  # no bytes: for read-only arrays kernels compile anew
    openings = np.frombuffer(joined, np.uint8).reshape(len(lines), size * size)
    start = np.array([line.start for line in lines], np.uint8)
    goal = np.array([line.goal for line in lines], np.uint8)
    return Mazes(size, np.arange(len(lines), dtype=np.uint64), openings, start, goal)


def by_size(lines: Iterable[MazeLine]) -> list[list[int]]:
    """The places of the lines of each size, so that each group can become one batch."""
    groups: dict[int, list[int]] = {}
    for place, line in enumerate(lines):
        groups.setdefault(line.size, []).append(place)
    return list(groups.values())


def goal_reachable(mazes: Mazes) -> NDArray[np.bool_]:
    """Is there a way from start to goal? Shape (B,)."""
    rows, size = np.arange(len(mazes)), mazes.size
    openings = mazes.openings.reshape(-1, size, size)
    north, east, south, west = (openings & bit != 0 for bit in (NORTH, EAST, SOUTH, WEST))
    reached = np.zeros((len(mazes), size * size), bool)
    reached[rows, mazes.start] = True
    grid = reached.reshape(-1, size, size)
    count = -1
    while count != (count := int(grid.sum())):
        grid[:, :-1] |= grid[:, 1:] & north[:, 1:]
        grid[:, 1:] |= grid[:, :-1] & south[:, :-1]
        grid[:, :, 1:] |= grid[:, :, :-1] & east[:, :, :-1]
        grid[:, :, :-1] |= grid[:, :, 1:] & west[:, :, 1:]
    return reached[rows, mazes.goal]


def edges_of(openings: NDArray[np.uint8], size: int) -> list[list[int]]:
    """The open passages of one maze, uint8 (n*n,), as pairs of cells, smaller first."""
    return [
        [cell, cell + step]
        for cell, around in enumerate(openings.tolist())
        for bit, step in ((EAST, 1), (SOUTH, size))
        if around & bit
    ]


def problem_record(mazes: Mazes, row: int) -> Record:
    """One problem of a batch as an object of the form above."""
    return {
        "id": int(mazes.id[row]),
        "size": mazes.size,
        "edges": edges_of(mazes.openings[row], mazes.size),
        "start": int(mazes.start[row]),
        "goal": int(mazes.goal[row]),
    }


def _openings(edges: Any, size: int) -> bytes:
    if not isinstance(edges, list):
        raise LineError(f"edges must be a list of pairs, not {kind(edges)}")
    cells = size * size
    openings = bytearray(cells)
    for k, edge in enumerate(edges):
        if not isinstance(edge, list) or len(edge) != 2:
            raise LineError(f"edges[{k}] must be a pair of cells")
        a, b = edge
        if not (type(a) is type(b) is int and 0 <= a < cells and 0 <= b < cells):
            for cell in edge:
                _cell(f"edges[{k}]", cell, size)  # one of the two raises
        if a > b:
            a, b = b, a
        if b == a + 1 and b % size:
            bit, back = EAST, WEST
        elif b == a + size:
            bit, back = SOUTH, NORTH
        else:
            raise LineError(f"edges[{k}] joins {a} and {b}, which are no neighbours in a {size} x {size} grid")
        if openings[a] & bit:
            raise LineError(f"edges[{k}] gives the passage between {a} and {b} a second time")
        openings[a] |= bit
        openings[b] |= back
    return bytes(openings)


def _integer(name: str, value: Any) -> int:
    if type(value) is not int:  # True and 3.0 are no integers here
        raise LineError(f"{name} must be an integer, not {kind(value)}")
    return value


def _cell(name: str, value: Any, size: int) -> int:
    cell = _integer(name, value)
    if not 0 <= cell < size * size:
        raise LineError(f"{name}: {short(cell)} is outside the grid, cells are 0 to {size * size - 1}")
    return cell
