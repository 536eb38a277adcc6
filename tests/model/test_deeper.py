"""More depth than trained: what the added depths get under each reading, and that it all decodes."""

import pytest
import torch

from lol_data.errors import UsageError
from lol_data.model.decoding import generate
from lol_data.model.deeper import READINGS, deepen

from .common import ROUTERS, P, W, assert_near, random_model, random_tokens, reference
from .test_decoding import assert_steps_equal_forward

PER_DEPTH = ("film_scale", "film_offset", "depth_vector")  # and the weight of a router per depth


@pytest.mark.parametrize("reading", READINGS)
@torch.no_grad()
def test_trained_depths_stay_as_they_are(reading):
    model, tokens = random_model(), random_tokens(2, 3 * W)
    deeper = deepen(model, 9, reading)
    for depth in (1, 3, 4):
        assert torch.equal(deeper(tokens, depth)[0], model(tokens, depth)[0])
        assert torch.equal(deepen(model, depth, reading)(tokens)[0], model(tokens, depth)[0])


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("shape", [{}, *ROUTERS], ids=str)
@torch.no_grad()
def test_a_deeper_model_is_the_reference_with_more_depths_and_decodes(reading, shape):
    model, tokens = deepen(random_model(**shape, shift=3), 7, reading), random_tokens(2, 3 * W)
    logits, choices = model(tokens)
    assert len(choices) == 7
    for row in range(2):
        expected, routes = reference(model, tokens[row])
        assert_near(logits[row], expected.float(), 1e-3)
        assert [choice.ids[row].tolist() for choice in choices] == [[block for block, _ in taken] for taken in routes]
    assert_steps_equal_forward(model, tokens)


@pytest.mark.parametrize("router", ["shared", "per_depth"])
def test_what_the_added_depths_get(router):
    model = random_model(router=router)
    trained = dict(model.named_parameters())
    names = [*PER_DEPTH, "router.weight"] if router == "per_depth" else PER_DEPTH
    cycled, held = (dict(deepen(model, 7, reading).named_parameters()) for reading in ("cycle", "hold"))
    for name in names:
        for depth in range(4, 7):
            assert torch.equal(cycled[name][depth], trained[name][depth - 4])
            assert torch.equal(held[name][depth], trained[name][3])


def test_a_straight_line_goes_on_straight_and_a_single_depth_stays():
    model = random_model()
    with torch.no_grad():
        for level in range(4):
            model.film_scale[level] = 1 + 0.5 * level
            model.depth_vector[level] = torch.arange(16.0) * level - 3
    deeper = deepen(model, 6, "extrapolate")
    torch.testing.assert_close(deeper.film_scale[5], torch.full((2, 16), 3.5))
    torch.testing.assert_close(deeper.depth_vector[4], torch.arange(16.0) * 4 - 3)
    shallow = random_model(depth=1)
    assert torch.equal(deepen(shallow, 3, "extrapolate").film_offset[2], shallow.film_offset[0])


def test_the_line_is_the_least_squares_one():
    model = random_model(depth=5)
    values = model.film_offset.detach()[:, 1, 7].double()
    slope, start = torch.linalg.lstsq(torch.stack([torch.arange(5.0), torch.ones(5)], 1).double(), values).solution
    added = deepen(model, 8, "extrapolate").film_offset[5:, 1, 7].detach().double()
    torch.testing.assert_close(added, start + slope * torch.arange(5, 8), rtol=1e-5, atol=1e-5)


def test_the_library_is_shared_and_the_model_untouched():
    model = random_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    deeper = deepen(model.train(), 8, "cycle")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert deeper.training
    assert deeper.library[0].qkv.data_ptr() == model.library[0].qkv.data_ptr()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.config.depth == 4


def test_more_depth_changes_what_is_said():
    model, prompts = random_model(), random_tokens(8, 0)
    said = [generate(deepen(model, 8, reading), prompts, 3, -1, 2 * W)[0] for reading in READINGS]
    assert not torch.equal(said[0], said[1])
    assert not torch.equal(said[1], said[2])
    assert not torch.equal(generate(model, prompts, 3, -1, 2 * W)[0], said[0])


def test_what_is_no_reading_or_no_depth_is_refused():
    with pytest.raises(UsageError, match=r'"loop" is no reading.*cycle, hold, extrapolate'):
        deepen(random_model(), 8, "loop")
    with pytest.raises(UsageError, match=r"model\.depth is 0"):
        deepen(random_model(), 0)
    with pytest.raises(ValueError, match="depth 9; the model was made for 1 to 8"):
        deepen(random_model(), 8)(random_tokens(1, P), 9)
