"""What changes over a run: learning rate, core depth and its cost, the selection bias. Progress is step / steps."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lol_data.model.config import ModelConfig
from lol_data.model.formulas import flops_per_sequence


def learning_rate_factor(step: int, steps: int, warmup: int) -> float:
    """Linear warm-up over `warmup` steps, then linear decay to 0 at the end."""
    return min(1.0, (step + 1) / max(1, warmup), (steps - step) / max(1, steps - warmup))


def depth_at(step: int, steps: int, depth: int, growth: float) -> int:
    """Core depth of a step: 1 to `depth` over the first `growth` share of the run, by 1 - sqrt(1 - x)."""
    end = growth * steps
    if step >= end:
        return depth
    return min(depth, 1 + int((1 - math.sqrt(1 - step / end)) * depth))


def bias_step_at(step: int, steps: int, rate: float, fade: float) -> float:
    """Size of the sign rule's step: `rate`, fading linearly to 0 over the last `fade` share of the run."""
    return rate * min(1.0, (steps - step) / max(1.0, fade * steps)) if fade else rate


def undifferentiated(depth: int, backward_depth: int) -> int:
    """Core applications in front of the last `backward_depth`, which gradients reach; 0 of them: all of them do."""
    return max(0, depth - backward_depth) if backward_depth else 0


def capacity_at(step: int, steps: int, capacity: float, warmup: float) -> float:
    """Share of tokens that a Mixture-of-Depths takes: 1 for the first `warmup` share of the run, then on a straight
    line down to `capacity` over as long again."""
    if not warmup:
        return capacity
    return capacity + (1 - capacity) * min(1.0, max(0.0, 2 - step / (warmup * steps)))


def step_flops(
    config: ModelConfig, lengths: NDArray[np.int64], depth: int, cut: int = 0, capacity: float | None = None
) -> int:
    """Floating-point operations of one optimiser step on sequences of the given lengths, forward and backward.

    cut: applications without a backward pass (behind window 0, or of a loop). capacity: of a Mixture-of-Depths now. By
    formula; padding and the optimisers are not counted.
    """
    found, counts = np.unique(lengths, return_counts=True)
    return sum(
        _sequence_flops(config, length, depth, cut, capacity) * count
        for length, count in zip(found.tolist(), counts.tolist(), strict=True)
    )


@lru_cache(maxsize=65536)
def _sequence_flops(config: ModelConfig, length: int, depth: int, cut: int, capacity: float | None) -> int:
    def core(tokens: int) -> int:
        return flops_per_sequence(config, tokens, cut).forward - flops_per_sequence(config, tokens, 0).forward

    spared = core(length) - (0 if config.inject else core(config.prompt))
    return flops_per_sequence(config, length, depth, capacity).training - 2 * spared
