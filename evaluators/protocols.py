"""Decoding under a protocol: what the strategy field says, and who chooses the path.

prompted  the field names the strategy, the router chooses
forced    a neutral field, the strategy's template path
neutral   a neutral field, the router chooses: the control, what the model does when nothing asks for a strategy
conflict  the field names one strategy, the blocks are of another one's template: all ordered pairs of two strategies

Under `conflict` the gates stay the router's own. With gates forced as well, nothing that the field says would reach the
output: it is read by the router alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lol_data import distributed
from lol_data.evaluators.parts import Decoded, Parts
from lol_data.evaluators.paths import Paths
from lol_data.evaluators.templates import Template
from lol_data.model.decoding import generate
from lol_data.model.transformer import Transformer
from lol_data.model.windows import Windows
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.tasks import AnyLayout, Problems, layout_of
from lol_data.tokenization.vocabulary import EOS, TRACE

PROTOCOLS = ("prompted", "forced", "neutral", "conflict")
FORCING = ("forced", "conflict")  # those that need a template
NO_BLOCK = 255  # behind the last window of an output


def silent(outputs: int) -> None:
    """Tell nobody about progress."""


@dataclass(frozen=True, slots=True)
class Requests:
    """M outputs to decode.

    rows: int64 (M,), the problem. asked: uint8 (M,), the strategy that the output is held to. field: int64 (M,), the
    strategy that the field names, or NEUTRAL_FIELD. path: int64 (M,), the forced path where there is one.
    """

    rows: NDArray[np.int64]
    asked: NDArray[np.uint8]
    field: NDArray[np.int64]
    path: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of(problems: int, protocol: str, strategies: int) -> Requests:
        """Every problem under every strategy, or under every ordered pair of them, problem by problem."""
        asked, field = np.arange(strategies), np.full(strategies, NEUTRAL_FIELD)
        if protocol == "prompted":
            field = asked
        elif protocol == "conflict":
            field, asked = np.nonzero(~np.eye(strategies, dtype=bool))
        rows = np.repeat(np.arange(problems), len(asked))
        path = np.tile(asked if protocol in FORCING else np.zeros_like(asked), problems)
        return Requests(rows, np.tile(asked, problems).astype(np.uint8), np.tile(field, problems), path)


@dataclass(frozen=True, slots=True)
class Outputs:
    """What was decoded for M requests.

    rows: int64 (M,), problem of each output. asked: uint8 (M,). tokens: uint8 rows, from the first step to `<eos>`
    (missing where the limit came first). last_windows: int64 (M, D), the last window entered at each depth. limit: the
    most tokens an output could have. field: int64 (M,), as requested. blocks: uint8 (M, D, K), the block of windows
    1 .. K behind the prompt, NO_BLOCK where the output had ended.
    """

    rows: NDArray[np.int64]
    asked: NDArray[np.uint8]
    tokens: Ragged
    last_windows: NDArray[np.int64]
    limit: int
    field: NDArray[np.int64]
    blocks: NDArray[np.uint8]

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Outputs that the limit ended, bool (M,)."""
        full = np.flatnonzero(self.tokens.lengths == self.limit)
        cut = np.zeros(len(self.tokens), bool)
        cut[full] = self.tokens.values[self.tokens.offsets[full + 1] - 1] != EOS
        return cut


def decode(
    model: Transformer,
    problems: Problems,
    protocol: str,
    template: Template | None = None,
    batch: int = 500,
    progress: Callable[[int], None] = silent,
    parts: Parts | None = None,
) -> Outputs:
    """Every problem under every strategy (`conflict`: under every pair), greedily, by `decode_requests`.

    Under `conflict` an output is held to the strategy of its path. Raises ValueError for an unknown protocol, and for
    a template that is missing or would not be used.
    """
    if protocol not in PROTOCOLS or (protocol in FORCING) != (template is not None):
        raise ValueError(f"protocol {protocol!r} with template {template and template.kind!r}")
    requests = Requests.of(len(problems), protocol, len(layout_of(problems, model.config.field).strategies))
    paths = template.paths if template else None
    if paths and protocol == "conflict":
        paths = paths.own_gates()
    return decode_requests(model, problems, requests, paths, batch, progress, parts)


