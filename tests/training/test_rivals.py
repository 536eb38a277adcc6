"""Every architecture in the one trainer: it learns, resumes bit for bit, keeps its experts busy, says what it takes."""

import shutil
from pathlib import Path

import pytest
import torch

from lol_data.errors import UsageError
from lol_data.model.depths import DepthRouter
from lol_data.model.experts import Experts
from lol_data.training.balance import balance_experts
from lol_data.training.config import CONFIG_DIR, load_config
from lol_data.training.loop import train_run
from lol_data.training.optimizer import router_parameters

from .common import IDENTITY, MODEL, make_trainer, metrics, one_thread, silent, weights  # noqa: F401

NAMES = sorted(path.stem for path in CONFIG_DIR.glob("*.toml") if "width = 128" in path.read_text())
RIVALS = [name for name in NAMES if "cpu" not in name]


def settings(name) -> dict:
    """What a configuration has of its own, on the tests' small model."""
    config = load_config(name)
    own = {key: value for key, value in config.model.items() if key not in MODEL}
    if config.model["blocks"] < config.model["depth"]:
        own["blocks"] = 2
    return {"model": {"depth": 4, **own}, "capacity_warmup": config.train.capacity_warmup}


def test_all_are_there():
    assert len(RIVALS) == 13 and "mod-moe" in RIVALS and "quickstart" in RIVALS


@pytest.mark.parametrize("name", RIVALS)
def test_a_run_that_is_stopped_ends_as_an_unbroken_one(name, tmp_path):
    def trainer():
        return make_trainer(**settings(name), steps=6, checkpoint_every=3, validate_every=3)

    unbroken, run = tmp_path / "unbroken", tmp_path / "run"
    train_run(trainer(), unbroken, IDENTITY, resume=False, say=silent)
    shutil.copytree(unbroken, run)
    shutil.rmtree(run / "checkpoints" / "step-00000006")
    train_run(trainer(), run, IDENTITY, resume=True, say=silent)
    assert metrics(run) == metrics(unbroken)
    assert weights(run, 6) == weights(unbroken, 6)


@pytest.mark.parametrize("name", RIVALS)
def test_steps_lead_somewhere(name):
    trainer = make_trainer(**settings(name), steps=60, batch=16, micro_batch=16, problems=4)
    lines = [trainer.run_step() for _ in range(60)]
    assert lines[-1]["loss"] < 0.65 * lines[0]["loss"]


@pytest.mark.parametrize("name", ["mod", "mod-moe"])
def test_a_mixture_of_depths_says_what_it_takes_and_foretells(name):
    trainer = make_trainer(**settings(name), steps=20, growth=0.0, guess_weight=1.0)
    lines = [trainer.run_step() for _ in range(20)]
    assert [line["taken"] for line in lines[:2]] == [1.0, 1.0]  # the warm-up
    assert 0.5 <= lines[-1]["taken"] < 0.53  # ceil
    assert sum(lines[-1]["depths_taken"]) == pytest.approx(1, abs=0.001) and len(lines[-1]["depths_taken"]) == 3
    found = trainer.validate()
    assert set(found) >= {"validation_taken", "validation_foretold", "validation_depths_taken"}
    assert lines[0]["flops"] / lines[0]["tokens"] > lines[-1]["flops"] / (lines[-1]["tokens"] - lines[-2]["tokens"])


def test_terms_of_the_loss_move_what_they_are_about():
    """Balance brings the mean probability to the capacity, entropy the probabilities to a half."""
    shape = {**settings("mod")["model"], "capacity": 0.25, "capacity_every": 1}
    for weights_of, wanted in (({"depth_balance_weight": 100.0}, 0.25), ({"depth_entropy_weight": 100.0}, 0.5)):
        trainer = make_trainer(shape, steps=40, router_rate=0.05, clip=1e9, **weights_of)
        for module in trainer.model.modules():
            if isinstance(module, DepthRouter):
                module.vector.data.normal_(generator=torch.Generator().manual_seed(0))
        for _ in range(40):
            trainer.run_step()
        trainer.model.eval()
        batch = trainer.sequences.gather(torch.arange(20).numpy())
        _, choices = trainer.model(batch.tokens, lengths=batch.lengths)
        mean = torch.cat([choice.taken.scores.sigmoid() for choice in choices]).mean().item()
        assert mean == pytest.approx(wanted, abs=0.05)


def test_routers_have_a_clip_of_their_own():
    norms = []
    for clip in (0.0, 1e-6):
        trainer = make_trainer(**settings("mod"), router_clip=clip, clip=1e9, steps=4)
        trainer.optimizers = []
        trainer.run_step()
        own = [p.grad.flatten() for p in router_parameters(trainer.model) if p.grad is not None]
        norms.append(torch.cat(own).norm().item())
    assert norms[0] > 1e-5 > 1.1e-6 > norms[1] > 0


def test_the_sign_rule_evens_experts_out():
    trainer = make_trainer(**settings("moe"), steps=300, expert_bias_rate=0.002, bias_fade=0.0)
    experts = [module for module in trainer.model.modules() if isinstance(module, Experts)]
    for module in experts:
        module.router.data[0] += 3 * module.router.data.abs().max()
    first = trainer.run_step()
    for _ in range(120):
        last = trainer.run_step()
    assert last["most_expert"] - last["least_expert"] < first["most_expert"] - first["least_expert"]
    assert not any(module.counts.any() for module in experts)
    assert balance_experts(make_trainer().model, 0.1) == {}


def test_a_backward_depth_needs_a_loop():
    with pytest.raises(UsageError, match="backward_depth"):
        make_trainer(**settings("full"), backward_depth=2)
    trainer = make_trainer(**settings("loop-2x3"), backward_depth=2)
    line, whole = trainer.run_step(), make_trainer(**settings("loop-2x3")).run_step()
    assert trainer.model.cut == 2
    assert line["flops"] < whole["flops"]
    assert line["loss"] == pytest.approx(whole["loss"], abs=1e-5)


@pytest.mark.parametrize("balance", ["bias", "auxiliary", "none"])
def test_without_a_router_there_is_nothing_to_balance(balance):
    trainer = make_trainer(**settings("shifted"), balance=balance)
    lines = [trainer.run_step() for _ in range(2)]
    assert lines == [line | {"seconds": own["seconds"]} for line, own in zip(plain_lines(), lines, strict=True)]
    assert not {"gate", "loads", "auxiliary_loss"} & set(lines[0])
    assert not trainer.model.router.bias.any()


def plain_lines():
    trainer = make_trainer(**settings("shifted"), balance="none")
    return [trainer.run_step() for _ in range(2)]


def test_configurations_say_what_they_are():
    for name in RIVALS:
        text = Path(CONFIG_DIR / f"{name}.toml").read_text()
        assert text.startswith("# ") and "train --print-config" in text
