"""Token-by-token generation with a cache, equal to recomputing the whole prefix.

Prelude and coda keep all keys and values. What a depth of the core keeps is the core's own affair; of a library of
layers it is the window that is open now (`lol.py`), so that the core's cost per token is bounded by W and independent
of the prefix. All rows of a batch stand at the same position, since prompts of one maze size have one length.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lol_data.model.layers import KeyValueCache
from lol_data.model.routing import Choice, ForcedPath
from lol_data.model.transformer import Prefill, Transformer


class Decoder:
    """Generation state of a batch; made from prompts, then fed one token a row at a time."""

    def __init__(
        self,
        model: Transformer,
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
        visible = config.prompt - model.hidden_field + capacity

        def caches(layers: int) -> list[KeyValueCache]:
            shape = (len(prompts), config.heads, visible, config.width // config.heads)
            return [KeyValueCache(*shape, model.attention_dtype, model.device) for _ in range(layers)]

        core = model.new_states(len(prompts), visible, self.depth)
        self.state = Prefill(caches(config.prelude), core, caches(config.coda))
        model(prompts, self.depth, forced, self.state)

    def step(self, tokens: Tensor) -> tuple[Tensor, list[Choice]]:
        """Feed the next token of every row, integers (B,); returns logits (B, V) and each depth's choice (K = 1)."""
        model, state = self.model, self.state
        position = torch.tensor([self.position], device=model.device)
        span = model.span(position, 0, len(tokens))
        h = start = model.run_prelude(model.embed(tokens, position.expand(len(tokens))), span, state)
        choices = []
        for level, own in enumerate(state.core, start=1):
            h, choice = model.step_depth(h, start, level, self.position, span, self.forced, own)
            choices.append(choice)
        h = model.run_coda(h, span, state)
        self.position += 1
        return model.read_out(h), choices

    def keep(self, rows: Tensor) -> None:
        """Go on with the given rows of the batch only, int64 indices."""
        for part in (*self.state.prelude, *self.state.core, *self.state.coda):
            part.keep(rows)
        if self.forced is not None:
            self.forced = self.forced.keep(rows)


@torch.inference_mode()
def generate(
    model: Transformer,
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
