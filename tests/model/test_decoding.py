"""Token by token with a cache: equal to the whole pass at every prefix; greedy generation against plain loops."""

import pytest
import torch

from lol_data.model.decoding import Decoder, generate
from lol_data.model.routing import ForcedPath

from .common import ROUTERS, SHARED, VOCABULARY, P, W, assert_near, random_model, random_tokens

LENGTH = 3 * W + 1
FIRST = 3
SHAPES = [{"shift": shift} for shift in range(W)] + [
    {"router": "per_depth", "window": 6, "shift": 3},
    {"prelude": 0, "coda": 2},
    {"prelude": 2, "coda": 0, "window": 1, "shift": 0},
    {"prompt_embedding": False, "window": 50, "shift": 25},
    {"blocks": 1},
    SHARED,
    *ROUTERS,
]


def random_path(batch, windows, seed=0) -> ForcedPath:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, (batch, 4, windows), generator=generator)
    return ForcedPath(ids, torch.rand(ids.shape, generator=generator))


def assert_steps_equal_forward(model, tokens, forced=None, depth=None):
    logits, choices = model(tokens, depth, forced)
    decoder = Decoder(model, tokens[:, :P], tokens.shape[1] - P, forced, depth)
    for k in range(tokens.shape[1] - P):
        step_logits, step_choices = decoder.step(tokens[:, P + k])
        assert_near(step_logits, logits[:, k])
        for level, (one, whole) in enumerate(zip(step_choices, choices, strict=True), start=1):
            window = model.windows.index(P + k, level)
            assert torch.equal(one.ids[:, 0], whole.ids[:, window])
            assert_near(one.gates[:, 0], whole.gates[:, window])
            assert_near(one.probabilities[:, 0], whole.probabilities[:, window])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.no_grad()
def test_every_step_equals_the_whole_pass(shape):
    model = random_model(seed=1, **shape)
    assert_steps_equal_forward(model, random_tokens(3, LENGTH))


def last_logits_apart(model, length):
    """Largest difference, over all prefixes up to a length, between the last logits of a whole pass and of a step."""
    tokens = random_tokens(2, length)
    decoder, worst = Decoder(model, tokens[:, :P], length), 0.0
    for n in range(1, length + 1):
        whole = model(tokens[:, : P + n])[0][:, -1]
        step, _ = decoder.step(tokens[:, P + n - 1])
        worst = max(worst, (step - whole).abs().max().item() / max(1.0, whole.abs().max().item()))
    return worst


@pytest.mark.parametrize("shift", range(W))
@torch.no_grad()
def test_every_prefix_of_one_token_to_three_windows_and_one_is_as_prefilled(shift):
    assert last_logits_apart(random_model(seed=1, shift=shift), LENGTH) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0, 1, 16, 21, 31])
@torch.no_grad()
def test_every_prefix_of_a_larger_model_is_as_prefilled(shift):
    shape = {"width": 128, "heads": 4, "hidden": 256, "prelude": 2, "blocks": 6, "depth": 6, "coda": 2}
    assert last_logits_apart(random_model(seed=1, window=32, shift=shift, **shape), 97) <= 1e-5


@pytest.mark.parametrize("windows", [1, 3, 6])
@torch.no_grad()
def test_steps_under_a_forced_path_equal_the_whole_pass(windows):
    model, tokens, path = random_model(), random_tokens(3, LENGTH), random_path(3, windows)
    assert_steps_equal_forward(model, tokens, path)
    assert_steps_equal_forward(model, tokens, ForcedPath(path.ids, None))
    assert_steps_equal_forward(model, tokens, ForcedPath(None, path.gates[:1]))


@torch.no_grad()
def test_gates_forced_on_a_segment_leave_its_own_choice_alone():
    model, tokens, path = random_model(router="per_segment", segment=3), random_tokens(3, LENGTH), random_path(3, 6)
    assert_steps_equal_forward(model, tokens, ForcedPath(None, path.gates))
    assert_steps_equal_forward(model, tokens, ForcedPath(path.ids, None))


@torch.no_grad()
def test_steps_at_a_smaller_depth_equal_the_whole_pass():
    assert_steps_equal_forward(random_model(), random_tokens(2, LENGTH), depth=2)


