"""What the sequences of all tasks have in common: prompts of one length, suffixes, and how an output is read.

    <bos> problem ... <strategy field> | <trace> steps ... <answer> answer ... <eos>
    \\__ prompt: window 0, P positions _/ \\______ suffix: windows 1, 2, ... _______/

The strategy field is `field` copies of the strategy's token (or of <neutral>). A task is a subclass of `Layout`, which
adds the problem's tokens and the two alphabets of the suffix. All ids stay below 256, so sequences are stored and
moved as uint8.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
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
    STRATEGY_BASE,
    TRACE,
)

NEUTRAL_FIELD = -1  # in place of a strategy's index: the field is filled with <neutral>
MARKS = 3  # tokens of a suffix besides steps and answer: <trace>, <answer>, <eos>


class Traced(Protocol):
    """A batch of problems with one trace per strategy."""

    @property
    def traces(self) -> dict[str, Ragged]: ...


P = TypeVar("P")  # a batch of problems
T = TypeVar("T", bound=Traced)  # the same with traces


class Alphabet(NamedTuple):
    """Consecutive tokens that stand for numbers: token base + k for k, of which this layout uses those below `used`
    and the vocabulary has those below `size`."""

    base: int
    used: int
    size: int


@dataclass(frozen=True, slots=True)
class ParsedOutputs:
    """What a batch of outputs says: numbers of trace and answer (int16), and how the parse ended (uint8 codes into
    PARSE_REASONS). An unreadable output keeps what was read before the fault."""

    traces: Ragged
    answers: Ragged
    reason: NDArray[np.uint8]


class Layout(ABC, Generic[P, T]):
    """Where things stand in the sequences of one task; P are its problems, T its traced problems.

    Two layouts are equal where a model made for one can be used with the other.
    """

    task: ClassVar[str]
    strategies: ClassVar[tuple[str, ...]]
    vocabulary: ClassVar[int]  # number of token ids
    field: int

    @property
    @abstractmethod
    def kind(self) -> str:
        """The problems in words, such as "8x8 mazes"."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Task and, where it has one, size: what `tasks.layout_for` makes the layout from."""

    @property
    @abstractmethod
    def problem_length(self) -> int:
        """Tokens of a problem, without <bos> and field."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """Cells of a problem. They stand in their order behind <bos>, and are the first numbers of `trace_alphabet`."""

    @property
    @abstractmethod
    def longest_suffix(self) -> int:
        """No canonical suffix is longer, in tokens; decoding ends here."""

    @property
    @abstractmethod
    def trace_alphabet(self) -> Alphabet:
        """The tokens of the steps."""

    @property
    @abstractmethod
    def answer_alphabet(self) -> Alphabet:
        """The tokens of the answer."""

    @staticmethod
    @abstractmethod
    def problems(traced: T) -> P:
        """The problems of a traced batch."""

    @staticmethod
    @abstractmethod
    def answers(traced: T) -> Ragged:
        """The answers of a traced batch, a row a problem."""

    @abstractmethod
    def write_problems(self, problems: P, tokens: NDArray[np.uint8]) -> None:
        """Fill `tokens`, uint8 (B, problem_length)."""

    @abstractmethod
    def read_problems(self, tokens: NDArray[np.int64]) -> tuple[P, NDArray[np.bool_]]:
        """The inverse, with ids 0, 1, ..., and which rows are problems at all, bool (B,)."""

    @property
    def prompt_length(self) -> int:
        """P: positions of window 0."""
        return 1 + self.problem_length + self.field

    def prompts(self, problems: P, strategies: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Prompts, uint8 (B, P); `strategies` int (B,) are indices into the task's strategies or NEUTRAL_FIELD."""
        field = self.field_token(strategies)
        prompts = np.empty((len(field), self.prompt_length), np.uint8)
        prompts[:, 0] = BOS
        self.write_problems(problems, prompts[:, 1 : 1 + self.problem_length])
        prompts[:, 1 + self.problem_length :] = field[:, None]
        return prompts

    def field_token(self, strategies: NDArray[np.integer]) -> NDArray[np.uint8]:
        """The token that fills the strategy field, uint8 (B,), of strategy indices or NEUTRAL_FIELD; ValueError."""
        strategies = np.asarray(strategies)
        if strategies.size and not NEUTRAL_FIELD <= strategies.min() <= strategies.max() < len(self.strategies):
            raise ValueError(f"strategy indices must be from {NEUTRAL_FIELD} to {len(self.strategies) - 1}")
        return np.where(strategies == NEUTRAL_FIELD, NEUTRAL, strategies + STRATEGY_BASE).astype(np.uint8)

    def read_prompts(self, prompts: NDArray[np.uint8]) -> tuple[P, NDArray[np.int64]]:
        """The inverse of `prompts`: problems (with ids 0, 1, ...) and strategy indices; raises ValueError."""
        if prompts.shape[1] != self.prompt_length:
            raise ValueError(f"prompts of {prompts.shape[1]} tokens; {self.kind} need {self.prompt_length}")
        tokens = prompts.astype(np.int64)
        problems, good = self.read_problems(tokens[:, 1 : 1 + self.problem_length])
        field = tokens[:, 1 + self.problem_length :]
        strategies = np.where(field[:, 0] == NEUTRAL, NEUTRAL_FIELD, field[:, 0] - STRATEGY_BASE)
        good &= (strategies >= NEUTRAL_FIELD) & (strategies < len(self.strategies)) & (field == field[:, :1]).all(1)
        good &= tokens[:, 0] == BOS
        if not good.all():
            raise ValueError(f"prompt {int(np.argmin(good))} is not a prompt for {self.kind}")
        return problems, strategies

    def suffixes(self, traces: Ragged, answers: Ragged) -> Ragged:
        """`<trace> trace <answer> answer <eos>` for every row, as uint8 tokens."""
        offsets = offsets_of(traces.lengths + answers.lengths + MARKS)
        tokens = np.empty(offsets[-1], np.uint8)
        bases = self.trace_alphabet.base, self.answer_alphabet.base
        _encode(traces.values, traces.offsets, answers.values, answers.offsets, *bases, tokens, offsets)
        return Ragged(tokens, offsets)

    def problem_suffixes(self, traced: T) -> Ragged:
        """Suffixes of all strategies, problem by problem: row p * 5 + s is strategy s of problem p."""
        count, answers = len(self.strategies), self.answers(traced)
        columns = [self.suffixes(traced.traces[name], answers) for name in self.strategies]
        offsets = offsets_of(np.stack([column.lengths for column in columns], axis=1).reshape(-1))
        tokens = np.empty(offsets[-1], np.uint8)
        for index, column in enumerate(columns):
            _spread(column.values, column.offsets, tokens, offsets[index:-1:count])
        return Ragged(tokens, offsets)

    def parse(self, outputs: Ragged) -> ParsedOutputs:
        """Read generated tokens, the ones after `<trace>`, by the grammar `step* <answer> answer* <eos>`.

        Nothing after `<eos>` is looked at. A number that this layout does not use is `out_of_range`.
        """
        count = len(outputs)
        trace = np.empty(len(outputs.values), np.int16)
        answer = np.empty(len(outputs.values), np.int16)
        trace_offsets, answer_offsets = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
        reason = np.empty(count, np.uint8)
        alphabets = self.trace_alphabet, self.answer_alphabet
        _parse(outputs.values, outputs.offsets, *alphabets, trace, trace_offsets, answer, answer_offsets, reason)
        return ParsedOutputs(
            Ragged(trace[: trace_offsets[-1]], trace_offsets),
            Ragged(answer[: answer_offsets[-1]], answer_offsets),
            reason,
        )


