"""Decoding the arms of an intervention, and what they say against each other: paired tests, places of divergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.evaluators.evaluate import about_template, judge
from lol_data.evaluators.intervals import holm, paired
from lol_data.evaluators.interventions import GROUPS, make_arms
from lol_data.evaluators.parts import Parts
from lol_data.evaluators.protocols import NO_BLOCK, Outputs, decode_requests, window_starts
from lol_data.evaluators.summary import APART, RATES, SCHEMA_VERSION, shown_rates, summarise
from lol_data.evaluators.templates import KINDS, PathStatistics
from lol_data.evaluators.verdicts import Verdicts
from lol_data.model.transformer import Transformer
from lol_data.model.windows import Windows
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.tasks import Problems, layout_of

FIELDS = ("neutral", "prompted")


def intervene(
    model: Transformer,
    problems: Problems,
    statistics: PathStatistics,
    kind: str = KINDS[0],
    groups: Sequence[str] = tuple(GROUPS),
    field: str = FIELDS[0],
    seed: int = 0,
    batch: int = 500,
    progress: Callable[[int, int], None] = lambda done, total: None,
    parts_of: Callable[[str], Parts | None] = lambda arm: None,
) -> tuple[dict[str, Any], pa.Table]:
    """Decode test problems under every arm; returns the summary and a row per (arm, problem, strategy).

    statistics: routes observed on validation problems. field: what it holds in all arms but the renamed ones. parts_of:
    where an arm's finished batches are kept. Raises UsageError for a group of arms that is none, RefusedError for a
    problem that the routes were observed on.
    """
    layout = layout_of(problems, model.config.field)
    statistics.refuse_scores_on(problems, layout)
    arms = make_arms(statistics, kind, groups, seed)
    template = statistics.template(kind)
    strategies = len(layout.strategies)
    total, done = len(arms) * len(problems) * strategies, 0

    def tick(outputs: int) -> None:
        nonlocal done
        done += outputs
        progress(done, total)

    known: dict[str, tuple[Outputs, Verdicts]] = {}
    summary: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **layout.about,
        "protocol": "interventions",
        "field": field,
        "seed": seed,
        "decoding": {"limit": layout.longest_suffix},
        "template": about_template(template, statistics, layout.strategies),
        "arms": {},
    }
    tables = []
    for arm in arms:
        requests = arm.requests(problems.id, strategies, field == "prompted")
        outputs = decode_requests(model, problems, requests, arm.paths, batch, tick, parts_of(arm.name))
        verdicts, formats, table = judge(layout, problems, outputs)
        known[arm.name] = outputs, verdicts
        fell_back = template.fell_back(outputs.asked, outputs.last_windows) if arm.paths else None
        about: dict[str, Any] = {"group": arm.group, "reference": arm.reference or None}
        about.update(summarise(verdicts, fell_back, outputs.rows, formats=formats))
        if arm.renamed:
            named = verdicts.identified >> outputs.field.clip(NEUTRAL_FIELD + 1).astype(np.uint8) & 1
            about["follows_field"] = float(named.mean()) if len(named) else None
        places = np.full((len(outputs.tokens), 3), -1)
        if arm.reference:
            reference, before = known[arm.reference]
            about["paired"] = paired_rates(before, verdicts, outputs.rows)
            places = divergence(reference, outputs, model.windows)
            about["divergence"] = _summary_of(places, reference, outputs)
        for name, column in zip(("differs_at_token", "differs_in_window", "differs_at_depth"), places.T, strict=True):
            table = table.append_column(name, pa.array(column, mask=column < 0))
        fallen = pa.nulls(len(table), pa.bool_()) if fell_back is None else pa.array(fell_back)
        table = table.append_column("fell_back", fallen)
        tables.append(table.add_column(0, "arm", pa.array([arm.name] * len(table)).dictionary_encode()))
        summary["arms"][arm.name] = about
    _adjust(summary["arms"])
    return summary, pa.concat_tables(tables).unify_dictionaries()


def paired_rates(first: Verdicts, second: Verdicts, problems: NDArray[np.integer]) -> dict[str, Any]:
    """The paired comparison of two sets of verdicts on the same samples, per rate: overall and per strategy.

    problems: int (M,), the problem of each sample. {rate: {"overall": ..., strategy: ...}}, see `intervals.paired`.
    """
    result: dict[str, Any] = {}
    for rate in APART:
        one, two = getattr(first, RATES[rate]), getattr(second, RATES[rate])
        result[rate] = {"overall": paired(one, two, problems)}
        for code, name in enumerate(first.strategies):
            group = first.asked == code
            result[rate][name] = paired(one[group], two[group], problems[group])
    return result


def divergence(first: Outputs, second: Outputs, windows: Windows) -> NDArray[np.int64]:
    """Where outputs and paths of the same requests part, int64 (M, 3), -1 for nowhere.

    The first output token that differs; and the window and depth of the first block that differs, in the order of
    computation, as far as both outputs go. Gates may differ before, and after the tokens part blocks may follow them.
    """
    count, depth = len(first.tokens), first.blocks.shape[1]
    places = np.full((count, 3), -1)
    for k, (one, two) in enumerate(zip(first.tokens, second.tokens, strict=True)):
        shorter = min(len(one), len(two))
        differing = np.flatnonzero(one[:shorter] != two[:shorter])
        if len(differing):
            places[k, 0] = differing[0]
        elif len(one) != len(two):
            places[k, 0] = shorter
    known = min(first.blocks.shape[2], second.blocks.shape[2])
    order = [(k, level) for _, level, k in window_starts(windows, first.limit, depth) if k <= known]
    if count and order:
        window, level = np.array(order).T
        one, two = (outputs.blocks[:, level - 1, window - 1] for outputs in (first, second))
        differs = (one != two) & (one != NO_BLOCK) & (two != NO_BLOCK)
        at, found = differs.argmax(1), differs.any(1)
        places[found, 1], places[found, 2] = window[at[found]], level[at[found]]
    return places


def _summary_of(places: NDArray[np.int64], first: Outputs, second: Outputs) -> dict[str, Any]:
    tokens, window, _ = places.T
    apart = tokens[tokens >= 0]
    cells, counts = np.unique(places[window >= 0, 1:], axis=0, return_counts=True)
    return {
        "same_output": float((tokens < 0).mean()) if len(tokens) else None,
        "same_blocks": float((window < 0).mean()) if len(window) else None,
        "first_differing_token": np.quantile(apart, [0.25, 0.5, 0.75]).tolist() if len(apart) else None,
        "first_differing_block": [
            {"window": int(k), "depth": int(level), "outputs": int(n)}
            for (k, level), n in sorted(zip(cells.tolist(), counts, strict=True), key=lambda item: -item[1])
        ],
    }


def _adjust(arms: dict[str, Any]) -> None:
    """Add Holm's p-value over all arms to the overall comparison of each rate."""
    for rate in APART:
        overall = [about["paired"][rate]["overall"] for about in arms.values() if "paired" in about]
        for comparison, p in zip(overall, holm([each["p_mid"] for each in overall]), strict=True):
            comparison["p_holm"] = p


