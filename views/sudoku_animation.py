"""One sudoku under all strategies, as a page that plays them side by side or one at a time."""

from __future__ import annotations

from lol_data.views.colours import PAPER
from lol_data.views.player import Panel, player_page
from lol_data.views.sudoku_board import CELL, SIDE, board
from lol_data.views.sudoku_picture import SudokuPicture
from lol_data.views.sudoku_reasons import describe
from lol_data.views.sudoku_svg import legend_svg
from lol_data.views.svg import at, document

RIM = 2  # pixels around a board, so that the outer line is whole


def sudoku_animation(picture: SudokuPicture) -> str:
    """A self-contained HTML page, below 400 kB at 256 tries. Raises DamageError for a step that does not hold."""
    side = SIDE + 2 * RIM
    panels = []
    for name, trace in picture.traces.items():
        figure = document(side, side, f"{picture.name}, {name}", PAPER, at(RIM, RIM, board(picture, name, live=True)))
        cells = [step.undone if step.undone is not None else _only(step.placed) for step in trace]
        panels.append(Panel(name, figure, list(zip(cells, describe(picture, name), strict=True))))
    return player_page(picture.name, panels, legend_svg(list(picture.traces)), 9, CELL, numbered=False)


def _only(placed: tuple[tuple[int, int], ...]) -> int | None:
    return placed[0][0] if len(placed) == 1 else None
