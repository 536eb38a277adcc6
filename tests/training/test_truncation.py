"""Truncated back-propagation: the same values, no gradient before the cut but through window 0."""

import numpy as np
import pytest
import torch

from lol_data.model.formulas import flops_per_sequence
from lol_data.training.schedule import step_flops, undifferentiated

from .common import make_trainer, one_thread  # noqa: F401

SHAPE = {"noise": 0.0, "depth": 4, "blocks": 3}


def gradients(cut):
    """Gradients of the input states, (T, d), and of FiLM, (D, 2, d), from the loss of the last position."""
    model = make_trainer(SHAPE).model.train()
    model.cut = cut
    tokens = make_trainer(SHAPE).sequences.gather(np.array([0])).tokens
    states = []
    embed = model.embed
    model.embed = lambda *arguments: states.append(embed(*arguments)) or states[-1]
    logits, _ = model(tokens)
    states[0].retain_grad()
    logits[0, -1].logsumexp(0).backward()
    return states[0].grad, model.film_scale.grad, logits.detach(), model


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_only_window_0_has_a_gradient_before_the_cut(cut):
    whole, _, logits, model = gradients(0)
    part, film, same, _ = gradients(cut)
    torch.testing.assert_close(same, logits, rtol=1e-5, atol=1e-5)
    prompt = model.config.prompt
    assert whole[prompt:].abs().sum() > 0 and whole[:prompt].abs().sum() > 0
    assert not part[prompt:].any()
    assert part[:prompt].abs().sum() > 0
    assert all(film[level].abs().sum() > 0 for level in range(4))  # window 0 still trains them


def test_applications_behind_the_cut_have_the_gradient_of_a_model_cut_by_hand():
    """Two applications of four: as if the states behind window 0 were constants after the second one."""
    _, film, _, model = gradients(2)
    model.zero_grad()
    run_windows, prompt = model.run_windows, model.config.prompt
    model.cut = 0

    def cut_by_hand(h, level, *rest):
        h = run_windows(h, level, *rest)
        return torch.cat([h[:prompt], h[prompt:].detach()]) if level == 2 else h

    model.run_windows = cut_by_hand
    logits, _ = model(make_trainer(SHAPE).sequences.gather(np.array([0])).tokens)
    logits[0, -1].logsumexp(0).backward()
    torch.testing.assert_close(film, model.film_scale.grad, rtol=1e-4, atol=1e-7)


def test_the_trainer_cuts_as_configured_and_counts_less_work():
    whole, part = make_trainer(SHAPE, growth=0.9), make_trainer(SHAPE, growth=0.9, backward_depth=2)
    for _ in range(12):
        line, other = whole.run_step(), part.run_step()
        assert other["depth"] == line["depth"]
        assert part.model.cut == max(0, line["depth"] - 2)
        assert (other["flops"] < line["flops"]) == (line["depth"] > 2)
    assert line["depth"] == 4


def test_work_of_a_step():
    assert [undifferentiated(depth, 2) for depth in (1, 2, 3, 8)] == [0, 0, 1, 6]
    assert undifferentiated(8, 0) == 0
    config = make_trainer(SHAPE).model.config
    lengths = np.array([30, 40, 30])
    one, two = (flops_per_sequence(config, length, 3) for length in (30, 40))
    assert step_flops(config, lengths, 3) == 3 * (2 * one.forward + two.forward)
    core = [flops_per_sequence(config, n, 2).forward - flops_per_sequence(config, n, 0).forward for n in (30, 40)]
    prompt = flops_per_sequence(config, config.prompt, 2).forward - flops_per_sequence(config, config.prompt, 0).forward
    cut = step_flops(config, lengths, 3) - 2 * (2 * (core[0] - prompt) + core[1] - prompt)
    assert step_flops(config, lengths, 3, cut=2) == cut
