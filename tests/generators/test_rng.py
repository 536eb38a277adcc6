"""The random numbers: derivation, independence, bounded draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.rng import advance, below, check_seed, draw, mix, row_state

WORD = st.integers(0, 2**64 - 1)


def plain_mix(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


@given(WORD)
def test_mix_is_exact_integer_arithmetic(word):
    assert int(mix(np.uint64(word))) == plain_mix(word)


def test_the_stream_is_splitmix64():
    # First numbers of the published generator for state 1234567 (it advances before it mixes).
    state, numbers = np.uint64(1234567), []
    for _ in range(3):
        state = np.uint64(advance(state))
        numbers.append(int(draw(state)))
    assert numbers == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(WORD, st.integers(1, 2**16 - 1))
def test_below_is_multiply_and_shift(word, bound):
    assert below(np.uint64(word), bound) == ((word >> 16) * bound) >> 48 < bound


def test_below_reaches_every_value_evenly():
    counts = np.zeros(63, np.int64)
    state = np.uint64(0)
    for _ in range(63 * 200):
        state = np.uint64(advance(state))
        counts[below(np.uint64(draw(state)), 63)] += 1
    assert ((counts - 200) ** 2 / 200).sum() < 62 + 5 * np.sqrt(2 * 62)


def test_states_of_seeds_and_rows_are_unrelated():
    states = {int(row_state(np.uint64(7), np.uint64(s), np.uint64(r))) for s in range(100) for r in range(100)}
    assert len(states) == 10_000
    high = {int(row_state(np.uint64(7), np.uint64(2**64 - 1 - s), np.uint64(r))) for s in range(9) for r in range(9)}
    assert not states & high
    bits = np.array([[(state >> k) & 1 for k in range(64)] for state in states]).mean(0)
    assert abs(bits - 0.5).max() < 0.025  # five standard deviations


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", True, None])
def test_seeds_that_are_refused(seed):
    with pytest.raises(UsageError, match="seed"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [0, 2**63, 2**64 - 1, np.int32(5), np.uint64(2**64 - 1)])
def test_seeds_that_are_taken(seed):
    assert int(check_seed(seed)) == int(seed)
