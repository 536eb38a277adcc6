"""What a plan will cost, from making its first rows in memory."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lol_data.shards.duplicates import KEY_BYTES
from lol_data.shards.engines import default_workers
from lol_data.shards.plan import BLOCK, DatasetPlan
from lol_data.shards.unit import encode_unit


@dataclass(frozen=True, slots=True)
class Estimate:
    """rows, files and bytes of `data/`, work_bytes of `.work/`, free_bytes of the disk, seconds at so many workers."""

    rows: int
    files: int
    bytes: int
    work_bytes: int
    free_bytes: int
    seconds: float
    workers: int

    @property
    def fits(self) -> bool:
        """Whether the disk has room for it."""
        return self.bytes + self.work_bytes <= self.free_bytes

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {**asdict(self), "fits": self.fits}

    def __str__(self) -> str:
        disk = f"{_size(self.bytes)} (and {_size(self.work_bytes)} while working), {_size(self.free_bytes)} are free"
        time = f"about {_duration(self.seconds)} at {self.workers} workers"
        return f"{self.rows:,} rows in {self.files:,} files, {disk}; {time}"


def estimate_dataset(plan: DatasetPlan, out: Path, workers: int | None = None, units: range | None = None) -> Estimate:
    """Make one unit of at most 8,192 rows in memory and scale it up to `units`, by default all. Writes nothing.

    Raises UsageError.
    """
    plan.validate()
    workers = workers or default_workers()
    units = range(plan.units) if units is None else units
    rows = sum(len(plan.unit_ids(unit)) for unit in units)
    plan.probe()  # compiles, which must not count
    sample = range(min(2 * BLOCK, plan.n))
    encode_unit(plan, sample[:256])
    begin = time.perf_counter()
    files, keys, _ = encode_unit(plan, sample)
    seconds = time.perf_counter() - begin
    scale = rows / max(1, len(keys))
    size = round(sum(data.size for data, _, _ in files.values()) * scale)
    seconds *= scale / max(1, min(workers, len(units)))
    return Estimate(rows, 3 * len(units), size, KEY_BYTES * rows, _free(out), seconds, workers)


def _free(path: Path) -> int:
    """Free bytes of the file system that `path` is on, or would be."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path if path.exists() else Path.cwd()).free


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
