"""The report on other people's outputs: counts, the lines that are kept, and a page that a line cannot break."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from lol_data.cli import app
from lol_data.evaluators import maze_jsonl, sudoku_jsonl
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.jsonl import to_line
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import problem_record
from lol_data.report.line_tally import ERRORS, Tally
from lol_data.report.lines import lines_page
from lol_data.report.samples import BEST, WORST
from lol_data.sudokus import SUDOKU_STRATEGIES
from lol_data.sudokus_jsonl import grid_text, steps_of

EVIL = "</script><img src=x onerror=alert(1)>"


def maze_records(count):
    """Outputs on mazes of two sizes, one in three spoilt in some way."""
    sets = [generate_mazes(MazeSettings(size=size), 0, 0, 20) for size in (4, 6)]
    for k in range(count):
        traced, row, strategy = sets[k % 2], k // 2 % 20, MAZE_STRATEGIES[k % 5]
        trace, answer = traced.traces[strategy][row].tolist(), traced.answer[row].tolist()
        record = problem_record(traced.mazes, row) | {"id": EVIL if k % 11 == 0 else k, "strategy": strategy}
        if k % 3 == 1:
            spoilt = (trace[::-1], trace[:2], [*trace, 999], [])[k % 4]
            record |= {"trace": spoilt, "answer": answer[:-1] if k % 2 else answer}
        else:
            record |= {"trace": trace, "answer": answer}
        yield record


def sudoku_records(count):
    traced = generate_sudokus(SudokuSettings(), 0, 0, 5)
    for k in range(count):
        row, strategy = k % 5, SUDOKU_STRATEGIES[k % 5 - k // 5 % 5]
        steps = steps_of(strategy, traced.traces[strategy][row])
        yield {
            "puzzle": grid_text(traced.sudokus.puzzle[row]),
            "strategy": strategy,
            "steps": steps[1:] if k % 2 else steps,
            "answer": EVIL if k % 7 == 3 else grid_text(traced.sudokus.solution[row]),
        }


def tally_of(check_lines, lines, *sizes):
    """The tally of lines that are judged in groups of the given sizes."""
    total, begin = Tally(), 0
    for size in (*sizes, len(lines)):
        group = lines[begin : begin + size]
        total.add(Tally.of(list(check_lines(group, begin + 1)), group, begin + 1))
        begin += len(group)
    return total


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_groups_do_not_matter_and_the_rates_are_those_of_the_lines():
    lines = [to_line(record).encode() for record in maze_records(300)]
    lines[7] = b"no json"
    whole, parts = tally_of(maze_jsonl.check_lines, lines), tally_of(maze_jsonl.check_lines, lines, 1, 50, 100)
    assert whole == parts and whole.errors == 1 and whole.named == [(8, "not JSON: Expecting value at character 0")]
    summary = whole.summary(MAZE_STRATEGIES)
    records = [record for record in maze_jsonl.check_lines(lines) if "error" not in record]
    assert summary["n"] == len(records) == 299 and summary["errors"] == 1
    fields = {"adherence": "adherent", "legality": "legal", "answer": "answer_correct", "joint": "joint"}
    for name, group in [(name, [r for r in records if r["strategy"] == name]) for name in MAZE_STRATEGIES]:
        found = summary["strategies"][name]
        assert found["n"] == len(group)
        for rate, verdict in fields.items():
            assert found[rate]["rate"] == pytest.approx(np.mean([record[verdict] for record in group]))
        row = summary["confusion"][name]
        assert row["none"] == sum(not record["identified"] for record in group)
        assert row["ambiguous"] == sum(len(record["identified"]) > 1 for record in group)
    assert 0 < summary["overall"]["joint"]["rate"] < 1


def test_the_worst_lines_are_kept_and_no_more():
    lines = [to_line(record).encode() for record in maze_records(600)]
    tally = tally_of(maze_jsonl.check_lines, lines, 200, 200)
    records = {record["line"]: record for record in maze_jsonl.check_lines(lines)}
    faults = ("parsed", "adherent", "legal", "complete", "answer_correct")
    for name in MAZE_STRATEGIES:
        failed = {n: sum(not r[f] for f in faults) for n, r in records.items() if r["strategy"] == name}
        kept = [one.record["line"] for one in tally.kept[name, True]]
        assert len(kept) == WORST
        assert sorted((failed[n] for n in kept), reverse=True) == sorted(failed.values(), reverse=True)[:WORST]
        assert [one.record["line"] for one in tally.kept[name, False]] == [n for n in failed if not failed[n]][:BEST]
    assert all(one.line == lines[one.record["line"] - 1] for one in tally.browser_lines())


def test_what_a_tally_holds_is_bounded():
    long = {**next(iter(maze_records(1))), "id": "x" * (1 << 17)}
    lines = [b"{"] * 500 + [to_line(long).encode()]
    tally = tally_of(maze_jsonl.check_lines, lines)
    assert len(tally.named) == ERRORS and tally.errors == 500
    assert sum(tally.counts.values()) == 1 and tally.browser_lines() == []


@pytest.mark.parametrize("task", ["maze", "sudoku"])
def test_the_page(task):
    records = list(maze_records(100)) if task == "maze" else list(sudoku_records(60))
    lines = [b"\xef\xbb\xbf" + to_line(records[0]).encode(), *(to_line(record).encode() for record in records[1:])]
    lines.append(to_line({"id": EVIL}).encode())
    check_lines = {"maze": maze_jsonl, "sudoku": sudoku_jsonl}[task].check_lines
    page = lines_page(tally_of(check_lines, lines), task, EVIL)
    assert "<img" not in page and len(page.encode()) < 1_500_000
    assert "is missing" in page  # the error of the last line
    data = data_of(page)
    ranks = [(-sample["faults"], sample["first"] if sample["first"] >= 0 else 1 << 40) for sample in data["samples"]]
    assert ranks == sorted(ranks) and {sample["board"] for sample in data["samples"]} == set(data["boards"])
    for sample in data["samples"]:
        board, record = data["boards"][sample["board"]], records[int(sample["board"]) - 1]
        assert sample["asked"] == record["strategy"]
        assert board["columns"] == record.get("size", 9)
        if sample["answer_correct"]:
            assert sample["answer"] == board["right"]
        if task == "maze":
            assert sample["steps"] == [cell if cell < 225 else -1 for cell in record["trace"]]
        else:
            assert sample["id"] == f"line {sample['board']}"
    assert any(sample["joint"] for sample in data["samples"])


def test_problems_without_a_solution_are_counted_and_not_drawn():
    maze = {"size": 3, "edges": [[0, 1]], "start": 0, "goal": 8, "strategy": "bfs", "trace": [0, 1], "answer": []}
    page = lines_page(tally_of(maze_jsonl.check_lines, [to_line(maze).encode()]), "maze", "x")
    assert data_of(page)["samples"] == [] and "Not drawn: 1 output on problems without a solution" in page
    two = "12" + "." * 79
    sudoku = {"puzzle": two, "strategy": "naked_single", "steps": [[2, 3]], "answer": "1" * 81}
    page = lines_page(tally_of(sudoku_jsonl.check_lines, [to_line(sudoku).encode()]), "sudoku", "x")
    assert len(data_of(page)["samples"]) == 1  # one of several solutions is as good as another


def test_no_line_at_all():
    assert "0 outputs under 5 strategies" in lines_page(Tally(), "maze", "empty.jsonl")


def test_by_command(tmp_path):
    lines, page = tmp_path / "outputs.jsonl", tmp_path / "page.html"
    lines.write_text("".join(to_line(record) + "\n" for record in maze_records(20)))
    plain = CliRunner().invoke(app, ["check", str(lines), "--workers", "1"])
    both = CliRunner().invoke(app, ["check", str(lines), "--report", str(page), "--workers", "1"])
    assert plain.exit_code == both.exit_code == 0 and both.stdout == plain.stdout
    assert "20 outputs under" in page.read_text()
    quiet = CliRunner().invoke(app, ["check", str(lines), "--report", str(page), "--workers", "1", "--quiet"])
    assert quiet.exit_code == 0 and quiet.stdout == ""
    for words, fault in (
        (["--quiet"], "--quiet without --report"),
        (["--report", str(tmp_path / "none" / "page.html")], "there is no folder"),
    ):
        refused = CliRunner().invoke(app, ["check", str(lines), *words])
        assert refused.exit_code != 0 and refused.stdout == ""
        assert fault in (refused.stderr or str(refused.exception))
