"""Evaluation and intervention by path, on real data sets and runs: what is read, kept, and refused."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

from lol_data import evaluations, runs
from lol_data.errors import RefusedError, UsageError
from lol_data.evaluations import Request
from lol_data.evaluators.compare import compare
from lol_data.generators.maze import MazeSettings
from lol_data.shards.generate import generate_dataset
from lol_data.shards.plan import DatasetPlan

SHAPE = {"width": 16, "heads": 2, "hidden": 24, "prelude": 1, "blocks": 3, "depth": 2, "coda": 1, "window": 16}
SHAPE |= {"shift": 8, "field": 2}
TRAIN = {"steps": 2, "batch": 8, "micro_batch": 4, "validation_problems": 2, "precision": '"fp32"', "compile": '"no"'}
SETTINGS = [f"model.{name}={value}" for name, value in SHAPE.items()]
SETTINGS += [f"train.{name}={value}" for name, value in TRAIN.items()]


def silent(*arguments):
    pass


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Mazes of 4x4 and sets that differ in one thing each; a run with position vectors, and one without."""
    home = tmp_path_factory.mktemp("home")
    sets = {
        "own": (MazeSettings(size=4), 0, 0.05),
        "other-seed": (MazeSettings(size=4), 1, 0.05),
        "other-share": (MazeSettings(size=4), 1, 0.5),
        "looped": (MazeSettings(size=4, loops=0.2), 1, 0.5),
        "larger": (MazeSettings(size=5), 0, 0.05),
    }
    for name, (settings, seed, share) in sets.items():
        plan = DatasetPlan(400, settings, seed=seed, validation_share=0.05, test_share=share)
        generate_dataset(plan, home / name, workers=1)
    for name, own in (("run", []), ("free", ["model.prompt_embedding=false"]), ("shared", ["model.shared_cells=true"])):
        runs.train(home / "own", None, home / name, False, [*SETTINGS, *own], "cpu", silent)
    return home


def request(home, run="run", **options):
    return Request(home / run, n=3, template_problems=4, batch=8, device="cpu", **options)


def evaluate(home, protocol="prompted", kind="selection", note=silent, run="run", **options):
    return evaluations.evaluate(request(home, run, **options), protocol, kind, note, silent)


def test_both_kinds_of_template_side_by_side(home, tmp_path):
    summaries, folders = evaluate(home, "forced", "both", out=tmp_path)
    assert [folder.name for folder in folders] == ["forced-selection", "forced-probability"]
    for summary, folder in zip(summaries, folders, strict=True):
        assert json.loads((folder / "summary.json").read_text()) == summary
        assert summary["template_source"]["split"] == "validation"
        assert summary["template_source"]["problems"] == 4
        assert len(pl.read_parquet(folder / "samples.parquet")) == 15
    assert not (tmp_path / ".parts").exists()
    comparison = compare(folders[0], folders[1])["comparisons"]["forced-selection : forced-probability"]
    assert comparison["n"] == 15


def test_scores_are_of_test_problems_and_templates_of_validation_ones(home):
    (summary,), (folder,) = evaluate(home, "forced")
    dataset = runs.find_dataset(home / "own", silent)
    assert pl.read_parquet(folder / "samples.parquet")["id"].unique().sort().to_list() == sorted(
        dataset.read_split("test", 3).id.tolist()
    )
    assert folder == home / "run/eval/forced-selection"
    assert summary["template_source"]["content_hash"] == dataset.manifest.content_hash == summary["content_hash"]


def test_test_problems_that_the_run_was_trained_on_are_refused(home, tmp_path):
    evaluate(home, data=home / "other-seed", out=tmp_path)
    with pytest.raises(RefusedError, match=r"test problems belong to other splits in .*own"):
        evaluations.evaluate(
            Request(home / "run", home / "other-share", n=50, out=tmp_path, device="cpu"),
            "prompted",
            "selection",
            silent,
            silent,
        )


def test_looped_mazes_take_the_templates_of_the_trained_ones(home):
    (summary,), (folder,) = evaluate(home, "forced", data=home / "looped")
    assert folder == home / "run/eval/on-looped/forced-selection"
    assert summary["data"] == str(home / "looped")
    assert summary["template_source"]["data"] == str(home / "own")
    (summary,), _ = evaluate(home, "forced", data=home / "looped", template_data=home / "looped")
    assert summary["template_source"]["data"] == str(home / "looped")


