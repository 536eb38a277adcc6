"""What the tests of the trainer share: tiny data, tiny models. As a script: train in a folder, to be killed."""

import json
import sys
from pathlib import Path

import pytest
import torch

from lol_data import distributed
from lol_data.errors import LolDataError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.training.config import RunConfig
from lol_data.training.data import Sequences
from lol_data.training.loop import Trainer, train_run

MODEL = {"field": 2, "width": 16, "heads": 2, "hidden": 24, "prelude": 1, "blocks": 3, "depth": 2, "coda": 1}
MODEL |= {"window": 8, "shift": 4}
TRAIN = {"steps": 12, "batch": 8, "micro_batch": 4, "warmup": 2, "checkpoint_every": 6, "validate_every": 6}
TRAIN |= {"precision": "fp32", "compile": "no"}
IDENTITY = {"path": "a data set", "hash": "0123"}


def sequences(problems, size=4, seed=0) -> Sequences:
    return Sequences.of(generate_mazes(MazeSettings(size=size), seed, 0, problems), MODEL["field"])


def make_config(model=None, **train) -> RunConfig:
    return RunConfig.from_json({"model": {**MODEL, **(model or {})}, "train": {**TRAIN, **train}})


def make_trainer(model=None, problems=12, size=4, machine=None, **train) -> Trainer:
    config = make_config(model, **train)
    return Trainer(config, sequences(problems, size), sequences(3, size, seed=9), torch.device("cpu"), machine)


def metrics(run: Path) -> list[dict]:
    """The metrics of a run, without the time they took."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def weights(run: Path, step: int) -> dict[str, bytes]:
    """The tensors of a checkpoint as stored: parameters, selection bias, optimiser states."""
    folder = run / "checkpoints" / f"step-{step:08d}"
    return {name: (folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors", "state.json")}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """For modules that import it: tiny models gain nothing by threads, and lose much where other programs run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def silent(_):
    pass


def main(run: Path, resume: bool = False, idle: bool = False, **settings) -> None:
    """Train in a folder, alone or under torchrun. idle: a bias that keeps all windows at block 1."""
    with distributed.processes():
        trainer = make_trainer(**settings)
        if idle:
            trainer.model.router.bias.copy_(torch.tensor([0.0, 5.0, -5.0]))
        train_run(trainer, run, IDENTITY, resume, say=print if distributed.is_first() else silent)
    print("done")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), **json.loads(sys.argv[2]))
    except LolDataError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def assert_idle_blocks_stay(trainer, steps):
    """Blocks 0 and 2 of three, which the bias keeps from being chosen, do not move in so many steps; all else does."""
    trainer.run_step()  # every block may have momentum by now
    trainer.model.router.bias.copy_(torch.tensor([0.0, 5.0, -5.0]))
    before = {name: parameter.clone() for name, parameter in trainer.model.named_parameters()}
    for _ in range(steps):
        trainer.run_step()
    for name, parameter in trainer.model.named_parameters():
        idle = name.startswith(("library.0.", "library.2."))
        assert torch.equal(parameter, before[name]) == idle, name
