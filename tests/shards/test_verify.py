"""`verify` names every damage; `deep` finds rows that were wrong from the start."""

import random
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import DamageError, UsageError
from lol_data.evaluators.maze_rules import canonical_rows
from lol_data.generators.fingerprint import SPLITS
from lol_data.generators.maze import generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.shards.manifest import Manifest, file_sha256, totals
from lol_data.shards.maze_task import MAZE_SCHEMA, MazeTask
from lol_data.shards.plan import BLOCK
from lol_data.shards.verify import verify_dataset
from lol_data.shards.writer import ShardEncoder

from .common import SMALL, TINY_MAZES, flip_bit, hash_of, make


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
    report = verify_dataset(out, deep=True, rule_checks={"maze": lambda rows: np.ones(len(rows), bool)})
    assert report.ok and report.files == 9 and report.rows == SMALL.n
    shutil.rmtree(out / ".work")
    assert verify_dataset(out).ok


def test_every_flipped_bit_is_found(out):
    rng = random.Random(1)
    files = [*sorted((out / "data").iterdir()), out / "manifest.json"]
    touched = set()
    for _ in range(500):
        path = rng.choice(files)
        bit = rng.randrange(8 * path.stat().st_size)
        flip_bit(path, bit)
        name = path.relative_to(out).as_posix()
        touched.add(name)
        assert found(out) == {(name, "manifest" if name == "manifest.json" else "damaged")}
        flip_bit(path, bit)
    assert not found(out)
    assert len(touched) == 10


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


TRAIN = ("train-00000-of-00003.parquet", "train-00001-of-00003.parquet", "train-00002-of-00003.parquet")
VALIDATION = "validation-00000-of-00003.parquet"


def rewrite(out, changes):
    """Put changed rows in files, with a manifest that agrees: what only a deep look can find.

    changes: per file name, a function from the table of its rows to another.
    """
    manifest = Manifest.read(out / "manifest.json")
    files = list(manifest.files)
    for index, entry in enumerate(files):
        if entry.name in changes:
            path = out / "data" / entry.name
            table = changes[entry.name](pq.read_table(path))
            encoder = ShardEncoder(MAZE_SCHEMA)
            encoder.add(table.combine_chunks().to_batches()[0])
            path.write_bytes(encoder.finish())
            try:
                content = hash_of(path)
            except DamageError:
                content = entry.content_hash  # no mazes at all: nothing to hash
            files[index] = replace(
                entry, rows=len(table), bytes=path.stat().st_size, sha256=file_sha256(path), content_hash=content
            )
    sign(out, replace(manifest, files=files))
    assert verify_dataset(out).ok


def sign(out, manifest):
    """Write a manifest with totals that agree with its files."""
    splits = {split: totals([entry for entry in manifest.files if entry.split == split]) for split in manifest.splits}
    whole = totals(manifest.files)
    dropped = manifest.duplicates | {"dropped": manifest.n - whole["rows"]}
    shown = {name: whole[name] for name in ("rows", "bytes", "content_hash")}
    replace(manifest, splits=splits, duplicates=dropped, **shown).write(out / "manifest.json", out)


def problems(out, **options):
    return [str(problem) for problem in verify_dataset(out, deep=True, **options).problems]


def rows_of(out, name):
    return pq.read_table(out / "data" / name)


def with_value(table, column, row, change):
    """The table with one value of one column changed."""
    position = table.schema.get_field_index(column)
    values = table[column].to_pylist()
    values[row] = change(values[row])
    kind = table.schema.field(column)
    return table.set_column(position, kind, pa.array(values, kind.type))


def without(table, row):
    return pa.concat_tables([table.slice(0, row), table.slice(row + 1)])


def with_rows(table, rows):
    return pa.concat_tables([table, rows]).sort_by("id")


def other_cell(cells):
    return bytes([*cells[:-1], (cells[-1] + 1) % 25])


# SMALL is 5 x 5: bit 0 is the passage east of cell 0.
WRONG_VALUES = {
    "passages": lambda passages: bytes([passages[0] ^ 1, *passages[1:]]),
    "start": lambda cell: (cell + 1) % 25,
    "goal": lambda cell: (cell + 1) % 25,
    **dict.fromkeys(["answer", *MAZE_STRATEGIES], other_cell),
}


def test_every_column_has_a_wrong_value():
    assert {"id", "size", *WRONG_VALUES} == set(MAZE_SCHEMA.names)


