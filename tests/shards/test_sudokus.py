"""Sudokus through the same shard protocol: rows, bytes, splits, damage, stats, export."""

import json
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lol_data.errors import DamageError, UsageError
from lol_data.evaluators.sudoku_jsonl import check_lines
from lol_data.evaluators.sudoku_rules import canonical_sudoku_rows
from lol_data.generators.fingerprint import SPLITS
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.generators.sudoku_fingerprint import sudoku_fingerprint
from lol_data.shards.export import export_dataset
from lol_data.shards.export_lines import sudoku_prompts
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.shards.repair import repair_dataset
from lol_data.shards.stats import dataset_stats, stats_table
from lol_data.shards.sudoku_task import SudokuTask
from lol_data.shards.verify import verify_dataset
from lol_data.sudokus import SUDOKU_STRATEGIES, WAVE
from lol_data.tokenization.sudoku_text import parse_completions, parse_prompt
from lol_data.tokenization.tasks import token_lengths

from .common import flip_bit, make, published

PLAN = DatasetPlan(400, SudokuSettings(), 3, 150, 0.2, 0.1, "sudoku")
RULES = {"sudoku": canonical_sudoku_rows}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return make(PLAN, tmp_path_factory.mktemp("sudokus") / "d", 2)


@pytest.fixture
def out(pristine, tmp_path):
    shutil.copytree(pristine, tmp_path / "d")
    return tmp_path / "d"


def test_rows_are_those_of_the_generator(pristine):
    dataset = open_dataset(pristine, "sudoku")
    made = generate_sudokus(SudokuSettings(), 3, 0, 400)
    found = 0
    for split in SPLITS:
        rows = dataset.read_split(split)
        expected = made.take(rows.id.astype(np.int64))
        np.testing.assert_array_equal(rows.sudokus.puzzle, expected.sudokus.puzzle)
        np.testing.assert_array_equal(rows.sudokus.solution, expected.sudokus.solution)
        for name in SUDOKU_STRATEGIES:
            np.testing.assert_array_equal(rows.traces[name].values, expected.traces[name].values)
            np.testing.assert_array_equal(rows.traces[name].offsets, expected.traces[name].offsets)
        found += len(rows)
    assert found == 400
    assert len(dataset.read_split("test", 3, columns=("propagation",)).traces) == 1
    with pytest.raises(UsageError, match="choose from naked_single"):
        dataset.read_split("test", columns=("bfs",))


def test_bytes_do_not_depend_on_workers_ranges_or_order(pristine, tmp_path):
    reference = published(pristine)
    assert published(make(PLAN, tmp_path / "one", 1)) == reference
    for unit in (2, 0, 1):
        generate_dataset(PLAN, tmp_path / "parts", units=range(unit, unit + 1))
    assert published(tmp_path / "parts") == reference


def test_other_programs_read_it(pristine):
    frame = pl.scan_parquet(pristine / "data" / "train-*.parquet").collect()
    assert frame["puzzle"].str.len_chars().unique().to_list() == [81]
    row = frame.row(0, named=True)
    given = sum(character != "." for character in row["puzzle"])
    assert given == row["clues"] and set(row["solution"]) <= set("123456789")
    symbols = np.frombuffer(row["naked_single"], np.uint8).reshape(-1, 2)
    filled = list(row["puzzle"])
    for cell, digit in symbols:
        filled[cell] = str(digit - 80)
    assert "".join(filled) == row["solution"]


def test_quick_and_deep_verify(out):
    assert verify_dataset(out, deep=True, rule_checks=RULES).ok
    shard = out / "data" / PLAN.file_names(1)["train"]
    flip_bit(shard, 12_345)
    report = verify_dataset(out)
    assert [(problem.path, problem.kind) for problem in report.problems] == [(f"data/{shard.name}", "damaged")]
    assert repair_dataset(report) == [f"data/{shard.name}"]
    assert verify_dataset(out).ok


def test_no_equivalent_solution_in_two_splits(pristine):
    dataset = open_dataset(pristine)
    prints = [set(sudoku_fingerprint(dataset.read_split(split).sudokus).tolist()) for split in SPLITS]
    assert all(prints) and not prints[0] & prints[1] and not prints[0] & prints[2] and not prints[1] & prints[2]


def test_tasks_do_not_mix(out):
    with pytest.raises(UsageError, match="is a sudoku data set, not maze"):
        open_dataset(out, "maze")
    with pytest.raises(DamageError, match="none that this version knows"):
        DatasetPlan.from_identity({**PLAN.identity(), "task": "chess"})
    assert DatasetPlan.from_identity(json.loads(json.dumps(PLAN.identity()))) == PLAN


