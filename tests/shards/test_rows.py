"""Schema, content hash and bitmaps: the way of a row to disk and back."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lol_data.errors import DamageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.shards import kernels
from lol_data.shards.kernels import content_hash
from lol_data.shards.maze_task import MAZE_SCHEMA, MazeTask
from lol_data.shards.task import check_rows
from lol_data.shards.writer import ShardEncoder

TASK = MazeTask()
to_batch = TASK.to_batch


def row_hashes(traced):
    return kernels.row_hashes(traced.id, TASK.columns(traced))


def equal_orders(traced, keep):
    return kernels.equal_orders(TASK.orders(traced), keep)


def from_table(table, path):
    check_rows(TASK, table, path, None, MAZE_STRATEGIES)
    return TASK.from_tables([table], MazeSettings(int(table["size"][0].as_py()) if len(table) else 3), MAZE_STRATEGIES)


def from_tables(tables, size):
    return TASK.from_tables(tables, MazeSettings(size), MAZE_STRATEGIES)


def assert_same(one, two):
    assert one.mazes.size == two.mazes.size
    for name in ("id", "openings", "start", "goal"):
        np.testing.assert_array_equal(getattr(one.mazes, name), getattr(two.mazes, name))
    assert one.traces.keys() == two.traces.keys()
    for a, b in [(one.answer, two.answer), *((one.traces[name], two.traces[name]) for name in one.traces)]:
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.offsets, b.offsets)


@pytest.fixture(scope="module", params=[5, 8, 15])
def traced(request):
    return generate_mazes(MazeSettings(size=request.param), 3, 100, 160)


def test_round_trip_through_arrow(traced):
    assert_same(from_table(pa.Table.from_batches([to_batch(traced)]), "x"), traced)


def test_round_trip_through_parquet_and_slices(traced, tmp_path):
    encoder = ShardEncoder(MAZE_SCHEMA)
    for begin in range(0, 60, 7):
        encoder.add(to_batch(traced).slice(begin, 7))
    (tmp_path / "x.parquet").write_bytes(encoder.finish())
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.schema.equals(MAZE_SCHEMA)
    assert_same(from_table(table, "x"), traced)
    assert_same(from_tables([table.slice(0, 11), table.slice(11, 0), table.slice(11)], traced.mazes.size), traced)
    rows = np.arange(20, 31)
    assert_same(from_table(table.slice(20, 11), "x"), traced.take(rows))


def test_no_rows():
    none = generate_mazes(MazeSettings(size=3), 0, 5, 5)
    assert len(from_table(pa.Table.from_batches([to_batch(none)]), "x")) == 0


def test_row_hashes_tell_every_single_change(traced):
    hashes = row_hashes(traced)
    assert len(np.unique(hashes)) == len(traced)
    for rows in (traced.mazes.openings, traced.mazes.start, traced.mazes.goal, traced.answer.values):
        before = rows.copy()
        rows.reshape(-1)[0] ^= 1
        changed = np.flatnonzero(row_hashes(traced) != hashes)
        rows[:] = before
        assert changed.tolist() == [0]
    for name in MAZE_STRATEGIES:
        values = traced.traces[name].values
        values[-1] ^= 64
        changed = np.flatnonzero(row_hashes(traced) != hashes)
        values[-1] ^= 64
        assert changed.tolist() == [len(traced) - 1]
    order = np.random.default_rng(0).permutation(len(traced))
    assert content_hash(row_hashes(traced.take(order))) == content_hash(hashes)


def test_equal_orders_counts_pairs(traced):
    keep = np.arange(len(traced)) % 3 != 0
    pairs = [(a, b) for i, a in enumerate(MAZE_STRATEGIES) for b in MAZE_STRATEGIES[i + 1 :]]

    def visits(name, row):
        return list(dict.fromkeys(traced.traces[name][row].tolist()))

    expected = [sum(bool(keep[row]) and visits(a, row) == visits(b, row) for row in range(60)) for a, b in pairs]
    assert equal_orders(traced, keep).tolist() == expected
    same = traced.traces | {"dfs": traced.traces["bfs"]}
    assert equal_orders(type(traced)(traced.mazes, traced.answer, same), keep)[0] == keep.sum()


def damaged_tables(table):
    ids = table["id"].to_numpy().copy()
    ids[5] = ids[4]
    yield table.set_column(0, MAZE_SCHEMA.field("id"), pa.array(ids)), "rise"
    sizes = np.full(len(table), 5, np.uint8)
    sizes[7] = 6
    yield table.set_column(1, MAZE_SCHEMA.field("size"), pa.array(sizes)), "one size"
    yield table.set_column(2, MAZE_SCHEMA.field("passages"), pa.array([b"\0" * 6] * len(table))), "bitmap"
    yield table.set_column(3, MAZE_SCHEMA.field("start"), pa.array(np.full(len(table), 25, np.uint8))), "start"
    yield table.set_column(6, MAZE_SCHEMA.field("bfs"), pa.array([b"\xff"] * len(table))), "bfs"
    yield table.set_column(6, pa.field("bfs", pa.binary()), pa.array([None] * len(table), pa.binary())), "nulls"
    yield table.drop_columns(["dfs"]), "dfs is missing"
    yield table.set_column(6, "bfs", pa.array(["x"] * len(table))), "not binary"


def test_rows_that_are_no_mazes_are_named_with_their_path():
    traced = generate_mazes(MazeSettings(size=5), 0, 0, 20)
    for table, words in damaged_tables(pa.Table.from_batches([to_batch(traced)])):
        with pytest.raises(DamageError, match=rf"^some/path: .*{words}"):
            from_table(table, "some/path")


def test_a_maze_with_a_loop_is_sound_only_where_loops_are_asked_for():
    looped = generate_mazes(MazeSettings(5, loops=0.5), 0, 0, 20)
    assert TASK.sound(looped, MazeSettings(5, loops=0.5)).all()
    passages = (looped.mazes.openings & 2 > 0).sum(1) + (looped.mazes.openings & 4 > 0).sum(1)
    assert TASK.sound(looped, MazeSettings(5)).tolist() == (passages == 24).tolist()
    assert TASK.sound(generate_mazes(MazeSettings(5), 0, 0, 20), MazeSettings(5)).all()
