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
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.config import ModelConfig
from lol_data.model.grouped import Dispatch, grouped_linear
from lol_data.model.layers import Block, FixedLayer, KeyValueCache, Span, apply_block, linear
from lol_data.model.ops import PLAIN, Ops
from lol_data.model.routing import Choice, ForcedPath, make_router, prefix_means, window_means
from lol_data.model.windows import Windows


@dataclass
class Prefill:
    """What a pass leaves for decoding: caches of the fixed layers, and window 0's mean at every depth."""

    prelude: list[KeyValueCache]
    means: list[Tensor]
    coda: list[KeyValueCache]


@dataclass(frozen=True)
class LevelWindows:
    """K windows of each sequence at one depth.

    slices: [start, end) in slots. window: int64 (M,), b K + k of each row; rows of the filling, which come last, follow
    the last token into its window. tokens: rows that are no filling.
    """

    slices: list[tuple[int, int]]
    window: Tensor
    tokens: int

    @staticmethod
    def of(slices: list[tuple[int, int]], span: Span) -> LevelWindows:
        """The windows of the sequences of a pass."""
        device, (batch, length) = span.cos.device, span.shape
        lengths = torch.tensor([end - start for start, end in slices], device=device)
        numbers = torch.arange(len(slices), device=device)
        of_slot = torch.repeat_interleave(numbers, lengths, output_size=length)
        window = (torch.arange(batch, device=device)[:, None] * len(slices) + of_slot).flatten()
        if span.rows is None:
            return LevelWindows(slices, window, len(window))
        rows = torch.arange(len(span.rows.source), device=device)
        tokens = len(rows) - len(span.rows.filling)
        return LevelWindows(slices, window[span.rows.source[rows.clamp(max=tokens - 1)]], tokens)


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
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, list[Choice]]:
        """Logits of the suffix and the routes taken.

        tokens: integers (B, T), T >= P, in text order, padded at the end only. depth: core applications, default D.
        forced: a path to follow instead of the router's. prefill: filled on the way when given (T must be P). lengths:
        int64 (B,), P or more; tokens behind them are not computed, and their logits and windows are of no use.
        Returns fp32 logits (B, T - P, V), those at position i predicting token i + 1, and one Choice per depth.
        """
        config = self.config
        batch, length = tokens.shape
        if length < config.prompt:
            raise ValueError(f"{length} tokens; the prompt alone has {config.prompt}")
        if not 1 <= (depth or config.depth) <= config.depth:
            raise ValueError(f"depth {depth}; the model was made for 1 to {config.depth}")
        h, span = self.open(tokens, lengths)
        for index, layer in enumerate(self.prelude):
            h = layer(h, span, prefill.prelude[index] if prefill else None)
        choices = []
        for level in range(1, (depth or config.depth) + 1):
            windows = LevelWindows.of(self.windows.slices(length, level), span)
            choice = self.route(h, level, windows, span, forced, prefill)
            h = self.run_windows(h, level, windows, choice, span)
            choices.append(choice)
        kept, span = span.part(config.field, length, self.tile)
        h = kept.sort(h)
        for index, layer in enumerate(self.coda):
            h = layer(h, span, prefill.coda[index] if prefill else None)
        kept, span = span.part(config.prompt - config.field, span.shape[1], self.tile)
        logits = span.unsort(self.read_out(kept.sort(h)))
        return logits.view(batch, length - config.prompt, config.vocabulary), choices

    def open(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Span]:
        """Embedded rows in slot order, fp32 (M, d), and what is to be known of them; arguments as of `forward`."""
        field, problem = self.config.field, self.config.prompt - self.config.field
        batch, length = tokens.shape
        positions = torch.arange(length, device=self.device)
        positions = torch.cat([positions[problem : problem + field], positions[:problem], positions[problem + field :]])
        mask = torch.ones(batch, length, dtype=torch.bool, device=self.device)
        if lengths is not None:
            mask = positions < lengths[:, None]
        rows = self.rows_of(mask)
        tokens, everywhere = tokens[:, positions].flatten(), positions.repeat(batch)
        if rows is not None:
            tokens, everywhere = tokens[rows.source], everywhere[rows.source]
        return self.embed(tokens, everywhere), self.span(positions, field, batch, rows)

    def rows_of(self, mask: Tensor) -> Dispatch | None:
        """Rows for the slots that a mask, bool (B, T), keeps."""
        if mask.numel() % self.tile == 0 and bool(mask.all()):
            return None
        return Dispatch.keep(mask.flatten(), self.tile)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Input states, fp32 (M, d), of tokens (M,) that stand at positions (M,)."""
        h = self.embedding(tokens.long())
        if self.prompt_embedding is None:
            return h
        inside = positions < self.config.prompt
        own = F.embedding(positions.clamp(max=self.config.prompt - 1), self.prompt_embedding)
        return torch.addcmul(h, own, inside[:, None].to(h.dtype))

    def route(
        self,
        h: Tensor,
        level: int,
        windows: LevelWindows,
        span: Span,
        forced: ForcedPath | None = None,
        prefill: Prefill | None = None,
    ) -> Choice:
        """The routes that rows h (M, d) take at a depth. A fixed path reads nothing of them."""
        batch, count = span.shape[0], len(windows.slices)
        r = h.new_empty(batch, count, 0)
        if len(self.depth_vector) or prefill:
            means = window_means(h, windows.window[: windows.tokens], batch * count).view(batch, count, -1)
            if prefill:
                prefill.means.append(means[:, 0])
        if len(self.depth_vector):
            opening = torch.arange(batch, device=h.device) * span.shape[1] + self.config.field
            first = h[opening if span.rows is None else span.rows.place[opening]]
            r = prefix_means(means, first, self.depth_vector[level - 1], self.config.summary_decay)
        return self.router(r, level, forced=forced)

    def read_out(self, h: Tensor) -> Tensor:
        """Logits, fp32 (M, V), of rows h (M, d)."""
        return linear(self.ops.norm_film(h, self.final_norm, None, self.matmul_dtype), self.head).float()

    def span(self, positions: Tensor, field: int, batch: int, rows: Dispatch | None = None) -> Span:
        """The rotary angles and settings of a pass over the given positions, int64 (T,), of every sequence."""
        half = self.config.width // (2 * self.config.heads)
        rates = self.config.rope_base ** (-torch.arange(half, device=positions.device, dtype=torch.float32) / half)
        angles = positions[:, None].float() * rates
        return Span(
            rows,
            (batch, len(positions)),
            angles.cos(),
            angles.sin(),
            field,
            self.config.prompt,
            self.config.heads,
            self.ops,
            self.matmul_dtype,
            self.attention_dtype,
        )

    def run_windows(self, h: Tensor, level: int, windows: LevelWindows, choice: Choice, span: Span) -> Tensor:
        """One depth of the core on rows h (M, d) -> (M, d)."""
        gates = choice.gates.flatten().index_select(0, windows.window)
        dispatch = Dispatch.of(choice.ids.flatten()[windows.window], self.config.blocks, self.tile)
        rows = dispatch if span.rows is None else span.rows.then(dispatch)
        return self.run_blocks(h, level, dispatch, gates, lambda qkv: span.attend(qkv, windows.slices, rows), span)

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
        h = dispatch.sort(h)
        _, attended, fed = apply_block(
            h,
            self.film_scale[level - 1],
            self.film_offset[level - 1],
            lambda x, name: grouped_linear(x, dispatch.sizes, [getattr(block, name) for block in self.library]),
            attention,
            span,
        )
        return dispatch.unsort(span.ops.gate(h, dispatch.sort(gates)[:, None], attended, fed))
