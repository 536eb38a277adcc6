"""Evaluation and intervention by path: which run, which problems, which templates, and what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lol_data import distributed
from lol_data.errors import RefusedError, UsageError
from lol_data.evaluators import evaluate as evaluation
from lol_data.evaluators.intervene import FIELDS
from lol_data.evaluators.intervene import intervene as run_arms
from lol_data.evaluators.interventions import GROUPS
from lol_data.evaluators.parts import Parts
from lol_data.evaluators.protocols import FORCING, PROTOCOLS
from lol_data.evaluators.templates import KINDS, PathStatistics, observe_paths
from lol_data.generators.fingerprint import SPLITS, assign_splits
from lol_data.model.build import make_model
from lol_data.model.deeper import READINGS, deepen
from lol_data.model.transformer import Transformer
from lol_data.runs import RUNS, Note, dataset_layout, find_dataset, newest
from lol_data.shards.manifest import MANIFEST
from lol_data.shards.reader import Dataset
from lol_data.tokenization.tasks import AnyLayout, Problems, layout_for
from lol_data.training.config import RunConfig, shape_of
from lol_data.training.machine import pick_device
from lol_data.training.run_folder import load_trained, own_data, read_run

TEMPLATES, SCORES = "validation", "test"  # the splits that templates and scores come from; there is no other choice
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """What `eval` and `intervene` have in common.

    run: by default the newest. data: by default the run's own. template_data: the data set whose validation split the
    templates come from, by default the run's own, if it is still there. depth: core applications, by default the
    trained ones; reading: what depths behind the trained ones get (see `model.deeper`).
    """

    run: Path | None = None
    data: Path | None = None
    n: int = 200
    template_data: Path | None = None
    template_problems: int = 500
    out: Path | None = None
    batch: int = 500
    device: str | None = None
    depth: int | None = None
    reading: str = READINGS[0]

    def validate(self) -> None:
        """Raise UsageError for a number that is none."""
        numbers = {"--n": self.n, "--template-problems": self.template_problems, "--batch": self.batch}
        for name, value in {**numbers, "--depth": 1 if self.depth is None else self.depth}.items():
            if value < 1:
                raise UsageError(f"{name} is {value}; it must be 1 or more")
        if self.reading not in READINGS:
            raise UsageError(f"--reading {self.reading}: use {', '.join(READINGS)}")


@dataclass(frozen=True)
class Prepared:
    """A model and the problems to try it on. about: what every summary says of them. out: where results go."""

    model: Transformer
    layout: AnyLayout
    problems: Problems
    about: dict[str, Any]
    out: Path
    statistics: PathStatistics | None

    def parts(self, name: str, settings: dict[str, Any]) -> Parts:
        """The finished batches of an evaluation of this name, as far as they depend on what `about` and these say."""
        return distributed.from_first(lambda: self._parts(name, settings))

    def _parts(self, name: str, settings: dict[str, Any]) -> Parts:
        left_out = {"run", "n", "data"} | (set() if "template" in settings else {"template_source"})
        kept = {key: value for key, value in self.about.items() if key not in left_out}
        return Parts.open(self.out / ".parts" / name, {**kept, **settings})


def _run(request: Request) -> Path:
    return request.run or distributed.from_first(lambda: newest(RUNS, "run.json", "train one with: lol-data train"))


def prepare(request: Request, templates: bool, note: Note) -> Prepared:
    """Load the model and read the problems. Raises UsageError; RefusedError for training problems."""
    run = _run(request)
    about_run = read_run(run)
    own_path = Path(about_run["data"]["path"])
    dataset = find_dataset(request.data or own_data(run, about_run), note)
    layout = _layout(run, about_run, dataset, note)
    model, checkpoint = load_trained(run, layout, pick_device(request.device), note)
    if templates and model.config.router == "fixed":
        raise UsageError(f"{run}: its path is fixed, no other can be forced; use --protocol prompted")
    is_own = dataset.manifest.content_hash == about_run["data"]["content_hash"]
    test = dataset.read_split(SCORES, request.n, columns=())
    if not len(test):
        raise UsageError(f"{dataset.path}: its test split is empty; make a larger set or --test-share")
    if len(test) < request.n:
        note(f"{dataset.path}: the test split has {len(test)} problems, not {request.n}")
    own = None
    if not is_own and (own_path / MANIFEST).exists():
        own = find_dataset(own_path, note)
        _refuse_trained_on(own, dataset, test)
    about = {
        "run": str(run),
        "checkpoint": checkpoint.name,
        "data": str(dataset.path),
        "content_hash": dataset.manifest.content_hash,
        "n": len(test),
    }
    out = request.out or run / "eval"
    if request.out is None and not is_own:
        out = out / f"on-{dataset.path.name}"
    if request.depth not in (None, model.config.depth):
        about |= {"trained_depth": model.config.depth, "depth": request.depth, "reading": request.reading}
        out = out if request.out else out / f"depth-{request.depth}-{request.reading}"
        model = deepen(model, request.depth or 1, request.reading)
    statistics = None
    if templates:
        source = find_dataset(request.template_data, note) if request.template_data else own or dataset
        statistics, origin = _observe(model, layout, source, request.template_problems)
        about["template_source"] = origin
    return Prepared(model, layout, layout.problems(test), about, out, statistics)


def evaluate(
    request: Request, protocol: str, kind: str, note: Note, progress: Progress
) -> tuple[list[dict[str, Any]], list[Path]]:
    """Evaluate a run's newest checkpoint on test problems; returns each protocol's summary and results folder.

    protocol: one of PROTOCOLS, or `all`: prompted, forced where there is a path to force, and neutral. kind: of the
    template, one of KINDS or `both`.
    What an interrupted call had decoded is kept; raises RefusedError where it was decoded with other settings. Under
    torchrun only the first process returns.
    """
    if protocol not in (*PROTOCOLS, "all"):
        raise UsageError(f"--protocol {protocol}: use {', '.join(PROTOCOLS)} or all")
    if kind not in (*KINDS, "both"):
        raise UsageError(f"--template {kind}: use {', '.join(KINDS)} or both")
    request.validate()
    with distributed.processes():
        note, progress = distributed.only_first(note), distributed.only_first(progress)
        return _evaluate(request, protocol, kind, note, progress)


def _evaluate(
    request: Request, protocol: str, kind: str, note: Note, progress: Progress
) -> tuple[list[dict[str, Any]], list[Path]]:
    names: tuple[str, ...] = ("prompted", "forced", "neutral") if protocol == "all" else (protocol,)
    run = _run(request)
    request = replace(request, run=run)  # looked for once: another run may become the newest meanwhile
    if protocol == "all" and read_run(run)["config"]["model"].get("router") == "fixed":
        names = ("prompted", "neutral")
    kinds = KINDS if kind == "both" else (kind,)
    arms = [(name, each) for name in names for each in (kinds if name in FORCING else kinds[:1])]
    prepared = prepare(request, any(name in FORCING for name in names), note)
    strategies = len(prepared.layout.strategies)
    per_problem = [strategies * (strategies - 1 if name == "conflict" else 1) for name, _ in arms]
    total, done = sum(per_problem) * len(prepared.problems), 0

    def tick(outputs: int) -> None:
        nonlocal done
        done += outputs
        progress(done, total)

    summaries, folders = [], []
    for name, each in arms:
        settings: dict[str, Any] = {"protocol": name}
        if name in FORCING:
            settings["template"] = each
        parts = prepared.parts(name + (f"-{each}" if name in FORCING else ""), settings)
        result = evaluation.evaluate(
            prepared.model, prepared.problems, name, prepared.statistics, each, request.batch, tick, parts
        )
        if distributed.is_first():
            folders.append(evaluation.write_result(result, prepared.out, prepared.about))
            parts.remove()
        summaries.append({**prepared.about, **result.summary})
    return summaries, folders


def intervene(
    request: Request, groups: Sequence[str], kind: str, field: str, seed: int, note: Note, progress: Progress
) -> tuple[dict[str, Any], Path]:
    """Decode test problems under the arms of the given groups; returns the summary and the results folder."""
    if kind not in KINDS:
        raise UsageError(f"--template {kind}: use {' or '.join(KINDS)}")
    if field not in FIELDS:
        raise UsageError(f"--field {field}: use {' or '.join(FIELDS)}")
    if unknown := [group for group in groups if group not in GROUPS]:
        raise UsageError(f"--arms {unknown[0]}: use {', '.join(GROUPS)}")
    request.validate()
    with distributed.processes():
        note, progress = distributed.only_first(note), distributed.only_first(progress)
        return _intervene(request, groups, kind, field, seed, note, progress)


def _intervene(
    request: Request, groups: Sequence[str], kind: str, field: str, seed: int, note: Note, progress: Progress
) -> tuple[dict[str, Any], Path]:
    prepared = prepare(request, True, note)
    assert prepared.statistics is not None  # templates were asked for
    folder, kept = prepared.out / "interventions", []

    def parts_of(arm: str) -> Parts:
        settings = {"arm": arm, "template": kind, "field": field, "seed": seed}
        kept.append(prepared.parts(f"interventions-{arm}", settings))
        return kept[-1]

    summary, samples = run_arms(
        prepared.model,
        prepared.problems,
        prepared.statistics,
        kind,
        groups,
        field,
        seed,
        request.batch,
        progress,
        parts_of,
    )
    summary = {**prepared.about, **summary}
    if distributed.is_first():
        evaluation.save(folder, summary, samples)
        for parts in kept:
            parts.remove()
    return summary, folder


def _layout(run: Path, about_run: dict[str, Any], dataset: Dataset, note: Note) -> AnyLayout:
    """The layout of the data, which is the run's, or one of another size that its model can read."""
    config = RunConfig.from_json(about_run["config"])
    layout = dataset_layout(dataset, config.strategy_field)
    trained = layout_for(about_run["data"], config.strategy_field)
    if layout == trained:
        return layout
    refusal = f"{dataset.path} has {layout.kind}; {run} was trained on {trained.kind}"
    if layout.task != trained.task:
        raise UsageError(refusal)
    shape = config.model_config(trained)
    if shape.prompt_embedding and not shape.shared_cells:
        raise UsageError(
            f"{refusal}, and has a vector for each of its {trained.prompt_length} prompt positions, so it reads no "
            "other size; train with --set model.shared_cells=true or model.prompt_embedding=false"
        )
    note(f"{refusal}: positions and cell numbers that are new to it were never trained")
    return layout