@pytest.mark.parametrize("run", ["free", "shared"])
def test_another_size_is_read_where_no_position_of_a_cell_has_a_vector(home, run):
    with pytest.raises(UsageError, match=r"larger has 5x5 mazes; .*trained on 4x4 mazes, and has a vector for each"):
        evaluate(home, data=home / "larger")
    notes = []
    (summary,), _ = evaluate(home, "forced", run=run, data=home / "larger", note=notes.append)
    assert (summary["size"], summary["n"]) == (5, 3)
    assert any("were never trained" in text for text in notes)
    assert summary["decoding"]["limit"] == 3 + 49 + 25
    assert summary["template_source"]["data"] == str(home / "own")


@pytest.mark.parametrize("reading", ["cycle", "hold", "extrapolate"])
def test_more_depth_than_trained(home, reading):
    (summary,), (folder,) = evaluate(home, "forced", depth=3, reading=reading)
    assert folder == home / f"run/eval/depth-3-{reading}/forced-selection"
    assert (summary["depth"], summary["trained_depth"], summary["reading"]) == (3, 2, reading)
    assert len(summary["template"]["ids"][0]) == 3


def test_an_interrupted_evaluation_goes_on_and_refuses_other_settings(home, tmp_path):
    done = []

    def stop(finished, total):
        done.append(finished)
        if finished >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluations.evaluate(request(home, out=tmp_path), "prompted", "selection", silent, stop)
    with pytest.raises(RefusedError, match="unfinished evaluation with other settings"):
        evaluate(home, data=home / "other-seed", out=tmp_path)
    done.clear()
    _, (folder,) = evaluations.evaluate(
        request(home, out=tmp_path), "prompted", "selection", silent, lambda finished, total: done.append(finished)
    )
    assert done == [8, 15]
    _, (whole,) = evaluate(home)
    assert (folder / "samples.parquet").read_bytes() == (whole / "samples.parquet").read_bytes()


def test_interventions_by_path(home):
    summary, folder = evaluations.intervene(
        request(home), ["ids-gates", "order"], "selection", "neutral", 0, silent, silent
    )
    assert folder == home / "run/eval/interventions"
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert list(summary["arms"]) == ["own", "template", "ids", "gates", "shuffled"]
    samples = pl.read_parquet(folder / "samples.parquet")
    assert samples["arm"].value_counts()["count"].to_list() == [15] * 5
    assert list(folder.iterdir()) != [] and not (home / "run/eval/.parts").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": 0}, "--n is 0"),
        ({"batch": -1}, "--batch is -1"),
        ({"depth": 0}, "--depth is 0"),
        ({"reading": "tea"}, "--reading tea"),
    ],
)
def test_numbers_that_are_none(home, options, says):
    with pytest.raises(UsageError, match=says):
        evaluations.evaluate(Request(home / "run", **options), "prompted", "selection", silent, silent)


def test_words_that_are_none(home):
    with pytest.raises(UsageError, match="use prompted, forced, neutral, conflict or all"):
        evaluate(home, "hypnosis")
    with pytest.raises(UsageError, match="use selection, probability or both"):
        evaluate(home, "forced", "wish")
    for groups, kind, field, says in (
        (["magic"], "selection", "neutral", "--arms magic"),
        (["order"], "both", "neutral", "--template both"),
        (["order"], "selection", "loud", "--field loud"),
    ):
        with pytest.raises(UsageError, match=says):
            evaluations.intervene(request(home), groups, kind, field, 0, silent, silent)


@pytest.mark.slow
def test_two_processes_say_what_one_says(home, tmp_path):
    """Under torchrun, with fewer outputs than a batch for one of them."""
    found = []
    for processes in (1, 2):
        out = tmp_path / str(processes)
        start = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "--"] if processes > 1 else []
        command = [sys.executable, "-m", *start, "lol_data.cli", "eval", "--run", home / "free", "--n", 3]
        command += ["--template-problems", 4, "--batch", 8, "--protocol", "all", "--device", "cpu", "--out", out]
        done = subprocess.run(
            [*map(str, command), "--json"],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        found.append((json.loads(done.stdout), {path.parent.name: path for path in out.glob("*/samples.parquet")}))
        assert not (out / ".parts").exists()
    (one, files), (two, others) = found
    assert one == two
    assert sorted(files) == sorted(others) and len(files) == 4
    for name, path in files.items():
        assert pl.read_parquet(path).equals(pl.read_parquet(others[name]))