def decode_requests(
    model: Transformer,
    problems: Problems,
    requests: Requests,
    paths: Paths | None = None,
    batch: int = 500,
    progress: Callable[[int], None] = silent,
    parts: Parts | None = None,
) -> Outputs:
    """Decode greedily, at most the longest canonical suffix, `batch` outputs at once.

    Requests that differ only in what they are held to are decoded once. progress is told the number of outputs that
    each batch finished. parts: where finished batches are kept, and what an interrupted call had finished is found.
    Under torchrun each process decodes every n-th batch, and all return the same.
    """
    layout = layout_of(problems, model.config.field)
    units = np.stack([requests.rows, requests.field, requests.path], axis=1)
    units, answered_by, repeats = np.unique(units, axis=0, return_inverse=True, return_counts=True)
    keys = units.copy()
    keys[:, 0] = problems.id[units[:, 0]]
    known: list[Decoded | None] = [None] * len(units)
    if parts:
        known = distributed.from_first(lambda: parts.read(keys))
    progress(int(repeats[[unit is not None for unit in known]].sum()))
    todo = np.array([k for k, unit in enumerate(known) if unit is None], np.int64)
    own: dict[int, Decoded] = {}
    for start in range(distributed.number() * batch, len(todo), distributed.count() * batch):
        part = todo[start : start + batch]
        rows, field, path = units[part].T
        prompts = torch.from_numpy(layout.prompts(problems.take(rows), field)).to(model.device)
        forced = paths.forced(path, model.device) if paths else None
        tokens, routes = generate(model, prompts, TRACE, EOS, layout.longest_suffix, forced)
        decoded = _decoded(tokens.to(torch.uint8).cpu().numpy(), [route.cpu().numpy() for route in routes])
        if parts:
            parts.add(keys[part], decoded)
        own.update(zip(part.tolist(), decoded, strict=True))
        progress(int(repeats[part].sum()))
    for number, found in enumerate(distributed.from_all(own)):
        for at, output in found.items():
            known[at] = output
        if number != distributed.number():
            progress(int(repeats[list(found)].sum()))
    return _outputs(model, layout, requests, [unit for unit in known if unit is not None], answered_by.ravel())


def window_starts(windows: Windows, limit: int, depth: int) -> list[tuple[int, int, int]]:
    """(output token, depth, window) at which each window behind the prompt opens, in the order of computation.

    A window that opens at token t takes its block before token t is known; limit: the most tokens of an output.
    """
    places = [
        (start - windows.prompt, level, k)
        for level in range(1, depth + 1)
        for k, (start, _) in enumerate(windows.slices(windows.prompt + limit, level))
        if k
    ]
    return sorted(places)


def _decoded(tokens: NDArray[np.uint8], routes: list[NDArray[np.int64]]) -> list[Decoded]:
    depth, windows = len(routes), max(route.shape[1] for route in routes)
    blocks = np.full((len(tokens), depth, windows), NO_BLOCK, np.uint8)
    for level, route in enumerate(routes):
        blocks[:, level, : route.shape[1]] = np.where(route < 0, NO_BLOCK, route)
    return [Decoded(_until_end(row), path) for row, path in zip(tokens, blocks, strict=True)]


def _outputs(
    model: Transformer,
    layout: AnyLayout,
    requests: Requests,
    units: list[Decoded],
    answered_by: NDArray[np.int64],
) -> Outputs:
    tokens = Ragged.from_rows(unit.tokens for unit in units)
    # The last token of an output is predicted, never fed, and <trace> is fed before it: n outputs are n fed positions.
    last = layout.prompt_length + np.maximum(tokens.lengths, 1) - 1
    levels = range(1, model.config.depth + 1)
    last_windows = np.stack([model.windows.index_behind(last, level) for level in levels], axis=1)
    blocks = np.full((len(units), len(levels), int(last_windows.max(initial=0))), NO_BLOCK, np.uint8)
    for k, unit in enumerate(units):
        width = min(unit.blocks.shape[1], blocks.shape[2])
        blocks[k, :, :width] = unit.blocks[:, :width]
    return Outputs(
        requests.rows,
        requests.asked,
        tokens.take(answered_by),
        last_windows[answered_by],
        layout.longest_suffix,
        requests.field,
        blocks[answered_by],
    )


def _until_end(tokens: NDArray[np.uint8]) -> NDArray[np.uint8]:
    ends = np.flatnonzero(tokens == EOS)
    return tokens[: ends[0] + 1] if len(ends) else tokens
