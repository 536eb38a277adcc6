"""What all models share: embeddings, fixed layers around a core of depth D, logits of the suffix.

    tokens -> embedding -> prelude -> core depth 1 .. D -> coda -> logits of the suffix

Only the core differs: `lol.py` routes windows through a library of blocks, `fixed_path.py` goes one way for all. A row
of a batch is one document: there is no packing, so neither attention nor summaries can mix two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lol_data.model.attention import Front
from lol_data.model.config import ModelConfig
from lol_data.model.grouped import Dispatch, linear
from lol_data.model.kernels import Kernels
from lol_data.model.layers import Block, FixedLayer, KeyValueCache
from lol_data.model.ops import PLAIN, Ops
from lol_data.model.routing import Choice, ForcedPath, make_router
from lol_data.model.span import Span
from lol_data.model.windows import Windows


class DepthState(Protocol):
    """What decoding keeps of one depth of the core."""

    def keep(self, rows: Tensor) -> None:
        """Drop all sequences of the batch but these."""


@dataclass
class Prefill:
    """What a pass over the prompts leaves for decoding: caches of the fixed layers, the core's state at every depth."""

    prelude: list[KeyValueCache]
    core: Sequence[DepthState]
    coda: list[KeyValueCache]


@dataclass(frozen=True)
class LevelWindows:
    """K windows of each sequence at one depth.

    slices: [start, end) in slots. window: int64 (M,), b K + k of each row; rows of the filling, which come last, follow
    the last token into its window. tokens: rows that are no filling. count: B K.
    """

    slices: list[tuple[int, int]]
    window: Tensor
    tokens: int
    count: int

    @cached_property
    def bounds(self) -> Tensor:
        """The first row of each window, and the end of the last one, int32 (B K + 1,)."""
        numbers = torch.arange(self.count + 1, device=self.window.device)
        return torch.searchsorted(self.window[: self.tokens], numbers, out_int32=True)

    @staticmethod
    def of(slices: list[tuple[int, int]], span: Span) -> LevelWindows:
        """The windows of the sequences of a pass."""
        device, (batch, length) = span.cos.device, span.shape
        lengths = _lengths(tuple(slices), device)
        numbers = torch.arange(len(slices), device=device)
        of_slot = torch.repeat_interleave(numbers, lengths, output_size=length)
        window = (torch.arange(batch, device=device)[:, None] * len(slices) + of_slot).flatten()
        if span.rows is None:
            return LevelWindows(slices, window, len(window), batch * len(slices))
        rows = torch.arange(len(span.rows.source), device=device)
        window = window[span.rows.source[rows.clamp(max=span.tokens - 1)]]
        return LevelWindows(slices, window, span.tokens, batch * len(slices))


@lru_cache(maxsize=4096)
def _lengths(slices: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    """Of windows, int64 (K,); kept, because a GPU waits for what comes from the host."""
    with torch.inference_mode(False):
        return torch.tensor([end - start for start, end in slices], device=device)


class Transformer(nn.Module):
    """See the module's text; every tensor is named and shaped by `ModelConfig`."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config.validate()
        self.windows = Windows(config.prompt, config.window, config.shift)
        d = config.width

        def fixed_layers(count: int) -> nn.ModuleList:
            inner = config.expert_width if config.experts > 1 else config.hidden
            return nn.ModuleList(FixedLayer(d, inner, config.experts, config.top) for _ in range(count))

        self.embedding = nn.Embedding(config.vocabulary, d)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.prompt_embedding = None
        if config.prompt_embedding:
            # Drawn for all, so that a seed gives the other weights the same values with shared vectors and without.
            drawn = torch.randn(config.prompt, d) * 0.5
            behind = 1 + config.prompt - config.own_positions  # bos and the shared ones
            self.prompt_embedding = nn.Parameter(torch.cat([drawn[:1], drawn[behind:]]))
        self.prelude = fixed_layers(config.prelude)
        inner = config.expert_width if config.core_experts > 1 else config.hidden
        self.library = nn.ModuleList(Block(d, inner, config.core_experts, config.top) for _ in range(config.blocks))
        self.router = make_router(config)
        self.coda = fixed_layers(config.coda)
        self.final_norm = nn.Parameter(torch.ones(d))
        self.head = nn.Parameter(torch.randn(config.vocabulary, d) * 0.02)
        # How to compute, not what: kept out of the configuration and of checkpoints.
        self.ops: Ops = PLAIN
        self.matmul_dtype = self.attention_dtype = torch.float32
        self.tile = 1  # see `Dispatch.of`
        self.kernels: Kernels | None = None
        self.cut = 0  # depths, from the first one on, that are not differentiated behind window 0, in training

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.device

    @property
    def hidden_field(self) -> int:
        """Positions of the strategy field that nothing but the router reads."""
        return self.config.hidden_field

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
        h = start = self.run_prelude(h, span, prefill)
        choices = []
        for level in range(1, (depth or config.depth) + 1):
            h, choice = self.run_depth(h, start, level, span, forced, prefill.core[level - 1] if prefill else None)
            choices.append(choice)
        if self.hidden_field:
            kept, span = span.part(self.hidden_field, length)
            h = kept.sort(h)
        h = self.run_coda(h, span, prefill)
        kept, span = span.part(config.prompt - self.hidden_field, span.shape[1])
        logits = span.unsort(self.read_out(kept.sort(h)))
        return logits.view(batch, length - config.prompt, config.vocabulary), choices

    def run_prelude(self, h: Tensor, span: Span, prefill: Prefill | None = None) -> Tensor:
        """The fixed layers in front of the core, on rows h (M, d)."""
        for index, layer in enumerate(self.prelude):
            h = layer(h, span, prefill.prelude[index] if prefill else None)
        return h

    def run_coda(self, h: Tensor, span: Span, prefill: Prefill | None = None) -> Tensor:
        """The fixed layers behind it."""
        for index, layer in enumerate(self.coda):
            h = layer(h, span, prefill.coda[index] if prefill else None)
        return h

    def run_depth(
        self, h: Tensor, start: Tensor, level: int, span: Span, forced: ForcedPath | None, state: Any
    ) -> tuple[Tensor, Choice]:
        """One depth of the core over whole sequences: rows h (M, d) -> (M, d), and the routes.

        start: what the prelude gave. state: of this depth, one of `new_states`; filled when given, the pass being over
        prompts.
        """
        raise NotImplementedError

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
        """The same for the token at one position of every sequence, h (B, d), behind what the state holds."""
        raise NotImplementedError

    def new_states(self, batch: int, capacity: int, depth: int) -> Sequence[DepthState]:
        """Empty states of each depth, for sequences of up to `capacity` slots that attention can see."""
        raise NotImplementedError

    def open(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Span]:
        """Embedded rows in slot order, fp32 (M, d), and what is to be known of them; arguments as of `forward`."""
        field = self.hidden_field
        problem, (batch, length) = self.config.prompt - field, tokens.shape
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
        config = self.config
        vectors: Tensor = self.prompt_embedding
        if config.shared_cells:
            cells = self.embedding.weight[config.first_cell : config.first_cell + config.cells]
            vectors = torch.cat([vectors[:1], cells, vectors[1:]])
        own = F.embedding(positions.clamp(max=config.prompt - 1), vectors)
        return torch.addcmul(h, own, inside[:, None].to(h.dtype))

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
            Front(field, self.config.prompt, self.config.whole_problem),
            self.config.heads,
            self.ops,
            self.matmul_dtype,
            self.attention_dtype,
            self.tile,
        )
