"""Other people's sudokus, a line each, to traces and answers. The form of a line: see lol_data.sudokus_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.jsonl import Record, answer_lines
from lol_data.solvers.sudoku_count import count_solutions
from lol_data.solvers.sudoku_grid import has_conflict
from lol_data.solvers.sudoku_tracing import trace_sudokus
from lol_data.sudokus import CELLS, DIGIT, SUDOKU_STRATEGIES, UNDO, Sudokus
from lol_data.sudokus_jsonl import SudokuLine, grid_text, read_line, read_sudoku, read_sudoku_strategy, steps_of

MOST_TRIES = 10_000  # of backtracking on a given puzzle; a data set's traces have far fewer
MOST_SOLUTIONS = 100  # counted
PROBLEM_FIELDS = ("id", "puzzle")
_Problem = tuple[SudokuLine, tuple[str, ...]]  # with the strategies


def solve_lines(lines: Iterable[bytes | str], strategy: str | None = None) -> Iterator[Record]:
    """Solve the puzzle on every line that is not blank; the results come in the order of the lines.

    The strategies are `strategy`, or else the one that a line names, or else all five; each gives one object, the
    problem with "strategy" and "status":

        solved              with "steps" and "answer"
        stuck               the strategy alone does not fill the grid: with "steps", the number of "placements" that
                            stand at their end, and the grid as it is then as "answer". Backtracking is stuck, with an
                            "error" that says so, when it needs more than MOST_TRIES tries.
        multiple_solutions  with "solutions", their number, MOST_SOLUTIONS standing for that many or more
        no_solution
        conflict            the givens have a digit twice in a unit

    A line that cannot be read gives one object {"line", "id", "error", "status"} with "status" = "malformed". Raises
    UsageError for an unknown `strategy`.
    """
    if strategy is not None and strategy not in SUDOKU_STRATEGIES:
        raise UsageError(f"unknown strategy {strategy!r}: choose one of {', '.join(SUDOKU_STRATEGIES)}")

    def understand(_: int, record: Record) -> _Problem:
        names = _strategies(record, strategy)
        return read_sudoku(record), names

    return answer_lines(lines, read_line, understand, _solve, {"status": "malformed"})


def _strategies(record: Record, strategy: str | None) -> tuple[str, ...]:
    if strategy is not None:
        return (strategy,)
    if record.get("strategy") is not None:
        return (read_sudoku_strategy(record),)
    return SUDOKU_STRATEGIES


def _solve(problems: list[_Problem]) -> Iterator[list[Record]]:
    """The objects for every problem."""
    joined = bytearray().join(problem.puzzle for problem, _ in problems)  # read-only, kernels would compile anew
    puzzles = np.frombuffer(joined, np.uint8).reshape(-1, CELLS)
    conflict = has_conflict(puzzles)
    counts, solutions = count_solutions(puzzles, MOST_SOLUTIONS)
    unique = np.flatnonzero(counts == 1)
    traced = trace_sudokus(Sudokus(unique.astype(np.uint64), puzzles[unique], solutions[unique]), MOST_TRIES)
    row = 0  # among the traced ones
    for (problem, names), bad, count in zip(problems, conflict.tolist(), counts.tolist(), strict=True):
        base = {name: problem.record[name] for name in PROBLEM_FIELDS if name in problem.record}
        if count == 1:
            puzzle = traced.sudokus.puzzle[row]
            yield [base | {"strategy": name} | _outcome(name, puzzle, traced.traces[name][row]) for name in names]
            row += 1
        elif count > 1:
            yield [base | {"strategy": name, "status": "multiple_solutions", "solutions": count} for name in names]
        else:
            yield [base | {"strategy": name, "status": "conflict" if bad else "no_solution"} for name in names]


def _outcome(strategy: str, puzzle: NDArray[np.uint8], symbols: NDArray[np.uint8]) -> Record:
    """What one trace comes to."""
    grid, values = puzzle.copy(), symbols.tolist()
    for before, symbol in pairwise(values):
        if before == UNDO:
            grid[symbol] = 0
        elif before < CELLS and DIGIT < symbol <= DIGIT + 9:
            grid[before] = symbol - DIGIT
    outcome: Record = {"steps": steps_of(strategy, symbols), "answer": grid_text(grid)}
    if grid.all():
        return outcome | {"status": "solved"}
    outcome |= {"status": "stuck", "placements": int(np.count_nonzero(grid) - np.count_nonzero(puzzle))}
    if strategy == "backtracking":  # the puzzle has a solution, so only the limit can have ended the search
        outcome["error"] = f"gave up after {MOST_TRIES} tries"
    return outcome
