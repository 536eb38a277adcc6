"""Nothing of the future reaches a logit, a choice or a gate; the past does reach later choices."""

import pytest
import torch

import lol_data.model.lol as lol
from lol_data.model.grouped import grouped_linear_reference
from lol_data.model.routing import ForcedPath

from .common import FIELD, VOCABULARY, P, W, assert_near, random_model, random_tokens

SUFFIX = 3 * W + 1
SHIFTS = range(W)


@pytest.fixture(params=["grouped", "row by row"])
def tolerance(request, monkeypatch):
    """How far rounding may move a value. A product of many rows may round one of them by how many they are; taken row
    by row, nothing may move at all."""
    if request.param == "grouped":
        return 1e-5
    monkeypatch.setattr(lol, "grouped_linear", grouped_linear_reference)
    return 0.0


def each_token_changed(model, seed):
    """Logits and choices of one sequence, once as it is and once with another token at suffix position k in row k."""
    tokens = random_tokens(1, SUFFIX, seed).expand(SUFFIX, -1)
    changed = tokens.clone()
    changed[:, P:] = (changed[:, P:] + torch.eye(SUFFIX, dtype=torch.long)) % VOCABULARY
    return model(tokens), model(changed)


@pytest.mark.parametrize("shift", SHIFTS)
@torch.no_grad()
def test_a_later_token_moves_no_earlier_logit_choice_or_gate(shift, tolerance):
    model = random_model(seed=shift, shift=shift)
    (logits, choices), (new_logits, new_choices) = each_token_changed(model, seed=shift)
    assert len(torch.cat([choice.ids[0] for choice in choices]).unique()) > 1  # there are routes to get wrong
    for k in range(SUFFIX):
        assert_near(new_logits[k, :k], logits[k, :k], tolerance)
        assert not torch.allclose(new_logits[k, k:], logits[k, k:], atol=1e-3)
        for level, (new, old) in enumerate(zip(new_choices, choices, strict=True), start=1):
            begun = model.windows.index(P + k, level) + 1  # the window of the changed token was chosen before it
            assert torch.equal(new.ids[k, :begun], old.ids[k, :begun])
            assert_near(new.gates[k, :begun], old.gates[k, :begun], tolerance)
            assert_near(new.probabilities[k, :begun], old.probabilities[k, :begun], tolerance)


@pytest.mark.parametrize("shift", SHIFTS)
@torch.no_grad()
def test_every_finished_window_reaches_the_choices_behind_it(shift):
    model, switched = random_model(seed=shift, shift=shift), 0
    for seed in range(4):
        (_, choices), (_, new_choices) = each_token_changed(model, seed)
        for k in range(SUFFIX):
            for level, (new, old) in enumerate(zip(new_choices, choices, strict=True), start=1):
                begun = model.windows.index(P + k, level) + 1
                moved = (new.probabilities[k, begun:] - old.probabilities[k, begun:]).abs().amax(-1)
                assert (moved > 1e-6).all()
                switched += int((new.ids[k, begun:] != old.ids[k, begun:]).sum())
    assert switched > 0  # not the probabilities alone: blocks change


@torch.no_grad()
def test_window_0_is_chosen_from_the_first_token_and_the_depth_alone():
    model, tokens = random_model(), random_tokens(4, 3)
    _, mixed = model(tokens)
    tokens[:, 0] = 1
    _, choices = model(tokens)
    for other, choice in zip(mixed, choices, strict=True):
        assert_near(choice.probabilities[:, 0], choice.probabilities[:1, 0].expand(4, -1))
        assert not torch.allclose(other.probabilities[0, 0], other.probabilities[1, 0], atol=1e-3)


@torch.no_grad()
def test_the_strategy_field_is_seen_by_the_router_alone():
    model, tokens = random_model(), random_tokens(4, SUFFIX)
    changed = tokens.clone()
    changed[:, P - FIELD : P] = (changed[:, P - FIELD : P] + 1) % VOCABULARY
    generator = torch.Generator().manual_seed(0)
    path = ForcedPath(torch.randint(4, (1, 4, 5), generator=generator), torch.rand(1, 4, 5, generator=generator))
    logits, choices = model(tokens, forced=path)
    new_logits, new_choices = model(changed, forced=path)
    assert torch.equal(new_logits, logits)
    assert all((a.probabilities != b.probabilities)[:, 1:].any() for a, b in zip(choices, new_choices, strict=True))
    free, new_free = model(tokens)[0], model(changed)[0]
    assert not torch.allclose(free, new_free, atol=1e-3)


@pytest.mark.parametrize("shift", SHIFTS)
@torch.no_grad()
def test_padding_behind_the_end_changes_nothing(shift):
    model, tokens = random_model(seed=shift, shift=shift), random_tokens(2, SUFFIX)
    logits, choices = model(tokens)
    for padding in (1, W, 2 * W + 1):
        padded = torch.cat([tokens, torch.zeros(2, padding, dtype=torch.long)], 1)
        new_logits, new_choices = model(padded)
        assert_near(new_logits[:, :SUFFIX], logits)
        for new, old in zip(new_choices, choices, strict=True):
            windows = old.ids.shape[1]
            assert torch.equal(new.ids[:, :windows], old.ids)
            assert_near(new.gates[:, :windows], old.gates)
