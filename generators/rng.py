"""Counter-based random numbers from integers alone.

Every row of a data set has its own stream: a 64-bit state derived from (task, seed, row), stepped by a constant and
mixed (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). There is no shared
stream and no Python `hash`, so a row depends on those integers only. For one task and seed the derivation is a
bijection of the row: two rows never share a state. Seed and row go through a mix each, so seed 0, row 1 has nothing
to do with seed 1, row 0.

A kernel carries the state along: `state = advance(state)` and then `draw(state)` is the next number.
All arithmetic is uint64; mixed with int64, Numba would go through float64 and lose the low bits.
"""

from __future__ import annotations

import numpy as np

from lol_data.errors import UsageError
from lol_data.jit import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S16, _S27, _S30, _S31, _S48 = (np.uint64(shift) for shift in (16, 27, 30, 31, 48))


def is_integer(value: object) -> bool:
    """Whether a value is an integer, NumPy's included; a bool is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_seed(seed: int) -> np.uint64:
    """The seed as uint64; UsageError unless it is an integer with 0 <= seed < 2**64."""
    if not is_integer(seed) or not 0 <= seed < 2**64:
        raise UsageError(f"seed {seed!r} is not an integer from 0 to 2**64 - 1")
    return np.uint64(seed)


@njit
def mix(word: np.uint64) -> np.uint64:
    """A bijection of 64-bit words in which every input bit sways every output bit."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@njit
def fold(key: np.uint64, word: np.uint64) -> np.uint64:
    """A key for (everything in `key`, then `word`): a bijection of either when the other is fixed."""
    return mix((key + GOLDEN) ^ word)


@njit
def row_state(task: np.uint64, seed: np.uint64, row: np.uint64) -> np.uint64:
    """State at the head of the stream of one row. task: a constant per kind of data."""
    return fold(fold(mix(task), seed), row)


@njit
def advance(state: np.uint64) -> np.uint64:
    """The next state."""
    return state + GOLDEN


@njit
def draw(state: np.uint64) -> np.uint64:
    """64 random bits that belong to a state."""
    return mix(state)


@njit
def below(bits: np.uint64, bound: int | np.int64) -> int:
    """An integer in 0..bound-1 from 64 random bits, for 0 < bound < 2**16.

    Multiply and shift, on the upper 48 bits: a value's probability is off by less than 2**-48, by less than 2**-32 of
    itself.
    """
    return np.int64(((bits >> _S16) * np.uint64(bound)) >> _S48)  # type: ignore[return-value]
