"""Other people's maze outputs, a line of JSON each, to verdicts. The form of a line: see lol_data.mazes_jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.arguments import NO_VALUE
from lol_data.evaluators.maze_rules import judge_mazes
from lol_data.evaluators.plain_lines import (
    CLOSE,
    HEAD,
    OPEN,
    join_lines,
    line_tokens,
    read_head,
    read_plain_id,
    word_table,
)
from lol_data.evaluators.verdicts import Verdicts
from lol_data.jit import njit
from lol_data.jsonl import NumberedLine, Record, answer_lines, read_id, read_object
from lol_data.mazes import EAST, MAX_SIZE, MAZE_STRATEGIES, MIN_SIZE, NORTH, SOUTH, WEST, Mazes
from lol_data.mazes_jsonl import MAX_STEPS, MazeLine, by_size, read_cells, read_maze, read_strategy, to_mazes
from lol_data.ragged import Ragged

_FIELDS = (*HEAD, "size", "start", "goal", "edges", "trace", "answer")
_SIZE, _START, _GOAL, _EDGES, _TRACE, _ANSWER = range(len(HEAD), len(_FIELDS))
_NAMES, _STRATEGIES = word_table(_FIELDS), word_table(MAZE_STRATEGIES)


@dataclass(frozen=True, slots=True)
class _Output:
    """One readable line."""

    line: int
    id: str | int | None
    problem: MazeLine
    asked: int
    trace: list[int]
    answer: list[int]


def check_lines(lines: Iterable[bytes | str], first: int = 1) -> Iterator[Record]:
    """One object per line that is not blank, in the order of the lines, whatever is on them.

    A line that can be read gives {"line", "id", "strategy"} and the verdicts of Verdicts.row; any other one gives
    {"line", "id", "error"}, the error being one line of text. Lines are taken in and judged by the hundred. first: the
    number of the first line.
    """
    return answer_lines(lines, read_object, _understand, _judge, {}, _judge_plain, first)


def _understand(number: int, record: Record) -> _Output:
    problem, asked = read_maze(record), read_strategy(record)
    return _Output(number, read_id(record), problem, asked, read_cells(record, "trace"), read_cells(record, "answer"))


def _judge(outputs: list[_Output]) -> list[list[Record]]:
    """The object for every output, in a list of its own."""
    answers: list[list[Record]] = [[] for _ in outputs]
    for places in by_size([output.problem for output in outputs]):
        group = [outputs[k] for k in places]
        verdicts = _verdicts(
            to_mazes([output.problem for output in group]),
            np.array([output.asked for output in group]),
            Ragged.from_rows([output.trace for output in group], np.int16),
            Ragged.from_rows([output.answer for output in group], np.int16),
        )
        found = verdicts.answers([output.line for output in group], [output.id for output in group])
        for k, answer in zip(places, found, strict=True):
            answers[k] = [answer]
    return answers


def _judge_plain(chunk: list[NumberedLine]) -> list[list[Record] | None]:
    """The same for plain lines, None for the others."""
    answers: list[list[Record] | None] = [None] * len(chunk)
    text, offsets = join_lines(chunk)
    plain, asked, problem, openings, ids, trace, answer = _read_plain(
        np.frombuffer(text, np.uint8), offsets, _NAMES, _STRATEGIES
    )
    size, start, goal = problem.T
    for n in np.unique(size[plain]).tolist():
        rows = np.flatnonzero(plain & (size == n))
        mazes = Mazes(n, rows.astype(np.uint64), openings[rows, : n * n], start[rows], goal[rows])
        verdicts = _verdicts(mazes, asked[rows], Ragged(*trace).take(rows), Ragged(*answer).take(rows))
        places = rows.tolist()
        names = [read_plain_id(text, *span) for span in ids[rows].tolist()]
        for k, found in zip(places, verdicts.answers([chunk[k][0] for k in places], names), strict=True):
            answers[k] = [found]
    return answers


def _verdicts(mazes: Mazes, asked: NDArray[np.integer], traces: Ragged, answers: Ragged) -> Verdicts:
    """Verdicts on one output for each maze."""
    return judge_mazes(mazes, np.arange(len(mazes)), asked, traces, answers)


@njit
def _read_plain(text, offsets, names, strategies):
    """What stands on every line: plain, bool (N,), whether it could be read here, else the rest means nothing.

    Then the code of the strategy, uint8 (N,); size, start and goal, uint8 (N, 3); openings, uint8 (N, 225), of which
    the first n*n count; where the id stands in the text, int64 (N, 2); traces and answers, each as values, uint8, and
    offsets.
    """
    count = len(offsets) - 1
    longest = np.max(offsets[1:] - offsets[:-1]) + 1
    kinds, begins, ends = np.empty((3, longest), np.int32)
    fields = np.empty((len(names), 2), np.int64)
    plain, asked, ids = np.zeros(count, np.bool_), np.zeros(count, np.uint8), np.zeros((count, 2), np.int64)
    problem, openings = np.zeros((count, 3), np.uint8), np.zeros((count, MAX_SIZE * MAX_SIZE), np.uint8)
    traces, answers = np.empty((2, len(text) // 2 + 1), np.uint8)
    trace_offsets, answer_offsets = np.zeros((2, count + 1), np.int64)
    for k in range(count):
        trace_offsets[k + 1], answer_offsets[k + 1] = trace_offsets[k], answer_offsets[k]
        line = text[offsets[k] : offsets[k + 1]]
        if not line_tokens(line, names, kinds, begins, ends, fields):
            continue
        code = read_head(line, kinds, begins, ends, fields, strategies, ids[k])
        if code < 0 or not _read_problem(kinds, fields, problem[k], openings[k]):
            continue
        trace_end = _read_cells(kinds, fields[_TRACE], traces, trace_offsets[k])
        answer_end = _read_cells(kinds, fields[_ANSWER], answers, answer_offsets[k])
        if trace_end >= 0 and answer_end >= 0:
            plain[k], asked[k] = True, code
            ids[k] += offsets[k]
            trace_offsets[k + 1], answer_offsets[k + 1] = trace_end, answer_end
    return plain, asked, problem, openings, ids, (traces, trace_offsets), (answers, answer_offsets)


@njit
def _read_problem(kinds, fields, problem, openings):
    """Size, start, goal and openings from tokens; whether they are those of a maze."""
    for k, field in enumerate((_SIZE, _START, _GOAL)):
        at, behind = fields[field]
        if at == behind or not 0 <= kinds[at] < MAX_SIZE * MAX_SIZE:
            return False
        problem[k] = kinds[at]
    size, start, goal = problem
    cells = np.int64(size) * size
    if not MIN_SIZE <= size <= MAX_SIZE or max(start, goal) >= cells or start == goal:
        return False
    at, behind = fields[_EDGES]
    if at == behind or kinds[at] != OPEN or (behind - at - 2) % 4:
        return False
    for i in range(at + 1, behind - 1, 4):  # [ a b ]
        a, b = min(kinds[i + 1], kinds[i + 2]), max(kinds[i + 1], kinds[i + 2])
        if kinds[i] != OPEN or a < 0 or b >= cells or kinds[i + 3] != CLOSE:
            return False
        if b == a + 1 and b % size:
            bit, back = EAST, WEST
        elif b == a + size:
            bit, back = SOUTH, NORTH
        else:
            return False
        if openings[a] & bit:
            return False
        openings[a] |= bit
        openings[b] |= back
    return True


@njit
def _read_cells(kinds, span, values, count):
    """Append a list of integers, NO_VALUE for one that is no cell; returns the new count, -1 for anything else."""
    at, behind = span
    if at == behind or kinds[at] != OPEN or behind - at - 2 > MAX_STEPS:
        return -1
    for i in range(at + 1, behind - 1):
        if kinds[i] >= OPEN:
            return -1
        values[count] = kinds[i] if 0 <= kinds[i] < NO_VALUE else NO_VALUE
        count += 1
    return count
