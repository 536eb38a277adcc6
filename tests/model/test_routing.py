"""The router's parts by hand: prefix means, choice and gate, gradients, noise, forced paths."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lol_data.model.routing import Choice, FixedRouter, ForcedPath, Router, prefix_means, window_means
from lol_data.model.windows import Windows

SHIFTED = [(0, 2), (2, 6), (6, 8)]  # the notes' second depth: eight tokens, W = 4, S = 2


def router_inputs(h, slices, first, vector, decay=1.0):
    """r of every window, (B, K, d), from the states of all tokens, (B, T, d)."""
    lengths = torch.tensor([end - start for start, end in slices])
    window = torch.repeat_interleave(torch.arange(len(slices)), lengths)
    window = (window + len(slices) * torch.arange(len(h))[:, None]).flatten()
    means = window_means(h.flatten(0, 1), window, len(h) * len(slices)).view(len(h), len(slices), -1)
    return prefix_means(means, first, vector, decay)


def test_prefix_means_weigh_windows_not_tokens():
    h = torch.eye(8)[None]  # so that r is the weights themselves
    first, vector = torch.zeros(1, 8), torch.arange(8.0)
    r = router_inputs(h, SHIFTED, first, vector)
    assert r.shape == (1, 3, 8)
    assert r[0, 0].tolist() == (vector / 2).tolist()
    assert r[0, 1].tolist() == [1 / 2, 1 / 2, 0, 0, 0, 0, 0, 0]
    assert r[0, 2].tolist() == [1 / 4, 1 / 4, 1 / 8, 1 / 8, 1 / 8, 1 / 8, 0, 0]


def test_the_scalar_example():
    h = torch.tensor([1.0, 3, 0, 2, 4, 6, 8, 10]).view(1, 8, 1)
    first, vector = torch.tensor([[1.0]]), torch.tensor([5.0])
    assert router_inputs(h, SHIFTED, first, vector).flatten().tolist() == [3.0, 2.0, 2.5]
    h[0, 5] = 60  # in the second window: its own choice must not see it, the third's does
    assert router_inputs(h, SHIFTED, first, vector).flatten().tolist() == [3.0, 2.0, (2 + 16.5) / 2]


def test_a_decay_fades_old_windows_whatever_their_length():
    h, first, vector = torch.eye(8)[None], torch.zeros(1, 8), torch.ones(8)
    half = router_inputs(h, SHIFTED, first, vector, decay=0.5)
    assert half[0, 0].tolist() == [1 / 2] * 8  # window 0 has no history to fade
    assert half[0, 1].tolist() == [1 / 2, 1 / 2, 0, 0, 0, 0, 0, 0]
    torch.testing.assert_close(half[0, 2], torch.tensor([1, 1, 1, 1, 1, 1, 0, 0]) / 6)  # 1/3 of two, 2/3 of four
    last = router_inputs(h, SHIFTED, first, vector, decay=0.0)
    assert last[0, 2].tolist() == [0, 0, 1 / 4, 1 / 4, 1 / 4, 1 / 4, 0, 0]


@given(st.lists(st.integers(1, 5), min_size=3, max_size=6), st.floats(0, 1), st.integers(0, 2**31))
def test_router_inputs_are_weighted_means_and_move_by_equation_16(lengths, decay, seed):
    h = torch.randn(2, sum(lengths), 3, generator=torch.Generator().manual_seed(seed))
    ends = list(itertools.accumulate(lengths))
    slices = list(zip([0, *ends], ends, strict=False))
    r = router_inputs(h, slices, h[:, 0], torch.ones(3), decay)
    means = torch.stack([h[:, a:b].mean(1) for a, b in slices], 1)
    for k in range(1, len(slices)):
        shares = decay ** torch.arange(k - 1, -1, -1.0)
        expected = (shares[:, None] * means[:, :k]).sum(1) / shares.sum()
        torch.testing.assert_close(r[:, k], expected, rtol=1e-4, atol=1e-5)
    equal = router_inputs(h, slices, h[:, 0], torch.ones(3))
    for k in range(1, len(slices) - 1):
        moved = (means[:, k] - equal[:, k]) / (k + 1)
        torch.testing.assert_close(equal[:, k + 1] - equal[:, k], moved, rtol=1e-4, atol=1e-5)


def test_an_unfinished_window_is_no_history():
    h = torch.randn(2, 30, 3)
    windows = Windows(5, 4, 2)
    whole = router_inputs(h, windows.slices(30, 2), h[:, 0], torch.ones(3))
    for length in range(5, 30):
        slices = windows.slices(length, 2)
        cut = router_inputs(h[:, :length], slices, h[:, 0], torch.ones(3))
        assert torch.equal(cut, whole[:, : len(slices)])


def router_of(probabilities, bias=None, noise=0.0) -> Router:
    """A router that gives these probabilities on the input (1, 0)."""
    router = Router(2, len(probabilities), 1, noise)
    with torch.no_grad():
        router.weight.zero_()
        router.weight[0, :, 0] = torch.tensor(probabilities).log()
        router.bias += torch.tensor(bias or [0.0] * len(probabilities))
    return router


INPUT = torch.tensor([[[1.0, 0.0]]])


def test_the_bias_chooses_and_the_raw_probability_gates():
    choice = router_of([0.45, 0.40, 0.15], bias=[0, 0.08, 0])(INPUT, 1)
    assert choice.ids.tolist() == [[1]]
    torch.testing.assert_close(choice.gates, torch.tensor([[0.40]]))
    torch.testing.assert_close(choice.probabilities, torch.tensor([[[0.45, 0.40, 0.15]]]))
    assert router_of([0.45, 0.40, 0.15])(INPUT, 1).ids.tolist() == [[0]]


def test_logits_of_all_blocks_get_the_gradient_of_equations_7_and_8():
    router = router_of([0.45, 0.40, 0.15], bias=[0, 0.08, 0])
    generator = torch.Generator().manual_seed(1)
    h, update, upstream = torch.randn(3, 4, 5, generator=generator)  # a window of 4 tokens
    choice = router(INPUT, 1)
    (upstream * (h + choice.gates[0, 0] * update)).sum().backward()
    p, chosen = torch.tensor([0.45, 0.40, 0.15]), torch.tensor([0.0, 1.0, 0.0])
    expected = (upstream * update).sum() * p[1] * (chosen - p)
    torch.testing.assert_close(router.weight.grad[0, :, 0], expected)
    assert (expected != 0).all()
    assert router.bias.grad is None


def test_noise_is_for_training_only():
    router = router_of([0.4, 0.35, 0.25], noise=0.5)
    calm = router.eval()(INPUT, 1)
    assert torch.equal(calm.probabilities, router(INPUT, 1).probabilities)
    torch.manual_seed(0)
    router.train()
    noisy = router(INPUT.expand(200, 8, 2), 1)
    assert len(noisy.ids.unique()) == 3
    logits = noisy.probabilities.log() - noisy.probabilities.log().mean(-1, keepdim=True)
    spread = (logits[..., 0] - logits[..., 1]).std().item()  # of the difference of two draws
    assert spread == pytest.approx(0.5 * 2**0.5, rel=0.1)
    assert router_of([0.4, 0.35, 0.25]).train()(INPUT, 1).gates.item() == pytest.approx(0.4)


def test_a_router_per_depth_uses_its_own_matrix_and_the_last_one_past_the_end():
    router = Router(2, 3, 3, noise=0)
    with torch.no_grad():
        router.weight.zero_()
        for depth in range(3):
            router.weight[depth, depth, 0] = 5
    assert [router(INPUT, depth).ids.item() for depth in (1, 2, 3, 4)] == [0, 1, 2, 2]


def test_with_a_norm_only_the_direction_of_the_inputs_counts():
    plain, normed = Router(4, 3, 1, noise=0), Router(4, 3, 1, noise=0, normed=True)
    normed.load_state_dict(plain.state_dict())
    r = torch.tensor([[[3.0, -1.0, 2.0, 0.5]]])
    expected = plain.probabilities(r / r.square().mean().sqrt(), 1)
    for size in (0.1, 1.0, 1000.0):
        torch.testing.assert_close(normed.probabilities(size * r, 1), expected, rtol=1e-4, atol=1e-5)
    assert (plain.probabilities(1000 * r, 1) - expected).abs().max() > 0.1


def test_the_first_window_of_a_segment_chooses_for_all_of_it():
    router, plain = Router(2, 3, 1, noise=0, segment=3), Router(2, 3, 1, noise=0)
    plain.weight = router.weight
    r = torch.randn(2, 8, 2, generator=torch.Generator().manual_seed(0))
    held, free = router(r, 1).probabilities, plain(r, 1).probabilities
    openers = [0, 1, 1, 1, 4, 4, 4, 7]  # the prompt is a segment of its own
    assert torch.equal(held, free[:, openers])
    before = None
    for k in range(1, 8):  # one window at a time, as in decoding
        before = router(r[:, k : k + 1], 1, k, before=before)
        torch.testing.assert_close(before.probabilities[:, 0], held[:, k])


def test_noise_in_training_is_drawn_once_a_segment():
    router = router_of([0.4, 0.35, 0.25], noise=0.5)
    router.segment = 2
    p = router.train()(INPUT.expand(1, 5, 2), 1).probabilities[0]
    assert torch.equal(p[1], p[2])
    assert torch.equal(p[3], p[4])
    assert not torch.equal(p[1], p[3])


def test_a_fixed_path_takes_the_blocks_in_turn_and_no_advice():
    router = FixedRouter(2, 3)
    router.bias += torch.tensor([9.0, 0, 0])
    routes = [router.train()(INPUT.expand(2, 4, 2), depth) for depth in range(1, 6)]
    assert [route.ids.unique().tolist() for route in routes] == [[0], [1], [2], [0], [1]]
    assert all((route.gates == 1).all() and route.ids.shape == (2, 4) for route in routes)
    forced = router(INPUT.expand(1, 2, 2), 1, forced=ForcedPath(IDS, None))
    assert forced.ids.tolist() == [[2, 1]]
    assert forced.gates.tolist() == [[0, 0]]  # its own probability of another block


def test_the_router_computes_in_fp32_whatever_it_is_given():
    choice = router_of([0.5, 0.3, 0.2])(INPUT.bfloat16(), 1)
    assert choice.probabilities.dtype == choice.gates.dtype == torch.float32
    torch.testing.assert_close(choice.gates, torch.tensor([[0.5]]))


IDS = torch.tensor([[[2, 1], [0, 2]]])  # D = 2, K = 2
GATES = torch.tensor([[[0.9, 0.8], [0.7, 0.6]]])
P = [0.5, 0.3, 0.2]


@pytest.mark.parametrize("own_ids", [True, False])
@pytest.mark.parametrize("own_gates", [True, False])
def test_a_path_may_force_blocks_gates_or_both(own_ids, own_gates):
    forced = ForcedPath(None if own_ids else IDS, None if own_gates else GATES)
    choice = router_of(P)(INPUT.expand(1, 2, 2), 1, forced=forced)
    ids = [0, 0] if own_ids else [2, 1]
    assert choice.ids.tolist() == [ids]
    torch.testing.assert_close(choice.gates, torch.tensor([[P[k] for k in ids] if own_gates else [0.9, 0.8]]))
    torch.testing.assert_close(choice.probabilities[0, 0], torch.tensor(P))


def test_a_path_is_read_at_its_depth_and_window_and_goes_on_with_its_last_window():
    forced, router = ForcedPath(IDS, GATES), router_of(P)

    def at(depth, first, count):
        choice: Choice = router(INPUT.expand(3, count, 2), depth, first, forced)  # one row serves the batch
        assert (choice.ids == choice.ids[0]).all()
        return choice.ids[0].tolist()

    assert at(1, 0, 2) == [2, 1]
    assert at(2, 0, 2) == [0, 2]
    assert at(2, 1, 1) == [2]
    assert at(1, 0, 5) == [2, 1, 1, 1, 1]
    assert at(2, 7, 2) == [2, 2]


def test_keeping_rows_of_a_path():
    forced = ForcedPath(torch.arange(3).view(3, 1, 1), None).keep(torch.tensor([2, 0]))
    assert forced.ids.flatten().tolist() == [2, 0]
    assert forced.gates is None
    shared = ForcedPath(IDS, GATES).keep(torch.tensor([5, 6]))
    assert torch.equal(shared.ids, IDS)
    assert torch.equal(shared.gates, GATES)
