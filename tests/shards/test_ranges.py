"""Array jobs: ranges of shards made by several runs, in any order and at once, end as one run would."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lol_data.errors import RefusedError, UsageError
from lol_data.shards.generate import generate_dataset
from lol_data.shards.lock import BusyError, units_lock

from .common import TINY_MAZES, make, published

ROOT = Path(__file__).parents[2]
PIECES = [range(3, 5), range(1), range(1, 3)]  # of the five units of TINY_MAZES, with duplicates among them


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return published(make(TINY_MAZES, tmp_path_factory.mktemp("whole") / "d"))


def test_the_last_of_several_runs_signs(tmp_path, reference):
    out = tmp_path / "d"
    results = [generate_dataset(TINY_MAZES, out, units=piece) for piece in PIECES]
    assert [result.status for result in results] == ["part", "part", "made"]
    assert results[0].manifest is None and results[0].units_made == 2
    assert results[2].units_made - results[2].units_deduplicated == 2
    assert published(out) == reference
    again = generate_dataset(TINY_MAZES, out, units=PIECES[0])
    assert (again.status, again.units_made, again.units_kept) == ("complete", 0, 2)


def test_a_whole_run_takes_over_what_parts_have_made(tmp_path, reference):
    out = tmp_path / "d"
    generate_dataset(TINY_MAZES, out, units=PIECES[0])
    result = generate_dataset(TINY_MAZES, out)
    assert result.status == "made" and result.units_kept == 2
    assert published(out) == reference


@pytest.mark.slow
def test_runs_at_the_same_time(tmp_path, reference):
    script = """
import sys
from tests.shards.common import TINY_MAZES
from lol_data.shards.generate import generate_dataset
print(generate_dataset(TINY_MAZES, sys.argv[1], 1, units=range(int(sys.argv[2]), int(sys.argv[3]))).status)
"""
    for attempt in range(2):
        out = tmp_path / str(attempt)

        def job(unit, out=out):
            command = [sys.executable, "-c", script, str(out), str(unit), str(unit + 1)]
            return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()

        with ThreadPoolExecutor(5) as pool:
            statuses = list(pool.map(job, range(5)))
        assert statuses.count("made") == 1 and statuses.count("part") == 4
        assert published(out) == reference


def test_a_damaged_part_is_mended_by_its_own_range(tmp_path, reference):
    out = make(TINY_MAZES, tmp_path / "d")
    next((out / "data").glob("train-00003-*")).unlink()
    result = generate_dataset(TINY_MAZES, out, units=range(3, 4))
    assert result.status == "made" and published(out) == reference


def test_overlapping_ranges_are_refused_and_others_are_not(tmp_path):
    writers = tmp_path / "d" / ".work" / "writers"
    with units_lock(writers, range(1, 3)):
        for units in (range(2), range(2, 5), range(5), range(1, 3)):
            with pytest.raises(BusyError, match=r"is writing here \(shards 1:3\)") as caught:
                generate_dataset(TINY_MAZES, tmp_path / "d", units=units)
            assert caught.value.exit_code == 4
        assert generate_dataset(TINY_MAZES, tmp_path / "d", units=range(3, 5)).status == "part"
    assert not list(writers.glob("*-*"))
    assert generate_dataset(TINY_MAZES, tmp_path / "d").status == "made"


def test_a_lock_left_by_a_killed_run_is_none(tmp_path):
    writers = tmp_path / "d" / ".work" / "writers"
    writers.mkdir(parents=True)
    (writers / "00000-00005").write_text("process 1 on elsewhere\n")
    assert generate_dataset(TINY_MAZES, tmp_path / "d").status == "made"
    assert not list(writers.glob("*-*"))


def test_parts_of_different_plans_do_not_mix(tmp_path):
    generate_dataset(TINY_MAZES, tmp_path / "d", units=PIECES[0])
    with pytest.raises(RefusedError, match="seed: 0 -> 1"):
        generate_dataset(replace(TINY_MAZES, seed=1), tmp_path / "d", units=PIECES[1])


@pytest.mark.parametrize("units", [range(0), range(2, 1), range(-1, 2), range(4, 6), range(0, 4, 2)])
def test_ranges_that_are_none(tmp_path, units):
    with pytest.raises(UsageError, match="0:5"):
        generate_dataset(TINY_MAZES, tmp_path / "d", units=units)
    assert not (tmp_path / "d").exists()
