"""What there is to draw of one sudoku: its givens, its solution, and the steps of its traces, replayed.

Cells, rows, columns and boxes are counted from 0 in numbers and from 1 in words: cell 33 is r4c7, unit 11 is column 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lol_data.errors import DamageError, UsageError
from lol_data.sudokus import CELLS, TracedSudokus
from lol_data.sudokus_jsonl import steps_of

Grid = tuple[int, ...]  # 81 digits, 0 for an empty cell

CELLS_OF: tuple[tuple[int, ...], ...] = (
    *(tuple(range(9 * row, 9 * row + 9)) for row in range(9)),
    *(tuple(range(column, CELLS, 9)) for column in range(9)),
    *(tuple(27 * band + 3 * stack + k // 3 * 9 + k % 3 for k in range(9)) for band in range(3) for stack in range(3)),
)
UNITS_OF = tuple((cell // 9, 9 + cell % 9, 18 + cell // 27 * 3 + cell % 9 // 3) for cell in range(CELLS))
PEERS = tuple(
    tuple(dict.fromkeys(peer for unit in UNITS_OF[cell] for peer in CELLS_OF[unit] if peer != cell))
    for cell in range(CELLS)
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace. Only a wave of propagation places more than one digit, only an undo places none.

    placed: (cell, digit). unit: the one that a hidden single or cross-hatching names. undone: the cell of an undo.
    """

    placed: tuple[tuple[int, int], ...] = ()
    unit: int | None = None
    undone: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """A digit in a cell, from step `step` on, up to the step that undoes it."""

    cell: int
    digit: int
    step: int
    undone: int | None = None

    def stands_before(self, step: int) -> bool:
        """Is the digit there when step `step` is about to be made?"""
        return self.step < step and (self.undone is None or step <= self.undone)


@dataclass(frozen=True, slots=True)
class SudokuPicture:
    """One sudoku with its traces; steps are counted from 1.

    Raises DamageError for a puzzle or a solution that breaks the rules, and for a trace that fills a cell twice, places
    a digit where a peer holds it, undoes what was not tried last, or fills the grid otherwise than the solution does.
    """

    id: int
    puzzle: Grid
    solution: Grid
    traces: dict[str, tuple[Step, ...]]

    def __post_init__(self) -> None:
        for what, grid in (("puzzle", self.puzzle), ("solution", self.solution)):
            if len(grid) != CELLS or any(not 0 <= digit <= 9 for digit in grid):
                raise DamageError(f"{self.name}: the {what} is not {CELLS} digits")
            for unit, cells in enumerate(CELLS_OF):
                digits = [grid[cell] for cell in cells if grid[cell]]
                if len(digits) != len(set(digits)):
                    raise DamageError(f"{self.name}: the {what} has a digit twice in {unit_name(unit)}")
        for cell, (given, digit) in enumerate(zip(self.puzzle, self.solution, strict=True)):
            if digit == 0 or given not in (0, digit):
                raise DamageError(f"{self.name}: the solution has {digit} at {cell_name(cell)}, the puzzle {given}")
        for strategy in self.traces:
            end = self.grids(strategy)[-1]
            if 0 not in end and end != self.solution:
                raise DamageError(f"{self.name}: {strategy} fills the grid otherwise than the solution does")

    @property
    def name(self) -> str:
        """Such as "sudoku 17"."""
        return f"sudoku {self.id}"

    @property
    def clues(self) -> int:
        """Number of givens."""
        return CELLS - self.puzzle.count(0)

    def trace(self, strategy: str) -> tuple[Step, ...]:
        """The trace of a strategy. Raises UsageError for one that the sudoku has no trace of."""
        if strategy not in self.traces:
            raise UsageError(f"strategy {strategy!r} is unknown; choose from {', '.join(self.traces)}")
        return self.traces[strategy]

    def check_step(self, strategy: str | None, step: int | None) -> None:
        """Raise UsageError for a step that there is none of; no step at all is none that is missing."""
        if step is None:
            return
        if strategy is None:
            raise UsageError(f"step {step} of which strategy? choose from {', '.join(self.traces)}")
        steps = len(self.trace(strategy))
        if not 1 <= step <= steps:
            raise UsageError(f"step {step} does not exist; {strategy} has {steps} steps, counted from 1")

    def grids(self, strategy: str) -> list[Grid]:
        """The grid before each step, and behind the last one: one more than there are steps."""
        grid, grids, tried = list(self.puzzle), [self.puzzle], []
        for number, step in enumerate(self.trace(strategy), 1):
            where = f"{self.name}: {strategy} step {number}"
            for cell, digit in step.placed:
                if grid[cell]:
                    raise DamageError(f"{where} places {digit} at {cell_name(cell)}, where {grid[cell]} stands")
                if digit not in candidates(grid, cell):
                    raise DamageError(f"{where} places {digit} at {cell_name(cell)}, where a peer holds it")
                grid[cell] = digit
                tried.append(cell)
            if step.undone is not None:
                if not tried or tried.pop() != step.undone:
                    raise DamageError(f"{where} undoes {cell_name(step.undone)}, which was not tried last")
                grid[step.undone] = 0
            grids.append(tuple(grid))
        return grids

    def placements(self, strategy: str) -> list[Placement]:
        """Every placement of a trace, in the order of the steps, those that are undone later included."""
        made: list[Placement] = []
        standing: dict[int, int] = {}  # cell to index in made
        for number, step in enumerate(self.trace(strategy), 1):
            for cell, digit in step.placed:
                standing[cell] = len(made)
                made.append(Placement(cell, digit, number))
            if step.undone is not None:
                index = standing.pop(step.undone)
                made[index] = Placement(step.undone, made[index].digit, made[index].step, number)
        return made

    def count(self, strategy: str) -> str:
        """How long a trace is, such as "51 steps" or "76 tries, 25 undos"."""
        trace = self.trace(strategy)
        undos = sum(step.undone is not None for step in trace)
        if strategy == "backtracking":
            return f"{plural(len(trace) - undos, 'try', 'tries')}, {plural(undos, 'undo')}"
        return plural(len(trace), step_word(strategy))