def join(prompts: NDArray[np.uint8], suffixes: Ragged) -> NDArray[np.uint8]:
    """Whole sequences, uint8 (B, T), of prompts (B, P) and as many suffixes, with PAD behind the shorter ones."""
    lengths, prompt = suffixes.lengths, prompts.shape[1]
    tokens = np.full((len(prompts), prompt + int(lengths.max())), PAD, np.uint8)
    tokens[:, :prompt] = prompts
    tokens[:, prompt:][np.arange(tokens.shape[1] - prompt) < lengths[:, None]] = suffixes.values
    return tokens


@njit
def _encode(trace, trace_offsets, answer, answer_offsets, trace_base, answer_base, tokens, offsets):
    for row in range(len(offsets) - 1):
        at = offsets[row]
        tokens[at] = TRACE
        at += 1
        for k in range(trace_offsets[row], trace_offsets[row + 1]):
            tokens[at] = trace[k] + trace_base
            at += 1
        tokens[at] = ANSWER
        at += 1
        for k in range(answer_offsets[row], answer_offsets[row + 1]):
            tokens[at] = answer[k] + answer_base
            at += 1
        tokens[at] = EOS


@njit
def _spread(values, offsets, out, starts):
    for row in range(len(offsets) - 1):
        length = offsets[row + 1] - offsets[row]
        out[starts[row] : starts[row] + length] = values[offsets[row] : offsets[row + 1]]


@njit
def _parse(tokens, offsets, steps, answers, trace, trace_offsets, answer, answer_offsets, reason):
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
            alphabet = answers if in_answer else steps
            number = np.int64(token) - alphabet.base
            if token == ANSWER and not in_answer:
                in_answer = True
                code = MISSING_EOS
            elif number < 0 or number >= alphabet.size:
                code = BAD_TOKEN
                break
            elif number >= alphabet.used:
                code = OUT_OF_RANGE
                break
            elif in_answer:
                answer[answer_end] = number
                answer_end += 1
            else:
                trace[trace_end] = number
                trace_end += 1
        reason[row] = code
        trace_offsets[row + 1] = trace_end
        answer_offsets[row + 1] = answer_end
