"""Why each step of a sudoku trace holds, in words and in cells, derived from the puzzle and the steps before it.

A placement or an undo that does not hold is damage. Nothing here knows how a tracer finds its steps, only what they
must rest on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lol_data.errors import DamageError
from lol_data.sudokus import CELLS
from lol_data.views.sudoku_picture import (
    CELLS_OF,
    PEERS,
    UNITS_OF,
    Grid,
    SudokuPicture,
    candidates,
    cell_name,
    listed,
    plural,
    unit_name,
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one placement, or one undo, holds.

    cell: where. rule: "naked single", "hidden single", "cross-hatching", "try" or "undo". holders: cells whose digits
    prove it. ruled_out: (holder, empty cell that it keeps the digit from). unit: the one of a hidden single. weighed:
    the cells whose candidates matter. spent: digits tried before in the last of these. dead: the cell that nothing is
    left for.
    """

    cell: int
    rule: str
    text: str
    holders: tuple[int, ...] = ()
    ruled_out: tuple[tuple[int, int], ...] = ()
    unit: int | None = None
    weighed: tuple[int, ...] = ()
    spent: tuple[int, ...] = ()
    dead: int | None = None


def reasons(picture: SudokuPicture, strategy: str) -> list[tuple[Reason, ...]]:
    """The reasons of every step: one, or as many as a wave of propagation places digits.

    Raises UsageError for an unknown strategy, DamageError for a step that does not hold.
    """
    steps = picture.trace(strategy)
    if strategy == "backtracking":
        return [(reason,) for reason in _search(picture)]
    found = []
    for number, (step, grid) in enumerate(zip(steps, picture.grids(strategy), strict=False), 1):
        held = []
        for cell, digit in step.placed:
            reason = _reason(strategy, grid, cell, digit, step.unit)
            if reason is None:
                raise _unfounded(picture, strategy, number, f"nothing forces {digit} at {cell_name(cell)}")
            held.append(reason)
        found.append(tuple(held))
    return found


def describe(picture: SudokuPicture, strategy: str) -> list[str]:
    """For every step what it does and why it holds; of a wave with several placements, how many of which kind."""
    return [held[0].text if len(held) == 1 else _summary(held) for held in reasons(picture, strategy)]


def _summary(held: Sequence[Reason]) -> str:
    naked = sum(reason.rule == "naked single" for reason in held)
    kinds = ((naked, "naked single"), (len(held) - naked, "hidden single"))
    return f"{len(held)} placements at once, {' and '.join(plural(count, kind) for count, kind in kinds if count)}"


def _unfounded(picture: SudokuPicture, strategy: str, step: int, why: str) -> DamageError:
    return DamageError(f"{picture.name}: {strategy} step {step} does not hold: {why}")


def _reason(strategy: str, grid: Grid, cell: int, digit: int, unit: int | None) -> Reason | None:
    if strategy == "naked_single":
        return _naked_single(grid, cell, digit)
    if strategy == "propagation":
        ways = (_hidden_single(grid, cell, digit, way, "hidden single") for way in UNITS_OF[cell])
        return _naked_single(grid, cell, digit) or next((way for way in ways if way), None)
    hatching = strategy == "cross_hatching"
    if unit is None or unit not in (UNITS_OF[cell][2:] if hatching else UNITS_OF[cell]):
        return None
    return _hidden_single(grid, cell, digit, unit, "cross-hatching" if hatching else "hidden single")


def _naked_single(grid: Grid, cell: int, digit: int) -> Reason | None:
    if candidates(grid, cell) != (digit,):
        return None
    words, holders = _held_by_peers(grid, cell)
    text = f"{cell_name(cell)} = {digit}, naked single: its peers hold every other digit, {words}"
    return Reason(cell, "naked single", text, holders, weighed=(cell,))


def _held_by_peers(grid: Grid, cell: int) -> tuple[str, tuple[int, ...]]:
    """What the peers of a cell hold, such as "1 3 7 in row 4, 2 in box 6", each digit once, and the cells meant."""
    at: dict[int, int] = {}
    parts = []
    for unit in UNITS_OF[cell]:
        fresh = {grid[peer]: peer for peer in CELLS_OF[unit] if peer != cell and grid[peer] not in (0, *at)}
        if fresh:
            parts.append(f"{listed(sorted(fresh))} in {unit_name(unit)}")
        at |= fresh
    return ", ".join(parts), tuple(sorted(at.values()))


