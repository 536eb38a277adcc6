"""A sudoku as SVG elements: givens bold, placed digits on the colour of their step, pencil marks, proofs of steps.

What a step brings carries data-t, the number of the step, and what a later step takes away data-u, the number of that
one. A viewer of SVG gets only what stands there at one moment; the animation shows and hides by these numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lol_data.sudokus import CELLS
from lol_data.views.colours import ANSWER, INK, PAPER, QUIET, STEPS, WALK, share_of
from lol_data.views.sudoku_picture import CELLS_OF, PEERS, Placement, SudokuPicture, candidates
from lol_data.views.sudoku_reasons import Reason, reasons
from lol_data.views.svg import Value, tag, words

CELL = 44  # pixels a side
SIDE = 9 * CELL
RING = 13  # radius around a digit
DASHES = "5 4"
KINDS = {"naked single": None, "hidden single": DASHES}  # the frames of a wave
PENCILLED = ("naked_single", "hidden_single", "propagation")  # cross-hatching and backtracking keep no candidates

_DIGIT: dict[str, Value] = {"font_size": 23, "text_anchor": "middle"}


def board(picture: SudokuPicture, strategy: str | None, step: int | None = None, live: bool = False) -> str:
    """The grid, SIDE pixels a side: with the solution, with all that a strategy placed, or as it stands before a step.

    step: with candidates in the empty cells, the cell at hand outlined, and what proves the step. live: all that any
    step shows, and the cursor. Raises UsageError for an unknown strategy or step, DamageError for a step that does not
    hold.
    """
    picture.check_step(strategy, step)
    givens = [_digit(cell, digit) for cell, digit in enumerate(picture.puzzle) if digit]
    layers = [tag("path", d=f"M0 0h{SIDE}v{SIDE}H0z", fill=PAPER, class_="paper")]
    if strategy is None:
        solved = [_digit(cell, picture.solution[cell]) for cell in range(CELLS) if not picture.puzzle[cell]]
        layers.append(tag("g", *solved, fill=QUIET, class_="quiet solved", **_DIGIT))
    else:
        steps, made = len(picture.trace(strategy)), picture.placements(strategy)
        if not live:
            now = step or steps + 1
            made = [placement for placement in made if placement.stands_before(now)]
        layers.append(tag("g", *(_placed(placement, steps) for placement in made), fill=INK, class_="tints placed ink"))
    layers.append(tag("g", *givens, fill=INK, font_weight="bold", class_="ink givens", **_DIGIT))
    if strategy and live:
        marks = _fading_marks(picture, strategy) if strategy in PENCILLED else ()
        proofs = enumerate(reasons(picture, strategy), 1)
        shown = [tag("g", *_proof(held), data_t=number, data_u=number + 1) for number, held in proofs]
        layers += [pencil(marks), _lines(), in_ink(*shown), in_accent(outline(0, class_="cursor", stroke_width=3))]
    elif strategy and step:
        held = reasons(picture, strategy)[step - 1]
        layers += [pencil(_marks(picture, strategy, step, held)), _lines(), in_ink(*_proof(held))]
        if len(held) == 1:
            layers.append(in_accent(outline(held[0].cell, stroke_width=3)))
    else:
        layers.append(_lines())
    return "".join(layers)


def pencil(marks: Iterable[str]) -> str:
    """Pencil marks in their style."""
    return tag("g", *marks, font_size=10, text_anchor="middle", fill=QUIET, class_="quiet pencil")


def mark(cell: int, digit: int, **attributes: Value) -> str:
    """One pencil mark: digit d in the d-th ninth of a cell."""
    x, y = _corner(cell)
    return words(x + 11 * (1 + (digit - 1) % 3), y + 13 + 12.5 * ((digit - 1) // 3), str(digit), **attributes)


def in_ink(*lines: str) -> str:
    """Lines in the style of what proves a step."""
    return tag("g", *lines, fill="none", stroke=WALK, stroke_width=1.8, stroke_linecap="round", class_="proof")


def in_accent(*lines: str) -> str:
    """Lines in the style of what a step is about."""
    return tag("g", *lines, fill="none", stroke=ANSWER, stroke_width=2.5, stroke_linecap="butt", class_="target")


def outline(cell: int, **attributes: Value) -> str:
    """A frame inside a cell."""
    x, y = _corner(cell)
    side = CELL - 4
    return tag("path", d=f"M{x + 2} {y + 2}h{side}v{side}h-{side}z", **attributes)


def rings(cells: Iterable[int]) -> str:
    """Circles around the digits of cells."""
    tops = ((x + CELL // 2, y + CELL // 2 - RING) for x, y in map(_corner, cells))
    return tag("path", d="".join(f"M{x} {y}a{RING} {RING} 0 1 1-.1 0" for x, y in tops), class_="rings")


def crosses(cells: Iterable[int]) -> str:
    """Diagonal crosses over cells."""
    d = "".join(f"M{x + 12} {y + 12}l20 20M{x + 32} {y + 12}l-20 20" for x, y in map(_corner, cells))
    return tag("path", d=d, class_="crosses")


def _corner(cell: int) -> tuple[int, int]:
    return CELL * (cell % 9), CELL * (cell // 9)


def _digit(cell: int, digit: int) -> str:
    x, y = _corner(cell)
    return words(x + CELL / 2, y + 31, str(digit))


def _placed(placement: Placement, steps: int) -> str:
    """The tint, the digit and the number of the step."""
    return tag(
        "g",
        tag("path", d=f"M0 0h{CELL}v{CELL}H0z", fill=STEPS.hex(share_of(placement.step, steps))),
        words(CELL / 2, 31, str(placement.digit), **_DIGIT),
        words(3, 11, str(placement.step), font_size=9),
        transform="translate({} {})".format(*_corner(placement.cell)),
        data_t=placement.step,
        data_u=placement.undone,
    )


def _lines() -> str:
    thin = "".join(f"M{CELL * k} 0V{SIDE}M0 {CELL * k}H{SIDE}" for k in range(1, 9) if k % 3)
    heavy = "".join(f"M{CELL * k} 0V{SIDE}M0 {CELL * k}H{SIDE}" for k in range(0, 10, 3))
    return tag(
        "g",
        tag("path", d=thin, stroke_width=1, stroke_opacity=0.4),
        tag("path", d=heavy, stroke_width=2.5, stroke_linecap="square"),
        stroke=INK,
        class_="walls",
    )


def _marks(picture: SudokuPicture, strategy: str, step: int, held: Sequence[Reason]) -> Iterator[str]:
    """The candidates before a step; the digits that it places stand out, those tried before are struck."""
    grid, placed = picture.grids(strategy)[step - 1], picture.trace(strategy)[step - 1].placed
    spent = {(cell, digit) for reason in held for cell in reason.weighed for digit in reason.spent}
    for cell in range(CELLS):
        for digit in candidates(grid, cell) if grid[cell] == 0 else ():
            if (cell, digit) in placed:
                yield mark(cell, digit, fill=ANSWER, font_weight="bold", font_size=12)
            else:
                yield mark(cell, digit, text_decoration="line-through" if (cell, digit) in spent else None)


def _fading_marks(picture: SudokuPicture, strategy: str) -> Iterator[str]:
    """The candidates of the puzzle, each up to the step that fills its cell or places the digit in a peer."""
    gone: dict[tuple[int, int], int] = {}
    for placement in picture.placements(strategy):
        for digit in range(1, 10):
            gone.setdefault((placement.cell, digit), placement.step)
        for peer in PEERS[placement.cell]:
            gone.setdefault((peer, placement.digit), placement.step)
    for cell in range(CELLS):
        for digit in candidates(picture.puzzle, cell) if picture.puzzle[cell] == 0 else ():
            yield mark(cell, digit, data_t=0, data_u=gone.get((cell, digit)))


def _proof(held: Sequence[Reason]) -> Iterator[str]:
    """What proves a step: rings, sight lines, crosses; of a wave, frames that tell the kinds apart."""
    if len(held) > 1:
        yield in_accent(*(outline(reason.cell, stroke_dasharray=KINDS[reason.rule]) for reason in held))
        return
    (reason,) = held
    if reason.unit is not None:
        yield in_accent(_frame(reason.unit))
    if reason.ruled_out:
        yield _sights(reason)
        yield crosses(cell for _, cell in reason.ruled_out)
    if reason.holders:  # an undone digit has a stroke through it
        yield rings(holder for holder in reason.holders if holder != reason.cell)
    if reason.dead is not None:
        x, y = _corner(reason.cell)
        stroke = tag("path", d=f"M{x + 10} {y + 34}l24-24", class_="undone")
        yield in_accent(outline(reason.dead, stroke_dasharray=DASHES), stroke)


def _frame(unit: int) -> str:
    x, y = _corner(CELLS_OF[unit][0])
    width, height = ((SIDE, CELL), (CELL, SIDE), (3 * CELL, 3 * CELL))[unit // 9]
    return tag("path", d=f"M{x} {y}h{width}v{height}h-{width}z", class_="unit")


def _sights(reason: Reason) -> str:
    """Lines from a digit along its row and column, as far as it rules out cells there."""
    d = ""
    for holder in reason.holders:
        x, y = _corner(holder)
        away = [(a - x, b - y) for by, cell in reason.ruled_out if by == holder for a, b in [_corner(cell)]]
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            reach = max((a * dx + b * dy for a, b in away if a * dy == b * dx == 0), default=0)
            if reach > 0:
                begin = x + CELL // 2 + RING * dx, y + CELL // 2 + RING * dy
                d += "M{} {}l{} {}".format(*begin, (reach - RING) * dx, (reach - RING) * dy)
    return tag("path", d=d, stroke_width=1.2, class_="sights")
