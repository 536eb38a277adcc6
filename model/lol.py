"""The Library-of-Layers core (arXiv 2611.03526): blocks that are chosen at run time.

At each depth the sequence is cut into windows; each window takes one block of the library, chosen from the windows
before it, and attention stays inside the window (algorithm 1 of the notes). Window 0 is the whole prompt.
`docs/equations.md` says where each equation of the notes lives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lol_data.model.config import ModelConfig
from lol_data.model.grouped import Dispatch, grouped_linear
from lol_data.model.kernels import Kernels
from lol_data.model.layers import KeyValueCache, apply_block
from lol_data.model.routing import Choice, ForcedPath, prefix_means, window_means
from lol_data.model.span import Span
from lol_data.model.transformer import LevelWindows, Transformer


class OpenWindow:
    """One depth while decoding: the window that the next token falls into, its block and gate, its keys and values,
    and the running sums of equation (10)."""

    def __init__(self, cache: KeyValueCache, decay: float):
        self.cache, self.decay = cache, decay
        self.weight = 1.0  # of all closed windows
        self.count = 0  # a, positions in the open window
        self.number = 0  # k; window 0 is the prompt, already closed
        self.choice: Choice | None = None
        self.dispatch: Dispatch | None = None

    def start(self, first_mean: Tensor) -> None:
        """first_mean: of the prompt, (B, d)."""
        self.closed_means = first_mean  # B of equation (10), (B, d)
        self.inputs = torch.zeros_like(first_mean)  # A of equation (10), (B, d)

    def open_next(self) -> Tensor:
        """Close the open window if there is one and return the next one's router input r, (B, 1, d)."""
        if self.count:
            self.closed_means = torch.add(self.inputs / self.count, self.closed_means, alpha=self.decay)
            self.weight = self.decay * self.weight + 1
        self.inputs, self.count, self.cache.length = torch.zeros_like(self.inputs), 0, 0
        self.number += 1
        return (self.closed_means / self.weight)[:, None]

    def keep(self, rows: Tensor) -> None:
        """Drop all sequences of the batch but these."""
        self.closed_means, self.inputs = self.closed_means[rows], self.inputs[rows]
        self.cache.keep(rows)
        if self.choice is not None:
            choice = self.choice
            self.choice = Choice(choice.ids[rows], choice.gates[rows], choice.probabilities[rows])
            self.dispatch = Dispatch.of(self.choice.ids.flatten(), choice.probabilities.shape[-1])


