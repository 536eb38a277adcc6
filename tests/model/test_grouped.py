"""Products with a block per token: against the plain reference, forward and backward."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.model.grouped import Dispatch, grouped_linear, grouped_linear_reference, rows_for


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_output_and_gradients_equal_the_reference(sizes, seed):
    if not sum(sizes):
        sizes[0] = 1
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), 6, generator=generator, dtype=torch.float64)
    weights = [torch.randn(5, 6, generator=generator, dtype=torch.float64) for _ in sizes]
    upstream = torch.randn(sum(sizes), 5, generator=generator, dtype=torch.float64)
    results = []
    for product in (grouped_linear, grouped_linear_reference):
        leaves = [tensor.clone().requires_grad_() for tensor in (x, *weights)]
        out = product(leaves[0], sizes, leaves[1:])
        out.backward(upstream)
        results.append((out.detach(), [leaf.grad for leaf in leaves]))
    (out, grads), (expected, expected_grads) = results
    torch.testing.assert_close(out, expected)
    for grad, expected_grad, size in zip(grads, expected_grads, [1, *sizes], strict=True):
        if size:
            torch.testing.assert_close(grad, expected_grad)
        else:
            assert grad is None  # not zeros: an optimiser must pass an unused block over
            assert expected_grad is None


def test_bf16_inputs_meet_fp32_weights_in_bf16_and_gradients_come_back_in_fp32():
    x = torch.randn(4, 6).bfloat16().requires_grad_()
    weights = [torch.randn(5, 6, requires_grad=True) for _ in range(2)]
    out = grouped_linear(x, [1, 3], weights)
    out.sum().backward()
    assert out.dtype == x.grad.dtype == torch.bfloat16
    assert {weight.grad.dtype for weight in weights} == {torch.float32}
    torch.testing.assert_close(out, grouped_linear_reference(x, [1, 3], weights))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.sampled_from([1, 4, 64]))
def test_dispatch_is_a_stable_sort_filled_up_to_tiles(blocks, tile):
    dispatch = Dispatch.of(torch.tensor(blocks), 5, tile)
    assert dispatch.sizes == [-(-blocks.count(block) // tile) * tile for block in range(5)]
    x = torch.arange(1.0, 2.0 * len(blocks) + 1).view(-1, 2)
    parts = dispatch.sort(x).split(dispatch.sizes)
    for block, part in enumerate(parts):
        own = x[[k for k, other in enumerate(blocks) if other == block]]
        assert torch.equal(part[: len(own)], own)
        assert not part[len(own) :].any()
    assert torch.equal(dispatch.unsort(torch.cat(parts)), x)


@pytest.mark.parametrize("tile", [1, 4])
def test_dispatch_passes_gradients_back_to_their_rows(tile):
    dispatch = Dispatch.of(torch.tensor([2, 0, 1, 0, 2]), 3, tile)
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(dispatch.sort, x)
    sorted_x = torch.randn(sum(dispatch.sizes), 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(dispatch.unsort, sorted_x)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.sampled_from([1, 4]))
def test_places_that_are_kept_stay_in_order_and_the_others_get_nothing(mask, tile):
    dispatch, kept = Dispatch.keep(torch.tensor(mask), tile), sum(mask)
    rows = rows_for(kept, len(mask), tile)
    assert dispatch.sizes == [rows] and rows % tile == 0 and kept <= rows < kept + tile + (kept < len(mask))
    x = torch.arange(1.0, 2.0 * len(mask) + 1).view(-1, 2).requires_grad_()
    out = dispatch.sort(x)
    assert torch.equal(out[:kept], x[torch.tensor(mask)])
    assert not out[kept:].any()
    upstream = torch.ones_like(out)
    upstream[dispatch.filling] = 0  # as wherever it is used: nothing that counts depends on the filling
    out.backward(upstream)
    assert x.grad[:, 0].tolist() == [float(keep) for keep in mask]
    back = dispatch.unsort(out.detach())
    assert torch.equal(back[torch.tensor(mask)], x.detach()[torch.tensor(mask)])


@given(st.lists(st.integers(-1, 3), min_size=2, max_size=30), st.sampled_from([1, 4]))
def test_two_dispatches_in_one(blocks, tile):
    """Places are kept (where the block is not -1), then sorted by block."""
    places = torch.tensor(blocks)
    if (places < 0).all():
        return
    kept = Dispatch.keep(places >= 0, tile)
    numbers = kept.spread(places[:, None])[:, 0]  # rows of the filling go to block 0 here
    by_block = Dispatch.of(numbers, 4, tile)
    both = kept.then(by_block)
    x = torch.randn(len(blocks), 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(both.sort(x), by_block.sort(kept.sort(x)))
    assert both.sizes == by_block.sizes
    assert torch.equal(both.unsort(both.sort(x))[places >= 0], x[places >= 0])
