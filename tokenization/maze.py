"""Mazes as token sequences.

    <bos> wall pattern of each cell ... start goal <strategy field> | <trace> cells ... <answer> cells ... <eos>

A maze of n x n cells takes one token a cell, its four walls; the token's place says which cell it is.
P = 1 + n*n + 2 + field for every maze of a size. One vocabulary serves all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lol_data.mazes import MAX_SIZE, MAZE_STRATEGIES, Mazes, TracedMazes
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import MARKS, Alphabet, Layout
from lol_data.tokenization.vocabulary import SPECIAL_NAMES, STRATEGY_BASE

WALL_BASE = STRATEGY_BASE + len(MAZE_STRATEGIES)
CELL_BASE = WALL_BASE + 16
VOCABULARY_SIZE = CELL_BASE + MAX_SIZE * MAX_SIZE
assert VOCABULARY_SIZE <= 256


def token_name(token: int) -> str:
    """A readable name of one token id; raises ValueError for an id outside the vocabulary."""
    if not 0 <= token < VOCABULARY_SIZE:
        raise ValueError(f"token {token} is outside the maze vocabulary 0..{VOCABULARY_SIZE - 1}")
    if token < STRATEGY_BASE:
        return SPECIAL_NAMES[token]
    if token < WALL_BASE:
        return f"<{MAZE_STRATEGIES[token - STRATEGY_BASE]}>"
    if token < CELL_BASE:
        opening = token - WALL_BASE
        return "".join(letter if opening >> bit & 1 else "-" for bit, letter in enumerate("NESW"))
    return str(token - CELL_BASE)


@dataclass(frozen=True)
class MazeLayout(Layout[Mazes, TracedMazes]):
    """Where things stand in the sequences of one maze size."""

    size: int
    field: int = 8

    task: ClassVar[str] = "maze"
    strategies: ClassVar[tuple[str, ...]] = MAZE_STRATEGIES
    vocabulary: ClassVar[int] = VOCABULARY_SIZE

    @property
    def kind(self) -> str:
        return f"{self.size}x{self.size} mazes"

    @property
    def about(self) -> dict[str, Any]:
        return {"task": self.task, "size": self.size}

    @property
    def problem_length(self) -> int:
        return self.cells + 2

    @property
    def cells(self) -> int:
        return self.size * self.size

    @property
    def longest_suffix(self) -> int:
        """No canonical suffix is longer: a depth-first walk enters and leaves every cell at most once."""
        return MARKS + (2 * self.cells - 1) + self.cells

    @property
    def trace_alphabet(self) -> Alphabet:
        return Alphabet(CELL_BASE, self.cells, MAX_SIZE * MAX_SIZE)

    @property
    def answer_alphabet(self) -> Alphabet:
        return self.trace_alphabet

    @staticmethod
    def problems(traced: TracedMazes) -> Mazes:
        return traced.mazes

    @staticmethod
    def answers(traced: TracedMazes) -> Ragged:
        return traced.answer

    def write_problems(self, problems: Mazes, tokens: NDArray[np.uint8]) -> None:
        tokens[:, :-2] = problems.openings + WALL_BASE
        tokens[:, -2] = problems.start + CELL_BASE
        tokens[:, -1] = problems.goal + CELL_BASE

    def read_problems(self, tokens: NDArray[np.int64]) -> tuple[Mazes, NDArray[np.bool_]]:
        walls, ends = tokens[:, :-2] - WALL_BASE, tokens[:, -2:] - CELL_BASE
        good = np.all((walls >= 0) & (walls < 16), axis=1) & np.all((ends >= 0) & (ends < self.size**2), axis=1)
        ids = np.arange(len(tokens), dtype=np.uint64)
        start, goal = ends[:, 0].astype(np.uint8), ends[:, 1].astype(np.uint8)
        return Mazes(self.size, ids, walls.astype(np.uint8), start, goal), good
