"""A sudoku as an SVG file: under one strategy, before one step of it, or under all strategies side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from lol_data.views.colours import INK, PAPER, QUIET, STEPS
from lol_data.views.sudoku_board import DASHES, SIDE, board, crosses, in_accent, in_ink, mark, outline, pencil, rings
from lol_data.views.sudoku_picture import SudokuPicture, step_word
from lol_data.views.sudoku_reasons import Reason, describe, reasons
from lol_data.views.svg import Value, at, document, tag, words

PAD = 20
HEAD = 48  # height of the two lines above a board
LEGEND = 150  # width of the legend
BAR = 120  # width of the colour scale in it
SCALE = 54  # height of the scale
ITEM = 30  # height of an item
COLUMNS = 3  # boards side by side
LETTERS = 92  # of the reason, in a line below a board with its legend
LINE = 17  # from one such line to the next


def sudoku_svg(picture: SudokuPicture, strategy: str | None = None, step: int | None = None) -> str:
    """One sudoku: solved, as a strategy left it, or as it stands before a step, with candidates and the step's proof.

    Raises UsageError for an unknown strategy or step, DamageError for a step that does not hold.
    """
    drawing = board(picture, strategy, step)
    title, facts, reason, marks = picture.name, f"{picture.clues} givens", [], {}
    if strategy:
        title, facts = strategy, f"{picture.name}, {facts}, {picture.count(strategy)}"
    if strategy and step:
        word = step_word(strategy)
        title, facts = (
            f"{strategy}, before {word} {step} of {len(picture.trace(strategy))}",
            f"{picture.name}, {picture.clues} givens",
        )
        reason = textwrap.wrap(f"{word} {step}: {describe(picture, strategy)[step - 1]}", LETTERS)
        marks = _marks_of(reasons(picture, strategy)[step - 1])
    _, key = _legend(strategy is not None, marks)
    below = [words(0, LINE * k, line, font_size=12, fill=INK, class_="ink reason") for k, line in enumerate(reason, 1)]
    return document(
        SIDE + LEGEND + 3 * PAD,
        SIDE + HEAD + 2 * PAD + (LINE * len(below) + 6 if below else 0),
        f"{picture.name}, {title}" if strategy else title,
        PAPER,
        at(PAD, PAD, _heading(title, facts)),
        at(PAD, PAD + HEAD, drawing),
        at(2 * PAD + SIDE, PAD + HEAD, key),
        at(PAD, PAD + HEAD + SIDE + 6, *below),
    )


def sudoku_comparison_svg(picture: SudokuPicture) -> str:
    """One sudoku under every strategy that it has a trace of, with one legend for all. Raises DamageError."""
    panels = [(name, picture.count(name), board(picture, name)) for name in picture.traces]
    _, key = _legend(True, {})
    panels.append((picture.name, f"{picture.clues} givens", key))
    across, down = SIDE + 2 * PAD, SIDE + HEAD + PAD
    placed = [
        at(PAD + across * (k % COLUMNS), PAD + down * (k // COLUMNS), _heading(title, facts), at(0, HEAD, drawing))
        for k, (title, facts, drawing) in enumerate(panels)
    ]
    rows = -(-len(panels) // COLUMNS)
    return document(COLUMNS * across, rows * down + PAD, picture.name, PAPER, *placed)


def legend_svg(strategies: list[str]) -> str:
    """The legend of an animation, as a picture of its own."""
    marks = {"candidates": "candidates", "frame": "step at hand"}
    if "propagation" in strategies:
        marks["dashed"] = "hidden, in a wave"
    marks |= {"ring": "proves the step", "cross": "ruled out"}
    if "backtracking" in strategies:
        marks["dead"] = "nothing is left"
    height, key = _legend(True, marks)
    return document(LEGEND, height, "Legend", PAPER, key)


def _heading(title: str, facts: str) -> str:
    return words(0, 15, title, font_size=16, font_weight="bold", fill=INK, class_="ink") + words(
        0, 33, facts, font_size=12, fill=QUIET, class_="quiet"
    )


def _marks_of(held: Sequence[Reason]) -> dict[str, str]:
    """The marks that a step before which the grid is drawn brings, and what they mean there."""
    if len(held) > 1:
        return {"candidates": "candidates", "frame": "naked single", "dashed": "hidden single"}
    (reason,) = held
    used = {
        "candidates": (True, "candidates"),
        "frame": (True, "step at hand"),
        "ring": (reason.holders, "proves the step"),
        "cross": (reason.ruled_out, "ruled out"),
        "dead": (reason.dead is not None, "nothing is left"),
    }
    return {name: meaning for name, (there, meaning) in used.items() if there}


def _legend(traced: bool, marks: Mapping[str, str]) -> tuple[float, str]:
    """(height, elements): what the colours, the digits and the given marks mean."""
    five, dashed = _figure("5"), in_accent(outline(0, stroke_width=5, stroke_dasharray=DASHES))
    samples = {
        "candidates": pencil(mark(0, digit) for digit in (1, 3, 4, 8)),
        "frame": in_accent(outline(0, stroke_width=5)),
        "dashed": dashed,
        "ring": five + in_ink(rings([0])),
        "cross": in_ink(crosses([0])),
        "dead": dashed,
    }
    items = [(_figure("5", font_weight="bold"), "given")]
    if traced:
        items.append((five + words(2, 14, "7", font_size=16, fill=INK, class_="ink"), "placed in step 7"))
    else:
        items.append((_figure("5", fill=QUIET, class_="quiet"), "solution"))
    items += [(samples[name], meaning) for name, meaning in marks.items()]
    top = SCALE if traced else 0
    placed = [
        at(0, top + ITEM * k, tag("g", sample, transform="scale(0.5)"), _label(meaning))
        for k, (sample, meaning) in enumerate(items)
    ]
    return top + ITEM * len(items), "".join([_scale() if traced else "", *placed])


def _figure(digit: str, **attributes: Value) -> str:
    look: dict[str, Value] = {"font_size": 26, "text_anchor": "middle", "fill": INK, "class_": "ink"}
    return words(22, 31, digit, **(look | attributes))


def _label(text: str) -> str:
    return words(36, 15, text, font_size=12, fill=INK, class_="ink")


def _scale() -> str:
    parts = 24
    width = BAR // parts
    bars = [
        tag("path", d=f"M{width * k} 16h{width}v10h-{width}z", fill=STEPS.hex(k / (parts - 1))) for k in range(parts)
    ]
    return (
        words(0, 11, "order of the steps", font_size=12, fill=INK, class_="ink")
        + tag("g", *bars, shape_rendering="crispEdges", class_="tints placed")
        + words(0, 38, "first", font_size=10, fill=QUIET, class_="quiet")
        + words(BAR, 38, "last", font_size=10, fill=QUIET, class_="quiet", text_anchor="end")
    )
