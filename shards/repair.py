"""Make the damaged files of a finished data set again, and nothing else.

A file is a pure function of the plan and the versions, and the manifest signs its hash: what is put back is the very
file that was lost, or nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import DamageError, LolDataError, RefusedError
from lol_data.shards.duplicates import UnitKeys, duplicate_ids
from lol_data.shards.engines import Job, Progress, RowCount, default_workers, rows_of, run_threads
from lol_data.shards.generate import generate_dataset, manifest_identity
from lol_data.shards.lock import units_lock
from lol_data.shards.manifest import MANIFEST, WORK, Manifest, read_sealed, sha256
from lol_data.shards.plan import DatasetPlan, difference
from lol_data.shards.unit import data_dir, encode_unit, scratch_dir
from lol_data.shards.verify import VerifyReport
from lol_data.shards.writer import write_atomic


def repair_dataset(report: VerifyReport, workers: int | None = None, progress: Progress | None = None) -> list[str]:
    """Mend what `verify_dataset` found; the paths of what was made again, in order.

    Files that do not belong there stay where they are. A damaged or missing manifest is signed again from the plan in
    `.work`, which makes units again only where their receipts do not hold.
    Raises DamageError when neither manifest nor plan can be read or a manifest is wrong in itself, RefusedError when
    another writer is at work or these versions would write other bytes, and LolDataError (disk full).
    """
    path, progress = report.path, progress or (lambda done, total: None)
    if any(problem.path == MANIFEST for problem in report.problems):
        return _sign_again(path, workers, progress)
    manifest = Manifest.read(path / MANIFEST)
    plan = DatasetPlan.from_identity(manifest_identity(manifest))
    known = {entry.name for entry in manifest.files}
    harmed = {problem.path.removeprefix("data/") for problem in report.problems if problem.kind != "rows"} & known
    if not harmed:
        return []
    changes = difference(manifest_identity(manifest), plan.identity())
    if changes:
        raise RefusedError(f"{path}: was made by other versions, which would write other bytes ({'; '.join(changes)})")
    try:
        scratch_dir(path).mkdir(parents=True, exist_ok=True)
        data_dir(path).mkdir(exist_ok=True)
        with units_lock(path / WORK / "writers", range(plan.units)):
            return _make_again(path, manifest, plan, harmed, workers or default_workers(), progress)
    except OSError as error:
        raise LolDataError(f"{error.filename or path}: {error.strerror or error}") from error


def _sign_again(path: Path, workers: int | None, progress: Progress) -> list[str]:
    try:
        plan = DatasetPlan.from_identity(read_sealed(path / WORK / "plan.json"))
    except (FileNotFoundError, DamageError):
        raise DamageError(
            f"{path / MANIFEST}: cannot be made again, {WORK}/plan.json is gone too; make the data set again with the "
            "command that made it"
        ) from None
    (path / MANIFEST).unlink(missing_ok=True)
    generate_dataset(plan, path, workers, progress)
    return [MANIFEST]


def _make_again(
    path: Path, manifest: Manifest, plan: DatasetPlan, harmed: set[str], workers: int, progress: Progress
) -> list[str]:
    entries = {entry.name: entry for entry in manifest.files}
    dropped = _dropped_ids(manifest, plan, workers)
    units = [unit for unit in range(plan.units) if harmed & set(plan.file_names(unit).values())]
    count, total = RowCount(), rows_of(plan, map(Job, units))

    def remake(unit: int) -> None:
        ids, names = plan.unit_ids(unit), plan.file_names(unit)
        begin, end = np.searchsorted(dropped, [ids.start, ids.stop])
        files, _, _ = encode_unit(plan, ids, dropped[begin:end].tolist(), count.step)
        for split, (data, _, _) in files.items():
            if names[split] not in harmed:
                continue
            if sha256(data) != entries[names[split]].sha256:
                raise DamageError(
                    f"{data_dir(path) / names[split]}: its plan derives other bytes than the manifest signs"
                )
            write_atomic(data_dir(path) / names[split], data, scratch_dir(path))

    run_threads(remake, units, workers, count.stop, lambda: progress(count.done, total))
    return [f"data/{name}" for name in sorted(harmed)]


def _dropped_ids(manifest: Manifest, plan: DatasetPlan, workers: int) -> NDArray[np.int64]:
    """The ids left out as duplicates, rising; derived again from the whole set when the manifest does not list them."""
    if manifest.duplicates["ids"] is not None:
        return np.array(manifest.duplicates["ids"], np.int64)
    count = RowCount()

    def keys(unit: int) -> UnitKeys:
        found = [np.empty(0, np.uint64)]
        for block in plan.blocks(plan.unit_ids(unit)):
            count.step(len(block.keys))
            found.append(block.keys)
        return UnitKeys.of(np.concatenate(found))

    return duplicate_ids(plan, run_threads(keys, range(plan.units), workers, count.stop).__getitem__)
