"""Random spanning trees of the n x n grid: the four algorithms by name, in one kernel."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.generators.backtracker import backtracker_tree
from lol_data.generators.kruskal import kruskal_tree
from lol_data.generators.prim import prim_tree
from lol_data.generators.rng import check_seed, is_integer, row_state
from lol_data.generators.tree_scratch import TreeScratch, tree_scratch
from lol_data.generators.wilson import wilson_tree
from lol_data.jit import njit
from lol_data.mazes import MAX_SIZE, MIN_SIZE
from lol_data.solvers.grid import grid

ALGORITHMS = ("wilson", "backtracker", "kruskal", "prim")  # the order of their codes, which are part of every stream
WILSON, BACKTRACKER, KRUSKAL, PRIM = range(4)

_TASK = np.uint64(0x74726565)  # "tree": none of these is the tree of a maze of the same seed and row


def check_tree(algorithm: str, size: int) -> None:
    """Raise UsageError, in one line, unless `draw_tree` can make such trees."""
    if not is_integer(size) or not MIN_SIZE <= size <= MAX_SIZE:
        raise UsageError(f"size {size!r} is not an integer from {MIN_SIZE} to {MAX_SIZE}")
    if algorithm not in ALGORITHMS:
        raise UsageError(f"algorithm {algorithm!r} is unknown; choose from {', '.join(ALGORITHMS)}")


def stream(task: np.uint64, algorithm: str, size: int) -> np.uint64:
    """The task word of one kind of tree: every size and every algorithm has a stream of its own."""
    return task ^ np.uint64(size << 32 | ALGORITHMS.index(algorithm) << 40)


@njit
def draw_tree(
    algorithm: int,
    state: np.uint64,
    openings: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    scratch: TreeScratch,
) -> np.uint64:
    """Write a tree's openings, uint8 (n*n,), and return the state of the row's stream behind it.

    algorithm: index into ALGORITHMS. neighbours: as in `solvers.grid`.
    """
    if algorithm == WILSON:
        return wilson_tree(state, openings, neighbours, scratch)
    if algorithm == BACKTRACKER:
        return backtracker_tree(state, openings, neighbours, scratch)
    if algorithm == KRUSKAL:
        return kruskal_tree(state, openings, neighbours, scratch)
    return prim_tree(state, openings, neighbours, scratch)


@njit
def _fill_trees(
    algorithm: int,
    task: np.uint64,
    seed: np.uint64,
    openings: NDArray[np.uint8],
    neighbours: NDArray[np.uint8],
    scratch: TreeScratch,
) -> None:
    for row in range(len(openings)):
        draw_tree(algorithm, row_state(task, seed, np.uint64(row)), openings[row], neighbours, scratch)


def spanning_trees(algorithm: str, size: int, seed: int, count: int) -> NDArray[np.uint8]:
    """Openings of `count` random trees, uint8 (count, n*n), without endpoints and so without any selection.

    Row k is a pure function of (algorithm, size, seed, k). Raises UsageError for what makes no sense.
    """
    check_tree(algorithm, size)
    key = check_seed(seed)
    if not is_integer(count) or count < 0:
        raise UsageError(f"count {count!r} is not a non-negative integer")
    size = operator.index(size)
    openings = np.empty((count, size * size), np.uint8)
    task = stream(_TASK, algorithm, size)
    _fill_trees(ALGORITHMS.index(algorithm), task, key, openings, grid(size).neighbours, tree_scratch(size))
    return openings
