"""The three drawings of one problem, whatever its task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lol_data.errors import UsageError


@dataclass(frozen=True, slots=True)
class Drawings:
    """text(colour) for a terminal, svg() for a paper, html() for a browser."""

    text: Callable[[bool], str]
    svg: Callable[[], str]
    html: Callable[[], str]


def drawings(task: str, traced: Any, strategy: str | None, step: int | None) -> Drawings:
    """Of the only row of a batch, TracedMazes or TracedSudokus; nothing is drawn yet.

    strategy: the one whose steps are numbered. step: of a sudoku, the one to explain. Raises UsageError, as drawings
    do, and DamageError for a row that is broken.
    """
    return {"maze": _maze, "sudoku": _sudoku}[task](traced, strategy, step)


def _maze(traced: Any, strategy: str | None, step: int | None) -> Drawings:
    from lol_data.views.maze_animation import maze_animation
    from lol_data.views.maze_picture import picture_of
    from lol_data.views.maze_svg import maze_comparison_svg, maze_svg
    from lol_data.views.maze_terminal import maze_text

    if step is not None:
        raise UsageError("--step is for sudokus; an animation (--html) goes through a maze step by step")
    picture = picture_of(traced, 0)
    return Drawings(
        lambda colour: maze_text(picture, strategy, colour),
        lambda: maze_svg(picture, strategy) if strategy else maze_comparison_svg(picture),
        lambda: maze_animation(picture),
    )


def _sudoku(traced: Any, strategy: str | None, step: int | None) -> Drawings:
    from lol_data.views.sudoku_animation import sudoku_animation
    from lol_data.views.sudoku_picture import sudoku_picture_of
    from lol_data.views.sudoku_svg import sudoku_comparison_svg, sudoku_svg
    from lol_data.views.sudoku_terminal import sudoku_text

    picture = sudoku_picture_of(traced, 0)
    return Drawings(
        lambda colour: sudoku_text(picture, strategy, colour, step),
        lambda: sudoku_svg(picture, strategy, step) if strategy else sudoku_comparison_svg(picture),
        lambda: sudoku_animation(picture),
    )
