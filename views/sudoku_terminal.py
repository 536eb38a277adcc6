"""A sudoku for a terminal: the grid with heavy lines around the boxes, and beside it a second grid.

That is the solution; with a strategy, the numbers of the steps that placed the digits.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

from lol_data.sudokus import CELLS
from lol_data.views.colours import STEPS, ansi_background, share_of
from lol_data.views.sudoku_picture import Grid, SudokuPicture, candidates, cell_name, listed, step_word
from lol_data.views.sudoku_reasons import Reason, describe, reasons

LINE = 80  # columns, of which the two grids with the margin take all
GAP = "   "

RESET, BOLD, DIM, RED = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m"

Texts = Sequence[str]  # 81 of three characters each
Styles = Mapping[int, str]  # cell to escape sequence


def sudoku_text(
    picture: SudokuPicture, strategy: str | None = None, colour: bool = False, step: int | None = None
) -> str:
    """The drawing as lines of text, at most 80 columns wide; placed digits only where a strategy placed them.

    With a step, the grid as it stands before that step, the cell at hand in brackets [5] with the digit that comes or
    goes, the digits that prove the step in parentheses (5), a cell that they rule out crossed ×, one that nothing is
    left for as !; below, why the step holds and the candidates that matter. colour: with ANSI escapes (256 colours).
    Raises UsageError for an unknown strategy or step, DamageError for a step that does not hold.
    """
    picture.check_step(strategy, step)
    givens = {cell: BOLD for cell in range(CELLS) if picture.puzzle[cell]}
    if strategy is None:
        left, right = _digits(picture.puzzle), _digits(picture.solution)
        return _lines(_side_by_side(left, givens, right, givens, colour), [f"{picture.name}: {picture.clues} givens"])
    trace = picture.trace(strategy)
    now = len(trace) + 1 if step is None else step
    standing = [placement for placement in picture.placements(strategy) if placement.stands_before(now)]
    digits, numbers = _digits(picture.grids(strategy)[now - 1]), ["   "] * CELLS
    tints = {}
    for placement in standing:
        numbers[placement.cell] = f"{placement.step:^3}"
        tints[placement.cell] = ansi_background(STEPS.rgb(share_of(placement.step, len(trace))))
    styles = givens | tints
    if step is None:
        below = [f"{picture.name}, {strategy}: {picture.clues} givens, {picture.count(strategy)}"]
    else:
        held = reasons(picture, strategy)[step - 1]
        styles |= _mark(digits, held, picture.grids(strategy)[step - 1 : step + 1])
        below = _below(picture, strategy, step, held)
    return _lines(_side_by_side(digits, styles, numbers, tints, colour), below)


def _digits(grid: Grid) -> list[str]:
    return [f" {digit or ' '} " for digit in grid]


def _mark(digits: list[str], held: Sequence[Reason], around: Sequence[Grid]) -> dict[int, str]:
    """Put the marks of a step into the digits. around: the grid before the step and behind it."""
    before, behind = around
    styles = {}
    if len(held) == 1:  # the proofs of a whole wave would mark nearly everything
        (reason,) = held
        for holder in reason.holders:
            digits[holder] = f"({before[holder]})"
        for _, cell in reason.ruled_out:
            digits[cell] = " × "
        if reason.dead is not None:
            digits[reason.dead] = " ! "
            styles[reason.dead] = RED
    for reason in held:
        digits[reason.cell] = f"[{before[reason.cell] or behind[reason.cell]}]"
        styles[reason.cell] = RED
    return styles


def _below(picture: SudokuPicture, strategy: str, step: int, held: Sequence[Reason]) -> list[str]:
    word = step_word(strategy)
    lines = [
        f"{picture.name}, {strategy}: before {word} {step} of {len(picture.trace(strategy))}",
        f"{word} {step}: {describe(picture, strategy)[step - 1]}",
    ]
    if len(held) > 1:
        lines += [f"  {reason.text}" for reason in held]
    grid = picture.grids(strategy)[step - 1]
    weighed = dict.fromkeys(cell for reason in held for cell in reason.weighed)
    named = (f"{cell_name(cell)} {listed(candidates(grid, cell)) or 'none'}" for cell in weighed)
    return [*lines, f"candidates: {', '.join(named)}"]


def _lines(drawing: list[str], below: list[str]) -> str:
    wrapped = (part for line in below for part in textwrap.wrap(line, LINE, subsequent_indent="    "))
    return "\n".join([*drawing, *wrapped]) + "\n"


def _side_by_side(left: Texts, left_styles: Styles, right: Texts, right_styles: Styles, colour: bool) -> list[str]:
    """The two grids under their margins."""
    paint = _paint if colour else _plain
    heading = "".join(f"c{column}".center(4) for column in range(1, 10)).rstrip()
    lines = [paint(DIM, f"{GAP} {heading:<36}{GAP} {heading}")]
    for row in range(9):
        rule = _rule("┏━┯┳┓" if row == 0 else "┣━┿╋┫" if row % 3 == 0 else "┠─┼╂┨")
        lines.append(f"{GAP}{rule}{GAP}{rule}")
        halves = (_row(row, texts, styles, paint) for texts, styles in ((left, left_styles), (right, right_styles)))
        lines.append(f"{paint(DIM, f'r{row + 1}')} {GAP.join(halves)}")
    rule = _rule("┗━┷┻┛")
    return [*lines, f"{GAP}{rule}{GAP}{rule}"]


def _rule(characters: str) -> str:
    """A level line: its left end, the line itself, where it meets a light and a heavy line, its right end."""
    first, line, light, heavy, last = tuple(characters)
    return first + heavy.join([light.join([3 * line] * 3)] * 3) + last


def _row(row: int, texts: Texts, styles: Styles, paint: Callable[[str, str], str]) -> str:
    line = ""
    for column in range(9):
        cell = 9 * row + column
        line += ("┃" if column % 3 == 0 else "│") + paint(styles.get(cell, ""), texts[cell])
    return line + "┃"


def _plain(style: str, text: str) -> str:
    return text


def _paint(style: str, text: str) -> str:
    return f"{style}{text}{RESET}" if style and text.strip() else text
