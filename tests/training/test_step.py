"""One optimiser step: its gradient, what it leaves alone, what it reports; and that steps lead somewhere."""

import math

import pytest
import torch

from lol_data.errors import LolDataError
from lol_data.training.data import step_micro_batches
from lol_data.training.step import suffix_loss

from .common import assert_idle_blocks_stay, make_trainer


class Recorder:
    """An optimiser that only looks."""

    param_groups = ()

    def __init__(self, model):
        self.model = model

    def step(self):
        self.gradients = {name: p.grad.clone() for name, p in self.model.named_parameters() if p.grad is not None}

    def zero_grad(self, set_to_none):
        self.model.zero_grad(set_to_none)


def gradients(micro_batch):
    trainer = make_trainer({"noise": 0.0}, batch=16, micro_batch=micro_batch, clip=1e9)
    recorder = Recorder(trainer.model)
    trainer.optimizers = [recorder]
    line = trainer.run_step()
    return recorder.gradients, line


@pytest.mark.parametrize("micro_batch", [1, 5, 8])
def test_micro_batches_leave_loss_and_gradient_as_they_are(micro_batch):
    whole, line = gradients(16)
    parts, parts_line = gradients(micro_batch)
    assert parts.keys() == whole.keys()
    for name in whole:
        torch.testing.assert_close(parts[name], whole[name], rtol=1e-4, atol=1e-6)
    assert parts_line["loss"] == pytest.approx(line["loss"], abs=2e-6)
    for name in ("load_entropy", "least_load", "most_load", "agreement", "tokens"):
        assert parts_line[name] == line[name]
    assert parts_line["attention_padding"] < line["attention_padding"]
    assert line["padding"] < 0.01


def test_the_loss_covers_every_suffix_token_behind_trace_and_no_padding():
    logits = torch.randn(2, 5, 30, generator=torch.Generator().manual_seed(0))
    tokens = torch.tensor([[1, 9, 3, 27, 28, 4, 2], [1, 9, 3, 4, 2, 0, 0]])  # a prompt of two, <trace>, ...
    expected = -sum(
        logits[row, k].log_softmax(-1)[token].item()
        for row, wanted in enumerate(([27, 28, 4, 2], [4, 2]))
        for k, token in enumerate(wanted)
    )
    assert suffix_loss(logits, tokens, prompt=2).item() == pytest.approx(expected, rel=1e-6)


def test_the_line_of_metrics():
    trainer = make_trainer(growth=1.0)
    train = trainer.train
    parts = step_micro_batches(trainer.sequences, train, 0)
    tokens = sum(int(trainer.sequences.lengths(part).sum()) for part in parts)
    line = trainer.run_step()
    assert set(line) == {
        *("step", "loss", "depth", "flops", "rate", "gradient_norm", "tokens", "seconds", "padding"),
        "attention_padding",
        *("load_entropy", "least_load", "most_load", "loads", "gate", "gates_closed", "gates_open"),
        *("agreement", "bias_range", "probability_range"),
    }
    assert (line["step"], line["depth"], line["rate"], line["tokens"]) == (1, 1, 0.5, tokens)
    assert line["loss"] == pytest.approx(math.log(trainer.model.config.vocabulary), rel=0.1)  # nothing learnt yet
    assert 0 <= line["least_load"] <= 1 / 3 <= line["most_load"] <= 1
    assert 0 <= line["load_entropy"] <= 1
    assert line["bias_range"] <= 2 * trainer.train.bias_rate + 1e-9
    assert trainer.run_step()["tokens"] > tokens
    assert trainer.step == 2


def test_a_block_that_no_window_takes_is_not_moved():
    trainer = make_trainer({"noise": 0.0}, weight_decay=0.1, steps=20)
    assert_idle_blocks_stay(trainer, 3)


def test_the_bias_moves_by_the_counts_of_all_depths():
    trainer = make_trainer({"noise": 0.0}, steps=20, bias_fade=0.0)
    trainer.model.router.bias.copy_(torch.tensor([0.0, 5.0, -5.0]))
    before = trainer.model.router.bias.clone()
    line = trainer.run_step()
    step = trainer.train.bias_rate
    assert (line["least_load"], line["most_load"]) == (0, 1)
    moved = torch.tensor([step, -step, step]) - step / 3
    torch.testing.assert_close(trainer.model.router.bias - before, moved, rtol=0, atol=1e-6)


def test_an_infinite_loss_stops_the_run_before_the_weights_are_touched():
    trainer = make_trainer()
    with torch.no_grad():
        trainer.model.head[0] = math.inf
    before = trainer.model.library[0].qkv.clone()
    with pytest.raises(LolDataError, match="step 1: the loss is nan"):
        trainer.run_step()
    assert torch.equal(trainer.model.library[0].qkv, before)


def test_validation_changes_nothing():
    trainers = [make_trainer(), make_trainer()]
    losses = []
    for _ in range(3):
        losses.append([trainer.run_step()["loss"] for trainer in trainers])
        assert trainers[0].validation_loss() == trainers[0].validation_loss()
    assert all(one == other for one, other in losses)
    for one, other in zip(*(trainer.model.parameters() for trainer in trainers), strict=True):
        assert torch.equal(one, other)


def test_bf16_products_take_the_weights_as_they_are_now():
    trainer, fresh = make_trainer(precision="bf16"), make_trainer(precision="bf16")
    for _ in range(3):
        trainer.validation_loss()  # weights are converted here, and moved by the step
        trainer.run_step()
    fresh.model.load_state_dict(trainer.model.state_dict())
    assert fresh.validation_loss() == trainer.validation_loss()
    assert fresh.validation_loss() != make_trainer(precision="bf16").validation_loss()


def test_a_few_problems_are_learnt():
    trainer = make_trainer({"width": 32}, problems=3, size=3, steps=60, batch=15, micro_batch=15, adam_rate=0.03)
    losses = [trainer.run_step()["loss"] for _ in range(60)]
    assert sum(losses[-5:]) / 5 < 0.35 * losses[0]


def test_every_parameter_has_one_rate_and_the_router_its_own():
    trainer = make_trainer(muon_rate=0.5, adam_rate=0.25, router_rate=0.125)
    names = {id(parameter): name for name, parameter in trainer.model.named_parameters()}
    rates = {}
    for optimizer in trainer.optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                assert names[id(parameter)] not in rates
                rates[names[id(parameter)]] = group["peak"]
    assert rates.keys() == set(names.values())
    for name, rate in rates.items():
        in_block = name.rpartition(".")[2] in ("qkv", "out", "up", "down")
        assert rate == (0.5 if in_block else 0.125 if name == "router.weight" else 0.25)
