"""One maze under all strategies, as a page that plays them side by side or one at a time."""

from __future__ import annotations

from lol_data.views.colours import PAPER
from lol_data.views.maze_board import CELL, board
from lol_data.views.maze_picture import MazePicture, describe
from lol_data.views.maze_svg import legend_svg
from lol_data.views.player import Panel, player_page
from lol_data.views.svg import at, document

RIM = 2  # pixels around a board, so that the outer wall is whole


def maze_animation(picture: MazePicture) -> str:
    """A self-contained HTML page; below 60 kB for an 8x8 maze."""
    side = picture.size * CELL + 2 * RIM
    panels = []
    for name in picture.traces:
        figure = document(side, side, f"{picture.name}, {name}", PAPER, at(RIM, RIM, board(picture, name, live=True)))
        panels.append(Panel(name, figure, list(zip(picture.trace(name), describe(picture, name), strict=True))))
    return player_page(picture.name, panels, legend_svg(list(picture.traces)), picture.size, CELL)
