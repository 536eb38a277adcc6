"""What a report is made of: everything that training, evaluation and diagnostics left in a run's folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lol_data.errors import DamageError, UsageError
from lol_data.evaluators.diagnostics import ARRAYS, FOLDER, NUMBERS
from lol_data.training.run_folder import METRICS, read_run

EVAL, SUMMARY, SAMPLES = "eval", "summary.json", "samples.parquet"
ORDER = ("prompted", "forced-selection", "forced-probability", "neutral")  # others follow by name


@dataclass(frozen=True)
class Result:
    """One evaluated protocol. samples: a row an output, as `evaluate` writes it; None where there is no such file."""

    name: str
    summary: dict[str, Any]
    samples: pa.Table | None


@dataclass(frozen=True)
class Material:
    """A run. interventions: summaries of other shapes than a protocol's, by folder; arms: the outputs of their arms.
    arrays: of the diagnostics."""

    run: Path
    about: dict[str, Any]
    metrics: list[dict[str, Any]]
    results: list[Result]
    interventions: dict[str, dict[str, Any]] = field(default_factory=dict)
    arms: list[Result] = field(default_factory=list)
    diagnostics: dict[str, Any] | None = None
    arrays: dict[str, NDArray] = field(default_factory=dict)


def read_material(run: Path) -> Material:
    """All that is there. Raises UsageError for no run or one without results, DamageError for files that are broken."""
    about = read_run(run)
    results, interventions, arms = [], {}, []
    for path in sorted((run / EVAL).glob(f"*/{SUMMARY}"), key=_place):
        summary, samples = read_json(path), path.parent / SAMPLES
        if "protocol" in summary and "confusion" in summary:
            results.append(Result(path.parent.name, summary, _read_samples(samples) if samples.exists() else None))
        else:
            interventions[path.parent.name] = summary
            arms += _arms(summary, _read_samples(samples)) if samples.exists() else []
    if not results:
        raise UsageError(f"{run} has no results yet; evaluate it with: lol-data eval --run {run} --protocol all")
    diagnostics, arrays, folder = None, {}, run / EVAL / FOLDER
    if (folder / NUMBERS).exists():
        diagnostics, arrays = read_json(folder / NUMBERS), _read_arrays(folder / ARRAYS)
    return Material(run, about, read_metrics(run / METRICS), results, interventions, arms, diagnostics, arrays)


def read_json(path: Path) -> dict[str, Any]:
    """An object. Raises DamageError."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamageError(f"{path} cannot be read ({error}); evaluate again") from None
    if not isinstance(value, dict):
        raise DamageError(f"{path} holds no object; evaluate again")
    return value


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of metrics up to the first torn one; none where there is no file."""
    lines: list[dict[str, Any]] = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines


def _arms(summary: dict[str, Any], samples: pa.Table) -> list[Result]:
    """The outputs of each arm of an intervention."""
    if "arm" not in samples.column_names:
        return []
    arm = samples["arm"].cast(pa.string())
    return [
        Result(f"arm {name}", about, samples.filter(pc.equal(arm, name))) for name, about in summary["arms"].items()
    ]


def _place(path: Path) -> tuple[int, str]:
    name = path.parent.name
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _read_samples(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DamageError(f"{path} cannot be read ({str(error).splitlines()[0]}); evaluate again") from None


def _read_arrays(path: Path) -> dict[str, NDArray]:
    try:
        with np.load(path, allow_pickle=False) as saved:
            return dict(saved)
    except (OSError, ValueError, EOFError) as error:
        raise DamageError(f"{path} cannot be read ({error}); make the diagnostics again") from None
