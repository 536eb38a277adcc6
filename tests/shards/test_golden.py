"""The golden samples: rows may only change on purpose.

Run as a script, this file makes the samples that are not there (see datasets/README.md).
"""

import shutil
from pathlib import Path

import pytest

from lol_data.evaluators.maze_rules import canonical_rows
from lol_data.evaluators.sudoku_rules import canonical_sudoku_rows
from lol_data.generators.sudoku import SudokuSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan, versions
from lol_data.shards.reader import open_dataset
from lol_data.shards.verify import verify_dataset

GOLDEN = Path(__file__).parents[2] / "datasets" / "golden"
COMMON = {"n": 200, "shard_rows": 200, "validation_share": 0.1, "test_share": 0.1}
PLANS = {
    "maze8": DatasetPlan(**COMMON),
    "sudoku": DatasetPlan(**COMMON, settings=SudokuSettings(), task_name="sudoku"),
}
CONTENT_HASHES = {"maze8": "33793c9c16ae85f6", "sudoku": "abce5981af60c57a"}
RULES = {"maze": canonical_rows, "sudoku": canonical_sudoku_rows}


def published(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".work" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", PLANS)
def test_golden_content(name):
    assert open_dataset(GOLDEN / name, PLANS[name].task_name).manifest.content_hash == CONTENT_HASHES[name]
    assert verify_dataset(GOLDEN / name, deep=True, rule_checks=RULES).problems == []


@pytest.mark.parametrize("name", PLANS)
def test_golden_is_made_again(name, tmp_path):
    manifest = generate_dataset(PLANS[name], tmp_path / "d").manifest
    assert manifest.content_hash == CONTENT_HASHES[name]
    if open_dataset(GOLDEN / name).manifest.versions != versions():
        pytest.skip("the bytes of a file depend on the versions of its writers, the rows do not")
    assert published(tmp_path / "d") == published(GOLDEN / name)


if __name__ == "__main__":
    for name, plan in PLANS.items():
        print(name, generate_dataset(plan, GOLDEN / name).manifest.content_hash)
        shutil.rmtree(GOLDEN / name / ".work", ignore_errors=True)
