"""Keys, fingerprints and splits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.fingerprint import SPLITS, assign_splits, maze_fingerprint, maze_key
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import Mazes


def images(mazes: Mazes) -> list[Mazes]:
    """All 16 equivalent batches, from the geometry: passages are moved as pairs of cells."""
    size, cells = mazes.size, mazes.size**2
    grids = []
    numbers = np.arange(cells).reshape(size, size)
    for turns in range(4):
        grids += [np.rot90(numbers, turns), np.rot90(numbers, turns).T]
    result = []
    for moved in grids:
        to = np.empty(cells, np.int64)
        to[moved.reshape(-1)] = np.arange(cells)  # the cell shown at place k was moved there
        openings = np.zeros_like(mazes.openings)
        for cell in range(cells):
            for bit, step in ((1, -size), (2, 1), (4, size), (8, -1)):
                rows = (mazes.openings[:, cell] & bit) != 0
                if not rows.any():
                    continue
                change = int(to[cell + step] - to[cell])
                openings[rows, to[cell]] |= {-size: 1, 1: 2, size: 4, -1: 8}[change]
        start, goal = to[mazes.start].astype(np.uint8), to[mazes.goal].astype(np.uint8)
        result += [Mazes(size, mazes.id, openings, start, goal), Mazes(size, mazes.id, openings, goal, start)]
    return result


@pytest.mark.parametrize("size", [3, 4, 8, 15])
def test_equivalent_problems_share_a_fingerprint(size):
    mazes = generate_mazes(MazeSettings(size), 2, 0, 100).mazes
    alike = images(mazes)
    keys = np.array([maze_key(image) for image in alike])
    prints = np.array([maze_fingerprint(image) for image in alike])
    assert (prints == prints[0]).all()
    assert all(len(np.unique(keys[:, row])) == 16 for row in range(len(mazes))) or size < 8
    assert maze_key(mazes).dtype == maze_fingerprint(mazes).dtype == np.uint64


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 8), st.integers(0, 8), st.lists(st.booleans(), min_size=12, max_size=12))
def test_equivalent_graphs_share_a_fingerprint(start, goal, passages):
    # Small graphs with many symmetries, where several images are equally least.
    openings = np.zeros(9, np.uint8)
    pairs = [(c, c + 1, 2, 8) for c in range(9) if c % 3 < 2] + [(c, c + 3, 4, 1) for c in range(6)]
    for (a, b, there, back), is_open in zip(pairs, passages, strict=True):
        if is_open:
            openings[a] |= there
            openings[b] |= back
    endpoints = np.array([[start], [goal]], np.uint8)
    mazes = Mazes(3, np.zeros(1, np.uint64), openings[None], *endpoints)
    assert len({int(maze_fingerprint(image)[0]) for image in images(mazes)}) == 1


def test_fingerprints_differ_when_problems_do():
    # 3x3 has few enough trees that equivalent problems come up by chance: classes must match exactly.
    mazes = generate_mazes(MazeSettings(3, 2), 0, 0, 1500).mazes
    alike = images(mazes)
    classes = [
        min((int(m.start[row]), int(m.goal[row]), m.openings[row].tobytes()) for m in alike)
        for row in range(len(mazes))
    ]
    prints = maze_fingerprint(mazes).tolist()
    assert len(set(prints)) == len(set(classes)) == len(set(zip(prints, classes, strict=True)))
    assert len(set(prints)) < 1500


def test_every_part_of_a_problem_counts():
    made = generate_mazes(MazeSettings(8), 0, 0, 2).mazes
    base = Mazes(8, made.id[:1], made.openings[:1], made.start[:1], made.goal[:1])
    changed = [
        Mazes(8, base.id, base.openings, (base.start + 1) % 64, base.goal),
        Mazes(8, base.id, base.openings, base.start, (base.goal + 1) % 64),
        *(
            Mazes(8, base.id, base.openings ^ (np.arange(64) == c).astype(np.uint8), base.start, base.goal)
            for c in (0, 63)
        ),
    ]
    for name in (maze_key, maze_fingerprint):
        assert len({int(name(mazes)[0]) for mazes in [base, *changed]}) == 5
    other_id = Mazes(8, base.id + np.uint64(9), base.openings, base.start, base.goal)
    assert maze_key(other_id) == maze_key(base)


def test_keys_are_pinned():
    mazes = generate_mazes(MazeSettings(8), 0, 0, 1).mazes
    assert (int(maze_key(mazes)[0]), int(maze_fingerprint(mazes)[0])) == (637094337380859457, 1818540071592366746)


def test_fingerprint_bits_are_even():
    prints = maze_fingerprint(generate_mazes(MazeSettings(), 0, 0, 20_000).mazes)
    bits = ((prints[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(0)
    assert abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)


def test_shares_of_the_splits():
    prints = maze_fingerprint(generate_mazes(MazeSettings(), 0, 0, 20_000).mazes)
    splits = assign_splits(prints, 0.05, 0.1)
    assert splits.dtype == np.uint8
    shares = dict(zip(SPLITS, np.bincount(splits, minlength=3) / 20_000, strict=True))
    assert shares == pytest.approx({"train": 0.85, "validation": 0.05, "test": 0.1}, abs=0.011)


def test_edges_of_the_splits():
    ends = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    assert assign_splits(ends, 0.0, 0.0).tolist() == [0, 0, 0, 0]
    assert assign_splits(ends, 0.0, 1.0).tolist() == [2, 2, 2, 2]
    assert assign_splits(ends, 1.0, 0.0).tolist() == [1, 1, 1, 1]
    assert assign_splits(ends, 0.5, 0.5).tolist() == [2, 2, 1, 1]
    assert assign_splits(ends, 0.25, 0.25).tolist() == [2, 1, 0, 0]
    assert assign_splits(ends[:0], 0.25, 0.25).tolist() == []


@pytest.mark.parametrize("shares", [(-0.1, 0.1), (0.1, -0.1), (0.6, 0.5), (float("nan"), 0.1)])
def test_shares_that_are_refused(shares):
    with pytest.raises(UsageError, match="share"):
        assign_splits(np.zeros(1, np.uint64), *shares)
