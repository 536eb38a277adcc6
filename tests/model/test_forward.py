"""The whole forward pass against a plain reference of the equations, and the special cases that follow from them."""

import itertools
from dataclasses import replace

import pytest
import torch

from lol_data.errors import UsageError
from lol_data.model.build import make_model
from lol_data.model.config import ModelConfig
from lol_data.model.layers import FixedLayer
from lol_data.model.lol import LevelWindows
from lol_data.model.ops import compiled_ops, compiler_available
from lol_data.model.routing import Choice, ForcedPath

from .common import FIELD, ROUTERS, SHARED, VOCABULARY, P, W, assert_near, random_model, random_tokens, reference

SHAPES = [
    {},
    {"shift": 0},
    {"shift": 3, "router": "per_depth"},
    {"prompt_embedding": False, "prelude": 2, "coda": 2},
    {"prelude": 0, "coda": 0, "window": 5, "shift": 7},
    {"blocks": 1},
    SHARED,
    {"window": 1, "shift": 1},
    *ROUTERS,
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.no_grad()
def test_logits_and_routes_equal_the_plain_reference(shape):
    model, tokens = random_model(**shape), random_tokens(3, 3 * W + 2)
    logits, choices = model(tokens)
    assert logits.dtype == torch.float32
    for row in range(len(tokens)):
        expected, routes = reference(model, tokens[row])
        assert_near(logits[row], expected.float(), 1e-4)
        for choice, taken in zip(choices, routes, strict=True):
            assert choice.ids[row].tolist() == [block for block, _ in taken]
            assert_near(choice.gates[row], torch.tensor([gate for _, gate in taken]), 1e-4)


@torch.no_grad()
def test_routes_vary_over_rows_windows_and_depths():
    _, choices = random_model()(random_tokens(8, 3 * W + 2))
    assert all(len(choice.ids.unique()) > 1 for choice in choices)
    assert any(len(ids.unique()) > 1 for choice in choices for ids in choice.ids)  # over one row's windows
    assert all(len(choice.ids[:, -1].unique()) > 1 for choice in choices)  # over rows


@torch.no_grad()
def test_fewer_depths_are_the_first_ones():
    model, tokens = random_model(), random_tokens(1, 9)
    for depth in (1, 2, 3):
        logits, choices = model(tokens, depth)
        assert len(choices) == depth
        assert_near(logits[0], reference(model, tokens[0], depth)[0].float(), 1e-4)


@torch.no_grad()
def test_a_forced_path_is_followed_at_every_depth_and_window():
    model, tokens = random_model(), random_tokens(2, 3 * W)
    generator = torch.Generator().manual_seed(3)
    ids, gates = torch.randint(4, (2, 4, 5), generator=generator), torch.rand(2, 4, 5, generator=generator)
    logits, choices = model(tokens, forced=ForcedPath(ids, gates))
    for row in range(2):
        expected, _ = reference(model, tokens[row], ids=ids[row], gates=gates[row])
        assert_near(logits[row], expected.float(), 1e-4)
    for level, choice in enumerate(choices):
        windows = choice.ids.shape[1]
        assert torch.equal(choice.ids, ids[:, level, :windows])
        assert torch.equal(choice.gates, gates[:, level, :windows])


@torch.no_grad()
def test_gate_zero_is_the_identity_of_every_depth():
    model, tokens = random_model(), random_tokens(2, 9)
    closed = ForcedPath(None, torch.zeros(1, 4, 1))
    logits, _ = model(tokens, forced=closed)
    assert torch.equal(logits, model(tokens, depth=1, forced=closed)[0])  # no depth does anything
    for block in model.library:
        block.qkv.add_(1)
        block.down.mul_(2)
    assert torch.equal(logits, model(tokens, forced=closed)[0])
    assert not torch.allclose(logits, model(tokens)[0])


TWO_WINDOWS = [[2, 0], [1, 2]]  # blocks of two rows


def one_depth(model, h):
    """Positions of the slots of h (2, P + W, d), and the model's third depth as a function of gates, (2, 2): its two
    windows there are the prompt and all behind it."""
    positions = torch.arange(P + W)
    positions = torch.cat([positions[P - FIELD : P], positions[: P - FIELD], positions[P:]])
    span = model.span(positions, FIELD, 2)
    windows = LevelWindows.of([(0, P), (P, P + W)], span)

    def at(gates):
        choice = Choice(torch.tensor(TWO_WINDOWS), gates, torch.empty(2, 2, 4))
        return model.run_windows(h.flatten(0, 1), 3, windows, choice, span).view_as(h)

    return positions, at


@torch.no_grad()
def test_a_gate_scales_what_the_plain_block_adds():
    """A depth with FiLM's offset at 0 is, window by window, a fixed layer of the same weights."""
    model, h = random_model(), torch.randn(2, P + W, 16, generator=torch.Generator().manual_seed(0))
    model.film_offset.zero_()
    positions, at_gates = one_depth(model, h)

    def at(gates):
        return at_gates(torch.tensor(gates).expand(2, 2))

    layer = FixedLayer(16, 24)
    layer.attention_norm.copy_(model.film_scale[2, 0])
    layer.feed_forward_norm.copy_(model.film_scale[2, 1])
    expected = torch.empty_like(h)
    for row in range(2):
        for k, (window, field) in enumerate([(slice(P), FIELD), (slice(P, None), 0)]):
            layer.block.load_state_dict(model.library[TWO_WINDOWS[row][k]].state_dict())
            expected[row, window] = layer(h[row, window], model.span(positions[window], field, 1))
    assert_near(at([1.0, 1.0]), expected)
    assert torch.equal(at([0.0, 0.0]), h)
    half = at([0.5, 0.25])
    assert_near(half[:, :P], h[:, :P] + 0.5 * (expected - h)[:, :P])
    assert_near(half[:, P:], h[:, P:] + 0.25 * (expected - h)[:, P:])


def test_a_gates_gradient_is_that_of_equation_7():
    """Summed over the window: the upstream gradient times what the block would add at full gate."""
    model = random_model()
    h, upstream = torch.randn(2, 2, P + W, 16, generator=torch.Generator().manual_seed(0))
    _, at = one_depth(model, h)
    gates = torch.tensor([[0.3, 0.6], [0.1, 0.9]], requires_grad=True)
    (upstream * at(gates)).sum().backward()
    pulls = (upstream * (at(torch.ones(2, 2)) - h)).sum(-1)
    expected = torch.stack([pulls[:, a:b].sum(1) for a, b in [(0, P), (P, P + W)]], 1)
    assert_near(gates.grad, expected.detach())


@torch.no_grad()
def test_a_library_of_one_block_has_nothing_to_choose():
    model, tokens = random_model(blocks=1), random_tokens(3, 3 * W)
    free, choices = model(tokens)
    assert all((choice.ids == 0).all() and (choice.gates == 1).all() for choice in choices)
    fixed, _ = model(tokens, forced=ForcedPath(torch.zeros(1, 4, 1, dtype=torch.long), torch.ones(1, 4, 1)))
    assert torch.equal(free, fixed)


@torch.no_grad()
def shifted_window_baseline(model, blocks, tokens):
    """A plain Transformer whose core layers attend inside shifted windows: the model's weights, no router anywhere."""
    batch, length = tokens.shape
    positions = torch.arange(length)
    order = torch.cat([positions[P - FIELD : P], positions[: P - FIELD], positions[P:]])
    h = model.embed(tokens[:, order].flatten(), order.repeat(batch))

    def attend_in(cuts, layer, h, order, field):
        parts = []
        for a, b in itertools.pairwise(cuts):
            span = model.span(order[a:b], field if a == 0 else 0, batch)
            parts.append(layer(h.view(batch, len(order), -1)[:, a:b].flatten(0, 1), span).view(batch, b - a, -1))
        return torch.cat(parts, 1).flatten(0, 1)

    for layer in model.prelude:
        h = attend_in([0, length], layer, h, order, FIELD)
    for level, block in enumerate(blocks):
        layer = FixedLayer(16, 24)
        layer.block.load_state_dict(block.state_dict())
        layer.attention_norm.copy_(model.film_scale[level, 0])
        layer.feed_forward_norm.copy_(model.film_scale[level, 1])
        cuts = [0, P, *range(P + W - level * model.config.shift % W, length, W), length]
        h = attend_in(cuts, layer, h, order, FIELD)
    h = h.view(batch, length, -1)[:, FIELD:].flatten(0, 1)
    for layer in model.coda:
        h = attend_in([0, length - FIELD], layer, h, order[FIELD:], 0)
    return model.read_out(h).view(batch, length - FIELD, -1)[:, P - FIELD :]


@pytest.mark.parametrize("shift", range(W))
@pytest.mark.parametrize("router", ["shared", "fixed"])
@torch.no_grad()
def test_one_block_in_the_library_is_the_shifted_window_baseline(router, shift):
    model, tokens = random_model(blocks=1, router=router, shift=shift), random_tokens(3, 3 * W + 1)
    model.film_offset.zero_()
    assert_near(model(tokens)[0], shifted_window_baseline(model, list(model.library) * 4, tokens))


@torch.no_grad()
def test_a_fixed_path_goes_round_the_library_with_full_gates_whatever_the_bias():
    model, tokens = random_model(router="fixed", blocks=3), random_tokens(3, 3 * W + 1)
    model.film_offset.zero_()
    model.router.bias.copy_(torch.tensor([-5.0, 0, 5]))
    logits, choices = model(tokens)
    assert [choice.ids.unique().tolist() for choice in choices] == [[0], [1], [2], [0]]
    assert all((choice.gates == 1).all() for choice in choices)
    loop = [model.library[number] for number in (0, 1, 2, 0)]
    assert_near(logits, shifted_window_baseline(model, loop, tokens))


def test_a_fixed_path_has_no_weights_for_choosing():
    model = random_model(router="fixed")
    model(random_tokens(2, 9))[0].square().sum().backward()
    idle = [name for name, tensor in model.named_parameters() if tensor.requires_grad and tensor.grad is None]
    assert idle == []
    assert model.router.weight.numel() == 0


@torch.no_grad()
def test_segments_of_one_window_are_the_plain_router():
    tokens = random_tokens(3, 3 * W + 1)
    logits, _ = random_model()(tokens)
    assert torch.equal(random_model(router="per_segment", segment=1)(tokens)[0], logits)
    assert not torch.allclose(random_model(router="per_segment", segment=2)(tokens)[0], logits, atol=1e-3)


def test_film_of_every_depth_and_sublayer_and_every_depth_vector_matter():
    model, tokens = random_model(), random_tokens(2, 9)
    model(tokens)[0].square().sum().backward()
    assert (model.film_scale.grad.abs().sum(-1) > 0).all()
    assert (model.film_offset.grad.abs().sum(-1) > 0).all()
    assert (model.depth_vector.grad.abs().sum(-1) > 0).all()


def test_the_vector_of_a_cell_learns_where_it_stands_in_the_problem():
    model, tokens = random_model(**SHARED), random_tokens(2, 9)
    first, cells = model.config.first_cell, model.config.cells
    tokens[(tokens >= first) & (tokens < first + cells)] = 0  # no cell in the trace
    model(tokens)[0].square().sum().backward()
    assert (model.embedding.weight.grad[first : first + cells].abs().sum(1) > 0).all()
    assert model.prompt_embedding.shape == (P - cells, model.config.width)


def test_a_seed_draws_the_other_weights_alike_with_shared_cells_and_without():
    drawn = []
    for shared in (False, True):
        torch.manual_seed(0)
        config = replace(random_model().config, **{**SHARED, "shared_cells": shared})
        drawn.append(dict(make_model(config).named_parameters()))
    own, rest = (weights.pop("prompt_embedding") for weights in drawn)
    assert torch.equal(torch.cat([own[:1], own[-len(rest) + 1 :]]), rest)
    assert all(torch.equal(tensor, drawn[1][name]) for name, tensor in drawn[0].items())


def test_a_block_that_no_window_takes_gets_no_gradient():
    model, tokens = random_model(), random_tokens(2, 9)
    forced = ForcedPath(torch.tensor([0, 2, 2, 0]).view(1, 4, 1), None)
    model(tokens, forced=forced)[0].sum().backward()
    for number, block in enumerate(model.library):
        assert all((parameter.grad is not None) == (number in (0, 2)) for parameter in block.parameters())


@torch.no_grad()
def test_a_prompt_alone_gives_no_logits_and_less_is_refused():
    model, tokens = random_model(), random_tokens(2, 0)
    logits, choices = model(tokens)
    assert logits.shape == (2, 0, VOCABULARY)
    assert [choice.ids.shape for choice in choices] == [(2, 1)] * 4
    with pytest.raises(ValueError, match=f"{P - 1} tokens; the prompt alone has {P}"):
        model(tokens[:, 1:])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"width": 18}, "width"),
        ({"field": P}, "field"),
        ({"field": 0}, "field"),
        ({"router": "none"}, "router"),
        ({"segment": 0}, "segment"),
        ({"summary_decay": 1.1}, "summary_decay"),
        ({"summary_decay": float("nan")}, "summary_decay"),
        ({"window": 0}, "window"),
        ({"shift": -1}, "shift"),
        ({"noise": float("nan")}, "noise"),
        ({"depth": 0}, "depth"),
        ({"shared_cells": True, "prompt_embedding": False}, "shared_cells"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_by_name(change, word):
    shape = {"vocabulary": VOCABULARY, "prompt": P, "field": FIELD, "width": 16, "heads": 2, **change}
    with pytest.raises(UsageError, match=f"model.{word}"):
        ModelConfig(**shape).validate()


def gradients(**how):
    """Gradients along one random forced path, for a model computed in the given way."""
    generator = torch.Generator().manual_seed(3)
    path = ForcedPath(torch.randint(4, (6, 4, 5), generator=generator), torch.rand(6, 4, 5, generator=generator))
    model = random_model()
    for name, value in how.items():
        setattr(model, name, value)
    model(random_tokens(6, 3 * W), forced=path)[0].square().mean().backward()
    return {name: tensor.grad for name, tensor in model.named_parameters() if tensor.grad is not None}


def test_tiles_change_gradients_by_rounding_only():
    plain, tiled = gradients(), gradients(tile=8)
    for name, grad in plain.items():
        assert_near(tiled[name], grad, 1e-4)


def test_bf16_products_give_nearly_the_same_gradients():
    plain, halved = gradients(), gradients(tile=8, matmul_dtype=torch.bfloat16)
    for name, grad in plain.items():
        assert halved[name].dtype == torch.float32
        assert torch.cosine_similarity(halved[name].flatten(), grad.flatten(), 0) > 0.99, name


@pytest.mark.slow
@pytest.mark.skipif(not compiler_available(torch.device("cpu")), reason="no C++ compiler here")
def test_compiled_operations_change_gradients_by_rounding_only():
    plain, compiled = gradients(), gradients(ops=compiled_ops())
    for name, grad in plain.items():
        assert_near(compiled[name], grad, 1e-4)
