"""Each kernel and the whole model with kernels, forward and backward, against plain PyTorch.

`test_kernels.py` runs this file, on a CPU in Triton's interpreter and on a GPU; so does
`TRITON_INTERPRET=1 python -m pytest tests/model/kernel_checks.py`.
"""

import itertools
from dataclasses import replace

import pytest
import torch

from lol_data.model import kernels
from lol_data.model.decoding import Decoder
from lol_data.model.kernels import interpreted
from lol_data.model.ops import PLAIN, compiled_ops, compiler_available, with_norm
from lol_data.model.routing import ForcedPath, prefix_means, window_means
from lol_data.training.loop import Trainer
from lol_data.training.machine import compare_kernels

from ..training.common import assert_idle_blocks_stay, make_config, sequences
from .common import ROUTERS, P, W, assert_near, random_model, random_tokens

DEVICE = torch.device("cpu" if interpreted() else "cuda")
ON_GPU = pytest.mark.skipif(interpreted(), reason="needs a GPU")
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}  # inputs are rounded alike
FORMATS = [torch.float32, torch.float16 if interpreted() else torch.bfloat16]  # the interpreter cannot multiply bf16
KERNELS = kernels.load()


def numbers(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def results(function, inputs, upstream):
    """What a function gives and the gradients of its inputs, for a gradient of its result."""
    leaves = [None if value is None else value.clone().requires_grad_() for value in inputs]
    out = function(*leaves)
    out.backward(upstream.to(out.dtype))
    return [out.detach(), *(leaf.grad for leaf in leaves if leaf is not None)]


def compare(function, reference, inputs, upstream, tolerance=1e-5):
    for actual, expected in zip(*(results(way, inputs, upstream) for way in (function, reference)), strict=True):
        assert actual.dtype == expected.dtype
        assert_near(actual.float(), expected.float(), tolerance)


@pytest.fixture(autouse=True, scope="module")
def a_working_interpreter():
    try:
        bounds = torch.tensor([0, 1, 2], dtype=torch.int32, device=DEVICE)
        KERNELS.router_inputs(numbers(2, 16), bounds, bounds[:1].long(), 2, numbers(16), 1.0)
    except Exception as error:
        if "only 0-dimensional arrays" in str(error):
            pytest.skip("the interpreter of Triton 3.6 cannot count with NumPy 2.4")
        raise


# RMSNorm and FiLM


def norms(dtype):
    """The kernel and the plain way, to a number format."""
    return [
        lambda h, scale, offset, way=way: way(h, scale, offset, dtype) for way in (KERNELS.norm_film, PLAIN.norm_film)
    ]


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize("with_offset", [True, False])
@pytest.mark.parametrize(("rows", "width"), [(37, 16), (1, 96), (0, 96), (19, 384), (5, 1536)])
def test_norm_film(rows, width, with_offset, dtype, monkeypatch):
    monkeypatch.setattr("lol_data.model.kernels.norms.PROGRAMS", 2)  # so that few rows are many for one
    inputs = numbers(rows, width), numbers(width, seed=1), numbers(width, seed=2) if with_offset else None
    compare(*norms(dtype), inputs, numbers(rows, width, seed=3).to(dtype), TOLERANCE[dtype])


@ON_GPU
def test_norm_film_of_many_rows():
    inputs = numbers(100_000, 384), numbers(384, seed=1), numbers(384, seed=2)
    compare(*norms(torch.bfloat16), inputs, numbers(100_000, 384, seed=3).bfloat16(), 1e-2)


# Products of windows with their blocks' weights


def windows_of(widths, lengths):
    """Windows of such widths of sequences of such lengths: slices, bounds int32 (B K + 1,), window of each row."""
    starts = [0, *itertools.accumulate(widths)]
    slices = list(itertools.pairwise(starts))
    counts = [[max(0, min(length, end) - start) for start, end in slices] for length in lengths]
    flat = torch.tensor(counts).flatten()
    bounds = torch.cat([torch.zeros(1, dtype=torch.long), flat.cumsum(0)])
    window = torch.repeat_interleave(torch.arange(len(flat)), flat)
    return slices, bounds.to(DEVICE, torch.int32), window.to(DEVICE)


# Widths of windows, lengths of sequences, blocks; a window behind its sequence's end has a block too, and no row.
SHAPES = {
    "one row": ([5], [1], [[2]]),
    "one window": ([40], [40], [[1]]),
    "ragged": ([7, 4, 4, 3], [18, 7, 12, 8], [[0, 1, 3, 1], [3, 3, 3, 3], [0, 3, 1, 1], [1, 0, 0, 2]]),
    "a prompt longer than a tile": ([150, 20], [170, 151], [[3, 0], [3, 1]]),
    "all to one block": ([33, 32, 32, 32, 32], [161, 150, 97], [[2] * 5] * 3),
}


def reference_linear(x, window, ids, weights):
    """Every row with every block, of which its own counts; rows behind the last window get zeros."""
    blocks = torch.cat([ids.flatten()[window], window.new_full((len(x) - len(window),), -1)])
    return sum(torch.where((blocks == b)[:, None], x @ weight.T, 0) for b, weight in enumerate(weights))


def check_products(shape, inner, columns, filling, dtype, blocks=4, tolerance=None):
    widths, lengths, ids = shape
    slices, bounds, window = windows_of(widths, lengths)
    ids, tokens = torch.as_tensor(ids).to(DEVICE), len(window)
    tiles = KERNELS.tiles(slices, bounds, ids, tokens, blocks)
    x, upstream = numbers(tokens + filling, inner, dtype=dtype), numbers(tokens + filling, columns, seed=2, dtype=dtype)
    weights = numbers(blocks, columns, inner, seed=1, dtype=dtype) * inner**-0.5
    expected = results(
        lambda x, weights: reference_linear(x.float(), window, ids, weights.float()), (x, weights), upstream
    )
    x[tokens:] = upstream[tokens:] = torch.nan  # what lies in no window must not be read
    own = results(lambda x, weights: KERNELS.window_linear(x, tiles, weights), (x, weights), upstream)
    for actual, wanted in zip(own, expected, strict=True):
        assert_near(actual.float(), wanted.float(), tolerance or TOLERANCE[dtype])
    out, grad_x, grad_weights = own
    assert not out[tokens:].any() and not grad_x[tokens:].any()
    idle = [block for block in range(blocks) if not (ids.flatten()[window] == block).any()]
    assert not grad_weights[idle].any()


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_products(name, dtype):
    check_products(SHAPES[name], 24, 40, 3, dtype)


@pytest.mark.parametrize(("inner", "columns"), [(96, 384), (384, 96), (16, 16), (20, 33), (7, 5)])
def test_products_of_widths_that_are_no_powers_of_two(inner, columns):
    check_products(SHAPES["ragged"], inner, columns, 0, torch.float32)


@ON_GPU
@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize(("inner", "columns"), [(384, 1152), (384, 384), (384, 2048), (1024, 384), (2048, 2048)])
def test_products_of_a_large_batch(inner, columns, dtype):
    lengths = torch.randint(100, 300, (64,), generator=torch.Generator().manual_seed(0)).tolist()
    ids = torch.randint(8, (64, 5), generator=torch.Generator().manual_seed(1))
    ids[:, 0] = 3
    check_products(
        ([99, 32, 64, 64, 64], lengths, ids), inner, columns, 1, dtype, 9, 1e-4 if dtype == torch.float32 else 2e-2
    )


def test_gradients_of_weights_repeat_bit_for_bit_and_are_none_for_idle_blocks():
    model = random_model().to(DEVICE)
    widths, lengths, ids = SHAPES["all to one block"]
    slices, bounds, window = windows_of(widths, lengths)
    tiles = KERNELS.tiles(slices, bounds, torch.tensor(ids).to(DEVICE), len(window), 4)
    gradients = []
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        stacked = KERNELS.stack(model.library, torch.float32)
        stacked.note(tiles)
        out = KERNELS.window_linear(numbers(len(window), 16), tiles, stacked.weights["qkv"])
        out.square().sum().backward()
        gradients.append([block.qkv.grad for block in model.library])
        assert all(block.up.grad is None for block in model.library)
    assert [gradient is None for gradient in gradients[0]] == [True, True, False, True]
    assert torch.equal(gradients[0][2], gradients[1][2])


# Router inputs


@pytest.mark.parametrize("decay", [0.0, 0.9, 1.0])
@pytest.mark.parametrize(
    ("widths", "lengths", "width", "filling"),
    [([7], [7, 7], 16, 0), ([70, 4, 8, 8], [90, 70, 75], 96, 5), ([3, 1, 2], [4], 130, 1)],
)
def test_router_inputs(widths, lengths, width, filling, decay):
    slices, bounds, window = windows_of(widths, lengths)
    opening = bounds[:-1].view(len(lengths), -1)[:, 0].long() + 2
    inputs = numbers(len(window) + filling, width), numbers(width, seed=1)
    inputs[0][len(window) :] = torch.nan

    def plain(h, vector):
        means = window_means(h, window, len(lengths) * len(slices)).view(len(lengths), len(slices), -1)
        return prefix_means(means, h[opening], vector, decay)

    def own(h, vector):
        return KERNELS.router_inputs(h, bounds, opening, len(window), vector, decay)

    compare(own, plain, inputs, numbers(len(lengths), len(slices), width, seed=2))


# The model


def with_kernels(model):
    model.kernels = KERNELS
    model.ops = with_norm(model.ops, KERNELS.norm_film)
    return model


def passes(model, tokens, lengths=None, forced=None):
    """Logits that count, routes and gradients without kernels, then with them."""
    model = model.to(DEVICE).eval()
    tokens, lengths = tokens.to(DEVICE), None if lengths is None else lengths.to(DEVICE)
    real = torch.ones(len(tokens), tokens.shape[1] - P, dtype=torch.bool, device=DEVICE)
    if lengths is not None:
        real = torch.arange(P, tokens.shape[1], device=DEVICE) < lengths[:, None]
    for change in (lambda model: model, with_kernels):
        change(model).zero_grad(set_to_none=True)
        logits, choices = model(tokens, lengths=lengths, forced=forced)
        logits[real].square().mean().backward()
        yield logits[real].detach(), choices, {name: parameter.grad for name, parameter in model.named_parameters()}


def check_model(model, tokens, lengths=None, forced=None, tolerance=1e-4):
    (logits, choices, gradients), (own_logits, own_choices, own_gradients) = passes(model, tokens, lengths, forced)
    assert_near(own_logits, logits, tolerance)
    for own, choice in zip(own_choices, choices, strict=True):
        assert torch.equal(own.ids, choice.ids)
        assert_near(own.gates, choice.gates, tolerance)
    for name, gradient in gradients.items():
        assert (own_gradients[name] is None) == (gradient is None), name
        if gradient is not None:
            assert_near(own_gradients[name] / gradient.abs().max(), gradient / gradient.abs().max(), tolerance)


RAGGED = torch.tensor([P + 3 * W, P, P + 5, P + 1])


@pytest.mark.parametrize("change", [{}, {"field_readers": "all"}, *ROUTERS], ids=str)
def test_a_model_with_kernels_is_the_same_model(change):
    check_model(random_model(**{"depth": 3, **change}), random_tokens(4, 3 * W), RAGGED)


def test_without_padding_and_without_a_suffix():
    check_model(random_model(depth=2), random_tokens(2, 2 * W))
    model = with_kernels(random_model(depth=2).to(DEVICE))
    assert model(random_tokens(2, 0).to(DEVICE))[0].shape[:2] == (2, 0)


def test_truncated_backpropagation():
    model = random_model(depth=3)
    model.cut = 2
    check_model(model, random_tokens(4, 3 * W), RAGGED)


def test_blocks_that_a_forced_path_leaves_out_have_no_gradient():
    model = random_model(depth=2)
    ids = torch.tensor([[[0, 2, 2], [2, 0, 2]]]).to(DEVICE)
    check_model(model, random_tokens(2, 2 * W), forced=ForcedPath(ids, None))
    assert [block.qkv.grad is None for block in model.library] == [False, True, False, True]


@pytest.mark.slow
@pytest.mark.skipif(not compiler_available(DEVICE), reason="no C++ compiler here")
def test_together_with_compiled_operations():
    model = random_model(depth=2)
    model.ops = compiled_ops()
    check_model(model, random_tokens(2, 2 * W))


@torch.no_grad()
def test_prefill_and_decoding_are_as_before():
    model = random_model(depth=2).to(DEVICE).eval()
    tokens = random_tokens(2, W + 1).to(DEVICE)
    given = []
    for _ in range(2):
        decoder = Decoder(model, tokens[:, :P], W + 1)
        given.append([decoder.step(tokens[:, P + k])[0] for k in range(W + 1)])
        with_kernels(model)
    for own, plain in zip(*reversed(given), strict=True):
        assert_near(own, plain)
    whole, _ = model(tokens)
    assert_near(torch.stack(given[1], 1), whole, 1e-4)


@ON_GPU
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("matmul", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("width", "hidden", "window"), [(96, 256, 32), (384, 1024, 64)])
def test_a_model_of_full_size(width, hidden, window, matmul, compiled):
    shape = {"width": width, "heads": 6, "hidden": hidden, "window": window, "shift": window // 2, "blocks": 8}
    model = random_model(**shape)
    model.matmul_dtype = model.attention_dtype = matmul
    model.ops = compiled_ops() if compiled else PLAIN
    suffix, batch = 5 * window, 48
    generator = torch.Generator().manual_seed(1)
    path = ForcedPath(torch.randint(8, (batch, 4, 6), generator=generator).to(DEVICE), None)  # rounding may flip others
    lengths = torch.randint(P, P + suffix, (batch,), generator=generator)
    lengths[0] = P + suffix
    (logits, _, gradients), (own_logits, _, own_gradients) = passes(model, random_tokens(batch, suffix), lengths, path)
    tolerance = 1e-3 if matmul == torch.float32 else 0.02
    assert (own_logits - logits).norm() < tolerance * logits.norm()
    for name, gradient in gradients.items():
        assert (own_gradients[name] is None) == (gradient is None), name
        if gradient is not None:
            assert (own_gradients[name] - gradient).norm() < tolerance * gradient.norm(), name


# Training


def make_trainer(kernels, **model):
    train = {"kernels": kernels, "batch": 4, "micro_batch": 2, "weight_decay": 0.1, "steps": 20}
    return Trainer(make_config({"noise": 0.0, **model}, **train), sequences(3, 3), sequences(1, 3, seed=9), DEVICE)


def test_steps_are_those_of_a_run_without_kernels():
    trainers = [make_trainer(kernels) for kernels in ("yes", "no")]
    assert [trainer.machine["kernels"] for trainer in trainers] == [True, False]
    for _ in range(2):
        own, plain = (trainer.run_step() for trainer in trainers)
        assert own["loads"] == plain["loads"]
        assert own["loss"] == pytest.approx(plain["loss"], abs=1e-4)
    own, plain = (trainer.validate() for trainer in trainers)
    assert own["validation_loss"] == pytest.approx(plain["validation_loss"], abs=1e-3)


def test_a_block_that_no_window_takes_is_not_moved():
    trainer = make_trainer("yes")
    assert_idle_blocks_stay(trainer, 2)


@pytest.mark.parametrize("model", [{}, {"router": "fixed"}], ids=str)
def test_kernels_are_measured_against_the_plain_way(model, monkeypatch):
    monkeypatch.setattr("lol_data.training.machine.PASSES", 1)
    trainer = make_trainer("no", **model)
    values = compare_kernels(trainer.model, trainer.machine, trainer._typical_batch())
    assert "forward and backward" in values["kernels_why"]
    if interpreted():
        assert not values["kernels"]
    assert trainer.model.training and all(parameter.grad is None for parameter in trainer.model.parameters())


def test_kernels_that_fail_or_err_are_not_used(monkeypatch):
    monkeypatch.setattr("lol_data.training.machine.PASSES", 1)
    trainer = make_trainer("no")

    def fails(*_):
        raise RuntimeError("out of resources\nand more")

    for window_linear, said in [
        (fails, "they do not work here: out of resources"),
        (lambda *arguments: 1.2 * KERNELS.window_linear(*arguments), "% off"),
        (lambda *arguments: torch.nan * KERNELS.window_linear(*arguments), "nan% off"),
    ]:
        monkeypatch.setattr(kernels, "load", lambda broken=window_linear: replace(KERNELS, window_linear=broken))
        values = compare_kernels(trainer.model, trainer.machine, trainer._typical_batch())
        assert not values["kernels"] and values["kernels_why"].endswith(said)
