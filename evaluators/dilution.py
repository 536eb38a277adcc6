"""How fast new evidence reaches the router: one token is changed, and the choices that follow are watched.

The router reads the mean of the means of all complete windows, so a new window k moves it by (mu_k - r_k) / (k + 1),
equation (16): the longer the prefix, the less. A token inside of a window is diluted by the window's length first, and
moves nothing before the next window opens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.evaluators.routes import NOWHERE, Routes, observe_routes
from lol_data.model.transformer import Transformer
from lol_data.ragged import Ragged

PLACES = ("first", "middle", "last")


def window_weight(windows: int, decay: float = 1.0) -> float:
    """Weight of the newest of so many complete windows in the router's input: 1 / (k + 1) for windows 0 .. k, and more
    where older ones fade by `decay`."""
    return float(1 / sum(decay**age for age in range(windows)))


def change_token(suffixes: Ragged, place: int) -> tuple[Ragged, NDArray[np.bool_]]:
    """The same suffixes with the token at a place replaced by the next one of the suffix that differs from it.

    Returns them and where that was possible, bool (M,).
    """
    values, changed = suffixes.values.copy(), np.zeros(len(suffixes), bool)
    for row in np.flatnonzero(suffixes.lengths > place + 1).tolist():
        old = suffixes[row]
        others = old[place + 1 :][old[place + 1 :] != old[place]]
        if len(others):
            values[suffixes.offsets[row] + place] = others[0]
            changed[row] = True
    return Ragged(values, suffixes.offsets), changed


def response(before: Routes, after: Routes, position: int) -> dict[str, NDArray]:
    """What a change at a position moved, per sequence (M,).

    could: a window opens behind the position at all. moved: some choice there changed. delay: tokens from the position
    to the first window whose choice changed. choices, depths: how many changed, at how many depths. shift: half the
    summed change of p (total variation) in the first window behind the position, mean over depths. early: changed
    choices in windows that were open already, 0 in a causal model.
    """
    starts = before.starts()
    real = before.ids != NOWHERE
    later = real & (starts > position)
    differs = real & (before.ids != after.ids)
    moved = differs & later
    first = np.where(moved, starts, np.iinfo(np.int64).max).min((1, 2))
    next_window = (starts <= position).sum(1)  # at each depth, (D,)
    levels = np.flatnonzero(next_window < starts.shape[1])
    cell = levels, next_window[levels]
    distance = 0.5 * np.abs(before.probabilities - after.probabilities).sum(-1)[:, cell[0], cell[1]]
    there = real[:, cell[0], cell[1]]
    return {
        "could": later.any((1, 2)),
        "moved": moved.any((1, 2)),
        "delay": np.where(moved.any((1, 2)), first - position, 0),
        "choices": moved.sum((1, 2)),
        "depths": moved.any(2).sum(1),
        "shift": (distance * there).sum(1) / np.maximum(there.sum(1), 1),
        "early": (differs & ~later).sum((1, 2)),
    }


def dilution(
    model: Transformer, prompts: NDArray[np.uint8], suffixes: Ragged, batch: int = 256
) -> list[dict[str, Any]]:
    """Change the first, middle or last token of each window, one at a time, prompts uint8 (M, P) and M suffixes.

    A line per (prefix, place): {"prefix": complete windows in front, the prompt's included, "place", "weight": of the
    window once it is complete, "n": sequences that could respond, "moved": share of them that did, and of those that
    did the means "delay", "choices", "depths"; "shift": mean over all n}.
    """
    width, config = model.config.window, model.config
    before, lines = observe_routes(model, prompts, suffixes, batch), []
    for k in range(1, before.ids.shape[2]):
        # The first suffix token is <trace>, the same in all sequences.
        for place, inside in zip(PLACES, (1 if k == 1 else 0, width // 2, width - 1), strict=True):
            at = (k - 1) * width + inside
            changed, rows = change_token(suffixes, at)
            kept = np.flatnonzero(rows)
            if not len(kept):
                continue
            after = observe_routes(model, prompts[kept], changed.take(kept), batch)
            found = response(before.take(kept, after.ids.shape[2]), after, config.prompt + at)
            could, moved = found["could"], found["could"] & found["moved"]
            n, hits = int(could.sum()), int(moved.sum())
            if n:
                weight = window_weight(k + 1, config.summary_decay)
                line: dict[str, Any] = {"prefix": k, "place": place, "weight": weight, "n": n, "moved": hits / n}
                line["shift"] = float(found["shift"][could].mean())
                for name in ("delay", "choices", "depths"):
                    line[name] = float(found[name][moved].mean()) if hits else None
                lines.append(line)
    return lines
