"""Random maze problems with their answer and canonical traces.

Settings, then the kernel that fills a block of rows, then the function to call. Row i is a pure function of (settings,
seed, i), whatever block, thread or process makes it.

A problem is kept when
- its path has at least `min_path` cells,
- the canonical depth-first walk moves back at least once, and
- the canonical breadth-first search visits at least three cells off the path,
so that the strategies have something to disagree about.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import LolDataError, UsageError
from lol_data.generators.rng import advance, below, check_seed, draw, row_state
from lol_data.generators.spanning_tree import wilson_tree
from lol_data.jit import njit
from lol_data.mazes import MAX_SIZE, MIN_SIZE, Mazes, TracedMazes, default_min_path
from lol_data.solvers.grid import Grid, Scratch, grid, scratch
from lol_data.solvers.tracing import Values, collect, trace_buffers, trace_problem

ALGORITHMS = ("wilson",)
MIN_BACKTRACKS, MIN_DETOUR = 1, 3

# Pairs of endpoints tried on one tree before the next is drawn. One pair a tree would make the kept problems uniform
# and draw two trees for each; endless pairs would make the trees uniform (among those with a pair to keep) and could
# hang. After eight, nearly every 8 x 8 tree has been kept, so the trees are all but uniform and hardly one is wasted.
# A row draws trees and pairs from its own stream until one is kept: no two rows share a tree.
PAIRS_PER_TREE = 8
MAX_TREES = 1 << 18  # per row; a setting that needs more is reported instead of searched for without end

_TASK = np.uint64(0x6D617A65)  # "maze"


@dataclass(frozen=True)
class MazeSettings:
    """What kind of mazes: `size` x `size` cells, paths of at least `min_path` cells (default floor(1.5 size))."""

    size: int = 8
    min_path: int | None = None
    algorithm: str = "wilson"

    @property
    def least_path(self) -> int:
        """`min_path`, or its default for this size."""
        return default_min_path(self.size) if self.min_path is None else self.min_path

    def validate(self) -> None:
        """Raise UsageError, in one line, for settings that no maze can meet."""
        if not _is_integer(self.size) or not MIN_SIZE <= self.size <= MAX_SIZE:
            raise UsageError(f"size {self.size!r} is not an integer from {MIN_SIZE} to {MAX_SIZE}")
        if self.algorithm not in ALGORITHMS:
            raise UsageError(f"algorithm {self.algorithm!r} is unknown; choose from {', '.join(ALGORITHMS)}")
        longest = self.size * self.size - MIN_DETOUR
        if not _is_integer(self.least_path) or not 2 <= self.least_path <= longest:
            raise UsageError(
                f"min_path {self.least_path!r} is not an integer from 2 to {longest}, the longest path of a "
                f"{self.size} x {self.size} maze that leaves {MIN_DETOUR} cells to search off the path"
            )


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@njit
def _fill_rows(
    first: int,
    seed: np.uint64,
    task: np.uint64,
    min_path: int,
    openings: NDArray[np.uint8],
    start: NDArray[np.uint8],
    goal: NDArray[np.uint8],
    values: Values,
    offsets: NDArray[np.int64],
    grid: Grid,
    scratch: Scratch,
) -> int:
    """Make rows first, first + 1, ...; the number made, less than asked for when the next one was given up."""
    rows, cells = openings.shape
    conditions = (min_path, MIN_BACKTRACKS, MIN_DETOUR)
    for row in range(rows):
        state = row_state(task, seed, np.uint64(first + row))
        maze = openings[row]
        kept = False
        for _ in range(MAX_TREES):
            state = wilson_tree(state, maze, grid.neighbours, scratch.seen, scratch.came)
            for _ in range(PAIRS_PER_TREE):
                state = advance(state)
                begin = below(draw(state), cells)
                state = advance(state)
                end = below(draw(state), cells - 1)
                end += end >= begin  # every pair of different cells is equally likely
                kept = trace_problem(maze, begin, end, conditions, row, values, offsets, grid, scratch)
                if kept:
                    start[row], goal[row] = begin, end
                    break
            if kept:
                break
        if not kept:
            return row
    return rows


def generate_mazes(settings: MazeSettings, seed: int, lo: int, hi: int) -> TracedMazes:
    """Rows lo <= id < hi of the data set that (settings, seed) names.

    Runs without the interpreter lock, one thread, no shared state. Raises UsageError for settings, seeds or ids that
    make no sense, and LolDataError when the settings are met so rarely that the search was given up.
    """
    settings.validate()
    key = check_seed(seed)
    lo, hi, size = operator.index(lo), operator.index(hi), operator.index(settings.size)
    if not 0 <= lo <= hi < 2**63:
        raise UsageError(f"ids {lo}..{hi} are not a range of non-negative integers")
    rows = hi - lo
    ids = np.arange(lo, hi, dtype=np.uint64)
    openings = np.empty((rows, size * size), np.uint8)
    start, goal = np.empty(rows, np.uint8), np.empty(rows, np.uint8)
    values, offsets = trace_buffers(rows, size)
    task = _TASK ^ np.uint64(size << 32)  # another size is another stream
    made = _fill_rows(
        lo, key, task, int(settings.least_path), openings, start, goal, values, offsets, grid(size), scratch(size)
    )
    if made < rows:
        raise LolDataError(
            f"min_path {settings.least_path} is too rare at size {size}: row {lo + made} found none in "
            f"{MAX_TREES:,} trees; choose a smaller min_path"
        )
    return collect(Mazes(size, ids, openings, start, goal), values, offsets)
