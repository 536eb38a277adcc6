"""Training sequences in memory, and which of them make up step t.

All problems of a split are held as flat uint8 tensors, on the device that trains; a batch is gathered there by index,
in bulk. Which samples a step sees is a pure function of (seed, step), so a run that is resumed goes on with exactly the
samples it would have seen. Sample p * 5 + s is problem p under strategy s.

A step's samples are sorted by length before they are cut into micro-batches: padding is not computed but in attention,
and there the less of it, the better.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lol_data.errors import UsageError
from lol_data.ragged import Ragged
from lol_data.tokenization.tasks import AnyLayout, Traced, layout_of
from lol_data.tokenization.vocabulary import PAD
from lol_data.training.config import TrainConfig


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences of one micro-batch. tokens: uint8 (B, T), prompt and suffix, PAD behind the end.
    lengths: int64 (B,), prompt included; both on the sequences' device. samples: int64 (B,)."""

    tokens: Tensor
    lengths: Tensor
    samples: NDArray[np.int64]


class Sequences:
    """Every (problem, strategy) of a split as tokens."""

    def __init__(self, layout: AnyLayout, prompts: NDArray[np.uint8], suffixes: Ragged):
        """prompts: uint8 (B, P), one per problem. suffixes: uint8 rows, five per problem."""
        self.layout = layout
        self._host_offsets = suffixes.offsets  # lengths are needed where batches are planned
        fields = layout.field_token(np.arange(len(layout.strategies)))
        parts = (prompts, fields, suffixes.values, suffixes.offsets)
        self._prompts, self._fields, self._values, self._offsets = (torch.from_numpy(part) for part in parts)

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

    def to(self, device: torch.device) -> Sequences:
        """The same with its tokens on a device."""
        moved = copy(self)
        for name in ("_prompts", "_fields", "_values", "_offsets"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def __len__(self) -> int:
        return len(self._host_offsets) - 1

    def lengths(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of each sample, prompt included."""
        offsets = self._host_offsets
        return offsets[samples + 1] - offsets[samples] + self.layout.prompt_length

    def gather(self, samples: NDArray[np.int64]) -> Batch:
        """One padded micro-batch."""
        longest = int(self.lengths(samples).max())
        rows = torch.from_numpy(samples).to(self._offsets.device)
        prompts = self._prompts[rows // len(self._fields)]
        prompts[:, -self.layout.field :] = self._fields[rows % len(self._fields), None]
        starts, ends = self._offsets[rows], self._offsets[rows + 1]
        places = starts[:, None] + torch.arange(longest - prompts.shape[1], device=rows.device)
        beyond = places >= ends[:, None]
        suffixes = self._values[places.clamp_(max=len(self._values) - 1)].masked_fill_(beyond, PAD)
        return Batch(torch.cat([prompts, suffixes], 1), ends - starts + prompts.shape[1], samples)


def step_samples(count: int, batch: int, seed: int, step: int, together: int = 1) -> NDArray[np.int64]:
    """The samples of one step, int64 (batch,): consecutive draws from one shuffled pass over `count` after another.

    together: so many samples, a divisor of `count`, keep their order and place side by side.
    """
    first = step * batch
    parts: list[NDArray[np.int64]] = []
    while batch:
        epoch, start = divmod(first, count)
        part = _epoch_order(count, seed, epoch, together)[start : start + batch]
        parts.append(part)
        first, batch = first + len(part), batch - len(part)
    return np.concatenate(parts).astype(np.int64)


@lru_cache(maxsize=2)
def _epoch_order(count: int, seed: int, epoch: int, together: int) -> NDArray:
    groups = _generator(seed, epoch).permutation(count // together)
    order = (groups[:, None] * together + np.arange(together)).flatten()
    return order.astype(np.uint32 if count < 2**32 else np.int64)


def _generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


def split_by_length(sequences: Sequences, samples: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Samples in the fewest parts of at most `size` and of nearly equal numbers, by rising length."""
    samples = samples[np.argsort(sequences.lengths(samples), kind="stable")]
    return np.array_split(samples, -(-len(samples) // size))


def step_micro_batches(sequences: Sequences, train: TrainConfig, step: int) -> list[NDArray[np.int64]]:
    """The samples of each micro-batch of one step, `train.batch` in all."""
    together = 1 if train.order == "mixed" else len(sequences.layout.strategies)
    samples = step_samples(len(sequences), train.batch, train.seed, step, together)
    return split_by_length(sequences, samples, train.micro_batch)
