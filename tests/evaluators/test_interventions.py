"""Arms of an intervention: what each lays down, what is left to the router, and where outputs and paths part."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import RefusedError, UsageError
from lol_data.evaluators.evaluate import evaluate
from lol_data.evaluators.intervals import paired
from lol_data.evaluators.intervene import divergence, intervene, intervention_table
from lol_data.evaluators.interventions import FACTORS, GROUPS, SHUFFLES, make_arms
from lol_data.evaluators.parts import Parts
from lol_data.evaluators.paths import OWN, Paths
from lol_data.evaluators.protocols import NO_BLOCK, Outputs
from lol_data.evaluators.templates import PathStatistics, observe_paths
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.model.windows import Windows
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.maze import CELL_BASE
from lol_data.tokenization.vocabulary import ANSWER, EOS

from .common import maze_model

SIZE, PROBLEMS, S, D, K, L = 3, 2, len(MAZE_STRATEGIES), 4, 3, 5


@pytest.fixture(scope="module")
def statistics():
    """Every cell with a block of its own: depth l, window k of strategy s takes block (s + l + k * l) mod L."""
    shape = S, D, K
    s, level, k = np.indices(shape)
    chosen = np.eye(L, dtype=np.int64)[(s + level + k * level) % L] * 10
    return PathStatistics(np.full(shape, 10), chosen, chosen * (0.5 + level[..., None] / 10))


def arms_of(statistics, *groups):
    return {arm.name: arm for arm in make_arms(statistics, "selection", groups)}


def test_blocks_and_gates_are_taken_apart(statistics):
    arms, template = arms_of(statistics, "ids-gates"), statistics.template("selection")
    assert list(arms) == ["own", "template", "ids", "gates"]
    assert arms["own"].paths is None
    assert np.array_equal(arms["ids"].paths.ids, template.ids) and np.isnan(arms["ids"].paths.gates).all()
    assert (arms["gates"].paths.ids == OWN).all() and np.array_equal(arms["gates"].paths.gates, template.gates)
    assert np.array_equal(arms["template"].paths.ids, template.ids)


@pytest.mark.parametrize("group", ["order", "swaps"])
def test_order_changes_and_nothing_else(statistics, group):
    """Each block's count in each window, every gate and the prompt's own path stay."""
    template = statistics.template("selection")
    for arm in list(arms_of(statistics, group).values())[2:]:
        assert len(arm.paths.ids) == arm.variants * S
        assert np.array_equal(arm.paths.gates, np.concatenate([template.gates] * arm.variants))
        for row, ids in enumerate(arm.paths.ids):
            before = template.ids[row % S]
            assert np.array_equal(ids[:, 0], before[:, 0])
            assert not np.array_equal(ids, before)
            for k in range(1, K):
                assert Counter(ids[:, k].tolist()) == Counter(before[:, k].tolist())


def test_swaps_are_of_neighbours(statistics):
    arms, template = arms_of(statistics, "swaps"), statistics.template("selection")
    assert list(arms)[2:] == ["swap-1-2", "swap-2-3", "swap-3-4"]
    expected = template.ids[:, [0, 2, 1, 3], 1:]
    assert np.array_equal(arms["swap-2-3"].paths.ids[:, :, 1:], expected)


def test_shuffles_differ_and_follow_from_the_seed(statistics):
    one, same, other = (
        make_arms(statistics, "selection", ["order"], seed)[-1].paths.ids.reshape(SHUFFLES, S, D, K)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    assert len({shuffle.tobytes() for shuffle in one}) > SHUFFLES // 2


def test_a_path_without_an_order_is_left_as_it_is():
    chosen = np.zeros((S, D, K, L), np.int64)
    chosen[..., 2] = 1
    arm = arms_of(PathStatistics(chosen.sum(-1), chosen, chosen * 0.5), "order")["shuffled"]
    assert (arm.paths.ids == 2).all()


def test_factors_change_the_gates_behind_the_prompt(statistics):
    arms, template = arms_of(statistics, "gates"), statistics.template("selection")
    assert {arm.name for arm in list(arms.values())[2:]} == {f"gates-x{factor:g}" for factor in FACTORS}
    for factor in FACTORS:
        paths = arms[f"gates-x{factor:g}"].paths
        assert np.array_equal(paths.ids, template.ids)
        assert np.array_equal(paths.gates[:, :, 0], template.gates[:, :, 0])
        np.testing.assert_allclose(paths.gates[:, :, 1:], template.gates[:, :, 1:] * factor, rtol=1e-6)


@pytest.mark.parametrize(("group", "axis", "names"), [("depths", 1, range(1, D + 1)), ("windows", 2, range(1, K))])
def test_ablations_split_the_template_in_two(statistics, group, axis, names):
    arms, template = arms_of(statistics, group), statistics.template("selection")
    for name in names:
        only, without = (arms[f"{what}-{group[:-1]}-{name}"] for what in ("only", "without"))
        assert (only.reference, without.reference) == ("own", "template")
        index = name - 1 if axis == 1 else name
        laid = np.moveaxis(only.paths.ids != OWN, axis, 0)
        assert laid[index].all() and laid.sum() == laid[index].size
        assert ((only.paths.ids == OWN) ^ (without.paths.ids == OWN)).all()
        assert np.array_equal(np.isnan(without.paths.gates), without.paths.ids == OWN)
        assert np.array_equal(np.maximum(only.paths.ids, without.paths.ids), template.ids)


def test_renamed_fields_name_the_next_strategy(statistics):
    arms = arms_of(statistics, "renamed")
    ids = np.array([7, 8], np.uint64)
    requests = arms["renamed-ids"].requests(ids, S, prompted=False)
    assert requests.asked.tolist() == [0, 1, 2, 3, 4] * 2
    assert requests.field.tolist() == [1, 2, 3, 4, 0] * 2
    assert requests.path.tolist() == [0, 1, 2, 3, 4] * 2
    assert arms["own"].requests(ids, S, prompted=False).field.tolist() == [NEUTRAL_FIELD] * 10
    assert arms["own"].requests(ids, S, prompted=True).field.tolist() == [0, 1, 2, 3, 4] * 2


def test_a_problem_takes_the_shuffle_of_its_id_whoever_stands_beside_it(statistics):
    arm = arms_of(statistics, "order")["shuffled"]
    paths = arm.requests(np.array([18, 5, 2], np.uint64), S, False).path
    assert paths.tolist() == [2 * S + s for s in range(S)] + [5 * S + s for s in range(S)] + [
        2 * S + s for s in range(S)
    ]


def test_a_group_that_is_none(statistics):
    with pytest.raises(UsageError, match="'magic' is no group of arms; use ids-gates, order"):
        make_arms(statistics, "selection", ["order", "magic"])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_partial_path_takes_what_is_laid_down_and_leaves_the_rest(data):
    rows, depths, windows, blocks = 2, 2, 3, 4
    cells = (rows, depths, windows)
    ids = np.array(data.draw(st.lists(st.integers(OWN, blocks - 1), min_size=12, max_size=12))).reshape(cells)
    gates = np.array(data.draw(st.lists(st.sampled_from([np.nan, 0.25, 1.5]), min_size=12, max_size=12)), np.float32)
    gates = gates.reshape(cells)
    seen, first, depth = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 3)), data.draw(st.integers(1, depths))
    probabilities = torch.rand(
        rows, seen, blocks, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    )
    own = probabilities.argmax(-1)
    order = np.array([1, 0])
    forced = Paths(ids, gates).forced(np.array([0, 1]), torch.device("cpu")).keep(torch.from_numpy(order))
    got_ids, got_gates = forced.apply(probabilities, own, depth, first)
    for row in range(rows):
        for k in range(seen):
            cell = order[row], depth - 1, min(first + k, windows - 1)
            block = own[row, k].item() if ids[cell] == OWN else ids[cell]
            assert got_ids[row, k] == block
            gate = probabilities[row, k, block].item() if np.isnan(gates[cell]) else gates[cell]
            assert got_gates[row, k].item() == pytest.approx(gate)


def outputs(tokens, blocks, limit=12):
    """One request per row of tokens; blocks (M, D, K)."""
    count, blocks = len(tokens), np.array(blocks, np.uint8)
    zeros = np.zeros(count, np.int64)
    return Outputs(zeros, zeros.astype(np.uint8), Ragged.from_rows(tokens), zeros[:, None], limit, zeros, blocks)


def test_divergence_is_the_first_place_in_the_order_of_computation():
    """Windows of 8, shifted by 4 at depth 2: window 2 of depth 2 opens at token 4, window 2 of depth 1 at token 8."""
    windows, none = Windows(10, 8, 4), NO_BLOCK
    same = [[0, 1], [2, 3]]
    first = outputs([[1, 2, 3]] * 5, [same, same, same, [[0, none], [2, none]], same])
    others = [same, [[0, 9], [2, 9]], [[0, 9], [9, 3]], [[0, 9], [2, 9]], [[0, 1], [9, 9]]]
    second = outputs([[1, 2, 3], [1, 2, 4], [1, 2], [1, 2, 3, 4], [9, 2, 3]], others)
    places = divergence(first, second, windows)
    assert places[:, 0].tolist() == [-1, 2, 2, 3, 0]
    assert places[:, 1:].tolist() == [[-1, -1], [2, 2], [1, 2], [-1, -1], [1, 2]]
    assert np.array_equal(divergence(second, first, windows), places)


@pytest.fixture(scope="module")
def model():
    model = maze_model(SIZE, seed=3)
    with torch.no_grad():
        said = [EOS, ANSWER, *range(CELL_BASE, CELL_BASE + SIZE * SIZE)]
        silent = torch.ones(len(model.head), dtype=torch.bool)
        silent[said] = False
        model.head[silent] = 0
    return model


@pytest.fixture(scope="module")
def traced():
    return generate_mazes(MazeSettings(size=SIZE), 0, 0, PROBLEMS)


@pytest.fixture(scope="module")
def observed(model):
    return observe_paths(model, generate_mazes(MazeSettings(size=SIZE), 0, 100, 103))


@pytest.fixture(scope="module")
def result(model, traced, observed):
    return intervene(model, traced.mazes, observed)


def samples_of(result, arm):
    return result[1].filter(np.array(result[1]["arm"].to_pylist()) == arm)


def test_every_arm_decodes_every_problem_under_every_strategy(result):
    summary, samples = result
    assert {about["group"] for about in summary["arms"].values()} == set(GROUPS)
    for arm in summary["arms"]:
        table = samples_of(result, arm)
        assert table["id"].to_pylist() == [id for id in range(PROBLEMS) for _ in range(S)]
        assert table["asked"].to_pylist() == list(MAZE_STRATEGIES) * PROBLEMS
    assert len(samples) == len(summary["arms"]) * PROBLEMS * S
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize(("arm", "protocol"), [("own", "neutral"), ("template", "forced")])
def test_the_reference_arms_are_the_protocols(model, traced, observed, result, arm, protocol):
    alone = evaluate(model, traced.mazes, protocol, observed)
    table = samples_of(result, arm)
    for name in ("tokens", "identified", "joint", "blocks"):
        assert table[name].to_pylist() == alone.samples[name].to_pylist()
    assert result[0]["arms"][arm]["overall"]["joint"] == alone.summary["overall"]["joint"]


def test_names_change_nothing_where_the_whole_path_is_forced(result):
    divergence = result[0]["arms"]["renamed-template"]["divergence"]
    assert (divergence["same_output"], divergence["same_blocks"]) == (1, 1)


def test_the_blocks_that_ran_are_those_laid_down(result, observed):
    """From the samples: swapped blocks swapped, one depth forced and the others free."""
    ids = observed.template("selection").ids
    last = ids.shape[2] - 1
    for arm, order in (("swap-1-2", [1, 0, 2]), ("template", [0, 1, 2])):
        for k, path in enumerate(samples_of(result, arm)["blocks"].to_pylist()):
            for level, blocks in enumerate(path):
                wanted = [ids[k % S, order[level], min(w, last)] for w in range(1, len(blocks) + 1)]
                assert blocks == wanted
    for k, path in enumerate(samples_of(result, "only-depth-2")["blocks"].to_pylist()):
        assert path[1] == [ids[k % S, 1, min(w, last)] for w in range(1, len(path[1]) + 1)]


def test_an_arm_is_paired_with_its_reference(result):
    for name, about in result[0]["arms"].items():
        if about["reference"] is None:
            assert name == "own" and "paired" not in about
            continue
        one, two = (np.array(samples_of(result, arm)["legal"].to_pylist()) for arm in (about["reference"], name))
        expected = paired(one, two, np.repeat(np.arange(PROBLEMS), S))
        got = dict(about["paired"]["legality"]["overall"])
        assert got.pop("p_holm") >= got["p_mid"]
        assert got == expected
        table = samples_of(result, name)
        before, after = (samples_of(result, arm)["tokens"].to_pylist() for arm in (about["reference"], name))
        for a, b, at in zip(before, after, table["differs_at_token"].to_pylist(), strict=True):
            assert (at is None) == (a == b)
            if at is not None:
                assert a[:at] == b[:at] and a[at : at + 1] != b[at : at + 1]


def test_the_table_has_a_line_an_arm(result):
    lines = intervention_table(result[0]).splitlines()
    assert [line.split()[0] for line in lines[2 : 2 + len(result[0]["arms"])]] == list(result[0]["arms"])


def test_an_interrupted_intervention_goes_on(model, traced, observed, result, tmp_path):
    def stop(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    groups = ["ids-gates", "depths"]
    arguments = model, traced.mazes, observed, "selection", groups
    with pytest.raises(KeyboardInterrupt):
        intervene(*arguments, batch=3, progress=stop, parts_of=lambda arm: Parts.open(tmp_path / arm, {}))
    assert len(list(tmp_path.iterdir())) < 10
    summary, samples = intervene(*arguments, batch=4, parts_of=lambda arm: Parts.open(tmp_path / arm, {}))
    for arm in summary["arms"]:
        assert samples_of((summary, samples), arm)["tokens"] == samples_of(result, arm)["tokens"]


def test_problems_behind_the_templates_are_refused(model, traced):
    with pytest.raises(RefusedError, match="problem 0 is to be scored"):
        intervene(model, traced.mazes, observe_paths(model, traced))
