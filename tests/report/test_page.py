"""The page as a file: well formed, self-contained, escaped, the same bytes again; and what is refused, in one line."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lol_data.errors import DamageError, LolDataError, UsageError
from lol_data.generators.maze import MazeSettings
from lol_data.generators.sudoku import SudokuSettings
from lol_data.report import frame as frame_module
from lol_data.report.build import report_run
from lol_data.report.material import read_material, read_metrics
from lol_data.report.page import report_page
from lol_data.report.plots import learning_curve, svg_of

from ..evaluators.common import maze_model
from .common import add_diagnostics, make_data, make_run

pytest.importorskip("matplotlib")
VOID = {"meta", "input", "br", "img", "wbr"}


class Page(HTMLParser):
    """Checks that tags are closed in order; collects ids, what they refer to, addresses, and the data."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.addresses, self.text, self.data = [], [], [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        href = attributes.get("href", "")
        self.links += [href[1:]] if href.startswith("#") else []
        self.links += re.findall(r"url\(#([^)]*)\)", " ".join(str(value) for value in attributes.values()))
        self.addresses += [value for key, value in attributes.items() if key in ("src", "srcset", "action", "data")]
        self.addresses += [href] if href and not href.startswith("#") else []
        if tag not in VOID:
            self.open.append((tag, attributes.get("type")))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == ("script", "application/json"):
            self.data += text
        elif self.open and self.open[-1][0] not in ("script", "style"):
            self.text.append(text)


@pytest.fixture(scope="module")
def mazes(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("maze") / "data", MazeSettings(size=3), "maze")


@pytest.fixture(scope="module")
def maze_run(mazes, tmp_path_factory):
    run, test = make_run(tmp_path_factory.mktemp("runs") / "run", mazes)
    add_diagnostics(run, maze_model(3, seed=3), mazes.read_split("validation", 6), test)
    return run, test


@pytest.fixture(scope="module")
def maze_page(maze_run):
    run, test = maze_run
    return report_page(read_material(run), test)


def test_the_page_is_well_formed_and_needs_no_network(maze_page):
    page = Page(maze_page)
    assert len(page.ids) == len(set(page.ids)) and set(page.links) <= set(page.ids)
    assert page.addresses == []
    assert "http:" + "//" not in maze_page and "https:" not in maze_page and "@import" not in maze_page
    assert len(maze_page.encode()) < 1_500_000


def test_the_page_says_what_the_summaries_say(maze_run, maze_page):
    run, _ = maze_run
    assert "Format:" not in maze_page and ">format</th>" not in maze_page
    text = " ".join(" ".join(Page(maze_page).text).split())
    for result in read_material(run).results:
        for found in (*result.summary["strategies"].values(), result.summary["overall"]):
            for rate in ("adherence", "legality", "answer", "joint"):
                value = found[rate]
                assert f"{100 * value['rate']:.1f} {100 * value['low']:.1f}–{100 * value['high']:.1f}" in text
    for words in (
        "Confusion",
        "Probes",
        "sha256",
        "Cut at the longest length there is: 3 outputs.",
        "left supported windows",
        "dead_end_filling",
    ):
        assert words.replace("_", "_ ") in text or words in text


def test_the_same_run_makes_the_same_bytes(maze_run, maze_page):
    run, test = maze_run
    assert report_page(read_material(run), test) == maze_page


def test_the_browser_gets_the_worst_outputs_with_their_blocks(maze_run, maze_page):
    run, test = maze_run
    data = json.loads(Page(maze_page).data)
    assert data["protocols"] == ["prompted", "forced-selection"] and set(data["templates"]) == {"forced-selection"}
    faults = [sample["faults"] for sample in data["samples"]]
    assert faults == sorted(faults, reverse=True) and faults[0] >= 4 and faults[-1] == 0
    stored = pq.read_table(run / "eval" / "prompted" / "samples.parquet").to_pylist()
    rows = {(row["id"], row["asked"]): row for row in stored}
    for sample in (sample for sample in data["samples"] if sample["protocol"] == "prompted"):
        row = rows[sample["id"], sample["asked"]]
        assert sample["steps"] == row["trace"] and sample["answer"] == row["answer"]
        assert sample["blocks"] == row["blocks"] and sample["tokens"] == len(row["tokens"])
        assert sample["first"] == row["first_illegal_step"] and sample["reason"] == row["illegal_reason"]
    for id, board in data["boards"].items():
        row = test.id.tolist().index(int(id))
        assert board["right"] == test.answer[row].tolist() and board["svg"].startswith("<g")


