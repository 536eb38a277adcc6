"""Nothing that happens to a run changes what it ends with: kills, damage, other writers, other settings, full disks."""

import contextlib
import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lol_data.errors import DamageError, LolDataError, RefusedError, UsageError
from lol_data.generators.maze import MazeSettings
from lol_data.shards import plan, unit
from lol_data.shards.generate import generate_dataset
from lol_data.shards.lock import units_lock
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.verify import verify_dataset

from .common import SMALL, TINY_MAZES, flip_bit, make, published

CHILD = """
import sys
from lol_data.generators.maze import MazeSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan
plan = DatasetPlan(n=int(sys.argv[2]), settings=MazeSettings(size=4), shard_rows=400, validation_share=0.2)
print("begin", flush=True)
generate_dataset(plan, sys.argv[1], 2)
"""
KILLED = DatasetPlan(n=8_000, settings=MazeSettings(size=4), shard_rows=400, validation_share=0.2)


def start_child(out: Path, n: int) -> subprocess.Popen:
    command = [sys.executable, "-c", CHILD, str(out), str(n)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def kill_rounds(tmp_path, shards, rounds):
    plan = replace(KILLED, n=400 * shards)
    begin = time.perf_counter()
    reference = published(make(plan, tmp_path / "reference", 2))
    seconds = time.perf_counter() - begin
    rng, killed = random.Random(rounds), 0
    for number in range(rounds):
        out = tmp_path / str(number)
        while True:
            child = start_child(out, plan.n)
            assert child.stdout.readline() == b"begin\n"
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(rng.uniform(0, seconds))
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                killed += 1
            child.communicate()
            known = {name.removeprefix("data/") for name in reference if name.startswith("data/")}
            assert {path.name for path in (out / "data").glob("*")} <= known
            if rng.random() < 0.6:
                break
        generate_dataset(plan, out, 2)
        assert published(out) == reference
    assert killed


def test_kill_minus_nine(tmp_path):
    kill_rounds(tmp_path, 20, 2)


@pytest.mark.slow
def test_kill_minus_nine_often(tmp_path):
    kill_rounds(tmp_path, 100, 25)


def test_interrupt_stops_at_once_and_resumes(tmp_path):
    class Interrupted(KeyboardInterrupt):
        pass

    def interrupt(done, total):
        if done:
            raise Interrupted

    big = replace(KILLED, n=2_000_000, shard_rows=20_000)
    begin = time.perf_counter()
    with pytest.raises(Interrupted):
        generate_dataset(big, tmp_path / "d", 2, interrupt)
    assert time.perf_counter() - begin < 5
    assert not (tmp_path / "d" / "manifest.json").exists()
    assert not list((tmp_path / "d" / ".work" / "tmp").iterdir())


@pytest.fixture
def made(tmp_path):
    return make(TINY_MAZES, tmp_path / "d"), published(make(TINY_MAZES, tmp_path / "same"))


def harms(out):
    """Every way to harm a finished set that a rerun must mend, each as a function."""
    shard, other = sorted((out / "data").iterdir())[:2]
    work = out / ".work"
    return {
        "deleted": shard.unlink,
        "truncated": lambda: os.truncate(shard, shard.stat().st_size // 2),
        "emptied": lambda: os.truncate(shard, 0),
        "flipped": lambda: flip_bit(shard, 1000),
        "swapped": lambda: (shard.rename(out / "x"), other.rename(shard), (out / "x").rename(other)),
        "receipt": lambda: (flip_bit(work / "receipts" / "00001.json", 300), shard.unlink()),
        "keys": lambda: (flip_bit(work / "keys" / "00002.bin", 2000), (out / "manifest.json").unlink()),
        "manifest": lambda: flip_bit(out / "manifest.json", 500),
        "manifest gone": (out / "manifest.json").unlink,
        "plan": lambda: (flip_bit(work / "plan.json", 77), shard.unlink()),
    }


@pytest.mark.parametrize(
    "name",
    ["deleted", "truncated", "emptied", "flipped", "swapped", "receipt", "keys", "manifest", "manifest gone", "plan"],
)
def test_rerun_mends(made, name):
    out, reference = made
    harms(out)[name]()
    assert generate_dataset(TINY_MAZES, out).status == "made"
    assert published(out) == reference
    assert verify_dataset(out).ok


def test_rerun_mends_without_work_folder(made):
    out, reference = made
    subprocess.run(["rm", "-r", str(out / ".work")], check=True)
    assert generate_dataset(TINY_MAZES, out).status == "complete"
    next((out / "data").iterdir()).unlink()
    generate_dataset(TINY_MAZES, out)
    assert published(out) == reference


def test_rerun_makes_only_what_is_missing(tmp_path):
    out = make(SMALL, tmp_path / "d")
    before = {path.name: path.stat().st_mtime_ns for path in (out / "data").iterdir()}
    (out / "data" / "test-00001-of-00003.parquet").unlink()
    result = generate_dataset(SMALL, out)
    assert (result.units_made, result.units_kept) == (1, 2)
    after = {path.name: path.stat().st_mtime_ns for path in (out / "data").iterdir()}
    assert {name for name in after if after[name] != before[name]} == {name for name in after if "-00001-" in name}


def test_complete_is_said_and_nothing_is_written(made):
    out, _ = made
    before = [path.stat().st_mtime_ns for path in (out / "data").iterdir()]
    calls = []
    result = generate_dataset(TINY_MAZES, out, progress=lambda done, total: calls.append((done, total)))
    assert result.status == "complete" and result.units_made == 0
    assert calls == [(TINY_MAZES.n, TINY_MAZES.n)]
    assert before == [path.stat().st_mtime_ns for path in (out / "data").iterdir()]


def test_second_writer_is_refused(tmp_path):
    out = make(SMALL, tmp_path / "d")
    with units_lock(out / ".work" / "writers", range(2, 3)):
        with pytest.raises(RefusedError, match=rf"process {os.getpid()} on .* is writing here") as caught:
            generate_dataset(SMALL, out)
        assert "\n" not in str(caught.value) and caught.value.exit_code == 4
    assert generate_dataset(SMALL, out).status == "complete"


def test_second_process_is_refused(tmp_path):
    out = make(KILLED, tmp_path / "d")
    with units_lock(out / ".work" / "writers", range(3)):
        child = start_child(out, KILLED.n)
        _, errors = child.communicate(timeout=60)
    assert child.returncode and b"BusyError" in errors


@pytest.mark.parametrize("finished", [True, False])
def test_changed_settings_are_refused_with_a_diff(tmp_path, finished):
    out = make(SMALL, tmp_path / "d")
    if not finished:
        (out / "manifest.json").unlink()
    before = published(out)
    changed = replace(SMALL, n=500, settings=MazeSettings(size=6), seed=1, test_share=0.2)
    with pytest.raises(RefusedError) as caught:
        generate_dataset(changed, out)
    for words in ("n: 400 -> 500", "settings.size: 5 -> 6", "seed: 0 -> 1", "test_share: 0.1 -> 0.2", "another --out"):
        assert words in str(caught.value)
    assert published(out) == before


def test_other_versions_are_refused_only_while_unfinished(tmp_path, monkeypatch):
    out = make(SMALL, tmp_path / "d")
    monkeypatch.setattr(plan, "versions", lambda: {"lol_data": "9"})
    assert generate_dataset(SMALL, out).status == "complete"
    (out / "manifest.json").unlink()
    with pytest.raises(RefusedError, match=r"versions\.lol_data: .* -> 9"):
        generate_dataset(SMALL, out)


def test_the_default_and_its_value_are_the_same_settings(tmp_path):
    out = make(SMALL, tmp_path / "d")
    assert generate_dataset(replace(SMALL, settings=MazeSettings(size=5, min_path=7)), out).status == "complete"


def test_foreign_directories_are_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(RefusedError, match=r"mine\.txt"):
        generate_dataset(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError):
        generate_dataset(SMALL, tmp_path / "mine.txt")
    out = make(SMALL, tmp_path / "d")
    (out / "data" / "train-x.parquet").write_bytes(b"")
    with pytest.raises(RefusedError, match=r"train-x\.parquet"):
        generate_dataset(SMALL, out)


def test_a_damaged_plan_of_an_unfinished_set_is_named(tmp_path):
    out = make(SMALL, tmp_path / "d")
    (out / "manifest.json").unlink()
    flip_bit(out / ".work" / "plan.json", 99)
    with pytest.raises(DamageError, match=r"plan\.json"):
        generate_dataset(SMALL, out)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_any_failing_write_leaves_old_or_new(tmp_path, monkeypatch, call):
    """The n-th system call fails, for every n: no stub, one line, and the next run ends as if nothing had been."""
    small = replace(SMALL, n=200)
    reference = published(make(small, tmp_path / "reference"))
    known, real = set(reference), getattr(os, call)
    for fail_at in range(1, 200):
        out, calls = tmp_path / str(fail_at), iter(range(1, 1000))

        def failing(*args, fail_at=fail_at, calls=calls):
            if next(calls) == fail_at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args)

        monkeypatch.setattr(os, call, failing)
        try:
            generate_dataset(small, out)
        except LolDataError as error:
            assert "No space left" in str(error) and "bytes" in str(error) and str(out) in str(error)
        else:
            break
        finally:
            monkeypatch.setattr(os, call, real)
        found = published(out)
        assert all(found[name] == reference[name] for name in found) and set(found) <= known
        assert not list((out / ".work" / "tmp").iterdir())
        generate_dataset(small, out)
        assert published(out) == reference
    assert 10 < fail_at < 199


def test_file_size_limit(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limit[1]))
    try:
        with pytest.raises(LolDataError, match=r"needs [\d,]+ bytes"):
            generate_dataset(SMALL, tmp_path / "d")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not [path for path in (tmp_path / "d" / "data").iterdir() if path.stat().st_size >= 5000]
    assert generate_dataset(SMALL, tmp_path / "d").status == "made"


def test_a_failing_unit_ends_the_run(tmp_path, monkeypatch):
    real = unit.make_unit

    def failing(plan, out, number, drop=(), step=None):
        if number == 1:
            raise LolDataError("unit 1 failed")
        return real(plan, out, number, drop, step)

    monkeypatch.setattr(unit, "make_unit", failing)
    with pytest.raises(LolDataError, match="unit 1 failed"):
        generate_dataset(SMALL, tmp_path / "d", 2)


def test_sealed_files_are_plain_json(tmp_path):
    out = make(SMALL, tmp_path / "d")
    assert json.loads((out / "manifest.json").read_text())["rows"] == SMALL.n
