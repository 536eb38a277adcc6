"""What a plan will cost, from making its first rows in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lol_data.shards.generate import default_workers
from lol_data.shards.plan import BLOCK, DatasetPlan
from lol_data.shards.unit import encode_unit


@dataclass(frozen=True, slots=True)
class Estimate:
    """rows, files, bytes of `data/`, work_bytes of `.work/`, and seconds at the given number of workers."""

    rows: int
    files: int
    bytes: int
    work_bytes: int
    seconds: float
    workers: int


def estimate_dataset(plan: DatasetPlan, workers: int | None = None) -> Estimate:
    """Make one unit of at most 8,192 rows in memory and scale it up. Writes nothing. Raises UsageError."""
    plan.validate()
    workers = workers or default_workers()
    plan.probe()  # compiles, which must not count
    sample = range(min(2 * BLOCK, plan.n))
    encode_unit(plan, sample[:256])
    begin = time.perf_counter()
    files, keys, _ = encode_unit(plan, sample)
    seconds = time.perf_counter() - begin
    sizes = sum(data.size for data, _, _ in files.values())
    scale = plan.n / max(1, len(keys))
    busy = min(workers, plan.units)
    return Estimate(plan.n, 3 * plan.units, round(sizes * scale), 8 * plan.n, seconds * scale / busy, workers)