def intervention_table(summary: dict[str, Any]) -> str:
    """Every arm's rates, its difference from its reference, and where it parts from it, as lines of text."""
    shown = shown_rates(next(iter(summary["arms"].values()))["overall"])
    head = (
        f"{'arm':<20}" + "".join(f"{name:>11}" for name in shown) + f"  {'against':<9}{'adherence':^22}"
        f"{'joint':^22}{'p (Holm)':>9}{'same':>6}{'token':>7}  place"
    )
    lines = [head, "-" * len(head)]
    for name, about in summary["arms"].items():
        rates = "".join(f"{100 * about['overall'][rate]['rate']:>11.1f}" for rate in shown)
        line = f"{name:<20}{rates}"
        if about["reference"]:
            differences = [about["paired"][rate]["overall"] for rate in ("adherence", "joint")]
            intervals = "".join(f"{_signed(each['difference']):>22}" for each in differences)
            parts = about["divergence"]
            token = f"{parts['first_differing_token'][1]:.0f}" if parts["first_differing_token"] else "-"
            place = parts["first_differing_block"][:1]
            where = f"w{place[0]['window']} d{place[0]['depth']}" if place else "-"
            line += f"  {about['reference']:<9}{intervals}{differences[0]['p_holm']:>9.2g}"
            line += f"{100 * parts['same_output']:>6.0f}{token:>7}  {where}"
        lines.append(line)
    note = (
        "per cent; differences with 95 % intervals, paired; p: McNemar's mid-p on adherence, Holm over all arms; same: "
        "equal outputs;\ntoken: median of the first one that differs; place: window and depth where most paths part"
    )
    return "\n".join([*lines, note])


def _signed(difference: dict[str, Any]) -> str:
    return f"{100 * difference['rate']:+6.1f} [{100 * difference['low']:+5.1f} {100 * difference['high']:+5.1f}]"