def test_without_diagnostics_interventions_or_metrics(mazes, tmp_path):
    run, test = make_run(tmp_path / "run", mazes, protocols=("neutral",), metrics=0)
    page = Page(report_page(read_material(run), test))
    assert "paths" not in page.ids and "interventions" not in page.ids and "training" in page.ids
    assert "The run has no metrics." in "".join(page.text)


def test_interventions_and_conflicts_are_shown_where_they_are(mazes, tmp_path):
    run, test = make_run(tmp_path / "run", mazes, protocols=("prompted", "conflict"))
    path = run / "eval" / "conflict" / "summary.json"
    summary = json.loads(path.read_text())
    rate = {"rate": 0.625, "low": 0.4, "high": 0.8}
    cell = {"n": 8, "path": rate, "field": {**rate, "rate": 0.25}, "identified": {"bfs": 5, "none": 3}}
    summary["matrix"] = {"bfs": {"dfs": cell}, "dfs": {"bfs": cell}}
    path.write_text(json.dumps(summary))
    rates = dict.fromkeys(("adherence", "legality", "answer", "joint"), rate)
    difference = {"overall": {"difference": {"rate": -0.3, "low": -0.4, "high": -0.2}, "p_holm": 0.0001}}
    arms = {
        "own": {"group": "ids-gates", "reference": None, "overall": rates},
        "shuffled<b>": {
            "group": "order",
            "reference": "own",
            "overall": rates,
            "paired": {"adherence": difference, "joint": difference},
            "divergence": {
                "same_output": 0.5,
                "first_differing_token": [1.0, 7.0, 9.0],
                "first_differing_block": [{"window": 1, "depth": 2, "outputs": 4}],
            },
        },
    }
    folder = run / "eval" / "interventions"
    folder.mkdir()
    ids = {"ids": [[[0, 1]] * 3] * 5}
    (folder / "summary.json").write_text(
        json.dumps({"protocol": "interventions", "n": 8, "arms": arms, "template": ids})
    )
    outputs = pq.read_table(run / "eval" / "prompted" / "samples.parquet")
    parts = [
        outputs.append_column("arm", pa.array([arm] * len(outputs))).append_column(
            "differs_at_token", pa.array([token] * len(outputs), pa.int64())
        )
        for arm, token in (("own", None), ("shuffled<b>", 4))
    ]
    pq.write_table(pa.concat_tables(parts), folder / "samples.parquet")
    text = report_page(read_material(run), test)
    data = json.loads(Page(text).data)
    assert data["protocols"] == ["prompted", "conflict", "arm own", "arm shuffled<b>"]
    shuffled = [sample for sample in data["samples"] if sample["protocol"] == "arm shuffled<b>"]
    assert {sample["asked"] for sample in shuffled} == set(data["strategies"])
    assert all(sample["faults"] and sample["parts"] == 4 for sample in shuffled)
    assert all("parts" not in sample for sample in data["samples"] if sample not in shuffled)
    page = Page(text)
    assert {"conflict", "interventions"} <= set(page.ids) and "shuffled&lt;b&gt;" in text and "shuffled<b>" not in text
    words = " ".join(" ".join(page.text).split())
    for said in ("62 / 25", "-30.0 -40.0 to -20.0", "< 0.001", "window 1, depth 2"):
        assert said in words


def test_whatever_a_run_says_is_escaped(mazes, tmp_path):
    evil = '</script><img src=x onerror="alert(1)">'
    run, test = make_run(tmp_path / "run", mazes, protocols=("prompted",))
    about = json.loads((run / "run.json").read_text())
    about["versions"]["torch"] = about["machine"]["device"] = evil
    (run / "run.json").write_text(json.dumps(about))
    path = run / "eval" / "prompted" / "summary.json"
    summary = json.loads(path.read_text()) | {"checkpoint": evil, "content_hash": evil}
    path.write_text(json.dumps(summary))
    samples = run / "eval" / "prompted" / "samples.parquet"
    table = pq.read_table(samples)
    reasons = table["illegal_reason"].cast("string").to_pylist()
    table = table.set_column(table.column_names.index("illegal_reason"), "illegal_reason", [[evil for _ in reasons]])
    pq.write_table(table, samples)
    (run.parent / "evil").mkdir()
    text = report_page(read_material(run), test)
    assert "<img" not in text and "onerror" in text
    data = json.loads(Page(text).data)
    assert {sample["reason"] for sample in data["samples"]} == {evil}


