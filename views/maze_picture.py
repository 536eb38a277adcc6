"""What there is to draw of one maze: its walls, its answer, its traces, and what every step does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import DamageError, UsageError
from lol_data.mazes import EAST, NORTH, SOUTH, WEST, TracedMazes

FRONTIER_STRATEGIES = ("bfs", "astar", "bidirectional")  # cells are discovered first and taken later


@dataclass(frozen=True, slots=True)
class MazePicture:
    """One maze with its answer and traces; steps are counted from 1.

    openings: n*n bit sets as in Mazes. answer, traces: cells; only that of dead_end_filling may be empty. Raises
    DamageError for what is empty, a cell outside the grid, and an answer or a walk (dfs) that leaves the open passages.
    """

    id: int
    size: int
    openings: tuple[int, ...]
    start: int
    goal: int
    answer: tuple[int, ...]
    traces: dict[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        for what, cells in {"answer": self.answer, **self.traces}.items():
            if not cells and what != "dead_end_filling":
                raise DamageError(f"{self.name}: {what} is empty")
            if any(not 0 <= cell < self.size * self.size for cell in cells):
                raise DamageError(f"{self.name}: {what} names cell {max(cells)}, which is outside the grid")
            if what in ("answer", "dfs"):
                for here, there in pairwise(cells):
                    if there not in self.neighbours(here):
                        raise DamageError(f"{self.name}: {what} goes from {here} to {there}, where no passage is")

    @property
    def name(self) -> str:
        """Such as "8x8 maze 17"."""
        return f"{self.size}x{self.size} maze {self.id}"

    def trace(self, strategy: str) -> tuple[int, ...]:
        """The trace of a strategy. Raises UsageError for one that the maze has no trace of."""
        if strategy not in self.traces:
            raise UsageError(f"strategy {strategy!r} is unknown; choose from {', '.join(self.traces)}")
        return self.traces[strategy]

    def place(self, cell: int) -> tuple[int, int]:
        """(column, row) of a cell."""
        return cell % self.size, cell // self.size

    def neighbours(self, cell: int) -> list[int]:
        """The cells that open passages lead to."""
        ways = ((NORTH, -self.size), (EAST, 1), (SOUTH, self.size), (WEST, -1))
        return [cell + move for bit, move in ways if self.openings[cell] & bit]

    def walls(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Horizontal walls, (n + 1, n): [r, c] lies above cell (r, c); vertical ones, (n, n + 1): left of it."""
        cells = np.array(self.openings, np.uint8).reshape(self.size, self.size)
        horizontal = np.ones((self.size + 1, self.size), bool)
        vertical = np.ones((self.size, self.size + 1), bool)
        horizontal[1:-1] = cells[1:] & NORTH == 0
        vertical[:, 1:-1] = cells[:, 1:] & WEST == 0
        return horizontal, vertical

    def answer_ways(self) -> dict[int, int]:
        """For every cell of the answer, the bit set of directions in which the answer leaves or enters it."""
        ways = dict.fromkeys(self.answer, 0)
        bits = {-self.size: (NORTH, SOUTH), 1: (EAST, WEST), self.size: (SOUTH, NORTH), -1: (WEST, EAST)}
        for here, there in pairwise(self.answer):
            out, back = bits[there - here]
            ways[here] |= out
            ways[there] |= back
        return ways


@dataclass(frozen=True, slots=True)
class Discovery:
    """When a search came to know a cell: after which step (0: from the outset), from which side, how far from it."""

    step: int
    side: int
    distance: int


def picture_of(traced: TracedMazes, row: int) -> MazePicture:
    """Row `row` of a batch. Raises UsageError when there is no such row, DamageError as MazePicture does."""
    if not 0 <= row < len(traced):
        raise UsageError(f"row {row} does not exist; there are {len(traced)} rows, counted from 0")
    mazes = traced.mazes
    return MazePicture(
        id=int(mazes.id[row]),
        size=mazes.size,
        openings=tuple(mazes.openings[row].tolist()),
        start=int(mazes.start[row]),
        goal=int(mazes.goal[row]),
        answer=tuple(traced.answer[row].tolist()),
        traces={name: tuple(trace[row].tolist()) for name, trace in traced.traces.items()},
    )


def first_visits(trace: tuple[int, ...]) -> dict[int, int]:
    """For every cell of a trace the first step that names it, in the order of the steps."""
    visits: dict[int, int] = {}
    for step, cell in enumerate(trace, 1):
        visits.setdefault(cell, step)
    return visits


def discoveries(picture: MazePicture, strategy: str) -> dict[int, Discovery]:
    """For bfs, astar and bidirectional: every cell that the search ever knew. Side 0 is the start's, 1 the goal's.

    Raises DamageError for a trace that takes a cell before it knows of it.
    """
    found = {picture.start: Discovery(0, 0, 0)}
    if strategy == "bidirectional":
        found[picture.goal] = Discovery(0, 1, 0)
    for step, cell in enumerate(picture.trace(strategy), 1):
        if cell not in found:
            raise DamageError(f"{picture.name}: {strategy} takes cell {cell} at step {step}, before it knows of it")
        here = found[cell]
        for neighbour in picture.neighbours(cell):
            known = found.get(neighbour)
            if known is None:
                found[neighbour] = Discovery(step, here.side, here.distance + 1)
            elif known.side == here.side and known.distance > here.distance + 1:  # A* by a shorter way round a loop
                found[neighbour] = Discovery(known.step, here.side, here.distance + 1)
    return found


def describe(picture: MazePicture, strategy: str) -> list[str]:
    """For every step of a trace what happens to its cell: "leaves the queue"."""
    trace = picture.trace(strategy)
    if strategy == "dfs":
        visits = first_visits(trace)
        moves = ["is entered" if visits[cell] == step else "is walked back to" for step, cell in enumerate(trace, 1)]
        return ["is where the walk begins", *moves[1:]]
    if strategy == "dead_end_filling":
        return ["is a dead end and gets filled"] * len(trace)
    if strategy == "bfs":
        return ["leaves the queue"] * len(trace)
    found = discoveries(picture, strategy)
    if strategy == "bidirectional":
        said = [f"is expanded from the {('start', 'goal')[found[cell].side]}" for cell in trace]
        return [*said[:-1], f"{said[-1]}; the sides touch"]
    return [_closed(picture, cell, found[cell].distance) for cell in trace]


def _closed(picture: MazePicture, cell: int, distance: int) -> str:
    (x, y), (goal_x, goal_y) = picture.place(cell), picture.place(picture.goal)
    guess = abs(x - goal_x) + abs(y - goal_y)
    return f"is closed: f = {distance} + {guess} = {distance + guess}"