class LibraryOfLayers(Transformer):
    """See the module's text."""

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        d = config.width
        # FiLM, equation (9): per depth and sublayer (attention, feed-forward).
        self.film_scale = nn.Parameter(torch.ones(config.depth, 2, d))
        self.film_offset = nn.Parameter(torch.zeros(config.depth, 2, d))
        self.depth_vector = nn.Parameter(torch.randn(config.depth, d) * 0.5)  # e_l, equation (5)

    def run_depth(
        self, h: Tensor, start: Tensor, level: int, span: Span, forced: ForcedPath | None, state: Any
    ) -> tuple[Tensor, Choice]:
        """As in `Transformer`; `start` is not read again."""
        windows = LevelWindows.of(self.windows.slices(span.shape[1], level), span)
        choice = self.route(h, level, windows, span, forced, state)
        return self.run_windows(h, level, windows, choice, span), choice

    def route(
        self,
        h: Tensor,
        level: int,
        windows: LevelWindows,
        span: Span,
        forced: ForcedPath | None = None,
        state: OpenWindow | None = None,
    ) -> Choice:
        """The routes that the windows of rows h (M, d) take at a depth."""
        batch, count = span.shape[0], len(windows.slices)
        opening = torch.arange(batch, device=h.device) * span.shape[1] + span.front.field
        opening = opening if span.rows is None else span.rows.place[opening]
        decay = self.config.summary_decay
        if self.kernels and state is None:
            vector = self.depth_vector[level - 1]
            r = self.kernels.router_inputs(h, windows.bounds, opening, windows.tokens, vector, decay)
        else:
            means = window_means(h, windows.window[: windows.tokens], batch * count).view(batch, count, -1)
            if state:
                state.start(means[:, 0])
            r = prefix_means(means, h[opening], self.depth_vector[level - 1], decay)
        return self.router(r, level, forced=forced)

    def run_windows(self, h: Tensor, level: int, windows: LevelWindows, choice: Choice, span: Span) -> Tensor:
        """One depth of the core on rows h (M, d) -> (M, d), along the given routes."""
        if level <= self.cut and torch.is_grad_enabled() and span.shape[1] > self.config.prompt:
            return self._run_cut_off(h, level, windows, choice, span)
        return self._run(h, level, windows, choice, span)

    def _run(self, h: Tensor, level: int, windows: LevelWindows, choice: Choice, span: Span) -> Tensor:
        gates = choice.gates.flatten().index_select(0, windows.window)
        if self.kernels:
            return self._run_in_place(h, level, windows, choice, gates, span, self.kernels)
        dispatch = Dispatch.of(choice.ids.flatten()[windows.window], self.config.blocks, self.tile)
        rows = dispatch if span.rows is None else span.rows.then(dispatch)
        attention = partial(span.attend, slices=windows.slices, rows=rows)
        return self.run_blocks(h, level, dispatch, gates, attention, span)

    def _run_in_place(
        self, h: Tensor, level: int, windows: LevelWindows, choice: Choice, gates: Tensor, span: Span, kernels: Kernels
    ) -> Tensor:
        """The same values with rows that stay in the order of the sequences."""
        tiles = kernels.tiles(windows.slices, windows.bounds, choice.ids, windows.tokens, self.config.blocks)
        key = "stacked", torch.is_grad_enabled()
        if key not in span.made:
            span.made[key] = kernels.stack(self.library, span.matmul)
        stacked = span.made[key]
        if torch.is_grad_enabled():
            stacked.note(tiles)

        def product(x: Tensor, name: str) -> Tensor:
            return kernels.window_linear(x, tiles, stacked.weights[name])

        attention = partial(span.attend, slices=windows.slices)
        return span.ops.gate(h, gates[:, None], *self._updates(h, level, product, attention, span))

    def _run_cut_off(self, h: Tensor, level: int, windows: LevelWindows, choice: Choice, span: Span) -> Tensor:
        """The same values with a gradient for window 0 alone, which reads only itself and so can be computed apart.

        What is cut off needs no memory and no backward pass; the prelude then learns from the prompt alone.
        """

        def run(first: int, last: int) -> tuple[Tensor, Dispatch]:
            begin, end = windows.slices[first][0], windows.slices[last - 1][1]
            kept, part = span.part(begin, end)
            own = LevelWindows.of([(start - begin, stop - begin) for start, stop in windows.slices[first:last]], part)
            cut = slice(first, last)
            chosen = Choice(choice.ids[:, cut], choice.gates[:, cut], choice.probabilities[:, cut])
            return kept.unsort(self._run(kept.sort(h), level, own, chosen, part)), kept

        front, kept = run(0, 1)
        with torch.no_grad():
            behind, _ = run(1, len(windows.slices))
        in_front = torch.zeros(len(h), 1, dtype=torch.bool, device=h.device)
        in_front[kept.source[: len(kept.source) - len(kept.filling)]] = True
        return torch.where(in_front, front, behind)

    def run_blocks(
        self,
        h: Tensor,
        level: int,
        dispatch: Dispatch,
        gates: Tensor,
        attention: Callable[[Tensor], Tensor],
        span: Span,
    ) -> Tensor:
        """Every row through its block under FiLM of this depth: h (M, d), gates (M,).

        attention: what each row read, from the queries, keys and values of all, in the order of the blocks.
        """

        def product(x: Tensor, name: str) -> Tensor:
            weights = (getattr(block, name) for block in self.library)
            return grouped_linear(x, dispatch.sizes, [span.cast(weight) for weight in weights])

        h = dispatch.sort(h)
        attended, fed = self._updates(h, level, product, attention, span)
        return dispatch.unsort(span.ops.gate(h, dispatch.sort(gates)[:, None], attended, fed))

    def _updates(
        self,
        h: Tensor,
        level: int,
        product: Callable[[Tensor, str], Tensor],
        attention: Callable[[Tensor], Tensor],
        span: Span,
    ) -> tuple[Tensor, Tensor]:
        """What attention and the feed-forward network add to rows h (M, d), in any order, before the gate."""
        scale, offset = self.film_scale[level - 1], self.film_offset[level - 1]
        _, attended, fed = apply_block(h, scale, offset, product, attention, span)
        return attended, fed

    def new_states(self, batch: int, capacity: int, depth: int) -> list[OpenWindow]:
        """As in `Transformer`."""
        window, head = self.config.window, self.config.width // self.config.heads
        shape = batch, self.config.heads, window, head, self.attention_dtype, self.device
        return [OpenWindow(KeyValueCache(*shape), self.config.summary_decay) for _ in range(depth)]

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
        """As in `Transformer`. Only a window that is full joins the history, never the half one in which a prefill or a
        step happens to end."""
        if state.choice is None or self.windows.starts(position, level):
            r = state.open_next()
            state.choice = self.router(r, level, state.number, forced, before=state.choice)
            state.dispatch = Dispatch.of(state.choice.ids.flatten(), self.config.blocks)
        assert state.dispatch is not None
        state.inputs = state.inputs + h
        state.count += 1
        attention = partial(span.attend, slices=[(0, 1)], rows=state.dispatch, cache=state.cache)
        return self.run_blocks(h, level, state.dispatch, state.choice.gates[:, 0], attention, span), state.choice
