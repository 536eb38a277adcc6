"""Bounds, paired tests and adjusted p-values: published figures, brute force, and what must hold for all."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.evaluators.intervals import clustered, holm, margin_bounds, mcnemar, paired, wilson


def test_the_notes_margins_leave_room_for_one_and_a_half_per_cent():
    assert margin_bounds(0.965, 0.985) == pytest.approx((0.95, 0.965))


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=30))
def test_the_joint_rate_lies_between_the_bounds(rows):
    table = np.array(rows)
    low, high = margin_bounds(*table.mean(0))
    assert low - 1e-12 <= table.all(1).mean() <= high


def test_a_textbook_mcnemar():
    """Airway hyper-responsiveness before and after stem cell transplantation: Fagerland et al. 2013, table 1."""
    exact, mid = mcnemar(1, 7)
    assert (round(exact, 3), round(mid, 3)) == (0.070, 0.039)


@pytest.mark.parametrize(("won", "lost"), list(itertools.product(range(6), repeat=2)))
def test_mcnemar_is_a_count_of_equally_likely_outcomes(won, lost):
    outcomes = [sum(bits) for bits in itertools.product([0, 1], repeat=won + lost)]
    fewer = [min(k, won + lost - k) for k in outcomes]
    more_extreme, equal = sum(k < min(won, lost) for k in fewer), fewer.count(min(won, lost))
    exact, mid = mcnemar(won, lost)
    assert exact == (more_extreme + equal) / len(outcomes)
    # Where both sides won as often, the one point is both tails: counting half of each tail leaves all of it.
    assert mid == (1 if won == lost else (more_extreme + equal / 2) / len(outcomes))


def test_many_pairs_are_counted_without_rounding_to_nothing():
    assert mcnemar(500, 500) == (1.0, 1.0)
    assert 0 < mcnemar(0, 1000)[0] < 1e-300


def test_one_sample_a_problem_is_the_plain_paired_table():
    first = np.array([True] * 6 + [False] * 14)
    second = np.array([True] * 5 + [False] + [True] * 7 + [False] * 7)
    result = paired(first, second, np.arange(20))
    assert (result["won"], result["lost"], result["n"]) == (7, 1, 20)
    assert (result["p_exact"], result["p_mid"]) == mcnemar(7, 1)
    assert result["first"] == wilson(6, 20) and result["second"] == wilson(12, 20)
    # Bonett and Price: (b + 1) / (n + 2) and (c + 1) / (n + 2)
    gain, loss = 8 / 22, 2 / 22
    half = 1.959964 * np.sqrt((gain + loss - (gain - loss) ** 2) / 22)
    difference = result["difference"]
    assert difference["rate"] == pytest.approx(0.3)
    assert (difference["low"], difference["high"]) == pytest.approx((gain - loss - half, gain - loss + half))


def test_outputs_on_one_problem_count_once():
    """Five equal outputs on each problem say no more than one."""
    first, second = np.zeros(8, bool), np.array([True] * 4 + [False] * 4)
    once, often = paired(first, second, np.arange(8)), paired(*(np.repeat(x, 5) for x in (first, second, np.arange(8))))
    for name in ("difference", "won", "lost", "p_exact", "p_mid"):
        assert once[name] == often[name]
    assert often["n"] == 40


verdicts = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 6)), max_size=40)


@given(verdicts)
def test_exchanging_the_sides_mirrors_the_comparison(rows):
    first, second, problems = (np.array([row[k] for row in rows], dtype) for k, dtype in enumerate((bool, bool, int)))
    one, other = paired(first, second, problems), paired(second, first, problems)
    assert (one["won"], one["lost"]) == (other["lost"], other["won"])
    assert one["p_mid"] == other["p_mid"] <= one["p_exact"] <= 1
    assert one["difference"]["low"] == pytest.approx(-other["difference"]["high"])
    if rows:
        assert one["difference"]["rate"] == pytest.approx(one["second"]["rate"] - one["first"]["rate"])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == [] and holm([0.7, 0.8]) == [1.0, 1.0]


outcomes = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=60)


@given(outcomes)
def test_outputs_on_one_problem_never_make_an_interval_narrower(samples):
    problems, hits = np.array([problem for problem, _ in samples]), np.array([hit for _, hit in samples])
    found, independent = clustered(hits, problems), wilson(int(hits.sum()), len(hits))
    assert found["rate"] == pytest.approx(independent["rate"])
    assert 0 <= found["low"] <= found["rate"] <= found["high"] <= 1
    assert found["low"] <= independent["low"] + 1e-12 and found["high"] >= independent["high"] - 1e-12


def test_the_same_output_five_times_counts_once():
    hits, problems = np.arange(400) % 3 == 0, np.arange(400)
    once = clustered(hits, problems)
    assert once == wilson(int(hits.sum()), 400)
    five = clustered(np.repeat(hits, 5), np.repeat(problems, 5))
    assert five["low"] == pytest.approx(once["low"], abs=1e-4) and five["high"] == pytest.approx(once["high"], abs=1e-4)


def test_independent_outputs_count_as_many_as_they_are():
    hits = np.random.default_rng(0).random(5000) < 0.7
    found, independent = clustered(hits, np.repeat(np.arange(1000), 5)), wilson(int(hits.sum()), 5000)
    assert found["high"] - found["low"] == pytest.approx(independent["high"] - independent["low"], rel=0.06)


def test_where_all_hit_problems_are_counted():
    assert clustered(np.ones(1000, bool), np.repeat(np.arange(200), 5)) == wilson(200, 200)
    assert clustered(np.zeros(0, bool), np.zeros(0, int))["rate"] is None
    one = clustered(np.array([True, False]), np.zeros(2, int))  # a single problem says nearly nothing
    assert one["rate"] == 0.5 and one["high"] - one["low"] > 0.75
