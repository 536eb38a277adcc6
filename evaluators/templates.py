"""Path templates: the route that a strategy usually takes, to be forced on new problems (equation 14, algorithm 2).

Routes are observed on validation problems with their strategy field and their known traces (teacher forcing). For each
strategy s, depth l and window k there are two ways to name a block:

    probability  the block with the highest mean raw probability, with that mean as gate (equation 14)
    selection    the block most often chosen, selection bias included, with its mean raw probability as gate

They differ where the bias overrules the probabilities. A cell that no validation trace reaches is unsupported: it
falls back to the last supported window of its depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from lol_data.errors import RefusedError
from lol_data.evaluators.paths import Paths
from lol_data.model.routing import ForcedPath
from lol_data.model.transformer import Transformer
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD, join
from lol_data.tokenization.tasks import AnyLayout, Problems, Traced, layout_of

KINDS = ("selection", "probability")


@dataclass(frozen=True)
class Template:
    """One kind of template for every strategy; S strategies, D depths, K windows.

    ids: int64 (S, D, K). gates: fp32 (S, D, K). counts: int64 (S, D, K), observations of a cell before the fallback.
    agreement: share of the observed windows whose own choice was the template's block, per strategy, (S,).
    """

    kind: str
    ids: NDArray[np.int64]
    gates: NDArray[np.float32]
    counts: NDArray[np.int64]
    agreement: NDArray[np.float64]

    @property
    def paths(self) -> Paths:
        """The path of every strategy."""
        return Paths(self.ids, self.gates)

    def forced(self, strategies: NDArray[np.integer], device: torch.device) -> ForcedPath:
        """The path of each row's strategy, int (B,)."""
        return self.paths.forced(strategies, device)

    def fell_back(self, strategies: NDArray, last_windows: NDArray) -> NDArray[np.bool_]:
        """Whether an output used an unsupported cell: strategies int (M,), last window at each depth int (M, D)."""
        unsupported = self.counts == 0
        first = np.where(unsupported.any(2), unsupported.argmax(2), np.iinfo(np.int64).max)
        beyond = self.counts.shape[2]
        return (last_windows >= np.minimum(first, beyond)[strategies]).any(1)


@dataclass(frozen=True)
class PathStatistics:
    """Sums over observed routes; n is observations, L blocks.

    counts: int64 (S, D, K). chosen: int64 (S, D, K, L), times each block was taken. probability: float64 (S, D, K, L),
    summed raw probabilities. problems: the prompts of the observed problems, field neutral, as bytes.
    """

    counts: NDArray[np.int64]
    chosen: NDArray[np.int64]
    probability: NDArray[np.float64]
    problems: frozenset[bytes] = field(default=frozenset(), repr=False)

    def template(self, kind: str) -> Template:
        """The template of a kind, unsupported cells filled from the window before."""
        mean = self.probability / np.maximum(self.counts, 1)[..., None]
        ids = (self.chosen if kind == "selection" else mean).argmax(-1)
        agreed = np.take_along_axis(self.chosen, ids[..., None], -1)[..., 0]
        agreement = agreed.sum((1, 2)) / np.maximum(self.counts.sum((1, 2)), 1)
        gates = np.take_along_axis(mean, ids[..., None], -1)[..., 0]
        for k in range(1, ids.shape[2]):
            missing = self.counts[:, :, k] == 0
            ids[:, :, k][missing] = ids[:, :, k - 1][missing]
            gates[:, :, k][missing] = gates[:, :, k - 1][missing]
        return Template(kind, ids, gates.astype(np.float32), self.counts, agreement)

    def per_window(self, kind: str) -> Template:
        """A template that knows windows only: one block, and one gate, for all depths behind the prompt.

        The block is chosen from the sums over depths; the prompt keeps its own path, which knows no strategy.
        """

        def flat(sums: NDArray) -> NDArray:
            sums = sums.copy()
            sums[:, :, 1:] = sums[:, :, 1:].sum(1, keepdims=True)
            return sums

        pooled = PathStatistics(flat(self.counts), flat(self.chosen), flat(self.probability)).template(kind)
        agreed = np.take_along_axis(self.chosen, pooled.ids[..., None], -1)[..., 0]
        agreement = agreed.sum((1, 2)) / np.maximum(self.counts.sum((1, 2)), 1)
        return Template(kind, pooled.ids, pooled.gates, self.counts, agreement)

    def kinds_agree(self) -> float:
        """Share of observations in cells where both kinds of template name the same block."""
        return float((self.counts * self._same_block()).sum() / self.counts.sum())

    def kinds_agree_per_strategy(self) -> NDArray[np.float64]:
        """The same for each strategy, (S,)."""
        same = (self.counts * self._same_block()).sum((1, 2))
        return same / np.maximum(self.counts.sum((1, 2)), 1)

    def refuse_scores_on(self, problems: Problems, layout: AnyLayout) -> None:
        """Raise RefusedError if one of the problems to be scored is among those that the routes were observed on."""
        for k, prompt in enumerate(_neutral_prompts(layout, problems)):
            if prompt in self.problems:
                raise RefusedError(
                    f"problem {problems.id[k]} is to be scored, but the templates were observed on it; "
                    "templates come from validation problems, scores from test problems"
                )

    def _same_block(self) -> NDArray[np.bool_]:
        one, other = (self.template(kind).ids for kind in KINDS)
        return one == other