def test_stats(pristine):
    stats = dataset_stats(open_dataset(pristine), workers=2)
    rows = [open_dataset(pristine).read_split(split) for split in SPLITS]
    clues = np.concatenate([part.sudokus.clues for part in rows])
    np.testing.assert_array_equal(stats.features["clues"].counts, np.bincount(clues))
    waves = [int((part.traces["propagation"][row] == WAVE).sum()) for part in rows for row in range(len(part))]
    np.testing.assert_array_equal(stats.features["waves"].counts, np.bincount(waves))
    assert stats.places["given"].sum() == clues.sum() and stats.places["given"].shape == (9, 9)
    for name, tokens in stats.tokens.items():
        lengths = [token_lengths(part, 8)[name] for part in rows]
        assert (tokens.quantile(0), tokens.quantile(100)) == (
            min(part["min"] for part in lengths),
            max(part["max"] for part in lengths),
        )
    assert stats.equivalence.across_splits == 0
    text = stats_table(stats)
    assert "400 sudokus with 30 to 36 clues" in text and "length in symbols" in text


def test_export_and_back(pristine, tmp_path):
    dataset = open_dataset(pristine)
    export_dataset(dataset, "jsonl", tmp_path / "x.jsonl", "test")
    verdicts = list(check_lines((tmp_path / "x.jsonl").read_bytes().splitlines()))
    assert len(verdicts) == 5 * dataset.rows("test") and all(verdict["joint"] for verdict in verdicts)
    assert [verdict["canonical"] for verdict in verdicts] == [True] * len(verdicts)
    rows = dataset.read_split("test")
    lines = [json.loads(line) for text in sudoku_prompts(rows).to_pylist() for line in text.splitlines()]
    parsed = parse_completions([line["completion"] for line in lines])
    for k, line in enumerate(lines):
        row, strategy = k // 5, SUDOKU_STRATEGIES[k % 5]
        assert line["id"] == rows.id[row] and line["strategy"] == strategy
        assert parse_prompt(line["prompt"])["strategy"] == strategy
        np.testing.assert_array_equal(parsed.traces[k], rows.traces[strategy][row])
        np.testing.assert_array_equal(parsed.answers[k], rows.sudokus.solution[row])
    export_dataset(dataset, "list", tmp_path / "lists")
    frame = pl.scan_parquet(tmp_path / "lists" / "train-*.parquet").collect()
    assert frame.schema["backtracking"] == pl.List(pl.UInt8) and frame.schema["puzzle"] == pl.String


def damages(table):
    """Rows that are no sudokus, each with words of the reason."""
    for column, change, words in (
        ("puzzle", lambda text: text[:-1], "81 characters"),
        ("puzzle", lambda text: "x" + text[1:], "other characters"),
        ("solution", lambda text: "." + text[1:], "other than digits"),
        ("clues", lambda clues: clues + 1, "number of digits"),
        ("naked_single", lambda trace: bytes([119]) + trace[1:], "beyond 118"),
    ):
        values = table[column].to_pylist()
        values[2] = change(values[2])
        position = table.schema.get_field_index(column)
        kind = table.schema.field(column)
        yield table.set_column(position, kind, pa.array(values, kind.type)), words
    swapped = "".join("2" if digit == "1" else "1" if digit == "2" else digit for digit in table["puzzle"][2].as_py())
    puzzles = [swapped if row == 2 else text for row, text in enumerate(table["puzzle"].to_pylist())]
    yield table.set_column(1, table.schema.field("puzzle"), pa.array(puzzles)), "a digit"


def test_rows_that_are_no_sudokus_are_refused(pristine):
    task, table = SudokuTask(), pq.read_table(pristine / "data" / PLAN.file_names(0)["train"])
    assert task.check(table, SudokuSettings(), SUDOKU_STRATEGIES) is None
    assert "36 to 36" in task.check(table, SudokuSettings((36, 36)), SUDOKU_STRATEGIES)
    for changed, words in damages(table):
        assert words in task.check(changed, None, SUDOKU_STRATEGIES)


def test_a_wrong_row_is_named_by_the_deep_look(out):
    rows = generate_dataset(replace(PLAN, seed=4), out.parent / "other").manifest
    assert rows is not None and rows.content_hash != open_dataset(out).manifest.content_hash
    name = PLAN.file_names(0)["test"]
    shutil.copy(out.parent / "other" / "data" / name, out / "data" / name)
    assert [(p.path, p.kind) for p in verify_dataset(out).problems] == [(f"data/{name}", "foreign")]


def test_a_puzzle_with_several_solutions_is_not_sound(pristine):
    rows = open_dataset(pristine).read_split("test", 3)
    task = SudokuTask()
    assert task.sound(rows, SudokuSettings()).all()
    several = "92..8.65.6..2.43..3..5.9.72.7.953.......7.......6..5....142..3.....31..6.6.7..1.."
    rows.sudokus.puzzle[1] = [0 if character == "." else int(character) for character in several]
    rows.sudokus.solution[2, :2] = rows.sudokus.solution[2, 1::-1]
    assert task.sound(rows, SudokuSettings()).tolist() == [True, False, False]
