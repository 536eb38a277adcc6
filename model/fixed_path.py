"""A core in which every token goes one way: depth l takes block (l - 1) mod L with a full gate. The rivals of LoL.

Without more it is the control of the experiments: the library, windows and FiLM of LoL, and nothing that routes. Five
settings make the others of it. `attention`: sliding windows, or full attention. `core_experts`: sparse mixtures of
experts. `inject`: a loop as of Huginn (arXiv 2502.05171), where a state that begins as noise, and outside of training
as zeros, reads the prelude's output at each turn through the library. `film`: whether a depth has norms of its own, or
all turns share their block's. `capacity`: Mixture-of-Depths (`depths.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.attention import fused_attention
from lol_data.model.config import ModelConfig
from lol_data.model.depths import DepthRouter, RaggedCache, Taken, best_of_each
from lol_data.model.grouped import linear, new_matrix
from lol_data.model.layers import Block, KeyValueCache, apply_block
from lol_data.model.routing import Choice, ForcedPath
from lol_data.model.span import Span
from lol_data.model.transformer import Transformer


class FixedPath(Transformer):
    """See the module's text."""

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        d, by_depth = config.width, config.film == "depth"
        self.film_scale = nn.Parameter(torch.ones(config.depth if by_depth else config.blocks, 2, d))
        self.film_offset = nn.Parameter(torch.zeros(config.depth, 2, d)) if by_depth else None
        self.input = new_matrix(d, 2 * d) if config.inject else None  # of state and prelude, side by side
        levels = filter(config.takes_some, range(1, config.depth + 1))
        self.depth_routers = nn.ModuleDict({str(level): DepthRouter(config) for level in levels})
        self.capacity = config.capacity  # of training now; it may come down to the configuration's

    def run_depth(
        self,
        h: Tensor,
        start: Tensor,
        level: int,
        span: Span,
        forced: ForcedPath | None,
        state: Any,
    ) -> tuple[Tensor, Choice]:
        """As in `Transformer`."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and level > self.cut):
            h = self._read(h, start, level)
            slices = self.windows.slices(span.shape[1], level)
            choice = self._choice(span.shape[0], len(slices), level, forced)
            if router := self._router(level):
                h, taken = self._take(h, level, router, span, state)
                return h, replace(choice, taken=taken)
            if self.config.attention == "windows":  # what comes behind the prompt does not read it
                return self._whole(h, level, span, partial(span.attend, slices=slices)), choice
            attention = partial(span.attend, slices=[(0, span.shape[1])], cache=state, reach=self.reach)
            return self._whole(h, level, span, attention), choice

    @property
    def reach(self) -> int | None:
        """Slots that a slot reads with sliding attention."""
        return self.config.window if self.config.attention == "sliding" else None

    def _choice(self, batch: int, windows: int, level: int, forced: ForcedPath | None) -> Choice:
        if forced is not None:
            raise ValueError("the model's path is fixed; no other can be forced")
        return self.router(torch.empty(batch, windows, 0, device=self.device), level)

    def _read(self, h: Tensor, start: Tensor, level: int) -> Tensor:
        """The state in front of a depth; at the first one of a turn it reads the prelude's output."""
        if self.input is None or (level - 1) % self.config.blocks:
            return h
        if level == 1:
            h = torch.randn_like(h) * self.config.noise if self.training else torch.zeros_like(h)
        return linear(torch.cat([h, start], -1).to(self.matmul_dtype), self.input).float()

    def _updates(
        self, h: Tensor, level: int, span: Span, attention: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        number = (level - 1) % self.config.blocks
        block = cast(Block, self.library[number])
        scale, offset = self.film_scale[number], cast(Any, (None, None))
        if self.film_offset is not None:
            scale, offset = self.film_scale[level - 1], self.film_offset[level - 1]
        return apply_block(h, scale, offset, block.product(span), attention, span, block.experts)

    def _whole(self, h: Tensor, level: int, span: Span, attention: Callable[[Tensor], Tensor]) -> Tensor:
        middle, _, fed = self._updates(h, level, span, attention)
        return span.ops.add(middle, fed)

    def _router(self, level: int) -> DepthRouter | None:
        name = str(level)
        return cast(DepthRouter, self.depth_routers[name]) if name in self.depth_routers else None

    def _take(
        self, h: Tensor, level: int, router: DepthRouter, span: Span, cache: RaggedCache | None
    ) -> tuple[Tensor, Taken]:
        """A depth that takes some of the tokens: the others stay as they are."""
        tokens, sequence = span.tokens, span.sequence
        scores = router.scores(h[:tokens])
        guesses = router.guesses(h[:tokens], scores)
        straight = self.config.depth_gate == "straight_through"
        wanted = scores.detach()
        if straight and self.training:
            wanted = wanted - torch.empty_like(wanted).exponential_().log()  # Gumbel noise
        best = best_of_each(wanted, sequence, self.capacity)
        taken = best if self.training else guesses > 0
        kept, part = span.choose(taken)
        slices = [(0, part.shape[1])]

        def fill(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            assert cache is not None
            cache.fill(k, v, torch.bincount(sequence[taken], minlength=span.shape[0]))
            return fused_attention(q, k, v, slices)

        attention = partial(part.attend, slices=slices, mix=fill if cache else None)
        x = kept.sort(h)
        _, attended, fed = self._updates(x, level, part, attention)
        filling = (0, len(h) - tokens)
        gates = kept.sort(F.pad(self._gate(scores, straight), filling))
        done = kept.unsort(span.ops.gate(x, gates[:, None], attended, fed))
        return torch.where(F.pad(taken, filling)[:, None], done, h), Taken(scores, guesses, best, taken, sequence)

    @staticmethod
    def _gate(scores: Tensor, straight: bool) -> Tensor:
        gates = scores.sigmoid()
        return 1 + gates - gates.detach() if straight else gates

    def new_states(self, batch: int, capacity: int, depth: int) -> list[KeyValueCache | RaggedCache]:
        """As in `Transformer`."""
        heads, head = self.config.heads, self.config.width // self.config.heads
        if self.config.attention == "windows":
            capacity = self.config.window
        states: list[KeyValueCache | RaggedCache] = []
        for level in range(1, depth + 1):
            kind = RaggedCache if self._router(level) else KeyValueCache
            states.append(kind(batch, heads, capacity, head, self.attention_dtype, self.device))
        return states

    def step_depth(
        self,
        h: Tensor,
        start: Tensor,
        level: int,
        position: int,
        span: Span,
        forced: ForcedPath | None,
        state: Any,
    ) -> tuple[Tensor, Choice]:
        """As in `Transformer`."""
        h = self._read(h, start, level)
        choice = self._choice(len(h), 1, level, forced)
        if router := self._router(level):
            scores = router.scores(h)
            rows = (router.guesses(h, scores) > 0).nonzero()[:, 0]
            if len(rows):
                part = replace(span, shape=(len(rows), 1))
                attention = partial(part.attend, slices=[(0, 1)], mix=partial(state.attend, rows=rows))
                _, attended, fed = self._updates(h[rows], level, part, attention)
                gates = self._gate(scores[rows], self.config.depth_gate == "straight_through")
                h = h.index_copy(0, rows, span.ops.gate(h[rows], gates[:, None], attended, fed))
            return h, choice
        if self.config.attention == "windows" and self.windows.starts(position, level):
            state.length = 0
        attention = partial(span.attend, slices=[(0, 1)], cache=state, reach=self.reach)
        return self._whole(h, level, span, attention), choice
