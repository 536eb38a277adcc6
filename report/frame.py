"""The frame of every page: head, links, sections, and the browser of single outputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import lol_data
from lol_data.report.samples import WORST

LIMIT = 4_800_000  # bytes of a page; where it would be larger, the browser gets fewer outputs


class Section(NamedTuple):
    """A part of the page. key: its address. html: without the heading."""

    key: str
    title: str
    html: str


def note(*sentences: str) -> str:
    """A paragraph in a quiet colour, of HTML."""
    return f'<p class="note">{" ".join(sentences)}</p>\n'


def render(
    title: str,
    lead: str,
    head: str,
    sections: Sequence[Section | None],
    browser: Callable[[int], dict[str, Any]],
) -> str:
    """A page below 5 MB. title, lead: texts; head: HTML; browser: the outputs that can be looked at one by one, so many
    of the worst of each strategy."""
    shown = [section for section in sections if section is not None]
    parts = {
        "title": escape(title),
        "lead": escape(lead),
        "style": _part("page.css"),
        "script": _part("page.js"),
        "links": "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in shown),
        "head": head,
        "sections": "".join(f'<section id="{key}"><h2>{title}</h2>\n{html}</section>\n' for key, title, html in shown),
        "version": escape(lol_data.__version__),
    }
    template, worst = Template(_part("page.html")), WORST
    while True:
        data = json.dumps(browser(worst), separators=(",", ":")).replace("<", "\\u003c")  # no end of the script inside
        page = template.substitute(parts, data=data)
        if len(page.encode()) < LIMIT or worst == 1:
            return page
        worst = max(1, worst // 2)


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def browser_section(groups: str, more: str = "") -> Section:
    """The place of the browser of single outputs. groups: whose worst outputs are there; more: a sentence of HTML."""
    html = note(
        f"Worst first: the outputs of {groups} with the most failed verdicts, and a few without a fault. Arrow keys",
        f"step through the trace and the list. {more}",
    )
    return Section("samples", "Single outputs", html + _part("browser.html"))


def code_hash() -> str:
    """Of all Python sources of the package, 16 hex digits."""
    root, digest = Path(lol_data.__file__).parent, hashlib.sha256()
    rooms = [path for path in root.iterdir() if (path / "__init__.py").exists()]
    for path in sorted([*root.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
