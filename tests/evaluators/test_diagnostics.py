"""Diagnostics: every formula on small inputs made by hand, the notes' own numbers, and a whole pass over a model."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lol_data.evaluators.block_order import order_sensitivity, swap_difference
from lol_data.evaluators.diagnostics import (
    decoded_sequences,
    diagnose,
    known_sequences,
    routes_of,
    write_diagnostics,
)
from lol_data.evaluators.dilution import change_token, dilution, response, window_weight
from lol_data.evaluators.path_measures import (
    agreement,
    distinct_blocks,
    loads,
    mean_distances,
    occupancy,
    one_hot,
    pca,
    reuse,
    window_paths,
)
from lol_data.evaluators.protocols import decode
from lol_data.evaluators.route_margins import flips, margin_buckets, margins
from lol_data.evaluators.routes import NOWHERE, Routes, TokenPaths
from lol_data.evaluators.templates import observe_paths
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.model.decoding import generate
from lol_data.model.routing import prefix_means
from lol_data.model.windows import Windows
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.maze import MazeLayout
from lol_data.tokenization.vocabulary import EOS, TRACE

from .common import maze_model

SIZE, S = 3, len(MAZE_STRATEGIES)
some_paths = st.tuples(st.integers(1, 30), st.integers(1, 6), st.integers(1, 5)).flatmap(
    lambda shape: st.tuples(st.just(shape[2]), arrays(np.int16, shape[:2], elements=st.integers(0, shape[2] - 1)))
)


@pytest.fixture(scope="module")
def model():
    return maze_model(SIZE, seed=3)


@pytest.fixture(scope="module")
def traced():
    return generate_mazes(MazeSettings(size=SIZE), 0, 0, 12)


@pytest.fixture(scope="module")
def known(model, traced):
    written = known_sequences(model, traced)
    return written, routes_of(model, traced, written, batch=17)


def hand_made(ids, probabilities=None, lengths=None, windows=None, predicted=None):
    """Routes of 3 positions of prompt and windows of 4."""
    ids = np.array(ids, np.int16)
    probabilities = np.zeros((*ids.shape, 2), np.float32) if probabilities is None else probabilities
    lengths = np.full(len(ids), 3 + 4 * (ids.shape[2] - 1)) if lengths is None else np.array(lengths)
    predicted = np.zeros((len(ids), int(lengths.max()) - 3), np.uint8) if predicted is None else predicted
    windows = Windows(3, 4, 2) if windows is None else windows
    return Routes(ids, np.zeros(ids.shape, np.float32), probabilities, lengths, predicted, windows)


# Paths and reuse (equations 11, 12)


@given(some_paths)
def test_distinct_blocks_keep_the_bounds_of_equation_11(case):
    blocks, paths = case
    found = distinct_blocks(paths)
    assert found.tolist() == [len(set(path)) for path in paths.tolist()]
    figures, depth = reuse(paths, blocks), paths.shape[1]
    assert sum(figures["counts"]) == figures["n"] == len(paths)
    assert len(figures["counts"]) == figures["bounds"]["distinct"] == min(blocks, depth)
    assert figures["repeated"] >= figures["bounds"]["repeated"] == depth - min(blocks, depth)
    assert figures["unused"] >= figures["bounds"]["unused"] == blocks - min(blocks, depth)
    assert figures["mean"] == pytest.approx(np.mean([len(set(path)) for path in paths.tolist()]))


def test_reuse_has_the_numbers_of_the_notes():
    alternating = np.tile([0, 1], (1, 8))
    of_two, of_many = reuse(alternating, 2), reuse(alternating, 24)
    assert of_two["bounds"]["repeated"] == 14 == of_two["repeated"]
    assert of_many["bounds"]["unused"] == 8 and of_many["unused"] == 22
    assert round(reuse(alternating, 8)["uniform"], 2) == 7.06 and round(of_many["uniform"], 2) == 11.85
    assert of_two["counts"] == [0, 1] and of_many["counts"] == [0, 1, *[0] * 14]


def test_reuse_of_nothing():
    assert reuse(np.zeros((0, 4), np.int16), 3)["mean"] is None


def test_occupancy_of_eight_requests_has_the_notes_reference():
    tokens = TokenPaths(np.zeros((8, 1), np.int16), np.arange(8), np.full(8, 5))
    found = occupancy(tokens, blocks=24)
    assert round(found["uniform"], 2) == 6.93
    assert (found["steps"], found["alive"], found["distinct"]) == (1, 8.0, [1.0])


def test_occupancy_counts_the_blocks_of_one_step():
    # Two requests at a time: rows 0, 1 and row 2. Both of the first group reach position 3, only row 1 position 4.
    paths = np.array([[0, 1], [1, 1], [0, 2], [2, 2]])
    tokens = TokenPaths(paths, np.array([0, 1, 1, 2]), np.array([3, 3, 4, 3]))
    found = occupancy(tokens, blocks=3, requests=2)
    assert (found["steps"], found["alive"]) == (3, pytest.approx(4 / 3))
    assert found["distinct"] == pytest.approx([(2 + 1 + 1) / 3, (1 + 1 + 1) / 3])
    assert found["uniform"] == pytest.approx((3 * (1 - (2 / 3) ** 2) + 1 + 1) / 3)


# Heat maps and agreement


def test_loads_are_shares_of_the_windows_behind_the_prompt():
    routes = hand_made([[[1, 0, 1], [1, 1, NOWHERE]], [[1, 0, NOWHERE], [1, 0, NOWHERE]]])
    found = loads(routes, np.array([0, 2]), 3)
    assert found.tolist() == [[[0.5, 0.5], [0, 1]], [[0, 0], [0, 0]], [[1, 0], [1, 0]]]


def test_agreement_counts_each_cell_and_holds_the_last_window():
    routes = hand_made([[[1, 0, 1]], [[1, 1, NOWHERE]]])
    template = np.array([[[1, 0]], [[0, 0]]])
    both_first = agreement(routes, np.array([0, 0]), template)
    assert both_first.counts.tolist() == [[[2, 2, 1]], [[0, 0, 0]]]
    assert both_first.agreeing.tolist() == [[[2, 1, 0]], [[0, 0, 0]]]
    apart = agreement(routes, np.array([0, 1]), template)
    assert apart.agreeing.tolist() == [[[1, 1, 0]], [[0, 0, 0]]]


def test_own_paths_agree_with_their_template_as_the_template_says(model, traced, known):
    written, routes = known
    for kind in ("selection", "probability"):
        template = observe_paths(model, traced).template(kind)
        found = agreement(routes, written.strategies, template.ids)
        assert found.counts.tolist() == template.counts.tolist()
        assert found.agreeing.sum((1, 2)) / found.counts.sum((1, 2)) == pytest.approx(template.agreement)


# Distances and PCA (equation 15)


@given(some_paths)
def test_one_hot_distances_are_equation_15(case):
    blocks, paths = case
    vectors = one_hot(paths, blocks)
    for a, x in zip(paths[:5], vectors[:5], strict=True):
        for b, y in zip(paths[:5], vectors[:5], strict=True):
            assert ((x - y) ** 2).sum() == 2 * (a != b).sum()


@given(some_paths, st.integers(0, 99))
def test_mean_distances_are_those_of_all_pairs(case, seed):
    blocks, paths = case
    groups = np.random.default_rng(seed).integers(0, 3, len(paths))
    vectors = one_hot(paths, blocks)
    found = mean_distances(vectors, groups, 3)
    for a in range(3):
        for b in range(3):
            one, other = np.flatnonzero(groups == a), np.flatnonzero(groups == b)
            pairs = [((vectors[i] - vectors[j]) ** 2).sum() for i in one for j in other if i != j]
            assert found[a, b] == pytest.approx(np.mean(pairs), abs=1e-9) if pairs else np.isnan(found[a, b])


def test_pca_finds_the_axis_that_two_groups_differ_in():
    paths = np.array([[0, 0, 1]] * 3 + [[1, 1, 1]] * 3)
    found = pca(one_hot(paths, 2))
    assert found.explained == pytest.approx([1, 0])
    assert np.abs(found.points[:, 0]).tolist() == pytest.approx([1] * 6)  # half of sqrt(2 * 2 differing depths)
    assert found.points[0, 0] == -found.points[5, 0]
    lone = pca(np.ones((1, 1)))
    assert lone.points.tolist() == [[0, 0]] and lone.explained.tolist() == [0, 0]


@settings(deadline=None)
@given(some_paths)
def test_pca_keeps_what_two_axes_can(case):
    blocks, paths = case
    vectors = one_hot(paths, blocks)
    found = pca(vectors)
    variance = ((vectors - vectors.mean(0)) ** 2).sum()
    assert (found.points**2).sum() == pytest.approx(variance * found.explained.sum(), abs=1e-9)
    assert found.points.shape == (len(paths), 2) and found.explained.sum() <= 1 + 1e-9


# Margins and flips


def test_margins_and_the_rule_of_two_eta():
    scores = np.array([[0.45, 0.48, 0.15], [0.5, 0.1, 0.4], [0.3, 0.3, 0.4]])
    assert margins(scores) == pytest.approx([0.03, 0.1, 0.1])
    buckets = margin_buckets(
        np.array([0.03, 0.1, 0.1, 5.0]), np.array([True, False, True, False]), np.array([0.02, 0.04, 0.05, 0]),
        edges=(0.0, 0.05, 1.0),
    )  # fmt: skip
    assert buckets == [
        {"low": 0.0, "high": 0.05, "n": 1, "flips": 1, "safe": 0, "safe_flips": 0},
        {"low": 0.05, "high": 1.0, "n": 3, "flips": 1, "safe": 2, "safe_flips": 0},
    ]


@given(arrays(np.float32, (20, 4), elements=st.floats(0, 1, width=32)), st.integers(0, 99), st.floats(0, 0.3))
def test_a_margin_above_two_eta_never_flips(scores, seed, size):
    noise = np.random.default_rng(seed).uniform(-size, size, scores.shape)
    moved = scores + noise
    eta = np.abs(moved - scores).max(-1) * (1 + 1e-6)
    flipped = scores.argmax(-1) != moved.argmax(-1)
    assert sum(bucket["safe_flips"] for bucket in margin_buckets(margins(scores), flipped, eta)) == 0


def test_flips_are_counted_with_what_they_change():
    p = np.array([[[[0.9, 0.1], [0.51, 0.49]]], [[[0.9, 0.1], [0.7, 0.3]]]], np.float32)
    q = np.array([[[[0.9, 0.1], [0.49, 0.51]]], [[[0.9, 0.1], [0.65, 0.35]]]], np.float32)
    exact = hand_made([[[0, 0]], [[0, 0]]], p, predicted=np.array([[1, 2, 3, 4], [1, 2, 3, 4]], np.uint8))
    rounded = hand_made([[[0, 1]], [[0, 0]]], q, predicted=np.array([[1, 9, 9, 4], [1, 2, 3, 4]], np.uint8))
    found = flips(exact, rounded, np.zeros(2))
    assert (found["n"], found["flips"], found["by_depth"]) == (4, 1, [{"n": 4, "flips": 1}])
    assert found["eta"] == pytest.approx(0.05, abs=1e-6)
    assert found["tokens"] == [{"n": 4, "changed": 0}, {"n": 4, "changed": 2}]
    hit = [bucket for bucket in found["buckets"] if bucket["flips"]]
    assert [(bucket["low"], bucket["n"], bucket["safe"]) for bucket in hit] == [(0.01, 1, 0)]


def test_bf16_leaves_the_model_as_it_was(model, traced, known):
    written, exact = known
    rounded = routes_of(model, traced, written, 50, bf16=True)
    assert model.matmul_dtype == model.attention_dtype == torch.float32
    assert 0 < np.abs(exact.probabilities - rounded.probabilities).max() < 0.2
    again = routes_of(model, traced, written, 50)
    assert again.probabilities == pytest.approx(exact.probabilities, abs=1e-5)


# Prefix dilution (equation 16)


@given(arrays(np.float64, (1, 20, 3), elements=st.floats(-5, 5)))
def test_a_new_window_moves_the_routers_input_by_equation_16(h):
    slices = Windows(4, 4, 2).slices(20, 2)
    means = torch.from_numpy(np.stack([h[:, start:end].mean(1) for start, end in slices], 1))
    r = prefix_means(means, torch.zeros(1, 3).double(), torch.zeros(3).double())[0].numpy()
    for k in range(1, len(slices) - 1):
        start, end = slices[k]
        mu = h[0, start:end].mean(0)
        assert r[k + 1] - r[k] == pytest.approx((mu - r[k]) * window_weight(k + 1), abs=1e-9)
        assert window_weight(k + 1) == 1 / (k + 1)


def test_fading_windows_weigh_more_when_new():
    assert window_weight(3, decay=0.0) == 1.0 and window_weight(3, decay=0.5) == pytest.approx(1 / 1.75)


def test_a_token_is_changed_into_one_that_differs():
    suffixes = Ragged.from_rows([[5, 7, 7, 8], [5, 7, 7], [5]])
    changed, rows = change_token(suffixes, 1)
    assert [row.tolist() for row in changed] == [[5, 8, 7, 8], [5, 7, 7], [5]]
    assert rows.tolist() == [True, False, False] and suffixes[0].tolist() == [5, 7, 7, 8]


def test_response_finds_the_first_choice_that_moved():
    # Windows of 4 behind 3 positions of prompt: depth 1 opens at 3, 7, 11 and depth 2 at 3, 5, 9.
    before = hand_made([[[0, 0, 0], [0, 0, 0]]] * 2, np.full((2, 2, 3, 2), 0.5, np.float32), windows=Windows(3, 4, 2))
    assert before.starts().tolist() == [[0, 3, 7], [0, 3, 5]]
    p = before.probabilities.copy()
    p[0, 0, 2] = 0.25, 0.75
    after = hand_made([[[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]], p)
    found = response(before, after, position=4)
    assert {name: values.tolist() for name, values in found.items()} == {
        "could": [True, True],
        "moved": [True, False],
        "delay": [3, 0],
        "choices": [1, 0],
        "depths": [1, 0],
        "shift": [0.125, 0],
        "early": [0, 0],
    }
    assert response(before, after, position=7)["early"].tolist() == [1, 0]
    assert not response(before, after, position=9)["could"].any()


def test_a_changed_token_moves_no_window_that_is_open(model, traced, known):
    written, _ = known
    changed, rows = change_token(written.suffixes, 3)
    kept = np.flatnonzero(rows)
    some = written.take(kept)
    one = routes_of(model, traced, some, 64)
    other = routes_of(model, traced, type(some)(some.rows, some.strategies, some.fields, changed.take(kept)), 64)
    found = response(one, other, model.config.prompt + 3)
    assert found["early"].sum() == 0 and found["could"].any() and found["shift"].max() > 0


def test_dilution_reports_each_prefix_and_place(model, traced, known):
    written, _ = known
    prompts = MazeLayout(SIZE, 2).prompts(traced.mazes.take(written.rows), written.fields)
    lines = dilution(model, prompts, written.suffixes)
    assert [(line["prefix"], line["place"]) for line in lines][:3] == [(1, "first"), (1, "middle"), (1, "last")]
    for line in lines:
        assert line["weight"] == 1 / (line["prefix"] + 1) and 0 <= line["moved"] <= 1 and line["n"] > 0
        assert line["delay"] is None or line["delay"] >= 1
    first, last = lines[0], lines[2]
    assert first["delay"] > last["delay"]  # what stands early in a window waits longer for the next one


# Order of neighbouring blocks (equations 17, 18)


def test_order_has_the_notes_example():
    a, b = np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]])  # E_A = I + A, E_B = I + B
    one, x = np.eye(2), np.array([1, 0])
    assert ((one + b) @ (one + a) @ x).tolist() == [1, 1] and ((one + a) @ (one + b) @ x).tolist() == [2, 1]
    assert swap_difference(a, b) @ x == pytest.approx(np.array([1, 1]) - np.array([2, 1]))


@given(arrays(np.float64, (2, 3, 3), elements=st.floats(-3, 3)), st.floats(0, 1), st.floats(0, 1))
def test_two_linear_steps_differ_by_equation_18(pair, alpha, beta):
    a, b, one = *pair, np.eye(3)
    swapped = (one + beta * b) @ (one + alpha * a) - (one + alpha * a) @ (one + beta * b)
    assert swap_difference(a, b, alpha, beta) == pytest.approx(swapped, abs=1e-9)


def test_order_matters_less_with_small_gates(model, traced, known):
    written, routes = known
    prompts = MazeLayout(SIZE, 2).prompts(traced.mazes.take(written.rows), written.fields)
    found = order_sensitivity(model, prompts, written.suffixes)
    differ = routes.token_paths()
    assert len(found["n"]) == model.config.depth - 1 and 0 < max(found["n"]) <= len(differ.rows)
    for n, differences, exponent in zip(found["n"], found["difference"], found["exponent"], strict=True):
        if n:
            assert differences == sorted(differences) and differences[0] > 0
            assert 1 < exponent < 3
    small, large = (np.array(found["difference"], float)[:, column] for column in (0, 2))
    assert np.nanmax(small / large) < 1


# Whole passes


def test_routes_are_those_that_decoding_takes(model, traced):
    outputs = decode(model, traced.mazes, "prompted")
    asked = outputs.asked.astype(np.int64)
    written = decoded_sequences(outputs.rows, asked, asked, outputs.tokens)
    routes = routes_of(model, traced, written, batch=7)
    layout = MazeLayout(SIZE, 2)
    prompts = torch.from_numpy(layout.prompts(traced.mazes.take(outputs.rows), outputs.asked))
    _, columns = generate(model, prompts, TRACE, EOS, layout.longest_suffix)
    assert len(columns) == routes.depth
    for level, taken in enumerate(columns):
        width = min(taken.shape[1], routes.ids.shape[2] - 1)
        assert routes.ids[:, level, 1 : 1 + width].tolist() == taken[:, :width].tolist()
    for row, output in enumerate(outputs.tokens):
        assert routes.predicted[row, : len(output)].tolist() == output.tolist()


def test_token_paths_follow_the_windows(known):
    written, routes = known
    tokens = routes.token_paths()
    assert len(tokens.rows) == written.suffixes.lengths.sum()
    for i in range(0, len(tokens.rows), 37):
        row, position = tokens.rows[i], int(tokens.positions[i])
        expected = [routes.ids[row, level, routes.windows.index(position, level + 1)] for level in range(routes.depth)]
        assert tokens.paths[i].tolist() == expected and NOWHERE not in expected
    paths, rows, windows = window_paths(routes)
    assert (paths == routes.ids[rows, :, windows]).all() and paths.min() >= 0 and windows.min() == 1


def test_diagnose_writes_everything(model, traced, tmp_path):
    outputs = decode(model, traced.mazes, "neutral")
    fields = np.full(len(outputs.rows), NEUTRAL_FIELD)
    decoded = {"neutral": decoded_sequences(outputs.rows, outputs.asked.astype(np.int64), fields, outputs.tokens)}
    seen = []
    found = diagnose(model, traced, traced, decoded, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 7) for k in range(1, 8)]
    folder = write_diagnostics(found, tmp_path, {"run": "r"})
    numbers = json.loads((folder / "diagnostics.json").read_text())
    assert numbers["run"] == "r" and numbers["strategies"] == list(MAZE_STRATEGIES) and numbers["n"] == 12
    assert set(numbers["ways"]) == {"known", "neutral"}
    known = numbers["ways"]["known"]
    assert known["reuse"]["all"]["n"] == sum(known["reuse"][str(code)]["n"] for code in range(S))
    assert len(known["occupancy"]["distinct"]) == numbers["depth"] == 3
    with np.load(folder / "arrays.npz") as saved:
        assert {name.split("/")[0] for name in saved} == {"known", "neutral"}
        assert saved["known/loads"].sum(-1) == pytest.approx(1)
        assert saved["known/points"].shape == (len(saved["known/point_strategy"]), 2)
        assert (saved["known/agreeing"] <= saved["known/counts"]).all()
    assert [entry["label"] for entry in numbers["probes"]["named"]][:S] == [f"strategy {s}" for s in MAZE_STRATEGIES]
    again = diagnose(model, traced, traced, decoded)
    assert again.numbers == found.numbers
