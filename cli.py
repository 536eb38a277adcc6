"""The command line: what `lol-data` is called with, and how it ends. The commands themselves are in `commands/`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from lol_data import __version__
from lol_data.commands import data, evaluation, lines, models, report
from lol_data.errors import LolDataError

app = typer.Typer(
    name="lol-data",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Checked search traces, Library-of-Layers models, and an evaluation that replays the rules.\n\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 damage found, 4 refused (locked, settings changed), 130 interrupted.",
)
app.command()(models.quickstart)
COMMANDS: dict[str, list[Callable[..., None]]] = {
    "Data sets": [data.gen_maze, data.gen_sudoku, data.verify, data.stats, data.show, data.export],
    "Other people's problems and traces": [lines.solve, lines.check],
}
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.command(rich_help_panel="Models")(models.train)
app.command(rich_help_panel="Models")(models.publish)
app.command(name="eval", rich_help_panel="Models")(evaluation.evaluate)
for command in (evaluation.intervene, evaluation.compare, report.diagnose, report.report):
    app.command(rich_help_panel="Models")(command)


def main() -> None:
    """Run the command line; expected errors end in one line and their exit code."""
    # Where other programs use the same cores, OpenMP's threads (libgomp, under torch) would lose their time waiting for
    # each other in a busy loop: 2.2 s a training step against 0.9 s. On a quiet machine it makes no difference.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        app()
    except LolDataError as error:
        print(f"lol-data: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("lol-data: interrupted; the same command goes on where it stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"lol-data {__version__}")
        raise typer.Exit


if __name__ == "__main__":
    main()
