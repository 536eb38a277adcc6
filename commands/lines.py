"""Commands on other people's puzzles and traces, JSONL in and out: solve, check."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from lol_data.commands.common import one_of_tasks, open_lines, write_text
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
    report: Annotated[Path | None, typer.Option(help="Write one HTML file with rates and the worst outputs.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No verdicts on stdout, only the report.")] = False,
) -> None:
    """Judge other people's traces by the rules: one JSON verdict per line; a bad line gets an error and is passed over.

    Example: lol-data check outputs.jsonl --report outputs.html > verdicts.jsonl
    """
    from lol_data.evaluators import maze_jsonl, sudoku_jsonl
    from lol_data.evaluators.parallel_lines import judge_lines, nothing
    from lol_data.shards.engines import default_workers

    check_lines = one_of_tasks(task, {"maze": maze_jsonl.check_lines, "sudoku": sudoku_jsonl.check_lines})
    if workers is not None and workers < 1:
        raise UsageError(f"--workers is {workers}; it must be 1 or more")
    if quiet and report is None:
        raise UsageError("--quiet without --report would say nothing; name a file with --report")
    total: Any = None
    summarise: Callable[..., Any] = nothing
    if report:
        from lol_data.report.line_tally import Tally

        if not report.parent.is_dir():  # said before an hour of judging, not behind it
            raise UsageError(f"{report}: there is no folder {report.parent}")
        total, summarise = Tally(), Tally.of
    with open_lines(file) as lines:
        for piece in judge_lines(check_lines, lines, workers or default_workers(), summarise):
            if total:
                total.add(piece.summary)
            if not quiet:
                sys.stdout.write(piece.text)
    if report:
        from lol_data.report.lines import lines_page

        write_text(report, lines_page(total, task, file.name if str(file) != "-" else "standard input"))
