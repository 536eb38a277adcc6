"""Mazes as plain text, for language models with a tokeniser of their own.

    prompt       maze 3x3 edges 0-1 1-2 1-4 start 4 goal 8 strategy bfs
    completion    trace 4 1 5 7 3 2 0 8 answer 4 5 8 end

Words stand apart by white space. `edges` are the open passages, the cells numbered row by row. A completion begins
with a space, so that prompt + completion is one text whose words a tokeniser cuts as it does inside of one.

A completion is read by the grammar of the tokens: `trace cell* answer cell* end`, whatever follows `end` left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from lol_data.errors import UsageError
from lol_data.jsonl import LineError
from lol_data.mazes import EAST, MAX_SIZE, MAZE_STRATEGIES, SOUTH, Mazes
from lol_data.mazes_jsonl import read_maze, read_strategy
from lol_data.ragged import Ragged, offsets_of
from lol_data.tokenization.layout import ParsedOutputs
from lol_data.tokenization.text import completion, concat, decimals, join_words, parse_words, prompt_fields
from lol_data.tokenization.vocabulary import BAD_TOKEN, OUT_OF_RANGE

FIELDS = ("maze", "edges", "start", "goal", "strategy")  # of a prompt, in this order
CELL_WORDS = {str(cell): cell for cell in range(MAX_SIZE * MAX_SIZE)}


def encode_prompts(mazes: Mazes, strategy: str) -> pa.StringArray:
    """The prompts of a batch under one strategy, string (B,). Raises UsageError for an unknown strategy."""
    if strategy not in MAZE_STRATEGIES:
        raise UsageError(f"{strategy!r} is no strategy: choose from {', '.join(MAZE_STRATEGIES)}")
    head, edges = f"maze {mazes.size}x{mazes.size} edges", join_edges(mazes, " {}-{}")
    start, goal = decimals(mazes.start), decimals(mazes.goal)
    return concat(head, edges, " start ", start, " goal ", goal, f" strategy {strategy}")


def encode_completions(traces: Ragged, answers: Ragged) -> pa.StringArray:
    """The completions of a batch, string (B,), of its traces and answers in cells."""
    return completion(join_cells(traces, " {}"), join_cells(answers, " {}"))


def parse_prompt(text: str) -> dict[str, Any]:
    """The problem of a prompt, as a record of `mazes_jsonl`: size, edges, start, goal, strategy.

    Raises LineError, one line, for a text that is no prompt or says what no maze can be.
    """
    fields = prompt_fields(text, FIELDS)
    record = {
        "size": _size(fields.only("maze")),
        "edges": [_edge(word) for word in fields["edges"]],
        "start": _number("start", fields.only("start")),
        "goal": _number("goal", fields.only("goal")),
        "strategy": fields.only("strategy"),
    }
    read_maze(record)
    read_strategy(record)
    return record


def parse_completions(texts: Iterable[str], size: int) -> ParsedOutputs:
    """What completions for mazes of a size say, and why one cannot be read; as `MazeLayout.parse` does for tokens."""

    def read(word: str) -> list[int] | int:
        return _read_cell(word, size * size)

    return parse_words((text.split() for text in texts), read, read)


def join_cells(cells: Ragged, form: str, separator: str = "") -> pa.StringArray:
    """Every row of cells (uint8) as text, string (rows,). form: how a cell is written, such as " {}"."""
    names = pa.array([form.format(cell) for cell in range(256)])
    return join_words(names.take(pa.array(cells.values)), cells.offsets, separator)


def join_edges(mazes: Mazes, form: str, separator: str = "") -> pa.StringArray:
    """Every maze's open passages as text, string (B,), in the order of `mazes_jsonl.edges_of`.

    form: how a passage is written, such as " {}-{}" with the smaller cell first.
    """
    size, cells = mazes.size, mazes.size**2
    names = pa.array([form.format(cell, cell + step) for cell in range(cells) for step in (1, size)])
    is_open = np.stack([mazes.openings & EAST, mazes.openings & SOUTH], axis=2).reshape(len(mazes), 2 * cells)
    edges = names.take(pa.array(np.nonzero(is_open)[1]))
    return join_words(edges, offsets_of(np.count_nonzero(is_open, axis=1)), separator)


def _read_cell(word: str, cells: int) -> list[int] | int:
    """The cell that a word names, or the reason why it names none."""
    cell = CELL_WORDS.get(word, cells)
    if cell < cells:
        return [cell]
    return OUT_OF_RANGE if _is_number(word) else BAD_TOKEN


def _is_number(word: str) -> bool:
    """Is this a number from 0 as it is written here: without sign and leading zeros?"""
    return word.isascii() and word.isdigit() and (word == "0" or word[0] != "0")


def _size(word: str) -> int:
    height, _, width = word.partition("x")
    if height != width:
        raise LineError(f"not a maze prompt: {word[:40]!r} is no size such as '8x8'")
    return _number("size", width)


def _edge(word: str) -> list[int]:
    one, dash, other = word.partition("-")
    if not dash:
        raise LineError(f"not a maze prompt: {word[:40]!r} is no edge such as '0-1'")
    return [_number("edge", one), _number("edge", other)]


def _number(what: str, word: str) -> int:
    if not _is_number(word) or len(word) > 6:
        raise LineError(f"not a maze prompt: {word[:40]!r} is no number, in {what}")
    return int(word)
