"""All diagnostics of one model on test problems, for a report: numbers in diagnostics.json, arrays in arrays.npz.

Paths are looked at as the known traces take them (teacher-forced) and as the model took them when it decoded itself.
Templates, which own paths are compared with, come from validation problems.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import LolDataError
from lol_data.evaluators.block_order import order_sensitivity
from lol_data.evaluators.dilution import dilution
from lol_data.evaluators.path_measures import (
    agreement,
    loads,
    mean_distances,
    occupancy,
    one_hot,
    pca,
    reuse,
    window_paths,
)
from lol_data.evaluators.probes import probe_all
from lol_data.evaluators.route_margins import flips
from lol_data.evaluators.routes import Routes, observe_routes
from lol_data.evaluators.templates import KINDS, observe_paths
from lol_data.files import whole, write_whole
from lol_data.model.lol import LibraryOfLayers
from lol_data.model.transformer import Transformer
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.tasks import Traced, layout_of
from lol_data.tokenization.vocabulary import TRACE

SCHEMA_VERSION = 1
FOLDER, NUMBERS, ARRAYS = "diagnostics", "diagnostics.json", "arrays.npz"
POINTS = 1000  # windows a PCA is made of, at most
DILUTED, SWAPPED = 100, 30  # problems behind what needs many passes, at most


@dataclass(frozen=True)
class Sequences:
    """What one way of writing yields: M sequences of problems of a test set.

    rows: int64 (M,), problem of each. strategies: int64 (M,), of its trace. fields: int64 (M,), what its strategy field
    says. suffixes: M rows of tokens that begin with `<trace>`.
    """

    rows: NDArray[np.int64]
    strategies: NDArray[np.int64]
    fields: NDArray[np.int64]
    suffixes: Ragged

    def take(self, kept: NDArray[np.integer]) -> Sequences:
        """The given ones, in the given order."""
        return Sequences(self.rows[kept], self.strategies[kept], self.fields[kept], self.suffixes.take(kept))


@dataclass(frozen=True)
class Diagnostics:
    """numbers: for JSON. arrays: by name, see `diagnose`."""

    numbers: dict[str, Any]
    arrays: dict[str, NDArray]


def known_sequences(model: Transformer, traced: Traced, neutral: bool = False) -> Sequences:
    """The canonical trace of every problem under every strategy; neutral: with a field that does not name it."""
    layout = layout_of(traced, model.config.field)
    count = len(layout.strategies)
    rows, strategies = np.repeat(np.arange(len(traced)), count), np.tile(np.arange(count), len(traced))
    fields = np.full(len(rows), NEUTRAL_FIELD) if neutral else strategies
    return Sequences(rows, strategies, fields, layout.problem_suffixes(traced))


def decoded_sequences(
    rows: NDArray[np.int64], strategies: NDArray[np.int64], fields: NDArray[np.int64], outputs: Ragged
) -> Sequences:
    """Outputs as the model was fed them: `<trace>`, and all tokens but the last, which it only predicted."""
    parts = (np.concatenate([np.array([TRACE], np.uint8), output[:-1]]) for output in outputs)
    return Sequences(rows, strategies, fields, Ragged.from_rows(parts))


def routes_of(model: Transformer, traced: Traced, written: Sequences, batch: int, bf16: bool = False) -> Routes:
    """The routes that sequences take, their fields included."""
    layout = layout_of(traced, model.config.field)
    prompts = layout.prompts(layout.problems(traced).take(written.rows), written.fields)
    return observe_routes(model, prompts, written.suffixes, batch, bf16)


def diagnose(
    model: LibraryOfLayers,
    validation: Traced,
    test: Traced,
    decoded: dict[str, Sequences],
    batch: int = 256,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Diagnostics:
    """Everything; `decoded` holds outputs on the test problems by protocol, those with a free router.

    Arrays, each after the name of a way of writing ("known", or a protocol's) and a slash: loads (S, D, L), counts and
    agreeing of the windows compared with the selection template, int64 (S, D, K); points (N, 2) of the PCA, point_
    strategy (N,), distances (S, S). progress is told of steps done, of how many.
    """
    layout = layout_of(test, model.config.field)
    names, blocks, depth = layout.strategies, model.config.blocks, model.config.depth
    known = known_sequences(model, test)
    ways = {"known": known, **decoded}
    total, done = len(ways) + 5, 0

    def tick() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    paths = observe_paths(model, validation, batch)
    templates = {kind: paths.template(kind) for kind in KINDS}
    numbers: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **layout.about,
        "strategies": list(names),
        "n": len(test),
        "template_problems": len(validation),
        "depth": depth,
        "blocks": blocks,
        "windows": {"prompt": model.windows.prompt, "window": model.windows.window, "shift": model.windows.shift},
        "ways": {},
    }
    arrays: dict[str, NDArray] = {}
    exact = None
    for way, written in ways.items():
        routes = routes_of(model, test, written, batch)
        exact = routes if exact is None else exact
        figures, found = _paths(routes, written, len(names), {kind: each.ids for kind, each in templates.items()})
        numbers["ways"][way] = figures
        arrays |= {f"{way}/{name}": values for name, values in found.items()}
        tick()
    assert exact is not None

    numbers["flips"] = flips(exact, routes_of(model, test, known, batch, bf16=True), _bias(model))
    tick()
    for name, measure, most in (("dilution", dilution, DILUTED), ("order", order_sensitivity, SWAPPED)):
        some = known.take(np.flatnonzero(known.rows < most))
        prompts = layout.prompts(layout.problems(test).take(some.rows), some.fields)
        numbers[name] = measure(model, prompts, some.suffixes, batch)
        tick()
    numbers["probes"] = {}
    for field in ("named", "neutral"):
        written = known if field == "named" else known_sequences(model, test, neutral=True)
        routes = exact if field == "named" else routes_of(model, test, written, batch)
        numbers["probes"][field] = probe_all(routes, written.strategies, names, written.rows, test)
        tick()
    return Diagnostics(numbers, arrays)


def _paths(
    routes: Routes, written: Sequences, count: int, templates: dict[str, NDArray]
) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """What can be said of one way's paths, for every strategy (count of them)."""
    tokens = routes.token_paths()
    of_token = written.strategies[tokens.rows]
    kinds = {kind: agreement(routes, written.strategies, ids) for kind, ids in templates.items()}
    vectors, of_window, explained, points = np.zeros((0, 1)), np.zeros(0, np.int64), np.zeros(2), np.zeros((0, 2))
    paths, rows, _ = window_paths(routes)
    if len(paths):
        kept = np.sort(np.random.default_rng(0).permutation(len(paths))[:POINTS])
        vectors, of_window = one_hot(paths, routes.blocks), written.strategies[rows]
        points, explained = pca(vectors[kept])
        arrays = {"points": points, "point_strategy": of_window[kept]}
    else:
        arrays = {"points": points, "point_strategy": of_window}
    arrays |= {
        "loads": loads(routes, written.strategies, count),
        "counts": kinds["selection"].counts,
        "agreeing": kinds["selection"].agreeing,
        "distances": mean_distances(vectors, of_window, count),
    }
    figures = {
        "sequences": len(written.rows),
        "reuse": {
            "all": reuse(tokens.paths, routes.blocks),
            **{str(code): reuse(tokens.paths[of_token == code], routes.blocks) for code in range(count)},
        },
        "occupancy": occupancy(tokens, routes.blocks),
        "agreement": {
            kind: (found.agreeing.sum((1, 2)) / np.maximum(found.counts.sum((1, 2)), 1)).tolist()
            for kind, found in kinds.items()
        },
        "pca": {"windows": len(paths), "explained": explained.tolist()},
    }
    return figures, arrays


def _bias(model: Transformer) -> NDArray[np.float32]:
    return model.router.bias.cpu().numpy()


def write_diagnostics(found: Diagnostics, out: Path, about: dict[str, Any]) -> Path:
    """Write OUT/diagnostics/diagnostics.json and arrays.npz; `about` joins the numbers. Raises LolDataError."""
    folder = out / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / ARRAYS) as draft:
            np.savez_compressed(draft, allow_pickle=False, **found.arrays)
        write_whole(folder / NUMBERS, json.dumps({**about, **found.numbers}, indent=1))
    except OSError as error:
        raise LolDataError(f"{folder}: the diagnostics could not be saved ({error.strerror}); free space") from error
    return folder
