"""Every tracer against a naive reference, on perfect mazes, on looped ones and on one maze written out."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES, Mazes
from lol_data.solvers import trace_mazes

NORTH, EAST, SOUTH, WEST = 1, 2, 4, 8

# ---- references: openings as a list of ints, everything recomputed in the plainest way ----


def open_neighbours(openings: list[int], size: int, cell: int) -> list[int]:
    ways = [(NORTH, -size), (EAST, 1), (SOUTH, size), (WEST, -1)]
    return [cell + step for bit, step in ways if openings[cell] & bit]


def bfs(openings, size, start, goal):
    queue, seen, order = deque([start]), {start}, []
    while queue:
        cell = queue.popleft()
        order.append(cell)
        if cell == goal:
            return order
        for other in open_neighbours(openings, size, cell):
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return None


def path(openings, size, start, goal):
    queue, parent = deque([start]), {start: None}
    while queue:
        cell = queue.popleft()
        for other in open_neighbours(openings, size, cell):
            if other not in parent:
                parent[other] = cell
                queue.append(other)
    cells = []
    cell = goal
    while cell is not None:
        cells.append(cell)
        cell = parent[cell]
    return cells[::-1]


def dfs(openings, size, start, goal):
    walk, stack, seen = [start], [start], {start}
    while stack[-1] != goal:
        fresh = [c for c in open_neighbours(openings, size, stack[-1]) if c not in seen]
        if fresh:
            stack.append(fresh[0])
            seen.add(fresh[0])
        else:
            stack.pop()
        walk.append(stack[-1])
    return walk


def astar(openings, size, start, goal):
    def h(cell):
        return abs(cell // size - goal // size) + abs(cell % size - goal % size)

    heap, counter, best, closed, order = [(h(start), h(start), 0, start)], 0, {start: 0}, set(), []
    while heap:
        _, _, _, cell = heapq.heappop(heap)
        if cell in closed:
            continue
        closed.add(cell)
        order.append(cell)
        if cell == goal:
            return order
        for other in open_neighbours(openings, size, cell):
            g = best[cell] + 1
            if other not in closed and g < best.get(other, 10**9):
                best[other] = g
                counter += 1
                heapq.heappush(heap, (g + h(other), h(other), counter, other))
    return None


def bidirectional(openings, size, start, goal):
    if start == goal:
        return [start]
    queues, found, order, side = (deque([start]), deque([goal])), ({start}, {goal}), [], 0
    while queues[0] or queues[1]:
        if queues[side]:
            cell = queues[side].popleft()
            order.append(cell)
            others = open_neighbours(openings, size, cell)
            if any(other in found[1 - side] for other in others):
                return order
            for other in others:
                if other not in found[side]:
                    found[side].add(other)
                    queues[side].append(other)
        side = 1 - side
    return None


def dead_end_filling(openings, size, start, goal):
    filled: list[int] = []
    while True:
        wave = [
            cell
            for cell in range(size * size)
            if cell not in (start, goal)
            and cell not in filled
            and len([c for c in open_neighbours(openings, size, cell) if c not in filled]) == 1
        ]
        if not wave:
            return filled
        filled += wave


REFERENCES = dict(zip(MAZE_STRATEGIES, (bfs, dfs, astar, bidirectional, dead_end_filling), strict=True))


def assert_equal_to_references(mazes: Mazes) -> None:
    traced = trace_mazes(mazes)
    for row in range(len(mazes)):
        problem = (mazes.openings[row].tolist(), mazes.size, int(mazes.start[row]), int(mazes.goal[row]))
        assert traced.answer[row].tolist() == path(*problem)
        for name, reference in REFERENCES.items():
            assert traced.traces[name][row].tolist() == reference(*problem), (name, row)


def batch(size: int, openings, start, goal) -> Mazes:
    openings = np.array(openings, np.uint8).reshape(-1, size * size)
    start, goal = np.atleast_1d(start).astype(np.uint8), np.atleast_1d(goal).astype(np.uint8)
    return Mazes(size, np.arange(100, 100 + len(openings), dtype=np.uint64), openings, start, goal)


def graph_openings(size: int, east: list[bool], south: list[bool]) -> np.ndarray:
    openings = np.zeros(size * size, np.uint8)
    for cell in range(size * size):
        if cell % size < size - 1 and east[cell]:
            openings[cell] |= EAST
            openings[cell + 1] |= WEST
        if cell < size * (size - 1) and south[cell]:
            openings[cell] |= SOUTH
            openings[cell + size] |= NORTH
    return openings


# ---- perfect mazes ----


@pytest.mark.parametrize("size", range(4, 11))
def test_perfect_mazes_equal_the_references(size):
    made = generate_mazes(MazeSettings(size), 3, 0, 60)
    assert_equal_to_references(made.mazes)


@pytest.mark.parametrize("loops", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("size", [3, 8, 15])
def test_the_generator_gives_the_same_traces(size, loops):
    made = generate_mazes(MazeSettings(size, loops=loops), 4, 1000, 1100)
    again = trace_mazes(made.mazes)
    assert tuple(made.traces) == tuple(again.traces) == MAZE_STRATEGIES
    for ours, theirs in zip([made.answer, *made.traces.values()], [again.answer, *again.traces.values()], strict=True):
        assert np.array_equal(ours.values, theirs.values)
        assert np.array_equal(ours.offsets, theirs.offsets)


def test_largest_size_equals_the_references():
    assert_equal_to_references(generate_mazes(MazeSettings(15), 5, 0, 10).mazes)


def test_what_is_left_after_filling_is_the_path():
    made = generate_mazes(MazeSettings(), 6, 0, 200)
    for row in range(200):
        left = set(range(64)) - set(made.traces["dead_end_filling"][row].tolist())
        assert left == set(made.answer[row].tolist())


def test_a_path_that_winds_through_every_cell():
    size = 15  # the snake: rows joined at alternating ends
    east = [True] * 225
    south = [False] * 225
    for row in range(size - 1):
        south[row * size + (size - 1 if row % 2 == 0 else 0)] = True
    mazes = batch(size, graph_openings(size, east, south), 0, 224)
    assert_equal_to_references(mazes)
    assert trace_mazes(mazes).answer.lengths.tolist() == [225]


def test_a_comb_makes_the_longest_walk():
    size = 15  # one corridor west, teeth to the east, the goal in the last tooth but the first in nothing
    east, south = [True] * 225, [cell % size == 0 for cell in range(225)]
    mazes = batch(size, np.tile(graph_openings(size, east, south), 2), [14, 224], [224, 14])
    assert_equal_to_references(mazes)


# ---- other graphs ----


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_graph_equals_the_references_or_is_refused(data):
    size = data.draw(st.integers(3, 7))
    cells = size * size
    density = data.draw(st.integers(5, 10))
    bits = st.lists(st.integers(0, 9).map(lambda x: x < density), min_size=cells, max_size=cells)
    openings = graph_openings(size, data.draw(bits), data.draw(bits))
    start, goal = data.draw(st.integers(0, cells - 1)), data.draw(st.integers(0, cells - 1))
    mazes = batch(size, openings, start, goal)
    if bfs(openings.tolist(), size, start, goal) is None:
        with pytest.raises(UsageError, match="maze 100: the goal"):
            trace_mazes(mazes)
    else:
        assert_equal_to_references(mazes)
        assert len(trace_mazes(mazes).traces["dfs"][0]) < 2 * cells


@pytest.mark.parametrize(("algorithm", "loops"), [("backtracker", 0.05), ("kruskal", 0.1), ("prim", 0.3)])
def test_generated_mazes_with_loops_equal_the_references(algorithm, loops):
    assert_equal_to_references(generate_mazes(MazeSettings(algorithm=algorithm, loops=loops), 7, 0, 60).mazes)


@pytest.mark.parametrize("size", [8, 15])
def test_open_fields_and_looped_mazes(size):
    rng = np.random.default_rng(size)
    rows, cells = 40, size * size
    openings = []
    for row in range(rows):
        share = 1.0 if row == 0 else 0.75
        openings.append(graph_openings(size, list(rng.random(cells) < share), list(rng.random(cells) < share)))
    start, goal = rng.integers(0, cells, rows), rng.integers(0, cells, rows)
    fits = [bfs(o.tolist(), size, int(s), int(g)) is not None for o, s, g in zip(openings, start, goal, strict=True)]
    assert sum(fits) > 30
    assert_equal_to_references(batch(size, np.array(openings)[fits], start[fits], goal[fits]))


def test_two_cells_shut_off_are_filled_in_one_round():
    # 0 - 1   2      the pair 5, 8 is out of reach; both are dead ends when the first round begins
    #     |
    # 3 - 4   5
    #         |
    # 6   7   8
    openings = graph_openings(3, [c in (0, 3) for c in range(9)], [c in (1, 5) for c in range(9)])
    assert trace_mazes(batch(3, openings, 0, 3)).traces["dead_end_filling"][0].tolist() == [5, 8]


def test_a_start_that_is_the_goal():
    made = generate_mazes(MazeSettings(4), 0, 0, 1).mazes
    traced = trace_mazes(batch(4, made.openings, made.start, made.start))
    start = made.start.tolist()
    assert traced.answer[0].tolist() == start
    for name in MAZE_STRATEGIES[:-1]:
        assert traced.traces[name][0].tolist() == start
    assert len(traced.traces["dead_end_filling"][0]) == 15


# ---- one maze written out ----

#    +---+---+---+---+
#    | 0   1 | 2   3 |      start 8, goal 3
#    +   +   +   +   +
#    | 4 | 5   6 | 7 |
#    +   +---+   +---+
#    | 8   9 |10  11 |
#    +---+   +   +---+
#    |12  13 |14  15 |
#    +---+---+---+---+
# passages east of: 0 2 5 8 10 12 14; south of: 0 1 2 3 4 6 9 10
GOLDEN_EAST, GOLDEN_SOUTH = (0, 2, 5, 8, 10, 12, 14), (0, 1, 2, 3, 4, 6, 9, 10)
GOLDEN = {
    # 8 lets in 4 9; 4: 0; 9: 13; 0: 1; 13: 12; 1: 5; 12: none; 5: 6; 6: 2 10; 2: 3; 10: 11 14
    "bfs": [8, 4, 9, 0, 13, 1, 12, 5, 6, 2, 10, 3],
    "dfs": [8, 4, 0, 1, 5, 6, 2, 3],
    # (f, h): 8 (5, 5); 4 (5, 4) before 9 (5, 4) as inserted first; 0 (5, 3); 1 (5, 2); 9; 5 (7, 3) before 13 (7, 5);
    # 6 (7, 2); 2 (7, 1); 3 (7, 0)
    "astar": [8, 4, 0, 1, 9, 5, 6, 2, 3],
    # 8: 4 9; 3: 7 2; 4: 0; 7: none; 9: 13; 2: 6; 0: 1; 6: 10 5; 13: 12; 10: 11 14; 1 meets 5, found from the goal
    "bidirectional": [8, 3, 4, 7, 9, 2, 0, 6, 13, 10, 1],
    "dead_end_filling": [7, 11, 12, 15, 13, 14, 9, 10],
}


def test_golden_maze():
    east, south = ([c in cells for c in range(16)] for cells in (GOLDEN_EAST, GOLDEN_SOUTH))
    traced = trace_mazes(batch(4, graph_openings(4, east, south), 8, 3))
    assert traced.answer[0].tolist() == [8, 4, 0, 1, 5, 6, 2, 3]
    assert {name: trace[0].tolist() for name, trace in traced.traces.items()} == GOLDEN


def test_queue_order_is_not_cell_order():
    field = graph_openings(8, [True] * 64, [True] * 64)
    traced = trace_mazes(batch(8, field, 9, 63))
    assert traced.traces["bfs"][0].tolist()[:5] == [9, 1, 10, 17, 8]


# ---- problems of other people ----


def test_no_rows():
    traced = trace_mazes(batch(5, np.empty((0, 25)), [], []))
    assert len(traced) == 0
    assert all(len(trace) == 0 for trace in traced.traces.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o, s, g: o.__setitem__((1, 0), o[1, 0] | NORTH), "maze 101 is open at the outer border"),
        (lambda o, s, g: o.__setitem__((1, 5), o[1, 5] ^ EAST), "maze 101 has a passage that is open from one side"),
        (lambda o, s, g: o.__setitem__((1, 5), o[1, 5] | 16), "maze 101 is open at the outer border"),
        (lambda o, s, g: g.__setitem__(1, 25), "maze 101 has a start or goal outside the grid"),
        (lambda o, s, g: s.__setitem__(1, 255), "maze 101 has a start or goal outside the grid"),
    ],
)
def test_what_is_not_a_maze_is_refused_by_id(change, message):
    made = generate_mazes(MazeSettings(5), 0, 0, 3).mazes
    mazes = batch(5, made.openings, made.start, made.goal)
    change(mazes.openings, mazes.start, mazes.goal)
    with pytest.raises(UsageError, match=message):
        trace_mazes(mazes)


def test_sizes_and_shapes_are_checked():
    with pytest.raises(UsageError, match="size 2"):
        trace_mazes(batch(2, np.zeros((1, 4)), 0, 1))
    with pytest.raises(UsageError, match="shape"):
        trace_mazes(Mazes(5, np.zeros(1, np.uint64), np.zeros((1, 16), np.uint8), *np.zeros((2, 1), np.uint8)))


def test_input_need_not_be_contiguous():
    made = generate_mazes(MazeSettings(5), 0, 0, 10)
    m = made.mazes
    other = trace_mazes(Mazes(5, m.id[::2], m.openings[::2], m.start[::2], m.goal[::2]))
    assert np.array_equal(other.traces["dfs"].values, made.traces["dfs"].take(np.arange(0, 10, 2)).values)
