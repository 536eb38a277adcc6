"""Generated mazes: purity of rows, conditions, settings, spread."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import LolDataError, UsageError
from lol_data.generators import maze as maze_module
from lol_data.generators.fingerprint import maze_fingerprint, maze_key
from lol_data.generators.maze import ALGORITHMS, MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES, TracedMazes, pack_passages, passage_bytes, unpack_passages


def columns(made: TracedMazes) -> list[np.ndarray]:
    flat = [made.mazes.id, made.mazes.openings, made.mazes.start, made.mazes.goal]
    for trace in (made.answer, *made.traces.values()):
        flat += [trace.values, trace.lengths]
    return flat


def assert_same(one: TracedMazes, other: TracedMazes) -> None:
    assert tuple(one.traces) == tuple(other.traces) == MAZE_STRATEGIES
    for mine, theirs in zip(columns(one), columns(other), strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


# ---- rows are pure ----


ANY_SETTINGS = st.builds(
    MazeSettings,
    st.integers(3, 9),
    algorithm=st.sampled_from(ALGORITHMS),
    loops=st.sampled_from([0.0, 0.0, 0.05, 0.5, 1.0]),
)


@settings(max_examples=100, deadline=None)
@given(ANY_SETTINGS, st.integers(0, 2**64 - 1), st.integers(0, 2**62), st.integers(0, 12), st.integers(0, 12))
def test_rows_do_not_depend_on_the_block(kind, seed, lo, before, after):
    whole = generate_mazes(kind, seed, lo, lo + before + after)
    assert_same(whole.take(np.arange(before)), generate_mazes(kind, seed, lo, lo + before))
    tail = generate_mazes(kind, seed, lo + before, lo + before + after)
    assert_same(whole.take(np.arange(before, before + after)), tail)
    assert whole.mazes.id.tolist() == list(range(lo, lo + before + after))


def test_threads_do_not_disturb_each_other():
    blocks = [(k * 400, (k + 1) * 400) for k in range(16)]

    def make(block: tuple[int, int]) -> TracedMazes:
        return generate_mazes(MazeSettings(), 11, *block)

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(make, blocks))
    for block, made in zip(blocks, together, strict=True):
        assert_same(made, make(block))


# A change of these hashes is a change of every published data set: raise the version and say so.
PINNED = {
    ("wilson", 0.0): "c9b598309e35150efc3889a004915c9693edcd7eaf2d3e16e2591cca96388e71",
    ("backtracker", 0.0): "d08df3eead4a0b84d2cd3de1aa51d244b888f59a3f457825591e3a3e51fa6858",
    ("kruskal", 0.0): "3bcc55c7c78d882be12835cbfc295e3ca6de0847dba7cf245bc9fe9cfce1e095",
    ("prim", 0.0): "e1673f4a411ba0b0b83d97a8243a3e806ea2446310bc029080d99cc6a6e695cf",
    ("wilson", 0.1): "779b842fb26bb3292d820aadd5ca8235d2c4433abe657a60ef7a24026ce9fb3d",
    ("prim", 1.0): "e0e6b32ee6c1ad4373f16cf51e048c9007c0ff80051a7397f3fdc61a49f80791",
}


@pytest.mark.parametrize(("algorithm", "loops"), PINNED)
def test_bytes_are_pinned(algorithm, loops):
    digest = hashlib.sha256()
    for size in (5, 8):
        made = generate_mazes(MazeSettings(size, algorithm=algorithm, loops=loops), 2**64 - 1, 0, 500)
        for column in columns(made):
            digest.update(np.ascontiguousarray(column).astype(column.dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == PINNED[algorithm, loops]


def test_numpy_global_state_is_left_alone():
    np.random.seed(1)  # noqa: NPY002
    first = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    generate_mazes(MazeSettings(), 0, 0, 10)
    assert np.random.random() == first  # noqa: NPY002


# ---- conditions ----


def plain_neighbours(openings: list[int], size: int, cell: int) -> list[int]:
    return [cell + step for bit, step in ((1, -size), (2, 1), (4, size), (8, -1)) if openings[cell] & bit]


@pytest.mark.parametrize(
    "kind",
    [
        *(MazeSettings(*pair) for pair in [(3, None), (4, 2), (5, None), (8, None), (8, 25), (11, None)]),
        *(MazeSettings(size, algorithm=name) for name in ALGORITHMS[1:] for size in (3, 8)),
        *(MazeSettings(8, least, name, loops) for name in ALGORITHMS for least, loops in [(2, 0.5), (None, 0.1)]),
        *(MazeSettings(size, 2, loops=1.0) for size in (3, 4, 8)),
        MazeSettings(8, 20, loops=0.05),
        MazeSettings(15, loops=1.0),
    ],
    ids=str,
)
def test_conditions_hold(kind):
    size = kind.size
    made = generate_mazes(kind, 5, 0, 150)
    least = kind.min_path or {3: 4, 5: 7, 8: 12, 11: 16, 15: 22}[size]
    for row in range(len(made)):
        openings, start, goal = made.mazes.openings[row].tolist(), int(made.mazes.start[row]), int(made.mazes.goal[row])
        assert start != goal
        assert kind.loops or sum(openings[cell].bit_count() for cell in range(size * size)) == 2 * (size * size - 1)
        # the path and the breadth-first search
        parent, queue, searched = {start: start}, deque([start]), 0
        while True:
            cell = queue.popleft()
            searched += 1
            if cell == goal:
                break
            for other in plain_neighbours(openings, size, cell):
                if other not in parent:
                    parent[other] = cell
                    queue.append(other)
        path = [goal]
        while path[-1] != start:
            path.append(parent[path[-1]])
        assert made.answer[row].tolist() == path[::-1]
        assert len(path) >= least
        assert searched - len(path) >= 3
        # the depth-first walk
        stack, seen, backs = [start], {start}, 0
        while stack[-1] != goal:
            fresh = [other for other in plain_neighbours(openings, size, stack[-1]) if other not in seen]
            if fresh:
                stack.append(fresh[0])
                seen.add(fresh[0])
            else:
                stack.pop()
                backs += 1
        assert backs >= 1


def test_every_cell_can_be_start_and_goal():
    made = generate_mazes(MazeSettings(5), 0, 0, 3000)
    assert set(made.mazes.start.tolist()) == set(made.mazes.goal.tolist()) == set(range(25))


def test_kept_trees_are_nearly_uniform():
    # All uniform trees have 18.88 dead ends on average; keeping a tree for its endpoints shifts that by less than 1 %.
    openings = generate_mazes(MazeSettings(), 1, 0, 20_000).mazes.openings
    assert np.isin(openings, [1, 2, 4, 8]).sum(1).mean() == pytest.approx(18.88, rel=0.01)


# ---- spread ----


def test_20000_mazes_are_distinct():
    mazes = generate_mazes(MazeSettings(), 0, 0, 20_000).mazes
    assert len(np.unique(mazes.openings, axis=0)) == 20_000
    assert len(np.unique(maze_key(mazes))) == len(np.unique(maze_fingerprint(mazes))) == 20_000


@pytest.mark.slow
def test_a_million_mazes_are_distinct():
    made = [generate_mazes(MazeSettings(), 0, lo, lo + 100_000).mazes for lo in range(0, 1_000_000, 100_000)]
    assert len(np.unique(np.concatenate([maze_fingerprint(mazes) for mazes in made]))) == 1_000_000


@pytest.mark.parametrize(("one", "other"), [(0, 1), (41, 42), (2**64 - 1, 0), (1, 2**64 - 1)])
def test_seeds_share_nothing(one, other):
    prints = [maze_fingerprint(generate_mazes(MazeSettings(), seed, 0, 3000).mazes) for seed in (one, other)]
    assert not set(prints[0].tolist()) & set(prints[1].tolist())


def test_settings_do_not_share_a_stream():
    kinds = [MazeSettings(algorithm=name, loops=loops) for name in ALGORITHMS for loops in (0.0, 0.01)]
    made = [generate_mazes(kind, 0, 0, 500).mazes for kind in kinds]
    for k, one in enumerate(made):
        for other in made[:k]:
            assert ((one.start == other.start) & (one.goal == other.goal)).sum() < 5


def test_no_looped_maze_is_a_perfect_one_with_a_wall_removed():
    # Looped mazes test models that were trained on perfect ones of the same seed.
    perfect, looped = (generate_mazes(MazeSettings(loops=loops), 0, 0, 2000).mazes for loops in (0.0, 0.002))
    assert not {tree.tobytes() for tree in perfect.openings} & {maze.tobytes() for maze in looped.openings}
    assert not ((perfect.openings & ~looped.openings) == 0).all(1).any()


def test_sizes_do_not_share_a_stream():
    small, large = (generate_mazes(MazeSettings(size), 0, 0, 200).mazes for size in (8, 9))
    assert (small.start == large.start).mean() < 0.1


# ---- settings ----


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (MazeSettings(2), "size 2"),
        (MazeSettings(16), "size 16"),
        (MazeSettings(8.0), "size 8.0"),  # type: ignore[arg-type]
        (MazeSettings(8, 1), "min_path 1"),
        (MazeSettings(8, 62), "min_path 62"),
        (MazeSettings(3, 7), "min_path 7"),
        (MazeSettings(8, True), "min_path True"),
        (MazeSettings(8, 65), "min_path 65"),
        (MazeSettings(algorithm="dfs"), "algorithm 'dfs' is unknown; choose from wilson, backtracker, kruskal, prim"),
        (MazeSettings(algorithm=0), "algorithm 0 is unknown"),  # type: ignore[arg-type]
        (MazeSettings(loops=-0.01), "loops -0.01 is not a number from 0 to 1"),
        (MazeSettings(loops=1.01), "loops 1.01"),
        (MazeSettings(loops=float("nan")), "loops nan"),
        (MazeSettings(loops=float("inf")), "loops inf"),
        (MazeSettings(loops=True), "loops True"),
        (MazeSettings(loops="0.1"), "loops '0.1'"),  # type: ignore[arg-type]
        (MazeSettings(loops=None), "loops None"),  # type: ignore[arg-type]
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(UsageError, match=message) as caught:
        generate_mazes(settings, 0, 0, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_size_works_with_its_defaults(algorithm):
    for size in range(3, 16):
        for loops in (0.0, 0.1, 1.0):
            settings = MazeSettings(size, algorithm=algorithm, loops=loops)
            settings.validate()
            made = generate_mazes(settings, 0, 0, 20)
            assert made.answer.lengths.min() >= settings.least_path == 3 * size // 2


def test_the_longest_paths_that_can_be_asked_for():
    assert generate_mazes(MazeSettings(3, 6), 0, 0, 20).answer.lengths.tolist() == [6] * 20


def test_a_hopeless_search_ends_with_an_error():
    # 8 x 8 paths of 61 cells exist, but not among a quarter of a million uniform trees.
    with pytest.raises(LolDataError, match="min_path 61 is too rare at size 8: row 3") as caught:
        generate_mazes(MazeSettings(8, 61), 0, 3, 5)
    assert not isinstance(caught.value, UsageError)


def test_a_hopeless_search_among_loops_says_so():
    # With every wall open no path has more than 5 cells.
    with pytest.raises(LolDataError, match=r"min_path 6 is too rare at size 3 with loops 1.0: row 0.*fewer loops"):
        generate_mazes(MazeSettings(3, 6, loops=1.0), 0, 0, 1)


@pytest.mark.parametrize(("lo", "hi"), [(-1, 1), (2, 1), (0, 2**63)])
def test_ranges_that_are_refused(lo, hi):
    with pytest.raises(UsageError, match="ids"):
        generate_mazes(MazeSettings(), 0, lo, hi)


def test_numpy_integers_are_integers():
    plain = generate_mazes(MazeSettings(8, 14), 3, 5, 9)
    settings = MazeSettings(np.int32(8), np.uint8(14), loops=np.float32(0))  # type: ignore[arg-type]
    assert_same(generate_mazes(settings, np.uint64(3), np.uint64(5), np.int16(9)), plain)  # type: ignore[arg-type]


def test_no_rows():
    made = generate_mazes(MazeSettings(), 0, 7, 7)
    assert len(made) == 0
    assert made.answer.offsets.tolist() == [0]


def test_the_limit_is_high_enough_for_rare_settings():
    assert generate_mazes(MazeSettings(8, 38), 0, 0, 3).answer.lengths.min() >= 38
    assert maze_module.MAX_TREES >= 100_000


# ---- the bitmap on disk ----


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 15), st.data())
def test_passages_survive_packing(size, data):
    cells = size * size
    full = np.full((size, size), 15, np.uint8)
    full[0] &= 14
    full[:, -1] &= 13
    full[-1] &= 11
    full[:, 0] &= 7
    mazes = generate_mazes(MazeSettings(size), data.draw(st.integers(0, 99)), 0, 3).mazes.openings
    for openings in (full.reshape(1, cells), np.zeros((1, cells), np.uint8), mazes):
        packed = pack_passages(openings, size)
        assert packed.shape == (len(openings), passage_bytes(size))
        assert np.array_equal(unpack_passages(packed, size), openings)