def _refuse_trained_on(own: Dataset, dataset: Dataset, test: Any) -> None:
    """Splits follow fingerprint and shares: with other shares, test problems may be what the run was trained on."""
    a, b = own.manifest, dataset.manifest
    same_problems = a.task == b.task and all(a.settings.get(k) == b.settings.get(k) for k in ("size", "loops"))
    if not same_problems:
        return
    splits = assign_splits(dataset.task.fingerprints(test), a.validation_share, a.test_share)
    if leaked := int((splits != SPLITS.index(SCORES)).sum()):
        raise RefusedError(
            f"{dataset.path}: {leaked} of {len(test)} test problems belong to other splits in {own.path}, which the "
            "run was trained on; make the set with the same --validation-share and --test-share"
        )


def _observe(
    model: Transformer, layout: AnyLayout, source: Dataset, count: int
) -> tuple[PathStatistics, dict[str, Any]]:
    """Routes on validation problems, and where they come from."""
    field = layout.field
    validation = source.read_split(TEMPLATES, count)
    if not len(validation):
        raise UsageError(f"{source.path}: its validation split is empty, templates need it")
    observed = dataset_layout(source, field)
    if observed.task != layout.task:
        raise UsageError(f"{source.path} has {observed.kind}; templates for {layout.kind} cannot come from it")
    reader = model
    if observed.prompt_length != layout.prompt_length:  # another size: the same weights behind another prompt
        reader = make_model(replace(model.config, **shape_of(observed))).to(model.device).eval()
        reader.load_state_dict(model.state_dict())
    statistics = observe_paths(reader, validation)
    digest = hashlib.sha256(np.ascontiguousarray(statistics.probability).tobytes()).hexdigest()[:16]
    return statistics, {
        "data": str(source.path),
        "content_hash": source.manifest.content_hash,
        "split": TEMPLATES,
        "problems": len(validation),
        "routes": digest,
    }
