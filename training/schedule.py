"""What changes over a run: learning rate, core depth, the step of the selection bias. Progress is step / steps."""

from __future__ import annotations

import math


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
