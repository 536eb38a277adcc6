"""Templates: the notes' example, the fallback, and observed routes against a count by hand."""

import numpy as np
import pytest
import torch

from lol_data.evaluators.templates import KINDS, PathStatistics, observe_paths
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.tokenization.maze import MazeLayout

from .common import maze_model

S = len(MAZE_STRATEGIES)


def statistics(probabilities) -> PathStatistics:
    """The same observations, (n, L) probabilities, for every strategy, at one depth and window."""
    p = np.array(probabilities)
    chosen = np.bincount(p.argmax(1), minlength=p.shape[1])
    shape = (S, 1, 1)
    return PathStatistics(
        np.full(shape, len(p)),
        np.broadcast_to(chosen, (*shape, 2)).copy(),
        np.broadcast_to(p.sum(0), (*shape, 2)).copy(),
    )


def test_the_mean_and_the_majority_may_name_different_blocks():
    paths = statistics([[0.51, 0.49], [0.51, 0.49], [0.01, 0.99]])
    probability, selection = paths.template("probability"), paths.template("selection")
    assert (probability.ids == 1).all()
    assert probability.gates.ravel() == pytest.approx([0.656667] * S, abs=1e-6)
    assert (selection.ids == 0).all()
    assert selection.gates.ravel() == pytest.approx([0.343333] * S, abs=1e-6)
    assert probability.agreement == pytest.approx([1 / 3] * S)
    assert selection.agreement == pytest.approx([2 / 3] * S)
    assert paths.kinds_agree() == 0
    assert statistics([[0.6, 0.4], [0.7, 0.3]]).kinds_agree() == 1
    assert selection.gates.dtype == np.float32


def test_each_strategys_kinds_agree_for_themselves():
    apart, alike = statistics([[0.51, 0.49], [0.51, 0.49], [0.01, 0.99]]), statistics([[0.6, 0.4], [0.7, 0.3]])
    both = PathStatistics(
        *(
            np.concatenate([getattr(apart, name)[:2], getattr(alike, name)[2:]])
            for name in ("counts", "chosen", "probability")
        )
    )
    assert both.kinds_agree_per_strategy().tolist() == [0, 0, 1, 1, 1]
    assert both.kinds_agree() == pytest.approx(6 / 12)  # of observations: 3 a strategy in the first two, 2 in the rest


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_by_window_sums_over_depths(kind):
    counts = np.full((S, 2, 2), 4)
    chosen = np.zeros((S, 2, 2, 2), np.int64)
    chosen[:, 0] = [[4, 0], [3, 1]]  # depth 1: window 0, window 1
    chosen[:, 1] = [[0, 4], [0, 4]]
    template = PathStatistics(counts, chosen, chosen * 0.75).per_window(kind)
    assert template.ids[0].tolist() == [[0, 1], [1, 1]]  # window 0 keeps its path, window 1 has one block
    np.testing.assert_allclose(template.gates[0, :, 1], [0.75 * 5 / 8] * 2)
    assert np.array_equal(template.counts, counts)
    assert template.agreement == pytest.approx([(4 + 1 + 4 + 4) / 16] * S)


@pytest.fixture
def gaps() -> PathStatistics:
    """One depth with support for 2 of 4 windows, one for 4, the same for every strategy but the last (3 and 4)."""
    counts = np.zeros((S, 2, 4), np.int64)
    counts[:, 0, :2] = counts[:, 1] = 5
    counts[-1, 0, 2] = 5
    chosen, probability = np.zeros((S, 2, 4, 3), np.int64), np.zeros((S, 2, 4, 3))
    for k in range(4):
        chosen[:, :, k, k % 3] = counts[:, :, k]
        probability[:, :, k, k % 3] = counts[:, :, k] * (0.5 + k / 10)
    return PathStatistics(counts, chosen, probability)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unsupported_cell_takes_the_last_supported_window(gaps, kind):
    template = gaps.template(kind)
    assert template.ids[0].tolist() == [[0, 1, 1, 1], [0, 1, 2, 0]]
    assert template.ids[-1].tolist() == [[0, 1, 2, 2], [0, 1, 2, 0]]
    np.testing.assert_allclose(template.gates[0], [[0.5, 0.6, 0.6, 0.6], [0.5, 0.6, 0.7, 0.8]], rtol=1e-6)
    assert np.array_equal(template.counts, gaps.counts)  # of the observations, not of the filled cells
    assert template.agreement == pytest.approx([1.0] * S)


def test_an_output_fell_back_when_it_entered_an_unsupported_window(gaps):
    template = gaps.template("selection")
    last_windows = np.array([[1, 1], [1, 3], [2, 1], [2, 1], [3, 3], [1, 4], [1, 9]])
    strategies = np.array([0, 0, 0, S - 1, S - 1, 0, S - 1])
    assert template.fell_back(strategies, last_windows).tolist() == [False, False, True, False, True, True, True]


def test_the_forced_path_of_a_row_is_its_strategys(gaps):
    template = gaps.template("probability")
    forced = template.forced(np.array([S - 1, 0]), torch.device("cpu"))
    assert forced.ids.tolist() == template.ids[[S - 1, 0]].tolist()
    assert forced.gates.dtype == torch.float32
    assert np.array_equal(forced.gates.numpy(), template.gates[[S - 1, 0]])


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_observed_routes_equal_a_count_one_sequence_at_a_time(batch):
    model, traced = maze_model(size=4), generate_mazes(MazeSettings(size=4), 0, 0, 7)
    observed = observe_paths(model, traced, batch)
    layout = MazeLayout(4, model.config.field)
    counts, chosen = np.zeros_like(observed.counts), np.zeros_like(observed.chosen)
    probability = np.zeros_like(observed.probability)
    for s, name in enumerate(MAZE_STRATEGIES):
        prompts = layout.prompts(traced.mazes, np.full(7, s))
        for prompt, suffix in zip(prompts, layout.suffixes(traced.traces[name], traced.answer), strict=True):
            with torch.no_grad():
                _, choices = model(torch.from_numpy(np.concatenate([prompt, suffix]))[None])
            for depth, choice in enumerate(choices):
                for k, block in enumerate(choice.ids[0].tolist()):
                    counts[s, depth, k] += 1
                    chosen[s, depth, k, block] += 1
                    probability[s, depth, k] += choice.probabilities[0, k].double().numpy()
    assert np.array_equal(observed.counts, counts)
    assert np.array_equal(observed.chosen, chosen)
    np.testing.assert_allclose(observed.probability, probability, rtol=1e-5, atol=1e-6)
    assert (counts[:, :, 0] == 7).all()
    assert counts.min() == 0 or counts[:, :, -1].min() < 7  # the last windows are not reached by all
    assert np.count_nonzero(chosen.sum((0, 1, 2))) > 1
    assert np.array_equal(chosen.sum(-1), counts)
