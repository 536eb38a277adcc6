"""Balancing: both rules go by the loads of a whole step, however it was cut; the loss term by brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.model.routing import Choice
from lol_data.model.windows import Windows
from lol_data.training.balance import auxiliary_loss, count_windows

from .common import make_trainer, one_thread  # noqa: F401

WINDOWS = Windows(5, 4, 2)


@given(st.lists(st.integers(6, 30), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_the_loss_term_is_that_of_a_plain_loop(lengths, depth, seed):
    longest = max(lengths) + 3
    generator = torch.Generator().manual_seed(seed)
    load = torch.rand(3, generator=generator).softmax(0)
    choices, expected, windows = [], 0.0, 0
    for level in range(1, depth + 1):
        slices = WINDOWS.slices(longest, level)
        p = torch.randn(len(lengths), len(slices), 3, generator=generator).softmax(-1)
        choices.append(Choice(p.argmax(-1), p.amax(-1), p))
        for row, length in enumerate(lengths):
            for k, (start, _) in enumerate(slices):
                if start < length:
                    windows += 1
                    expected += 3 * sum((load * p[row, k]).tolist())
    got = auxiliary_loss(choices, load, WINDOWS, longest, torch.tensor(lengths))
    assert got.item() == pytest.approx(expected, rel=1e-5)
    assert count_windows(WINDOWS, np.array(lengths), depth) == windows


def run(steps, **changes):
    trainer = make_trainer({"noise": 0.0}, batch=16, steps=steps, **changes)
    lines = [trainer.run_step() for _ in range(steps)]
    return trainer, lines


@pytest.mark.parametrize("balance", ["bias", "auxiliary", "none"])
def test_the_update_does_not_depend_on_the_micro_batches(balance):
    settings = {"balance": balance, "auxiliary_weight": 10.0, "bias_rate": 0.01}
    whole, lines = run(3, micro_batch=16, **settings)
    for micro_batch in (3, 8):
        parts, others = run(3, micro_batch=micro_batch, **settings)
        assert [line["loads"] for line in others] == [line["loads"] for line in lines]
        torch.testing.assert_close(parts.model.router.bias, whole.model.router.bias, rtol=0, atol=1e-7)
        if balance == "auxiliary":
            for line, other in zip(lines, others, strict=True):
                assert other["auxiliary_loss"] == pytest.approx(line["auxiliary_loss"], rel=1e-3)
        else:
            assert "auxiliary_loss" not in lines[0]


def test_only_the_sign_rule_moves_the_bias():
    for balance in ("bias", "auxiliary", "none"):
        trainer, _ = run(3, balance=balance, bias_rate=0.01)
        assert bool(trainer.model.router.bias.any()) == (balance == "bias")


def test_the_loss_term_pulls_probability_off_loaded_blocks():
    spread = {}
    for weight in (0.0, 3.0):
        _, lines = run(30, balance="auxiliary", auxiliary_weight=weight, router_rate=0.03)
        spread[weight] = sum(line["load_entropy"] for line in lines[-10:]) / 10
        assert lines[0]["auxiliary_loss"] == pytest.approx(weight, abs=1e-4)  # even loads: no gradient yet
    assert spread[3.0] > spread[0.0] + 0.05
