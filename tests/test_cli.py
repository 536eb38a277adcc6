"""The command line as a user meets it: the three lines of the README, JSON forms, refusals and exit codes."""

import contextlib
import json
import signal
import sys
from types import SimpleNamespace
from typing import ClassVar

import polars as pl
import pytest

from lol_data.training.loop import Trainer

TINY = ["width=16", "heads=2", "hidden=32", "prelude=1", "blocks=3", "depth=2", "coda=1"]
TINY = [f"--set=model.{item}" for item in TINY] + ["--set=train.batch=16", "--set=train.steps=4"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def test_the_three_lines_work_with_their_defaults(run, home, monkeypatch):
    monkeypatch.chdir(home)
    code, out, _ = run("gen-maze", "--n", 3000, "--size", 4)
    assert code == 0 and "datasets/maze4" in out
    code, out, err = run("train", *TINY)
    assert code == 0 and "runs/maze4-cpu-1: step 4" in out and "datasets/maze4" in err
    code, out, _ = run("eval", "--forced-path", "--n", 10)
    assert code == 0 and "protocol forced, selection template" in out and "dead_end_filling" in out
    summary = json.loads((home / "runs/maze4-cpu-1/eval/forced-selection/summary.json").read_text())
    assert summary["strategies"]["bfs"]["n"] == 10
    samples = pl.read_parquet(home / "runs/maze4-cpu-1/eval/forced-selection/samples.parquet")
    assert len(samples) == 50 and samples["asked"].n_unique() == 5
    assert samples["joint"].sum() == round(sum(s["joint"]["rate"] * 10 for s in summary["strategies"].values()))


def test_all_protocols_as_json(run, home, monkeypatch):
    monkeypatch.chdir(home)
    code, out, _ = run("eval", "--protocol", "all", "--n", 5, "--json")
    assert code == 0
    names = [(s["protocol"], s.get("template", {}).get("kind")) for s in json.loads(out)["protocols"]]
    assert names == [("prompted", None), ("forced", "selection"), ("forced", "probability"), ("neutral", None)]
    code, out, _ = run("eval", "--protocol", "all", "--template", "probability", "--n", 5, "--json")
    assert code == 0
    kinds = [(s["protocol"], s.get("template", {}).get("kind")) for s in json.loads(out)["protocols"]]
    assert kinds == [names[0], names[2], names[3]]


def test_a_finished_run_is_not_overwritten_and_resumes_to_itself(run, home, monkeypatch):
    monkeypatch.chdir(home)
    code, _, err = run("train", "--out", "runs/maze4-cpu-1", *TINY)
    assert code == 4 and "--resume" in err
    code, out, _ = run("train", "--resume", "--json")
    assert code == 0 and json.loads(out)["step"] == 4


def test_what_training_takes_is_said_before_it_starts(run, home, monkeypatch):
    monkeypatch.chdir(home)
    before = sorted(home.rglob("*"))
    code, out, _ = run("train", "--dry-run", "--json", *TINY, "--set=train.growth=0.5", "--set=train.steps=50")
    assert code == 0
    said = json.loads(out)
    assert said["steps"] == 50 and said["memory"] > 8 * said["parameters"] > 8 * 8000
    assert said["flops_per_token"] > 6 * said["active_parameters"] / 2
    assert 0 < said["seconds"] < 50 * 60
    code, out, _ = run("train", "--dry-run", *TINY)
    assert code == 0 and all(word in out for word in ("parameters", "MFLOP a token", "GiB", "4, ", "s a step"))
    assert sorted(home.rglob("*")) == before


def test_the_configuration_is_printed_with_its_meanings(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("train", "--print-config", "--config", "quickstart", "--set", "train.steps=77")
    assert code == 0 and "\nsteps = 77  # optimiser steps\n" in out and "[model]" in out
    (tmp_path / "mine.toml").write_text(out)
    code, again, _ = run("train", "--print-config", "--config", "mine.toml")
    assert code == 0 and again == out
    code, out, _ = run("train", "--print-config", "--json", "--set", "model.width=64")
    assert code == 0 and json.loads(out)["model"]["width"] == 64


def test_rates_that_are_too_high_end_in_one_line(run, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    rates = ("--set=train.adam_rate=1e20", "--set=train.warmup=0", "--set=train.steps=20")
    code, out, err = run("train", "--out", tmp_path / "run", *TINY, *rates)
    last = err.splitlines()[-1]
    assert (code, out) == (1, "") and "the loss is" in last and "samples" in last and "diverged.json" in last


def test_an_interrupted_run_says_how_to_go_on(run, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    step = Trainer.run_step

    def interrupted(trainer):
        signal.raise_signal(signal.SIGINT)
        return step(trainer)

    monkeypatch.setattr(Trainer, "run_step", interrupted)
    code, out, err = run("train", "--out", tmp_path / "run", *TINY)
    assert (code, out) == (130, "")
    assert f"stopped behind step 1; go on with: lol-data train --out {tmp_path / 'run'} --resume" in err
    monkeypatch.setattr(Trainer, "run_step", step)
    code, out, _ = run("train", "--out", tmp_path / "run", "--resume", "--json")
    assert code == 0 and json.loads(out)["step"] == 4


def test_metrics_for_tensorboard(run, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as where it is not installed
    code, _, err = run("train", "--tensorboard", "--out", tmp_path / "run", *TINY)
    assert code == 2 and "pip install tensorboard" in err and not (tmp_path / "run").exists()

    class Writer(contextlib.AbstractContextManager):
        scalars: ClassVar[list] = []

        def __init__(self, folder, purge_step):
            assert (folder, purge_step) == (str(tmp_path / "run" / "tensorboard"), 1)

        def __exit__(self, *error):
            pass

        def add_scalar(self, name, value, step):
            self.scalars.append((name, value, step))

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
    code, out, _ = run("train", "--tensorboard", "--json", "--out", tmp_path / "run", *TINY)
    assert code == 0
    assert [step for name, _, step in Writer.scalars if name == "loss"] == [1, 2, 3, 4]
    assert ("loss", json.loads(out)["loss"], 4) in Writer.scalars
    assert sum(name == "loads/depth-1/block-0" for name, _, _ in Writer.scalars) >= 1


def test_verify_json_and_damage(run, home, monkeypatch):
    monkeypatch.chdir(home)
    code, out, _ = run("verify", "datasets/maze4", "--deep", "--json")
    assert code == 0 and json.loads(out)["ok"]
    run("gen-maze", "--n", 100, "--size", 4, "--out", "damaged")
    shard = next((home / "damaged/data").glob("train-*"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    code, out, _ = run("verify", "damaged")
    assert code == 3 and shard.name in out


def test_dry_run_writes_nothing(run, home, monkeypatch):
    monkeypatch.chdir(home)
    code, out, _ = run("gen-maze", "--n", 100000, "--out", "not-there", "--dry-run", "--json")
    assert code == 0 and json.loads(out)["bytes"] > 1e6 and not (home / "not-there").exists()


def test_solve_then_check(run, tmp_path):
    maze = {"id": "a", "size": 3, "edges": [[0, 1], [1, 2], [2, 5], [5, 8], [1, 4], [3, 4], [4, 7], [6, 7]]}
    problems, outputs = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    problems.write_text(json.dumps({**maze, "start": 0, "goal": 8}) + "\nnot json\n")
    code, out, _ = run("solve", problems)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [line["status"] for line in lines] == ["solved"] * 5 + ["malformed"]
    assert lines[0]["answer"] == [0, 1, 2, 5, 8]
    outputs.write_text(out)
    code, out, _ = run("check", outputs)
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and all(verdict["joint"] for verdict in verdicts[:5]) and "error" in verdicts[5]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["gen-maze"], 2, "--n"),
        (["gen-maze", "--n", "10", "--sise", "5"], 2, "--sise"),
        (["gen-maze", "--n", "10", "--size", "99"], 2, "size"),
        (["gen-maze", "--n", "-1"], 2, "n is -1"),
        (["gen-maze", "--n", "10", "--algorithm", "prims"], 2, "wilson"),
        (["verify", "nowhere"], 2, "no such directory"),
        (["train", "--data", "nowhere"], 2, "no such directory"),
        (["train"], 2, "gen-maze"),
        (["train", "--config", "cpuu"], 2, "did you mean cpu?"),
        (["train", "--set", "train.stepps=3"], 2, "did you mean steps?"),
        (["train", "--set", "steps"], 2, "section.field=value"),
        (["eval"], 2, "lol-data train"),
        (["eval", "--run", "nowhere"], 2, "not a run"),
        (["eval", "--protocol", "hypnosis"], 2, "prompted"),
        (["eval", "--forced-path", "--protocol", "neutral"], 2, "exclude"),
        (["solve", "nowhere.jsonl"], 2, "No such file"),
        (["solve", "--task", "chess"], 2, "no such task"),
        (["check", "--task", "chess"], 2, "no such task"),
    ],
)
def test_bad_requests_are_one_clear_line(run, tmp_path, monkeypatch, arguments, code, says):
    monkeypatch.chdir(tmp_path)
    got, out, err = run(*arguments)
    assert (got, out) == (code, "") and says in err
    assert not list(tmp_path.iterdir())


def test_a_data_set_of_another_size_or_task_is_refused(run, home, monkeypatch):
    monkeypatch.chdir(home)
    run("gen-maze", "--n", 2000, "--size", 5, "--out", "other")
    code, _, err = run("eval", "--run", "runs/maze4-cpu-1", "--data", "other")
    assert code == 2 and "5x5" in err and "4" in err


def test_a_checkpoint_that_does_not_fit(run, home, monkeypatch):
    monkeypatch.chdir(home)
    path = home / "runs/maze4-cpu-1/run.json"
    before = path.read_text()
    about = json.loads(before)
    about["config"]["model"]["width"] = 32
    path.write_text(json.dumps(about))
    code, _, err = run("eval", "--run", "runs/maze4-cpu-1")
    path.write_text(before)
    assert code == 3 and "does not fit" in err


def test_version_and_help(run):
    assert run("--version")[1].startswith("lol-data ")
    for command in ("quickstart", "gen-maze", "verify", "solve", "check", "train", "eval"):
        code, out, _ = run(command, "--help")
        assert code == 0 and "Usage" in out


@pytest.mark.slow
def test_quickstart_runs_the_whole_chain(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text("[model]\nwidth = 16\nheads = 2\nhidden = 32\n[train]\nsteps = 3\nbatch = 16\n")
    arguments = ("quickstart", "--config", "tiny.toml", "--n", 3000, "--test", 5)
    code, out, _ = run(*arguments)
    assert code == 0
    for text in ("3,000 mazes", "step 3: loss", "protocol prompted", "forced selection", "neutral", "chance: 20 %"):
        assert text in out
    assert len(list((tmp_path / "runs/quickstart/run/eval").glob("*/summary.json"))) == 4
    code, again, _ = run(*arguments)  # nothing left to make or to train
    assert code == 0 and again[again.index("protocol prompted") :].split("[")[0] in out


def test_dry_run_says_size_time_and_disk(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("gen-maze", "--n", 7_200_000, "--dry-run")
    assert code == 0 and "216 files" in out and "GB" in out and "are free" in out and "workers" in out
    code, out, _ = run("gen-maze", "--n", 500_000, "--shards", "1:3", "--dry-run", "--json")
    assert code == 0 and json.loads(out)["rows"] == 200_000 and json.loads(out)["fits"] is True
    assert not list(tmp_path.iterdir())


def test_shards_of_an_array_job(run, tmp_path):
    arguments = ("gen-maze", "--n", 3000, "--size", 4, "--shard-rows", 1000, "--out", tmp_path / "d")
    code, out, _ = run(*arguments, "--shards", "1:")
    assert code == 0 and "shards 1: of 3 are there, 2 made now" in out
    code, out, _ = run(*arguments, "--shards", ":1", "--json")
    assert code == 0 and json.loads(out)["status"] == "made" and json.loads(out)["rows"] <= 3000
    for wrong in ("1", "a:b", "2:9", "1:1"):
        code, _, err = run(*arguments, "--shards", wrong)
        assert code == 2 and err.count("\n") == 1
    code, _, err = run(*arguments, "--engine", "slurm")
    assert code == 2 and "local, ray" in err


@pytest.mark.parametrize("options", [("--algorithm", "kruskal"), ("--loops", "0.3"), ("--min-path", "9")])
def test_other_kinds_of_mazes(run, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("gen-maze", "--n", 300, "--size", 5, *options, "--json")
    assert code == 0
    name = json.loads(out)["out"]
    assert name == {"--algorithm": "datasets/maze5-kruskal", "--loops": "datasets/maze5-loops0.3"}.get(
        options[0], "datasets/maze5"
    )
    code, out, _ = run("verify", name, "--deep", "--json")
    assert code == 0 and json.loads(out)["ok"]


def test_repair(run, tmp_path):
    run("gen-maze", "--n", 3000, "--size", 4, "--shard-rows", 1000, "--out", tmp_path / "d")
    shard = next((tmp_path / "d/data").glob("train-00001-*"))
    shard.write_bytes(shard.read_bytes()[:100])
    code, out, err = run("verify", tmp_path / "d")
    assert code == 3 and "--repair" in err
    code, out, _ = run("verify", tmp_path / "d", "--repair")
    assert code == 0 and f"data/{shard.name}: made again" in out and "mended" in out
    (tmp_path / "d/data/stray").write_bytes(b"")
    code, out, err = run("verify", tmp_path / "d", "--repair", "--json")
    assert code == 3 and json.loads(out)["repaired"] == [] and "remove what does not belong" in err


def test_stats_show_export(run, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    code, out, _ = run("stats", "datasets/maze4", "--svg", tmp_path / "lengths.svg")
    assert code == 0 and "bfs" in out and "in more than one split" in out
    assert (tmp_path / "lengths.svg").read_text().startswith("<svg")
    code, out, _ = run("stats", "datasets/maze4", "--json")
    assert code == 0 and json.loads(out)["equivalence"]["across_splits"] == 0
    code, out, _ = run("show", "datasets/maze4", "--row", 17, "--strategy", "astar")
    assert code == 0 and "4x4 maze 17, astar" in out and "\x1b" not in out
    code, out, _ = run("show", "datasets/maze4", "--svg", tmp_path / "m.svg", "--html", tmp_path / "m.html")
    assert code == 0 and out == "" and "<svg" in (tmp_path / "m.svg").read_text()
    assert "<script" in (tmp_path / "m.html").read_text()
    code, _, err = run("show", "datasets/maze4", "--row", 10**6)
    assert code == 2 and "does not exist" in err
    code, _, err = run("show", "datasets/maze4", "--svg", tmp_path / "absent" / "m.svg")
    assert code == 1 and "cannot be written" in err
    code, _, _ = run("export", "datasets/maze4", "--format", "jsonl", "--out", tmp_path / "x.jsonl", "--limit", 20)
    assert code == 0
    code, out, _ = run("check", tmp_path / "x.jsonl")
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(verdicts) == 100 and all(verdict["joint"] for verdict in verdicts)
    code, _, err = run("export", "datasets/maze4", "--format", "text", "--out", tmp_path / "x.jsonl")
    assert code == 4 and "is there already" in err


def test_a_rival_without_a_router(run, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    assert run("train", "--config", "mod-moe", "--out", tmp_path / "run", *TINY, "--set=model.blocks=2")[0] == 0
    code, out, _ = run("eval", "--run", tmp_path / "run", "--protocol", "all", "--n", 5, "--json")
    assert code == 0
    assert [each["protocol"] for each in json.loads(out)["protocols"]] == ["prompted", "neutral"]
    for command in (["eval", "--forced-path", "--run"], ["intervene", "--run"], ["diagnose"]):
        code, _, err = run(*command, tmp_path / "run")
        assert code == 2 and "its path is fixed" in err
    code, out, _ = run("report", tmp_path / "run")
    assert code == 0 and "report.html" in out
