"""Units as tasks of a Ray cluster. Every node must see the data set's directory under the same path.

A task makes one unit, publishes its files and returns the receipt only: nothing passes through Ray's object store. A
task that is lost with its worker is run again by Ray. A unit may so be made twice, even at the same time; that is
harmless, because its bytes are the same and files appear by renaming.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from lol_data.errors import LolDataError, RefusedError, UsageError
from lol_data.shards.engines import Job, Progress, default_workers, rows_of
from lol_data.shards.manifest import WORK, Receipt, read_sealed
from lol_data.shards.plan import DatasetPlan, difference
from lol_data.shards.unit import ensure_unit

RETRIES = 5  # of a unit whose worker is lost
WAITING = 2  # tasks handed to the cluster per CPU, so that no CPU waits for the driver


def ensure_on_ray(
    plan: DatasetPlan, out: Path, jobs: Sequence[Job], workers: int | None, progress: Progress
) -> list[tuple[Receipt, bool]]:
    """`engines.ensure_units` on the cluster that Ray finds (RAY_ADDRESS, or one begun here), else on a new local one.

    workers: tasks at a time; by default all CPUs. Raises UsageError when Ray is not installed, LolDataError when a unit
    loses its worker again and again, and what a unit raises.
    """
    ray = _connect(workers)
    try:
        task = ray.remote(_task).options(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")
        limit = workers or WAITING * max(1, int(ray.cluster_resources().get("CPU", 1)))
        return _run(ray, task, plan, out.resolve(), jobs, limit, progress)
    finally:
        ray.shutdown()  # leaves the cluster, and stops it only if it was started here


def _connect(workers: int | None) -> Any:
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray needs Ray: pip install 'lol-data[ray]'") from None
    # Ray's own notes go to its log files; ours go to the terminal.
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        ray.init(address="auto", **options)
    except ConnectionError:
        if "RAY_ADDRESS" in os.environ:
            raise LolDataError(f"no Ray cluster answers at RAY_ADDRESS={os.environ['RAY_ADDRESS']}") from None
        ray.init(num_cpus=workers or default_workers(), include_dashboard=False, **options)
    return ray


def _run(
    ray: Any, task: Any, plan: DatasetPlan, out: Path, jobs: Sequence[Job], limit: int, progress: Progress
) -> list[tuple[Receipt, bool]]:
    results: list[Any] = [None] * len(jobs)
    running: dict[Any, int] = {}
    begun = done = 0
    total = rows_of(plan, jobs)
    try:
        while running or begun < len(jobs):
            while begun < len(jobs) and len(running) < limit:
                running[task.remote(plan, out, jobs[begun])] = begun
                begun += 1
            ready, _ = ray.wait(list(running), timeout=0.2)
            for reference in ready:
                index = running.pop(reference)
                results[index] = _result(ray, reference, jobs[index].unit)
                done += len(plan.unit_ids(jobs[index].unit))
            progress(done, total)
    except BaseException:
        for reference in running:
            ray.cancel(reference, force=True)
        raise
    return results


def _result(ray: Any, reference: Any, unit: int) -> tuple[Receipt, bool]:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # raised inside the task
        if isinstance(error.cause, LolDataError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:  # lost with its worker, once too often
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LolDataError(
            f"unit {unit}: its worker was lost {RETRIES + 1} times ({reason}); the same command goes on with the rest"
        ) from error


def _task(plan: DatasetPlan, out: Path, job: Job) -> tuple[Receipt, bool]:
    """What a worker does."""
    _refuse_other_code(plan, out)
    return ensure_unit(plan, out, job.unit, job.drop)


@lru_cache(maxsize=1)
def _refuse_other_code(plan: DatasetPlan, out: Path) -> None:
    """Once per worker: is this the directory of the plan, and would the code here write the same bytes?"""
    path = out / WORK / "plan.json"
    try:
        stored = read_sealed(path)
    except FileNotFoundError:
        raise RefusedError(f"{path}: a worker does not see it; every node needs the same shared directory") from None
    changes = difference(stored, plan.identity())
    if changes:
        raise RefusedError(f"{out}: a worker has other code or another plan ({'; '.join(changes)})")
