"""Sections of a report on what was decoded: rates, confusion, field against path, interventions."""

from __future__ import annotations

from html import escape
from typing import Any

from lol_data.evaluators.summary import FORMAT
from lol_data.report import tables
from lol_data.report.frame import Section, note
from lol_data.report.material import Material
from lol_data.views.sudoku_picture import plural


def result_section(material: Material) -> Section:
    """Rates of all protocols side by side, then one by one."""
    summaries = {result.name: result.summary for result in material.results}
    strategies = len(next(iter(summaries.values()))["strategies"])
    looks = [FORMAT] if all(FORMAT in each["overall"] for each in summaries.values()) else []
    says = [
        "Per cent with 95 % Wilson intervals; every output is decoded greedily and judged by the rules alone.",
        f"Adherent: it follows the strategy asked for, by chance one in {strategies}.",
        "Joint: adherent, legal, complete, and the right answer at once.",
    ]
    if looks:
        says.append(
            "Format: its steps are written like those of the strategy asked for, whether its rules allow them or not."
        )
    html = note(*says)
    if len(summaries) > 1:
        both = (tables.comparison_table(summaries, rate) for rate in (*looks, "adherence", "joint"))
        html += f'<div class="pair rates">{"".join(f"<div>{each}</div>" for each in both)}</div>\n'
    for name, summary in summaries.items():
        html += f"<h3>{escape(name)} {_n(summary)}</h3>\n" + tables.result_table(summary) + _template_note(summary)
    return Section("results", "Results", html)


def _n(summary: dict[str, Any]) -> str:
    return f"<small>n = {summary['n']:,} problems</small>" if isinstance(summary.get("n"), int) else ""


def _template_note(summary: dict[str, Any]) -> str:
    template, cut = summary.get("template"), summary.get("decoding", {}).get("cut", 0)
    said = [f"Cut at the longest length there is: {plural(cut, 'output')}."] if cut else []
    if template:
        own = ", ".join(f"{escape(k)} {100 * v:.0f}" for k, v in template["agreement_with_own_paths"].items())
        said.append(f"Own paths that agree with the template, per cent of validation windows: {own}.")
        said.append(f"Both kinds of template name the same block in {100 * template['kinds_agree']:.0f} % of windows.")
    return note(*said) if said else ""


def confusion_section(material: Material) -> Section:
    """Asked for against identified, a matrix a protocol."""
    html = note(
        "Which strategy an output follows, by the rules. <em>ambiguous</em>: it obeys several at once;",
        "<em>none</em>: it can be told for no single one.",
    )
    matrices = (
        f"<div><h3>{escape(result.name)}</h3>\n{tables.confusion_table(result.summary)}</div>\n"
        for result in material.results
    )
    return Section("confusion", "Confusion", html + f'<div class="pair">{"".join(matrices)}</div>\n')


def conflict_section(material: Material) -> Section | None:
    """The conflict matrix, where there is one."""
    found = [result for result in material.results if "matrix" in result.summary]
    if not found:
        return None
    html = note(
        "The strategy field names one strategy, the forced blocks are those of another's path; gates are the router's",
        "own. Per cent of outputs that follow the path, and behind the stroke the field; point at a cell for counts.",
    )
    html += "".join(f"<h3>{escape(each.name)}</h3>\n{tables.conflict_table(each.summary)}" for each in found)
    return Section("conflict", "Field against path", html)


def intervention_section(material: Material) -> Section | None:
    """The arms of interventions, where there are any."""
    found = {name: summary for name, summary in material.interventions.items() if "arms" in summary}
    if not found:
        return None
    html = note(
        "Equal problems, decoded with a part of their path laid down from outside. Δ: percentage points against the",
        "reference arm, paired by problem, bold where the 95 % interval leaves out 0; p: McNemar's on adherence, by",
        "Holm over all arms; the first differing token is a median.",
    )
    for name, summary in found.items():
        html += f"<h3>{escape(name)} {_n(summary)}</h3>\n" + tables.intervention_table(summary)
    return Section("interventions", "Interventions", html)
