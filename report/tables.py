"""Tables of a report, as HTML: rates with intervals, confusion and conflict matrices, interventions, diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.summary import FORMAT, shown_rates

RATES = (FORMAT, "adherence", "legality", "completeness", "answer", "joint")
Rate = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table that scrolls on its own where the page is narrow. head: texts. rows: HTML, a heading in front."""
    top = "".join(f'<th scope="col">{broken(text)}</th>' for text in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(_cell(value) for value in row[1:]) + "</tr>\n" for row in rows
    )
    inside = f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{inside}</table></div>\n'


def broken(text: str) -> str:
    """HTML of a text that may be broken behind underscores."""
    return escape(text).replace("_", "_<wbr>")


def _cell(value: str) -> str:
    return value if value.startswith("<td") else f"<td>{value}</td>"


def per_cent(value: float | None, digits: int = 1) -> str:
    """Such as "97.5"; a dash for None."""
    return "–" if value is None else f"{100 * value:.{digits}f}"


def rate_cell(rate: Rate) -> str:
    """A rate with its interval, in words and as a bar from 0 to 100 %."""
    low, high = 100 * rate["low"], 100 * rate["high"]
    if rate["rate"] is None:
        return '<td class="rate">–</td>'
    bar = f'<i style="left:{low:.1f}%;width:{high - low:.1f}%"></i><b style="left:{100 * rate["rate"]:.1f}%"></b>'
    return (
        f'<td class="rate"><strong>{per_cent(rate["rate"])}</strong> <small>{low:.1f}–{high:.1f}</small>'
        f'<span class="bar" aria-hidden="true">{bar}</span></td>'
    )


def shaded(text: str, share: float, title: str = "") -> str:
    """A cell in a colour as strong as a share from 0 to 1."""
    hint = f' title="{escape(title)}"' if title else ""
    strong = ' class="strong"' if share > 0.6 else ""
    return f'<td{strong}{hint} style="--share:{100 * share:.0f}%">{text}</td>'


def result_table(summary: dict[str, Any]) -> str:
    """One protocol's rates per strategy; what margins alone would say of the joint rate; fallbacks."""
    rates = [name for name in RATES if name in summary["overall"]]
    forced = summary["overall"].get("fallback_rate") is not None
    head = ["strategy", "n", *rates, "joint, from the margins alone", "unparsable"]
    head += ["left supported windows", "joint inside of them"] if forced else []
    rows = []
    for name, found in [*summary["strategies"].items(), ("all", summary["overall"])]:
        bounds = found.get("joint_bounds")
        row = [escape(name), f"{found['n']:,}", *(rate_cell(found[rate]) for rate in rates)]
        row.append(f"{per_cent(bounds['low'])} to {per_cent(bounds['high'])}" if bounds else "–")
        row.append(per_cent(found["unparsable"]["rate"]))
        if forced:
            row += [per_cent(found["fallback_rate"]), rate_cell(found["supported"]["joint"])]
        rows.append(row)
    return table(head, rows, "results")


def comparison_table(summaries: dict[str, dict[str, Any]], rate: str) -> str:
    """One rate of all protocols side by side."""
    strategies = list(next(iter(summaries.values()))["strategies"])
    rows = [
        [escape(name), *(rate_cell((each["strategies"][name] if name != "all" else each["overall"])[rate]) for each in
                         summaries.values())]
        for name in [*strategies, "all"]
    ]  # fmt: skip
    return table([rate, *summaries], rows, "results")


def confusion_table(summary: dict[str, Any]) -> str:
    """Asked for (rows) against identified (columns), shaded by share of the row; several and none stand apart."""
    confusion = summary["confusion"]
    columns = list(next(iter(confusion.values())))
    rows = []
    for asked, counts in confusion.items():
        n = sum(counts.values())
        cells = [
            shaded(f"{count:,}" if count else "", count / n if n else 0, f"{asked} → {name}: {count} of {n}")
            for name, count in counts.items()
        ]
        rows.append([escape(asked), *cells])
    return table(["asked for\u00a0↓ identified\u00a0→", *columns], rows, "matrix")


