"""A published run: small, complete for an evaluation, honest about its data, and no longer to be trained."""

import json
import resource
import shlex
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from lol_data import evaluations, runs
from lol_data.cli import app
from lol_data.errors import LolDataError, RefusedError, UsageError
from lol_data.evaluations import Request
from lol_data.generators.maze import MazeSettings
from lol_data.generators.sudoku import SudokuSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import open_dataset
from lol_data.training.publish import LINES, generation_command, publish

from .common import silent
from .test_runs import SETTINGS


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(run, its data set, the published form)."""
    home = tmp_path_factory.mktemp("published")
    generate_dataset(DatasetPlan(200, MazeSettings(size=4), 3, validation_share=0.1, test_share=0.1), home / "own", 1)
    runs.train(home / "own", None, home / "run", False, SETTINGS, "cpu", silent)
    found = publish(home / "run", None, home / "tiny", silent)
    return home, found


def test_what_is_published(trained):
    home, found = trained
    folder = home / "tiny" / "checkpoints" / found["checkpoint"]
    assert sorted(path.name for path in folder.iterdir()) == ["DONE", "model.safetensors", "state.json"]
    before = load_file(home / "run" / "checkpoints" / found["checkpoint"] / "model.safetensors")
    after = load_file(folder / "model.safetensors")
    assert before.keys() == after.keys()
    for name, tensor in after.items():
        exact = tensor.dtype == before[name].dtype
        assert exact == (tensor.ndim < 2 or name.startswith("router.")), name
        assert torch.equal(tensor.float(), before[name].to(tensor.dtype).float())
    about = json.loads((home / "tiny" / "run.json").read_text())
    assert about["data"]["path"] == f"datasets/tiny-{about['data']['content_hash'][:6]}" and str(
        home
    ) not in json.dumps(about)
    assert about["made_by"] == found["made_by"]
    lines = (home / "run" / "metrics.jsonl").read_text().splitlines()
    assert (home / "tiny" / "metrics.jsonl").read_text().splitlines() == lines and len(lines) < LINES
    assert found["bytes"] == sum(path.stat().st_size for path in (home / "tiny").rglob("*") if path.is_file())


def test_metrics_are_thinned_and_keep_every_validation_loss(trained, monkeypatch):
    home, _ = trained
    monkeypatch.setattr("lol_data.training.publish.LINES", 1)
    publish(home / "run", None, home / "thin", silent)
    lines = [json.loads(line) for line in (home / "run" / "metrics.jsonl").read_text().splitlines()]
    kept = [json.loads(line) for line in (home / "thin" / "metrics.jsonl").read_text().splitlines()]
    assert len(kept) < len(lines)
    assert kept == [line for line in lines if "validation_loss" in line or line["step"] == len(lines)]


def test_it_is_evaluated_where_its_command_was_run(trained, tmp_path, monkeypatch):
    home, found = trained
    monkeypatch.chdir(tmp_path)
    request = Request(home / "tiny", n=3, template_problems=4, device="cpu", out=tmp_path / "out")
    with pytest.raises(UsageError, match=r"datasets/tiny-\w{6}, the data set of .*make it: lol-data gen-maze --n 200"):
        evaluations.evaluate(request, "forced", "selection", silent, lambda done, total: None)
    looked = CliRunner().invoke(app, ["diagnose", str(home / "tiny")])
    assert "make it: lol-data gen-maze --n 200" in str(looked.exception)
    made = CliRunner().invoke(app, shlex.split(found["made_by"])[1:])
    assert made.exit_code == 0, made.output
    (made_set,) = Path("datasets").iterdir()
    assert open_dataset(made_set).manifest.content_hash == open_dataset(home / "own").manifest.content_hash
    evaluations.evaluate(request, "forced", "selection", silent, lambda done, total: None)
    summary = json.loads((tmp_path / "out" / "forced-selection" / "summary.json").read_text())
    assert summary["n"] == 3 and summary["checkpoint"] == found["checkpoint"]


def test_it_is_not_trained_on(trained):
    home, _ = trained
    with pytest.raises(RefusedError, match="published to be evaluated"):
        runs.train(home / "own", None, home / "tiny", True, SETTINGS, "cpu", silent)


def test_what_is_refused(trained, tmp_path):
    home, _ = trained
    with pytest.raises(RefusedError, match="is not empty"):
        publish(home / "run", None, home / "tiny", silent)
    generate_dataset(DatasetPlan(50, MazeSettings(size=4), 4), tmp_path / "other", 1)
    with pytest.raises(UsageError, match="is not what"):
        publish(home / "run", tmp_path / "other", tmp_path / "out", silent)
    with pytest.raises(UsageError, match="is not a run"):
        publish(tmp_path, None, tmp_path / "out", silent)


def test_a_full_disk_leaves_nothing(trained, tmp_path):
    home, _ = trained
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        with pytest.raises(LolDataError, match=r"tiny: cannot be written: .*File too large"):
            publish(home / "run", None, tmp_path / "tiny", silent)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not list(tmp_path.iterdir())
    (tmp_path / ".draft-tiny" / "checkpoints" / "step-00000003").mkdir(parents=True)  # as a killed one leaves it
    publish(home / "run", None, tmp_path / "tiny", silent)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (DatasetPlan(30, MazeSettings(size=5), 5), "lol-data gen-maze --n 30 --size 5 --seed 5"),
        (
            DatasetPlan(30, MazeSettings(4, 4, "prim", 0.1), 0, 10, 0.2, 0.3),
            "lol-data gen-maze --n 30 --size 4 --min_path 4 --algorithm prim --loops 0.1 --seed 0 --shard_rows 10 "
            "--validation_share 0.2 --test_share 0.3".replace("_", "-"),
        ),
        (
            DatasetPlan(6, SudokuSettings((33, 34)), 2, task_name="sudoku"),
            "lol-data gen-sudoku --n 6 --clues 33:34 --seed 2",
        ),
        (DatasetPlan(6, SudokuSettings(), 2, task_name="sudoku"), "lol-data gen-sudoku --n 6 --seed 2"),
    ],
)
def test_the_command_makes_the_same_data(plan, said, tmp_path):
    generate_dataset(plan, tmp_path / "one", 1)
    manifest = open_dataset(tmp_path / "one").manifest
    assert generation_command(manifest) == said
    made = CliRunner().invoke(app, [*shlex.split(said)[1:], "--out", str(tmp_path / "two")])
    assert made.exit_code == 0, made.output
    assert open_dataset(tmp_path / "two").manifest.content_hash == manifest.content_hash
