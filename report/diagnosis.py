"""Sections of a report on what the router does: paths, stability of choices, probes, training."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from lol_data.evaluators.diagnostics import POINTS
from lol_data.report import plots, tables
from lol_data.report.frame import Section, note
from lol_data.report.material import Material

KNOWN = "known traces"  # instead of "known"


def figure(svg: str, caption: str, wide: bool = False) -> str:
    """A plot with words beneath. wide: it scrolls where the page is narrow, instead of shrinking."""
    kind = "plot wide" if wide else "plot"
    return f'<figure><div class="{kind}">{svg}</div><figcaption>{escape(caption)}</figcaption></figure>\n'


def training_section(material: Material) -> Section:
    """The learning curve; of a Mixture-of-Depths also what it takes."""
    if not material.metrics:
        return Section("training", "Training", note("The run has no metrics."))
    tokens, html = material.metrics[-1].get("tokens", 0), ""
    model = material.about["config"]["model"]
    if model.get("router") == "fixed":
        html += note("Every token goes the same way through the layers: there is no router, and no path to force.")
    if model.get("field_readers") == "all":
        html += note("All layers read the strategy field as ordinary tokens.")
    caption = f"{material.metrics[-1]['step']:,} steps, {tokens:,} tokens."
    html += figure(plots.learning_curve(material.metrics), caption, wide=True)
    checked = [line for line in material.metrics if "validation_depths_taken" in line]
    if checked:
        last = checked[-1]
        caption = (
            f"Mixture-of-Depths on validation problems, step {last['step']:,}: {last['validation_taken']:.1%} of the "
            "tokens of a taking depth are computed. Outside of training a token is taken by what it says alone, which "
            f"is the choice of the training, the best of its whole sequence, in {last['validation_foretold']:.1%}."
        )
        html += figure(plots.taken_plot(last["validation_depths_taken"]), caption)
    return Section("training", "Training", html)


def path_section(material: Material, strategies: Sequence[str]) -> Section:
    """Reuse, occupancy, loads, agreement with the template, separation of the strategies."""
    found, arrays = material.diagnostics or {}, material.arrays
    names = {way: KNOWN if way == "known" else way for way in found["ways"]}
    ways = {names[way]: figures for way, figures in found["ways"].items()}
    bounds = found["ways"]["known"]["reuse"]["all"]["bounds"]
    html = note(
        f"Paths of {found['n']:,} test problems: those of the known traces, read with the field naming their strategy,",
        "and those of the model's own outputs under free routing. Only windows behind the prompt count; that of the",
        "prompt takes the same route for every problem. Neutral outputs go by the strategy that they follow, if one.",
    )
    reuse = (
        f"{found['depth']} applications of {found['blocks']} blocks: at most {bounds['distinct']} distinct ones, "
        f"at least {bounds['repeated']} repeated and {bounds['unused']} unused."
    )
    html += '<div class="plots">' + figure(plots.reuse_plot(ways), reuse)
    html += figure(plots.occupancy_plot(ways), "How many blocks one decoding step has to load, strategies mixed.")
    html += "</div>\n" + tables.reuse_table(ways, strategies) + "<h3>Which block, at which depth</h3>\n"
    for way, name in names.items():
        svg = plots.load_plot(arrays[f"{way}/loads"], strategies, f"blocks by depth, {name}")
        html += figure(svg, f"{name}: share of a depth's windows that take each block, per cent.", wide=True)
    html += "<h3>Own paths against the template</h3>\n"
    for way, name in names.items():
        cells = arrays[f"{way}/counts"], arrays[f"{way}/agreeing"]
        svg = plots.agreement_plot(*cells, strategies, f"agreement with the template, {name}")
        caption = f"{name}: share of windows that take the block of the template (selection), per cent. "
        html += figure(svg, caption + "Window 0 is the prompt; empty cells were never reached.", wide=True)
    html += '<h3>Do paths separate the strategies?</h3>\n<div class="pair">'
    for way, name in names.items():
        html += _separation(found["ways"][way]["pca"], name, way, arrays, strategies)
    return Section("paths", "Paths", html + "</div>\n")


def _separation(about: dict[str, Any], name: str, way: str, arrays: dict[str, Any], strategies: Sequence[str]) -> str:
    if not about["windows"]:
        return ""
    points = arrays[f"{way}/points"], arrays[f"{way}/point_strategy"]
    svg = plots.pca_plot(*points, about["explained"], strategies, f"paths by strategy, {name}")
    drawn = f", {POINTS:,} of them drawn" if about["windows"] > POINTS else ""
    shown = figure(svg, f"{name}: one-hot paths of {about['windows']:,} windows{drawn}; a larger mark is more of them.")
    distances = tables.distance_table(arrays[f"{way}/distances"], strategies)
    return f"<div>{shown}{note('Depths at which two paths differ, on average:')}{distances}</div>\n"


def stability_section(material: Material) -> Section:
    """Flips in bf16 by margin, order of neighbouring blocks, dilution of new evidence."""
    found = material.diagnostics or {}
    flips, order = found["flips"], found["order"]
    safe, wrong = (sum(bucket[name] for bucket in flips["buckets"]) for name in ("safe", "safe_flips"))
    quiet, hit = (_changed(tokens) for tokens in flips["tokens"])
    flipped = (
        f"bf16 flips {flips['flips']:,} of {flips['n']:,} choices. {safe:,} choices have a margin above twice what "
        f"their scores moved, and {wrong:,} of these flipped. The likeliest next token changes at {quiet} of positions "
        f"in sequences without a flip, at {hit} in those with one."
    )
    powers = ", ".join("–" if value is None else f"{value:.2f}" for value in order["exponent"])
    swapped = (
        "Two neighbouring blocks in the other order, on the same state, both under the modulation of depth l. What the "
        f"swap changes grows with the gates to the power of {powers} (by depth; 2 where blocks are linear)."
    )
    html = f'<div class="plots">{figure(plots.flips_plot(flips["buckets"]), flipped)}'
    if any(order["n"]):
        html += figure(plots.order_plot(order), swapped)
    html += "</div>\n<h3>How soon new evidence moves a choice</h3>\n"
    if not found["dilution"]:
        html += note("The traces are too short: no window opens behind a changed token.")
    else:
        html += note(
            "One token of a known trace is replaced by a later one of the same trace. A window that is open keeps its",
            "block, the next one may choose another.",
        )
        html += tables.dilution_table(found["dilution"])
    return Section("stability", "Rounding, order, dilution", html)


def _changed(tokens: dict[str, int]) -> str:
    return f"{100 * tokens['changed'] / tokens['n']:.2f} %" if tokens["n"] else "none"


def probe_section(material: Material) -> Section:
    """AUROC of every probe with its control."""
    found = material.diagnostics or {}
    html = note(
        "Ridge regression on route probabilities of all depths. Half of the problems train, the other half test; all",
        "sequences of a problem stay together. A bar: the same with the labels shuffled 99 times, from the mean up to",
        "the highest.",
    )
    captions = {"named": "The strategy field names the strategy.", "neutral": "Neutral field: only the trace can tell."}
    shown = (
        figure(plots.probe_plot(entries, f"probes, {field}"), captions[field])
        for field, entries in found["probes"].items()
    )
    return Section("probes", "Probes", html + f'<div class="plots">{"".join(shown)}</div>\n')
