"""Sudokus as token sequences.

    <bos> 81 cells of the puzzle <strategy field> | <trace> symbols ... <answer> 81 cells of the solution <eos>

A cell of a grid is one token, its digit or `.`; the token's place says which cell it is. P = 1 + 81 + field. The steps
are the symbols of lol_data.sudokus, each one token, so that the trace reads the same whatever the strategy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lol_data.ragged import Ragged
from lol_data.sudokus import (
    CELLS,
    DIGIT,
    MAX_TRIES,
    SUDOKU_STRATEGIES,
    SYMBOLS,
    UNDO,
    UNIT,
    WAVE,
    Sudokus,
    TracedSudokus,
)
from lol_data.tokenization.layout import MARKS, Alphabet, Layout
from lol_data.tokenization.vocabulary import SPECIAL_NAMES, STRATEGY_BASE

GRID_BASE = STRATEGY_BASE + len(SUDOKU_STRATEGIES)
SYMBOL_BASE = GRID_BASE + 10
VOCABULARY_SIZE = SYMBOL_BASE + SYMBOLS
assert VOCABULARY_SIZE <= 256


def symbol_name(symbol: int) -> str:
    """A symbol of a trace, rows, columns and boxes counted from 1: r4c7, =5, row4, column7, box6, wave, undo."""
    if symbol < CELLS:
        return f"r{symbol // 9 + 1}c{symbol % 9 + 1}"
    if symbol < UNIT:
        return f"={symbol - DIGIT}"
    if symbol < WAVE:
        kind, number = divmod(symbol - UNIT, 9)
        return f"{('row', 'column', 'box')[kind]}{number + 1}"
    return {WAVE: "wave", UNDO: "undo"}[symbol]


def token_name(token: int) -> str:
    """A readable name of one token id; raises ValueError for an id outside the vocabulary."""
    if not 0 <= token < VOCABULARY_SIZE:
        raise ValueError(f"token {token} is outside the sudoku vocabulary 0..{VOCABULARY_SIZE - 1}")
    if token < STRATEGY_BASE:
        return SPECIAL_NAMES[token]
    if token < GRID_BASE:
        return f"<{SUDOKU_STRATEGIES[token - STRATEGY_BASE]}>"
    if token < SYMBOL_BASE:
        return ".123456789"[token - GRID_BASE]
    return symbol_name(token - SYMBOL_BASE)


@dataclass(frozen=True)
class SudokuLayout(Layout[Sudokus, TracedSudokus]):
    """Where things stand in the sequences of sudokus, whatever their number of clues."""

    field: int = 8

    task: ClassVar[str] = "sudoku"
    strategies: ClassVar[tuple[str, ...]] = SUDOKU_STRATEGIES
    vocabulary: ClassVar[int] = VOCABULARY_SIZE

    @property
    def kind(self) -> str:
        return "sudokus"

    @property
    def about(self) -> dict[str, Any]:
        return {"task": self.task}

    @property
    def problem_length(self) -> int:
        return CELLS

    @property
    def cells(self) -> int:
        return CELLS

    @property
    def longest_suffix(self) -> int:
        """No canonical suffix is longer: backtracking takes two symbols for each of at most MAX_TRIES tries and two
        for each undo; it undoes every try but those that stand at the end, one at least."""
        return MARKS + 2 * MAX_TRIES + 2 * (MAX_TRIES - 1) + CELLS

    @property
    def trace_alphabet(self) -> Alphabet:
        return Alphabet(SYMBOL_BASE, SYMBOLS, SYMBOLS)

    @property
    def answer_alphabet(self) -> Alphabet:
        """Digits, and 0 for a cell left empty, which the rules then refuse."""
        return Alphabet(GRID_BASE, 10, 10)

    @staticmethod
    def problems(traced: TracedSudokus) -> Sudokus:
        return traced.sudokus

    @staticmethod
    def answers(traced: TracedSudokus) -> Ragged:
        solution = traced.sudokus.solution
        return Ragged(solution.reshape(-1), np.arange(len(solution) + 1, dtype=np.int64) * CELLS)

    def write_problems(self, problems: Sudokus, tokens: NDArray[np.uint8]) -> None:
        tokens[:] = problems.puzzle + GRID_BASE

    def read_problems(self, tokens: NDArray[np.int64]) -> tuple[Sudokus, NDArray[np.bool_]]:
        """The solutions of what is read are not known: 0 in every cell."""
        puzzle = tokens - GRID_BASE
        good = np.all((puzzle >= 0) & (puzzle < 10), axis=1)
        ids = np.arange(len(tokens), dtype=np.uint64)
        return Sudokus(ids, puzzle.astype(np.uint8), np.zeros(puzzle.shape, np.uint8)), good
