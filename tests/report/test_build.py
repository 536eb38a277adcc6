"""Diagnostics by path: of the newest checkpoint, on the outputs that it made; the commands' answers."""

import json

import pytest
import torch

from lol_data.commands.report import diagnose, report
from lol_data.errors import UsageError
from lol_data.generators.maze import MazeSettings
from lol_data.model.lol import LibraryOfLayers
from lol_data.report.build import diagnose_run
from lol_data.report.material import read_material
from lol_data.tokenization.tasks import layout_of
from lol_data.training.checkpoint import save_checkpoint
from lol_data.training.config import RunConfig

from .common import make_data, make_run

SILENT = {"note": lambda text: None, "progress": lambda done, total: None}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    run, test = make_run(
        folder / "run", make_data(folder / "data", MazeSettings(size=3), "maze"), ("prompted", "neutral")
    )
    config = RunConfig.from_json(json.loads((run / "run.json").read_text())["config"])
    layout = layout_of(test, config.strategy_field)
    torch.manual_seed(0)
    model = LibraryOfLayers(config.model_config(layout))
    save_checkpoint(run, 30, model, [], {}, 2)
    return run


def test_a_run_is_diagnosed_with_the_outputs_of_its_checkpoint(run):
    numbers, folder = diagnose_run(run, None, 6, 5, 64, "cpu", **SILENT)
    assert numbers["checkpoint"] == "step-00000030" and (numbers["n"], numbers["template_problems"]) == (6, 5)
    assert json.loads((folder / "diagnostics.json").read_text()) == numbers
    known, prompted, neutral = (numbers["ways"][way] for way in ("known", "prompted", "neutral"))
    assert known["sequences"] == prompted["sequences"] == 30
    assert 0 < neutral["sequences"] <= 6  # one output a problem, where it follows a single strategy
    assert read_material(run).arrays["neutral/loads"].shape == (5, 3, 4)


def test_outputs_of_another_checkpoint_are_left_out(run):
    path = run / "eval" / "prompted" / "summary.json"
    summary = path.read_text()
    path.write_text(summary.replace("step-00000030", "step-00000020"))
    numbers, _ = diagnose_run(run, None, 3, 5, 64, "cpu", **SILENT)
    path.write_text(summary)
    assert set(numbers["ways"]) == {"known", "neutral"}


def test_numbers_that_cannot_be_are_refused(run, tmp_path):
    with pytest.raises(UsageError, match=r"--n is 0; it must be 1 or more"):
        diagnose_run(run, None, 0, 5, 64, "cpu", **SILENT)
    with pytest.raises(UsageError, match=r"is not a run"):
        diagnose_run(tmp_path, None, 1, 5, 64, "cpu", **SILENT)


def test_the_commands_answer_in_words_and_in_json(run, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    diagnose(run, n=4, template_problems=5, device="cpu")
    assert "4 test problems" in capsys.readouterr().out
    report(run, out=tmp_path / "page.html", as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"report": str(tmp_path / "page.html"), "bytes": (tmp_path / "page.html").stat().st_size}
