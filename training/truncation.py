"""Truncated back-propagation: only the last k applications of the core are differentiated, window 0 excepted.

Before the cut, window 0 is computed with gradients and everything behind it without, which saves their memory and
their backward pass. The prelude and the embeddings then learn from the prompt alone.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lol_data.model.layers import Span
from lol_data.model.lol import LibraryOfLayers
from lol_data.model.routing import Choice


class TruncatedLibrary(LibraryOfLayers):
    """The same model and the same values; set `cut` before a pass."""

    cut = 0  # applications, from the first one on, that are not differentiated behind window 0

    def run_windows(self, h: Tensor, level: int, slices: list[tuple[int, int]], choice: Choice, span: Span) -> Tensor:
        """As in the plain model; window 0 attends to itself only, so that it can be computed apart."""
        prompt = self.config.prompt
        if level > self.cut or not torch.is_grad_enabled():
            return super().run_windows(h, level, slices, choice, span)
        first = replace(span, cos=span.cos[:prompt], sin=span.sin[:prompt])
        done = super().run_windows(h[:, :prompt], level, slices[:1], _part(choice, slice(0, 1)), first)
        if len(slices) == 1:
            return done
        with torch.no_grad():
            behind = replace(span, cos=span.cos[prompt:], sin=span.sin[prompt:], field=0)
            moved = [(start - prompt, end - prompt) for start, end in slices[1:]]
            rest = super().run_windows(h[:, prompt:], level, moved, _part(choice, slice(1, None)), behind)
        return torch.cat([done, rest], 1)


def _part(choice: Choice, windows: slice) -> Choice:
    return Choice(choice.ids[:, windows], choice.gates[:, windows], choice.probabilities[:, windows])
