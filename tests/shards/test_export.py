"""The three export forms: exact round trips, what may go wrong while writing, and that nothing is left then."""

import errno
import io
import json
import resource
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lol_data.errors import DamageError, LolDataError, RefusedError, UsageError
from lol_data.evaluators.maze_jsonl import check_lines
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import problem_record
from lol_data.shards import export
from lol_data.shards.export import FORMATS, export_dataset
from lol_data.shards.maze_task import MAZE_SCHEMA, MazeTask
from lol_data.shards.reader import open_dataset
from lol_data.tokenization.maze_text import parse_completions, parse_prompt

from .common import SMALL, flip_bit, make
from .test_rows import assert_same

LINES = ("jsonl", "text")
STRATEGIES = len(MAZE_STRATEGIES)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return open_dataset(make(SMALL, tmp_path_factory.mktemp("export") / "d"))


def lines_of(dataset, format, **options):
    sink = io.BytesIO()
    result = export_dataset(dataset, format, sink, **options)
    lines = sink.getvalue().splitlines()
    assert result.records == len(lines) == STRATEGIES * result.problems
    assert sink.getvalue() == b"".join(line + b"\n" for line in lines)
    return [json.loads(line) for line in lines]


def test_lists_are_the_same_rows(dataset, tmp_path):
    result = export_dataset(dataset, "list", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [e.name for e in dataset.manifest.files]
    assert result.records == result.problems == SMALL.n
    for split in dataset.splits:
        tables = []
        for path in sorted((tmp_path / "out").glob(f"{split}-*.parquet")):
            lists = pq.read_table(path)
            for field in MAZE_SCHEMA:
                found = lists.schema.field(field.name).type
                assert pa.types.is_list(found) == (field.type == pa.binary())
                assert (found.value_type if pa.types.is_list(found) else found) in (pa.uint8(), field.type)
            rows = {
                name: [bytes(row) if isinstance(row, list) else row for row in lists[name].to_pylist()]
                for name in lists.column_names
            }
            tables.append(pa.table(rows, schema=MAZE_SCHEMA))
        assert_same(MazeTask().from_tables(tables, dataset.settings, MAZE_STRATEGIES), dataset.read_split(split))


def test_polars_reads_lists(dataset, tmp_path):
    export_dataset(dataset, "list", tmp_path / "out", "train")
    frame = pl.scan_parquet(tmp_path / "out").collect()
    rows = dataset.read_split("train")
    assert frame.schema["bfs"] == pl.List(pl.UInt8)
    assert frame["bfs"].to_list() == [row.tolist() for row in rows.traces["bfs"]]


def test_lines_of_json_are_the_rows_and_the_checker_accepts_them(dataset):
    rows = dataset.read_split("validation")
    records = lines_of(dataset, "jsonl", split="validation")
    expected = [
        problem_record(rows.mazes, row)
        | {"strategy": name, "trace": rows.traces[name][row].tolist(), "answer": rows.answer[row].tolist()}
        for row in range(len(rows))
        for name in MAZE_STRATEGIES
    ]
    assert records == expected
    assert [list(record) for record in records] == [list(record) for record in expected]


def test_the_checker_accepts_every_line(dataset):
    sink = io.BytesIO()
    export_dataset(dataset, "jsonl", sink)
    verdicts = list(check_lines(sink.getvalue().splitlines()))
    assert len(verdicts) == STRATEGIES * SMALL.n
    assert all(verdict["joint"] and verdict["canonical"] for verdict in verdicts)


def test_text_gives_the_rows_back(dataset):
    rows = dataset.read_split("validation")
    records = lines_of(dataset, "text", split="validation")
    assert [list(record) for record in records] == [["id", "strategy", "prompt", "completion"]] * len(records)
    parsed = parse_completions([record["completion"] for record in records], 5)
    assert not parsed.reason.any()
    for k, record in enumerate(records):
        row, strategy = k // STRATEGIES, MAZE_STRATEGIES[k % STRATEGIES]
        problem = problem_record(rows.mazes, row)
        assert (record["id"], record["strategy"]) == (problem.pop("id"), strategy)
        assert parse_prompt(record["prompt"]) == problem | {"strategy": strategy}
        assert np.array_equal(parsed.traces[k], rows.traces[strategy][row])
        assert np.array_equal(parsed.answers[k], rows.answer[row])


def test_many_batches_in_one_file(tmp_path):
    dataset = open_dataset(make(replace(SMALL, n=3000, shard_rows=3000), tmp_path / "d"))
    for format in LINES:
        ids = [record["id"] for record in lines_of(dataset, format, split="train")]
        assert ids == np.repeat(dataset.read_split("train").mazes.id, STRATEGIES).tolist()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("split", [None, "test"])
@pytest.mark.parametrize("limit", [0, 1, 130, 10_000])
def test_split_and_limit(dataset, format, split, limit, tmp_path):
    splits = dataset.splits if split is None else [split]
    expected = np.concatenate([dataset.read_split(name).mazes.id for name in splits])[:limit].tolist()
    if format == "list":
        result = export_dataset(dataset, format, tmp_path / "out", split, limit)
        files = [path for name in splits for path in sorted((tmp_path / "out").glob(f"{name}-*"))]
        assert len(files) == len(list((tmp_path / "out").iterdir()))
        ids = [id for path in files for id in pq.read_table(path)["id"].to_pylist()]
        assert result.records == len(ids)
    else:
        ids = [record["id"] for record in lines_of(dataset, format, split=split, limit=limit)][::STRATEGIES]
    assert ids == expected


@pytest.mark.parametrize("format", LINES)
def test_a_file_holds_what_a_stream_gets(dataset, format, tmp_path):
    sink = io.BytesIO()
    export_dataset(dataset, format, sink)
    export_dataset(dataset, format, str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == sink.getvalue()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_data_set_without_rows(format, tmp_path):
    dataset = open_dataset(make(replace(SMALL, n=0), tmp_path / "d"))
    assert export_dataset(dataset, format, tmp_path / "out").records == 0
    files = list((tmp_path / "out").iterdir()) if format == "list" else [tmp_path / "out"]
    assert len(files) == (3 if format == "list" else 1)
    assert format == "list" or files[0].read_bytes() == b""


@pytest.mark.parametrize("format", FORMATS)
def test_progress_counts_every_row(dataset, format, tmp_path):
    calls = []
    export_dataset(dataset, format, tmp_path / "out", progress=lambda done, total: calls.append((done, total)))
    assert calls[0] == (0, SMALL.n) and calls[-1] == (SMALL.n, SMALL.n) and calls == sorted(calls)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_there_is_never_overwritten(dataset, format, tmp_path):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        with pytest.raises(RefusedError, match=f"{name}: is there already"):
            export_dataset(dataset, format, tmp_path / name)
    assert (tmp_path / "file").read_text() == "precious"
    assert not list((tmp_path / "folder").iterdir()) and len(list(tmp_path.iterdir())) == 3


def test_requests_that_make_no_sense(dataset, tmp_path):
    for bad in (
        lambda: export_dataset(dataset, "csv", tmp_path / "out"),
        lambda: export_dataset(dataset, "jsonl", tmp_path / "out", split="dev"),
        lambda: export_dataset(dataset, "jsonl", tmp_path / "out", limit=-1),
        lambda: export_dataset(dataset, "jsonl", tmp_path / "absent" / "out"),
        lambda: export_dataset(dataset, "list", io.BytesIO()),
        lambda: export_dataset(dataset, "list", dataset.path / "data" / "out"),
        lambda: export_dataset(dataset, "jsonl", dataset.path / "data" / "out"),
    ):
        with pytest.raises(UsageError) as caught:
            bad()
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(LolDataError, match="name too long"):
        export_dataset(dataset, "jsonl", tmp_path / ("x" * 300))


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_nothing(dataset, format, tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limit[1]))
    try:
        with pytest.raises(LolDataError, match=r"out: cannot be written: .*nothing half-written"):
            export_dataset(dataset, format, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not list(tmp_path.iterdir())
    export_dataset(dataset, format, tmp_path / "out")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_any_failing_write_leaves_nothing_or_all(dataset, format, call, tmp_path, monkeypatch):
    export_dataset(dataset, format, tmp_path / "whole")
    real, failures = getattr(export.os, call), 0
    for fail_at in range(1, 50):
        target, calls = tmp_path / str(fail_at), iter(range(1, 1000))

        def failing(*args, fail_at=fail_at, calls=calls):
            if next(calls) == fail_at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args)

        before = set(tmp_path.iterdir())
        monkeypatch.setattr(export.os, call, failing)
        try:
            export_dataset(dataset, format, target)
        except LolDataError as error:
            assert "No space left" in str(error) and str(target) in str(error)
            failures += 1
        else:
            break
        finally:
            monkeypatch.setattr(export.os, call, real)
        # Behind the replace only the folder's own fsync is left to fail; what has the name is whole.
        left = set(tmp_path.iterdir()) - before
        assert left <= {target}
        if left:
            assert whole(target) == whole(tmp_path / "whole")
    assert failures >= (1 if call == "replace" else 2)
    assert whole(target) == whole(tmp_path / "whole")


def whole(path):
    if path.is_dir():
        return {item.name: item.read_bytes() for item in path.iterdir()}
    return path.read_bytes()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_an_interrupt_leaves_nothing(dataset, format, stop, tmp_path):
    def progress(done, total):
        if done:
            raise stop

    with pytest.raises(stop):
        export_dataset(dataset, format, tmp_path / "out", progress=progress)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_damage_is_raised_and_nothing_is_left(format, tmp_path):
    dataset = open_dataset(make(SMALL, tmp_path / "d"))
    path = tmp_path / "d" / "data" / "train-00001-of-00003.parquet"
    flip_bit(path, 9001)
    with pytest.raises(DamageError, match="train-00001"):
        export_dataset(dataset, format, tmp_path / "out")
    assert [item.name for item in tmp_path.iterdir()] == ["d"]


def test_a_stream_that_fails(dataset):
    class Sink(io.BytesIO):
        def __init__(self, error):
            super().__init__()
            self.error = error

        def write(self, data):
            raise self.error

    with pytest.raises(LolDataError, match="No space left"):
        export_dataset(dataset, "jsonl", Sink(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(BrokenPipeError):
        export_dataset(dataset, "text", Sink(BrokenPipeError()))
