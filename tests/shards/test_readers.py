"""Our reader, and everybody else's on the directory as it is."""

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow.dataset as pads
import pytest

from lol_data.errors import DamageError, UsageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.generators.maze import generate_mazes
from lol_data.shards.reader import open_dataset

from .common import SMALL, flip_bit, make
from .test_rows import assert_same

PLANS = {
    "all splits": SMALL,
    "files without rows": replace(SMALL, n=40, shard_rows=4),
    "a split without rows": replace(SMALL, n=3),
    "no rows": replace(SMALL, n=0),
}


@pytest.fixture(scope="module", params=PLANS)
def out(request, tmp_path_factory):
    return make(PLANS[request.param], tmp_path_factory.mktemp("readers") / "d")


def test_read_split_gives_the_generated_rows(out):
    dataset = open_dataset(out, "maze")
    whole = generate_mazes(SMALL.settings, SMALL.seed, 0, dataset.manifest.n)
    for split in SPLITS:
        rows = dataset.read_split(split)
        assert_same(rows, whole.take(rows.mazes.id.astype(int)))
        assert np.all(np.diff(rows.mazes.id.astype(int)) > 0)
        for limit in (0, 1, 130, 10_000):
            few = dataset.read_split(split, limit=limit)
            assert_same(few, rows.take(np.arange(min(limit, len(rows)))))


def test_only_the_wanted_traces(out):
    rows = open_dataset(out).read_split("train", columns=["dfs", "astar"])
    assert list(rows.traces) == ["dfs", "astar"]
    rows.mazes.openings[:] = 0  # memory of its own
    rows.answer.values[:] = 0


def test_polars(out):
    manifest = open_dataset(out).manifest
    for split in SPLITS:
        frame = pl.scan_parquet(out / "data" / f"{split}-*.parquet").collect()
        assert len(frame) == manifest.splits[split]["rows"]
        assert frame.schema["bfs"] == pl.Binary and frame.schema["id"] == pl.UInt64
    assert len(pl.scan_parquet(out / "data").collect()) == manifest.rows


def test_pyarrow_dataset(out):
    dataset = pads.dataset(out / "data", format="parquet")
    assert dataset.count_rows() == len(dataset.to_table()) == open_dataset(out).manifest.rows


def test_hugging_face(out, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    manifest = open_dataset(out).manifest
    filled = {split: part["rows"] for split, part in manifest.splits.items() if part["rows"]}
    if not filled:
        pytest.skip("Hugging Face loads no data set without rows, whatever its form")
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == filled
    assert loaded["train"].features["bfs"].dtype == "binary"


def test_card_snippet_runs(out, monkeypatch):
    monkeypatch.chdir(out)
    if open_dataset(out).rows("train") == 0:
        pytest.skip("the snippet shows a row")
    code = (out / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(code, names)
    rows = open_dataset(out).read_split("train")
    np.testing.assert_array_equal(names["cells"], rows.traces["bfs"][0])
    np.testing.assert_array_equal(names["east"], (rows.mazes.openings[0] & 2) != 0)
    np.testing.assert_array_equal(names["south"], (rows.mazes.openings[0] & 4) != 0)


def test_requests_that_make_no_sense(tmp_path):
    out = make(SMALL, tmp_path / "d")
    for bad in (
        lambda: open_dataset(tmp_path / "absent"),
        lambda: open_dataset(tmp_path),
        lambda: open_dataset(out, expect_task="sudoku"),
        lambda: open_dataset(out).read_split("dev"),
        lambda: open_dataset(out).read_split("train", columns=["idastar"]),
        lambda: open_dataset(out).read_split("train", limit=-1),
    ):
        with pytest.raises(UsageError) as caught:
            bad()
        assert "\n" not in str(caught.value)
    (out / "manifest.json").unlink()
    with pytest.raises(UsageError, match="not finished"):
        open_dataset(out)


def test_damage_is_raised_not_read(tmp_path):
    out = make(SMALL, tmp_path / "d")
    dataset, path = open_dataset(out), out / "data" / "train-00001-of-00003.parquet"
    whole = path.read_bytes()
    for bit in range(100, 8 * (len(whole) - 3000), 4099):  # pages, not the footer
        flip_bit(path, bit)
        before = dataset.read_split("test")
        try:
            rows = dataset.read_split("train")
        except DamageError as error:
            assert str(path) in str(error)
        else:  # a bit that changes nothing
            path.write_bytes(whole)
            assert_same(rows, dataset.read_split("train"))
        assert len(before)
        path.write_bytes(whole)
    path.unlink()
    with pytest.raises(DamageError, match="missing"):
        dataset.read_split("train")
