"""A maze as an SVG file: under one strategy, or under all of them side by side."""

from __future__ import annotations

from lol_data.views.colours import FROM_GOAL, FROM_START, INK, PAPER, QUIET, STEPS, WAITING, Scale
from lol_data.views.maze_board import CELL, DASHES, answer_line, board, walk_lines
from lol_data.views.maze_picture import FRONTIER_STRATEGIES, MazePicture
from lol_data.views.svg import at, document, tag, words

PAD = 20
HEAD = 48  # height of the two lines above a board
LEGEND = 150  # width of the legend
BAR = 120  # width of a colour scale in it
COLUMNS = 3  # boards side by side


def maze_svg(picture: MazePicture, strategy: str | None = None) -> str:
    """One maze with its answer and, with a strategy, its trace.

    Raises UsageError for an unknown strategy, DamageError for a trace that no search can have made.
    """
    side = picture.size * CELL
    facts = f"answer of {len(picture.answer)} cells"
    if strategy:
        facts = f"{picture.name}, {len(picture.trace(strategy))} steps, {facts}"
    _, key = _legend([strategy] if strategy else [], live=False)
    return document(
        side + LEGEND + 3 * PAD,
        side + HEAD + 2 * PAD,
        f"{picture.name}, {strategy}" if strategy else picture.name,
        PAPER,
        at(PAD, PAD, _heading(strategy or picture.name, facts)),
        at(PAD, PAD + HEAD, board(picture, strategy)),
        at(2 * PAD + side, PAD + HEAD, key),
    )


def maze_comparison_svg(picture: MazePicture) -> str:
    """One maze under every strategy that it has a trace of, with one legend for all. Raises DamageError as maze_svg."""
    names = list(picture.traces)
    panels = [(name, f"{len(trace)} steps", board(picture, name)) for name, trace in picture.traces.items()]
    height, key = _legend(names, live=False)
    panels.append((picture.name, f"answer of {len(picture.answer)} cells", key))
    across = picture.size * CELL + 2 * PAD
    down = max(picture.size * CELL, height) + HEAD + PAD
    placed = [
        at(PAD + across * (k % COLUMNS), PAD + down * (k // COLUMNS), _heading(title, facts), at(0, HEAD, drawing))
        for k, (title, facts, drawing) in enumerate(panels)
    ]
    rows = -(-len(panels) // COLUMNS)
    return document(COLUMNS * across, rows * down + PAD, picture.name, PAPER, *placed)


def legend_svg(strategies: list[str]) -> str:
    """The legend of an animation, as a picture of its own."""
    height, key = _legend(strategies, live=True)
    return document(LEGEND, height, "Legend", PAPER, key)


def _heading(title: str, facts: str) -> str:
    return words(0, 15, title, font_size=16, font_weight="bold", fill=INK, class_="ink") + words(
        0, 33, facts, font_size=12, fill=QUIET, class_="quiet"
    )


def _legend(strategies: list[str], live: bool) -> tuple[float, str]:
    """(height, elements): what the colours and lines mean, as far as these strategies use them."""
    items = []
    if any(name != "bidirectional" for name in strategies):
        items.append((50, _scale("order of the steps", STEPS)))
    if "bidirectional" in strategies:
        items += [(50, _scale("from the start", FROM_START)), (50, _scale("from the goal", FROM_GOAL))]
    if live and any(name in FRONTIER_STRATEGIES for name in strategies):
        square = tag("path", d="M0 0h14v14H0z", fill=WAITING, class_="waiting")
        items.append((24, tag("g", square, class_="tints") + _label("known, not taken")))
    items.append((24, answer_line("M4 7H34") + _label("answer")))
    if "dfs" in strategies:
        items.append((24, walk_lines(tag("path", d="M2 7H36")) + _label("walk")))
        items.append((24, walk_lines(tag("path", d="M2 7H36", stroke_dasharray=DASHES)) + _label("walk, moves back")))
    placed, height = [], 0
    for room, item in items:
        placed.append(at(0, height, item))
        height += room
    return height, "".join(placed)


def _label(text: str) -> str:
    return words(44, 11, text, font_size=12, fill=INK, class_="ink")


def _scale(text: str, scale: Scale) -> str:
    parts = 24
    width = BAR // parts
    bars = [
        tag("path", d=f"M{width * k} 16h{width}v10h-{width}z", fill=scale.hex(k / (parts - 1))) for k in range(parts)
    ]
    return (
        words(0, 11, text, font_size=12, fill=INK, class_="ink")
        + tag("g", *bars, shape_rendering="crispEdges", class_="tints")
        + words(0, 38, "first", font_size=10, fill=QUIET, class_="quiet")
        + words(BAR, 38, "last", font_size=10, fill=QUIET, class_="quiet", text_anchor="end")
    )
