"""Other people's mazes, a line of JSON each, to traces and paths. The form of a line: see lol_data.mazes_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lol_data.errors import UsageError
from lol_data.jsonl import Record, answer_lines, read_object
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import MazeLine, by_size, goal_reachable, read_maze, read_strategy, to_mazes
from lol_data.solvers.tracing import trace_mazes

PROBLEM_FIELDS = ("id", "size", "edges", "start", "goal")
_Problem = tuple[MazeLine, tuple[str, ...]]  # with the strategies


def solve_lines(lines: Iterable[bytes | str], strategy: str | None = None) -> Iterator[Record]:
    """Solve the problem on every line that is not blank; the results come in the order of the lines.

    The strategies are `strategy`, or else the one that a line names, or else all five; each gives one object, the
    problem with "strategy", "trace", "answer" (a shortest path) and "status" = "solved". A goal that cannot be
    reached gives "status" = "no_solution" and neither trace nor answer; a line that cannot be read, one object
    {"line", "id", "error", "status"} with "status" = "malformed". Raises UsageError for an unknown `strategy`.
    """
    if strategy is not None and strategy not in MAZE_STRATEGIES:
        raise UsageError(f"unknown strategy {strategy!r}: choose one of {', '.join(MAZE_STRATEGIES)}")

    def understand(_: int, record: Record) -> _Problem:
        names = _strategies(record, strategy)
        return read_maze(record), names

    return answer_lines(lines, read_object, understand, _solve, {"status": "malformed"})


def _strategies(record: Record, strategy: str | None) -> tuple[str, ...]:
    if strategy is not None:
        return (strategy,)
    if record.get("strategy") is not None:
        return (MAZE_STRATEGIES[read_strategy(record)],)
    return MAZE_STRATEGIES


def _solve(problems: list[_Problem]) -> list[list[Record]]:
    """The objects for every problem."""
    answers: list[list[Record]] = [[] for _ in problems]
    for group in by_size([problem for problem, _ in problems]):
        for k, solved in zip(group, _solve_one_size([problems[k] for k in group]), strict=True):
            answers[k] = solved
    return answers


def _solve_one_size(problems: list[_Problem]) -> Iterator[list[Record]]:
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
