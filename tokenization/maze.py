"""Mazes as token sequences.

    <bos> wall pattern of each cell ... start goal <strategy field> | <trace> cells ... <answer> cells ... <eos>
    \\_________________ prompt: window 0, P positions ______________/ \\________ suffix: windows 1, 2, ... _______/

A maze of n x n cells takes one token a cell, its four walls; the token's place says which cell it is. The strategy
field is `field` copies of the strategy's token (or of <neutral>). P = 1 + n*n + 2 + field for every maze of a size.
All ids stay below 256, so sequences are stored and moved as uint8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.mazes import MAX_SIZE, MAZE_STRATEGIES, Mazes, TracedMazes
from lol_data.ragged import Ragged, offsets_of
from lol_data.tokenization.vocabulary import (
    ANSWER,
    BAD_TOKEN,
    BOS,
    EMPTY,
    EOS,
    MISSING_ANSWER,
    MISSING_EOS,
    NEUTRAL,
    OK,
    OUT_OF_RANGE,
    PAD,
    SPECIAL_NAMES,
    TRACE,
)

STRATEGY_BASE = len(SPECIAL_NAMES)
WALL_BASE = STRATEGY_BASE + len(MAZE_STRATEGIES)
CELL_BASE = WALL_BASE + 16
VOCABULARY_SIZE = CELL_BASE + MAX_SIZE * MAX_SIZE
assert VOCABULARY_SIZE <= 256

NEUTRAL_FIELD = -1  # in place of a strategy's index: the field is filled with <neutral>


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
class MazeLayout:
    """Where things stand in the sequences of one maze size."""

    size: int
    field: int = 8

    @property
    def prompt_length(self) -> int:
        """P: positions of window 0."""
        return 1 + self.size * self.size + 2 + self.field

    @property
    def longest_suffix(self) -> int:
        """No canonical suffix is longer: a depth-first walk enters and leaves every cell at most once."""
        cells = self.size * self.size
        return 1 + (2 * cells - 1) + 1 + cells + 1

    def prompts(self, mazes: Mazes, strategies: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Prompts, uint8 (B, P); `strategies` int (B,) are indices into MAZE_STRATEGIES or NEUTRAL_FIELD."""
        cells = self.size * self.size
        prompts = np.empty((len(mazes), self.prompt_length), np.uint8)
        prompts[:, 0] = BOS
        prompts[:, 1 : 1 + cells] = mazes.openings + WALL_BASE
        prompts[:, 1 + cells] = mazes.start + CELL_BASE
        prompts[:, 2 + cells] = mazes.goal + CELL_BASE
        prompts[:, 3 + cells :] = self.field_token(strategies)[:, None]
        return prompts

    @staticmethod
    def field_token(strategies: NDArray[np.integer]) -> NDArray[np.uint8]:
        """The token that fills the strategy field, uint8 (B,), of strategy indices or NEUTRAL_FIELD; ValueError."""
        strategies = np.asarray(strategies)
        if strategies.size and not NEUTRAL_FIELD <= strategies.min() <= strategies.max() < len(MAZE_STRATEGIES):
            raise ValueError(f"strategy indices must be from {NEUTRAL_FIELD} to {len(MAZE_STRATEGIES) - 1}")
        return np.where(strategies == NEUTRAL_FIELD, NEUTRAL, strategies + STRATEGY_BASE).astype(np.uint8)

    def read_prompts(self, prompts: NDArray[np.uint8]) -> tuple[Mazes, NDArray[np.int64]]:
        """The inverse of `prompts`: mazes (with ids 0, 1, ...) and strategy indices; raises ValueError."""
        cells = self.size * self.size
        if prompts.shape[1] != self.prompt_length:
            raise ValueError(f"prompts of {prompts.shape[1]} tokens; size {self.size} needs {self.prompt_length}")
        walls = prompts[:, 1 : 1 + cells].astype(np.int64) - WALL_BASE
        ends = prompts[:, 1 + cells : 3 + cells].astype(np.int64) - CELL_BASE
        field = prompts[:, 3 + cells :].astype(np.int64)
        strategies = np.where(field[:, 0] == NEUTRAL, NEUTRAL_FIELD, field[:, 0] - STRATEGY_BASE)
        known = (strategies >= NEUTRAL_FIELD) & (strategies < len(MAZE_STRATEGIES)) & (field == field[:, :1]).all(1)
        good = known & (prompts[:, 0] == BOS)
        good &= ((walls >= 0) & (walls < 16)).all(1) & ((ends >= 0) & (ends < cells)).all(1)
        if not good.all():
            raise ValueError(f"prompt {int(np.argmin(good))} is not a maze prompt of size {self.size}")
        ids = np.arange(len(prompts), dtype=np.uint64)
        start, goal = ends[:, 0].astype(np.uint8), ends[:, 1].astype(np.uint8)
        return Mazes(self.size, ids, walls.astype(np.uint8), start, goal), strategies


