"""Whether the order of two neighbouring blocks matters.

Two residual steps I + alpha A and I + beta B differ by alpha beta (B A - A B) when they change places, equation (18):
nothing of the first degree is left, so small gates make the order matter less, by the square. Here the two blocks that
a window takes at depths l and l + 1 are applied in both orders on the state that depth l finds, both under the FiLM and
the windows of depth l, so that nothing but the order differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lol_data.model.lol import LibraryOfLayers
from lol_data.model.routing import Choice
from lol_data.model.transformer import LevelWindows
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import join

FACTORS = (0.25, 0.5, 1.0)  # of the gates


def swap_difference(a: NDArray, b: NDArray, alpha: float = 1.0, beta: float = 1.0) -> NDArray:
    """Equation (18) for linear updates A and B, (d, d): first A then B, less first B then A, as a matrix."""
    return alpha * beta * (b @ a - a @ b)


@torch.inference_mode()
def order_sensitivity(
    model: LibraryOfLayers, prompts: NDArray[np.uint8], suffixes: Ragged, batch: int = 64
) -> dict[str, Any]:
    """Swap neighbouring blocks at every depth but the last, for prompts uint8 (M, P) and M suffixes.

    Only tokens whose two blocks differ count. {"factors", "n": tokens per depth (D - 1,), "difference": (D - 1, F),
    mean norm of what the swap changes, at gates times a factor, over the mean norm of what both blocks do in the
    model's own order, "exponent": (D - 1,), slope of log difference (not divided) against log factor, 2 in the linear
    case}. None where there is nothing to compare.
    """
    depth, prompt = model.config.depth, model.config.prompt
    swapped, whole = np.zeros((depth - 1, len(FACTORS))), np.zeros((depth - 1, len(FACTORS)))
    count = np.zeros(depth - 1, np.int64)
    for start in range(0, len(suffixes), batch):
        rows = np.arange(start, min(start + batch, len(suffixes)))
        tokens = torch.from_numpy(join(prompts[rows], suffixes.take(rows))).to(model.device)
        lengths = torch.from_numpy(suffixes.lengths[rows] + prompt).to(model.device)
        real = torch.arange(tokens.shape[1], device=model.device) < lengths[:, None]
        real[:, :prompt] = False
        real = real.flatten()
        for level, (h, windows, one, other, span) in enumerate(_neighbours(model, tokens)):
            differ = (one.ids != other.ids).flatten()[windows.window] & real
            count[level] += int(differ.sum())
            for column, factor in enumerate(FACTORS):

                def after(x: Tensor, choice: Choice, f: float = factor, level: int = level) -> Tensor:
                    scaled = Choice(choice.ids, f * choice.gates, choice.probabilities)
                    return model.run_windows(x, level + 1, windows, scaled, span)  # noqa: B023

                own, turned = after(after(h, one), other), after(after(h, other), one)
                swapped[level, column] += float((own - turned).norm(dim=-1)[differ].double().sum())
                whole[level, column] += float((own - h).norm(dim=-1)[differ].double().sum())
    relative, exponent = [], []
    for level in range(depth - 1):
        some = count[level] > 0 and (swapped[level] > 0).all()
        relative.append((swapped[level] / whole[level]).tolist() if some else [None] * len(FACTORS))
        exponent.append(float(np.polyfit(np.log(FACTORS), np.log(swapped[level]), 1)[0]) if some else None)
    return {"factors": list(FACTORS), "n": count.tolist(), "difference": relative, "exponent": exponent}


def _neighbours(model: LibraryOfLayers, tokens: Tensor):
    """At each depth but the last: its input h, its windows, its routes, and those of the next depth for as many windows
    (the model's pass, taken apart)."""
    h, span = model.open(tokens)
    h = model.run_prelude(h, span)
    before = None
    for level in range(1, model.config.depth + 1):
        windows = LevelWindows.of(model.windows.slices(tokens.shape[1], level), span)
        choice = model.route(h, level, windows, span)
        if before is not None:
            state, old_windows, old = before
            k = torch.arange(old.ids.shape[1], device=model.device).clamp(max=choice.ids.shape[1] - 1)
            following = Choice(choice.ids[:, k], choice.gates[:, k], choice.probabilities[:, k])
            yield state, old_windows, old, following, span
        before = h, windows, choice
        h = model.run_windows(h, level, windows, choice, span)
