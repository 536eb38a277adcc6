"""The notes' worked numbers, and the formulas against counting: paths, weights, FLOPs."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from lol_data.model.formulas import (
    Reuse,
    attention_pairs,
    block_parameters,
    core_attention_pairs,
    count_parameters,
    earliest_reachable,
    expected_distinct_blocks,
    flops_per_sequence,
    least_reuse,
    saved_by_growth,
)
from lol_data.model.ops import PLAIN
from lol_data.model.windows import Windows

from .common import FIELD, SHARED, VOCABULARY, P, W, random_model, random_tokens

NOTES = Windows(prompt=1, window=4, shift=2)  # one position in front of the notes' eight tokens


def test_attention_pairs_of_1024_tokens():
    windows = Windows(prompt=1, window=128, shift=64)
    prompt = attention_pairs([1])
    assert core_attention_pairs(windows, 1 + 1024, 1) - prompt == 66_048
    assert core_attention_pairs(windows, 1 + 1024, 2) - prompt == 61_952
    assert attention_pairs([1024]) == 524_800
    assert core_attention_pairs(windows, 1 + 1024, 3) - prompt == 66_048


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_attention_pairs_are_the_ones_of_the_mask(lengths):
    window = np.repeat(np.arange(len(lengths)), lengths)
    mask = (window[:, None] == window) & np.tri(len(window), dtype=bool)
    assert attention_pairs(lengths) == mask.sum()


def test_position_4_reaches_4_then_0_then_0():
    assert [earliest_reachable(NOTES, 9, depth)[1 + 4] - 1 for depth in (1, 2, 3)] == [4, 0, 0]
    assert earliest_reachable(NOTES, 9, 0) == list(range(9))


def test_without_a_shift_no_attention_crosses_a_window():
    still = Windows(prompt=1, window=4, shift=0)
    assert earliest_reachable(still, 9, 1) == earliest_reachable(still, 9, 50) == [0, 1, 1, 1, 1, 5, 5, 5, 5]


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 7), st.integers(0, 14), st.integers(1, 4))
def test_reach_is_the_product_of_the_masks(prompt, window, shift, suffix, depth):
    windows, length = Windows(prompt, window, shift), prompt + suffix
    reaches = np.eye(length, dtype=bool)
    for level in range(1, depth + 1):
        number = np.array([windows.index(i, level) for i in range(length)])
        reaches = ((number[:, None] == number) & np.tri(length, dtype=bool)) @ reaches
    assert earliest_reachable(windows, length, depth) == reaches.argmax(1).tolist()


def test_least_reuse_of_the_examples():
    assert least_reuse(blocks=2, depth=16) == Reuse(distinct=2, repeated=14, unused=0)
    assert least_reuse(blocks=24, depth=16) == Reuse(distinct=16, repeated=0, unused=8)


@given(st.integers(1, 8).flatmap(lambda L: st.tuples(st.just(L), st.lists(st.integers(0, L - 1), min_size=1))))
def test_no_path_beats_the_bounds(case):
    blocks, path = case
    distinct, bound = len(set(path)), least_reuse(blocks, len(path))
    assert distinct <= bound.distinct
    assert len(path) - distinct >= bound.repeated
    assert blocks - distinct >= bound.unused
    best = [depth % blocks for depth in range(len(path))]
    assert len(set(best)) == bound.distinct  # and one path reaches them


def test_expected_distinct_blocks_of_the_examples():
    assert round(expected_distinct_blocks(8, 16), 2) == 7.06
    assert round(expected_distinct_blocks(24, 16), 2) == 11.85
    assert round(expected_distinct_blocks(24, 8), 2) == 6.93  # eight requests in one decoding step


@pytest.mark.parametrize(("blocks", "draws"), [(1, 3), (2, 4), (3, 5), (4, 4)])
def test_expected_distinct_blocks_is_the_mean_over_all_paths(blocks, draws):
    paths = list(itertools.product(range(blocks), repeat=draws))
    mean = sum(len(set(path)) for path in paths) / len(paths)
    assert expected_distinct_blocks(blocks, draws) == pytest.approx(mean)


def test_growth_saves_a_quarter_in_the_example():
    assert saved_by_growth(fixed=8, block=1, mean_depth=10, depth=16) == 0.25


@given(st.integers(1, 9), st.integers(0, 9), st.lists(st.integers(1, 12), min_size=1))
def test_what_growth_saves_is_what_the_tokens_do_not_cost(block, fixed, depths):
    grown, full = sum(fixed + block * depth for depth in depths), len(depths) * (fixed + block * 12)
    saved = saved_by_growth(fixed, block, sum(depths) / len(depths), 12)
    assert saved == pytest.approx(1 - grown / full)


def step(h, matrix, gate):
    """One residual step of a linear block, as the core adds it: h + gate (E h - h)."""
    update = (matrix - torch.eye(2)) @ h
    return PLAIN.gate(h, torch.tensor([gate]), torch.zeros(2), update)


def test_the_order_of_two_blocks_matters_by_equations_17_and_18():
    a, b = torch.tensor([[1.0, 1], [0, 1]]), torch.tensor([[1.0, 0], [1, 1]])
    start = torch.tensor([1.0, 0])
    assert step(start, a, 1.0).tolist() == [1, 0]
    assert step(step(start, a, 1.0), b, 1.0).tolist() == [1, 1]
    assert step(start, b, 1.0).tolist() == [1, 1]
    assert step(step(start, b, 1.0), a, 1.0).tolist() == [2, 1]
    first, second = a - torch.eye(2), b - torch.eye(2)
    for alpha, beta in [(1.0, 1.0), (0.5, 0.25), (0.0, 1.0)]:
        difference = step(step(start, a, alpha), b, beta) - step(step(start, b, beta), a, alpha)
        assert torch.equal(difference, alpha * beta * (second @ first - first @ second) @ start)


SHAPES = [
    {},
    {"router": "per_depth", "prompt_embedding": False},
    {"router": "per_segment", "prelude": 2, "coda": 0},
    SHARED,
    {"router": "fixed", "blocks": 3, "window": 5, "shift": 2},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parameters_are_those_of_the_model(shape):
    model = random_model(**shape)
    counted, tensors = count_parameters(model.config), dict(model.named_parameters())
    assert counted.stored == sum(tensor.numel() for tensor in tensors.values())
    outside = ("embedding.weight", "prompt_embedding", "head")
    assert counted.non_embedding == sum(tensor.numel() for name, tensor in tensors.items() if name not in outside)
    library = sum(tensor.numel() for name, tensor in tensors.items() if name.startswith("library"))
    routing = tensors["router.weight"].numel() + (tensors["depth_vector"].numel() if "depth_vector" in tensors else 0)
    applied = library // model.config.blocks * model.config.depth
    assert counted.active == counted.non_embedding - library - routing + applied + tensors["head"].numel()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("depth", [1, 4])
def test_flops_are_those_that_torch_counts(shape, depth):
    model, suffix, batch = random_model(**shape).train(), 3 * W + 1, 2
    length, config = P + suffix, model.config
    with FlopCounterMode(display=False) as counter:
        logits, _ = model(random_tokens(batch, suffix), depth)
    forward = counter.get_total_flops() / batch
    with counter:
        logits.square().sum().backward()
    backward = counter.get_total_flops() / batch
    flops = flops_per_sequence(config, length, depth)

    # Whole squares are computed and masked; the formula counts the pairs that are allowed.
    def squares(lengths):
        return sum(n * n for n in lengths) * 4 * config.width

    attention = config.prelude * squares([length]) + config.coda * squares([length - FIELD])
    for level in range(1, depth + 1):
        attention += squares(end - start for start, end in model.windows.slices(length, level))
    # Behind a cut of the rows there is one row of filling a batch: in the coda, and in front of the head.
    attention += 2 * (config.coda * block_parameters(config) + VOCABULARY * config.width) / batch
    assert forward == flops.products + attention
    assert forward + backward == 3 * forward
    assert flops.training == 3 * (flops.products + flops.attention)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("attention", ["windows", "sliding", "full"])
def test_attention_flops_are_four_widths_a_pair_of_the_masks(depth, whole, attention):
    router = {"router": "shared" if attention == "windows" else "fixed"}
    config = random_model(prelude=2, coda=1, whole_problem=whole, attention=attention, **router).config
    length = P + 3 * W + 1
    positions = np.arange(length)
    field = (positions >= P - FIELD) & (positions < P)
    allowed = ~field | field[:, None]
    problem = positions < P - FIELD
    ahead = whole & problem[:, None] & problem & (positions[:, None] > 0)
    visible = ((positions[:, None] >= positions) | ahead) & allowed
    pairs = 2 * visible.sum() + visible[~field].sum()  # nothing of the field is computed behind the core
    windows = Windows(P, W, config.shift)
    for level in range(1, depth + 1):
        number = np.array([windows.index(i, level) for i in positions])
        near = (positions[:, None] - positions < W + FIELD * ~problem[:, None] * problem) | field[:, None] | ahead
        reach = {"windows": number[:, None] == number, "sliding": near, "full": True}
        pairs += (visible & reach[attention]).sum()
    assert flops_per_sequence(config, length, depth).attention == 4 * config.width * pairs