@pytest.mark.parametrize("at", [1, W - 1, W, W + 2])
@torch.no_grad()
def test_rows_that_are_kept_go_on_unchanged(at):
    model, tokens, path = random_model(shift=1), random_tokens(5, LENGTH), random_path(5, 4)
    rows = torch.tensor([4, 1])
    for forced in (None, path):
        whole, kept = (Decoder(model, tokens[:, :P], LENGTH, forced) for _ in range(2))
        for k in range(LENGTH):
            if k == at:
                kept.keep(rows)
            column = tokens[:, P + k]
            logits, choices = whole.step(column)
            some_logits, some_choices = kept.step(column if k < at else column[rows])
            if k >= at:
                assert_near(some_logits, logits[rows])
                for some, every in zip(some_choices, choices, strict=True):
                    assert torch.equal(some.ids, every.ids[rows])


@torch.no_grad()
def greedy(model, prompt, end, limit, forced=None):
    """One row by whole passes: tokens up to `end`, and the blocks of every window that was entered, per depth."""
    tokens, choices = torch.cat([prompt, torch.tensor([FIRST])]), []
    while len(tokens) < P + 1 + limit and (len(tokens) == P + 1 or tokens[-1] != end):
        logits, choices = model(tokens[None], forced=forced)
        tokens = torch.cat([tokens, logits[0, -1].argmax()[None]])
    return tokens[P + 1 :].tolist(), [choice.ids[0, 1:].tolist() for choice in choices]


def end_that_rows_reach(model, prompts, limit) -> int:
    """A token that some rows say early, some late and some never."""
    said = [greedy(model, prompt, -1, limit)[0] for prompt in prompts]
    firsts = {token: sorted(row.index(token) if token in row else limit for row in said) for token in range(VOCABULARY)}
    return max(firsts, key=lambda token: (token != FIRST, len(set(firsts[token])), -token))


@pytest.mark.parametrize("shift", [0, 1, W // 2])
def test_generation_equals_a_plain_greedy_loop_and_fills_ended_rows(shift):
    model, prompts, limit = random_model(seed=2, shift=shift), random_tokens(8, 0, seed=shift), 2 * W + 3
    end = end_that_rows_reach(model, prompts, limit)
    tokens, routes = generate(model, prompts, FIRST, end, limit)
    expected = [greedy(model, prompt, end, limit) for prompt in prompts]
    lengths = [len(row) for row, _ in expected]
    assert len(set(lengths)) > 2  # rows end at different times
    assert tokens.shape == (8, max(lengths))
    for k, (row, blocks) in enumerate(expected):
        assert tokens[k].tolist() == row + [end] * (max(lengths) - len(row))
        for level in range(4):
            taken = routes[level][k].tolist()
            assert taken == blocks[level] + [-1] * (len(taken) - len(blocks[level]))


def test_generation_stops_at_its_limit_and_when_all_rows_have_ended():
    model, prompts = random_model(), random_tokens(3, 0)
    never = VOCABULARY  # a token that no logit stands for
    assert generate(model, prompts, FIRST, never, 9)[0].shape == (3, 9)
    said = generate(model, prompts[:1], FIRST, never, 9)[0][0].tolist()
    alone = generate(model, prompts[:1], FIRST, said[2], 9)[0][0].tolist()
    assert alone == said[: said.index(said[2]) + 1]


@pytest.mark.parametrize("path", [None, random_path(8, 3)], ids=["free", "forced"])
def test_one_row_or_eight_say_the_same(path):
    model, prompts = random_model(seed=3), random_tokens(8, 0)
    end = end_that_rows_reach(model, prompts, 2 * W)
    together, _ = generate(model, prompts, FIRST, end, 2 * W, path)
    for k in range(8):
        alone, _ = generate(model, prompts[k : k + 1], FIRST, end, 2 * W, path and path.keep(torch.tensor([k])))
        row = alone[0].tolist()
        assert together[k].tolist() == row + [end] * (together.shape[1] - len(row))


@pytest.mark.parametrize("shape", [{}, *ROUTERS], ids=str)
def test_one_row_or_sixty_four_say_the_same(shape):
    model, prompts, limit = random_model(seed=3, **shape), random_tokens(64, 0), 2 * W
    end = VOCABULARY  # a token that no logit stands for
    together, _ = generate(model, prompts, FIRST, end, limit)
    alone = torch.cat([generate(model, prompts[k : k + 1], FIRST, end, limit)[0] for k in range(64)])
    assert torch.equal(together, alone)


def test_prompts_of_another_length_are_refused():
    with pytest.raises(ValueError, match=f"prompts of {P + 1} tokens; the model's prompt has {P}"):
        Decoder(random_model(), random_tokens(1, 1), 4)
