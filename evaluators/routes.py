"""Which way sequences go through the library: every window's block, gate and probabilities, and every token's path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lol_data.model.transformer import Transformer
from lol_data.model.windows import Windows
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import join

NOWHERE = -1  # in place of a block: the sequence has no such window


@dataclass(frozen=True)
class Routes:
    """The routes of M sequences; D depths, K windows, L blocks.

    ids: int16 (M, D, K), NOWHERE where a sequence ends before the window. gates: fp32 (M, D, K). probabilities: fp32
    (M, D, K, L), raw. lengths: int64 (M,), tokens, prompt included. predicted: uint8 (M, T), the likeliest next token
    behind each of the T suffix positions, 0 behind the end. windows: their geometry.
    """

    ids: NDArray[np.int16]
    gates: NDArray[np.float32]
    probabilities: NDArray[np.float32]
    lengths: NDArray[np.int64]
    predicted: NDArray[np.uint8]
    windows: Windows

    @property
    def depth(self) -> int:
        """D."""
        return self.ids.shape[1]

    @property
    def blocks(self) -> int:
        """L."""
        return self.probabilities.shape[3]

    def take(self, rows: NDArray[np.integer], windows: int) -> Routes:
        """The given sequences, with their first windows only."""
        return Routes(
            self.ids[rows, :, :windows],
            self.gates[rows, :, :windows],
            self.probabilities[rows, :, :windows],
            self.lengths[rows],
            self.predicted[rows],
            self.windows,
        )

    def starts(self) -> NDArray[np.int64]:
        """First position of every window, (D, K)."""
        k = np.arange(self.ids.shape[2])
        offsets = np.array([self.windows.offset(level) for level in range(1, self.depth + 1)])
        behind = np.maximum(self.windows.prompt, self.windows.prompt + (k - 1) * self.windows.window - offsets[:, None])
        return np.where(k == 0, 0, behind)

    def token_paths(self) -> TokenPaths:
        """The blocks that every suffix token goes through, its own at each depth."""
        longest = int(self.lengths.max(initial=self.windows.prompt))
        position = np.arange(self.windows.prompt, longest)
        real = position < self.lengths[:, None]
        rows, columns = real.nonzero()
        paths = np.empty((len(rows), self.depth), np.int16)
        for level in range(1, self.depth + 1):
            window = self.windows.index_behind(position, level)
            paths[:, level - 1] = self.ids[rows, level - 1, window[columns]]
        return TokenPaths(paths, rows, position[columns])


@dataclass(frozen=True)
class TokenPaths:
    """N tokens. paths: int16 (N, D). rows, positions: int64 (N,), the token's sequence and its place there."""

    paths: NDArray[np.int16]
    rows: NDArray[np.int64]
    positions: NDArray[np.int64]


@torch.inference_mode()
def observe_routes(
    model: Transformer, prompts: NDArray[np.uint8], suffixes: Ragged, batch: int = 256, bf16: bool = False
) -> Routes:
    """One pass over whole sequences, prompts uint8 (M, P) and M suffixes that begin with `<trace>`, routing free.

    What a model decoded itself is read again this way with the routes that it took. bf16: matrix products and attention
    in that format; routing is fp32 always.
    """
    prompt, depth, blocks = model.config.prompt, model.config.depth, model.config.blocks
    lengths, count = suffixes.lengths + prompt, len(suffixes)
    longest = int(lengths.max(initial=prompt + 1))
    windows = 1 + max(model.windows.index(longest - 1, level) for level in range(1, depth + 1))
    ids = np.full((count, depth, windows), NOWHERE, np.int16)
    gates = np.zeros((count, depth, windows), np.float32)
    probabilities = np.zeros((count, depth, windows, blocks), np.float32)
    predicted = np.zeros((count, longest - prompt), np.uint8)
    formats = model.matmul_dtype, model.attention_dtype
    if bf16:
        model.matmul_dtype = model.attention_dtype = torch.bfloat16
    try:
        for start in range(0, count, batch):
            rows = np.arange(start, min(start + batch, count))
            tokens = join(prompts[rows], suffixes.take(rows))
            real_lengths = torch.from_numpy(lengths[rows]).to(model.device)
            logits, choices = model(torch.from_numpy(tokens).to(model.device), lengths=real_lengths)
            behind = np.arange(logits.shape[1]) < lengths[rows, None] - prompt
            predicted[rows, : logits.shape[1]] = logits.argmax(-1).cpu().numpy() * behind
            for level, choice in enumerate(choices, start=1):
                starts = [begin for begin, _ in model.windows.slices(tokens.shape[1], level)]
                real, k = lengths[rows, None] > np.array(starts), slice(0, len(starts))
                ids[rows, level - 1, k] = np.where(real, choice.ids.cpu().numpy(), NOWHERE)
                gates[rows, level - 1, k] = choice.gates.cpu().numpy() * real
                probabilities[rows, level - 1, k] = choice.probabilities.cpu().numpy() * real[..., None]
    finally:
        model.matmul_dtype, model.attention_dtype = formats
    return Routes(ids, gates, probabilities, lengths, predicted, model.windows)
