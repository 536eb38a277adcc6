"""A disk that is really full: a small file system in memory."""

import subprocess
from pathlib import Path

import pytest

from lol_data.errors import LolDataError
from lol_data.generators.maze import MazeSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan

from .common import make, published

PLAN = DatasetPlan(n=20_000, settings=MazeSettings(size=8), shard_rows=2_000, validation_share=0.1)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB; PLAN needs 3.7 MB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not allowed here")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_full_disk_leaves_no_stub_and_resumes(tmp_path, small_disk):
    reference = published(make(PLAN, tmp_path / "reference"))
    out = small_disk / "d"
    with pytest.raises(LolDataError, match=r"No space left.* needs [\d,]+ bytes, [\d,]+ are free") as caught:
        generate_dataset(PLAN, out, 2)
    assert "\n" not in str(caught.value) and str(out) in str(caught.value) and caught.value.exit_code == 1
    found = published(out)
    assert found and all(found[name] == reference[name] for name in found)
    assert not list((out / ".work" / "tmp").iterdir())
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    result = generate_dataset(PLAN, out, 2)
    assert result.units_kept > 0 and published(out) == reference


def test_a_disk_that_is_full_from_the_start(small_disk):
    filler = Path(small_disk / "filler")
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    with pytest.raises(LolDataError, match="No space left"):
        generate_dataset(PLAN, small_disk / "d")
    filler.unlink()
    assert generate_dataset(DatasetPlan(n=100), small_disk / "e").status == "made"
