"""The rivals on a fixed path: against a plain reference, causal, cached as computed anew, with gradients where due."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from lol_data.errors import UsageError
from lol_data.model.build import make_model
from lol_data.model.config import ModelConfig
from lol_data.model.decoding import Decoder, generate
from lol_data.model.deeper import deepen
from lol_data.model.depths import best_of_each
from lol_data.model.experts import Experts
from lol_data.model.formulas import count_parameters, flops_per_sequence
from lol_data.model.routing import ForcedPath

from .common import FIELD, SHARED, VOCABULARY, P, W, assert_near, position_vectors, random_model, random_tokens

LENGTH = 3 * W + 1
OPEN = {"router": "fixed", "field_readers": "all"}
FULL = {**OPEN, "attention": "full"}
SOME = {**FULL, "capacity": 0.4}
RIVALS = {
    "full": FULL,
    "sliding": {**OPEN, "attention": "sliding"},
    "sliding, field hidden": {"router": "fixed", "attention": "sliding"},
    "sliding, whole problem": {**OPEN, "attention": "sliding", "whole_problem": True},
    "shifted": {**OPEN, "blocks": 4},
    "shifted, shared cells": {**OPEN, **SHARED},
    "library on one path": {**OPEN, "blocks": 2},
    "loop": {**FULL, "blocks": 2, "film": "block", "inject": True},
    "experts": {**OPEN, "experts": 3, "core_experts": 3},
    "experts outside": {"experts": 3, "router": "shared"},
    "depths": {**SOME, "capacity_every": 1},
    "every other depth": {**SOME, "prelude": 0, "coda": 0},
    "depths by threshold": {**SOME, "depth_sampling": "threshold", "depth_router": "mlp"},
    "straight through": {**SOME, "depth_gate": "straight_through"},
    "depths and experts": {**SOME, "core_experts": 3, "experts": 3},
}


def rival(name, seed=0, **changes):
    return random_model(seed, **{**RIVALS[name], **changes})


each = pytest.mark.parametrize("name", RIVALS)


@torch.no_grad()
def plain(model, tokens):
    """One sequence by the definitions, float64, in text order, tokens one by one where they choose: logits of the
    suffix, and for every depth which tokens it took."""
    config = model.config
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    n = len(tokens)
    place = torch.arange(n)
    hidden = config.field_readers == "router"
    field = (place >= config.prompt - config.field) & (place < config.prompt) & hidden
    problem = place < config.prompt - config.field * hidden
    ahead = problem[:, None] & problem & (place[:, None] > 0) & config.whole_problem
    sees = ((place[:, None] >= place) | ahead) & (~field | field[:, None])
    order = place - config.field * (place >= config.prompt) if hidden else place  # slots, the field left out
    near = (order[:, None] - order < config.window) | field[:, None] | ahead

    def norm(h, scale, offset=0.0):
        return h / (h.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale + offset

    def turn(x):
        half = x.shape[-1] // 2
        angle = place[:, None] * config.rope_base ** (-torch.arange(half).double() / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def swiglu(u, up, down):
        a, b = (u @ up.T).chunk(2, -1)
        return (F.silu(a) * b) @ down.T

    def feed(u, block):
        if block + "experts.router" not in weights:
            return swiglu(u, weights[block + "up"], weights[block + "down"])
        out = torch.zeros_like(u)
        for row in range(n):
            p = (weights[block + "experts.router"] @ u[row]).softmax(0)
            best = (p + weights[block + "experts.bias"]).argsort(descending=True)[: config.top]
            for expert in best.tolist():
                own = (weights[f"{block}experts.{kind}.{expert}"] for kind in ("up", "down"))
                out[row] += p[expert] / p[best].sum() * swiglu(u[row], *own)
        return out

    def updates(h, block, scales, offsets, mask):
        heads, size = config.heads, config.width // config.heads
        qkv = norm(h, scales[0], offsets[0]) @ weights[block + "qkv"].T
        q, k, v = qkv.view(n, 3, heads, size).permute(1, 2, 0, 3)
        scores = (turn(q) @ turn(k).transpose(1, 2) / size**0.5).masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(-1).nan_to_num() @ v
        attended = mixed.transpose(0, 1).flatten(1) @ weights[block + "out"].T
        return attended + feed(norm(h + attended, scales[1], offsets[1]), block)

    def fixed(h, layer):
        gains = weights[layer + "attention_norm"], weights[layer + "feed_forward_norm"]
        return h + updates(h, layer + "block.", gains, (0.0, 0.0), sees)

    def guess(router, u):
        if config.depth_sampling == "predictor":
            return F.gelu(u @ weights[router + "guess_hidden"].T) @ weights[router + "guess_out"]
        return score(router, u)

    def score(router, u):
        vector = weights[router + "vector"]
        if config.depth_router == "linear":
            return u @ vector
        both = torch.cat([u, vector.expand_as(u)], -1)
        return F.gelu(both @ weights[router + "hidden"].T) @ weights[router + "out"]

    h = weights["embedding.weight"][tokens]
    h[: config.prompt] += position_vectors(config, weights)
    for index in range(config.prelude):
        h = fixed(h, f"prelude.{index}.")
    start, took = h, []
    for level in range(1, config.depth + 1):
        number = (level - 1) % config.blocks
        if config.inject and number == 0:
            state = torch.zeros_like(h) if level == 1 else h
            h = torch.cat([state, start], -1) @ weights["input"].T
        scales = weights["film_scale"][level - 1 if config.film == "depth" else number]
        offsets = weights["film_offset"][level - 1] if config.film == "depth" else (0.0, 0.0)
        mask, gates = sees, torch.ones(n, dtype=torch.double)
        if config.attention == "sliding":
            mask = sees & near
        elif config.attention == "windows":
            delta = (level - 1) * config.shift % config.window
            windows = torch.where(place < config.prompt, 0, 1 + (place - config.prompt + delta) // config.window)
            mask = sees & (windows[:, None] == windows)
        taken = torch.ones(n, dtype=torch.bool)
        if config.takes_some(level):
            router, u = f"depth_routers.{level}.", norm(h, 1.0)
            taken = guess(router, u) > 0
            mask = mask & taken
            gates = taken * (1.0 if config.depth_gate == "straight_through" else score(router, u).sigmoid())
        took.append(taken)
        h = h + gates[:, None] * updates(h, f"library.{number}.", scales, offsets, mask)
    for index in range(config.coda):
        h = fixed(h, f"coda.{index}.")
    return (norm(h, weights["final_norm"]) @ weights["head"].T)[config.prompt :], took


@pytest.mark.parametrize("name", [name for name in RIVALS if name != "experts outside"])  # it routes: test_forward.py
@torch.no_grad()
def test_logits_equal_the_plain_reference(name):
    model, tokens = rival(name), random_tokens(3, LENGTH)
    logits, choices = model(tokens)
    for row in range(len(tokens)):
        expected, took = plain(model, tokens[row])
        assert_near(logits[row], expected.float(), 1e-4)
        for level, choice in enumerate(choices):
            if choice.taken:
                assert torch.equal(choice.taken.taken[choice.taken.sequence == row], took[level])
    if name in ("depths", "every other depth", "depths by threshold"):
        shares = [choice.taken.taken.float().mean().item() for choice in choices if choice.taken]
        assert all(0 < share < 1 for share in shares)  # some are taken, some are not


@each
@torch.no_grad()
def test_every_step_equals_the_whole_pass(name):
    model, tokens = rival(name, seed=1), random_tokens(3, LENGTH)
    logits, _ = model(tokens)
    decoder = Decoder(model, tokens[:, :P], LENGTH)
    for k in range(LENGTH):
        assert_near(decoder.step(tokens[:, P + k])[0], logits[:, k])


@each
@torch.no_grad()
def test_greedy_tokens_are_the_same_for_one_sequence_and_many(name):
    model, prompts = rival(name, seed=2), random_tokens(12, 0)
    many, _ = generate(model, prompts, 3, 4, LENGTH)
    for row in range(len(prompts)):
        one, _ = generate(model, prompts[row : row + 1], 3, 4, LENGTH)
        assert torch.equal(one[0], many[row, : one.shape[1]])
        assert (many[row, one.shape[1] :] == 4).all()


@each
@torch.no_grad()
def test_a_later_token_moves_no_earlier_logit(name):
    model, tokens = rival(name, seed=1), random_tokens(1, LENGTH).expand(LENGTH, -1)
    changed = tokens.clone()
    changed[:, P:] = (changed[:, P:] + torch.eye(LENGTH, dtype=torch.long)) % VOCABULARY
    logits, new_logits = model(tokens)[0], model(changed)[0]
    for k in range(LENGTH):
        assert_near(new_logits[k, :k], logits[k, :k])
        assert not torch.allclose(new_logits[k, k:], logits[k, k:], atol=1e-3)


@torch.no_grad()
def test_training_by_the_best_of_a_sequence_looks_ahead_and_that_is_known():
    model, tokens = rival("depths", seed=1).train(), random_tokens(1, LENGTH).expand(LENGTH, -1)
    changed = tokens.clone()
    changed[:, P:] = (changed[:, P:] + torch.eye(LENGTH, dtype=torch.long)) % VOCABULARY
    logits, new_logits = model(tokens)[0], model(changed)[0]
    apart = [(new_logits[k, :k] - logits[k, :k]).abs().amax().item() for k in range(1, LENGTH)]
    assert max(apart) > 1e-3


@each
@torch.no_grad()
def test_who_reads_the_strategy_field(name):
    model, tokens = rival(name), random_tokens(2, LENGTH)
    changed = tokens.clone()
    changed[:, P - FIELD : P] = (changed[:, P - FIELD : P] + 1) % VOCABULARY
    read = not torch.equal(model(tokens)[0], model(changed)[0])
    assert read == (model.config.field_readers == "all" or model.config.router != "fixed")


@each
def test_every_weight_has_a_gradient(name):
    model = rival(name).train()
    logits, choices = model(random_tokens(8, LENGTH))
    loss = logits.square().mean() + sum(choice.taken.guesses.square().mean() for choice in choices if choice.taken)
    loss.backward()
    for weight, parameter in model.named_parameters():
        if not parameter.requires_grad:  # a fixed path's router, which holds nothing
            continue
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, weight


@pytest.mark.parametrize("gate", ["weight", "straight_through"])
def test_the_score_of_a_taken_token_has_the_gradient_of_its_sigmoid(gate):
    """In front of one taking depth and nothing else: d logits / d score is what the update adds, times the slope."""
    model = rival("depths", capacity_every=4, capacity=0.5, coda=0, depth_gate=gate).train()
    tokens = random_tokens(2, LENGTH)
    logits, choices = model(tokens)
    (taken,) = [choice.taken for choice in choices if choice.taken]
    (slope,) = torch.autograd.grad(logits.square().sum(), taken.scores)
    assert (slope[taken.taken] != 0).any()
    assert not slope[~taken.taken].any()  # nothing of a token that passed by


def test_tokens_that_pass_by_are_untouched_and_positions_are_true():
    """With all but the last token passed by, the last one attends to itself alone, wherever it stands."""
    model = rival("depths", depth=1, blocks=1, prelude=0, coda=0, capacity=0.01).eval()
    states = []
    original = model.read_out
    model.read_out = lambda h: states.append(h) or original(h)
    router = model.depth_routers["1"]
    with torch.no_grad():
        tokens = random_tokens(1, LENGTH)
        h, _ = model.open(tokens)
        router.guesses = lambda h, scores: torch.where(torch.arange(len(h)) == len(h) - 1, 1.0, -1.0)
        model(tokens)
    assert torch.equal(states[0][: LENGTH - 1], h[P:-1])
    assert not torch.allclose(states[0][LENGTH - 1], h[-1])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.floats(0.01, 1), st.integers(0, 2**31))
def test_exactly_the_best_tokens_of_each_sequence(lengths, capacity, seed):
    generator = torch.Generator().manual_seed(seed)
    sequence = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    scores = torch.randint(0, 5, (len(sequence),), generator=generator).float()  # with ties
    best = best_of_each(scores, sequence, capacity)
    for row, length in enumerate(lengths):
        own, mine = scores[sequence == row], best[sequence == row]
        wanted = -int(-(capacity * length - 1e-9) // 1)
        assert mine.sum() == wanted
        order = sorted(range(length), key=lambda i: (-own[i].item(), i))
        assert sorted(order[:wanted]) == mine.nonzero()[:, 0].tolist()


def test_a_loop_starts_from_noise_in_training_only():
    model, tokens = rival("loop", noise=0.5), random_tokens(2, LENGTH)
    assert torch.equal(model.eval()(tokens)[0], model(tokens)[0])
    assert not torch.equal(model.train()(tokens)[0], model(tokens)[0])


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_loop_cut_short_learns_through_its_last_turns(cut):
    model, tokens = rival("loop", noise=0.0).train(), random_tokens(2, LENGTH)
    whole = model(tokens)[0]
    model.cut = cut
    logits, _ = model(tokens)
    assert_near(logits, whole)
    logits.square().mean().backward()
    learns = [any(p.grad is not None for p in block.parameters()) for block in model.library]
    assert learns == [cut < 3, True]  # depths 1 and 3 are block 0, depths 2 and 4 block 1
    assert (model.embedding.weight.grad is not None) == (cut < 3)  # depth 3 reads the prelude


def test_experts_that_only_filling_would_take_have_no_gradient():
    model = rival("experts")
    model.tile = 64
    experts = [module for module in model.modules() if isinstance(module, Experts)]
    for module in experts:
        module.bias.copy_(torch.tensor([5.0, 5.0, -5.0]))
    model.train()(random_tokens(1, 2))[0].square().sum().backward()
    for module in experts:
        assert module.up[2].grad is None and module.up[0].grad is not None
        assert module.counts.tolist() == [P + 2, P + 2, 0]


@torch.no_grad()
def test_evaluation_counts_no_experts():
    model = rival("experts").eval()
    model(random_tokens(2, LENGTH))
    assert not any(module.counts.any() for module in model.modules() if isinstance(module, Experts))


@each
def test_parameters_are_those_of_the_model(name):
    model = rival(name)
    assert count_parameters(model.config).stored == sum(p.numel() for p in model.parameters())
    inner = {n: p.numel() for n, p in model.named_parameters()}
    outside = ("embedding.weight", "prompt_embedding", "head")
    assert count_parameters(model.config).non_embedding == sum(inner[n] for n in inner if n not in outside)


@each
def test_flops_are_those_that_torch_counts(name):
    model, batch = rival(name, noise=0.0).train(), 4
    config, length = model.config, P + LENGTH
    with FlopCounterMode(display=False) as counter:
        logits, _ = model(random_tokens(batch, LENGTH))
    forward = counter.get_total_flops() / batch
    with counter:
        logits.square().sum().backward()
    flops = flops_per_sequence(config, length)

    # Whole squares are computed and masked; the formula counts the pairs that are allowed.
    def squares(lengths):
        return sum(n * n for n in lengths) * 4 * config.width

    hidden = model.hidden_field
    attention = config.prelude * squares([length]) + config.coda * squares([length - hidden])
    for level in range(1, config.depth + 1):
        if config.takes_some(level):
            attention += squares([-(-4 * length // 10)])
        elif config.attention == "windows":
            attention += squares(end - start for start, end in model.windows.slices(length, level))
        else:
            attention += squares([length])
    expected = flops.products + attention
    assert forward == pytest.approx(expected, rel=0.02)  # filling, and products with a vector
    # A predictor learns from the states and leaves no gradient in them, nor has it one here.
    assert counter.get_total_flops() / batch == pytest.approx(2 * forward, rel=0.05)


@each
@torch.no_grad()
def test_more_depth_than_trained(name):
    model, tokens = rival(name), random_tokens(2, LENGTH)
    if model.config.capacity < 1:
        with pytest.raises(UsageError, match="router of its own"):
            deepen(model, 6)
        return
    deeper = deepen(model, 6)
    assert_near(deeper(tokens, 4)[0], model(tokens)[0])
    assert not torch.allclose(deeper(tokens)[0], model(tokens)[0], atol=1e-3)


def test_a_fixed_path_cannot_be_forced():
    with pytest.raises(ValueError, match="fixed"):
        rival("full")(random_tokens(1, 3), forced=ForcedPath(torch.zeros(1, 4, 1, dtype=torch.long), None))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"router": "shared", "attention": "full"}, 'model.attention is full; that needs model.router = "fixed"'),
        ({"router": "shared", "core_experts": 3}, "model.core_experts is 3"),
        ({"router": "shared", "inject": True}, "model.inject is True"),
        ({"capacity": 0.0}, "model.capacity is 0.0; it must be more than 0 and at most 1"),
        ({"capacity": float("nan")}, "model.capacity is nan"),
        ({"capacity": 0.5}, "needs model.attention"),
        ({"capacity": 0.5, "whole_problem": True}, "exclude each other"),
        ({"experts": 2, "top": 3}, "model.experts is 2; a token takes model.top = 3 of them"),
        ({"attention": "none"}, 'model.attention is "none"; use windows, sliding, full'),
        ({"depth_dropout": 1.0}, "model.depth_dropout is 1.0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(change, text):
    shape = {"vocabulary": VOCABULARY, "prompt": P, "field": FIELD, "width": 16, "heads": 2, "router": "fixed"}
    with pytest.raises(UsageError) as error:
        make_model(ModelConfig(**{**shape, **change}))
    assert text in str(error.value)


def test_padding_that_is_not_computed_changes_nothing_else():
    lengths = torch.tensor([P + LENGTH, P + 1, P + W + 2])
    real = torch.arange(LENGTH) < (lengths - P)[:, None]
    for name, tile in itertools.product(RIVALS, (1, 8)):
        model, tokens = rival(name), random_tokens(3, LENGTH)
        model.tile = tile
        with torch.no_grad():
            logits, packed = model(tokens)[0], model(tokens, lengths=lengths)[0]
        assert_near(packed[real], logits[real])
