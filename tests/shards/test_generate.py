"""From a plan to a directory: exact rows, the same bytes whatever made them, duplicates, splits."""

from dataclasses import replace

import numpy as np
import pytest

from lol_data.errors import UsageError
from lol_data.generators.fingerprint import SPLITS, maze_fingerprint
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.shards.duplicates import UnitKeys, duplicate_ids
from lol_data.shards.estimate import estimate_dataset
from lol_data.shards.generate import generate_dataset
from lol_data.shards.kernels import problem_bytes
from lol_data.shards.manifest import Manifest
from lol_data.shards.maze_task import MazeTask
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.shards.verify import verify_dataset

from .common import SMALL, TINY_MAZES, make, published


@pytest.mark.parametrize("n", [0, 1, 149, 150, 151])
def test_exact_rows_at_the_edges(n, tmp_path):
    out = make(replace(SMALL, n=n), tmp_path / "d")
    dataset = open_dataset(out, "maze")
    parts = [dataset.read_split(split) for split in SPLITS]
    assert [len(part) for part in parts] == [dataset.rows(split) for split in SPLITS]
    assert sorted(id for part in parts for id in part.mazes.id.tolist()) == list(range(n))
    assert len(dataset.manifest.files) == 3 * max(1, -(-n // 150))
    assert verify_dataset(out, deep=True).problems == []


def test_bytes_do_not_depend_on_workers(tmp_path):
    one, two, seven = (published(make(SMALL, tmp_path / str(workers), workers)) for workers in (1, 2, 7))
    assert one == two == seven


def test_content_does_not_depend_on_shard_size(tmp_path):
    manifests = [generate_dataset(replace(SMALL, shard_rows=rows), tmp_path / str(rows)).manifest for rows in (150, 61)]
    assert manifests[0].content_hash == manifests[1].content_hash
    hashes = [[part["content_hash"] for part in manifest.splits.values()] for manifest in manifests]
    assert hashes[0] == hashes[1]


def test_many_blocks_in_one_unit(tmp_path):
    plan = DatasetPlan(n=9000, settings=MazeSettings(size=4), shard_rows=9000, validation_share=0.3)
    out = make(plan, tmp_path / "d", 2)
    assert verify_dataset(out, deep=True).problems == []


def brute_force_kept(plan):
    mazes = generate_mazes(plan.settings, plan.seed, 0, plan.n).mazes
    seen, kept = set(), []
    for row in range(plan.n):
        problem = (mazes.openings[row].tobytes(), int(mazes.start[row]), int(mazes.goal[row]))
        if problem not in seen:
            kept.append(row)
        seen.add(problem)
    return kept


def test_duplicates_are_dropped_by_lowest_id(tmp_path):
    expected = brute_force_kept(TINY_MAZES)
    assert len(expected) < TINY_MAZES.n
    result = generate_dataset(TINY_MAZES, tmp_path / "d", 3)
    dataset = open_dataset(tmp_path / "d")
    ids = np.concatenate([dataset.read_split(split).mazes.id for split in SPLITS])
    assert sorted(ids.tolist()) == expected
    assert result.manifest.duplicates["dropped"] == TINY_MAZES.n - len(expected)
    assert result.units_deduplicated > 0
    assert published(tmp_path / "d") == published(make(TINY_MAZES, tmp_path / "other", 1))
    assert verify_dataset(tmp_path / "d", deep=True).problems == []


def test_few_dropped_ids_are_listed(tmp_path):
    plan = replace(TINY_MAZES, n=300)
    kept = brute_force_kept(plan)
    duplicates = generate_dataset(plan, tmp_path / "d").manifest.duplicates
    assert duplicates["ids"] == sorted(set(range(300)) - set(kept))


def test_equal_keys_of_different_problems_are_no_duplicates():
    expected = sorted(set(range(TINY_MAZES.n)) - set(brute_force_kept(TINY_MAZES)))
    weak = duplicate_ids(TINY_MAZES, lambda unit: UnitKeys.of(np.zeros(len(TINY_MAZES.unit_ids(unit)), np.uint64)))
    assert weak.tolist() == expected
    keys = [
        UnitKeys.of(TINY_MAZES.block(ids.start, ids.stop).keys)
        for ids in map(TINY_MAZES.unit_ids, range(TINY_MAZES.units))
    ]
    assert duplicate_ids(TINY_MAZES, keys.__getitem__, slice_keys=400).tolist() == expected


def test_problem_bytes_keep_trailing_zeros():
    traced = generate_mazes(MazeSettings(size=3), 0, 0, 2)
    mazes = traced.mazes
    mazes.openings[1], mazes.start[1] = mazes.openings[0], mazes.start[0]
    mazes.goal[0], mazes.goal[1] = 0, 1
    assert len(np.unique(problem_bytes(MazeTask().problems(traced)))) == 2


def test_no_fingerprint_in_two_splits(tmp_path):
    dataset = open_dataset(make(TINY_MAZES, tmp_path / "d"))
    prints = [set(maze_fingerprint(dataset.read_split(split).mazes).tolist()) for split in SPLITS]
    assert all(prints)
    assert not prints[0] & prints[1] and not prints[0] & prints[2] and not prints[1] & prints[2]


def test_manifest_holds_no_time_and_no_place(tmp_path):
    make(SMALL, tmp_path / "d")
    manifest = Manifest.read(tmp_path / "d" / "manifest.json")
    assert manifest.settings == {"size": 5, "min_path": 7, "algorithm": "wilson"} | manifest.settings
    assert str(tmp_path) not in (tmp_path / "d" / "manifest.json").read_text()
    assert set(manifest.versions) == {"lol_data", "numpy", "numba", "pyarrow"}


@pytest.mark.parametrize(
    "change",
    [
        {"n": -1},
        {"seed": -1},
        {"shard_rows": 0},
        {"shard_rows": 2_000_000},
        {"n": 10**9, "shard_rows": 100},
        {"validation_share": -0.1},
        {"validation_share": 0.95},
        {"test_share": float("nan")},
    ],
)
def test_plans_that_cannot_be(change, tmp_path):
    with pytest.raises(UsageError):
        generate_dataset(replace(SMALL, **change), tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_progress_counts_every_row(tmp_path):
    calls = []
    generate_dataset(SMALL, tmp_path / "d", 2, lambda done, total: calls.append((done, total)))
    assert calls[-1] == (SMALL.n, SMALL.n)


def test_estimate_is_near(tmp_path):
    plan = replace(SMALL, n=20_000, shard_rows=20_000)
    estimate = estimate_dataset(plan, tmp_path / "d")
    manifest = generate_dataset(plan, tmp_path / "d").manifest
    assert estimate.files == 3 and estimate.rows == 20_000
    assert 0.8 < estimate.bytes / manifest.bytes < 1.25
    assert estimate.seconds > 0
    assert estimate.fits and estimate.free_bytes > 0
    assert estimate_dataset(replace(plan, n=0), tmp_path).bytes == 0
    part = estimate_dataset(replace(plan, shard_rows=5000), tmp_path, units=range(1, 3))
    assert part.rows == 10_000 and part.files == 6
