"""The gradients of one step: what it is made of, and going through its micro-batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lol_data import distributed
from lol_data.model.config import ModelConfig
from lol_data.model.fixed_path import FixedPath
from lol_data.model.grouped import rows_for
from lol_data.model.transformer import Transformer
from lol_data.tokenization.vocabulary import PAD
from lol_data.training.balance import auxiliary_loss, count_windows
from lol_data.training.config import TrainConfig
from lol_data.training.data import Sequences, step_micro_batches
from lol_data.training.depths import DepthStatistics, depth_loss
from lol_data.training.health import RouteStatistics
from lol_data.training.schedule import capacity_at, depth_at, undifferentiated


@dataclass(frozen=True)
class StepPlan:
    """Step `number`, counted from 0: a pure function of (configuration, data, number).

    parts: the samples of each micro-batch, by rising length. lengths: int64, of all samples, prompt included. targets:
    tokens that are predicted. depth: core applications; cut: the first ones that are not differentiated behind the
    prompt. capacity: share of tokens that a Mixture-of-Depths takes.
    """

    number: int
    parts: list[NDArray[np.int64]]
    samples: NDArray[np.int64]
    lengths: NDArray[np.int64]
    targets: int
    depth: int
    cut: int
    capacity: float

    @staticmethod
    def of(train: TrainConfig, model: ModelConfig, sequences: Sequences, number: int) -> StepPlan:
        """The plan of a step."""
        parts = step_micro_batches(sequences, train, number)
        samples = np.concatenate(parts)
        lengths = sequences.lengths(samples)
        depth = depth_at(number, train.steps, model.depth, train.growth)
        return StepPlan(
            number,
            parts,
            samples,
            lengths,
            targets=int((lengths - model.prompt - 1).sum()),
            depth=depth,
            cut=undifferentiated(depth, train.backward_depth),
            capacity=capacity_at(number, train.steps, model.capacity, train.capacity_warmup),
        )

    @property
    def tokens(self) -> int:
        """Of all sequences, padding not counted."""
        return int(self.lengths.sum())

    def padding(self, sequences: Sequences, tile: int) -> dict[str, float]:
        """What part of the rows that are computed is filling, and of the slots if all were as long as the longest."""
        rows = slots = 0
        for part in self.parts:
            lengths = sequences.lengths(part)
            slots += len(part) * int(lengths.max())
            rows += rows_for(int(lengths.sum()), len(part) * int(lengths.max()), tile)
        return {"padding": round(1 - self.tokens / rows, 4), "attention_padding": round(1 - self.tokens / slots, 4)}


@dataclass(frozen=True)
class StepSums:
    """What a step's passes add up to, over all processes. loss: mean per target; auxiliary: the term that balances the
    blocks' loads, where there is one; routes, depths: how blocks and tokens were chosen."""

    loss: Tensor
    auxiliary: Tensor
    routes: RouteStatistics
    depths: DepthStatistics


def accumulate(
    model: Transformer, sequences: Sequences, train: TrainConfig, plan: StepPlan, load: list[int]
) -> StepSums:
    """Leave the gradient of a step in the model's parameters. load: windows that took each block in the step before."""
    config, device = model.config, model.device
    routed = config.router != "fixed"
    loss_sum, auxiliary_sum = torch.zeros(2, device=device)
    sums = StepSums(
        loss_sum,
        auxiliary_sum,
        RouteStatistics(plan.depth, config.blocks, device),
        DepthStatistics(config, plan.depth, device),
    )
    model.train()
    model.cut = plan.cut
    if isinstance(model, FixedPath):
        model.capacity = plan.capacity
    balanced_by_loss = routed and train.balance == "auxiliary"
    if balanced_by_loss:
        shares = torch.tensor(load, dtype=torch.float32, device=device) / sum(load)
        weight = train.auxiliary_weight / count_windows(model.windows, plan.lengths, plan.depth)
    for number in range(distributed.number(), len(plan.parts), distributed.count()):
        part = plan.parts[number]
        longest = int(sequences.lengths(part).max())
        torch.manual_seed(noise_seed(train.seed, plan.number, number))
        batch = sequences.gather(part)
        logits, choices = model(batch.tokens, plan.depth, lengths=batch.lengths)
        loss = suffix_loss(logits, batch.tokens, config.prompt) / plan.targets
        sums.loss.add_(loss.detach())
        if balanced_by_loss:
            term = weight * auxiliary_loss(choices, shares, model.windows, longest, batch.lengths)
            sums.auxiliary.add_(term.detach())
            loss = loss + term
        if any(choice.taken for choice in choices):
            loss = loss + depth_loss(choices, train, plan.capacity, plan.tokens, len(plan.samples))
        loss.backward()
        sums.depths.add(choices)
        if routed:
            sums.routes.add(choices, model.windows, longest, batch.lengths)
    distributed.add_up(sums.loss, sums.auxiliary, sums.routes.counts, sums.routes.sums, sums.depths.sums)
    distributed.add_up_gradients(model.parameters())
    return sums


def suffix_loss(logits: Tensor, tokens: Tensor, prompt: int) -> Tensor:
    """Summed cross-entropy of every suffix token behind `<trace>`: logits (B, T - P, V), tokens (B, T)."""
    wanted = tokens[:, prompt + 1 :].long().flatten()
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), wanted, ignore_index=PAD, reduction="sum")


def noise_seed(seed: int, step: int, micro_batch: int) -> int:
    """What the random draws of one micro-batch begin with, whichever process makes them."""
    return int(np.random.SeedSequence((seed, step, micro_batch)).generate_state(1, np.uint64)[0])
