"""Random maze problems with their answer and canonical traces.

Settings, then the kernel that fills a block of rows, then the function to call. Row i is a pure function of (settings,
seed, i), whatever block, thread or process makes it. A maze is a random spanning tree, perfect unless `loops` opens
further walls.

A problem is kept when
- its shortest path has at least `min_path` cells,
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
from lol_data.generators.loops import loop_threshold, open_walls
from lol_data.generators.rng import advance, below, check_seed, draw, is_integer, row_state
from lol_data.generators.spanning_tree import ALGORITHMS, check_tree, draw_tree, stream
from lol_data.generators.tree_scratch import TreeScratch, tree_scratch
from lol_data.jit import njit
from lol_data.mazes import Mazes, TracedMazes, default_min_path
from lol_data.solvers.grid import Grid, Scratch, grid, scratch
from lol_data.solvers.tracing import Values, collect, trace_buffers, trace_problem

MIN_BACKTRACKS, MIN_DETOUR = 1, 3

# Pairs of endpoints tried on one tree before the next is drawn. One pair a tree would make the kept problems uniform
# and draw two trees for each; endless pairs would make the trees uniform (among those with a pair to keep) and could
# hang. After eight, nearly every 8 x 8 tree has been kept, so the trees are all but uniform and hardly one is wasted.
# A row draws trees and pairs from its own stream until one is kept: no two rows share a tree.
PAIRS_PER_TREE = 8
MAX_TREES = 1 << 18  # per row; a setting that needs more is reported instead of searched for without end

_TASK = np.uint64(0x6D617A65)  # "maze"
_LOOPED = np.uint64(1 << 48)  # a stream apart: no looped maze is a perfect one of the same row with a wall removed


@dataclass(frozen=True)
class MazeSettings:
    """What kind of mazes: `size` x `size` cells, paths of at least `min_path` cells (default floor(1.5 size)).

    algorithm: one of ALGORITHMS. loops: the probability with which each wall that the tree leaves between two cells is
    opened; 0 makes perfect mazes.
    """

    size: int = 8
    min_path: int | None = None
    algorithm: str = "wilson"
    loops: float = 0.0

    @property
    def least_path(self) -> int:
        """`min_path`, or its default for this size."""
        return default_min_path(self.size) if self.min_path is None else self.min_path

    def validate(self) -> None:
        """Raise UsageError, in one line, for settings that no maze can meet."""
        check_tree(self.algorithm, self.size)
        loop_threshold(self.loops)
        longest = self.size * self.size - MIN_DETOUR
        if not is_integer(self.least_path) or not 2 <= self.least_path <= longest:
            raise UsageError(
                f"min_path {self.least_path!r} is not an integer from 2 to {longest}, the longest path of a "
                f"{self.size} x {self.size} maze that leaves {MIN_DETOUR} cells to search off the path"
            )


@njit
def _fill_rows(
    first: int,
    seed: np.uint64,
    task: np.uint64,
    algorithm: int,
    threshold: np.uint64,
    min_path: int,
    openings: NDArray[np.uint8],
    start: NDArray[np.uint8],
    goal: NDArray[np.uint8],
    values: Values,
    offsets: NDArray[np.int64],
    grid: Grid,
    scratch: Scratch,
    tree_scratch: TreeScratch,
) -> int:
    """Make rows first, first + 1, ...; the number made, less than asked for when the next one was given up."""
    rows, cells = openings.shape
    conditions = (min_path, MIN_BACKTRACKS, MIN_DETOUR)
    looped = threshold != 0
    for row in range(rows):
        state = row_state(task, seed, np.uint64(first + row))
        maze = openings[row]
        kept = False
        for _ in range(MAX_TREES):
            state = draw_tree(algorithm, state, maze, grid.neighbours, tree_scratch)
            if looped:
                state = open_walls(state, maze, grid.neighbours, tree_scratch.walls, threshold)
            for _ in range(PAIRS_PER_TREE):
                state = advance(state)
                begin = below(draw(state), cells)
                state = advance(state)
                end = below(draw(state), cells - 1)
                end += end >= begin  # every pair of different cells is equally likely
                kept = trace_problem(maze, begin, end, conditions, looped, row, values, offsets, grid, scratch)
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
    algorithm, threshold = ALGORITHMS.index(settings.algorithm), loop_threshold(settings.loops)
    task = stream(_TASK, settings.algorithm, size) ^ (_LOOPED if threshold else np.uint64(0))
    made = _fill_rows(
        lo,
        key,
        task,
        algorithm,
        threshold,
        int(settings.least_path),
        openings,
        start,
        goal,
        values,
        offsets,
        grid(size),
        scratch(size),
        tree_scratch(size),
    )
    if made < rows:
        where, remedy = (f" with loops {settings.loops}", " or fewer loops") if threshold else ("", "")
        raise LolDataError(
            f"min_path {settings.least_path} is too rare at size {size}{where}: row {lo + made} found none in "
            f"{MAX_TREES:,} trees; choose a smaller min_path{remedy}"
        )
    return collect(Mazes(size, ids, openings, start, goal), values, offsets)
