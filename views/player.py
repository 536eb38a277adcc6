"""One HTML page that plays figures step by step, with nothing to load: style sheet, script and data are inside.

The page knows nothing of what it plays but that it happens in the cells of a grid. A panel brings an SVG whose timed
elements carry data-t (shown from this step on) or data-w (shown as waiting from this step on), and data-u if a later
step takes them away again, with an element of class "cursor" that is moved to where a step happens, and says in words
what each step does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

HEAD = 30  # letters of a caption before what the step does
LETTERS = 52  # in a line of a caption, where three panels stand side by side


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure. steps: the cell of every step and what happens to it, such as (34, "leaves the queue").

    A step that happens in many cells at once has None for its cell, and no cursor.
    """

    name: str
    figure: str
    steps: Sequence[tuple[int | None, str]]


def player_page(
    title: str, panels: Sequence[Panel], legend: str, columns: int, pitch: int, numbered: bool = True
) -> str:
    """The page. legend: SVG. Cells are numbered along rows of `columns` and drawn `pitch` pixels apart.

    numbered: sentences begin with the number of the cell; otherwise what happens is said to be a sentence of its own.
    """
    deeds = list(dict.fromkeys(deed for panel in panels for _, deed in panel.steps))
    number = {deed: k for k, deed in enumerate(deeds)}
    data = {
        "deeds": deeds,
        "columns": columns,
        "pitch": pitch,
        "numbered": numbered,
        "panels": [
            {
                "name": panel.name,
                "at": [cell for cell, _ in panel.steps],
                "does": [number[deed] for _, deed in panel.steps],
            }
            for panel in panels
        ],
    }
    figures = [
        f"<figure><h2>{escape(panel.name)} <span>{len(panel.steps)} steps</span></h2>\n{panel.figure}\n"
        "<figcaption></figcaption></figure>\n"
        for panel in panels
    ]
    views = [f"<button>{escape(name)}</button>" for name in ("all", *(panel.name for panel in panels))]
    return Template(_part("player.html")).substitute(
        title=escape(title),
        style=_part("player.css"),
        script=_part("player.js"),
        views="".join(views),
        lines=max(2, -(-(HEAD + max(map(len, deeds), default=0)) // LETTERS)),
        panels="".join([*figures, f'<div class="legend">{legend}</div>\n']),
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),  # no end of the script inside it
    )


def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
