"""From a model and problems to verdicts on disk: decode, parse, judge, sum up, write."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lol_data.errors import LolDataError
from lol_data.evaluators.maze_rules import judge_mazes
from lol_data.evaluators.parts import Parts
from lol_data.evaluators.protocols import FORCING, NO_BLOCK, Outputs, decode, silent
from lol_data.evaluators.sudoku_format import NO_FORMAT, sudoku_formats
from lol_data.evaluators.sudoku_rules import judge_sudokus
from lol_data.evaluators.summary import FORMAT, SCHEMA_VERSION, conflict_matrix, summarise
from lol_data.evaluators.templates import KINDS, PathStatistics, Template
from lol_data.evaluators.verdicts import Verdicts
from lol_data.files import whole, write_whole
from lol_data.model.transformer import Transformer
from lol_data.ragged import Ragged, offsets_of
from lol_data.tokenization.tasks import AnyLayout, Problems, layout_of

SUMMARY, SAMPLES = "summary.json", "samples.parquet"
JUDGES: dict[str, Callable[..., Verdicts]] = {"maze": judge_mazes, "sudoku": judge_sudokus}
# Tasks whose strategies can be told apart by the look of their steps.
FORMATS: dict[str, Callable[[Ragged], NDArray[np.uint8]]] = {"sudoku": sudoku_formats}


@dataclass(frozen=True)
class Result:
    """One protocol's outcome: the summary, and a row per (problem, strategy), or per pair of strategies."""

    summary: dict[str, Any]
    samples: pa.Table

    @property
    def name(self) -> str:
        """Such as "prompted" or "forced-selection"."""
        template = self.summary.get("template")
        return self.summary["protocol"] + (f"-{template['kind']}" if template else "")


def evaluate(
    model: Transformer,
    problems: Problems,
    protocol: str,
    paths: PathStatistics | None = None,
    kind: str = KINDS[0],
    batch: int = 500,
    progress: Callable[[int], None] = silent,
    parts: Parts | None = None,
) -> Result:
    """Decode every test problem under every strategy and judge the outputs by the rules.

    paths: routes observed on validation problems, needed for `forced` and `conflict`; kind: which template is made of
    them. parts: where finished batches are kept. Raises RefusedError for a problem that the routes were observed on.
    """
    layout = layout_of(problems, model.config.field)
    template = None
    if protocol in FORCING and paths is not None:
        paths.refuse_scores_on(problems, layout)
        template = paths.template(kind)
    outputs = decode(model, problems, protocol, template, batch, progress, parts)
    verdicts, formats, samples = judge(layout, problems, outputs)
    fell_back = template.fell_back(outputs.asked, outputs.last_windows) if template else None
    summary: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **layout.about,
        "protocol": protocol,
        "decoding": {"limit": outputs.limit, "cut": int(outputs.cut.sum())},
    }
    if template is not None and paths is not None:
        summary["template"] = about_template(template, paths, verdicts.strategies)
    summary.update(summarise(verdicts, fell_back, outputs.rows, formats=formats))
    if protocol == "conflict":
        summary["matrix"] = conflict_matrix(verdicts, outputs.field)
    if fell_back is not None:
        samples = samples.append_column("fell_back", pa.array(fell_back))
    return Result(summary, samples)


def judge(
    layout: AnyLayout, problems: Problems, outputs: Outputs
) -> tuple[Verdicts, NDArray[np.uint8] | None, pa.Table]:
    """The verdicts on M outputs; the strategy that each trace is written like, uint8 (M,), where the task has such
    formats; and a table with a row for each: what was asked, what was said, what is said of it."""
    parsed = layout.parse(outputs.tokens)
    formats = FORMATS[layout.task](parsed.traces) if layout.task in FORMATS else None
    judges = JUDGES[layout.task]
    verdicts = judges(problems, outputs.rows, outputs.asked, parsed.traces, parsed.answers, parsed.reason)
    names = pa.array([*layout.strategies, "neutral"])
    table = pa.table(
        {
            "id": problems.id[outputs.rows],
            "field": pa.DictionaryArray.from_arrays(outputs.field.astype(np.int8) % len(names), names),
            "trace": _lists(parsed.traces),
            "answer": _lists(parsed.answers),
            "tokens": pa.array([row.tobytes() for row in outputs.tokens], pa.binary()),
            "blocks": _blocks(outputs.blocks),
            "cut": outputs.cut,
        }
    )
    judged = verdicts.table()
    for name, column in zip(judged.column_names, judged.columns, strict=True):
        table = table.append_column(name, column)
    if formats is not None:
        named = pa.array(formats.astype(np.int8), mask=formats == NO_FORMAT)
        table = table.append_column(FORMAT, pa.DictionaryArray.from_arrays(named, list(layout.strategies)))
    return verdicts, formats, table


def about_template(template: Template, paths: PathStatistics, strategies: tuple[str, ...]) -> dict[str, Any]:
    """What a summary says about its template."""
    return {
        "kind": template.kind,
        "agreement_with_own_paths": dict(zip(strategies, template.agreement.round(4).tolist(), strict=True)),
        "kinds_agree": round(paths.kinds_agree(), 4),
        "kinds_agree_per_strategy": dict(
            zip(strategies, paths.kinds_agree_per_strategy().round(4).tolist(), strict=True)
        ),
        "counts": template.counts.tolist(),
        "ids": template.ids.tolist(),
        "gates": template.gates.round(4).tolist(),
    }


def write_result(result: Result, out: Path, about: dict[str, Any]) -> Path:
    """Write OUT/NAME/summary.json and samples.parquet; `about` (run, checkpoint, data, n) joins the summary.

    Raises LolDataError when they cannot be saved: a result that is lost must not look like one that was kept.
    """
    folder = out / result.name
    save(folder, {**about, **result.summary}, result.samples)
    return folder


def save(folder: Path, summary: dict[str, Any], samples: pa.Table) -> None:
    """Write summary.json and samples.parquet into a folder, each whole or not at all. Raises LolDataError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / SAMPLES) as draft:
            pq.write_table(samples, draft, compression="zstd")
        write_whole(folder / SUMMARY, json.dumps(summary, indent=1))
    except OSError as error:
        raise LolDataError(
            f"{folder}: the results could not be saved ({error.strerror}); free space or use --out"
        ) from error


def _lists(rows: Ragged) -> pa.ListArray:
    return pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values))


def _blocks(blocks: NDArray[np.uint8]) -> pa.ListArray:
    """(M, D, K) -> a list per depth of the blocks taken in windows 1, 2, ..., as far as the output went."""
    count, depth, _ = blocks.shape
    entered = blocks != NO_BLOCK
    windows = offsets_of(entered.sum(2).ravel()).astype(np.int32)
    levels = np.arange(count + 1, dtype=np.int32) * np.int32(depth)
    return pa.ListArray.from_arrays(levels, pa.ListArray.from_arrays(windows, pa.array(blocks[entered])))
