"""What several commands share: options, the two forms of an answer, opening a file of lines."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from lol_data.errors import LolDataError, UsageError

T = TypeVar("T")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")]
Seed = Annotated[int, typer.Option(help="Seed; every row is a pure function of settings, seed and its number.")]
DataOption = Annotated[Path | None, typer.Option(help="Data set; by default the newest one under datasets/.")]
Directory = Annotated[Path, typer.Argument(help="A data set.")]


def answer(values: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a command, for a program or for a person."""
    print(json.dumps(values) if as_json else text)


def note(text: str) -> None:
    """Tell a person something on the way."""
    print(text, file=sys.stderr)


def one_of_tasks(task: str, choices: dict[str, T]) -> T:
    """What belongs to the task. Raises UsageError for a task that is none."""
    if task not in choices:
        raise UsageError(f"--task {task}: no such task; choose from {', '.join(choices)}")
    return choices[task]


def write_text(path: Path, text: str) -> None:
    """Put a drawing into a file. Raises LolDataError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LolDataError(f"{path}: cannot be written: {error.strerror}") from error
    note(f"drawn into {path}")


@contextlib.contextmanager
def open_lines(file: Path) -> Iterator[Any]:
    """The lines of a file, or of standard input for `-`. Raises UsageError."""
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        handle = file.open("rb")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    with handle:
        yield handle
