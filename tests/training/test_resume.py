"""A run that is stopped, killed or damaged ends where an unbroken one does; a run that is another one is refused."""

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lol_data.errors import DamageError, RefusedError, UsageError
from lol_data.model.lol import LibraryOfLayers
from lol_data.shards.lock import directory_lock
from lol_data.tokenization.maze import MazeLayout
from lol_data.training.checkpoint import load_model, newest_checkpoint
from lol_data.training.loop import train_run
from lol_data.training.run_folder import load_trained, read_run

from .common import IDENTITY, make_trainer, metrics, silent, weights


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    """A run of 12 steps with checkpoints at 6 and 12."""
    run = tmp_path_factory.mktemp("unbroken") / "run"
    train_run(make_trainer(), run, IDENTITY, resume=False, say=silent)
    return run


@pytest.fixture
def stopped(unbroken, tmp_path) -> Path:
    """The same run as a crash before the checkpoint at 12 leaves it."""
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    shutil.rmtree(run / "checkpoints" / "step-00000012")
    return run


def resume(run, **changes):
    said = []
    line = train_run(make_trainer(**changes), run, IDENTITY, resume=True, say=said.append)
    return line, said


def test_a_run_from_before_a_setting_existed_goes_on(stopped, unbroken):
    about = json.loads((stopped / "run.json").read_text())
    del about["config"]["train"]["kernels"]
    (stopped / "run.json").write_text(json.dumps(about))
    resume(stopped)
    assert_same_end(stopped, unbroken)


def assert_same_end(run, unbroken):
    assert metrics(run) == metrics(unbroken)
    assert weights(run, 12) == weights(unbroken, 12)


def test_the_run_folder(unbroken):
    assert sorted(path.name for path in unbroken.iterdir()) == [".lock", "checkpoints", "metrics.jsonl", "run.json"]
    assert sorted(path.name for path in (unbroken / "checkpoints").iterdir()) == ["step-00000006", "step-00000012"]
    lines = metrics(unbroken)
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert [line["step"] for line in lines if "validation_loss" in line] == [6, 12]
    about = read_run(unbroken)
    assert about["data"] == IDENTITY
    assert about["config"] == make_trainer().config.to_json()
    assert about["machine"]["matmul"] == "float32"


def test_training_again_from_the_same_seed_gives_the_same_bytes(unbroken, tmp_path):
    train_run(make_trainer(), tmp_path / "run", IDENTITY, resume=False, say=silent)
    assert_same_end(tmp_path / "run", unbroken)


def test_another_seed_gives_another_run(unbroken, tmp_path):
    train_run(make_trainer(seed=1), tmp_path / "run", IDENTITY, resume=False, say=silent)
    assert metrics(tmp_path / "run") != metrics(unbroken)


def test_six_steps_and_six_more_are_twelve(stopped, unbroken):
    line, said = resume(stopped)
    assert line["step"] == 12
    assert said == [f"{stopped}: going on from step 6 of 12"]
    assert_same_end(stopped, unbroken)


def test_metrics_behind_the_checkpoint_are_cut_and_a_torn_line_does_not_hurt(stopped, unbroken):
    path = stopped / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    resume(stopped)
    assert_same_end(stopped, unbroken)


@pytest.mark.parametrize("at", [1, 8])
def test_an_interrupt_lets_the_step_end_and_saves_it(unbroken, tmp_path, at):
    trainer, run = make_trainer(), tmp_path / "run"
    adam = trainer.optimizers[1]
    update = adam.step

    def interrupted_update():  # Muon has moved the blocks; the step is half done
        if trainer.step == at - 1:
            signal.raise_signal(signal.SIGINT)
        update()

    adam.step = interrupted_update
    with pytest.raises(KeyboardInterrupt):
        train_run(trainer, run, IDENTITY, resume=False, say=silent)
    assert newest_checkpoint(run).name == f"step-{at:08d}"
    assert len(metrics(run)) == at
    resume(run)
    assert_same_end(run, unbroken)


def test_a_run_without_a_checkpoint_yet_starts_again(stopped, unbroken):
    shutil.rmtree(stopped / "checkpoints")
    _, said = resume(stopped)
    assert said == [f"{stopped}: going on from step 0 of 12"]
    assert_same_end(stopped, unbroken)


def test_resuming_a_finished_run_changes_nothing(unbroken, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    line, _ = resume(run)
    assert line["step"] == 12
    assert_same_end(run, unbroken)


def truncate(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-7])


def flip(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)


def remove(folder, name):
    (folder / name).unlink()


@pytest.mark.parametrize("harm", [truncate, flip, remove])
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "DONE"])
def test_a_damaged_checkpoint_is_passed_over_with_a_message(unbroken, tmp_path, harm, name):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    harm(run / "checkpoints" / "step-00000012", name)
    said = []
    assert newest_checkpoint(run, said.append).name == "step-00000006"
    assert len(said) == 1
    assert "step-00000012" in said[0]
    # A damaged DONE can read as another hash of some file.
    assert ("is" if name == "DONE" else f"{name} is") + " damaged or missing" in said[0]


