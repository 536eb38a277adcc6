"""Every command on sudokus, from generation to forced paths."""

import json

import polars as pl
import pytest

TINY = ["width=16", "heads=2", "hidden=32", "prelude=1", "blocks=3", "depth=2", "coda=1"]
TINY = [f"--set=model.{item}" for item in TINY] + ["--set=train.batch=8", "--set=train.steps=2"]


ALL_RATES = ["format", "adherence", "legality", "answer", "joint"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("sudoku")


@pytest.fixture(autouse=True)
def there(home, monkeypatch):
    monkeypatch.chdir(home)


def test_generate_and_verify(run):
    code, out, _ = run("gen-sudoku", "--n", 600, "--validation-share", 0.1, "--test-share", 0.1)
    assert code == 0 and "datasets/sudoku: 600 rows made" in out
    code, out, _ = run("verify", "datasets/sudoku", "--deep", "--json")
    assert code == 0 and json.loads(out)["ok"] and json.loads(out)["rows"] == 600
    code, out, _ = run("gen-sudoku", "--n", 10, "--clues", "33", "--json")
    assert code == 0 and json.loads(out)["out"] == "datasets/sudoku-33-33"
    code, out, _ = run("gen-sudoku", "--n", 4_000_000, "--dry-run")
    assert code == 0 and "120 files" in out
    for clues in ("a:b", "36:30", "5:90"):
        code, _, err = run("gen-sudoku", "--n", 10, "--clues", clues, "--out", "wrong")
        assert code == 2 and err.count("\n") == 1


def test_look_at_it(run, home):
    code, out, _ = run("stats", "datasets/sudoku", "--svg", "lengths.svg")
    assert code == 0 and "600 sudokus with 30 to 36 clues" in out and (home / "lengths.svg").read_text()[:4] == "<svg"
    code, out, _ = run("show", "datasets/sudoku", "--row", 3, "--strategy", "hidden_single", "--step", 2)
    assert code == 0 and "step 2: " in out and "hidden single in" in out
    code, out, _ = run("show", "datasets/sudoku", "--row", 3, "--svg", "all.svg", "--html", "all.html")
    assert code == 0 and (home / "all.svg").stat().st_size > 1000 and "<script" in (home / "all.html").read_text()
    code, _, err = run("show", "datasets/sudoku", "--step", 2)
    assert code == 2 and "strategy" in err


def test_other_peoples_puzzles(run, home):
    code, out, _ = run("export", "datasets/sudoku", "--format", "jsonl", "--out", "x.jsonl", "--split", "test")
    assert code == 0
    code, out, _ = run("check", "--task", "sudoku", "x.jsonl")
    assert code == 0 and all(json.loads(line)["joint"] for line in out.splitlines())
    puzzle = json.loads((home / "x.jsonl").read_text().splitlines()[0])["puzzle"]
    (home / "p.txt").write_text(f"{puzzle}\n{'.' * 80}\n{'.' * 81}\n")
    code, out, _ = run("solve", "--task", "sudoku", "--strategy", "propagation", "p.txt")
    statuses = [json.loads(line)["status"] for line in out.splitlines()]
    assert code == 0 and statuses == ["solved", "malformed", "multiple_solutions"]
    code, _, err = run("solve", "--task", "chess", "p.txt")
    assert code == 2 and "maze, sudoku" in err


@pytest.mark.slow
def test_train_and_forced_path(run, home):
    code, _, err = run("train", "--data", "datasets/sudoku", "--out", "runs/s", *TINY)
    assert code == 0, err
    code, out, _ = run("eval", "--run", "runs/s", "--forced-path", "--n", 2, "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["task"] == "sudoku" and summary["strategies"]["propagation"]["n"] == 2
    samples = pl.read_parquet("runs/s/eval/forced-selection/samples.parquet")
    looks = (samples["format"] == samples["asked"]).fill_null(False)
    assert summary["overall"]["format"]["rate"] == looks.mean()
    code, out, _ = run("eval", "--run", "runs/s", "--n", 2)
    assert code == 0 and out.splitlines()[1].split() == ["strategy", "n", *ALL_RATES]
    code, out, _ = run("intervene", "--run", "runs/s", "--n", 1, "--arms", "ids-gates")
    assert code == 0 and next(line for line in out.splitlines() if line.startswith("arm")).split()[1:6] == ALL_RATES
    pair = ["compare", "runs/s/eval/forced-selection", "runs/s/eval/prompted"]
    code, out, _ = run(*pair, "--json")
    assert code == 0
    (compared,) = json.loads(out)["pairs"][0]["comparisons"].values()
    assert compared["overall"]["format"]["first"]["rate"] == looks.mean()
    code, out, _ = run(*pair, "--rate", "format")
    assert code == 0 and "format" in out and "joint" not in out