def test_a_page_of_sudokus(tmp_path):
    dataset = make_data(tmp_path / "data", SudokuSettings(), "sudoku", n=40)
    run, test = make_run(tmp_path / "run", dataset, n=3)
    text = report_page(read_material(run), test)
    data = json.loads(Page(text).data)
    assert (
        data["task"] == "sudoku"
        and {board["columns"] for board in data["boards"].values()} == {9}
        and len(text.encode()) < 1_500_000
    )
    sample = next(sample for sample in data["samples"] if sample["asked"] == "propagation" and sample["joint"])
    assert [2] in sample["steps"] and sample["answer"] == data["boards"][str(sample["id"])]["right"]
    assert "Format: its steps are written like" in text
    assert text.count(">format</th>") == 1 + len(read_material(run).results)


def test_a_page_that_would_be_too_large_gets_fewer_outputs(maze_run, maze_page, monkeypatch):
    run, test = maze_run
    monkeypatch.setattr(frame_module, "LIMIT", len(maze_page.encode()) - 1000)
    smaller = report_page(read_material(run), test)
    assert len(smaller.encode()) < len(maze_page.encode()) - 1000
    assert 0 < len(json.loads(Page(smaller).data)["samples"]) < len(json.loads(Page(maze_page).data)["samples"])


def test_by_path(maze_run, tmp_path):
    run, _ = maze_run
    notes = []
    out = report_run(run, None, tmp_path / "page.html", notes.append)
    assert out.read_text().startswith("<!DOCTYPE html>") and notes == []
    assert report_run(run, None, None, notes.append) == run / "report.html"
    with pytest.raises(LolDataError, match="cannot be written"):
        report_run(run, None, tmp_path / "missing" / "page.html", notes.append)


def test_what_is_not_there_is_said_in_one_line(mazes, tmp_path, monkeypatch):
    run, _ = make_run(tmp_path / "run", mazes, protocols=())
    with pytest.raises(UsageError, match="no results yet; evaluate it with: lol-data eval"):
        report_run(run, None, None, print)
    with pytest.raises(UsageError, match="is not a run"):
        report_run(tmp_path / "none", None, None, print)
    run, _ = make_run(tmp_path / "other", mazes, protocols=("prompted",))
    (run / "eval" / "prompted" / "samples.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DamageError, match=r"samples\.parquet cannot be read"):
        report_run(run, None, None, print)
    (run / "eval" / "prompted" / "summary.json").write_text('{"protocol": ')
    with pytest.raises(DamageError, match=r"summary\.json cannot be read"):
        report_run(run, None, None, print)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LolDataError, match=r"needs matplotlib; install it with: pip install 'lol-data\[report\]'"):
        report_run(run, None, None, print)


def test_a_torn_line_of_metrics_ends_them(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert read_metrics(path) == [{"step": 1}, {"step": 2}] and read_metrics(tmp_path / "none") == []


def test_long_curves_are_thinned_and_colours_are_the_pages():
    metrics = [{"step": s, "loss": 1 + 1 / s, "depth": 2} for s in range(1, 20_001)]
    svg = learning_curve(metrics)
    assert len(svg) < 40_000 and "var(--ink)" in svg and "#0102" not in svg and "<style" not in svg


def test_words_in_plots_are_escaped():
    from lol_data.report.plots import library

    figure, axes = library().subplots()
    axes.set_title("<b> & co")
    svg = svg_of(figure, "a <title>")
    assert "&lt;b&gt; &amp; co" in svg and "<title>a &lt;title&gt;</title>" in svg
    assert np.array_equal(Page(svg).addresses, [])


def test_a_rival_says_what_reads_the_field_and_what_it_takes(mazes, tmp_path):
    run, test = make_run(tmp_path / "run", mazes)
    about = json.loads((run / "run.json").read_text())
    about["config"]["model"] |= {"router": "fixed", "field_readers": "all", "attention": "full", "capacity": 0.5}
    (run / "run.json").write_text(json.dumps(about))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        for name in ("gate", "agreement", "load_entropy"):
            del line[name]
    lines[-1] |= {"validation_taken": 0.48, "validation_foretold": 0.913, "validation_depths_taken": [0.3, 0.44, 0.26]}
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = report_page(read_material(run), test)
    text = " ".join(" ".join(Page(page).text).split())
    assert "no router, and no path to force" in text and "the strategy field as ordinary tokens" in text
    assert "48.0% of the tokens" in text and "in 91.3%" in text
    assert "taking depths that took a token" in page and "the router</text>" not in page
