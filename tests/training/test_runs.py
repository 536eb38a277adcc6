"""Training and evaluation by path, on both tasks: the chosen configuration, what a run remembers, what is refused."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from lol_data import evaluations, runs
from lol_data.errors import UsageError
from lol_data.evaluators.sudoku_reasons import SUDOKU_ILLEGAL
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.sudokus import SUDOKU_STRATEGIES
from lol_data.tokenization.sudoku import SudokuLayout
from lol_data.tokenization.vocabulary import EOS
from lol_data.training.run_folder import read_run

from .common import silent

SHAPE = {"width": 16, "heads": 2, "hidden": 24, "prelude": 1, "blocks": 3, "depth": 2, "coda": 1}
TRAIN = {"steps": 3, "batch": 8, "micro_batch": 4, "validation_problems": 2, "precision": "fp32", "compile": "no"}
SETTINGS = [f"model.{name}={value}" for name, value in SHAPE.items()]
SETTINGS += [f"train.{name}={value}" for name, value in TRAIN.items()]
PARTS = {"train": (0, 12), "validation": (12, 16), "test": (16, 19)}


class Stored:
    """A data set that is made when it is read; the rest of a real one does not matter here."""

    def __init__(self, path, task, settings, generate, options):
        self.path, self.generate, self.options = path, generate, options
        self.manifest = SimpleNamespace(task=task, settings=settings, content_hash=f"{task}-hash")

    def read_split(self, split, limit=None, columns=None):
        low, high = PARTS[split]
        return self.generate(self.options, 0, low, min(high, low + (limit or high)))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a data set of each task and a trained run on each."""
    home = tmp_path_factory.mktemp("home")
    stored = {
        home / "maze": Stored(home / "maze", "maze", {"size": 4}, generate_mazes, MazeSettings(size=4)),
        home / "sudoku": Stored(home / "sudoku", "sudoku", {"clues": [30, 36]}, generate_sudokus, SudokuSettings()),
        home / "chess": Stored(home / "chess", "chess", {}, None, None),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "open_dataset", stored.__getitem__)
        for task in ("maze", "sudoku"):
            train(home, task)
        yield home


def train(home, task, resume=False, settings=SETTINGS):
    return runs.train(home / task, None, home / f"{task}-run", resume, settings, "cpu", silent)


def evaluate(home, run, data=None, protocol="forced", kind="selection"):
    folder = home / run
    request = evaluations.Request(folder, data, n=3, template_problems=4, batch=8, device="cpu")
    return evaluations.evaluate(request, protocol, kind, silent, lambda done, total: None)


def test_a_run_remembers_its_task_and_takes_its_windows(home):
    about = {task: read_run(home / f"{task}-run") for task in ("maze", "sudoku")}
    assert about["maze"]["data"] == {
        "path": str((home / "maze").resolve()),
        "task": "maze",
        "size": 4,
        "content_hash": "maze-hash",
    }
    assert about["sudoku"]["data"] == {
        "path": str((home / "sudoku").resolve()),
        "task": "sudoku",
        "content_hash": "sudoku-hash",
    }
    windows = {task: (run["config"]["model"]["window"], run["config"]["model"]["shift"]) for task, run in about.items()}
    assert windows == {"maze": (64, 32), "sudoku": (128, 64)}


@pytest.mark.parametrize("task", ["maze", "sudoku"])
def test_a_finished_run_resumes_to_itself(home, task):
    _, line = train(home, task, resume=True, settings=[])
    assert line["step"] == 3


def assert_judged(summary, folder, limit):
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert summary["task"] == "sudoku" and "size" not in summary
    assert list(summary["strategies"]) == list(SUDOKU_STRATEGIES)
    assert summary["overall"]["n"] == 15
    samples = pl.read_parquet(folder / "samples.parquet")
    assert samples["id"].to_list() == [id for id in (16, 17, 18) for _ in range(5)]
    assert samples["asked"].to_list() == list(SUDOKU_STRATEGIES) * 3
    assert set(samples["illegal_reason"]) <= set(SUDOKU_ILLEGAL)
    tokens = [np.frombuffer(row, np.uint8) for row in samples["tokens"]]
    assert samples["cut"].to_list() == [len(row) == limit and row[-1] != EOS for row in tokens]
    assert summary["decoding"] == {"limit": limit, "cut": samples["cut"].sum()}


def test_sudokus_are_decoded_under_every_protocol_and_judged(home, monkeypatch):
    monkeypatch.setattr(SudokuLayout, "longest_suffix", 50)
    summaries, folders = evaluate(home, "sudoku-run", protocol="all", kind="both")
    assert [folder.name for folder in folders] == ["prompted", "forced-selection", "forced-probability", "neutral"]
    for summary, folder in zip(summaries, folders, strict=True):
        assert_judged(summary, folder, 50)


@pytest.mark.slow
def test_an_output_may_be_as_long_as_the_longest_trace(home):
    (summary,), (folder,) = evaluate(home, "sudoku-run")
    assert_judged(summary, folder, 1106)


def test_a_run_is_evaluated_on_its_own_kind_of_problems_only(home):
    with pytest.raises(UsageError, match=r"sudoku has sudokus; .*maze-run was trained on 4x4 mazes"):
        evaluate(home, "maze-run", home / "sudoku")
    with pytest.raises(UsageError, match=r"maze has 4x4 mazes; .*sudoku-run was trained on sudokus"):
        evaluate(home, "sudoku-run", home / "maze")


def test_data_of_an_unknown_task_are_refused(home):
    with pytest.raises(UsageError, match="no such task: chess"):
        evaluate(home, "maze-run", home / "chess")
