"""Whether a choice survives rounding: margins of the router, and flips between fp32 and bf16.

Let m be how far the winning score p + b lies above the next one. When no score moves by more than eta, the winner loses
at most eta and its rival gains at most eta, so m > 2 eta keeps the choice. That holds for one choice, not for a whole
network: a flip upstream moves the router's input itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.routes import NOWHERE, Routes

EDGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of buckets of margins


def margins(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """m of scores (..., L), L >= 2 -> (...)."""
    best = np.partition(scores, -2, axis=-1)[..., -2:]
    return best[..., 1] - best[..., 0]


def margin_buckets(
    margin: NDArray[np.floating], flipped: NDArray[np.bool_], eta: NDArray[np.floating], edges: tuple = EDGES
) -> list[dict[str, Any]]:
    """Choices (N,) sorted by their margin into buckets [low, high); what lies beyond the edges joins the last one.

    A bucket: {"low", "high", "n", "flips", "safe": choices with m > 2 eta, "safe_flips": flips among these}.
    """
    bucket = np.clip(np.searchsorted(edges, margin, side="right") - 1, 0, len(edges) - 2)
    safe = margin > 2 * eta

    def count(mask: NDArray[np.bool_]) -> list[int]:
        return np.bincount(bucket[mask], minlength=len(edges) - 1).tolist()

    columns = (edges[:-1], edges[1:], count(np.ones_like(safe)), count(flipped), count(safe), count(safe & flipped))
    names = ("low", "high", "n", "flips", "safe", "safe_flips")
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def flips(exact: Routes, rounded: Routes, bias: NDArray[np.floating]) -> dict[str, Any]:
    """The same sequences routed twice, in fp32 and in a shorter format: which choices differ, and what follows.

    bias: the selection bias, (L,). The prompt's window counts. {"n", "flips", "eta": largest difference of a score,
    "buckets": see `margin_buckets`, "by_depth": [{"n", "flips"}], "tokens": [without a flip, with one], each {"n":
    suffix tokens of such sequences, "changed": those behind which another token is the likeliest}}.
    """
    real = exact.ids != NOWHERE
    flipped = real & (exact.ids != rounded.ids)
    eta = np.abs(exact.probabilities - rounded.probabilities).max(-1)
    margin = margins(exact.probabilities + bias) if exact.blocks > 1 else np.ones(real.shape)
    behind = np.arange(exact.predicted.shape[1]) < exact.lengths[:, None] - exact.windows.prompt
    changed = behind & (exact.predicted != rounded.predicted)
    any_flip = flipped.any((1, 2))
    return {
        "n": int(real.sum()),
        "flips": int(flipped.sum()),
        "eta": float(eta.max(initial=0)),
        "buckets": margin_buckets(margin[real], flipped[real], eta[real]),
        "by_depth": [
            {"n": int(real[:, level].sum()), "flips": int(flipped[:, level].sum())} for level in range(exact.depth)
        ],
        "tokens": [
            {"n": int(behind[rows].sum()), "changed": int(changed[rows].sum())} for rows in (~any_flip, any_flip)
        ],
    }
