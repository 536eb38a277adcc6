"""The page: a head that says what was run, sections, and the browser of single outputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import lol_data
from lol_data.report import tables
from lol_data.report.diagnosis import path_section, probe_section, stability_section, training_section
from lol_data.report.material import Material
from lol_data.report.results import (
    Section,
    conflict_section,
    confusion_section,
    intervention_section,
    note,
    result_section,
)
from lol_data.report.samples import WORST, browser_data, unknown_problems
from lol_data.tokenization.tasks import Traced, layout_of
from lol_data.training.config import RunConfig

LIMIT = 4_800_000  # bytes of a page; where it would be larger, the browser gets fewer outputs


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
    shown = [section for section in sections if section is not None]
    parts = {
        "title": escape(f"Report on {material.run.resolve().name}"),
        "lead": escape(_lead(material)),
        "style": _part("page.css"),
        "script": _part("page.js"),
        "links": "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in shown),
        "head": _head(material),
        "sections": "".join(f'<section id="{key}"><h2>{title}</h2>\n{html}</section>\n' for key, title, html in shown),
        "version": escape(lol_data.__version__),
    }
    template, worst = Template(_part("page.html")), WORST
    while True:
        page = template.substitute(parts, data=_data(material, test, strategies, worst))
        if len(page.encode()) < LIMIT or worst == 1:
            return page
        worst = max(1, worst // 2)


def _data(material: Material, test: Traced, strategies: Sequence[str], worst: int) -> str:
    config = RunConfig.from_json(material.about["config"])
    layout = layout_of(test, config.strategy_field)
    model = config.model_config(layout.vocabulary, layout.prompt_length)
    data = browser_data(material.results, test, strategies, model, worst)
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # no end of the script inside it


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


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


def code_hash() -> str:
    """Of all Python sources of the package, 16 hex digits."""
    root, digest = Path(lol_data.__file__).parent, hashlib.sha256()
    rooms = [path for path in root.iterdir() if (path / "__init__.py").exists()]
    for path in sorted([*root.glob("*.py"), *(file for room in rooms for file in room.glob("*.py"))]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _sample_section(material: Material, test: Traced) -> Section:
    html = note(
        "Worst first: the outputs of every protocol and strategy with the most failed verdicts, and a few without a",
        "fault. Arrow keys step through the trace and the list.",
    )
    if lost := unknown_problems(material.results, test):
        html += note(f"Problems of {escape(', '.join(lost))} are not in the data set any more.")
    return Section("samples", "Single outputs", html + _part("browser.html"))
