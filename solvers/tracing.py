"""All traces of a block of mazes in one kernel, which the generator shares.

The kernel fills flat buffers, one for the answer and one per strategy, and their row offsets; nothing is done in
Python per row. Buffers have room for the longest rows; the pages behind the last row are never touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.jit import njit_uncounted
from lol_data.mazes import MAX_SIZE, MAZE_STRATEGIES, MIN_SIZE, Mazes, TracedMazes
from lol_data.ragged import Ragged
from lol_data.solvers.astar import trace_astar
from lol_data.solvers.bfs import trace_bfs
from lol_data.solvers.bidirectional import trace_bidirectional
from lol_data.solvers.dead_end_filling import trace_dead_end_filling
from lol_data.solvers.dfs import trace_dfs
from lol_data.solvers.grid import Grid, Scratch, grid, scratch
from lol_data.solvers.path import trace_path

COLUMNS = ("answer", *MAZE_STRATEGIES)  # the order of `values` and `offsets` below
ANSWER, BFS, DFS, ASTAR, BIDIRECTIONAL, DEAD_END_FILLING = range(6)
Values = tuple[NDArray[np.uint8], ...]


def trace_buffers(rows: int, size: int) -> tuple[Values, NDArray[np.int64]]:
    """Six flat buffers with room for `rows` mazes, and offsets, int64 (6, rows + 1).

    Loops need no more room: no search takes a cell twice, and the depth-first walk goes at most once along each edge
    of its tree and once back, the way from start to goal excepted: less than two steps a cell.
    """
    cells = size * size
    room = {"dfs": 2 * cells}
    values = tuple(np.empty(rows * room.get(name, cells) + 8, np.uint8) for name in COLUMNS)
    return values, np.zeros((len(COLUMNS), rows + 1), np.int64)


def collect(mazes: Mazes, values: Values, offsets: NDArray[np.int64]) -> TracedMazes:
    """The filled buffers as a batch."""
    columns = {name: Ragged(flat[: ends[-1]], ends) for name, flat, ends in zip(COLUMNS, values, offsets, strict=True)}
    return TracedMazes(mazes, columns.pop("answer"), columns)


@njit_uncounted
def trace_problem(
    openings: NDArray[np.uint8],
    start: int,
    goal: int,
    conditions: tuple[int, int, int],
    looped: bool,
    row: int,
    values: Values,
    offsets: NDArray[np.int64],
    grid: Grid,
    scratch: Scratch,
) -> bool:
    """Append the answer and the five traces of one maze as row `row`; False, and nothing appended, if it is refused.

    conditions: least cells of the path, least moves back in the depth-first walk, least cells off the path in the
    breadth-first search. looped: False promises a perfect maze, which is quicker. A goal out of reach is always
    refused.
    """
    min_path, min_backtracks, min_detour = conditions
    seen, came, left = scratch.seen, scratch.came, scratch.left
    neighbours = grid.neighbours

    bfs = values[BFS][offsets[BFS, row] :]
    bfs_length = trace_bfs(openings, start, goal, bfs, neighbours, seen, came)
    if bfs_length < min_path + min_detour or bfs_length == 0:
        return False
    answer = values[ANSWER][offsets[ANSWER, row] :]
    path_length = trace_path(bfs, bfs_length, came, answer)
    if path_length < min_path or bfs_length - path_length < min_detour:
        return False
    dfs = values[DFS][offsets[DFS, row] :]
    dfs_length = trace_dfs(openings, start, goal, dfs, neighbours, seen, came, left)
    # In a perfect maze every cell off the path costs one move there and one back.
    moves_back: int | np.int64 = (dfs_length - path_length) >> 1
    if looped:  # every step but a move back stands on a new cell
        moves_back = dfs_length
        for cell in range(len(openings)):
            moves_back -= np.int64(seen[cell])
    if moves_back < min_backtracks:
        return False
    astar = values[ASTAR][offsets[ASTAR, row] :]
    astar_length = trace_astar(
        openings, start, goal, astar, neighbours, grid.distance, seen, scratch.link, scratch.tail
    )
    both = values[BIDIRECTIONAL][offsets[BIDIRECTIONAL, row] :]
    both_length = trace_bidirectional(openings, start, goal, both, neighbours, seen, scratch.queues)
    filling = values[DEAD_END_FILLING][offsets[DEAD_END_FILLING, row] :]
    filling_length = trace_dead_end_filling(openings, start, goal, filling, neighbours, left, scratch.waves)

    offsets[ANSWER, row + 1] = offsets[ANSWER, row] + path_length
    offsets[BFS, row + 1] = offsets[BFS, row] + bfs_length
    offsets[DFS, row + 1] = offsets[DFS, row] + dfs_length
    offsets[ASTAR, row + 1] = offsets[ASTAR, row] + astar_length
    offsets[BIDIRECTIONAL, row + 1] = offsets[BIDIRECTIONAL, row] + both_length
    offsets[DEAD_END_FILLING, row + 1] = offsets[DEAD_END_FILLING, row] + filling_length
    return True


@njit_uncounted
def _trace_rows(
    openings: NDArray[np.uint8],
    start: NDArray[np.uint8],
    goal: NDArray[np.uint8],
    values: Values,
    offsets: NDArray[np.int64],
    grid: Grid,
    scratch: Scratch,
) -> int:
    """Trace every row; the number of rows done, less than all when the next one's goal is out of reach."""
    for row in range(len(openings)):
        begin: Any = np.int64(start[row])  # a signed word, as the tracers' arithmetic needs
        end: Any = np.int64(goal[row])
        if not trace_problem(openings[row], begin, end, (0, 0, 0), True, row, values, offsets, grid, scratch):
            return row
    return len(openings)


