"""Probes: AUROC and ridge against slow definitions, the notes' screening example, and no leak between halves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.evaluators.diagnostics import known_sequences, routes_of
from lol_data.evaluators.probes import auroc, precision, probe, probe_all, properties, ridge, route_features
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.mazes import MAZE_STRATEGIES

from .common import maze_model

scored = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)


@given(scored)
def test_auroc_is_the_share_of_pairs_in_order(pairs):
    scores, labels = np.array([s for s, _ in pairs], float), np.array([t for _, t in pairs])
    won = [(a > b) + 0.5 * (a == b) for a in scores[labels] for b in scores[~labels]]
    assert auroc(scores, labels) == (pytest.approx(np.mean(won)) if won else None)


def test_screening_example_of_the_notes():
    assert round(100 * precision(0.01, 0.90, 0.05), 1) == 15.4
    assert pytest.approx(precision(0.01, 0.90, 0.05)) == 90 / (90 + 495)


def test_ridge_by_hand():
    # x = -1, 1 is standard already; the least of (w - 2)^2 + penalty w^2 is w = 2 / (1 + penalty).
    train, targets = np.array([[-1.0], [1.0]]), np.array([[1.0], [5.0]])
    assert ridge(train, targets, np.array([[1.0], [0.0]]), penalty=1.0).tolist() == [[4.0], [3.0]]
    assert ridge(train, targets, np.array([[1.0]]), penalty=0.0) == pytest.approx(np.array([[5.0]]))


@given(st.integers(0, 99), st.floats(0.01, 10))
def test_ridge_is_the_minimum(seed, penalty):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(12, 3)), rng.normal(size=(12, 1))
    at = ridge(x, y, x, penalty)
    z = (x - x.mean(0)) / x.std(0)
    w = np.linalg.lstsq(z, at - y.mean(), rcond=None)[0]
    gradient = -z.T @ (y - y.mean() - z @ w) / len(x) + penalty * w
    assert gradient == pytest.approx(np.zeros((3, 1)), abs=1e-9)


def test_a_constant_feature_says_nothing():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    both = np.hstack([x, np.full((20, 1), 7.0)])
    assert ridge(both, y, both) == pytest.approx(ridge(x, y, x))


def test_a_probe_finds_a_signal_and_its_control_does_not():
    rng = np.random.default_rng(1)
    problems = np.repeat(np.arange(80), 5)
    labels = np.tile(np.arange(5) == 2, 80)
    features = rng.normal(size=(400, 10))
    features[:, 0] += 3 * labels
    found = probe(features, labels, problems)
    assert found["auroc"] > 0.95 and (found["n"], found["positives"]) == (200, 40)
    assert found["shuffled"]["runs"] == 99
    assert 0.45 < found["shuffled"]["mean"] < 0.55 and found["shuffled"]["max"] < 0.7
    assert probe(features, labels, problems) == found


def test_a_probe_cannot_learn_problems_by_heart():
    """A feature that names the problem tells a label of problems only where the same problem is on both sides."""
    rng = np.random.default_rng(2)
    problems = np.repeat(np.arange(60), 5)
    labels = (rng.permutation(60) < 30)[problems]
    found = probe(np.eye(60)[problems], labels, problems)
    assert found["auroc"] == 0.5 and found["shuffled"]["mean"] == 0.5


def test_a_label_of_problems_is_shuffled_among_problems():
    """With a feature that equals the label, a shuffle within problems would leave the control far too narrow."""
    rng = np.random.default_rng(3)
    problems = np.repeat(np.arange(20), 50)
    of_problem = rng.permutation(20) < 10
    noise = rng.normal(size=(20, 4))[problems]
    found = probe(noise, of_problem[problems], problems)
    assert found["shuffled"]["max"] > 0.8  # ten test problems: chance alone reaches far


def test_properties_of_mazes_and_sudokus():
    traced = generate_mazes(MazeSettings(size=4), 0, 0, 6)
    found = properties(traced)
    for row in range(6):
        degrees = [bin(bits).count("1") for bits in traced.mazes.openings[row].tolist()]
        start, goal = int(traced.mazes.start[row]), int(traced.mazes.goal[row])
        assert found["answer length"][row] == len(traced.answer[row])
        assert found["dead ends"][row] == degrees.count(1)
        assert found["junctions"][row] == sum(degree > 2 for degree in degrees)
        assert found["distance of start and goal"][row] == abs(start // 4 - goal // 4) + abs(start % 4 - goal % 4)
    sudokus = generate_sudokus(SudokuSettings(), 0, 0, 2)
    assert properties(sudokus)["clues"].tolist() == sudokus.sudokus.clues.tolist()


def test_features_are_the_probabilities_behind_the_prompt():
    model, traced = maze_model(3, seed=3), generate_mazes(MazeSettings(size=3), 0, 0, 8)
    written = known_sequences(model, traced)
    routes = routes_of(model, traced, written, 64)
    features = route_features(routes)
    assert features["first window"][7].tolist() == routes.probabilities[7, :, 1].reshape(-1).tolist()
    real = [[k for k in range(1, routes.ids.shape[2]) if routes.ids[7, level, k] >= 0] for level in range(3)]
    pooled = [routes.probabilities[7, level, real[level]].astype(float).mean(0) for level in range(3)]
    assert features["all windows"][7] == pytest.approx(np.concatenate(pooled))
    found = probe_all(routes, written.strategies, MAZE_STRATEGIES, written.rows, traced)
    assert {entry["features"] for entry in found} == {"first window", "all windows"}
    assert all(entry["n"] == 20 for entry in found)