def test_training_goes_on_behind_a_damaged_checkpoint(unbroken, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    truncate(run / "checkpoints" / "step-00000012", "model.safetensors")
    _, said = resume(run)
    assert "model.safetensors is damaged" in said[0]
    assert said[1] == f"{run}: going on from step 6 of 12"
    assert_same_end(run, unbroken)


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    train_run(make_trainer(checkpoint_every=2, keep=3), tmp_path / "run", IDENTITY, resume=False, say=silent)
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == ["step-00000008", "step-00000010", "step-00000012"]


def everything(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_run_is_not_overwritten_without_resume(stopped):
    before = everything(stopped)
    with pytest.raises(RefusedError, match="holds a run already; add --resume"):
        train_run(make_trainer(), stopped, IDENTITY, resume=False, say=silent)
    assert everything(stopped) == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    for again in (False, True):
        with pytest.raises(RefusedError, match="not empty and not a run"):
            train_run(make_trainer(), tmp_path, IDENTITY, again, silent)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_changed_settings_or_data_are_refused_with_the_difference(stopped):
    before = everything(stopped)
    with pytest.raises(RefusedError, match=r"config changed: train.batch 8 -> 9; train.seed 0 -> 4; choose another"):
        resume(stopped, batch=9, seed=4)
    with pytest.raises(RefusedError, match=r"config changed: model.width 16 -> 32"):
        resume(stopped, model={"width": 32})
    with pytest.raises(RefusedError, match=r"data changed: hash '0123' -> '4567'"):
        train_run(make_trainer(), stopped, {**IDENTITY, "hash": "4567"}, resume=True, say=silent)
    assert everything(stopped) == before


def test_a_run_may_become_longer_or_shorter_but_not_shorter_than_it_is(stopped):
    at = make_trainer()
    at.restore(newest_checkpoint(stopped))
    at.train = replace(at.train, steps=9)
    rates = [at.run_step()["rate"] for _ in range(at.step, 9)]
    with pytest.raises(UsageError, match="is at step 6 already; set train"):
        resume(stopped, steps=6)
    line, said = resume(stopped, steps=9)
    assert line["step"] == 9 and said == [f"{stopped}: going on from step 6 of 9, no longer of 12"]
    lines = [json.loads(line) for line in (stopped / "metrics.jsonl").read_text().splitlines()]
    assert [line["rate"] for line in lines[6:]] == rates
    about = json.loads((stopped / "run.json").read_text())
    assert about["config"]["train"]["steps"] == 9 and about["lengths"] == [[6, 12]]
    resume(stopped, steps=11)
    about = json.loads((stopped / "run.json").read_text())
    assert about["config"]["train"]["steps"] == 11 and about["lengths"] == [[6, 12], [9, 9]]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_run_file_is_one_line_of_damage(stopped, text):
    (stopped / "run.json").write_text(text)
    with pytest.raises(DamageError, match=r"run\.json"):
        resume(stopped)


def test_a_checkpoint_of_another_model_is_damage(unbroken):
    folder = newest_checkpoint(unbroken)
    for other in ({"width": 32}, {"blocks": 4}, {"depth": 3}):
        with pytest.raises(DamageError, match="does not fit this model") as caught:
            load_model(folder, make_trainer(other).model)
        assert "\n" not in str(caught.value)


def test_a_file_that_is_no_checkpoint_is_damage(unbroken, tmp_path):
    folder = tmp_path / "step"
    shutil.copytree(newest_checkpoint(unbroken), folder)
    truncate(folder, "model.safetensors")
    with pytest.raises(DamageError):
        load_model(folder, make_trainer().model)


def test_the_trained_model_is_loaded_as_it_was_saved(unbroken):
    trainer = make_trainer()
    trainer.restore(newest_checkpoint(unbroken))
    model, folder = load_trained(unbroken, trainer.sequences.layout, torch.device("cpu"), silent)
    assert isinstance(model, LibraryOfLayers)
    assert not model.training
    assert folder.name == "step-00000012"
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_what_is_no_trained_run_is_refused(stopped, tmp_path):
    with pytest.raises(UsageError, match="is not a run"):
        load_trained(tmp_path / "nothing", MazeLayout(4), torch.device("cpu"))
    shutil.rmtree(stopped / "checkpoints")
    with pytest.raises(UsageError, match="no complete checkpoint yet"):
        load_trained(stopped, MazeLayout(4), torch.device("cpu"))


def test_a_second_writer_is_refused(stopped):
    with directory_lock(stopped / ".lock"), pytest.raises(RefusedError, match="is writing here"):
        resume(stopped)


def test_how_a_run_was_computed_is_kept():
    machine = {"device": "cpu", "matmul": "bfloat16", "compiled": False}
    assert make_trainer(machine=machine).model.matmul_dtype == torch.bfloat16
    assert make_trainer(machine={**machine, "device": "cuda"}).machine["device"] == "cpu"


def test_pruning_keeps_the_newest_good_checkpoints(stopped):
    (stopped / "checkpoints" / "step-00000009").mkdir()  # torn: no DONE
    (stopped / "checkpoints" / ".draft-00000010").mkdir()
    resume(stopped)
    assert sorted(path.name for path in (stopped / "checkpoints").iterdir()) == ["step-00000006", "step-00000012"]