@torch.inference_mode()
def observe_paths(model: Transformer, traced: Traced, batch: int = 256) -> PathStatistics:
    """Run validation problems under all their strategies, teacher-forced, and add up the routes (n problems x 5)."""
    layout = layout_of(traced, model.config.field)
    suffixes = layout.problem_suffixes(traced)
    strategies, depth, blocks = len(layout.strategies), model.config.depth, model.config.blocks
    longest = layout.prompt_length + int(suffixes.lengths.max())
    windows = 1 + max(model.windows.index(longest - 1, level) for level in range(1, depth + 1))
    counts = np.zeros((strategies, depth, windows), np.int64)
    chosen = np.zeros((strategies, depth, windows, blocks), np.int64)
    probability = np.zeros((strategies, depth, windows, blocks))
    for strategy, tokens, lengths in _strategy_batches(layout, traced, suffixes, batch):
        real_lengths = torch.from_numpy(lengths).to(model.device)
        _, choices = model(torch.from_numpy(tokens).to(model.device), lengths=real_lengths)
        for level, choice in enumerate(choices, start=1):
            slices = model.windows.slices(tokens.shape[1], level)
            ids, p = choice.ids.cpu().numpy(), choice.probabilities.double().cpu().numpy()
            for k, (start, _) in enumerate(slices):
                real = lengths > start
                cell = strategy, level - 1, k
                counts[cell] += real.sum()
                chosen[cell] += np.bincount(ids[real, k], minlength=blocks)
                probability[cell] += p[real, k].sum(0)
    return PathStatistics(counts, chosen, probability, frozenset(_neutral_prompts(layout, layout.problems(traced))))


def _neutral_prompts(layout: AnyLayout, problems: Problems) -> Iterator[bytes]:
    """A problem's neutral prompt says all about it but its id."""
    return (prompt.tobytes() for prompt in layout.prompts(problems, np.full(len(problems), NEUTRAL_FIELD)))


def _strategy_batches(
    layout: AnyLayout, traced: Traced, suffixes: Ragged, batch: int
) -> Iterator[tuple[int, NDArray[np.uint8], NDArray[np.int64]]]:
    strategies = len(layout.strategies)
    for strategy in range(strategies):
        prompts = layout.prompts(layout.problems(traced), np.full(len(traced), strategy))
        rows = suffixes.take(np.arange(len(traced)) * strategies + strategy)
        for start in range(0, len(traced), batch):
            part = rows.take(np.arange(start, min(start + batch, len(traced))))
            tokens = join(prompts[start : start + batch], part)
            yield strategy, tokens, part.lengths + layout.prompt_length
