"""Interventions on the path: what happens to equal problems when a part of their path is laid down from outside.

An arm says what each (depth, window) takes from the strategy's template and what it leaves to the router. All arms
decode the same problems under every strategy with the same limit, so they are compared output by output.

    ids-gates    own (nothing forced), ids (the template's blocks, own gates), gates (own blocks, the template's gates),
                 template (both)
    order        the template's blocks shuffled over the depths of each window, gates in place: each block's count stays
    swaps        the blocks of two neighbouring depths exchanged, gates in place
    gates        the template with all gates times a factor from 0 to 1.5
    window-only  a template that knows no depths: one block and one gate per (strategy, window)
    depths       only one depth from the template, and all but one
    windows      only one window from the template, and all but one
    renamed      the field names the next strategy, with each arm of ids-gates

Window 0, the prompt, has the same route for every problem and strategy: shuffles, swaps and factors leave it as it is.
Every arm has a reference, `own` or `template`, from which it differs in one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import UsageError
from lol_data.evaluators.paths import Paths
from lol_data.evaluators.protocols import Requests
from lol_data.evaluators.templates import PathStatistics
from lol_data.tokenization.layout import NEUTRAL_FIELD

FACTORS = (0.0, 0.25, 0.5, 0.75, 1.25, 1.5)  # of the gates; 1 is the template itself
SHUFFLES = 16  # problem i takes shuffle i mod 16
OWN_PATH, TEMPLATE = "own", "template"


@dataclass(frozen=True)
class Arm:
    """One way to decode every problem under every strategy.

    reference: the arm that it is compared with, "" for none. paths: R = variants * S paths, of which a problem under
    strategy s takes row (id mod variants) * S + s; None forces nothing. renamed: the field names the next strategy.
    """

    name: str
    group: str
    reference: str
    paths: Paths | None
    variants: int = 1
    renamed: bool = False

    def requests(self, ids: NDArray[np.uint64], strategies: int, prompted: bool) -> Requests:
        """Problems with the given ids, each under every strategy. prompted: the field names the strategy."""
        rows = np.repeat(np.arange(len(ids)), strategies)
        asked = np.tile(np.arange(strategies), len(ids))
        field = asked if prompted else np.full_like(asked, NEUTRAL_FIELD)
        if self.renamed:
            field = (asked + 1) % strategies
        variant = (ids[rows] % np.uint64(self.variants)).astype(np.int64)
        path = variant * strategies + asked if self.paths else np.zeros_like(asked)
        return Requests(rows, asked.astype(np.uint8), field, path)


def make_arms(statistics: PathStatistics, kind: str, groups: Sequence[str], seed: int = 0) -> list[Arm]:
    """The arms of the given groups, with `own` and `template`, which the others refer to, in front.

    Raises UsageError for a group that is none.
    """
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no group of arms; use {', '.join(GROUPS)}")
    template = statistics.template(kind).paths
    arms = [Arm(OWN_PATH, "ids-gates", "", None), Arm(TEMPLATE, "ids-gates", OWN_PATH, template)]
    for group in GROUPS:
        if group in groups:
            arms += [replace(arm, group=group) for arm in GROUPS[group](template, statistics, kind, seed)]
    return arms


def _ids_gates(template: Paths, *_: object) -> Iterator[Arm]:
    yield Arm("ids", "", OWN_PATH, template.own_gates())
    yield Arm("gates", "", OWN_PATH, template.own_blocks())


def _order(template: Paths, statistics: PathStatistics, kind: str, seed: int) -> Iterator[Arm]:
    if template.ids.shape[1] > 1:
        rng = np.random.default_rng(seed)
        shuffled = [_shuffle(template.ids, rng) for _ in range(SHUFFLES)]
        gates = np.concatenate([template.gates] * SHUFFLES)
        yield Arm("shuffled", "", TEMPLATE, Paths(np.concatenate(shuffled), gates), SHUFFLES)


def _shuffle(ids: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One permutation of the depths for each strategy, all windows alike, that moves some block if any can be moved."""
    shuffled = ids.copy()
    for own, blocks in zip(shuffled, ids, strict=True):
        behind = blocks[:, 1:]
        if (behind == behind[:1]).all():
            continue
        while (own[:, 1:] == behind).all():
            own[:, 1:] = behind[rng.permutation(len(behind))]
    return shuffled


def _swaps(template: Paths, *_: object) -> Iterator[Arm]:
    for depth in range(1, template.ids.shape[1]):
        ids = template.ids.copy()
        ids[:, [depth - 1, depth], 1:] = ids[:, [depth, depth - 1], 1:]
        yield Arm(f"swap-{depth}-{depth + 1}", "", TEMPLATE, Paths(ids, template.gates))


def _gates(template: Paths, *_: object) -> Iterator[Arm]:
    for factor in FACTORS:
        gates = template.gates.copy()
        gates[:, :, 1:] *= np.float32(factor)
        yield Arm(f"gates-x{factor:g}", "", TEMPLATE, Paths(template.ids, gates))


def _window_only(template: Paths, statistics: PathStatistics, kind: str, seed: int) -> Iterator[Arm]:
    yield Arm("window-only", "", TEMPLATE, statistics.per_window(kind).paths)


def _depths(template: Paths, *_: object) -> Iterator[Arm]:
    for depth in range(template.ids.shape[1]):
        here = (np.arange(template.ids.shape[1]) == depth)[:, None]
        yield from _ablations(template, here, f"depth-{depth + 1}")


def _windows(template: Paths, *_: object) -> Iterator[Arm]:
    last = template.ids.shape[2] - 1
    for window in range(1, last + 1):
        yield from _ablations(template, np.arange(last + 1) == window, f"window-{window}")


def _ablations(template: Paths, here: NDArray[np.bool_], name: str) -> Iterator[Arm]:
    yield Arm(f"only-{name}", "", OWN_PATH, template.where(here))
    yield Arm(f"without-{name}", "", TEMPLATE, template.where(~here))


def _renamed(template: Paths, *_: object) -> Iterator[Arm]:
    paths = {"own": None, "ids": template.own_gates(), "gates": template.own_blocks(), "template": template}
    for name, path in paths.items():
        yield Arm(f"renamed-{name}", "", TEMPLATE if name == "template" else OWN_PATH, path, renamed=True)


GROUPS: dict[str, Callable[..., Iterator[Arm]]] = {
    "ids-gates": _ids_gates,
    "order": _order,
    "swaps": _swaps,
    "gates": _gates,
    "window-only": _window_only,
    "depths": _depths,
    "windows": _windows,
    "renamed": _renamed,
}
