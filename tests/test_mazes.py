"""The passage bitmap: a literal example, an exact round trip, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.errors import DamageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import (
    EAST,
    MAX_SIZE,
    MAZE_STRATEGIES,
    MIN_SIZE,
    SOUTH,
    default_min_path,
    pack_passages,
    passage_bytes,
    unpack_passages,
)


def test_the_bits_of_a_literal_maze():
    # 0-1-2
    #   |      east edges open: 0-1, 1-2, 3-4, 4-5, 6-7; south edges: 1-4, 4-7, 5-8
    # 3-4-5
    #   | |
    # 6-7 8
    openings = np.array([[2, 14, 8, 2, 15, 12, 2, 9, 1]], np.uint8)
    bits = sum(1 << k for k in (0, 1, 3, 4, 6)) | sum(1 << 9 + k for k in (1, 4, 5))
    packed = pack_passages(openings, 3)
    assert packed.tobytes() == bits.to_bytes(3, "little")
    assert unpack_passages(packed, 3).tolist() == openings.tolist()


@pytest.mark.parametrize("size", range(MIN_SIZE, MAX_SIZE + 1))
def test_generated_mazes_survive_the_bitmap(size):
    mazes = generate_mazes(MazeSettings(size=size), seed=3, lo=0, hi=6).mazes
    packed = pack_passages(mazes.openings, size)
    assert packed.shape == (6, passage_bytes(size))
    assert np.array_equal(unpack_passages(packed, size), mazes.openings)


@given(st.integers(MIN_SIZE, 6), st.data())
def test_any_open_edges_come_back_and_both_sides_agree(size, data):
    bits = np.array(data.draw(st.lists(st.booleans(), min_size=2 * size * size, max_size=2 * size * size)))
    east, south = bits.reshape(2, size, size)
    east[:, -1] = south[-1, :] = False
    packed = np.packbits(bits, bitorder="little")[None]
    openings = unpack_passages(packed, size)
    assert np.array_equal(pack_passages(openings, size), packed)
    grid = openings.reshape(size, size)
    assert np.array_equal((grid[:, :-1] & EAST) != 0, (grid[:, 1:] & 8) != 0)
    assert np.array_equal((grid[:-1] & SOUTH) != 0, (grid[1:] & 1) != 0)


@pytest.mark.parametrize(
    ("bit", "message"), [(2, "border"), (9 + 6, "border"), (18, "past its end"), (23, "past its end")]
)
def test_a_bit_that_cannot_be_set_is_damage(bit, message):
    packed = np.frombuffer((1 << bit).to_bytes(3, "little"), np.uint8)[None]
    with pytest.raises(DamageError, match=message):
        unpack_passages(packed, 3)


def test_take_keeps_problem_answer_and_traces_together():
    traced = generate_mazes(MazeSettings(size=4), seed=1, lo=0, hi=5)
    taken = traced.take(np.array([4, 1, 1]))
    assert taken.mazes.id.tolist() == [4, 1, 1]
    for k, row in enumerate((4, 1, 1)):
        alone = generate_mazes(MazeSettings(size=4), seed=1, lo=row, hi=row + 1)
        assert np.array_equal(taken.mazes.openings[k], alone.mazes.openings[0])
        assert np.array_equal(taken.answer[k], alone.answer[0])
        for name in MAZE_STRATEGIES:
            assert np.array_equal(taken.traces[name][k], alone.traces[name][0])


def test_the_least_path_by_default():
    assert [default_min_path(size) for size in (3, 5, 8, 15)] == [4, 7, 12, 22]
