"""A maze for a terminal: heavy walls, a light line for the answer, the steps of one strategy as numbers.

Cell numbers can be read off the margins: that of the row plus that of the column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np

from lol_data.mazes import EAST, NORTH, SOUTH, WEST
from lol_data.views.colours import FROM_GOAL, FROM_START, STEPS, ansi_background, share_of
from lol_data.views.maze_picture import MazePicture, discoveries, first_visits

# Indexed by the bit set of the directions in which a line leaves the character.
HEAVY = " ╹╺┗╻┃┏┣╸┛━┻┓┫┳╋"
LIGHT = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
MARGIN = 4  # columns on the left, for the number of a row's first cell
LINE = 80  # columns of the text below the drawing, or as many as the drawing has

RESET, DIM, RED = "\x1b[0m", "\x1b[2m", "\x1b[1;31m"

Paint = Callable[[str, str], str]  # (style, text) to text


def maze_text(picture: MazePicture, strategy: str | None = None, colour: bool = False) -> str:
    """The drawing as lines of text; with a strategy, the number of the step that first visits a cell stands in it.

    The walk of dfs stands below, in cell numbers. colour: with ANSI escapes (256 colours). At most 80 columns wide up
    to size 12, 95 at 15. Raises UsageError for an unknown strategy.
    """
    paint = _paint if colour else _plain
    width = 5 if strategy else 3
    lines = [paint(DIM, " " * MARGIN + "".join(f" {column:^{width}}" for column in range(picture.size)).rstrip())]
    walls, cells = _wall_rows(picture, width), _cell_texts(picture, strategy, width)
    backgrounds = _backgrounds(picture, strategy) if strategy and colour else {}
    ways = picture.answer_ways()
    _, upright = picture.walls()
    for row in range(picture.size):
        lines.append(_wall_line(picture, walls[row], row, ways, width, paint))
        line = paint(DIM, f"{row * picture.size:>{MARGIN - 1}} ")
        for column in range(picture.size):
            cell = row * picture.size + column
            passed = ways.get(cell, 0) & WEST
            line += "┃" if upright[row, column] else paint(RED, "─" if passed else " ")
            style = backgrounds.get(cell) or (RED if cell in ways else "")
            line += paint(style, cells[cell])
        lines.append(line + "┃")
    lines.append(" " * MARGIN + walls[-1])
    return "\n".join([*lines, *_below(picture, strategy, max(LINE, len(lines[-1])))]) + "\n"


def _plain(style: str, text: str) -> str:
    return text


def _paint(style: str, text: str) -> str:
    return f"{style}{text}{RESET}" if style and text.strip() else text


def _wall_rows(picture: MazePicture, width: int) -> list[str]:
    """The lines of horizontal walls with their corners, size + 1 of them."""
    size = picture.size
    level, upright = (np.pad(walls, 1) for walls in picture.walls())
    rows = []
    for y in range(size + 1):
        line = ""
        for x in range(size + 1):
            north, south = upright[y, x + 1], upright[y + 1, x + 1]
            west, east = level[y + 1, x], level[y + 1, x + 1]
            line += HEAVY[north * NORTH + east * EAST + south * SOUTH + west * WEST]
            if x < size:
                line += ("━" if east else " ") * width
        rows.append(line)
    return rows


def _wall_line(picture: MazePicture, walls: str, row: int, ways: dict[int, int], width: int, paint: Paint) -> str:
    """A line of walls with the answer put through its gaps."""
    line, done = " " * MARGIN, 0
    for column in range(picture.size):
        if ways.get(row * picture.size + column, 0) & NORTH:
            middle = column * (width + 1) + 1 + width // 2
            line += walls[done:middle] + paint(RED, "│")
            done = middle + 1
    return line + walls[done:]


def _cell_texts(picture: MazePicture, strategy: str | None, width: int) -> list[str]:
    """The characters inside every cell: the answer's line, and over it S or G and the number of the step."""
    ends = {picture.start: "S", picture.goal: "G"}
    visits = first_visits(picture.trace(strategy)) if strategy else {}
    ways = picture.answer_ways()
    texts = []
    for cell in range(picture.size**2):
        way = ways.get(cell, 0)
        label = ends.get(cell, "") + str(visits.get(cell, ""))
        middle = f"{label:^3}" if label and strategy else label or LIGHT[way]  # numbers keep off the line
        west = (width - len(middle)) // 2
        east = width - len(middle) - west
        texts.append(("─" if way & WEST else " ") * west + middle + ("─" if way & EAST else " ") * east)
    return texts


def _backgrounds(picture: MazePicture, strategy: str) -> dict[int, str]:
    trace = picture.trace(strategy)
    sides = discoveries(picture, strategy) if strategy == "bidirectional" else None
    styles = {}
    for cell, step in first_visits(trace).items():
        scale = STEPS if sides is None else (FROM_START, FROM_GOAL)[sides[cell].side]
        styles[cell] = ansi_background(scale.rgb(share_of(step, len(trace))))
    return styles


def _below(picture: MazePicture, strategy: str | None, columns: int) -> list[str]:
    answer = f"answer of {len(picture.answer)} cells"
    if strategy is None:
        return [f"{picture.name}: {answer}"]
    trace = picture.trace(strategy)
    lines = [f"{picture.name}, {strategy}: {len(trace)} steps, {answer}"]
    if strategy == "dfs":
        visits = first_visits(trace)
        walk = [f"{'' if visits[cell] == step else '←'}{cell}" for step, cell in enumerate(trace, 1)]
        lines += textwrap.wrap(f"walk, moves back with ←: {' '.join(walk)}", columns, subsequent_indent="  ")
    return lines
