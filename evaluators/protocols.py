"""Decoding under a protocol: what the strategy field says, and who chooses the path.

prompted  the field names the strategy, the router chooses
forced    a neutral field, the strategy's template path
neutral   a neutral field, the router chooses: the control, what the model does when nothing asks for a strategy
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lol_data.evaluators.templates import Template
from lol_data.model.decoding import generate
from lol_data.model.lol import LibraryOfLayers
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.tasks import Problems, layout_of
from lol_data.tokenization.vocabulary import EOS, TRACE

PROTOCOLS = ("prompted", "forced", "neutral")


@dataclass(frozen=True, slots=True)
class Outputs:
    """What was decoded for M (problem, strategy) pairs.

    rows: int64 (M,), problem of each output. asked: uint8 (M,). tokens: uint8 rows, from the first step to `<eos>`
    (missing where the limit came first). last_windows: int64 (M, D), the last window entered at each depth. limit: the
    most tokens an output could have.
    """

    rows: NDArray[np.int64]
    asked: NDArray[np.uint8]
    tokens: Ragged
    last_windows: NDArray[np.int64]
    limit: int

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Outputs that the limit ended, bool (M,)."""
        full = np.flatnonzero(self.tokens.lengths == self.limit)
        cut = np.zeros(len(self.tokens), bool)
        cut[full] = self.tokens.values[self.tokens.offsets[full + 1] - 1] != EOS
        return cut


def decode(
    model: LibraryOfLayers,
    problems: Problems,
    protocol: str,
    template: Template | None = None,
    batch: int = 500,
    progress: Callable[[int], None] = lambda outputs: None,
) -> Outputs:
    """Every problem under every strategy, greedily, at most the longest canonical suffix (5 outputs a problem).

    Under `neutral` a problem is decoded once and its output stands for all five strategies. progress is told the number
    of outputs finished by each batch. Raises ValueError for an unknown protocol or a forced one without a template.
    """
    if protocol not in PROTOCOLS or (protocol == "forced") != (template is not None):
        raise ValueError(f"protocol {protocol!r} with template {template and template.kind!r}")
    layout = layout_of(problems, model.config.field)
    count = len(layout.strategies)
    repeat = 1 if protocol == "neutral" else count
    rows = np.repeat(np.arange(len(problems)), repeat)
    asked = np.tile(np.arange(repeat), len(problems))
    field = asked if protocol == "prompted" else np.full(len(rows), NEUTRAL_FIELD)
    parts: list[NDArray[np.uint8]] = []
    for start in range(0, len(rows), batch):
        part = slice(start, start + batch)
        prompts = torch.from_numpy(layout.prompts(problems.take(rows[part]), field[part])).to(model.device)
        forced = template.forced(asked[part], model.device) if template else None
        tokens, _ = generate(model, prompts, TRACE, EOS, layout.longest_suffix, forced)
        parts += [_until_end(row) for row in tokens.to(torch.uint8).cpu().numpy()]
        progress(len(prompts) * count // repeat)
    outputs = Ragged.from_rows(parts)
    if protocol == "neutral":
        rows, asked = np.repeat(np.arange(len(problems)), count), np.tile(np.arange(count), len(problems))
        outputs = outputs.take(rows)
    # The last token of an output is predicted, never fed, and <trace> is fed before it: n outputs are n fed positions.
    last = layout.prompt_length + np.maximum(outputs.lengths, 1) - 1
    levels = range(1, model.config.depth + 1)
    last_windows = np.stack([model.windows.index_behind(last, level) for level in levels], axis=1)
    return Outputs(rows, asked.astype(np.uint8), outputs, last_windows, layout.longest_suffix)


def _until_end(tokens: NDArray[np.uint8]) -> NDArray[np.uint8]:
    ends = np.flatnonzero(tokens == EOS)
    return tokens[: ends[0] + 1] if len(ends) else tokens
