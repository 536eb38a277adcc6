"""Rates with Wilson intervals, the confusion matrix, and their table for a terminal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.verdicts import Verdicts

SCHEMA_VERSION = 1
RATES = {
    "adherence": "adherent",
    "legality": "legal",
    "completeness": "complete",
    "answer": "answer_correct",
    "joint": "joint",
    "canonical": "canonical",
}


def wilson(hits: int, n: int, z: float = 1.959964) -> dict[str, Any]:
    """A rate with its Wilson 95 % interval: {"rate", "low", "high"}; with n = 0 it is None in all of 0..1."""
    if n == 0:
        return {"rate": None, "low": 0.0, "high": 1.0}
    rate, shrink = hits / n, 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Rounding must not push the bounds past the rate itself at 0 and 1.
    return {"rate": rate, "low": max(0.0, min(rate, centre - half)), "high": min(1.0, max(rate, centre + half))}


def summarise(verdicts: Verdicts, fell_back: NDArray[np.bool_] | None = None) -> dict[str, Any]:
    """Rates per strategy asked for and overall, and the confusion matrix.

    fell_back: bool (M,), outputs that used an unsupported template cell, for forced paths. The confusion matrix counts,
    per strategy asked for, what was identified: one strategy, "none", or "ambiguous" when several fit at once.
    """
    names = verdicts.strategies
    groups = {name: verdicts.asked == code for code, name in enumerate(names)}
    single = np.array([bin(mask).count("1") for mask in range(256)])[verdicts.identified] == 1
    confusion = {}
    for name, group in groups.items():
        row = {
            other: int((group & single & (verdicts.identified == 1 << code)).sum()) for code, other in enumerate(names)
        }
        row["ambiguous"] = int((group & ~single & (verdicts.identified != 0)).sum())
        row["none"] = int((group & (verdicts.identified == 0)).sum())
        confusion[name] = row
    return {
        "strategies": {name: _rates(verdicts, group, fell_back) for name, group in groups.items()},
        "overall": _rates(verdicts, np.ones(len(verdicts), bool), fell_back),
        "confusion": confusion,
    }


def _rates(verdicts: Verdicts, group: NDArray[np.bool_], fell_back: NDArray[np.bool_] | None) -> dict[str, Any]:
    n = int(group.sum())
    rates: dict[str, Any] = {"n": n}
    for name, column in RATES.items():
        rates[name] = wilson(int(getattr(verdicts, column)[group].sum()), n)
    rates["unparsable"] = wilson(int((~verdicts.parsed)[group].sum()), n)
    if fell_back is not None:
        rates["fallback_rate"] = float(fell_back[group].mean()) if n else None
        supported = group & ~fell_back
        rates["supported"] = {
            "n": int(supported.sum()),
            "adherence": wilson(int(verdicts.adherent[supported].sum()), int(supported.sum())),
            "joint": wilson(int(verdicts.joint[supported].sum()), int(supported.sum())),
        }
    return rates


def percent(rate: dict[str, Any]) -> str:
    """Such as " 97.5 [94.9- 98.8]": a rate and its interval, in per cent, always equally wide."""
    value = "    -" if rate["rate"] is None else f"{100 * rate['rate']:5.1f}"
    return f"{value} [{100 * rate['low']:4.1f}-{100 * rate['high']:5.1f}]"


def table(summary: dict[str, Any]) -> str:
    """One protocol's rates as lines of text."""
    columns = ("adherence", "legality", "answer", "joint")
    head = f"{'strategy':<18}{'n':>6}  " + "  ".join(f"{name:^18}" for name in columns)
    lines = [head, "-" * len(head)]
    for name, rates in [*summary["strategies"].items(), ("all", summary["overall"])]:
        cells = "  ".join(f"{percent(rates[column]):>18}" for column in columns)
        lines.append(f"{name:<18}{rates['n']:>6}  {cells}")
    return "\n".join(lines)


def title(summary: dict[str, Any]) -> str:
    """A heading for `table`."""
    template = summary.get("template")
    path = f", {template['kind']} template" if template else ""
    return f"protocol {summary['protocol']}{path} ({summary['n']} test problems, 95 % Wilson intervals, per cent)"


def template_lines(summary: dict[str, Any]) -> list[str]:
    """What a reader of a forced-path table has to know about its template; nothing for other protocols."""
    template = summary.get("template")
    if not template:
        return []
    own = ", ".join(f"{name} {100 * rate:.0f}" for name, rate in template["agreement_with_own_paths"].items())
    fallback = 100 * summary["overall"]["fallback_rate"]
    return [
        f"own paths that agree with the template, per cent: {own}",
        f"both kinds of template agree in {100 * template['kinds_agree']:.0f} % of windows; "
        f"{fallback:.1f} % of outputs left the supported windows",
    ]


def comparison(summaries: list[dict[str, Any]], rate: str = "adherence") -> str:
    """One rate of several protocols side by side, a line per strategy."""
    names = [_short_name(summary) for summary in summaries]
    head = f"{rate:<18}" + "  ".join(f"{name:>20}" for name in names)
    lines = [head, "-" * len(head)]
    for strategy in [*summaries[0]["strategies"], "all"]:
        rates = [s["overall"] if strategy == "all" else s["strategies"][strategy] for s in summaries]
        lines.append(f"{strategy:<18}" + "  ".join(f"{percent(values[rate]):>20}" for values in rates))
    return "\n".join(lines)


def _short_name(summary: dict[str, Any]) -> str:
    template = summary.get("template")
    return summary["protocol"] + (f" {template['kind']}" if template else "")
