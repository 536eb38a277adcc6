"""From a model and problems to verdicts on disk: decode, parse, judge, sum up, write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lol_data.errors import LolDataError
from lol_data.evaluators.maze_rules import judge_mazes
from lol_data.evaluators.protocols import Outputs, decode
from lol_data.evaluators.sudoku_rules import judge_sudokus
from lol_data.evaluators.summary import SCHEMA_VERSION, summarise
from lol_data.evaluators.templates import KINDS, PathStatistics
from lol_data.evaluators.verdicts import Verdicts
from lol_data.model.lol import LibraryOfLayers
from lol_data.ragged import Ragged
from lol_data.tokenization.tasks import Problems, layout_of

JUDGES: dict[str, Callable[..., Verdicts]] = {"maze": judge_mazes, "sudoku": judge_sudokus}


@dataclass(frozen=True)
class Result:
    """One protocol's outcome: the summary, and a row per (problem, strategy)."""

    summary: dict[str, Any]
    samples: pa.Table

    @property
    def name(self) -> str:
        """Such as "prompted" or "forced-selection"."""
        template = self.summary.get("template")
        return self.summary["protocol"] + (f"-{template['kind']}" if template else "")


def evaluate(
    model: LibraryOfLayers,
    problems: Problems,
    protocol: str,
    paths: PathStatistics | None = None,
    kind: str = KINDS[0],
    batch: int = 500,
    progress: Callable[[int], None] = lambda outputs: None,
) -> Result:
    """Decode every test problem under every strategy and judge the outputs by the rules.

    paths: routes observed on validation problems, needed for `forced`; kind: which template is made of them.
    """
    template = paths.template(kind) if protocol == "forced" and paths is not None else None
    layout = layout_of(problems, model.config.field)
    outputs = decode(model, problems, protocol, template, batch, progress)
    parsed = layout.parse(outputs.tokens)
    judge = JUDGES[layout.task]
    verdicts = judge(problems, outputs.rows, outputs.asked, parsed.traces, parsed.answers, parsed.reason)
    fell_back = template.fell_back(outputs.asked, outputs.last_windows) if template else None
    summary: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **layout.about,
        "protocol": protocol,
        "decoding": {"limit": outputs.limit, "cut": int(outputs.cut.sum())},
    }
    if template is not None and paths is not None:
        summary["template"] = {
            "kind": kind,
            "agreement_with_own_paths": dict(
                zip(verdicts.strategies, template.agreement.round(4).tolist(), strict=True)
            ),
            "kinds_agree": round(paths.kinds_agree(), 4),
            "counts": template.counts.tolist(),
            "ids": template.ids.tolist(),
            "gates": template.gates.round(4).tolist(),
        }
    summary.update(summarise(verdicts, fell_back))
    samples = _sample_table(problems, outputs, parsed.traces, parsed.answers)
    samples = samples.append_column("cut", pa.array(outputs.cut))
    judged = verdicts.table()
    for name, column in zip(judged.column_names, judged.columns, strict=True):
        samples = samples.append_column(name, column)
    if fell_back is not None:
        samples = samples.append_column("fell_back", pa.array(fell_back))
    return Result(summary, samples)


def write_result(result: Result, out: Path, about: dict[str, Any]) -> Path:
    """Write OUT/NAME/summary.json and samples.parquet; `about` (run, checkpoint, data, n) joins the summary.

    Raises LolDataError when they cannot be saved: a result that is lost must not look like one that was kept.
    """
    folder = out / result.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / ".samples.draft"
        pq.write_table(result.samples, draft, compression="zstd")
        os.replace(draft, folder / "samples.parquet")
        draft = folder / ".summary.draft"
        draft.write_text(json.dumps({**about, **result.summary}, indent=1), encoding="utf-8")
        os.replace(draft, folder / "summary.json")
    except OSError as error:
        raise LolDataError(
            f"{folder}: the results could not be saved ({error.strerror}); free space or use --out"
        ) from error
    return folder


def _sample_table(problems: Problems, outputs: Outputs, traces: Ragged, answers: Ragged) -> pa.Table:
    return pa.table(
        {
            "id": problems.id[outputs.rows],
            "trace": _lists(traces),
            "answer": _lists(answers),
            "tokens": pa.array([row.tobytes() for row in outputs.tokens], pa.binary()),
        }
    )


def _lists(rows: Ragged) -> pa.ListArray:
    return pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values))
