"""Engines: the same bytes from a real local Ray cluster, with workers killed in the middle."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lol_data.errors import LolDataError, UsageError
from lol_data.generators.maze import MazeSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan

from .common import SMALL, TINY_MAZES, make, published


def test_unknown_engine(tmp_path):
    with pytest.raises(UsageError, match="choose from local, ray"):
        generate_dataset(SMALL, tmp_path / "d", engine="slurm")
    assert not (tmp_path / "d").exists()


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'lol-data\[ray\]'"):
        generate_dataset(SMALL, tmp_path / "d", engine="ray")


@pytest.mark.slow
def test_ray_makes_the_same_bytes(tmp_path):
    pytest.importorskip("ray")
    calls = []
    result = generate_dataset(
        TINY_MAZES, tmp_path / "ray", 2, lambda done, total: calls.append((done, total)), engine="ray"
    )
    assert result.status == "made" and result.units_deduplicated > 0
    assert (TINY_MAZES.n, TINY_MAZES.n) in calls
    assert published(tmp_path / "ray") == published(make(TINY_MAZES, tmp_path / "local"))


@pytest.mark.slow
def test_ray_ends_with_one_line_when_a_unit_fails(tmp_path):
    pytest.importorskip("ray")
    out = tmp_path / "d"
    generate_dataset(SMALL, out, units=range(1))
    (out / "data" / SMALL.file_names(2)["test"]).mkdir()
    with pytest.raises(LolDataError, match=r"test-00002-of-00003\.parquet") as caught:
        generate_dataset(SMALL, out, 1, engine="ray")
    assert "\n" not in str(caught.value)
    (out / "data" / SMALL.file_names(2)["test"]).rmdir()
    generate_dataset(SMALL, out)
    assert published(out) == published(make(SMALL, tmp_path / "local"))


def descendants(pid: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    found, fresh = set(), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def kill_tasks(times: int, killed: list[int], stop: threading.Event) -> None:
    """Kill Ray workers of this process in the middle of a task, a number of times."""
    while len(killed) < times and not stop.is_set():
        for pid in descendants(os.getpid()) - set(killed):
            try:
                title = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::_task"):
                time.sleep(0.05)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                break
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers through /proc")
def test_killed_workers_neither_hang_nor_change_the_run(tmp_path):
    pytest.importorskip("ray")
    plan = DatasetPlan(n=400_000, settings=MazeSettings(size=5), shard_rows=50_000, validation_share=0.2)
    killed, stop = [], threading.Event()
    killer = threading.Thread(target=kill_tasks, args=(3, killed, stop))
    killer.start()
    try:
        result = generate_dataset(plan, tmp_path / "ray", 2, engine="ray")
    finally:
        stop.set()
        killer.join()
    assert result.status == "made" and len(killed) == 3
    assert published(tmp_path / "ray") == published(make(plan, tmp_path / "local", 2))


@pytest.mark.slow
def test_ray_refuses_a_worker_that_cannot_see_the_directory(tmp_path):
    """What a worker checks before it works, asked directly: a directory without the plan, and one of another plan."""
    from lol_data.shards.engines import Job
    from lol_data.shards.ray_engine import _task

    with pytest.raises(LolDataError, match="shared directory"):
        _task(SMALL, tmp_path / "nowhere", Job(0))
    out = make(SMALL, tmp_path / "d")
    with pytest.raises(LolDataError, match="seed: 0 -> 3"):
        _task(replace(SMALL, seed=3), out, Job(0))
