"""One unit of work: a range of ids becomes one file per split, its keys, and a receipt, written last.

`ensure_unit` needs the plan, the directory and a number, and nothing else; any engine may run it, anywhere, twice even.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.errors import DamageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.shards.duplicates import UnitKeys
from lol_data.shards.kernels import content_hash, equal_orders, pairs_of, row_hashes
from lol_data.shards.manifest import WORK, FileEntry, Receipt, file_sha256, sha256
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.writer import ShardEncoder, write_atomic


class Stopped(Exception):
    """The run was asked to stop; the unit left nothing."""


def data_dir(out: Path) -> Path:
    """Where finished files are."""
    return out / "data"


def scratch_dir(out: Path) -> Path:
    """Where files are until they are finished."""
    return out / WORK / "tmp"


def receipt_path(out: Path, unit: int) -> Path:
    """The receipt of a unit."""
    return out / WORK / "receipts" / f"{unit:05d}.json"


def keys_path(out: Path, unit: int) -> Path:
    """The keys of all ids of a unit, see `duplicates.UnitKeys`."""
    return out / WORK / "keys" / f"{unit:05d}.bin"


def encode_unit(
    plan: DatasetPlan, ids: range, drop: Collection[int] = (), step: Callable[[int], None] = lambda rows: None
) -> tuple[dict[str, tuple[pa.Buffer, int, int]], NDArray[np.uint64], NDArray[np.int64]]:
    """The files of a range of ids, in memory.

    drop: ids to leave out. step: called with the rows of every block; what it raises ends the work.
    Gives per split (bytes, rows, content hash); the keys of all ids, uint64 (ids,); and the counts of `equal_orders`.
    """
    task, dropped = plan.task, np.array(sorted(drop), np.uint64)
    encoders = {split: ShardEncoder(task.schema) for split in SPLITS}
    hashes = dict.fromkeys(SPLITS, 0)
    keys, equal = [np.empty(0, np.uint64)], np.zeros(len(pairs_of(task.strategies)), np.int64)
    for block in plan.blocks(ids):
        ids_here = block.traced.id
        batch, row_hash = task.to_batch(block.traced), row_hashes(ids_here, task.columns(block.traced))
        kept = ~np.isin(ids_here, dropped)
        for index, split in enumerate(SPLITS):
            rows = kept & (block.splits == index)
            encoders[split].add(batch.filter(pa.array(rows)))
            hashes[split] = (hashes[split] + content_hash(row_hash[rows])) % 2**64
        keys.append(block.keys)
        equal += equal_orders(task.orders(block.traced), kept)
        step(len(block.keys))
    files = {split: (encoder.finish(), encoder.rows, hashes[split]) for split, encoder in encoders.items()}
    return files, np.concatenate(keys), equal


def make_unit(
    plan: DatasetPlan,
    out: Path,
    unit: int,
    drop: Collection[int] = (),
    step: Callable[[int], None] = lambda rows: None,
) -> Receipt:
    """Make and publish unit `unit` without the ids in `drop`. The folders of `out` must exist.

    Raises LolDataError when something cannot be written, and whatever `step` raises.
    """
    files, keys, equal = encode_unit(plan, plan.unit_ids(unit), drop, step)
    names, entries = plan.file_names(unit), []
    for split, (data, rows, content) in files.items():
        write_atomic(data_dir(out) / names[split], data, scratch_dir(out))
        entries.append(FileEntry(names[split], split, rows, data.size, sha256(data), f"{content:016x}"))
    stored_keys = UnitKeys.of(keys).to_bytes()
    write_atomic(keys_path(out, unit), stored_keys, scratch_dir(out))
    counts = dict(zip(pairs_of(plan.task.strategies), equal.tolist(), strict=True))
    receipt = Receipt(unit, entries, sorted(drop), counts, sha256(stored_keys))
    receipt.write(receipt_path(out, unit), scratch_dir(out))
    return receipt


def ensure_unit(
    plan: DatasetPlan,
    out: Path,
    unit: int,
    drop: Collection[int] | None,
    step: Callable[[int], None] = lambda rows: None,
) -> tuple[Receipt, bool]:
    """The receipt of unit `unit`, and whether it was made now: a finished one is kept when all its hashes hold.

    drop: the ids to leave out; None keeps a finished unit whatever it left out. step and errors: as in `make_unit`.
    """
    receipt = trusted_receipt(plan, out, unit)
    if receipt is None or (drop is not None and receipt.dropped != sorted(drop)):
        return make_unit(plan, out, unit, drop or (), step), True
    step(len(plan.unit_ids(unit)))
    return receipt, False


def trusted_receipt(plan: DatasetPlan, out: Path, unit: int) -> Receipt | None:
    """The receipt of a finished unit when its seal and the hashes of all its files hold, else None."""
    try:
        receipt = Receipt.read(receipt_path(out, unit))
        names = [entry.name for entry in receipt.files]
        if receipt.unit != unit or names != list(plan.file_names(unit).values()):
            return None
        held = all(file_sha256(data_dir(out) / entry.name) == entry.sha256 for entry in receipt.files)
        return receipt if held and file_sha256(keys_path(out, unit)) == receipt.keys_sha256 else None
    except (OSError, DamageError):
        return None
