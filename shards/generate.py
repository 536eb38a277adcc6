"""From a plan to a finished data set: lock, compare plans, make units, drop duplicates, sign the manifest.

    DIR/README.md, manifest.json, data/*.parquet     the data set
    DIR/.work/plan.json, writers/                    what is being made here, and by whom
    DIR/.work/receipts/, keys/                       what is already made; resume trusts these when their hashes hold
    DIR/.work/tmp/                                   files not yet finished

The second pass looks at the keys of all units at once, and makes again only the units that hold a duplicate; so the
final bytes never depend on the order in which units were made, nor on who made them: several writers may make ranges of
units, and the last of them signs. `.work` may be deleted once the manifest is there.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lol_data.errors import DamageError, LolDataError, RefusedError, UsageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.shards.card import CARD, dataset_card
from lol_data.shards.duplicates import UnitKeys, duplicate_ids
from lol_data.shards.engines import ENGINES, Job, Progress, default_workers, ensure_units, rows_of, run_threads
from lol_data.shards.kernels import pairs_of
from lol_data.shards.lock import BusyError, directory_lock, units_lock
from lol_data.shards.manifest import (
    LISTED_DUPLICATES,
    MANIFEST,
    WORK,
    Manifest,
    Receipt,
    file_sha256,
    read_sealed,
    totals,
    write_sealed,
)
from lol_data.shards.plan import DatasetPlan, difference
from lol_data.shards.unit import data_dir, keys_path, receipt_path, scratch_dir
from lol_data.shards.writer import write_atomic


@dataclass(frozen=True, slots=True)
class GenerateResult:
    """What a run found and did.

    status: "made"; "complete" when everything was there and its hashes held; "part" when units of other runs are still
    missing, and then there is no manifest yet.
    units_made counts the units of this run, those made a second time without duplicates (units_deduplicated) too.
    """

    status: Literal["made", "complete", "part"]
    manifest: Manifest | None
    units_made: int
    units_kept: int
    units_deduplicated: int = 0


def generate_dataset(
    plan: DatasetPlan,
    out: Path | str,
    workers: int | None = None,
    progress: Progress | None = None,
    engine: str = "local",
    units: range | None = None,
) -> GenerateResult:
    """Make the data set of `plan` in `out`, or go on with it.

    workers: units made at a time, by default one per CPU. engine: see `engines`. units: make only these, beside other
    runs that make others; the run that ends last signs the data set.
    Raises UsageError (a plan, units or an engine that cannot be), RefusedError (another writer, another plan, foreign
    files), DamageError (a stored plan that cannot be read) and LolDataError (disk full). After any of them, and after
    an interrupt, the same call goes on where this one ended.
    """
    plan.validate()
    whole = range(plan.units)
    units = whole if units is None else units
    if not 0 <= units.start < units.stop <= plan.units or units.step != 1:
        raise UsageError(f"shards {units.start}:{units.stop} are none of the {plan.units:,} shards, 0:{plan.units}")
    if engine not in ENGINES:
        raise UsageError(f"engine {engine!r} is unknown; choose from {', '.join(ENGINES)}")
    run = _Run(plan, Path(out), units, engine, workers, progress or (lambda done, total: None))
    _refuse_foreign_directory(run.out)
    try:
        scratch_dir(run.out).mkdir(parents=True, exist_ok=True)
        with units_lock(run.out / WORK / "writers", units):
            result = run.complete() or (run.make_all() if units == whole else run.make_part())
        if result.status != "part" or any(not receipt_path(run.out, unit).exists() for unit in whole):
            return result
        try:
            with units_lock(run.out / WORK / "writers", whole):
                signed = replace(run, units=whole).make_all()
        except BusyError:  # that one will see what this one made, and sign
            return result
        made = result.units_made + signed.units_made
        return GenerateResult("made", signed.manifest, made, result.units_kept, signed.units_deduplicated)
    except OSError as error:
        raise LolDataError(f"{error.filename or out}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class _Run:
    """One run, while it holds the lock of its units."""

    plan: DatasetPlan
    out: Path
    units: range
    engine: str
    workers: int | None
    progress: Progress

    def complete(self) -> GenerateResult | None:
        """When a manifest of this plan is there, and all files of these units hold. Versions do not matter."""
        manifest = _manifest_of(self.plan, self.out)
        names = {name for unit in self.units for name in self.plan.file_names(unit).values()}
        if manifest is None or not _files_hold(manifest, self.out, names, self.workers):
            return None
        rows = rows_of(self.plan, map(Job, self.units))
        self.progress(rows, rows)
        return GenerateResult("complete", manifest, 0, len(self.units))

    def make_part(self) -> GenerateResult:
        """The units alone; nothing is signed."""
        _claim(self.plan, self.out)
        made = sum(made for _, made in self._ensure([Job(unit) for unit in self.units]))
        return GenerateResult("part", None, made, len(self.units) - made)

    def make_all(self) -> GenerateResult:
        """All units, then without duplicates, then the manifest."""
        identity = _claim(self.plan, self.out)
        for leftover in scratch_dir(self.out).iterdir():  # nobody else is at work now
            leftover.unlink(missing_ok=True)
        results = self._ensure([Job(unit) for unit in self.units])
        receipts, made = [receipt for receipt, _ in results], sum(made for _, made in results)
        again = self._drop_duplicates(receipts)
        manifest = _sign(self.plan, identity, self.out, receipts)
        return GenerateResult("made", manifest, made + again, len(self.units) - made, again)

    def _ensure(self, jobs: list[Job]) -> list[tuple[Receipt, bool]]:
        return ensure_units(self.plan, self.out, jobs, self.engine, self.workers, self.progress)

    def _keys(self, unit: int) -> UnitKeys:
        return UnitKeys.open(keys_path(self.out, unit), len(self.plan.unit_ids(unit)))

    def _drop_duplicates(self, receipts: list[Receipt]) -> int:
        """Make units with duplicates again without them; updates `receipts`, gives the number of units made again."""
        dropped = duplicate_ids(self.plan, self._keys)
        drops = np.split(dropped, np.searchsorted(dropped, [self.plan.unit_ids(unit).start for unit in self.units[1:]]))
        jobs = [Job(unit, tuple(drop.tolist())) for unit, drop in enumerate(drops)]
        jobs = [job for job in jobs if receipts[job.unit].dropped != list(job.drop or ())]
        for receipt, _ in self._ensure(jobs):
            receipts[receipt.unit] = receipt
        return len(jobs)


def _refuse_foreign_directory(out: Path) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"{out}: is not a directory; use another --out")
    if (out / MANIFEST).exists() or (out / WORK / "plan.json").exists():
        return
    others = sorted(path.name for path in out.iterdir() if path.name != WORK)
    if others:
        raise RefusedError(f"{out}: holds other things ({others[0]}, ...); use an empty or a new directory as --out")


def _stored_identity(out: Path) -> dict[str, Any] | None:
    """What is being made, or was made, in `out`."""
    try:
        return read_sealed(out / WORK / "plan.json")
    except FileNotFoundError:
        pass
    except DamageError:
        if not (out / MANIFEST).exists():
            raise
    try:
        return manifest_identity(Manifest.read(out / MANIFEST))
    except FileNotFoundError:
        return None


def manifest_identity(manifest: Manifest) -> dict[str, Any]:
    """The identity of the plan that a data set was made from."""
    names = ("task", "n", "settings", "seed", "shard_rows", "validation_share", "test_share", "versions", "probe")
    content = asdict(manifest)
    return {name: content[name] for name in names}


def _refuse_difference(out: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    changes = difference(old, json.loads(json.dumps(new)))
    if changes:
        raise RefusedError(
            f"{out}: was begun with other settings ({'; '.join(changes)}); use another --out, or the old settings"
        )


def _manifest_of(plan: DatasetPlan, out: Path) -> Manifest | None:
    """The manifest of a set made from `plan` before; None when there is none that can be read."""
    try:
        manifest = Manifest.read(out / MANIFEST)
    except (FileNotFoundError, DamageError):
        return None
    old, new = manifest_identity(manifest), plan.fields()
    _refuse_difference(out, {name: old[name] for name in new}, new)
    _refuse_foreign_files(plan, out)
    return manifest


def _files_hold(manifest: Manifest, out: Path, names: set[str], workers: int | None) -> bool:
    def holds(entry: Any) -> bool:
        path = data_dir(out) / entry.name
        return path.is_file() and path.stat().st_size == entry.bytes and file_sha256(path) == entry.sha256

    wanted = [entry for entry in manifest.files if entry.name in names]
    return all(run_threads(holds, wanted, workers or default_workers(), threading.Event()))


def _claim(plan: DatasetPlan, out: Path) -> dict[str, Any]:
    """Write the plan into `out`, or compare it with the one there; make the folders."""
    identity = plan.identity()
    with directory_lock(out / WORK / "lock", wait=True):  # of two first writers with two plans, one is refused
        stored = _stored_identity(out)
        if stored is not None:
            _refuse_difference(out, stored, identity)
        write_sealed(out / WORK / "plan.json", identity, scratch_dir(out))
    for folder in (data_dir(out), receipt_path(out, 0).parent, keys_path(out, 0).parent):
        folder.mkdir(exist_ok=True)
    _refuse_foreign_files(plan, out)
    return identity


def _refuse_foreign_files(plan: DatasetPlan, out: Path) -> None:
    if data_dir(out).is_dir():
        known = {name for unit in range(plan.units) for name in plan.file_names(unit).values()}
        foreign = sorted(path.name for path in data_dir(out).iterdir() if path.name not in known)
        if foreign:
            raise RefusedError(f"{data_dir(out) / foreign[0]}: is no part of this data set; move it away and try again")


def _sign(plan: DatasetPlan, identity: dict[str, Any], out: Path, receipts: list[Receipt]) -> Manifest:
    files = sorted((entry for receipt in receipts for entry in receipt.files), key=lambda entry: entry.name)
    dropped = [id for receipt in receipts for id in receipt.dropped]
    whole, pairs = totals(files), pairs_of(plan.task.strategies)
    manifest = Manifest(
        **identity,
        rows=whole["rows"],
        bytes=whole["bytes"],
        content_hash=whole["content_hash"],
        splits={split: totals([entry for entry in files if entry.split == split]) for split in SPLITS},
        duplicates={"dropped": len(dropped), "ids": dropped if len(dropped) <= LISTED_DUPLICATES else None},
        equal_orders={pair: sum(receipt.equal_orders[pair] for receipt in receipts) for pair in pairs},
        files=files,
    )
    write_atomic(out / CARD, dataset_card(manifest).encode(), scratch_dir(out))
    manifest.write(out / MANIFEST, scratch_dir(out))
    return manifest
