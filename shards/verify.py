"""Is this data set what its manifest says? Every file is held to its hash; `deep` derives every row again.

The quick look finds any change of any byte. The deep look finds what a hash cannot: rows that were wrong when they
were written. It reads with page checksums, derives every row from the plan, re-derives splits and duplicates, and lets
a rule checker, which knows nothing of the solvers, judge the traces.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lol_data.errors import DamageError, UsageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.shards.deep import Problem, RuleCheck, check_rows
from lol_data.shards.engines import Progress, default_workers, run_threads
from lol_data.shards.generate import manifest_identity
from lol_data.shards.kernels import content_hash, row_hashes
from lol_data.shards.manifest import MANIFEST, WORK, FileEntry, Manifest, file_sha256, totals
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import read_file
from lol_data.shards.unit import data_dir


@dataclass(slots=True)
class VerifyReport:
    """What was looked at, and every problem found, in order of path."""

    path: Path
    deep: bool
    files: int = 0
    rows: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems


def verify_dataset(
    path: Path | str,
    deep: bool = False,
    rule_checks: Mapping[str, RuleCheck] | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> VerifyReport:
    """Look at every file of a data set, and with `deep` at every row.

    rule_checks: per task what judges rows by rule, given by the caller because this room knows no rules; deep only.
    Damage is reported, never raised. Raises UsageError when there is no data set at all in `path`.
    """
    path, workers = Path(path), workers or default_workers()
    if not path.is_dir():
        raise UsageError(f"{path}: no such directory")
    report = VerifyReport(path, deep)
    progress = progress or (lambda done, total: None)
    try:
        manifest = Manifest.read(path / MANIFEST)
        plan = _consistent_plan(manifest, path / MANIFEST)
    except FileNotFoundError:
        if (path / WORK / "plan.json").exists():
            detail = "the data set is not finished; run the command that began it again"
        elif data_dir(path).is_dir():
            detail = "the data set has lost it, and with it all hashes"
        else:
            raise UsageError(f"{path}: holds no data set") from None
        report.problems.append(Problem(MANIFEST, "missing", detail))
        return report
    except DamageError as error:
        report.problems.append(Problem(MANIFEST, "manifest", str(error)))
        return report
    _check_files(path, manifest, plan, report, workers, progress)
    if deep:
        skip = {problem.path for problem in report.problems}
        report.problems += check_rows(
            path, manifest, plan, skip, workers, progress, (rule_checks or {}).get(plan.task.name)
        )
    report.problems.sort(key=lambda problem: (problem.path, problem.kind))
    return report


def _consistent_plan(manifest: Manifest, path: Path) -> DatasetPlan:
    """The plan of a manifest whose files and totals are those of this plan. Raises DamageError."""
    plan = DatasetPlan.from_identity(manifest_identity(manifest))
    names = sorted(name for unit in range(plan.units) for name in plan.file_names(unit).values())
    if names != [entry.name for entry in manifest.files]:
        raise DamageError(f"{path}: its list of files is not that of its settings")
    whole = totals(manifest.files)
    parts = {split: totals([entry for entry in manifest.files if entry.split == split]) for split in SPLITS}
    stated = {"files": len(names), "rows": manifest.rows, "bytes": manifest.bytes}
    if whole != {**stated, "content_hash": manifest.content_hash} or parts != manifest.splits:
        raise DamageError(f"{path}: its totals are not those of its files")
    if manifest.rows + manifest.duplicates["dropped"] != manifest.n:
        raise DamageError(f"{path}: rows and duplicates do not add up to n")
    return plan


def _check_files(
    path: Path, manifest: Manifest, plan: DatasetPlan, report: VerifyReport, workers: int, progress: Progress
) -> None:
    """Hold every file of `data/` to its hash."""
    owner = {entry.sha256: entry for entry in manifest.files if entry.rows}

    def look(entry: FileEntry) -> Problem | None:
        return _file_problem(plan, data_dir(path) / entry.name, f"data/{entry.name}", entry, owner)

    problems = run_threads(look, manifest.files, workers, threading.Event())
    report.problems += [problem for problem in problems if problem]
    report.files, report.rows = len(manifest.files), manifest.rows
    if data_dir(path).is_dir():
        known = {entry.name for entry in manifest.files}
        strangers = sorted(item.name for item in data_dir(path).iterdir() if item.name not in known)
        report.problems += [Problem(f"data/{name}", "foreign", "the manifest does not know it") for name in strangers]
    if not report.deep:
        progress(manifest.rows, manifest.rows)


def _file_problem(
    plan: DatasetPlan, path: Path, name: str, entry: FileEntry, owner: dict[str, FileEntry]
) -> Problem | None:
    try:
        size, found = path.stat().st_size, file_sha256(path)
    except FileNotFoundError:
        return Problem(name, "missing", f"{entry.rows:,} rows are gone")
    except OSError as error:
        return Problem(name, "damaged", f"cannot be read: {error.strerror}")
    if found == entry.sha256:
        return None
    if found in owner:
        return Problem(name, "swapped", f"it holds what belongs in {owner[found].name}")
    if _is_foreign(plan, path, entry):
        return Problem(name, "foreign", f"a sound file of {plan.task.problem} rows, but not the one written here")
    if size != entry.bytes:
        return Problem(name, "damaged", f"it has {size:,} bytes, {entry.bytes:,} were written")
    return Problem(name, "damaged", "its bytes are not those that were written")


def _is_foreign(plan: DatasetPlan, path: Path, entry: FileEntry) -> bool:
    """Whether a file with a wrong hash is a sound one, page checksums and all, that holds other rows."""
    task = plan.task
    try:
        with pq.ParquetFile(path) as file:
            rows = file.metadata.num_rows
        table = read_file(task, path, rows)
        if task.check(table, plan.settings, task.strategies) is not None:
            return True
        traced = task.from_tables([table], plan.settings, task.strategies, 1)
    except (OSError, ValueError, pa.ArrowException, DamageError):
        return False
    return f"{content_hash(row_hashes(traced.id, task.columns(traced))):016x}" != entry.content_hash
