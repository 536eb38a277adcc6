"""What changes over a run, at both ends and in between; the sign rule; the optimisers."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lol_data.training.balance import move_bias
from lol_data.training.schedule import bias_step_at, capacity_at, depth_at, learning_rate_factor
from lol_data.training.step import noise_seed

from .common import make_trainer


@given(st.integers(10, 500), st.integers(1, 12), st.floats(0.1, 1))
def test_depth_grows_from_one_to_all_and_never_shrinks(steps, depth, growth):
    depths = [depth_at(step, steps, depth, growth) for step in range(steps)]
    assert depths == sorted(depths)
    assert set(depths) <= set(range(1, depth + 1))
    assert depths[0] == 1
    assert all(at == depth for step, at in enumerate(depths) if step >= growth * steps)


def test_depth_follows_one_minus_root():
    # D = 4 over 750 of 1000 steps: 1 - sqrt(1 - x) passes 1/4, 1/2 and 3/4 at x = 7/16, 3/4 and 15/16.
    depths = [depth_at(step, 1000, 4, 0.75) for step in range(1000)]
    assert [depths.index(depth) for depth in (1, 2, 3, 4)] == [0, 329, 563, 704]
    assert [depth_at(step, 100, 6, 0.0) for step in (0, 50, 99)] == [6, 6, 6]


def test_learning_rate_warms_up_and_decays_to_nothing():
    factors = [learning_rate_factor(step, 100, 10) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[9] == factors[10] == 1
    assert factors[55] == pytest.approx(0.5)
    assert factors[99] == pytest.approx(1 / 90)
    assert learning_rate_factor(100, 100, 10) == 0
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert learning_rate_factor(0, 100, 0) == 1
    assert all(0 < learning_rate_factor(step, 5, 20) <= 1 for step in range(5))  # a run within its warm-up


def test_the_bias_step_fades_over_its_last_share():
    steps = [bias_step_at(step, 100, 0.02, 0.5) for step in range(100)]
    assert steps[:51] == [0.02] * 51
    assert steps[75] == pytest.approx(0.01)
    assert steps[99] == pytest.approx(0.0004)
    assert [bias_step_at(step, 100, 0.02, 0.0) for step in (0, 99)] == [0.02, 0.02]


def test_the_sign_rule_lifts_idle_blocks_and_keeps_the_mean_at_zero():
    bias = torch.zeros(4)
    move_bias(bias, torch.tensor([10, 0, 4, 2]), 0.01)  # mean 4
    torch.testing.assert_close(bias, torch.tensor([-0.0125, 0.0075, -0.0025, 0.0075]))
    assert bias.dtype == torch.float32
    move_bias(bias, torch.tensor([3, 3, 3, 3]), 0.01)
    torch.testing.assert_close(bias, torch.tensor([-0.0125, 0.0075, -0.0025, 0.0075]))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=24))
def test_the_sign_rule_never_drifts(counts):
    bias = torch.zeros(len(counts))
    for _ in range(20):
        move_bias(bias, torch.tensor(counts), 3e-4)
    assert abs(bias.mean().item()) < 1e-6
    mean = sum(counts) / len(counts)
    below = [b for b, count in zip(bias.tolist(), counts, strict=True) if count < 0.99 * mean]
    above = [b for b, count in zip(bias.tolist(), counts, strict=True) if count > 1.01 * mean]
    assert not below or not above or min(below) > max(above)


def test_micro_batches_have_seeds_of_their_own():
    seeds = {noise_seed(seed, step, number) for seed in range(9) for step in range(99) for number in range(4)}
    assert len(seeds) == 9 * 99 * 4
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert noise_seed(3, 4, 1) == noise_seed(3, 4, 1)


def test_capacity_stays_whole_then_comes_down_on_a_line():
    found = [capacity_at(step, 100, 0.5, 0.1) for step in (0, 9, 10, 15, 20, 21, 99)]
    assert found == pytest.approx([1, 1, 1, 0.75, 0.5, 0.5, 0.5])
    assert capacity_at(0, 100, 0.5, 0.0) == 0.5


def test_every_parameter_has_exactly_one_optimiser_and_blocks_have_muon():
    trainer = make_trainer()
    muon, adam = ([p for group in optimizer.param_groups for p in group["params"]] for optimizer in trainer.optimizers)
    names = {id(parameter): name for name, parameter in trainer.model.named_parameters()}
    held = [names[id(parameter)] for parameter in (*muon, *adam)]
    assert sorted(held) == sorted(names.values())
    in_blocks = [name for name in names.values() if name.startswith("library.") or ".block." in name]
    assert sorted(names[id(parameter)] for parameter in muon) == sorted(in_blocks)
    assert isinstance(trainer.optimizers[0], torch.optim.Muon)
