"""A maze as SVG elements: cells tinted by the order of the steps, the answer, the walk of dfs, walls, step numbers.

What a step brings carries data-t, the number of the step, and a cell that waits in a queue carries data-w, the step
that put it there. A viewer of SVG ignores them; the animation shows and hides by them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lol_data.views.colours import ANSWER, FLOOR, FROM_GOAL, FROM_START, INK, PAPER, STEPS, WAITING, WALK, share_of
from lol_data.views.maze_picture import FRONTIER_STRATEGIES, MazePicture, discoveries, first_visits
from lol_data.views.svg import Value, tag, words

CELL = 44  # pixels a side
LANE = 5  # how far right of the middle of the way the walk keeps
DASHES = "3 3"  # of moves back

Point = tuple[float, float]


def board(picture: MazePicture, strategy: str | None, live: bool = False) -> str:
    """The maze, size * CELL pixels a side. live: with what only an animation shows.

    That is the cells that are discovered and never taken, and the cursor. Raises UsageError for an unknown strategy,
    DamageError for a trace that no search can have made.
    """
    trace = picture.trace(strategy) if strategy else ()
    layers = [
        _in_cells(
            tag("path", d=f"M0 0h{picture.size}v{picture.size}H0z", fill=FLOOR, class_="floor"),
            tag("g", *(_tints(picture, strategy, live) if strategy else []), class_="tints"),
            shape_rendering="crispEdges",
        ),
        tag("g", answer_line(_path([_middle(picture, cell) for cell in picture.answer])), data_t=len(trace)),
        walk_lines(*_walk(picture, trace)) if strategy == "dfs" else "",
        _in_cells(_walls(picture), stroke=INK, stroke_width=2.5 / CELL, stroke_linecap="round", class_="walls"),
        tag("g", *_numbers(picture, trace), font_size=10.5, fill=INK, class_="numbers"),
        _end(picture, picture.start, "S"),
        _end(picture, picture.goal, "G"),
    ]
    if live:
        layers.append(_cursor())
    return "".join(layers)


def answer_line(d: str) -> str:
    """The line of the answer along path data, cased so that it stands out from any colour."""
    lines = [
        tag("path", d=d, stroke=PAPER, stroke_width=6.5, class_="casing"),
        tag("path", d=d, stroke=ANSWER, stroke_width=3.5, class_="answer"),
    ]
    return tag("g", *lines, fill="none", stroke_linecap="round", stroke_linejoin="round")


def walk_lines(*lines: str) -> str:
    """Paths in the style of the walk."""
    style: dict[str, Value] = {
        "stroke": WALK,
        "stroke_width": 1.5,
        "stroke_linecap": "round",
        "stroke_linejoin": "round",
    }
    return tag("g", *lines, fill="none", class_="walk", **style)


def _in_cells(*children: str, **attributes: Value) -> str:
    """The children with the side of a cell as the unit of their coordinates."""
    return tag("g", *children, transform=f"scale({CELL})", **attributes)


def _walls(picture: MazePicture) -> str:
    """One path of all walls, each unbroken run of them a line of it, such as M0 1H2."""
    horizontal, vertical = picture.walls()
    lines = [f"M{a} {y}H{b}" for y, row in enumerate(horizontal) for a, b in _runs(row)]
    lines += [f"M{x} {a}V{b}" for x, column in enumerate(vertical.T) for a, b in _runs(column)]
    return tag("path", d="".join(lines))


def _tints(picture: MazePicture, strategy: str, live: bool) -> list[str]:
    """Squares in the colours of the steps."""
    trace = picture.trace(strategy)
    visits = first_visits(trace)
    found = discoveries(picture, strategy) if strategy in FRONTIER_STRATEGIES else {}
    squares = []
    for cell, step in visits.items():
        scale = STEPS if strategy != "bidirectional" else (FROM_START, FROM_GOAL)[found[cell].side]
        waits = found[cell].step if found else None
        squares.append(_square(picture, cell, step, waits, scale.hex(share_of(step, len(trace)))))
    if live:
        squares += [
            _square(picture, cell, None, known.step, WAITING) for cell, known in found.items() if cell not in visits
        ]
    return squares


def _square(picture: MazePicture, cell: int, step: int | None, waits: int | None, colour: str) -> str:
    x, y = picture.place(cell)
    return tag("path", data_t=step, data_w=waits, d=f"M{x} {y}h1v1H{x}", fill=colour)


def _numbers(picture: MazePicture, trace: tuple[int, ...]) -> list[str]:
    """Step numbers, in the corners of the cells, where no line runs."""
    numbers = []
    for cell, step in first_visits(trace).items():
        x, y = picture.place(cell)
        size = 9 if step > 99 else None  # three digits would run into the line
        numbers.append(words(CELL * x + 3, CELL * y + 12, str(step), data_t=step, font_size=size))
    return numbers


def _end(picture: MazePicture, cell: int, letter: str) -> str:
    x, y = _middle(picture, cell)
    label = words(x, y + 4.3, letter, font_size=12, font_weight="bold", fill=PAPER, text_anchor="middle")
    return tag("circle", cx=x, cy=y, r=9, fill=ANSWER, class_="end") + label


def _cursor() -> str:
    inside = CELL - 4
    return tag(
        "rect", x=2, y=2, width=inside, height=inside, fill="none", stroke=ANSWER, stroke_width=3, class_="cursor"
    )


def _walk(picture: MazePicture, trace: tuple[int, ...]) -> list[str]:
    """The walk, a path a move. It keeps to the right, so that the way back runs beside the way forth."""
    visits = first_visits(trace)
    places = [picture.place(cell) for cell in trace]
    moves = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(places)]
    if not moves:
        return []
    corners = [
        _turn(_middle(picture, cell), before, after)
        for cell, before, after in zip(trace, moves[:1] + moves, moves + moves[-1:], strict=True)
    ]
    forth: list[str] = []
    back: list[str] = []
    for step, (here, there) in enumerate(pairwise(corners), 2):
        side = forth if visits[trace[step - 1]] == step else back
        side.append(tag("path", data_t=step, d=_path([*here, there[0]])))
    return [*forth, tag("g", *back, stroke_dasharray=DASHES)]


def _turn(middle: Point, before: tuple[int, int], after: tuple[int, int]) -> list[Point]:
    """Where a walk on the right passes a cell that it enters along one move and leaves along another."""

    def right_of(point: Point, move: tuple[int, int]) -> Point:
        return point[0] - LANE * move[1], point[1] + LANE * move[0]

    if before == after:
        return [right_of(middle, after)]
    if before == (-after[0], -after[1]):
        return [right_of(middle, before), right_of(middle, after)]
    return [right_of(right_of(middle, before), after)]


def _middle(picture: MazePicture, cell: int) -> Point:
    x, y = picture.place(cell)
    return CELL * x + CELL / 2, CELL * y + CELL / 2


def _path(points: list[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _runs(line: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(begin, end) of every unbroken run of True."""
    edges = np.flatnonzero(np.diff(np.pad(line, 1).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
