"""Other people's sudoku outputs, a line of JSON each, to verdicts. The form of a line: see lol_data.sudokus_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.sudoku_board import given_fault
from lol_data.evaluators.sudoku_rules import judge_sudokus
from lol_data.mazes_jsonl import LineError, chunks, error_record, numbered, read_id, read_object
from lol_data.ragged import Ragged
from lol_data.sudokus import SUDOKU_STRATEGIES, Sudokus
from lol_data.sudokus_jsonl import parse_steps, read_sudoku, read_sudoku_strategy


@dataclass(frozen=True, slots=True)
class _Output:
    """One readable line. puzzle: 81 bytes. trace: symbols. answer: digits, 0 for a character that is none."""

    puzzle: bytes
    asked: int
    trace: NDArray[np.uint8]
    answer: list[int]


def check_lines(lines: Iterable[bytes | str]) -> Iterator[dict[str, Any]]:
    """One object per line that is not blank, in the order of the lines, whatever is on them.

    A line that can be read gives {"line", "id", "strategy"} and the verdicts of Verdicts.row; any other one, also one
    whose givens break the rules or whose steps do not have the form of the strategy, gives {"line", "id", "error"},
    the error being one line of text. Lines are taken in and judged by the thousand.
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
        for place, verdict in zip(places, _judge(outputs), strict=True):
            results[place] |= verdict
        yield from results


def _read_output(record: dict[str, Any]) -> _Output:
    puzzle = read_sudoku(record).puzzle
    fault = given_fault(np.frombuffer(puzzle, np.uint8))
    if fault:
        raise LineError(f"conflict: {fault}")
    strategy = read_sudoku_strategy(record)
    if "steps" not in record:
        raise LineError("steps is missing")
    trace = parse_steps(strategy, record["steps"])
    if isinstance(trace, str):
        raise LineError(trace)
    return _Output(puzzle, SUDOKU_STRATEGIES.index(strategy), trace, _read_answer(record))


def _read_answer(record: dict[str, Any]) -> list[int]:
    """Any string will do: one of another length, or with other characters than digits, is a wrong answer."""
    if "answer" not in record:
        raise LineError("answer is missing")
    answer = record["answer"]
    if not isinstance(answer, str):
        raise LineError("answer must be a string of 81 digits")
    return [max(0, "0123456789".find(character)) for character in answer]


def _judge(outputs: list[_Output]) -> Iterator[dict[str, Any]]:
    """Verdicts as plain objects."""
    count = len(outputs)
    puzzle = np.frombuffer(b"".join(output.puzzle for output in outputs), np.uint8).reshape(count, 81)
    verdicts = judge_sudokus(
        Sudokus(np.arange(count, dtype=np.uint64), puzzle, np.zeros_like(puzzle)),
        np.arange(count),
        np.array([output.asked for output in outputs], np.int64),
        Ragged.from_rows([output.trace for output in outputs]),
        Ragged.from_rows([output.answer for output in outputs]),
    )
    for verdict in verdicts.rows():
        yield {"strategy": verdict.pop("asked"), **verdict}
