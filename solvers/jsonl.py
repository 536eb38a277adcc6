"""Other people's mazes, a line of JSON each, to traces and paths. The form of a line: see lol_data.mazes_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from lol_data.errors import UsageError
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import (
    LineError,
    MazeLine,
    by_size,
    chunks,
    error_record,
    goal_reachable,
    numbered,
    read_maze,
    read_object,
    read_strategy,
    to_mazes,
)
from lol_data.solvers.tracing import trace_mazes

PROBLEM_FIELDS = ("id", "size", "edges", "start", "goal")


def solve_lines(lines: Iterable[bytes | str], strategy: str | None = None) -> Iterator[dict[str, Any]]:
    """Solve the problem on every line that is not blank; the results come in the order of the lines.

    The strategies are `strategy`, or else the one that a line names, or else all five; each gives one object, the
    problem with "strategy", "trace", "answer" (a shortest path) and "status" = "solved". A goal that cannot be
    reached gives "status" = "no_solution" and neither trace nor answer; a line that cannot be read, one object
    {"line", "id", "error", "status"} with "status" = "malformed". Raises UsageError for an unknown `strategy`.
    """
    if strategy is not None and strategy not in MAZE_STRATEGIES:
        raise UsageError(f"unknown strategy {strategy!r}: choose one of {', '.join(MAZE_STRATEGIES)}")
    return _solve_lines(lines, strategy)


def _solve_lines(lines: Iterable[bytes | str], strategy: str | None) -> Iterator[dict[str, Any]]:
    for chunk in chunks(numbered(lines)):
        results: list[list[dict[str, Any]]] = []  # of every line
        problems: list[tuple[MazeLine, tuple[str, ...]]] = []
        places: list[int] = []  # of the problems among the results
        for number, line in chunk:
            record = None
            try:
                record = read_object(line)
                names = _strategies(record, strategy)
                problems.append((read_maze(record), names))
            except LineError as error:
                results.append([error_record(number, record, error) | {"status": "malformed"}])
            else:
                places.append(len(results))
                results.append([])
        for group in by_size([problem for problem, _ in problems]):
            for k, solved in zip(group, _solve([problems[k] for k in group]), strict=True):
                results[places[k]] = solved
        for result in results:
            yield from result


def _strategies(record: dict[str, Any], strategy: str | None) -> tuple[str, ...]:
    if strategy is not None:
        return (strategy,)
    if record.get("strategy") is not None:
        return (MAZE_STRATEGIES[read_strategy(record)],)
    return MAZE_STRATEGIES


def _solve(problems: list[tuple[MazeLine, tuple[str, ...]]]) -> Iterator[list[dict[str, Any]]]:
    """The objects for problems of one size."""
    mazes = to_mazes([problem for problem, _ in problems])
    reachable = goal_reachable(mazes)
    traced = trace_mazes(mazes.take(np.nonzero(reachable)[0]))
    row = 0  # among the traced ones
    for (problem, names), solvable in zip(problems, reachable.tolist(), strict=True):
        base = {name: problem.record[name] for name in PROBLEM_FIELDS if name in problem.record}
        if not solvable:
            yield [base | {"strategy": name, "status": "no_solution"} for name in names]
            continue
        answer = traced.answer[row].tolist()
        yield [
            base | {"strategy": name, "trace": traced.traces[name][row].tolist(), "answer": answer, "status": "solved"}
            for name in names
        ]
        row += 1
