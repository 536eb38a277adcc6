"""Sudokus as plain text, for language models with a tokeniser of their own.

    prompt       sudoku 53..7.... 6..195... .98....6. 8...6...3 4..8.3..1 7...2...6 .6....28. ...419..5 ....8..79
                 strategy naked_single
    completion    trace r5c5=5 ... answer 534678912 ... end

A grid is its nine rows, `.` for an empty cell. In a trace, rows, columns and boxes count from 1:

    naked_single                   r5c5=5
    hidden_single, cross_hatching  box5 r5c5=5       row5, column5 or box5: the unit that says so
    propagation                    r5c5=5 ... wave   the wave ends
    backtracking                   r5c5=5            a try
                                   undo r5c5

Every symbol of lol_data.sudokus is a word; only a digit stands close behind the cell. So any string of symbols has a
text, and reading gives back exactly these symbols.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.ragged import Ragged
from lol_data.sudokus import CELLS, SUDOKU_STRATEGIES, SYMBOLS, Sudokus
from lol_data.sudokus_jsonl import read_sudoku, read_sudoku_strategy
from lol_data.tokenization.layout import ParsedOutputs
from lol_data.tokenization.sudoku import symbol_name
from lol_data.tokenization.text import completion, concat, join_words, parse_words, prompt_fields
from lol_data.tokenization.vocabulary import BAD_TOKEN, OUT_OF_RANGE

FIELDS = ("sudoku", "strategy")  # of a prompt, in this order
SYMBOL_WORDS = {symbol_name(symbol): symbol for symbol in range(SYMBOLS)}
DIGITS = {".": 0} | {str(digit): digit for digit in range(10)}
_ANY_NUMBERS = re.compile(r"(r\d+c|=|row|column|box)\d+", re.ASCII)


def encode_prompts(sudokus: Sudokus, strategy: str) -> pa.StringArray:
    """The prompts of a batch under one strategy, string (B,). Raises UsageError for an unknown strategy."""
    if strategy not in SUDOKU_STRATEGIES:
        raise UsageError(f"{strategy!r} is no strategy: choose from {', '.join(SUDOKU_STRATEGIES)}")
    return concat("sudoku", join_rows(sudokus.puzzle), f" strategy {strategy}")


def encode_completions(traces: Ragged, solutions: NDArray[np.uint8]) -> pa.StringArray:
    """The completions of a batch, string (B,), of its traces in symbols and its solutions, uint8 (B, 81)."""
    return completion(join_symbols(traces), join_rows(solutions))


def parse_prompt(text: str) -> dict[str, Any]:
    """The problem of a prompt, as a record of `sudokus_jsonl`: puzzle (81 characters), strategy.

    Raises LineError, one line, for a text that is no prompt.
    """
    fields = prompt_fields(text, FIELDS)
    record = {"puzzle": "".join(fields["sudoku"]), "strategy": fields.only("strategy")}
    read_sudoku(record)
    read_sudoku_strategy(record)
    return record


def parse_completions(texts: Iterable[str]) -> ParsedOutputs:
    """What completions say, and why one cannot be read; as `SudokuLayout.parse` does for tokens."""
    return parse_words((text.replace("=", " =").split() for text in texts), _read_symbol, _read_digits)


def join_rows(grids: NDArray[np.uint8]) -> pa.StringArray:
    """Grids, uint8 (B, 81), as text, string (B,): nine rows, each with a space before it."""
    characters = np.full((len(grids), 9, 10), ord(" "), np.uint8)
    characters[:, :, 1:] = np.frombuffer(b".123456789", np.uint8)[grids].reshape(-1, 9, 9)
    offsets = np.arange(len(grids) + 1, dtype=np.int32) * (CELLS + 9)
    return pa.StringArray.from_buffers(len(grids), pa.py_buffer(offsets), pa.py_buffer(characters))


def join_symbols(traces: Ragged) -> pa.StringArray:
    """Every trace, uint8 symbols, as text, string (rows,), a space before every word."""
    names = [symbol_name(symbol) for symbol in range(SYMBOLS)]
    words = pa.array([name if name.startswith("=") else f" {name}" for name in names])
    return join_words(words.take(pa.array(traces.values)), traces.offsets)


def _read_symbol(word: str) -> list[int] | int:
    symbol = SYMBOL_WORDS.get(word)
    if symbol is not None:
        return [symbol]
    return OUT_OF_RANGE if _ANY_NUMBERS.fullmatch(word) else BAD_TOKEN


def _read_digits(word: str) -> list[int] | int:
    """The digits of a row, or of any other part of a grid, 0 for an empty cell."""
    digits = [DIGITS.get(character, -1) for character in word]
    return BAD_TOKEN if -1 in digits else digits
