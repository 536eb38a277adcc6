"""Other people's sudoku outputs, a line of JSON each, to verdicts. The form of a line: see lol_data.sudokus_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.plain_lines import (
    CLOSE,
    HEAD,
    OPEN,
    STRING,
    join_lines,
    line_tokens,
    read_head,
    read_plain_id,
    word_code,
    word_table,
)
from lol_data.evaluators.sudoku_board import UNITS, given_fault, read_givens
from lol_data.evaluators.sudoku_rules import BACKTRACKING, NAKED_SINGLE, PROPAGATION, judge_sudokus
from lol_data.evaluators.verdicts import Verdicts
from lol_data.jit import njit
from lol_data.jsonl import LineError, NumberedLine, Record, answer_lines, read_field, read_id, read_object
from lol_data.ragged import Ragged
from lol_data.sudokus import CELLS, DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE, Sudokus
from lol_data.sudokus_jsonl import parse_steps, read_sudoku, read_sudoku_strategy

_FIELDS = (*HEAD, "puzzle", "steps", "answer")
_PUZZLE, _STEPS, _ANSWER = range(len(HEAD), len(_FIELDS))
_NAMES, _STRATEGIES, _MOVES = word_table(_FIELDS), word_table(SUDOKU_STRATEGIES), word_table(("try", "undo"))
_TRY_MOVE, _UNDO_MOVE = range(2)
_ZERO, _NO_DIGIT = ord("0"), ord(".")


@dataclass(frozen=True, slots=True)
class _Output:
    """One readable line. puzzle: 81 bytes. trace: symbols. answer: digits, 0 for a character that is none."""

    line: int
    id: str | int | None
    puzzle: bytes
    asked: int
    trace: NDArray[np.uint8]
    answer: list[int]


def check_lines(lines: Iterable[bytes | str], first: int = 1) -> Iterator[Record]:
    """One object per line that is not blank, in the order of the lines, whatever is on them.

    A line that can be read gives {"line", "id", "strategy"} and the verdicts of Verdicts.row; any other one, also one
    whose givens break the rules or whose steps do not have the form of the strategy, gives {"line", "id", "error"},
    the error being one line of text. Lines are taken in and judged by the hundred. first: the number of
    the first line.
    """
    return answer_lines(lines, read_object, _understand, _judge, {}, _judge_plain, first)


def _understand(number: int, record: Record) -> _Output:
    puzzle = read_sudoku(record).puzzle
    fault = given_fault(np.frombuffer(puzzle, np.uint8))
    if fault:
        raise LineError(f"conflict: {fault}")
    strategy = read_sudoku_strategy(record)
    trace = parse_steps(strategy, read_field(record, "steps"))
    if isinstance(trace, str):
        raise LineError(trace)
    asked = SUDOKU_STRATEGIES.index(strategy)
    return _Output(number, read_id(record), puzzle, asked, trace, _read_answer(record))


def _read_answer(record: Record) -> list[int]:
    """Any string will do: one of another length, or with other characters than digits, is a wrong answer."""
    answer = read_field(record, "answer")
    if not isinstance(answer, str):
        raise LineError("answer must be a string of 81 digits")
    return [max(0, "0123456789".find(character)) for character in answer]


def _judge(outputs: list[_Output]) -> Iterator[list[Record]]:
    """The object for every output, in a list of its own."""
    verdicts = _verdicts(
        # No bytes: for read-only arrays kernels compile anew.
        np.frombuffer(bytearray().join(output.puzzle for output in outputs), np.uint8).reshape(-1, CELLS),
        np.array([output.asked for output in outputs]),
        Ragged.from_rows([output.trace for output in outputs]),
        Ragged.from_rows([output.answer for output in outputs]),
    )
    for answer in verdicts.answers([output.line for output in outputs], [output.id for output in outputs]):
        yield [answer]


def _judge_plain(chunk: list[NumberedLine]) -> list[list[Record] | None]:
    """The same for plain lines, None for the others."""
    answers: list[list[Record] | None] = [None] * len(chunk)
    text, offsets = join_lines(chunk)
    plain, asked, puzzle, ids, trace, answer = _read_plain(
        np.frombuffer(text, np.uint8), offsets, _NAMES, _STRATEGIES, _MOVES
    )
    rows = np.flatnonzero(plain)
    verdicts = _verdicts(puzzle[rows], asked[rows], Ragged(*trace).take(rows), Ragged(*answer).take(rows))
    places = rows.tolist()
    names = [read_plain_id(text, *span) for span in ids[rows].tolist()]
    for k, found in zip(places, verdicts.answers([chunk[k][0] for k in places], names), strict=True):
        answers[k] = [found]
    return answers


def _verdicts(puzzle: NDArray[np.uint8], asked: NDArray[np.integer], traces: Ragged, answers: Ragged) -> Verdicts:
    """Verdicts on one output for each puzzle."""
    rows = np.arange(len(puzzle))
    return judge_sudokus(Sudokus(rows.astype(np.uint64), puzzle, np.zeros_like(puzzle)), rows, asked, traces, answers)


@njit
def _read_plain(text, offsets, names, strategies, moves):
    """What stands on every line: plain, bool (N,), whether it could be read here, else the rest means nothing.

    Then the code of the strategy, uint8 (N,); puzzle, uint8 (N, 81); where the id stands in the text, int64 (N, 2);
    traces and answers, each as values, uint8, and offsets.
    """
    count = len(offsets) - 1
    longest = np.max(offsets[1:] - offsets[:-1]) + 1
    kinds, begins, ends = np.empty((3, longest), np.int32)
    fields = np.empty((len(names), 2), np.int64)
    used, candidates = np.empty(UNITS, np.uint16), np.empty(CELLS, np.uint16)
    plain, asked, ids = np.zeros(count, np.bool_), np.zeros(count, np.uint8), np.zeros((count, 2), np.int64)
    puzzle = np.zeros((count, CELLS), np.uint8)
    traces, answers = np.empty((2, len(text) + 1), np.uint8)
    trace_offsets, answer_offsets = np.zeros((2, count + 1), np.int64)
    for k in range(count):
        trace_offsets[k + 1], answer_offsets[k + 1] = trace_offsets[k], answer_offsets[k]
        line = text[offsets[k] : offsets[k + 1]]
        if not line_tokens(line, names, kinds, begins, ends, fields):
            continue
        code = read_head(line, kinds, begins, ends, fields, strategies, ids[k])
        if code < 0 or not _read_puzzle(line, kinds, begins, ends, fields[_PUZZLE], puzzle[k]):
            continue
        if read_givens(puzzle[k], used, candidates) < 0:
            continue
        trace_end = _read_steps(line, kinds, begins, ends, fields[_STEPS], code, moves, traces, trace_offsets[k])
        at, behind = fields[_ANSWER]
        if trace_end < 0 or at == behind or kinds[at] != STRING:
            continue
        answer_end = answer_offsets[k]
        for i in range(begins[at] + 1, ends[at] - 1):
            answers[answer_end] = line[i] - _ZERO if 0 <= line[i] - _ZERO <= 9 else 0
            answer_end += 1
        plain[k], asked[k] = True, code
        ids[k] += offsets[k]
        trace_offsets[k + 1], answer_offsets[k + 1] = trace_end, answer_end
    return plain, asked, puzzle, ids, (traces, trace_offsets), (answers, answer_offsets)


@njit
def _read_puzzle(line, kinds, begins, ends, span, puzzle):
    """Whether the field is a grid; if so, its digits."""
    at, behind = span
    if at == behind or kinds[at] != STRING or ends[at] - begins[at] != CELLS + 2:
        return False
    for cell in range(CELLS):
        character = line[begins[at] + 1 + cell]
        if character != _NO_DIGIT and not 0 <= character - _ZERO <= 9:
            return False
        puzzle[cell] = 0 if character == _NO_DIGIT else character - _ZERO
    return True


@njit
def _read_steps(line, kinds, begins, ends, span, strategy, moves, symbols, count):
    """Append the symbols of a list of steps; returns the new count, -1 where they do not have the strategy's form."""
    at, behind = span
    if at == behind or kinds[at] != OPEN:
        return -1
    at, last = at + 1, behind - 1
    while at < last:  # kinds[at] begins a step
        if kinds[at] != OPEN:
            return -1
        at += 1
        if strategy == PROPAGATION:
            while kinds[at] == OPEN:
                if not _read_placement(kinds, at + 1, symbols, count):
                    return -1
                at, count = at + 4, count + 2
            if kinds[at] != CLOSE:
                return -1
            symbols[count] = WAVE
            at, count = at + 1, count + 1
            continue
        if strategy == BACKTRACKING:
            move = word_code(line, begins[at] + 1, ends[at] - 1, moves) if kinds[at] == STRING else -1
            at += 1
            if move == _UNDO_MOVE:
                if not 0 <= kinds[at] < CELLS or kinds[at + 1] != CLOSE:
                    return -1
                symbols[count], symbols[count + 1] = UNDO, kinds[at]
                at, count = at + 2, count + 2
                continue
            if move != _TRY_MOVE:
                return -1
        elif strategy != NAKED_SINGLE:
            if not 0 <= kinds[at] < UNITS:
                return -1
            symbols[count] = UNIT + kinds[at]
            at, count = at + 1, count + 1
        if not _read_placement(kinds, at, symbols, count):
            return -1
        at, count = at + 3, count + 2
    return count


@njit
def _read_placement(kinds, at, symbols, count):
    """Set two symbols to those of a cell, a digit and the end of their list; whether it is these that stand there."""
    if not 0 <= kinds[at] < CELLS or not 1 <= kinds[at + 1] <= 9 or kinds[at + 2] != CLOSE:
        return False
    symbols[count], symbols[count + 1] = kinds[at], DIGIT + kinds[at + 1]
    return True
