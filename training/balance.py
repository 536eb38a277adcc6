"""Keeping all blocks in use: the sign rule on the selection bias, or a term of the loss.

Both go by the loads of a whole optimiser step, over all depths, window 0 included, whatever its micro-batches were and
however many processes shared them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lol_data import distributed
from lol_data.model.experts import Experts
from lol_data.model.routing import Choice
from lol_data.model.windows import Windows
from lol_data.training.health import real_windows


@torch.no_grad()
def move_bias(bias: Tensor, counts: Tensor, step: float) -> None:
    """The sign rule: blocks with less than the mean load gain `step`, the others lose it; the mean is taken out."""
    delta = step * torch.sign(counts.float().mean() - counts.float())
    bias += delta - delta.mean()


def auxiliary_loss(choices: list[Choice], load: Tensor, windows: Windows, length: int, lengths: Tensor) -> Tensor:
    """L times the sum over blocks of load and probability, added up over the windows of one micro-batch.

    load: share of the windows that each block got in the step before, (L,); it is no part of the gradient. With the
    loads of the step itself the loss would no longer be a sum over micro-batches. lengths: (B,), padded to `length`.
    Divided by `count_windows` it is 1 where the loads are even, or the probabilities.
    """
    total = torch.zeros((), device=load.device)
    for level, choice in enumerate(choices, start=1):
        real = real_windows(windows, level, length, lengths)
        total = total + ((choice.probabilities @ load) * real).sum()
    return total * len(load)


def count_windows(windows: Windows, lengths: NDArray[np.int64], depth: int) -> int:
    """Windows of sequences of the given lengths, longer than the prompt, over all depths."""
    return sum(int((windows.index_behind(lengths - 1, level) + 1).sum()) for level in range(1, depth + 1))


def balance_experts(model: nn.Module, step: float) -> dict[str, Any]:
    """The same rule for every mixture of experts, by the tokens that each expert got in this step, which are then
    forgotten; returns the least and the greatest share of all."""
    shares = []
    for module in model.modules():
        if isinstance(module, Experts):
            distributed.add_up(module.counts)
            move_bias(module.bias, module.counts, step)
            shares.append(module.counts / module.counts.sum())
            module.counts.zero_()
    if not shares:
        return {}
    every = torch.cat(shares)
    return {"least_expert": round(every.min().item(), 4), "most_expert": round(every.max().item(), 4)}
