"""`repair` puts back the very bytes that were lost, and touches nothing else."""

import os
import random
import shutil
from dataclasses import replace

import pytest

from lol_data.errors import DamageError, RefusedError
from lol_data.shards import plan
from lol_data.shards.generate import generate_dataset
from lol_data.shards.lock import units_lock
from lol_data.shards.repair import repair_dataset
from lol_data.shards.verify import verify_dataset

from .common import TINY_MAZES, flip_bit, make, published


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    out = make(TINY_MAZES, tmp_path_factory.mktemp("repair") / "d")
    return out, published(out)


@pytest.fixture
def out(pristine, tmp_path):
    shutil.copytree(pristine[0], tmp_path / "d")
    return tmp_path / "d"


def repair(out):
    return repair_dataset(verify_dataset(out))


def damage(out):
    """Missing, truncated, flipped, swapped and foreign shards; their names."""
    names = sorted(path.name for path in (out / "data").iterdir())
    data = out / "data"
    (data / names[0]).unlink()
    os.truncate(data / names[2], 100)
    flip_bit(data / names[5], 999)
    (data / names[7]).rename(out / "x")
    (data / names[8]).rename(data / names[7])
    (out / "x").rename(data / names[8])
    other = make(replace(TINY_MAZES, seed=5), out.parent / "other")
    shutil.copy(other / "data" / names[10], data / names[10])
    return [f"data/{names[index]}" for index in (0, 2, 5, 7, 8, 10)]


@pytest.mark.parametrize("work", ["kept", "deleted"])
@pytest.mark.parametrize("listed", [True, False])
def test_exactly_the_damaged_shards_are_made_again(out, pristine, monkeypatch, work, listed):
    if work == "deleted":
        shutil.rmtree(out / ".work")
    reference = pristine[1]
    if not listed:  # as in a set with more duplicates than a manifest lists
        shutil.rmtree(out)
        for module in ("generate", "deep"):
            monkeypatch.setattr(f"lol_data.shards.{module}.LISTED_DUPLICATES", 10)
        reference = published(make(TINY_MAZES, out))
    before = {path.name: path.stat().st_mtime_ns for path in (out / "data").iterdir()}
    harmed = damage(out)
    assert repair(out) == harmed
    after = {path.name: path.stat().st_mtime_ns for path in (out / "data").iterdir()}
    untouched = {name for name in before if f"data/{name}" not in harmed}
    assert all(after[name] == before[name] for name in untouched)
    assert published(out) == reference
    assert repair(out) == []


def test_any_single_bit_is_mended(out, pristine):
    rng = random.Random(2)
    files = sorted((out / "data").iterdir())
    for _ in range(25):
        path = rng.choice(files)
        flip_bit(path, rng.randrange(8 * path.stat().st_size))
        assert repair(out) == [f"data/{path.name}"]
        assert published(out) == pristine[1]


@pytest.mark.parametrize("harm", ["flipped", "gone"])
def test_a_lost_manifest_is_signed_again(out, pristine, harm):
    if harm == "gone":
        (out / "manifest.json").unlink()
    else:
        flip_bit(out / "manifest.json", 4321)
    (out / "data" / TINY_MAZES.file_names(2)["train"]).unlink()
    assert repair(out) == ["manifest.json"]
    assert published(out) == pristine[1]


def test_without_manifest_and_plan_nothing_can_be_known(out):
    shutil.rmtree(out / ".work")
    flip_bit(out / "manifest.json", 4321)
    with pytest.raises(DamageError, match="make the data set again with the command that made it"):
        repair(out)


def test_strange_files_stay(out):
    (out / "data" / "mine.parquet").write_bytes(b"mine")
    assert repair(out) == []
    assert (out / "data" / "mine.parquet").read_bytes() == b"mine"
    assert not verify_dataset(out).ok


def test_other_versions_refuse_to_put_back_other_bytes(out, monkeypatch):
    (out / "data" / TINY_MAZES.file_names(0)["train"]).unlink()
    monkeypatch.setattr(plan, "versions", lambda: {"lol_data": "9"})
    with pytest.raises(RefusedError, match=r"versions\.lol_data: .* -> 9"):
        repair(out)


def test_one_writer_at_a_time(out):
    (out / "data" / TINY_MAZES.file_names(0)["train"]).unlink()
    with units_lock(out / ".work" / "writers", range(4, 5)), pytest.raises(RefusedError, match="is writing here"):
        repair(out)
    assert generate_dataset(TINY_MAZES, out).status == "made"
