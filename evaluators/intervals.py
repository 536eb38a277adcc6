"""Rates, their intervals, and paired comparisons: what may be concluded from counts of yes and no."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z = 1.959964  # two-sided 95 %


def wilson(hits: int, n: int, z: float = Z) -> dict[str, Any]:
    """A rate with its Wilson 95 % interval: {"rate", "low", "high"}; with n = 0 it is None in all of 0..1."""
    return _interval(hits / n if n else None, n, z)


def clustered(hits: NDArray[np.bool_], problems: NDArray[np.integer]) -> dict[str, Any]:
    """The same for hits, bool (M,), of which a problem, int (M,), may have several: outputs on one resemble each other.

    Wilson's interval for as many outputs as these are worth: M over the design effect, which is the variance of the
    rate over problems against that of M independent outputs, and at least 1. Where all hit or none does, that cannot
    be seen, and problems are counted.
    """
    n = len(hits)
    if n == 0:
        return wilson(0, 0)
    _, index = np.unique(problems, return_inverse=True)
    count = int(index.max()) + 1
    rate = float(hits.mean())
    if count == n:
        return wilson(int(hits.sum()), n)
    if rate in (0, 1) or count == 1:
        return _interval(rate, count)
    residues = np.bincount(index.ravel(), weights=hits - rate)
    effect = float((residues**2).sum()) / n * count / (count - 1) / (rate * (1 - rate))
    return _interval(rate, n / max(1.0, effect))


def _interval(rate: float | None, n: float, z: float = Z) -> dict[str, Any]:
    if rate is None:
        return {"rate": None, "low": 0.0, "high": 1.0}
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Rounding must not push the bounds past the rate itself at 0 and 1.
    return {"rate": rate, "low": max(0.0, min(rate, centre - half)), "high": min(1.0, max(rate, centre + half))}


def margin_bounds(*rates: float) -> tuple[float, float]:
    """The least and the highest share in which several things hold at once, when only the share of each is known."""
    return max(0.0, 1 - math.fsum(1 - rate for rate in rates)), min(rates)


def mcnemar(won: int, lost: int) -> tuple[float, float]:
    """Two-sided p-values of McNemar's test, exact and mid-p, from the counts of pairs that differ.

    Under the hypothesis that neither side is better, a pair that differs is as likely won as lost.
    """
    pairs, fewer = won + lost, min(won, lost)
    term = tail = 1  # binomial coefficients, in whole numbers: no rounding, however many pairs
    for k in range(fewer):
        term = term * (pairs - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / 2**pairs), (2 * tail - term) / 2**pairs


def paired(first: NDArray[np.bool_], second: NDArray[np.bool_], problems: NDArray[np.integer]) -> dict[str, Any]:
    """Whether the second of two verdicts on the same samples is better: bool (M,) each, and the sample's problem, (M,).

    Outputs on one problem resemble each other, so problems are what is counted. Returns

        first, second     each side's rate with its interval, see `clustered`
        difference        {"rate", "low", "high"}: second minus first, 95 % by Bonett and Price's adjusted interval (one
                          problem fully won and one fully lost are added), a problem counting by its mean
        won, lost         problems in which the second side has more hits than the first, and fewer
        p_exact, p_mid    McNemar's test on these
    """
    n = len(problems)
    result: dict[str, Any] = {"n": n, "first": clustered(first, problems), "second": clustered(second, problems)}
    gained = second.astype(np.int64) - first.astype(np.int64)
    _, index, samples = np.unique(problems, return_inverse=True, return_counts=True)
    net = np.bincount(index.ravel(), weights=gained, minlength=len(samples))
    won, lost = int((net > 0).sum()), int((net < 0).sum())
    result["difference"] = _difference(net / samples, gained.mean() if n else None)
    p_exact, p_mid = mcnemar(won, lost)
    return {**result, "won": won, "lost": lost, "p_exact": p_exact, "p_mid": p_mid}


def _difference(values: NDArray[np.float64], rate: float | None) -> dict[str, Any]:
    if rate is None:
        return {"rate": None, "low": -1.0, "high": 1.0}
    n = len(values) + 2
    centre = values.sum() / n
    half = Z * math.sqrt(((values**2).sum() + 2) / n - centre**2) / math.sqrt(n)
    return {"rate": float(rate), "low": max(-1.0, float(centre - half)), "high": min(1.0, float(centre + half))}


def holm(p_values: list[float]) -> list[float]:
    """Holm's adjustment of p-values that are looked at together, in their order."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
