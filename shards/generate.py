"""From a plan to a finished data set: lock, compare plans, make units, drop duplicates, sign the manifest.

    DIR/README.md, manifest.json, data/*.parquet     the data set
    DIR/.work/plan.json, lock                        what is being made here, and by whom
    DIR/.work/receipts/, keys/                       what is already made; resume trusts these when their hashes hold
    DIR/.work/tmp/                                   files not yet finished

The second pass looks at the keys of all units at once, and makes again only the units that hold a duplicate; so the
final bytes never depend on the order in which units were made. `.work` may be deleted once the manifest is there.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from lol_data.errors import DamageError, LolDataError, RefusedError, UsageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.shards.card import CARD, dataset_card
from lol_data.shards.duplicates import duplicate_ids
from lol_data.shards.kernels import STRATEGY_PAIRS
from lol_data.shards.lock import directory_lock
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
from lol_data.shards.unit import Stopped, data_dir, keys_path, make_unit, receipt_path, scratch_dir, trusted_receipt
from lol_data.shards.writer import write_atomic

Progress = Callable[[int, int], None]  # (rows done, rows in all), always called from the calling thread
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerateResult:
    """status: "made", or "complete" when everything was there and its hashes held.

    units_made counts the units of this run, those made a second time without duplicates (units_deduplicated) too.
    """

    status: Literal["made", "complete"]
    manifest: Manifest
    units_made: int
    units_kept: int
    units_deduplicated: int


def generate_dataset(
    plan: DatasetPlan, out: Path | str, workers: int | None = None, progress: Progress | None = None
) -> GenerateResult:
    """Make the data set of `plan` in `out`, or go on with it. workers: threads, by default one per CPU.

    Raises UsageError (a plan that cannot be), RefusedError (another writer, another plan, foreign files), DamageError
    (a stored plan that cannot be read) and LolDataError (disk full). After any of them, and after an interrupt, the
    same call goes on where this one ended.
    """
    plan.validate()
    out, workers = Path(out), workers or default_workers()
    _refuse_foreign_directory(out)
    try:
        for folder in (out / WORK, scratch_dir(out)):
            folder.mkdir(parents=True, exist_ok=True)
        with directory_lock(out / WORK / "lock"):
            return _generate(plan, out, workers, progress or (lambda done, total: None))
    except OSError as error:
        raise LolDataError(f"{error.filename or out}: {error.strerror or error}") from error


def default_workers() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_threads(
    work: Callable[[T], Any],
    items: Iterable[T],
    workers: int,
    stop: threading.Event,
    tick: Callable[[], None] = lambda: None,
) -> list[Any]:
    """`work(item)` for every item on a pool of threads; results in order. The local engine.

    tick is called a few times a second from this thread. The first failure, or an interrupt, sets `stop`, which `work`
    is to watch, and is raised when all threads have ended.
    """
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, item) for item in items]
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
                failures = [error for future in done if (error := future.exception()) is not None]
                if failures:
                    # The others may have stopped only because this one failed.
                    raise next((error for error in failures if not isinstance(error, Stopped)), failures[0])
                tick()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _generate(plan: DatasetPlan, out: Path, workers: int, progress: Progress) -> GenerateResult:
    manifest = _finished(plan, out, workers)
    if manifest:
        progress(plan.n, plan.n)
        return GenerateResult("complete", manifest, 0, plan.units, 0)
    identity = _claim(plan, out)
    counter = _Counter(plan.n, progress)

    def trusted(unit: int) -> Receipt | None:
        receipt = None if counter.stop.is_set() else trusted_receipt(plan, out, unit)
        if receipt:
            counter.add(len(plan.unit_ids(unit)))
        return receipt

    def make(unit: int) -> Receipt:
        return make_unit(plan, out, unit, step=counter.add)

    receipts = run_threads(trusted, range(plan.units), workers, counter.stop, counter.tick)
    missing = [unit for unit, receipt in enumerate(receipts) if receipt is None]
    for receipt in run_threads(make, missing, workers, counter.stop, counter.tick):
        receipts[receipt.unit] = receipt
    again = _drop_duplicates(plan, out, receipts, workers)
    manifest = _sign(identity, out, receipts)
    return GenerateResult("made", manifest, len(missing) + again, plan.units - len(missing), again)


class _Counter:
    """Rows done, counted by all threads and shown by one; `add` is also where a thread learns that it is to stop."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.stop = threading.Event()
        self._total, self._progress = total, progress
        self._done, self._lock = 0, threading.Lock()

    def add(self, rows: int) -> None:
        if self.stop.is_set():
            raise Stopped
        with self._lock:
            self._done += rows

    def tick(self) -> None:
        self._progress(self._done, self._total)


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


def _finished(plan: DatasetPlan, out: Path, workers: int) -> Manifest | None:
    """The manifest when `plan` is already made here and all hashes hold. Versions do not matter for that."""
    try:
        manifest = Manifest.read(out / MANIFEST)
    except (FileNotFoundError, DamageError):
        return None
    old, new = manifest_identity(manifest), plan.fields()
    _refuse_difference(out, {name: old[name] for name in new}, new)

    def holds(entry: Any) -> bool:
        path = data_dir(out) / entry.name
        return path.is_file() and path.stat().st_size == entry.bytes and file_sha256(path) == entry.sha256

    _refuse_foreign_files(plan, out)
    return manifest if all(run_threads(holds, manifest.files, workers, threading.Event())) else None


def _claim(plan: DatasetPlan, out: Path) -> dict[str, Any]:
    """Write the plan into `out`, or compare it with the one there; make the folders; clear unfinished files."""
    identity, stored = plan.identity(), _stored_identity(out)
    if stored is not None:
        _refuse_difference(out, stored, identity)
    for leftover in scratch_dir(out).iterdir():
        leftover.unlink()
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


def _drop_duplicates(plan: DatasetPlan, out: Path, receipts: list[Receipt], workers: int) -> int:
    """Make units with duplicates again without them; updates `receipts`, gives the number of units made again."""
    drops = np.split(
        dropped := duplicate_ids(plan, lambda unit: np.load(keys_path(out, unit))),
        np.searchsorted(dropped, [plan.unit_ids(unit).start for unit in range(1, plan.units)]),
    )
    stop = threading.Event()

    def watch(rows: int) -> None:
        if stop.is_set():
            raise Stopped

    def remake(unit: int) -> Receipt:
        return make_unit(plan, out, unit, drops[unit].tolist(), watch)

    affected = [unit for unit in range(plan.units) if receipts[unit].dropped != drops[unit].tolist()]
    for receipt in run_threads(remake, affected, workers, stop):
        receipts[receipt.unit] = receipt
    return len(affected)


def _sign(identity: dict[str, Any], out: Path, receipts: list[Receipt]) -> Manifest:
    files = sorted((entry for receipt in receipts for entry in receipt.files), key=lambda entry: entry.name)
    dropped = [id for receipt in receipts for id in receipt.dropped]
    whole = totals(files)
    manifest = Manifest(
        **identity,
        rows=whole["rows"],
        bytes=whole["bytes"],
        content_hash=whole["content_hash"],
        splits={split: totals([entry for entry in files if entry.split == split]) for split in SPLITS},
        duplicates={"dropped": len(dropped), "ids": dropped if len(dropped) <= LISTED_DUPLICATES else None},
        equal_traces={pair: sum(receipt.equal_traces[pair] for receipt in receipts) for pair in STRATEGY_PAIRS},
        files=files,
    )
    write_atomic(out / CARD, dataset_card(manifest).encode(), scratch_dir(out))
    manifest.write(out / MANIFEST, scratch_dir(out))
    return manifest
