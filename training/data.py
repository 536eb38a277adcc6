"""Training sequences in memory, and which of them make up step t.

All problems of a split are held as flat uint8 arrays; a batch is gathered by index, in bulk. Which samples a step sees
is a pure function of (seed, step), so a run that is resumed goes on with exactly the samples it would have seen.

A batch is cut into micro-batches of sequences of similar length, each padded to its own longest: little padding, and
every step still sees an unbiased draw. Sample p * 5 + s is problem p under strategy s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import join
from lol_data.tokenization.tasks import AnyLayout, Traced, layout_of


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences of one micro-batch. tokens: uint8 (B, T), prompt and suffix, PAD behind the end.
    lengths: int64 (B,), prompt included. samples: int64 (B,)."""

    tokens: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    samples: NDArray[np.int64]


class Sequences:
    """Every (problem, strategy) of a split as tokens."""

    def __init__(self, layout: AnyLayout, prompts: NDArray[np.uint8], suffixes: Ragged):
        """prompts: uint8 (B, P), one per problem. suffixes: uint8 rows, five per problem."""
        self.layout, self._prompts, self._suffixes = layout, prompts, suffixes

    @staticmethod
    def of(traced: Traced, field: int) -> Sequences:
        """Encode a batch of traced problems.

        Raises UsageError when there is none, or one that is longer than what an evaluation decodes.
        """
        if not len(traced):
            raise UsageError("the training split is empty; make a larger data set")
        layout = layout_of(traced, field)
        problems = layout.problems(traced)
        suffixes = layout.problem_suffixes(traced)
        longest = int(suffixes.lengths.argmax())
        if suffixes.lengths[longest] > layout.longest_suffix:
            row, strategy = divmod(longest, len(layout.strategies))
            raise UsageError(
                f"problem {problems.id[row]}: {layout.strategies[strategy]} takes {suffixes.lengths[longest]} tokens "
                f"behind the prompt, more than the {layout.longest_suffix} of {layout.kind}; leave it out"
            )
        return Sequences(layout, layout.prompts(problems, np.zeros(len(traced), np.int64)), suffixes)

    def __len__(self) -> int:
        return len(self._suffixes)

    def lengths(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of each sample, prompt included."""
        offsets = self._suffixes.offsets
        return offsets[samples + 1] - offsets[samples] + self.layout.prompt_length

    def gather(self, samples: NDArray[np.int64]) -> Batch:
        """One padded micro-batch."""
        problems, strategies = np.divmod(samples, len(self.layout.strategies))
        prompts = self._prompts[problems]
        prompts[:, -self.layout.field :] = self.layout.field_token(strategies)[:, None]
        tokens, lengths = join(prompts, self._suffixes.take(samples)), self.lengths(samples)
        return Batch(tokens, lengths, samples)


def step_samples(count: int, batch: int, seed: int, step: int) -> NDArray[np.int64]:
    """The samples of one step, int64 (batch,): consecutive draws from one shuffled pass over `count` after another."""
    first = step * batch
    parts: list[NDArray[np.int64]] = []
    while batch:
        epoch, start = divmod(first, count)
        part = _epoch_order(count, seed, epoch)[start : start + batch]
        parts.append(part)
        first, batch = first + len(part), batch - len(part)
    return np.concatenate(parts).astype(np.int64)


@lru_cache(maxsize=2)
def _epoch_order(count: int, seed: int, epoch: int) -> NDArray:
    order = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, epoch]))).permutation(count)
    return order.astype(np.uint32 if count < 2**32 else np.int64)


def micro_batches(sequences: Sequences, samples: NDArray[np.int64], size: int) -> Iterator[Batch]:
    """A step's samples as micro-batches of at most `size` sequences of similar length, the longest last."""
    samples = samples[np.argsort(sequences.lengths(samples), kind="stable")]
    for start in range(0, len(samples), size):
        yield sequences.gather(samples[start : start + size])