@pytest.mark.parametrize("column", WRONG_VALUES)
def test_deep_finds_a_wrong_value_in_any_column_and_names_it(out, column):
    rewrite(out, {TRAIN[1]: lambda table: with_value(table, column, 17, WRONG_VALUES[column])})
    row = rows_of(out, TRAIN[1])["id"][17].as_py()
    place = f"data/{TRAIN[1]}: rows: id {row}"
    unsound = [f"{place}: is not a maze with the passages of a tree"] if column == "passages" else []
    wrong = [*unsound, f"{place}: column {column} is not what the settings derive"]
    assert problems(out, workers=1) == problems(out, workers=3) == wrong
    refused = f"{place}: the rules reject a trace or the answer"
    assert sorted(problems(out, rule_checks={"maze": canonical_rows})) == sorted([refused, *wrong])


def test_deep_finds_values_that_differ_in_length_only(out):
    rewrite(out, {TRAIN[0]: lambda table: with_value(table, "dfs", 3, lambda cells: cells[:-1])})
    row = rows_of(out, TRAIN[0])["id"][3].as_py()
    assert problems(out) == [f"data/{TRAIN[0]}: rows: id {row}: column dfs is not what the settings derive"]


def test_deep_looks_at_every_block_of_a_unit(tmp_path):
    plan = replace(TINY_MAZES, n=2 * BLOCK + 500, shard_rows=2 * BLOCK + 100)
    out = make(plan, tmp_path / "d", workers=2)
    assert not problems(out, rule_checks={"maze": canonical_rows}, workers=2)
    name = plan.file_names(0)["train"]
    rows = rows_of(out, name)
    last = len(rows) - 1
    assert rows["id"][last].as_py() >= 2 * BLOCK

    def change(table):
        return with_value(
            with_value(table, "bfs", last, lambda cells: cells[:-1]), "start", 0, lambda cell: (cell + 1) % 9
        )

    rewrite(out, {name: change})
    assert [problem for problem in problems(out) if "column" in problem] == [
        f"data/{name}: rows: id {rows['id'][0]}: column start is not what the settings derive",
        f"data/{name}: rows: id {rows['id'][last]}: column bfs is not what the settings derive",
    ]


def test_deep_counts_the_wrong_values_of_every_column(out):
    def change(table):
        for row in (5, 6, 60):
            table = with_value(table, "bfs", row, other_cell)
        return with_value(table, "answer", 6, other_cell)

    rewrite(out, {TRAIN[0]: change})
    ids = rows_of(out, TRAIN[0])["id"].to_pylist()
    assert problems(out) == [
        f"data/{TRAIN[0]}: rows: id {ids[6]}: column answer is not what the settings derive",
        f"data/{TRAIN[0]}: rows: id {ids[5]} and 2 more: column bfs is not what the settings derive",
    ]


def test_deep_finds_a_wrong_size(out):
    rewrite(out, {TRAIN[1]: lambda table: with_value(table, "size", 17, lambda size: size + 1)})
    assert len(problems(out)) == 1 and "not mazes of one size" in problems(out)[0] and TRAIN[1] in problems(out)[0]


def test_deep_finds_a_wrong_id(out):
    ids = rows_of(out, TRAIN[0])["id"].to_pylist()
    row = next(row for row in range(100) if ids[row + 1] > ids[row] + 1)
    rewrite(out, {TRAIN[0]: lambda table: with_value(table, "id", row, lambda id: id + 1)})
    found = problems(out)
    assert f"data/{TRAIN[0]}: rows: id {ids[row] + 1}: belongs in another split" in found
    assert f"data/*-00000-of-*: rows: id {ids[row]}: not there, and no duplicate" in found


def test_deep_finds_a_lost_row(out):
    lost = rows_of(out, TRAIN[0])["id"][3]
    rewrite(out, {TRAIN[0]: lambda table: without(table, 3)})
    assert problems(out) == [
        f"data/*-00000-of-*: rows: id {lost}: not there, and no duplicate",
        "manifest.json: manifest: its duplicates are wrong: there are 0",
    ]


def test_deep_finds_a_row_in_the_wrong_split(out):
    moved = rows_of(out, TRAIN[0]).slice(40, 1)
    rewrite(out, {TRAIN[0]: lambda table: without(table, 40), VALIDATION: lambda table: with_rows(table, moved)})
    assert problems(out, rule_checks={"maze": canonical_rows}) == [
        f"data/*-00000-of-*: rows: id {moved['id'][0]}: not there, and no duplicate",
        f"data/{VALIDATION}: rows: id {moved['id'][0]}: belongs in another split",
    ]


