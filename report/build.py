"""Diagnostics and report of a run, by path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lol_data.errors import LolDataError, UsageError
from lol_data.evaluators.diagnostics import Sequences, decoded_sequences, diagnose, write_diagnostics
from lol_data.model.lol import LibraryOfLayers
from lol_data.ragged import Ragged
from lol_data.report.material import EVAL, Result, read_material
from lol_data.report.page import report_page
from lol_data.report.plots import library
from lol_data.shards.reader import open_dataset
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.tasks import Traced
from lol_data.training.config import RunConfig
from lol_data.training.machine import pick_device
from lol_data.training.run_folder import load_trained, own_data, read_run

REPORT = "report.html"
FREE = ("prompted", "neutral")  # protocols in which the router chooses


def diagnose_run(
    run: Path,
    data: Path | None,
    n: int,
    template_problems: int,
    batch: int,
    device: str | None,
    note: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> tuple[dict[str, Any], Path]:
    """Diagnose a run's newest checkpoint on n test problems, and the outputs of prompted and neutral where there are
    any; returns the numbers and the folder. Raises UsageError for a run or data that are not there."""
    from lol_data.runs import dataset_layout

    for name, value in (("--n", n), ("--template-problems", template_problems), ("--batch", batch)):
        if value < 1:
            raise UsageError(f"{name} is {value}; it must be 1 or more")
    about = read_run(run)
    dataset = open_dataset(data or own_data(run, about))
    layout = dataset_layout(dataset, RunConfig.from_json(about["config"]).strategy_field)
    model, checkpoint = load_trained(run, layout, pick_device(device), note)
    if not isinstance(model, LibraryOfLayers):
        raise UsageError(f"{run}: its path is fixed, so there are no routes to look into")
    validation, test = dataset.read_split("validation", template_problems), dataset.read_split("test", n)
    for split, traced in (("validation", validation), ("test", test)):
        if not len(traced):
            raise UsageError(f"{dataset.path}: its {split} split is empty; make a larger set")
    decoded: dict[str, Sequences] = {}
    if (run / EVAL).exists():
        for result in read_material(run).results:
            of_checkpoint = result.summary.get("checkpoint") in (None, checkpoint.name)
            free = result.summary["protocol"] in FREE and result.samples is not None
            if free and of_checkpoint and (written := _decoded(result, test, layout.strategies)):
                decoded[result.name] = written
    about_diagnostics = {"run": str(run), "checkpoint": checkpoint.name, "data": str(dataset.path)}
    found = diagnose(model, validation, test, decoded, batch, progress)
    folder = write_diagnostics(found, run / EVAL, about_diagnostics)
    return {**about_diagnostics, **found.numbers}, folder


def report_run(run: Path, data: Path | None, out: Path | None, note: Callable[[str], None]) -> Path:
    """Write the page; returns where. Raises UsageError where nothing was evaluated, LolDataError without matplotlib."""
    library()
    material = read_material(run)
    if material.diagnostics is None:
        note(f"{run} has no diagnostics yet, the report goes without: lol-data diagnose {run}")
    dataset = open_dataset(data or own_data(run, material.about))
    summaries = [*(result.summary for result in material.results), *material.interventions.values()]
    wanted = max(int(summary.get("n", 0)) for summary in summaries)
    page = report_page(material, dataset.read_split("test", wanted))
    out = out or run / REPORT
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise LolDataError(f"{out}: cannot be written: {error.strerror}") from error
    return out


def _decoded(result: Result, test: Traced, strategies: tuple[str, ...]) -> Sequences | None:
    """The outputs of a result that are about the given problems; None where there are none.

    Where the field names no strategy, an output is taken for one of the strategy that it follows, if it is one.
    """
    assert result.samples is not None
    samples = result.samples.select(["id", "asked", "identified", "tokens"]).to_pylist()
    place = {int(id): row for row, id in enumerate(test.id.tolist())}
    samples = [each for each in samples if each["id"] in place and each["tokens"]]
    named = result.summary["protocol"] == "prompted"
    if not named:
        # One output stands for all strategies that could be asked for.
        samples = [each | {"asked": each["identified"][0]} for each in samples if len(each["identified"]) == 1]
        samples = list({each["id"]: each for each in samples}.values())
    if not samples:
        return None
    rows = np.array([place[each["id"]] for each in samples])
    codes = np.array([strategies.index(each["asked"]) for each in samples])
    outputs = Ragged.from_rows([np.frombuffer(each["tokens"], np.uint8) for each in samples])
    return decoded_sequences(rows, codes, codes if named else np.full(len(codes), NEUTRAL_FIELD), outputs)