def encode_suffixes(traces: Ragged, answers: Ragged) -> Ragged:
    """`<trace> trace <answer> answer <eos>` for every row, as uint8 tokens."""
    offsets = offsets_of(traces.lengths + answers.lengths + 3)
    tokens = np.empty(offsets[-1], np.uint8)
    _encode(traces.values, traces.offsets, answers.values, answers.offsets, tokens, offsets)
    return Ragged(tokens, offsets)


def encode_problem_suffixes(traced: TracedMazes) -> Ragged:
    """Suffixes of all strategies, problem by problem: row p * 5 + s is strategy s of problem p."""
    count = len(MAZE_STRATEGIES)
    columns = [encode_suffixes(traced.traces[name], traced.answer) for name in MAZE_STRATEGIES]
    offsets = offsets_of(np.stack([column.lengths for column in columns], axis=1).reshape(-1))
    tokens = np.empty(offsets[-1], np.uint8)
    for index, column in enumerate(columns):
        _spread(column.values, column.offsets, tokens, offsets[index:-1:count])
    return Ragged(tokens, offsets)


def join(prompts: NDArray[np.uint8], suffixes: Ragged) -> NDArray[np.uint8]:
    """Whole sequences, uint8 (B, T), of prompts (B, P) and as many suffixes, with PAD behind the shorter ones."""
    lengths, prompt = suffixes.lengths, prompts.shape[1]
    tokens = np.full((len(prompts), prompt + int(lengths.max())), PAD, np.uint8)
    tokens[:, :prompt] = prompts
    tokens[:, prompt:][np.arange(tokens.shape[1] - prompt) < lengths[:, None]] = suffixes.values
    return tokens


@dataclass(frozen=True, slots=True)
class ParsedOutputs:
    """What a batch of outputs says: cell ids of trace and answer (int16), and how the parse ended (uint8 codes
    into PARSE_REASONS). An unreadable output keeps the cells read before the fault."""

    traces: Ragged
    answers: Ragged
    reason: NDArray[np.uint8]


def parse_outputs(outputs: Ragged, size: int) -> ParsedOutputs:
    """Read generated tokens, the ones after `<trace>`, by the grammar `cell* <answer> cell* <eos>`.

    Nothing after `<eos>` is looked at; a cell id of another maze size is `out_of_range`.
    """
    count = len(outputs)
    trace = np.empty(len(outputs.values), np.int16)
    answer = np.empty(len(outputs.values), np.int16)
    trace_offsets, answer_offsets = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    reason = np.empty(count, np.uint8)
    _parse(outputs.values, outputs.offsets, size * size, trace, trace_offsets, answer, answer_offsets, reason)
    return ParsedOutputs(
        Ragged(trace[: trace_offsets[-1]], trace_offsets), Ragged(answer[: answer_offsets[-1]], answer_offsets), reason
    )


@njit
def _encode(trace, trace_offsets, answer, answer_offsets, tokens, offsets):
    for row in range(len(offsets) - 1):
        at = offsets[row]
        tokens[at] = TRACE
        at += 1
        for k in range(trace_offsets[row], trace_offsets[row + 1]):
            tokens[at] = trace[k] + CELL_BASE
            at += 1
        tokens[at] = ANSWER
        at += 1
        for k in range(answer_offsets[row], answer_offsets[row + 1]):
            tokens[at] = answer[k] + CELL_BASE
            at += 1
        tokens[at] = EOS


@njit
def _spread(values, offsets, out, starts):
    for row in range(len(offsets) - 1):
        length = offsets[row + 1] - offsets[row]
        out[starts[row] : starts[row] + length] = values[offsets[row] : offsets[row + 1]]


@njit
def _parse(tokens, offsets, cells, trace, trace_offsets, answer, answer_offsets, reason):
    trace_end = answer_end = 0
    for row in range(len(offsets) - 1):
        code = EMPTY
        in_answer = False
        for k in range(offsets[row], offsets[row + 1]):
            token = tokens[k]
            if token == EOS:
                code = OK if in_answer else MISSING_ANSWER
                break
            code = MISSING_EOS if in_answer else MISSING_ANSWER
            if token == ANSWER and not in_answer:
                in_answer = True
                code = MISSING_EOS
            elif token < CELL_BASE or token >= VOCABULARY_SIZE:
                code = BAD_TOKEN
                break
            elif token - CELL_BASE >= cells:
                code = OUT_OF_RANGE
                break
            elif in_answer:
                answer[answer_end] = token - CELL_BASE
                answer_end += 1
            else:
                trace[trace_end] = token - CELL_BASE
                trace_end += 1
        reason[row] = code
        trace_offsets[row + 1] = trace_end
        answer_offsets[row + 1] = answer_end
