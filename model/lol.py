"""The Library-of-Layers Transformer (arXiv 2611.03526): fixed layers around a core whose blocks are chosen at run time.

    tokens -> embedding -> prelude -> core depth 1 .. D -> coda -> logits of the suffix

At each depth of the core the sequence is cut into windows; each window takes one block of the library, chosen from the
windows before it, and attention stays inside the window (algorithm 1 of the notes). Window 0 is the whole prompt.

A row is one document: there is no packing, so neither attention nor the router's summaries can mix two.
`docs/equations.md` says where each equation of the notes lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lol_data.model.config import ModelConfig
from lol_data.model.grouped import Dispatch, grouped_linear
from lol_data.model.layers import Block, FixedLayer, KeyValueCache, Span, attend, attend_window, linear
from lol_data.model.ops import PLAIN, Ops
from lol_data.model.routing import Choice, ForcedPath, make_router, prefix_means
from lol_data.model.windows import Windows


@dataclass
class Prefill:
    """What a pass leaves for decoding: caches of the fixed layers, and window 0's mean at every depth."""

    prelude: list[KeyValueCache]
    means: list[Tensor]
    coda: list[KeyValueCache]


class LibraryOfLayers(nn.Module):
    """See the module's text; every tensor is named and shaped by `ModelConfig`."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config.validate()
        self.windows = Windows(config.prompt, config.window, config.shift)
        d = config.width
        self.embedding = nn.Embedding(config.vocabulary, d)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.prompt_embedding = nn.Parameter(torch.randn(config.prompt, d) * 0.5) if config.prompt_embedding else None
        self.prelude = nn.ModuleList(FixedLayer(d, config.hidden) for _ in range(config.prelude))
        self.library = nn.ModuleList(Block(d, config.hidden) for _ in range(config.blocks))
        # FiLM, equation (9): per depth and sublayer (attention, feed-forward).
        self.film_scale = nn.Parameter(torch.ones(config.depth, 2, d))
        self.film_offset = nn.Parameter(torch.zeros(config.depth, 2, d))
        # e_l, equation (5); a fixed path has no use for it
        learned = config.router != "fixed"
        self.depth_vector = nn.Parameter(torch.randn(config.depth if learned else 0, d) * 0.5, requires_grad=learned)
        self.router = make_router(config)
        self.coda = nn.ModuleList(FixedLayer(d, config.hidden) for _ in range(config.coda))
        self.final_norm = nn.Parameter(torch.ones(d))
        self.head = nn.Parameter(torch.randn(config.vocabulary, d) * 0.02)
        # How to compute, not what: kept out of the configuration and of checkpoints.
        self.ops: Ops = PLAIN
        self.matmul_dtype = self.attention_dtype = torch.float32
        self.tile = 1  # see `Dispatch.of`

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.device

    def forward(
        self,
        tokens: Tensor,
        depth: int | None = None,
        forced: ForcedPath | None = None,
        prefill: Prefill | None = None,
    ) -> tuple[Tensor, list[Choice]]:
        """Logits of the suffix and the routes taken.

        tokens: integers (B, T), T >= P, in text order, padded at the end only. depth: core applications, default D.
        forced: a path to follow instead of the router's. prefill: filled on the way when given (T must be P).
        Returns fp32 logits (B, T - P, V), those at position i predicting token i + 1, and one Choice per depth.
        """
        config = self.config
        if tokens.shape[1] < config.prompt:
            raise ValueError(f"{tokens.shape[1]} tokens; the prompt alone has {config.prompt}")
        if not 1 <= (depth or config.depth) <= config.depth:
            raise ValueError(f"depth {depth}; the model was made for 1 to {config.depth}")
        field, problem = config.field, config.prompt - config.field
        positions = torch.arange(tokens.shape[1], device=self.device)
        positions = torch.cat([positions[problem : config.prompt], positions[:problem], positions[config.prompt :]])
        h = self.embed(tokens[:, positions], positions)  # slot order from here on
        span = self.span(positions, field)

        for index, layer in enumerate(self.prelude):
            h = layer(h, span, prefill.prelude[index] if prefill else None)
        choices = []
        for level in range(1, (depth or config.depth) + 1):
            slices = self.windows.slices(tokens.shape[1], level)
            choice = self.router(self.router_inputs(h, slices, level), level, forced=forced)
            if prefill:
                prefill.means.append(h.mean(1))
            h = self.run_windows(h, level, slices, choice, span)
            choices.append(choice)

        h, span = h[:, field:], self.span(positions[field:], 0)
        for index, layer in enumerate(self.coda):
            h = layer(h, span, prefill.coda[index] if prefill else None)
        return self.read_out(h[:, problem:]), choices

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Input states, fp32 (B, T, d), of tokens (B, T) that stand at positions (T,)."""
        h = self.embedding(tokens.long())
        if self.prompt_embedding is None:
            return h
        inside = positions < self.config.prompt
        return h + self.prompt_embedding[positions.clamp(max=self.config.prompt - 1)] * inside[:, None]

    def router_inputs(self, h: Tensor, slices: list[tuple[int, int]], level: int) -> Tensor:
        """r of every window, fp32 (B, K, d); h (B, T, d) in slot order. A fixed path reads nothing: (B, K, 0)."""
        if not len(self.depth_vector):
            return h.new_empty(len(h), len(slices), 0)
        vector = self.depth_vector[level - 1]
        return prefix_means(h, slices, h[:, self.config.field], vector, self.config.summary_decay)

    def read_out(self, h: Tensor) -> Tensor:
        """Logits, fp32 (..., V)."""
        return linear(self.ops.norm_film(h, self.final_norm, None, self.matmul_dtype), self.head).float()

    def span(self, positions: Tensor, field: int) -> Span:
        """The rotary angles and settings of a pass over the given positions, int64 (T,)."""
        half = self.config.width // (2 * self.config.heads)
        rates = self.config.rope_base ** (-torch.arange(half, device=positions.device, dtype=torch.float32) / half)
        angles = positions[:, None].float() * rates
        return Span(
            angles.cos(),
            angles.sin(),
            field,
            self.config.prompt,
            self.config.heads,
            self.ops,
            self.matmul_dtype,
            self.attention_dtype,
        )

    def run_windows(self, h: Tensor, level: int, slices: list[tuple[int, int]], choice: Choice, span: Span) -> Tensor:
        """One depth of the core over whole sequences: h (B, T, d) -> (B, T, d)."""
        lengths = torch.tensor([end - start for start, end in slices], device=h.device)
        blocks = torch.repeat_interleave(choice.ids, lengths, dim=1, output_size=h.shape[1])
        gates = torch.repeat_interleave(choice.gates, lengths, dim=1, output_size=h.shape[1])

        def attention(qkv: Tensor) -> Tensor:
            q, k, v = span.ops.rotate(qkv, span.cos, span.sin, span.heads, span.attention)
            (_, end), *rest = slices
            mixed = [attend(q[:, :, :end], k[:, :, :end], v[:, :, :end], span)]
            mixed += [attend_window(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b]) for a, b in rest]
            return torch.cat(mixed, 1)

        dispatch = Dispatch.of(blocks.flatten(), self.config.blocks, self.tile)
        return self.run_blocks(h, level, dispatch, gates[..., None], attention, span)

    def run_blocks(
        self,
        h: Tensor,
        level: int,
        dispatch: Dispatch,
        gates: Tensor,
        attention: Callable[[Tensor], Tensor],
        span: Span,
    ) -> Tensor:
        """Every token through its block under FiLM of this depth: h (B, T, d), gates (B, T, 1).

        attention: from q, k, v in one tensor (B, T, 3 d) to what each position read, (B, T, d); it alone knows the
        windows.
        """
        ops, shape = span.ops, (len(h), h.shape[1], -1)

        def routed(x: Tensor, name: str) -> Tensor:
            return grouped_linear(x, dispatch.sizes, [getattr(block, name) for block in self.library])

        def routed_in_place(x: Tensor, name: str) -> Tensor:
            x = dispatch.sort(x.to(span.matmul).flatten(0, 1))
            return dispatch.unsort(routed(x, name)).view(shape)

        scale, offset = self.film_scale[level - 1], self.film_offset[level - 1]
        u = ops.norm_film(h, scale[0], offset[0], span.matmul)
        attended = routed_in_place(attention(routed_in_place(u, "qkv")), "out")
        u = ops.norm_film(ops.add(h, attended), scale[1], offset[1], span.matmul)
        hidden = ops.swiglu(routed(dispatch.sort(u.flatten(0, 1)), "up"))
        fed = dispatch.unsort(routed(hidden, "down")).view(shape)
        return ops.gate(h, gates, attended, fed)
