"""The engines that make units. All call the same function, `unit.ensure_unit`; correctness lies there, not here.

local   threads of this process: the kernels hold no interpreter lock, and there is no worker that could be lost
ray     tasks on a Ray cluster that sees the directory, see `ray_engine`; needs `pip install 'lol-data[ray]'`
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lol_data.shards.manifest import Receipt
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.unit import Stopped, ensure_unit

ENGINES = ("local", "ray")
Progress = Callable[[int, int], None]  # (rows done, rows in all), always called from the calling thread
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One unit to be there. drop: the ids to leave out, rising; None takes a finished unit whatever it left out."""

    unit: int
    drop: tuple[int, ...] | None = None


def ensure_units(
    plan: DatasetPlan, out: Path, jobs: Sequence[Job], engine: str, workers: int | None, progress: Progress
) -> list[tuple[Receipt, bool]]:
    """Make the units that are not there yet; per job, in order, the receipt and whether it was made now.

    engine: one of ENGINES. workers: units made at a time, by default one per CPU of this machine or of the cluster. The
    first failure, or an interrupt, ends the others and is raised.
    """
    if not jobs:
        return []
    if engine == "ray":
        from lol_data.shards.ray_engine import ensure_on_ray

        return ensure_on_ray(plan, out, jobs, workers, progress)
    return _ensure_on_threads(plan, out, jobs, workers or default_workers(), progress)


def rows_of(plan: DatasetPlan, jobs: Iterable[Job]) -> int:
    """Ids of all jobs."""
    return sum(len(plan.unit_ids(job.unit)) for job in jobs)


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
    """`work(item)` for every item on a pool of threads; results in order.

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


class RowCount:
    """Rows done, counted by all threads of a run; `step` is also where a thread learns that it is to stop."""

    def __init__(self) -> None:
        self.done, self.stop, self._lock = 0, threading.Event(), threading.Lock()

    def step(self, rows: int) -> None:
        """Count rows. Raises Stopped when the run has ended."""
        if self.stop.is_set():
            raise Stopped
        with self._lock:
            self.done += rows


def _ensure_on_threads(
    plan: DatasetPlan, out: Path, jobs: Sequence[Job], workers: int, progress: Progress
) -> list[tuple[Receipt, bool]]:
    count, total = RowCount(), rows_of(plan, jobs)

    def ensure(job: Job) -> tuple[Receipt, bool]:
        return ensure_unit(plan, out, job.unit, job.drop, count.step)

    return run_threads(ensure, jobs, workers, count.stop, lambda: progress(count.done, total))
