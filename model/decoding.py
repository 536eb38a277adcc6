"""Token-by-token generation with a cache, equal to recomputing the whole prefix.

For each depth of the core the cache holds, of the window that is open now, its keys and values, its block and gate,
and the running sums of equation (10): A, the inputs seen in the open window, and B, the means of the closed ones. Only
a window that is full joins the history, never the half one in which a prefill or a step happens to end. The
core's cost per token is therefore bounded by W and independent of the prefix. All rows of a batch stand at the same
position, since prompts of one maze size have one length.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from lol_data.model.grouped import Dispatch
from lol_data.model.layers import KeyValueCache
from lol_data.model.lol import LibraryOfLayers, Prefill
from lol_data.model.routing import Choice, ForcedPath


class OpenWindow:
    """One depth's state: the window that the next token falls into."""

    def __init__(self, first_mean: Tensor, window: int, heads: int, decay: float, dtype: torch.dtype):
        self.decay = decay
        self.closed_means, self.weight = first_mean, 1.0  # B of equation (10), (B, d), and the weight of all in it
        self.inputs = torch.zeros_like(first_mean)  # A of equation (10), (B, d)
        self.count = 0  # a, positions in the open window
        self.number = 0  # k; window 0 is the prompt, already closed
        self.choice: Choice | None = None
        self.dispatch: Dispatch | None = None
        batch, width = first_mean.shape
        self.cache = KeyValueCache(batch, heads, window, width // heads, dtype, first_mean.device)

    def open_next(self) -> Tensor:
        """Close the open window if there is one and return the next one's router input r, (B, 1, d)."""
        if self.count:
            self.closed_means = torch.add(self.inputs / self.count, self.closed_means, alpha=self.decay)
            self.weight = self.decay * self.weight + 1
        self.inputs, self.count, self.cache.length = torch.zeros_like(self.inputs), 0, 0
        self.number += 1
        return (self.closed_means / self.weight)[:, None]

    def keep(self, rows: Tensor, library: int) -> None:
        """Drop all rows of the batch but these."""
        self.closed_means, self.inputs = self.closed_means[rows], self.inputs[rows]
        self.cache.keep(rows)
        if self.choice is not None:
            choice = self.choice
            self.choice = Choice(choice.ids[rows], choice.gates[rows], choice.probabilities[rows])
            self.dispatch = Dispatch.of(self.choice.ids.flatten(), library)


class Decoder:
    """Generation state of a batch; made from prompts, then fed one token a row at a time."""

    def __init__(
        self,
        model: LibraryOfLayers,
        prompts: Tensor,
        capacity: int,
        forced: ForcedPath | None = None,
        depth: int | None = None,
    ):
        """prompts: integers (B, P). capacity: the most suffix tokens that will be fed."""
        config = model.config
        if model.training:
            raise ValueError("the model is in training mode, where routing is noisy; call model.eval() first")
        if prompts.shape[1] != config.prompt:
            raise ValueError(f"prompts of {prompts.shape[1]} tokens; the model's prompt has {config.prompt}")
        self.model, self.forced, self.depth = model, forced, depth or config.depth
        self.position = config.prompt
        visible = config.prompt - config.field + capacity

        def caches(layers: int) -> list[KeyValueCache]:
            shape = (len(prompts), config.heads, visible, config.width // config.heads)
            return [KeyValueCache(*shape, model.attention_dtype, model.device) for _ in range(layers)]

        prefill = Prefill(caches(config.prelude), [], caches(config.coda))
        model(prompts, self.depth, forced, prefill)
        self.prelude, self.coda = prefill.prelude, prefill.coda
        shape = config.window, config.heads, config.summary_decay, model.attention_dtype
        self.core = [OpenWindow(mean, *shape) for mean in prefill.means]

    def step(self, tokens: Tensor) -> tuple[Tensor, list[Choice]]:
        """Feed the next token of every row, integers (B,); returns logits (B, V) and each depth's choice (K = 1)."""
        model, library = self.model, self.model.config.blocks
        position = torch.tensor([self.position], device=model.device)
        h = model.embed(tokens, position.expand(len(tokens)))
        span = model.span(position, 0, len(tokens))
        for layer, cache in zip(model.prelude, self.prelude, strict=True):
            h = layer(h, span, cache)
        choices = []
        for level, state in enumerate(self.core, start=1):
            if state.choice is None or model.windows.starts(self.position, level):
                r = state.open_next()
                state.choice = model.router(r, level, state.number, self.forced, before=state.choice)
                state.dispatch = Dispatch.of(state.choice.ids.flatten(), library)
            state.inputs = state.inputs + h
            state.count += 1
            assert state.dispatch is not None
            attention = partial(span.attend, slices=[(0, 1)], rows=state.dispatch, cache=state.cache)
            h = model.run_blocks(h, level, state.dispatch, state.choice.gates[:, 0], attention, span)
            choices.append(state.choice)
        for layer, cache in zip(model.coda, self.coda, strict=True):
            h = layer(h, span, cache)
        self.position += 1
        return model.read_out(h), choices

    def keep(self, rows: Tensor) -> None:
        """Go on with the given rows of the batch only, int64 indices."""
        for cache in (*self.prelude, *self.coda):
            cache.keep(rows)
        for state in self.core:
            state.keep(rows, self.model.config.blocks)
        if self.forced is not None:
            self.forced = self.forced.keep(rows)


@torch.inference_mode()
def generate(
    model: LibraryOfLayers,
    prompts: Tensor,
    first: int,
    end: int,
    limit: int,
    forced: ForcedPath | None = None,
    depth: int | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Greedy continuation of prompts, integers (B, P), each opened by the token `first`.

    Returns tokens int64 (B, n), n <= limit, without `first`, up to `end` and filled with `end` behind it; and per depth
    the blocks taken, int64 (B, K), K windows behind the prompt, -1 where a row had ended before the window began.
    """
    decoder = Decoder(model, prompts, limit, forced, depth)
    batch = len(prompts)
    out = torch.full((batch, limit), end, dtype=torch.long, device=prompts.device)
    routes: list[list[Tensor]] = [[] for _ in range(decoder.depth)]
    alive = torch.arange(batch, device=prompts.device)
    tokens = torch.full((batch,), first, dtype=torch.long, device=prompts.device)
    used = 0
    for step in range(limit):
        position = decoder.position
        logits, choices = decoder.step(tokens)
        for level, choice in enumerate(choices, start=1):
            if model.windows.starts(position, level):
                column = torch.full((batch,), -1, dtype=torch.long, device=prompts.device)
                column[alive] = torch.where(tokens == end, -1, choice.ids[:, 0])
                routes[level - 1].append(column)
        tokens = torch.where(tokens == end, end, logits.argmax(-1))  # a row that has ended stays ended
        out[alive, step] = tokens
        used = step + 1
        running = tokens != end
        left = int(running.sum())
        if left == 0:
            break
        if left < 0.75 * len(alive):
            rows = running.nonzero()[:, 0]
            decoder.keep(rows)
            alive, tokens = alive[rows], tokens[rows]
    return out[:, :used], [torch.stack(columns, 1) for columns in routes]
