"""Both ways of attention: the same values and gradients, and padding that is not computed."""

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch

from lol_data.model import attention
from lol_data.model.attention import Front, causal_mask, fused_attention, in_tiles, tiled_attention
from lol_data.model.ops import PLAIN

from .common import P, W, assert_near, random_model, random_tokens

CUTS = [
    ([(0, 20)], Front(2, 7)),  # full attention
    ([(0, 7), (7, 9), (9, 13), (13, 17), (17, 20)], Front(2, 7)),  # a prompt and shifted windows
    ([(0, 18)], Front(0, 5)),  # the field is cut off
    ([(0, 4), (4, 5)], Front(0, 4)),
]
CUTS += [(slices, replace(front, whole=True)) for slices, front in CUTS]

SIZES = [{"TILE": 128}, {"WHOLE": 3, "TILE": 3, "SCORES": 1}, {"WHOLE": 5, "TILE": 1, "SCORES": 40}]


def angles(length, half):
    turns = torch.arange(length)[:, None] * torch.tensor([1.0, 0.3])[:half]
    return turns.cos(), turns.sin()


@pytest.mark.parametrize(("slices", "front"), CUTS)
@pytest.mark.parametrize("reach", [None, 3])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_both_ways_are_the_same_forward_and_backward(slices, front, reach, sizes):
    length, generator = slices[-1][1], torch.Generator().manual_seed(0)
    qkv, upstream = torch.randn(3, length, 3 * 8, generator=generator), torch.randn(3, length, 8, generator=generator)
    cos, sin = angles(length, 2)
    results = []
    for tiled in (True, False):
        leaf = qkv.clone().requires_grad_()
        if tiled:
            mask = causal_mask(length, front, leaf.device, reach)
            with patch.multiple(attention, **sizes):
                out = tiled_attention(leaf, cos, sin, mask, 2, slices, torch.float32, [length] * 3, front, reach)
        else:
            q, k, v = PLAIN.rotate(leaf, cos, sin, 2, torch.float32)
            out = fused_attention(q, k, v, slices, front, reach)
        out.backward(upstream)
        results.append((out.detach(), leaf.grad))
    (out, grad), (expected, expected_grad) = results
    assert_near(out, expected)
    assert_near(grad, expected_grad)


def test_a_mask_shows_the_field_to_the_field_alone():
    assert seen(Front(2, 4)) == [
        [1, 0, 1, 1, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 1],
    ]


def test_a_mask_shows_a_whole_problem_to_all_of_it_but_its_first_slot():
    assert seen(Front(1, 5, whole=True)) == [
        [1, 1, 1, 1, 1, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 1, 1],
    ]


def seen(front):
    mask = causal_mask(6, front, torch.device("cpu"))
    return [[int(value == 0) for value in row] for row in mask.tolist()]


def test_very_long_windows_and_other_devices_take_the_fused_way():
    cpu = torch.device("cpu")
    assert in_tiles([(0, 100), (100, 2148)], cpu)
    assert not in_tiles([(0, 100), (100, 2149)], cpu)
    assert not in_tiles([(0, 10)], torch.device("meta"))


@pytest.mark.parametrize("tile", [1, 8])
@pytest.mark.parametrize(
    "shape", [{}, {"router": "fixed"}, {"prelude": 0, "coda": 0}, {"whole_problem": True}], ids=str
)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_padding_that_is_not_computed_changes_nothing_else(shape, tile, sizes):
    lengths = torch.tensor([P + 3 * W, P + 1, P + W + 2, P])
    real = torch.arange(3 * W) < (lengths - P)[:, None]
    results = []
    for given in (None, lengths):
        model = random_model(**shape)
        model.tile = tile
        with patch.multiple(attention, **sizes):
            logits, choices = model(random_tokens(4, 3 * W), lengths=given)
        (logits.square().mean(-1) * real).sum().backward()
        results.append((logits, choices, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}))
    (logits, choices, grads), (packed, packed_choices, packed_grads) = results
    assert_near(packed[real], logits[real])
    for level, (a, b) in enumerate(zip(packed_choices, choices, strict=True), start=1):
        for row, length in enumerate(lengths.tolist()):
            begun = model.windows.index(length - 1, level) + 1
            assert torch.equal(a.ids[row, :begun], b.ids[row, :begun])
            assert_near(a.gates[row, :begun], b.gates[row, :begun])
    for name in packed_grads:  # a block that only padding took has none
        assert_near(packed_grads[name], grads[name], 1e-4)
    assert all(not grads[name].any() for name in grads.keys() - packed_grads.keys())
