"""Rates with Wilson intervals, the confusion matrix, and their table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.intervals import clustered, margin_bounds, wilson
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
MARGINS = ("adherence", "legality", "completeness", "answer")  # `joint` is all of these at once
APART = ("adherence", "legality", "answer", "joint")
FORMAT = "format"  # a rate, and the samples' column behind it, where strategies differ in look


@dataclass(frozen=True)
class _Counted:
    """Outputs to be counted. weight: how many each stands for, problems: that each is about, formats: the
    strategy that each is written like, int (M,) each."""

    verdicts: Verdicts
    weight: NDArray[np.integer] | None
    problems: NDArray[np.integer] | None
    formats: NDArray[np.integer] | None = None

    def count(self, mask: NDArray[np.bool_]) -> int:
        """Outputs of a mask, bool (M,)."""
        return int(mask.sum()) if self.weight is None else int(self.weight[mask].sum())

    def rate(self, hits: NDArray[np.bool_], group: NDArray[np.bool_]) -> dict[str, Any]:
        """Of the hits in a group, with its interval."""
        if self.problems is not None:
            return clustered(hits[group], self.problems[group])
        return wilson(self.count(hits & group), self.count(group))


def summarise(
    verdicts: Verdicts,
    fell_back: NDArray[np.bool_] | None = None,
    problems: NDArray[np.integer] | None = None,
    weight: NDArray[np.integer] | None = None,
    formats: NDArray[np.integer] | None = None,
) -> dict[str, Any]:
    """Rates per strategy asked for and overall, and the confusion matrix.

    fell_back: bool (M,), outputs that used an unsupported template cell, for forced paths: rates then come apart for
    those that stayed in supported cells and those that did not. problems: int (M,), the problem of each output, where
    one may have several: see `clustered`. weight: int (M,), how many outputs each stands for. formats: int (M,), the
    strategy that each is written like, any other number for none; there is a rate `format` then. The confusion matrix
    counts, per strategy asked for, what was identified: one strategy, "none", or "ambiguous" when several fit at once.
    """
    groups = {name: verdicts.asked == code for code, name in enumerate(verdicts.strategies)}
    counted = _Counted(verdicts, weight, problems, formats)
    return {
        "strategies": {name: _rates(counted, group, fell_back) for name, group in groups.items()},
        "overall": _rates(counted, np.ones(len(verdicts), bool), fell_back),
        "confusion": {name: _identified(counted, group) for name, group in groups.items()},
    }


def _identified(counted: _Counted, group: NDArray[np.bool_]) -> dict[str, int]:
    """What was identified in a group of outputs, bool (M,): one strategy, "ambiguous" or "none"."""
    identified, strategies = counted.verdicts.identified, counted.verdicts.strategies
    counts = {name: counted.count(group & (identified == 1 << code)) for code, name in enumerate(strategies)}
    counts["ambiguous"] = counted.count(group & (np.bitwise_count(identified) > 1))
    counts["none"] = counted.count(group & (identified == 0))
    return counts


def conflict_matrix(verdicts: Verdicts, field: NDArray[np.integer]) -> dict[str, dict[str, Any]]:
    """What outputs follow when the field, int (M,), names one strategy and the path (`asked`) is another's.

    {field: {path: {"n", "path", "field", "identified"}}}: the rates of outputs that follow the path's strategy and the
    field's, and how many were identified as each strategy, "ambiguous" or "none". An ambiguous output may follow both.
    """
    counted = _Counted(verdicts, None, None)
    matrix: dict[str, dict[str, Any]] = {}
    for named, name in enumerate(verdicts.strategies):
        for laid, path in enumerate(verdicts.strategies):
            group = (field == named) & (verdicts.asked == laid)
            if n := int(group.sum()):
                followed = [int((verdicts.identified[group] >> code & 1).sum()) for code in (laid, named)]
                matrix.setdefault(name, {})[path] = {
                    "n": n,
                    "path": wilson(followed[0], n),
                    "field": wilson(followed[1], n),
                    "identified": _identified(counted, group),
                }
    return matrix


def _rates(counted: _Counted, group: NDArray[np.bool_], fell_back: NDArray[np.bool_] | None) -> dict[str, Any]:
    rates = _plain_rates(counted, group, RATES)
    n = rates["n"]
    if counted.formats is not None:
        rates[FORMAT] = counted.rate(counted.formats == counted.verdicts.asked, group)
    rates["unparsable"] = counted.rate(~counted.verdicts.parsed, group)
    if n:  # what a reader of the single rates could conclude about the joint one
        low, high = margin_bounds(*(rates[name]["rate"] for name in MARGINS))
        rates["joint_bounds"] = {"low": low, "high": high}
    if fell_back is not None:
        rates["fallback_rate"] = float(fell_back[group].mean()) if n else None
        rates["supported"] = _plain_rates(counted, group & ~fell_back, APART)
        rates["fell_back"] = _plain_rates(counted, group & fell_back, APART)
    return rates


def _plain_rates(counted: _Counted, group: NDArray[np.bool_], names: Iterable[str]) -> dict[str, Any]:
    rates = {name: counted.rate(getattr(counted.verdicts, RATES[name]), group) for name in names}
    return {"n": counted.count(group), **rates}


def shown_rates(rates: dict[str, Any]) -> tuple[str, ...]:
    """The rates that a table shows, `format` among them where there is one."""
    return (FORMAT, *APART) if FORMAT in rates else APART


def percent(rate: dict[str, Any]) -> str:
    """Such as " 97.5 [94.9- 98.8]": a rate and its interval, in per cent, always equally wide."""
    value = "    -" if rate["rate"] is None else f"{100 * rate['rate']:5.1f}"
    return f"{value} [{100 * rate['low']:4.1f}-{100 * rate['high']:5.1f}]"


def table(summary: dict[str, Any]) -> str:
    """One protocol's rates as lines of text."""
    columns = shown_rates(summary["overall"])
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
    overall = summary["overall"]
    fallback = 100 * overall["fallback_rate"]
    lines = [
        f"own paths that agree with the template, per cent: {own}",
        f"both kinds of template agree in {100 * template['kinds_agree']:.0f} % of windows; "
        f"{fallback:.1f} % of outputs left the supported windows",
    ]
    if 0 < fallback < 100:
        inside, outside = (percent(overall[name]["joint"]).strip() for name in ("supported", "fell_back"))
        lines.append(f"joint rate inside the supported windows {inside}, of outputs that left them {outside}")
    return lines


def conflict_table(summary: dict[str, Any]) -> str:
    """The conflict matrix as lines of text: per cent that follow the path / the field; nothing for other protocols."""
    matrix = summary.get("matrix")
    if not matrix:
        return ""
    paths = list(summary["strategies"])
    head = f"{'field':<18}" + "  ".join(f"{'path ' + name[:11]:>16}" for name in paths)
    lines = ["per cent of outputs that follow the path / the field", head, "-" * len(head)]
    for named, row in matrix.items():
        cells = [
            f"{100 * row[path]['path']['rate']:.1f} / {100 * row[path]['field']['rate']:.1f}" if path in row else ""
            for path in paths
        ]
        lines.append(f"{named:<18}" + "  ".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


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
