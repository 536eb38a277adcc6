"""Sudoku problems and outputs as lines of JSON, the form that is shared with other people's programs.

    {"id", "puzzle", "strategy", "steps": [...], "answer"}

`puzzle` and `answer` are 81 characters, `.` or `0` for an empty cell. A step is, by strategy,

    naked_single                   [cell, digit]
    hidden_single, cross_hatching  [unit, cell, digit]
    propagation                    a wave, [[cell, digit], ...]
    backtracking                   ["try", cell, digit] or ["undo", cell]

with the numbers of lol_data.sudokus. Reading a line either gives what it says or raises LineError with one clear line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.jsonl import LineError, Record, read_field, read_id, read_object
from lol_data.sudokus import CELLS, DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE

UNITS = 27
_EMPTY = ".0"


@dataclass(frozen=True, slots=True)
class SudokuLine:
    """One problem: the object as read, and its puzzle, 81 bytes 0 to 9, which may be any, conflicts included."""

    record: Record
    puzzle: bytes


def read_line(line: bytes | str) -> Record:
    """The object on a line; a line that is no JSON object is taken for the puzzle itself. Raises LineError."""
    head = line.lstrip()[:1]
    if head in ("{", b"{", "[", b"[", '"', b'"'):
        return read_object(line)
    try:
        return {"puzzle": (line if isinstance(line, str) else line.decode("utf-8")).strip()}
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8: byte {error.start} of the line") from None


def read_sudoku(record: Record) -> SudokuLine:
    """The problem in an object. Raises LineError."""
    read_id(record)
    return SudokuLine(record, read_grid(record, "puzzle"))


def read_grid(record: Record, name: str) -> bytes:
    """The 81 digits, 0 for an empty cell, of a field of 81 characters. Raises LineError."""
    text = read_field(record, name)
    if not isinstance(text, str):
        raise LineError(f"{name} must be a string of {CELLS} characters")
    if len(text) != CELLS:
        raise LineError(f"{name} has {len(text)} characters, not {CELLS}")
    for cell, character in enumerate(text):
        if character not in "123456789" + _EMPTY:
            raise LineError(f"{name} has {character!a} at character {cell}; only 1 to 9, . and 0 may stand there")
    return bytes(0 if character in _EMPTY else ord(character) - ord("0") for character in text)


def read_sudoku_strategy(record: Record) -> str:
    """The strategy in an object. Raises LineError."""
    name = record.get("strategy")
    if not isinstance(name, str) or name not in SUDOKU_STRATEGIES:
        shown = ascii(name) if isinstance(name, str) and len(name) <= 40 else "that"
        given = f", not {shown}" if name is not None else ""
        raise LineError(f"strategy must be one of {', '.join(SUDOKU_STRATEGIES)}{given}")
    return name


def grid_text(digits: NDArray[np.uint8]) -> str:
    """A grid, uint8 (81,), as 81 characters, `.` for an empty cell."""
    return "".join(".123456789"[digit] for digit in digits.tolist())


def steps_of(strategy: str, symbols: NDArray[np.uint8]) -> list[Any]:
    """The steps of a trace. Raises ValueError for symbols that are no trace of the strategy."""
    values = symbols.tolist()
    steps: list[Any]
    if strategy == "propagation":
        steps = _waves_of(values)
    elif strategy == "backtracking":
        pairs = zip(values[::2], values[1::2], strict=False)
        steps = [["undo", b] if a == UNDO else ["try", a, b - DIGIT] for a, b in pairs]
    elif strategy == "naked_single":
        steps = [[cell, digit - DIGIT] for cell, digit in zip(values[::2], values[1::2], strict=False)]
    else:
        triples = zip(values[::3], values[1::3], values[2::3], strict=False)
        steps = [[unit - UNIT, cell, digit - DIGIT] for unit, cell, digit in triples]
    back = parse_steps(strategy, steps)
    if isinstance(back, str) or not np.array_equal(back, symbols):
        raise ValueError(f"not the symbols of a {strategy} trace")
    return steps


def parse_steps(strategy: str, steps: Any) -> NDArray[np.uint8] | str:
    """The symbols of a list of steps, uint8, or the reason why they are none, one line that names the step.

    Says only whether the steps have the form of the strategy, not whether they obey its rules: cross_hatching may name
    a unit that is no box, and a wave may be empty.
    """
    if not isinstance(steps, list):
        return "steps must be a list"
    parse = _PARSERS[strategy]
    symbols: list[int] = []
    for k, step in enumerate(steps):
        try:
            parse(step, symbols)
        except LineError as error:
            return f"steps[{k}]: {error}"
    return np.array(symbols, np.uint8)


def _waves_of(values: list[int]) -> list[list[list[int]]]:
    waves: list[list[list[int]]] = []
    begin = 0
    while WAVE in values[begin:]:
        end = values.index(WAVE, begin)
        pairs = zip(values[begin:end:2], values[begin + 1 : end : 2], strict=False)
        waves.append([[cell, digit - DIGIT] for cell, digit in pairs])
        begin = end + 1
    return waves


def _placement(step: Any, symbols: list[int]) -> None:
    cell, digit = _fields(step, "[cell, digit]", 2)
    symbols += _within("cell", cell, 0, CELLS - 1), DIGIT + _within("digit", digit, 1, 9)


def _unit_placement(step: Any, symbols: list[int]) -> None:
    unit, *placement = _fields(step, "[unit, cell, digit]", 3)
    symbols.append(UNIT + _within("unit", unit, 0, UNITS - 1))
    _placement(placement, symbols)


def _wave(step: Any, symbols: list[int]) -> None:
    if not isinstance(step, list):
        raise LineError("a wave must be a list of [cell, digit]")
    for k, placement in enumerate(step):
        try:
            _placement(placement, symbols)
        except LineError as error:
            raise LineError(f"placement {k} of the wave: {error}") from None
    symbols.append(WAVE)


def _move(step: Any, symbols: list[int]) -> None:
    form = '["try", cell, digit] or ["undo", cell]'
    kind = step[0] if isinstance(step, list) and step else None
    if kind == "undo":
        _, cell = _fields(step, form, 2)
        symbols += UNDO, _within("cell", cell, 0, CELLS - 1)
    elif kind == "try":
        _, *placement = _fields(step, form, 3)
        _placement(placement, symbols)
    else:
        raise LineError(f"a step must be {form}")


_PARSERS: dict[str, Callable[[Any, list[int]], None]] = {
    "naked_single": _placement,
    "hidden_single": _unit_placement,
    "cross_hatching": _unit_placement,
    "propagation": _wave,
    "backtracking": _move,
}


def _fields(step: Any, form: str, count: int) -> list[Any]:
    if not isinstance(step, list) or len(step) != count:
        raise LineError(f"a step must be {form}")
    return step


def _within(name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int:  # True and 3.0 are no integers here
        raise LineError(f"{name} must be an integer")
    if not low <= value <= high:
        shown = value if abs(value) < 10**18 else "a huge number"
        raise LineError(f"{name} {shown} is not in {low} to {high}")
    return value