def conflict_table(summary: dict[str, Any]) -> str:
    """Field (rows) against forced path (columns): per cent that follow the path / the field, shaded by the path's."""
    paths = list(summary["strategies"])
    rows = []
    for named, row in summary["matrix"].items():
        cells = []
        for path in paths:
            if path not in row:
                cells.append('<td class="none"></td>')
                continue
            follows, keeps = row[path]["path"]["rate"], row[path]["field"]["rate"]
            hint = ", ".join(f"{name} {count}" for name, count in row[path]["identified"].items() if count)
            text = f"{per_cent(follows, 0)} <small>/ {per_cent(keeps, 0)}</small>"
            cells.append(shaded(text, follows, f"field {named}, path {path}, n = {row[path]['n']}: {hint}"))
        rows.append([escape(named), *cells])
    return table(["field\u00a0↓ path\u00a0→", *paths], rows, "matrix")


def intervention_table(summary: dict[str, Any]) -> str:
    """Every arm's rates, its paired difference from its reference, and where outputs and paths part."""
    shown = shown_rates(next(iter(summary["arms"].values()))["overall"])
    head = ["arm", *shown, "against", "Δ adherence", "Δ joint", "p", "same output"]
    head += ["first differing token", "paths part at"]
    rows, group = [], ""
    for name, arm in summary["arms"].items():
        label = escape(name)
        if arm.get("group", "") != group:
            group = arm["group"]
            label = f'<span class="group">{escape(group)}</span>{label}'
        row = [label, *(rate_cell(arm["overall"][rate]) for rate in shown)]
        reference = arm.get("reference")
        if not reference:
            rows.append([*row, *[""] * 7])
            continue
        adherence, joint = (arm["paired"][rate]["overall"] for rate in ("adherence", "joint"))
        parts = arm["divergence"]
        token, places = parts["first_differing_token"], parts["first_differing_block"]
        row += [escape(reference), _difference(adherence), _difference(joint), _p(adherence.get("p_holm"))]
        row += [per_cent(parts["same_output"], 0), f"{token[1]:.0f}" if token else "–"]
        row.append(f"window {places[0]['window']}, depth {places[0]['depth']}" if places else "–")
        rows.append(row)
    return table(head, rows, "results interventions")


def _difference(paired: dict[str, Any]) -> str:
    change = paired["difference"]
    if change["rate"] is None:
        return "–"
    sure = " class='sure'" if change["low"] > 0 or change["high"] < 0 else ""
    rate, low, high = (100 * change[name] for name in ("rate", "low", "high"))
    return f"<td{sure}>{rate:+.1f} <small>{low:+.1f} to {high:+.1f}</small></td>"


def _p(value: float | None) -> str:
    return "–" if value is None else "&lt; 0.001" if value < 0.001 else f"{value:.3f}"


def distance_table(distances: NDArray[np.floating], strategies: Sequence[str]) -> str:
    """At how many depths paths of two strategies differ on average: half of equation (15)."""
    half = distances / 2
    top = max(float(np.nanmax(half, initial=0)), 1e-9)
    rows = [
        [escape(name), *("<td>–</td>" if np.isnan(value) else shaded(f"{value:.2f}", value / top) for value in row)]
        for name, row in zip(strategies, half.tolist(), strict=True)
    ]
    return table(["", *strategies], rows, "matrix")


def dilution_table(lines: list[dict[str, Any]]) -> str:
    """How soon a changed token moves a choice, by its place in its window and by the windows before it."""
    rows = [
        [
            f"{line['prefix']}",
            line["place"],
            f"{line['weight']:.3f}",
            f"{line['n']:,}",
            shaded(per_cent(line["moved"]), line["moved"]),
            "–" if line["delay"] is None else f"{line['delay']:.1f}",
            "–" if line["choices"] is None else f"{line['choices']:.2f}",
            "–" if line["depths"] is None else f"{line['depths']:.2f}",
            f"{line['shift']:.4f}",
        ]
        for line in lines
    ]
    head = ["windows before", "token of its window", "weight of that window", "n", "moved a choice, %"]
    head += ["tokens until then", "choices moved", "depths", "shift of p"]
    return table(head, rows)


def reuse_table(ways: dict[str, dict[str, Any]], strategies: Sequence[str]) -> str:
    """Mean number of distinct blocks per path, by way and strategy."""
    names = ["all", *(str(code) for code in range(len(strategies)))]
    rows = [
        [escape(way), *("–" if (mean := found["reuse"][name]["mean"]) is None else f"{mean:.2f}" for name in names)]
        for way, found in ways.items()
    ]
    return table(["distinct blocks", "all", *strategies], rows)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of names and texts."""
    return "<dl>" + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs) + "</dl>"