def _hidden_single(grid: Grid, cell: int, digit: int, unit: int, rule: str) -> Reason | None:
    empty = tuple(other for other in CELLS_OF[unit] if grid[other] == 0)
    others = [other for other in empty if other != cell]
    if any(digit in candidates(grid, other) for other in others):
        return None
    cover = _cover(grid, digit, others)
    if not others:
        why = "it is the last empty cell there"
    elif rule == "cross-hatching":
        lines = {
            holder: next(line for line in UNITS_OF[holder] if line in UNITS_OF[cover[holder][0]]) for holder in cover
        }
        crossed = (f"{unit_name(line)} has its {digit} at {cell_name(holder)}" for holder, line in lines.items())
        why = f"{', '.join(crossed)}; no other empty cell is left"
    else:
        (first, seers), *rest = cover.items()
        why = f"{digit} fits no other empty cell: {listed(map(cell_name, seers))} {'see' if seers[1:] else 'sees'} it"
        why += f" at {cell_name(first)}"
        why += "".join(f", {listed(map(cell_name, cells))} at {cell_name(holder)}" for holder, cells in rest)
    return Reason(
        cell,
        rule,
        f"{cell_name(cell)} = {digit}, {rule} in {unit_name(unit)}: {why}",
        tuple(cover),
        tuple((holder, other) for holder, cells in cover.items() for other in cells),
        unit,
        weighed=empty,
    )


def _cover(grid: Grid, digit: int, cells: Sequence[int]) -> dict[int, list[int]]:
    """Few cells that hold the digit, each with the cells that it sees and none before it does; together, all."""
    left, cover = list(cells), {}
    while left:
        seen = {holder: [cell for cell in left if holder in PEERS[cell]] for cell in left for holder in PEERS[cell]}
        holder = min((h for h in seen if grid[h] == digit), key=lambda h: (-len(seen[h]), h))
        cover[holder] = seen[holder]
        left = [cell for cell in left if cell not in seen[holder]]
    return cover


def _search(picture: SudokuPicture) -> Iterator[Reason]:
    """The reasons of backtracking: a try takes a cell that is due, an undo has nothing left to try."""
    choices = [len(candidates(picture.puzzle, cell)) for cell in range(CELLS)]
    stack: list[tuple[int, tuple[int, ...]]] = []  # cells tried, with all digits tried there, the standing one last
    due: tuple[int, tuple[int, ...]] | None = None  # the cell of the last undo, with the digits tried there
    steps = zip(picture.trace("backtracking"), picture.grids("backtracking"), strict=False)
    for number, (step, grid) in enumerate(steps, 1):
        if step.undone is None:
            ((cell, digit),) = step.placed
            fewest = min(choices[other] for other in range(CELLS) if grid[other] == 0)
            spent = due[1] if due and due[0] == cell else ()
            if (due and due[0] != cell) or choices[cell] > fewest or digit in spent:
                raise _unfounded(picture, "backtracking", number, f"{digit} at {cell_name(cell)} is not due")
            yield _try(picture, grid, cell, digit, spent)
            stack.append((cell, (*spent, digit)))
            due = None
        else:
            dead, spent = due or _dead_end(grid, choices)
            if dead is None or set(candidates(grid, dead)) - set(spent):
                raise _unfounded(picture, "backtracking", number, "there is something left to try")
            yield _undo(grid, step.undone, dead, spent)
            due = stack.pop()


def _dead_end(grid: Grid, choices: list[int]) -> tuple[int | None, tuple[int, ...]]:
    """The cell that is due, or one that is as much so, in which nothing fits and nothing was tried."""
    empty = [cell for cell in range(CELLS) if grid[cell] == 0]
    fewest = min((choices[cell] for cell in empty), default=0)
    nothing_fits = (cell for cell in empty if choices[cell] == fewest and not candidates(grid, cell))
    return next(nothing_fits, None), ()


def _try(picture: SudokuPicture, grid: Grid, cell: int, digit: int, spent: tuple[int, ...]) -> Reason:
    fits = candidates(grid, cell)
    left = [other for other in fits if other != digit and other not in spent]
    if len(fits) == 1:
        why = "the only digit that fits"
    else:
        why = f"{listed(fits)} fit"
        why += f", {listed(sorted(spent))} tried before" if spent else ""
        why += f", {listed(left)} left" if left else ", the last one"
    place = f"cell {CELLS - grid.count(0) - picture.clues + 1} of {CELLS - picture.clues}"
    return Reason(cell, "try", f"try {digit} at {cell_name(cell)} ({place}): {why}", weighed=(cell,), spent=spent)


def _undo(grid: Grid, cell: int, dead: int, spent: tuple[int, ...]) -> Reason:
    words, holders = _held_by_peers(grid, dead)
    why = f"its peers hold {words}"
    if spent:
        why = f"{listed(sorted(spent))} tried, and {why}"
    text = f"undo {grid[cell]} at {cell_name(cell)}: nothing is left for {cell_name(dead)}, {why}"
    return Reason(cell, "undo", text, holders, weighed=(dead,), spent=spent, dead=dead)
