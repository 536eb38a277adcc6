"""`verify` names every damage; `deep` finds rows that were wrong from the start."""

import random
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lol_data.errors import UsageError
from lol_data.shards.kernels import content_hash, row_hashes
from lol_data.shards.manifest import FileEntry, Manifest, file_sha256, totals
from lol_data.shards.schema import from_table
from lol_data.shards.verify import verify_dataset
from lol_data.shards.writer import ShardEncoder

from .common import SMALL, flip_bit, make


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return make(SMALL, tmp_path_factory.mktemp("verify") / "d")


@pytest.fixture
def out(pristine, tmp_path):
    shutil.copytree(pristine, tmp_path / "d")
    return tmp_path / "d"


def found(out, **options):
    return {(problem.path, problem.kind) for problem in verify_dataset(out, **options).problems}


def test_a_sound_set(out):
    report = verify_dataset(out, deep=True, rule_check=lambda rows: np.ones(len(rows), bool))
    assert report.ok and report.files == 9 and report.rows == SMALL.n
    shutil.rmtree(out / ".work")
    assert verify_dataset(out).ok


def test_every_flipped_bit_is_found(out):
    rng = random.Random(1)
    files = [*sorted((out / "data").iterdir()), out / "manifest.json"]
    for _ in range(60):
        path = rng.choice(files)
        bit = rng.randrange(8 * path.stat().st_size)
        flip_bit(path, bit)
        name = path.relative_to(out).as_posix()
        assert found(out) == {(name, "manifest" if name == "manifest.json" else "damaged")}
        flip_bit(path, bit)
    assert not found(out)


def test_missing_truncated_swapped_and_foreign(out, tmp_path):
    data = out / "data"
    names = sorted(path.name for path in data.iterdir())
    (data / names[0]).unlink()
    with open(data / names[3], "r+b") as file:
        file.truncate(700)
    (data / names[4]).rename(out / "x")
    (data / names[5]).rename(data / names[4])
    (out / "x").rename(data / names[5])
    other = make(replace(SMALL, seed=9), tmp_path / "other")
    shutil.copy(other / "data" / names[7], data / names[7])
    (data / "train-stray.parquet").write_bytes(b"stray")
    expected = {(names[0], "missing"), (names[3], "damaged"), (names[4], "swapped"), (names[5], "swapped")}
    expected |= {(names[7], "foreign"), ("train-stray.parquet", "foreign")}
    assert found(out) == {(f"data/{name}", kind) for name, kind in expected}
    assert {path for path, _ in found(out, deep=True)} == {f"data/{name}" for name, _ in expected}


def test_manifest_missing_unfinished_or_no_data_set(out, tmp_path):
    (out / "manifest.json").unlink()
    assert "not finished" in verify_dataset(out).problems[0].detail
    shutil.rmtree(out / ".work")
    assert found(out) == {("manifest.json", "missing")}
    for nothing in (tmp_path / "absent", tmp_path):
        with pytest.raises(UsageError):
            verify_dataset(nothing)


def rewrite(out, change):
    """Put changed rows in the first train file, with a manifest that agrees: what only a deep look can find."""
    manifest = Manifest.read(out / "manifest.json")
    files = list(manifest.files)
    index = next(index for index, entry in enumerate(files) if entry.split == "train")
    path = out / "data" / files[index].name
    table = change(pq.read_table(path))
    encoder = ShardEncoder()
    encoder.add(table.combine_chunks().to_batches()[0])
    path.write_bytes(encoder.finish())
    content = f"{content_hash(row_hashes(from_table(table, path))):016x}"
    files[index] = FileEntry(path.name, "train", len(table), path.stat().st_size, file_sha256(path), content)
    splits = {split: totals([entry for entry in files if entry.split == split]) for split in manifest.splits}
    whole = totals(files)
    dropped = {"dropped": SMALL.n - whole["rows"], "ids": list(range(SMALL.n - whole["rows"]))}
    shown = {name: whole[name] for name in ("rows", "bytes", "content_hash")}
    replace(manifest, files=files, splits=splits, duplicates=dropped, **shown).write(out / "manifest.json", out)
    return f"data/{path.name}"


def test_deep_finds_a_changed_row_and_names_it(out):
    def change(table):
        dfs = table["dfs"].to_pylist()
        dfs[17] = dfs[17][:-1]
        return table.set_column(table.schema.get_field_index("dfs"), table.schema.field("dfs"), pa.array(dfs))

    name = rewrite(out, change)
    assert verify_dataset(out).ok
    problem = verify_dataset(out, deep=True).problems[0]
    row = pq.read_table(out / name)["id"][17].as_py()
    assert problem.path == name and f"id {row}: column dfs" in problem.detail


def test_deep_finds_a_lost_row(out):
    rewrite(out, lambda table: pa.concat_tables([table.slice(0, 3), table.slice(4)]))
    assert verify_dataset(out).ok
    details = " ".join(str(problem) for problem in verify_dataset(out, deep=True).problems)
    assert "not there, and no duplicate" in details and "duplicates are wrong" in details


def test_deep_asks_the_rules(out):
    def rules(rows):
        return rows.mazes.id != 200

    problems = verify_dataset(out, deep=True, rule_check=rules).problems
    assert len(problems) == 1 and "id 200: the rules" in problems[0].detail and "-00001-" in problems[0].path