def check_problems(mazes: Mazes) -> None:
    """Raise UsageError, naming the id, unless every row is a maze: closed border, two-sided passages, cells inside."""
    size, cells = mazes.size, mazes.size * mazes.size
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise UsageError(f"size {size} is not in {MIN_SIZE}..{MAX_SIZE}")
    if mazes.openings.shape != (len(mazes), cells):
        raise UsageError(f"openings have shape {mazes.openings.shape}, not {(len(mazes), cells)}")
    bits = (mazes.openings.reshape(-1, size, size)[..., None] >> np.arange(4, dtype=np.uint8)) & 1
    north, east, south, west = (bits[..., direction] for direction in range(4))
    border = north[:, 0].any(1) | south[:, -1].any(1) | west[:, :, 0].any(1) | east[:, :, -1].any(1)
    one_sided = (east[:, :, :-1] != west[:, :, 1:]).any((1, 2)) | (south[:, :-1] != north[:, 1:]).any((1, 2))
    faults = {
        "has a start or goal outside the grid": (mazes.start >= cells) | (mazes.goal >= cells),
        "is open at the outer border": border | (mazes.openings > 15).any(1),
        "has a passage that is open from one side only": one_sided,
    }
    for fault, rows in faults.items():
        if rows.any():
            raise UsageError(f"maze {mazes.id[np.argmax(rows)]} {fault}")


def trace_mazes(mazes: Mazes) -> TracedMazes:
    """The canonical answer and traces of given problems, loops allowed.

    Raises UsageError, naming the id, for a row that is not a maze or whose goal cannot be reached.
    """
    check_problems(mazes)
    values, offsets = trace_buffers(len(mazes), mazes.size)
    openings, start, goal = (np.ascontiguousarray(a) for a in (mazes.openings, mazes.start, mazes.goal))
    done = _trace_rows(openings, start, goal, values, offsets, grid(mazes.size), scratch(mazes.size))
    if done < len(mazes):
        raise UsageError(f"maze {mazes.id[done]}: the goal {goal[done]} cannot be reached from the start {start[done]}")
    return collect(mazes, values, offsets)
