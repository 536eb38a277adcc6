"""Nothing of the future reaches a logit, a choice or a gate; the past does reach later choices."""

import pytest
import torch

import lol_data.model.lol as lol
from lol_data.model.formulas import earliest_reachable
from lol_data.model.grouped import grouped_linear_reference
from lol_data.model.routing import ForcedPath

from .common import FIELD, ROUTERS, VOCABULARY, P, W, assert_near, random_model, random_tokens

SUFFIX = 3 * W + 1
SHIFTS = range(W)
SHAPES = [{"shift": shift} for shift in SHIFTS] + ROUTERS


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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.no_grad()
def test_a_later_token_moves_no_earlier_logit_choice_or_gate(shape, tolerance):
    model = random_model(seed=1, **shape)
    (logits, choices), (new_logits, new_choices) = each_token_changed(model, seed=1)
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


def moved_windows(model, k):
    """Per depth, the windows whose probabilities a change of suffix position k moves."""
    tokens = random_tokens(1, SUFFIX)
    changed = tokens.clone()
    changed[0, P + k] = (changed[0, P + k] + 1) % VOCABULARY
    (_, old), (_, new) = model(tokens), model(changed)
    moves = [(a.probabilities - b.probabilities).abs().amax(-1)[0] > 1e-7 for a, b in zip(old, new, strict=True)]
    return [move.nonzero()[:, 0].tolist() for move in moves]


@torch.no_grad()
def test_a_summary_reads_what_its_decay_says():
    """Depth 1 of aligned windows, without a prelude that would carry the change further."""
    shape = {"prelude": 0, "shift": 0}
    assert moved_windows(random_model(**shape), 0)[0] == [2, 3, 4]  # in window 1, which every later one averages
    assert moved_windows(random_model(**shape, summary_decay=0.5), 0)[0] == [2, 3, 4]
    assert moved_windows(random_model(**shape, summary_decay=0.0), 0)[0] == [2]


@torch.no_grad()
def test_a_segment_reads_what_lies_before_it():
    model = random_model(prelude=0, shift=0, router="per_segment", segment=2)
    assert moved_windows(model, 0)[0] == [3, 4]  # windows 1 and 2 are one segment
    assert moved_windows(model, 2 * W - 1)[0] == [3, 4]
    assert moved_windows(model, 2 * W)[0] == []


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_attention_of_the_core_reaches_as_far_as_equation_4_says(shift, depth):
    """With the routes laid down from outside, a position depends on the ones it reaches and on no other."""
    model, tokens = random_model(seed=1, prelude=0, coda=0, shift=shift), random_tokens(1, SUFFIX)
    path = ForcedPath(torch.arange(4).view(1, 4, 1), torch.ones(1, 1, 1).expand(1, 4, 1))
    states = []
    model.embedding.register_forward_hook(lambda module, inputs, output: states.append(output) or output)
    logits, _ = model(tokens, depth, path)
    reach = earliest_reachable(model.windows, P + SUFFIX, depth)
    for k in range(SUFFIX):
        (gradient,) = torch.autograd.grad(logits[0, k, 0], states[0], retain_graph=True)
        read = gradient.abs().sum(-1).nonzero()[:, 0].tolist()  # behind the prompt slots are positions
        assert read == list(range(reach[P + k], P + k + 1))


@pytest.mark.parametrize("shape", [{}, *ROUTERS], ids=str)
@torch.no_grad()
def test_rows_never_influence_each_other(shape, tolerance):
    """A row is a document: what the others hold, and how many they are, moves neither its logits nor its routes."""
    model, tokens = random_model(**shape), random_tokens(4, SUFFIX)
    others = random_tokens(6, SUFFIX, seed=1)
    others[2] = tokens[1]
    (logits, choices), (new_logits, new_choices) = model(tokens), model(others)
    assert_near(new_logits[2], logits[1], tolerance)
    assert not torch.allclose(new_logits[3], logits[1], atol=1e-3)
    for new, old in zip(new_choices, choices, strict=True):
        assert torch.equal(new.ids[2], old.ids[1])
        assert_near(new.probabilities[2], old.probabilities[1], tolerance)


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
