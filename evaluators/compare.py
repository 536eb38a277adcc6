"""Two evaluations, sample by sample: the same problems under the same strategies, judged by the same rules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lol_data.errors import DamageError, RefusedError, UsageError
from lol_data.evaluators.evaluate import SAMPLES, SUMMARY
from lol_data.evaluators.intervals import paired
from lol_data.evaluators.summary import APART, FORMAT, RATES, percent

ABOUT = ("task", "size", "content_hash")  # equal ids are equal problems only where these are equal


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation left: its name, its summary, and its samples."""

    name: str
    summary: dict[str, Any]
    samples: pa.Table


def read_evaluations(path: Path) -> dict[str, Evaluation]:
    """The evaluations of a run, of a folder of evaluations, or the one in a folder itself, by name.

    Every arm of an intervention is one. Raises UsageError when there is none, DamageError for one that is not whole.
    """
    if (path / SAMPLES).exists() or (path / SUMMARY).exists():
        folders = [path]
    else:
        root = path / "eval" if (path / "eval").is_dir() else path
        folders = sorted(file.parent for file in root.glob(f"*/{SAMPLES}"))
    if not folders:
        raise UsageError(f"{path}: holds no evaluation; make one with: lol-data eval --run RUN")
    found = {}
    for folder in folders:
        for evaluation in _read(folder):
            found[evaluation.name] = evaluation
    return found


def compare(first: Path, second: Path) -> dict[str, Any]:
    """Every evaluation that both hold, or one against one whatever they are called, paired by sample.

    {"first", "second", "comparisons": {name: {"n", "same_output", "strategies": {name: {rate: ...}}, "overall": {rate:
    ...}}}}, each comparison as `intervals.paired` gives it. Raises UsageError when there is nothing that both hold, and
    RefusedError when samples differ: rates of other problems cannot be paired.
    """
    one, two = read_evaluations(first), read_evaluations(second)
    if len(one) == len(two) == 1:
        (a,), (b,) = one.values(), two.values()
        pairs = {a.name if a.name == b.name else f"{a.name} : {b.name}": (a, b)}
    else:
        pairs = {name: (one[name], two[name]) for name in one if name in two}
    if not pairs:
        raise UsageError(f"{first} has {', '.join(one)}; {second} has {', '.join(two)}: no evaluation is in both")
    comparisons = {name: _compare(*pair, f"{first} and {second}") for name, pair in pairs.items()}
    return {"first": str(first), "second": str(second), "comparisons": comparisons}


def comparison_table(result: dict[str, Any], rates: tuple[str, ...] = ()) -> str:
    """Both sides' rates, all or those named, their difference and McNemar's test as lines of text.

    Raises UsageError for a rate that these evaluations have not.
    """
    lines = [f"A: {result['first']}", f"B: {result['second']}", ""]
    head = (
        f"{'strategy':<18}{'rate':<11}{'A':^20}{'B':^20}{'B - A':^24}"
        f"{'B better':>9}{'worse':>7}{'p exact':>10}{'mid-p':>10}"
    )
    lines += [head, "-" * len(head)]
    for name, comparison in result["comparisons"].items():
        shown = rates or tuple(comparison["overall"])
        if unknown := [rate for rate in shown if rate not in comparison["overall"]]:
            raise UsageError(f"--rate {unknown[0]}: use {', '.join(comparison['overall'])}")
        lines.append(f"{name}: {comparison['n']} samples, {100 * comparison['same_output']:.1f} % equal outputs")
        for strategy, values in [*comparison["strategies"].items(), ("all", comparison["overall"])]:
            for rate in shown:
                each = values[rate]
                change, low, high = (100 * each["difference"][bound] for bound in ("rate", "low", "high"))
                lines.append(
                    f"{strategy:<18}{rate:<11}{percent(each['first']):>20}{percent(each['second']):>20}"
                    f"{change:>+8.1f} [{low:+6.1f} {high:+6.1f}]"
                    f"{each['won']:>9}{each['lost']:>7}{each['p_exact']:>10.2g}{each['p_mid']:>10.2g}"
                )
    lines.append("per cent, 95 % intervals; better and worse count problems, which McNemar's test compares")
    return "\n".join(lines)


def _read(folder: Path) -> list[Evaluation]:
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        samples = pq.read_table(folder / SAMPLES)
        missing = {"id", "asked", "tokens", *(RATES[rate] for rate in APART)} - set(samples.column_names)
        if missing or not isinstance(summary, dict):
            raise ValueError(f"without {', '.join(sorted(missing)) or 'a summary'}")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DamageError(
            f"{folder}: is not a whole evaluation ({str(error).splitlines()[0]}); make it again"
        ) from None
    if "arm" not in samples.column_names:
        return [Evaluation(folder.name, summary, samples)]
    arms = np.array(samples["arm"].to_pylist(), dtype=object)
    return [
        Evaluation(f"{folder.name}/{arm}", summary, samples.take(np.flatnonzero(arms == arm)))
        for arm in dict.fromkeys(arms.tolist())
    ]


def _compare(first: Evaluation, second: Evaluation, where: str) -> dict[str, Any]:
    for name in ABOUT:
        if first.summary.get(name) != second.summary.get(name):
            raise RefusedError(
                f"{where}, {first.name}: the samples differ: {name} {first.summary.get(name)} and "
                f"{second.summary.get(name)}; evaluate both on the same data"
            )
    with_field = any(len(set(_keys(each.samples))) < len(each.samples) for each in (first, second))
    keys, others = (_keys(each.samples, with_field) for each in (first, second))
    if set(keys) != set(others):
        only = [len(set(a) - set(b)) for a, b in ((keys, others), (others, keys))]
        raise RefusedError(
            f"{where}, {first.name}: the samples differ: {only[0]} only in the first, {only[1]} only in the second; "
            "evaluate both with the same --n on the same data"
        )
    place = {key: k for k, key in enumerate(others)}
    a, b = first.samples, second.samples.take(np.array([place[key] for key in keys], np.int64))
    problems, asked = a["id"].to_numpy(), np.array(a["asked"].to_pylist())
    strategies = list(dict.fromkeys(asked.tolist()))

    hits = {rate: (a[RATES[rate]].to_numpy(), b[RATES[rate]].to_numpy()) for rate in APART}
    if all(FORMAT in each.column_names for each in (a, b)):
        one, two = (np.array(each[FORMAT].to_pylist(), object) == asked for each in (a, b))
        hits = {FORMAT: (one, two), **hits}

    def rates(group: np.ndarray) -> dict[str, Any]:
        return {rate: paired(one[group], two[group], problems[group]) for rate, (one, two) in hits.items()}

    same = [one == two for one, two in zip(a["tokens"].to_pylist(), b["tokens"].to_pylist(), strict=True)]
    return {
        "n": len(a),
        "same_output": float(np.mean(same)) if same else None,
        "strategies": {name: rates(asked == name) for name in strategies},
        "overall": rates(np.ones(len(a), bool)),
    }


def _keys(samples: pa.Table, with_field: bool = False) -> list[tuple]:
    """What a sample is known by: its problem and strategy, and the field where several were tried."""
    columns = ["id", "asked", *(["field"] if with_field and "field" in samples.column_names else [])]
    return list(zip(*(samples[name].to_pylist() for name in columns), strict=True))
