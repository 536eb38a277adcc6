"""The page: a head that says what was run, sections, and the browser of single outputs."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from lol_data.report import tables
from lol_data.report.diagnosis import path_section, probe_section, stability_section, training_section
from lol_data.report.frame import Section, browser_section, code_hash, render
from lol_data.report.material import Material
from lol_data.report.results import conflict_section, confusion_section, intervention_section, result_section
from lol_data.report.samples import browser_data, unknown_problems
from lol_data.tokenization.tasks import Traced, layout_of
from lol_data.training.config import RunConfig


def report_page(material: Material, test: Traced) -> str:
    """The whole page, below 5 MB. test: the problems of the results.

    Raises LolDataError where matplotlib is missing.
    """
    strategies = tuple(material.results[0].summary["strategies"])
    sections: list[Section | None] = [
        result_section(material),
        confusion_section(material),
        conflict_section(material),
        intervention_section(material),
        _sample_section(material, test),
    ]
    if material.diagnostics:
        sections += [path_section(material, strategies), stability_section(material), probe_section(material)]
    sections.append(training_section(material))
    config = RunConfig.from_json(material.about["config"])
    layout = layout_of(test, config.strategy_field)
    model = config.model_config(layout)
    return render(
        f"Report on {material.run.resolve().name}",
        _lead(material),
        _head(material),
        sections,
        lambda worst: browser_data(material.results, material.arms, test, strategies, model, worst),
    )


def _lead(material: Material) -> str:
    summary = material.results[0].summary
    kind = f"{summary['size']}x{summary['size']} mazes" if "size" in summary else "sudokus"
    names = ", ".join(result.name for result in material.results)
    return f"{kind}, {summary.get('n', '?')} test problems under {len(summary['strategies'])} strategies: {names}."


def _head(material: Material) -> str:
    about, summary = material.about, material.results[0].summary
    last = material.metrics[-1] if material.metrics else {}
    pairs = [
        ("checkpoint", str(summary.get("checkpoint", "–"))),
        ("weights, sha256", _weights(material.run, summary.get("checkpoint"))),
        ("data", Path(str(summary.get("data", about["data"].get("path", "–")))).name),
        ("data, content hash", str(summary.get("content_hash", about["data"].get("content_hash", "–")))),
        ("trained with", ", ".join(f"{k} {v}" for k, v in about.get("versions", {}).items())),
        ("code of this report, sha256", code_hash()),
        ("last loss", f"{last['loss']:.4f} at step {last['step']:,}" if last else "–"),
    ]
    config = [(f"{part}.{k}", str(v)) for part, values in about["config"].items() for k, v in values.items()]
    machine = [(f"machine.{k}", str(v)) for k, v in about["machine"].items()]
    folded = f"<details><summary>Configuration</summary>{tables.facts([*config, *machine])}</details>\n"
    return tables.facts(pairs) + folded


def _weights(run: Path, checkpoint: Any) -> str:
    marker = run / "checkpoints" / str(checkpoint) / "DONE"
    try:
        return str(json.loads(marker.read_text(encoding="utf-8"))["model.safetensors"])[:16]
    except (OSError, ValueError, KeyError):
        return "no longer there"


def _sample_section(material: Material, test: Traced) -> Section:
    lost = unknown_problems([*material.results, *material.arms], test)
    gone = f"Problems of {escape(', '.join(lost))} are not in the data set any more." if lost else ""
    return browser_section("every protocol, arm and strategy" if material.arms else "every protocol and strategy", gone)
