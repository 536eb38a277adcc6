"""The golden sample: rows may only change on purpose.

Run as a script, this file makes the sample where there is none (see datasets/README.md).
"""

import shutil
from pathlib import Path

import pytest

from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan, versions
from lol_data.shards.reader import open_dataset
from lol_data.shards.verify import verify_dataset

GOLDEN = Path(__file__).parents[2] / "datasets" / "golden" / "maze8"
PLAN = DatasetPlan(n=200, shard_rows=200, validation_share=0.1, test_share=0.1)
CONTENT_HASH = "33793c9c16ae85f6"


def published(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".work" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_golden_content():
    assert open_dataset(GOLDEN, "maze").manifest.content_hash == CONTENT_HASH
    assert verify_dataset(GOLDEN, deep=True).problems == []


def test_golden_is_made_again(tmp_path):
    manifest = generate_dataset(PLAN, tmp_path / "d").manifest
    assert manifest.content_hash == CONTENT_HASH
    if open_dataset(GOLDEN).manifest.versions != versions():
        pytest.skip("the bytes of a file depend on the versions of its writers, the rows do not")
    assert published(tmp_path / "d") == published(GOLDEN)


if __name__ == "__main__":
    print(generate_dataset(PLAN, GOLDEN).manifest.content_hash)
    shutil.rmtree(GOLDEN / ".work")
