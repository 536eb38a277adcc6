"""Other people's maze outputs, a line of JSON each, to verdicts. The form of a line: see lol_data.mazes_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lol_data.evaluators.maze_rules import judge_mazes
from lol_data.mazes_jsonl import (
    LineError,
    MazeLine,
    by_size,
    chunks,
    error_record,
    numbered,
    read_cells,
    read_id,
    read_maze,
    read_object,
    read_strategy,
    to_mazes,
)
from lol_data.ragged import Ragged


@dataclass(frozen=True, slots=True)
class _Output:
    """One readable line."""

    problem: MazeLine
    asked: int
    trace: list[int]
    answer: list[int]


def check_lines(lines: Iterable[bytes | str]) -> Iterator[dict[str, Any]]:
    """One object per line that is not blank, in the order of the lines, whatever is on them.

    A line that can be read gives {"line", "id", "strategy"} and the verdicts of Verdicts.row; any other one gives
    {"line", "id", "error"}, the error being one line of text. Lines are taken in and judged by the thousand.
    """
    for chunk in chunks(numbered(lines)):
        results: list[dict[str, Any]] = []
        outputs: list[_Output] = []
        places: list[int] = []  # of the outputs among the results
        for number, line in chunk:
            record = None
            try:
                record = read_object(line)
                output = _read_output(record)
            except LineError as error:
                results.append(error_record(number, record, error))
            else:
                places.append(len(results))
                outputs.append(output)
                results.append({"line": number, "id": read_id(record)})
        for group in by_size([output.problem for output in outputs]):
            for k, verdict in zip(group, _judge([outputs[k] for k in group]), strict=True):
                results[places[k]] |= verdict
        yield from results


def _read_output(record: dict[str, Any]) -> _Output:
    problem, asked = read_maze(record), read_strategy(record)
    return _Output(problem, asked, read_cells(record, "trace"), read_cells(record, "answer"))


def _judge(outputs: list[_Output]) -> Iterator[dict[str, Any]]:
    """Verdicts on outputs for problems of one size, as plain objects."""
    verdicts = judge_mazes(
        to_mazes([output.problem for output in outputs]),
        np.arange(len(outputs)),
        np.array([output.asked for output in outputs]),
        Ragged.from_rows([output.trace for output in outputs], np.int16),
        Ragged.from_rows([output.answer for output in outputs], np.int16),
    )
    for verdict in verdicts.rows():
        yield {"strategy": verdict.pop("asked"), **verdict}
