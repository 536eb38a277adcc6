"""A run that dies at any moment, and goes on, is the run that never died: ids, losses, loads, weights, bit for bit."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from lol_data.errors import LolDataError
from lol_data.training import checkpoint
from lol_data.training.checkpoint import newest_checkpoint
from lol_data.training.loop import train_run

from . import common
from .common import IDENTITY, make_trainer, metrics, one_thread, silent, weights  # noqa: F401

# Growth through three depths, and several passes over 12 problems x 5 strategies: both cross many checkpoints.
SETTINGS = {"steps": 90, "checkpoint_every": 3, "growth": 0.9, "bias_rate": 0.01, "validate_every": 10, "keep": 2}
SHAPE = {"depth": 3}
# Sums are taken in another order by another number of threads.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(run: Path) -> subprocess.Popen:
    arguments = json.dumps({**SETTINGS, "model": SHAPE, "resume": (run / "run.json").exists()})
    command = [sys.executable, common.__file__, str(run), arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True)


def newest_step(run: Path) -> int:
    steps = [int(path.name[5:]) for path in run.glob("checkpoints/step-*")]
    return max(steps, default=0)


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert start(whole).wait(timeout=300) == 0
    moments = random.Random(0)
    deaths = 0
    for goal in (1, 20, 40, 60):  # the next death comes some time behind this step
        child = start(killed)
        deadline = time.monotonic() + 200
        while newest_step(killed) < goal and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.3))
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            deaths += 1
    assert deaths >= 2, "the run was too fast to be killed"
    last = start(killed)
    said, _ = last.communicate(timeout=300)
    assert last.returncode == 0
    assert 0 < int(re.search(r"going on from step (\d+) of 90", said)[1]) < 90
    lines = metrics(killed)
    assert lines == metrics(whole)
    assert {line["depth"] for line in lines} == {1, 2, 3}
    assert weights(killed, 90) == weights(whole, 90)
    assert json.loads((killed / "run.json").read_text()) == json.loads((whole / "run.json").read_text())


class Death(BaseException):
    """Not an error that anything catches."""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("unbroken") / "run"
    train_run(make_trainer(checkpoint_every=4), run, IDENTITY, resume=False, say=silent)
    return run


def die_at(monkeypatch, moment):
    """Count what a save does to the disk; die instead of the moment-th, or half through it. Returns the counter."""
    done = [0]

    def mortal(function, half):
        def wrapped(first, *rest, **options):
            done[0] += 1
            if done[0] == moment:
                half(first, rest)
                raise Death
            return function(first, *rest, **options)

        return wrapped

    nothing = lambda first, rest: None  # noqa: E731
    monkeypatch.setattr(
        checkpoint, "save_file", mortal(checkpoint.save_file, lambda _, rest: rest[0].write_bytes(b"x"))
    )
    monkeypatch.setattr(checkpoint, "sync", mortal(checkpoint.sync, nothing))
    monkeypatch.setattr(checkpoint.shutil, "rmtree", mortal(shutil.rmtree, half_removed))
    monkeypatch.setattr(Path, "rename", mortal(Path.rename, nothing))
    return done


def half_removed(folder, rest):
    for name in ("DONE", "model.safetensors"):
        (folder / name).unlink(missing_ok=True)


def test_dying_at_any_point_of_a_save_loses_no_more_than_that_checkpoint(unbroken, tmp_path):
    moment, dead = 0, True
    while dead:
        moment += 1
        run = tmp_path / str(moment)
        shutil.copytree(unbroken, run)
        shutil.rmtree(run / "checkpoints" / "step-00000012")
        trainer = make_trainer(checkpoint_every=4)
        trainer.restore(newest_checkpoint(run))
        for _ in range(4):
            trainer.run_step()
        with pytest.MonkeyPatch.context() as patch:
            count = die_at(patch, moment)
            try:
                trainer.save(run)
                dead = False
            except Death:
                pass
        assert newest_checkpoint(run).name in ("step-00000008", "step-00000012")
        if moment % 3 == 0:  # and the run goes on from there
            train_run(make_trainer(checkpoint_every=4), run, IDENTITY, resume=True, say=silent)
            assert metrics(run) == metrics(unbroken)
            assert weights(run, 12) == weights(unbroken, 12)
            kept = sorted(path.name for path in (run / "checkpoints").iterdir())
            assert kept == ["step-00000008", "step-00000012"]
    assert count[0] >= 10  # all of it was gone through


def test_a_full_disk_is_one_line_and_leaves_the_checkpoint_before(unbroken, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)

    def full(tensors, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    trainer = make_trainer(checkpoint_every=4)
    trainer.restore(newest_checkpoint(run))
    with pytest.raises(LolDataError, match=r"checkpoint of step 12 cannot be written: .*No space left") as caught:
        trainer.save(run)
    assert "\n" not in str(caught.value)
    assert newest_checkpoint(run).name == "step-00000012"


def test_a_loss_that_is_no_number_stops_with_its_batch_and_keeps_the_last_good_checkpoint(tmp_path):
    run, trainer = tmp_path / "run", make_trainer(checkpoint_every=4)
    update = trainer.optimizers[1].step

    def poison():
        update()
        if trainer.step == 5:  # behind step 6 the weights are no numbers any more
            with torch.no_grad():
                trainer.model.head[:] = float("nan")

    trainer.optimizers[1].step = poison
    with pytest.raises(LolDataError, match=r"step 7: the loss is nan; .* samples \d+, .*diverged\.json") as caught:
        train_run(trainer, run, IDENTITY, resume=False, say=silent)
    assert "\n" not in str(caught.value)
    kept = json.loads((run / "diverged.json").read_text())
    assert kept["step"] == 7 and len(kept["samples"]) == 8
    assert newest_checkpoint(run).name == "step-00000004"
    assert [line["step"] for line in metrics(run)] == [1, 2, 3, 4, 5, 6]
