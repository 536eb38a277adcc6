"""Two processes under torchrun train as one does: losses, loads, weights, refusals, interrupts, resume."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lol_data.training.run_folder import load_trained

from . import common
from .common import metrics

pytestmark = pytest.mark.slow


def command(processes: int, run: Path, *arguments: str) -> list[str]:
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else []
    return [sys.executable, *start, common.__file__, str(run), *arguments]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def train(processes: int, run: Path, **settings) -> subprocess.CompletedProcess:
    wanted = command(processes, run, json.dumps(settings))
    return subprocess.run(wanted, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def tensors(run: Path, step: int) -> dict[str, torch.Tensor]:
    return load_file(run / "checkpoints" / f"step-{step:08d}" / "model.safetensors")


def test_two_micro_batches_on_two_processes_are_one_process_bit_for_bit(tmp_path):
    # A sum of two does not depend on its order, and the processes draw the same noise as one would.
    settings = {"steps": 8, "batch": 8, "micro_batch": 4, "growth": 0.5, "bias_rate": 0.01, "validate_every": 4}
    for processes in (1, 2):
        assert train(processes, tmp_path / str(processes), **settings).returncode == 0
    assert metrics(tmp_path / "2") == metrics(tmp_path / "1")
    one, two = tensors(tmp_path / "1", 8), tensors(tmp_path / "2", 8)
    assert all(one[name].equal(two[name]) for name in one)
    model, folder = load_trained(tmp_path / "2", common.sequences(1).layout, torch.device("cpu"), common.silent)
    assert folder.name == "step-00000008" and not model.training


@pytest.mark.parametrize("balance", ["bias", "auxiliary"])
def test_more_micro_batches_differ_by_rounding_only(tmp_path, balance):
    settings = {"steps": 8, "batch": 18, "micro_batch": 3, "balance": balance, "auxiliary_weight": 0.1}
    for processes in (1, 2):
        assert train(processes, tmp_path / str(processes), **settings).returncode == 0
    exact = ("step", "depth", "flops", "tokens", "padding", "loads", "agreement", "bias_range")
    for one, two in zip(*(metrics(tmp_path / name) for name in "12"), strict=True):
        assert [one[name] for name in exact] == [two[name] for name in exact]
        # AdamW's first steps go by the sign of a gradient, however small: rounding does not stay rounding.
        assert two["loss"] == pytest.approx(one["loss"], abs=2e-6 if one["step"] == 1 else 3e-4)


def test_a_process_without_micro_batches_and_blocks_that_nobody_uses(tmp_path):
    # One micro-batch: the second process has no gradient at all. A large bias leaves blocks idle: they must not move.
    settings = {"steps": 6, "batch": 4, "micro_batch": 4, "idle": True, "weight_decay": 0.1, "checkpoint_every": 1}
    for processes in (1, 2):
        assert train(processes, tmp_path / str(processes), **settings, keep=9).returncode == 0
    assert metrics(tmp_path / "1") == metrics(tmp_path / "2")
    first, last = tensors(tmp_path / "2", 1), tensors(tmp_path / "2", 6)
    moved = {name.split(".")[1] for name in first if name.startswith("library") and not first[name].equal(last[name])}
    assert moved == {"1"}


def test_only_the_first_process_speaks_and_refusals_are_one_line(tmp_path):
    done = train(2, tmp_path / "run", steps=2)
    assert done.stdout.count("done") == 1
    again = train(2, tmp_path / "run", steps=2)
    assert again.returncode != 0
    assert again.stderr.count("holds a run already") == 1


def test_an_interrupt_saves_and_a_resumed_run_goes_on(tmp_path):
    settings = {"steps": 150, "checkpoint_every": 1000}
    child = subprocess.Popen(
        command(2, tmp_path / "run", json.dumps(settings)),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 120
    path = tmp_path / "run" / "run.json"
    while not path.exists():
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=120)
    assert child.returncode != 0
    assert "stopped behind step" in said and said.count("--resume") == 1
    lines = metrics(tmp_path / "run")
    assert 0 < len(lines) < 150
    assert train(2, tmp_path / "run", **settings, resume=True).returncode == 0
    assert train(1, tmp_path / "whole", **settings).returncode == 0
    assert metrics(tmp_path / "run") == metrics(tmp_path / "whole")
