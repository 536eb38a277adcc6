"""Measures of paths through the library, with numbers alone: reuse, occupancy, loads, agreement, distances, PCA."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.routes import NOWHERE, Routes, TokenPaths
from lol_data.model.formulas import expected_distinct_blocks, least_reuse


def distinct_blocks(paths: NDArray[np.integer]) -> NDArray[np.int64]:
    """U of equation (11), (N,): how many different blocks each path (N, D) goes through."""
    in_order = np.sort(paths, axis=1)
    return 1 + (np.diff(in_order, axis=1) != 0).sum(axis=1)


def reuse(paths: NDArray[np.integer], blocks: int) -> dict[str, Any]:
    """Distribution of U over paths (N, D), beside the bounds of equation (11) and the uniform draw of equation (12).

    {"n", "counts": paths with U = 1, 2, ..., min(L, D), "mean", "repeated", "unused": means, "bounds", "uniform"}.
    """
    depth = paths.shape[1]
    bound, n = least_reuse(blocks, depth), len(paths)
    u = distinct_blocks(paths)
    mean = float(u.mean()) if n else None
    return {
        "n": n,
        "counts": np.bincount(u, minlength=bound.distinct + 1)[1:].tolist(),
        "mean": mean,
        "repeated": None if mean is None else depth - mean,
        "unused": None if mean is None else blocks - mean,
        "bounds": {"distinct": bound.distinct, "repeated": bound.repeated, "unused": bound.unused},
        "uniform": expected_distinct_blocks(blocks, depth),
    }


def occupancy(tokens: TokenPaths, blocks: int, requests: int = 8) -> dict[str, Any]:
    """How many different blocks one decoding step loads at each depth, when `requests` sequences are decoded together.

    Sequences are grouped as they come; a step is a position that at least one of a group reaches. "uniform" is equation
    (12) for as many draws as the step has sequences.
    {"requests", "steps", "alive": mean sequences a step, "distinct": mean per depth, (D,), "uniform"}.
    """
    longest = int(tokens.positions.max(initial=0)) + 1
    steps, step, alive = np.unique(
        tokens.rows // requests * longest + tokens.positions, return_inverse=True, return_counts=True
    )
    count = max(len(steps), 1)
    distinct = [len(np.unique(step * blocks + column)) / count for column in tokens.paths.T.astype(np.int64)]
    expected = blocks * (1 - (1 - 1 / blocks) ** alive)
    return {
        "requests": requests,
        "steps": len(steps),
        "alive": float(alive.sum() / count),
        "distinct": distinct,
        "uniform": float(expected.sum() / count),
    }


def loads(routes: Routes, groups: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """Share of the windows behind the prompt that took each block, (count, D, L), per group of sequences, int (M,)."""
    taken = np.zeros((count, routes.depth, routes.blocks))
    row, level, k = (routes.ids[:, :, 1:] != NOWHERE).nonzero()
    np.add.at(taken, (groups[row], level, routes.ids[row, level, k + 1]), 1)
    return taken / np.maximum(taken.sum(-1, keepdims=True), 1)


class Agreement(NamedTuple):
    """Own choices beside a template's, per strategy, depth and window: observed and agreeing, int64 (S, D, K)."""

    counts: NDArray[np.int64]
    agreeing: NDArray[np.int64]


def agreement(routes: Routes, strategies: NDArray[np.integer], template: NDArray[np.integer]) -> Agreement:
    """How often sequences of the given strategies (M,) take the blocks of a template, (S, D, K); windows behind its
    last one are compared with that one."""
    windows = np.minimum(np.arange(routes.ids.shape[2]), template.shape[2] - 1)
    wanted = template[:, :, windows]
    real = routes.ids != NOWHERE
    counts, agreeing = np.zeros(wanted.shape, np.int64), np.zeros(wanted.shape, np.int64)
    np.add.at(counts, strategies, real)
    np.add.at(agreeing, strategies, real & (routes.ids == wanted[strategies]))
    return Agreement(counts, agreeing)


def window_paths(routes: Routes) -> tuple[NDArray[np.int16], NDArray[np.int64], NDArray[np.int64]]:
    """The path of every window behind the prompt that is there at all depths, int16 (N, D); its sequence and number."""
    rows, k = (routes.ids[:, :, 1:] != NOWHERE).all(1).nonzero()
    return routes.ids[rows, :, k + 1], rows, k + 1


def one_hot(paths: NDArray[np.integer], blocks: int) -> NDArray[np.float64]:
    """Paths (N, D) as vectors (N, D L), a one for the block at each depth; squared distances are equation (15)."""
    return np.eye(blocks)[paths].reshape(len(paths), -1)


def mean_distances(vectors: NDArray[np.float64], groups: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """Mean squared distance between a vector of one group and another vector of another or the same, (count, count).

    vectors: (N, F). groups: int (N,). NaN where there is no pair.
    """
    means, spread = np.full((count, vectors.shape[1]), np.nan), np.full(count, np.nan)
    size = np.bincount(groups, minlength=count)
    for group in np.flatnonzero(size):
        own = vectors[groups == group]
        means[group] = own.mean(0)
        spread[group] = ((own - means[group]) ** 2).sum(1).mean()
    between = ((means[:, None] - means) ** 2).sum(-1) + spread[:, None] + spread
    with np.errstate(invalid="ignore", divide="ignore"):
        within = 2 * spread * size / (size - 1)
    within[size < 2] = np.nan
    np.fill_diagonal(between, within)
    return between


class Pca(NamedTuple):
    """points: (N, 2), coordinates on the two first axes. explained: (2,), their shares of the variance."""

    points: NDArray[np.float64]
    explained: NDArray[np.float64]


def pca(vectors: NDArray[np.float64]) -> Pca:
    """The two main axes of vectors (N, F), by singular values; the largest weight of an axis is positive."""
    centred = vectors - vectors.mean(0)
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] * np.sign(axes[np.arange(len(axes[:2])), np.abs(axes[:2]).argmax(1)])[:, None]
    points, total = centred @ axes.T, (values**2).sum()
    explained = values[:2] ** 2 / total if total > 0 else np.zeros(len(axes))
    missing = 2 - len(axes)
    return Pca(np.pad(points, ((0, 0), (0, missing))), np.pad(explained, (0, missing)))