def sudoku_picture_of(traced: TracedSudokus, row: int) -> SudokuPicture:
    """Row `row` of a batch. Raises UsageError when there is no such row, DamageError as SudokuPicture does."""
    if not 0 <= row < len(traced):
        raise UsageError(f"row {row} does not exist; there are {len(traced)} rows, counted from 0")
    number = int(traced.sudokus.id[row])
    traces = {}
    for strategy, trace in traced.traces.items():
        try:
            traces[strategy] = tuple(_step(strategy, step) for step in steps_of(strategy, trace[row]))
        except ValueError as error:
            raise DamageError(f"sudoku {number}: {strategy}: {error}") from None
    puzzle, solution = (tuple(grid[row].tolist()) for grid in (traced.sudokus.puzzle, traced.sudokus.solution))
    return SudokuPicture(number, puzzle, solution, traces)


def _step(strategy: str, step: Any) -> Step:
    """From the form of lol_data.sudokus_jsonl."""
    if strategy == "propagation":
        return Step(tuple((cell, digit) for cell, digit in step))
    if strategy == "backtracking":
        kind, cell, *digit = step
        return Step(undone=cell) if kind == "undo" else Step(((cell, *digit),))
    *unit, cell, digit = step
    return Step(((cell, digit),), *unit)


def candidates(grid: Sequence[int], cell: int) -> tuple[int, ...]:
    """The digits that no peer of a cell holds, ascending."""
    held = {grid[peer] for peer in PEERS[cell]}
    return tuple(digit for digit in range(1, 10) if digit not in held)


def step_word(strategy: str) -> str:
    """What a step of the strategy is called: "step", or "wave"."""
    return "wave" if strategy == "propagation" else "step"


def cell_name(cell: int) -> str:
    """Such as "r4c7"."""
    return f"r{cell // 9 + 1}c{cell % 9 + 1}"


def unit_name(unit: int) -> str:
    """Such as "column 3"."""
    return f"{('row', 'column', 'box')[unit // 9]} {unit % 9 + 1}"


def listed(things: Iterable[object]) -> str:
    """Such as "2 4 7"."""
    return " ".join(map(str, things))


def plural(count: int, one: str, many: str | None = None) -> str:
    """Such as "1 step" and "2 steps"."""
    return f"{count} {one if count == 1 else many or one + 's'}"
