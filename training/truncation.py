"""Truncated back-propagation: only the last k applications of the core are differentiated, window 0 excepted.

Before the cut, window 0 is computed with gradients and everything behind it without, which saves their memory and
their backward pass. The prelude and the embeddings then learn from the prompt alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lol_data.model.layers import Span
from lol_data.model.lol import LevelWindows, LibraryOfLayers
from lol_data.model.routing import Choice


class TruncatedLibrary(LibraryOfLayers):
    """The same model and the same values; set `cut` before a pass."""

    cut = 0  # applications, from the first one on, that are not differentiated behind window 0

    def run_windows(self, h: Tensor, level: int, windows: LevelWindows, choice: Choice, span: Span) -> Tensor:
        """As in the plain model; window 0 attends to itself only, so that it can be computed apart."""
        prompt, length = self.config.prompt, span.shape[1]
        if level > self.cut or not torch.is_grad_enabled() or length == prompt:
            return super().run_windows(h, level, windows, choice, span)
        first, part = span.part(0, prompt, self.tile)
        chosen = Choice(choice.ids[:, :1], choice.gates[:, :1], choice.probabilities[:, :1])
        front = super().run_windows(first.sort(h), level, LevelWindows.of(windows.slices[:1], part), chosen, part)
        with torch.no_grad():
            behind, part = span.part(prompt, length, self.tile)
            slices = [(start - prompt, end - prompt) for start, end in windows.slices[1:]]
            chosen = Choice(choice.ids[:, 1:], choice.gates[:, 1:], choice.probabilities[:, 1:])
            rest = super().run_windows(behind.sort(h), level, LevelWindows.of(slices, part), chosen, part)
        in_front = torch.zeros(len(h), 1, dtype=torch.bool, device=h.device)
        in_front[first.source[: len(first.source) - len(first.filling)]] = True
        return torch.where(in_front, first.unsort(front), behind.unsort(rest))
