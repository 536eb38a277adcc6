"""Commands on other people's puzzles and traces, JSONL in and out: solve, check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lol_data.commands.common import one_of_tasks, open_lines
from lol_data.errors import UsageError


def solve(
    file: Annotated[Path, typer.Argument(help="JSONL problems, or sudokus of 81 characters; - is stdin.")] = Path("-"),
    task: Annotated[str, typer.Option(help="maze or sudoku.")] = "maze",
    strategy: Annotated[str | None, typer.Option(help="One strategy; by default the line's own, or all.")] = None,
) -> None:
    """Trace other people's problems: one JSON object per problem and strategy.

    Example: lol-data solve mazes.jsonl --strategy bfs
    """
    from lol_data.jsonl import to_line
    from lol_data.solvers import maze_jsonl, sudoku_jsonl

    solve_lines = one_of_tasks(task, {"maze": maze_jsonl.solve_lines, "sudoku": sudoku_jsonl.solve_lines})
    with open_lines(file) as lines:
        for record in solve_lines(lines, strategy):
            print(to_line(record))


def check(
    file: Annotated[Path, typer.Argument(help="JSONL outputs; - is standard input.")] = Path("-"),
    task: Annotated[str, typer.Option(help="maze or sudoku.")] = "maze",
    workers: Annotated[int | None, typer.Option(help="Processes; by default as many as there are CPUs.")] = None,
) -> None:
    """Judge other people's traces by the rules: one JSON verdict per line; a bad line gets an error and is passed over.

    Example: lol-data check outputs.jsonl
    """
    from lol_data.evaluators import maze_jsonl, sudoku_jsonl
    from lol_data.evaluators.parallel_lines import judge_lines
    from lol_data.shards.engines import default_workers

    check_lines = one_of_tasks(task, {"maze": maze_jsonl.check_lines, "sudoku": sudoku_jsonl.check_lines})
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}; it must be 1 or more")
    with open_lines(file) as lines:
        for piece in judge_lines(check_lines, lines, workers or default_workers()):
            sys.stdout.write(piece)