def test_deep_finds_a_row_that_was_moved_to_another_file(out):
    moved = rows_of(out, TRAIN[0]).slice(40, 1)
    rewrite(out, {TRAIN[0]: lambda table: without(table, 40), TRAIN[2]: lambda table: with_rows(table, moved)})
    assert problems(out, rule_checks={"maze": canonical_rows}) == [
        f"data/*-00000-of-*: rows: id {moved['id'][0]}: not there, and no duplicate",
        f"data/{TRAIN[2]}: rows: id {moved['id'][0]}: belongs in another file",
    ]


def test_deep_finds_added_rows(out):
    more = generate_mazes(SMALL.settings, SMALL.seed, SMALL.n, SMALL.n + 2)  # sound rows, but nobody asked for them
    rewrite(out, {TRAIN[2]: lambda table: with_rows(table, pa.Table.from_batches([MazeTask().to_batch(more)]))})
    assert problems(out, rule_checks={"maze": canonical_rows}) == [
        f"data/{TRAIN[2]}: rows: id {SMALL.n} and 1 more: belongs in another file",
        "manifest.json: manifest: its duplicates are wrong: there are 0",
    ]


def test_deep_finds_a_row_that_is_there_twice(out):
    rewrite(out, {TRAIN[0]: lambda table: with_rows(table, table.slice(9, 1))})
    assert f"data/{TRAIN[0]}: damaged" in problems(out)[0] and "the ids do not rise" in problems(out)[0]


def test_deep_finds_a_duplicate_that_was_not_dropped(tmp_path):
    plan = replace(TINY_MAZES, n=900, shard_rows=300)
    out = make(plan, tmp_path / "d")
    assert not problems(out, rule_checks={"maze": canonical_rows})
    dropped = Manifest.read(out / "manifest.json").duplicates["ids"]
    duplicate = next(id for id in dropped if id >= 300)
    block = plan.block(duplicate, duplicate + 1)
    name = plan.file_names(1)[SPLITS[block.splits[0]]]
    rewrite(out, {name: lambda table: with_rows(table, pa.Table.from_batches([MazeTask().to_batch(block.traced)]))})
    assert problems(out, rule_checks={"maze": canonical_rows}) == [
        f"data/*-00001-of-*: rows: id {duplicate}: there, though a duplicate of a lower id",
        f"manifest.json: manifest: its duplicates are wrong: there are {len(dropped):,}",
    ]


def test_deep_finds_wrong_figures_in_the_manifest(out):
    manifest = Manifest.read(out / "manifest.json")
    files = [replace(manifest.files[0], content_hash="0" * 16), *manifest.files[1:]]
    equal = manifest.equal_orders | {"bfs=dfs": 7}
    sign(out, replace(manifest, files=files, equal_orders=equal, duplicates={"dropped": 0, "ids": [5]}))
    assert verify_dataset(out).ok
    found = problems(out)
    assert len(found) == 3
    assert found[0] == f"data/{files[0].name}: rows: its content hash is not the one in the manifest"
    assert "its duplicates are wrong: there are 0" in found[1] and "counts of equal traces are wrong" in found[2]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_deep_finds_any_changed_cell(pristine, tmp_path_factory, data):
    out = tmp_path_factory.mktemp("cell") / "d"
    shutil.copytree(pristine, out)
    name = data.draw(st.sampled_from([*TRAIN, VALIDATION]))
    table = rows_of(out, name)
    row, column = data.draw(st.integers(0, len(table) - 1)), data.draw(st.sampled_from(("answer", *MAZE_STRATEGIES)))
    cells = bytearray(table[column][row].as_py())
    at = data.draw(st.integers(0, len(cells) - 1))
    cells[at] = (cells[at] + data.draw(st.integers(1, 24))) % 25
    rewrite(out, {name: lambda table: with_value(table, column, row, lambda value: bytes(cells))})
    id = table["id"][row]
    assert f"data/{name}: rows: id {id}: column {column} is not what the settings derive" in problems(out)


def test_deep_asks_the_rules(out):
    def rules(rows):
        return rows.mazes.id != 200

    found = problems(out, rule_checks={"maze": rules})
    assert len(found) == 1 and "id 200: the rules" in found[0] and "-00001-" in found[0]
