"""What route probabilities tell: ridge regression of the strategy and of the problem, judged on other problems.

Half of the problems train a probe and the other half test it; all sequences of a problem stay on one side. Every figure
has its control: the same with the labels shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.routes import NOWHERE, Routes
from lol_data.sudokus import TracedSudokus
from lol_data.tokenization.tasks import Traced

PENALTY = 1.0  # of standardised features, per row
SHUFFLES = 99


def auroc(scores: NDArray[np.floating], labels: NDArray[np.bool_]) -> float | None:
    """The chance that a positive outscores a negative, ties counting half; None without either of them."""
    positives = int(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def precision(prevalence: float, recall: float, false_positive_rate: float) -> float:
    """Share of the flagged that are positive: what a rate of positives makes of a threshold's two rates."""
    flagged = prevalence * recall
    return flagged / (flagged + (1 - prevalence) * false_positive_rate)


def ridge(
    train: NDArray[np.floating], targets: NDArray[np.floating], test: NDArray[np.floating], penalty: float = PENALTY
) -> NDArray[np.float64]:
    """Predictions (M, C) for test (M, F) of ridge regressions of targets (N, C) on train (N, F), in closed form.

    Features are centred and scaled, targets centred, by the training rows; minimised is the mean squared error plus
    penalty times the squared weights.
    """
    mean, scale = train.mean(0), train.std(0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    x, y = (train - mean) / scale, targets - targets.mean(0)
    weights = np.linalg.solve(x.T @ x / len(x) + penalty * np.eye(x.shape[1]), x.T @ y / len(x))
    return (test - mean) / scale @ weights + targets.mean(0)


def probe(
    features: NDArray[np.floating],
    labels: NDArray[np.bool_],
    problems: NDArray[np.integer],
    shuffles: int = SHUFFLES,
    seed: int = 0,
) -> dict[str, Any]:
    """AUROC of one label, bool (N,), from features (N, F), on the problems, int (N,), that did not train the probe.

    A label that all sequences of a problem share is shuffled among problems, any other among sequences.
    {"n", "positives", "auroc", "shuffled": {"mean", "max", "runs"}}; the first two are of the test half.
    """
    rng = np.random.default_rng(seed)
    names, which = np.unique(problems, return_inverse=True)
    half = rng.permutation(len(names)) < len(names) // 2
    train = half[which]
    sums, sizes = np.bincount(which, labels, len(names)), np.bincount(which, minlength=len(names))
    shared = bool(np.isin(sums / sizes, (0.0, 1.0)).all())
    if shared:
        of_problem = sums > 0
        columns = [labels, *(of_problem[rng.permutation(len(names))][which] for _ in range(shuffles))]
    else:
        columns = [labels, *(rng.permutation(labels) for _ in range(shuffles))]
    targets = np.stack(columns, 1)
    # Equal features give predictions that are equal but for the last digits, which would break ties at random.
    predicted = ridge(features[train], targets[train].astype(np.float64), features[~train]).round(9)
    found = [auroc(scores, truth) for scores, truth in zip(predicted.T, targets[~train].T, strict=True)]
    control = [value for value in found[1:] if value is not None]
    return {
        "n": int((~train).sum()),
        "positives": int(labels[~train].sum()),
        "auroc": found[0],
        "shuffled": {
            "mean": float(np.mean(control)) if control else None,
            "max": max(control, default=None),
            "runs": len(control),
        },
    }


def route_features(routes: Routes) -> dict[str, NDArray[np.float64]]:
    """Probabilities at all depths, (M, D L), in two forms: of the first window behind the prompt, which is chosen
    before any step is known, and the mean over all windows behind the prompt."""
    real = (routes.ids[:, :, 1:] != NOWHERE)[..., None]
    behind = routes.probabilities[:, :, 1:].astype(np.float64)
    pooled = (behind * real).sum(2) / np.maximum(real.sum(2), 1)
    return {"first window": behind[:, :, 0].reshape(len(behind), -1), "all windows": pooled.reshape(len(behind), -1)}


def properties(traced: Traced) -> dict[str, NDArray[np.int64]]:
    """Numbers that describe a problem, each (B,)."""
    if isinstance(traced, TracedSudokus):
        tries = traced.traces["backtracking"].lengths
        return {"clues": traced.sudokus.clues.astype(np.int64), "backtracking symbols": tries}
    mazes = traced.mazes
    ways = np.bitwise_count(mazes.openings).astype(np.int64)
    (start_y, start_x), (goal_y, goal_x) = (
        np.divmod(cell.astype(np.int64), mazes.size) for cell in (mazes.start, mazes.goal)
    )
    return {
        "answer length": traced.answer.lengths,
        "dead ends": (ways == 1).sum(1),
        "junctions": (ways > 2).sum(1),
        "distance of start and goal": np.abs(start_y - goal_y) + np.abs(start_x - goal_x),
    }


def probe_all(
    routes: Routes,
    strategies: NDArray[np.integer],
    names: tuple[str, ...],
    problems: NDArray[np.integer],
    traced: Traced,
) -> list[dict[str, Any]]:
    """Probes of every strategy against the others, and of every property above its median against the rest.

    strategies, problems: int (M,), the strategy of each sequence and its row in `traced`.
    """
    labels = {f"strategy {name}": strategies == code for code, name in enumerate(names)}
    for name, values in properties(traced).items():
        labels[f"{name} > {np.median(values):g}"] = (values > np.median(values))[problems]
    return [
        {"label": label, "features": form, **probe(features, truth, problems)}
        for form, features in route_features(routes).items()
        for label, truth in labels.items()
        if truth.any() and not truth.all()
    ]
