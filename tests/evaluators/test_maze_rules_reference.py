"""The rules against a slow reference written another way, and against the tracers.

The reference keeps the state of one search in sets and lists and answers one question: which cells may come next? A
trace is legal when every cell of it was among them; it is complete when the search has then come to its end.
"""

from collections import deque
from heapq import heappop, heappush

import numpy as np
import pytest

from lol_data.evaluators.maze_rules import judge_mazes
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES, Mazes
from lol_data.ragged import Ragged
from lol_data.solvers import trace_mazes

# ---------------------------------------------------------------- the reference


class Problem:
    def __init__(self, mazes, row):
        self.size, self.start, self.goal = mazes.size, int(mazes.start[row]), int(mazes.goal[row])
        self.around = {
            cell: [cell + step for bit, step in enumerate((-self.size, 1, self.size, -1)) if int(ways) >> bit & 1]
            for cell, ways in enumerate(mazes.openings[row])
        }

    def away(self, cell):
        (r, c), (gr, gc) = divmod(cell, self.size), divmod(self.goal, self.size)
        return abs(r - gr) + abs(c - gc)


class Families:
    """A FIFO queue of families; siblings are a set."""

    def __init__(self, problem, root):
        self.problem, self.line, self.known = problem, [{root}], {root}

    def next(self):
        return self.line[0] if self.line else set()

    def expand(self, cell):
        self.line[0].remove(cell)
        children = set(self.problem.around[cell]) - self.known
        self.known |= children
        self.line = [family for family in [*self.line, children] if family]


class Bfs:
    def __init__(self, problem):
        self.goal, self.queue, self.done = problem.goal, Families(problem, problem.start), False

    def allowed(self):
        return self.queue.next()

    def step(self, cell):
        self.queue.expand(cell)
        self.done = cell == self.goal


class Bidirectional:
    def __init__(self, problem):
        self.problem, self.done = problem, False
        self.mine, self.other = Families(problem, problem.start), Families(problem, problem.goal)

    def allowed(self):
        if not self.mine.line:
            self.mine, self.other = self.other, self.mine
        return self.mine.next()

    def step(self, cell):
        self.mine.expand(cell)
        self.done = any(near in self.other.known for near in self.problem.around[cell])
        self.mine, self.other = self.other, self.mine


class Dfs:
    def __init__(self, problem):
        self.problem, self.path, self.visited, self.done = problem, [], set(), False

    def allowed(self):
        if not self.path:
            return {self.problem.start}
        return set(self.problem.around[self.path[-1]]) - self.visited or set(self.path[-2:-1])

    def step(self, cell):
        if cell in self.visited:
            self.path.pop()
        else:
            self.path.append(cell)
            self.visited.add(cell)
        self.done = cell == self.problem.goal


class Astar:
    def __init__(self, problem):
        self.problem, self.g, self.closed, self.done = problem, {problem.start: 0}, set(), False

    def allowed(self):
        rank = {cell: self.g[cell] + self.problem.away(cell) for cell in self.g.keys() - self.closed}
        return {cell for cell in rank if rank[cell] == min(rank.values())}

    def step(self, cell):
        self.closed.add(cell)
        for near in self.problem.around[cell]:
            self.g[near] = min(self.g.get(near, 10**6), self.g[cell] + 1)
        self.done = cell == self.problem.goal


class DeadEndFilling:
    def __init__(self, problem):
        self.problem, self.unfilled = problem, set(problem.around)

    def allowed(self):
        ends = {cell for cell in self.unfilled if len(self.unfilled.intersection(self.problem.around[cell])) == 1}
        return ends - {self.problem.start, self.problem.goal}

    def step(self, cell):
        self.unfilled.remove(cell)

    @property
    def done(self):
        return not self.allowed()


SEARCHES = dict(zip(MAZE_STRATEGIES, (Bfs, Dfs, Astar, Bidirectional, DeadEndFilling), strict=True))


def replay(problem, strategy, trace):
    """(legal steps, legal, complete)"""
    search = SEARCHES[strategy](problem)
    for k, cell in enumerate(trace):
        if search.done or cell not in search.allowed():
            return k, False, False
        search.step(cell)
    return len(trace), bool(trace) or search.done, search.done


def reference(problem, strategy, trace):
    """The verdicts that depend on the trace, as they must come out."""
    replays = {name: replay(problem, name, trace) for name in MAZE_STRATEGIES}
    steps, legal, complete = replays[strategy]
    identified = [name for name in MAZE_STRATEGIES if replays[name][2]]
    exact = bool(identified)
    longest = max(replay[0] for replay in replays.values())
    leaders = [name for name in MAZE_STRATEGIES if replays[name][0] == longest]
    if not exact and longest >= 2 and len(leaders) == 1:
        identified = leaders
    return legal, -1 if legal else steps, complete, identified, exact


def canonical(problem, strategy):
    """The canonical trace, by the textbook."""
    start, goal, around = problem.start, problem.goal, problem.around
    if strategy == "dfs":
        walk, path, seen = [start], [start], {start}
        while path[-1] != goal:
            fresh = [near for near in around[path[-1]] if near not in seen]
            if fresh:
                path.append(fresh[0])
                seen.add(fresh[0])
            else:
                path.pop()
            walk.append(path[-1])
        return walk
    if strategy == "astar":
        order, heap, inserted, g = [], [(problem.away(start), problem.away(start), 0, start)], 0, {start: 0}
        while goal not in order:
            *_, cell = heappop(heap)
            if cell in order:
                continue
            order.append(cell)
            for near in around[cell]:
                if g[cell] + 1 < g.get(near, 10**6):
                    g[near] = g[cell] + 1
                    inserted += 1  # a cell that is reached more cheaply is inserted anew
                    heappush(heap, (g[near] + problem.away(near), problem.away(near), inserted, near))
        return order
    if strategy == "dead_end_filling":
        filled = []
        while True:
            left = {cell: set(around[cell]) - set(filled) for cell in around if cell not in filled}
            wave = [cell for cell in sorted(left) if len(left[cell]) == 1 and cell not in (start, goal)]
            if not wave:
                return filled
            filled += wave
    sides = [(deque([start]), {start})] + ([(deque([goal]), {goal})] if strategy == "bidirectional" else [])
    order, turn = [], 0
    while True:
        queue, known = sides[turn % len(sides)]
        cell = queue.popleft()
        order.append(cell)
        for near in around[cell]:
            if near not in known:
                known.add(near)
                queue.append(near)
        turn += 1
        if len(sides) == 1:
            if cell == goal:
                return order
        elif any(near in sides[turn % 2][1] for near in around[cell]):
            return order


# ---------------------------------------------------------------- the material


def with_loops(mazes, rng, extra):
    """The same mazes with some more passages open."""
    n = mazes.size
    grid = mazes.openings.reshape(-1, n, n).copy()
    east, south = rng.random((2, *grid.shape)) < extra
    grid[:, :, :-1] |= east[:, :, :-1] * np.uint8(2)
    grid[:, :, 1:] |= east[:, :, :-1] * np.uint8(8)
    grid[:, :-1] |= south[:, :-1] * np.uint8(4)
    grid[:, 1:] |= south[:, :-1] * np.uint8(1)
    return Mazes(n, mazes.id, grid.reshape(len(mazes), -1), mazes.start, mazes.goal)


def corruptions(trace, cells, rng, each):
    """Single-step corruptions of every kind, `each` of a kind: replace, delete, insert, swap, truncate, extend."""
    for _ in range(each):
        at, other = int(rng.integers(len(trace))), int(rng.integers(-1, cells + 1))
        near = [int(cell) for cell in trace[max(0, at - 4) : at + 5]]
        for new in (other, near[int(rng.integers(len(near)))]):
            yield [*trace[:at], new, *trace[at + 1 :]]
            yield [*trace[:at], new, *trace[at:]]
            yield [*trace, new]
        yield [*trace[:at], *trace[at + 1 :]]
        yield [*trace[:at], *trace[at : at + 2][::-1], *trace[at + 2 :]]
        yield trace[:at]


def every_corruption(trace, cells):
    """All single-step corruptions: any cell (or none such) in place of a step or between two, a step left out, two
    neighbours exchanged, the rest left out."""
    for at in range(len(trace) + 1):
        for new in range(-1, cells + 1):
            yield [*trace[:at], new, *trace[at:]]
            if at < len(trace):
                yield [*trace[:at], new, *trace[at + 1 :]]
        if at < len(trace):
            yield [*trace[:at], *trace[at + 1 :]]
            yield [*trace[:at], *trace[at : at + 2][::-1], *trace[at + 2 :]]
            yield trace[:at]


def random_legal(problem, strategy, rng):
    """A whole trace whose every free choice is random."""
    search, trace = SEARCHES[strategy](problem), []
    while not search.done and (allowed := sorted(search.allowed())):
        trace.append(allowed[int(rng.integers(len(allowed)))])
        search.step(trace[-1])
    return trace


def compare(mazes, seed, each):
    """Canonical, randomly legal and corrupted traces of every maze: the rules and the reference must agree."""
    rng = np.random.default_rng(seed)
    rows, asked, traces, expected, canonicals = [], [], [], [], []
    for row in range(len(mazes)):
        problem = Problem(mazes, row)
        for code, strategy in enumerate(MAZE_STRATEGIES):
            best = canonical(problem, strategy)
            free = random_legal(problem, strategy, rng)
            for trace in [best, free, *corruptions(best or [0], mazes.size**2, rng, each)]:
                for ask in {code, int(rng.integers(5))}:
                    rows.append(row)
                    asked.append(ask)
                    traces.append(trace)
                    expected.append(reference(problem, MAZE_STRATEGIES[ask], trace))
                    canonicals.append(trace == canonical(problem, MAZE_STRATEGIES[ask]))
    ragged = Ragged.from_rows(traces, np.int32)
    verdicts = judge_mazes(mazes, rows, asked, ragged, ragged)
    assert verdicts.canonical.tolist() == canonicals
    for k, (legal, step, complete, identified, exact) in enumerate(expected):
        row = verdicts.row(k)
        got = row["legal"], verdicts.first_illegal_step[k], row["complete"], row["identified"], row["identified_exact"]
        assert got == (legal, step, complete, identified, exact), (rows[k], row, traces[k])
    return len(traces), np.mean([legal for legal, *_ in expected])


def distances(problem, start):
    steps, ring = {start: 0}, [start]
    while ring:
        ring = list({near for cell in ring for near in problem.around[cell]} - steps.keys())
        steps |= dict.fromkeys(ring, max(steps.values()) + 1)
    return steps


# ---------------------------------------------------------------- the tests


@pytest.mark.parametrize("size", [3, 5, 8])
def test_rules_agree_with_the_reference(size):
    mazes = generate_mazes(MazeSettings(size=size), 11, 0, 40).mazes
    count, legal = compare(mazes, size, 2)
    assert count > 3000 and 0.05 < legal < 0.6


@pytest.mark.parametrize(("size", "extra"), [(3, 0.5), (5, 0.2), (5, 1.0), (8, 0.15), (15, 0.3)])
def test_rules_agree_with_the_reference_on_loops(size, extra):
    count = 6 if size == 15 else 20
    mazes = generate_mazes(MazeSettings(size=size), 12, 0, count).mazes
    compare(with_loops(mazes, np.random.default_rng(size), extra), size, 2)


def test_answers_on_loops_are_right_when_they_are_shortest():
    rng = np.random.default_rng(5)
    mazes = with_loops(generate_mazes(MazeSettings(size=6), 13, 0, 200).mazes, rng, 0.3)
    answers, right = [], []
    for row in range(len(mazes)):
        problem = Problem(mazes, row)
        steps, path = distances(problem, problem.goal), [problem.start]
        while path[-1] != problem.goal:  # to any neighbour that has not been visited, mostly a nearer one
            fresh = [near for near in problem.around[path[-1]] if near not in path]
            if not fresh:
                break
            nearer = [near for near in fresh if steps[near] < steps[path[-1]]]
            choice = nearer if nearer and rng.random() < 0.9 else fresh
            path.append(choice[int(rng.integers(len(choice)))])
        answers.append(path)
        right.append(path[-1] == problem.goal and len(path) - 1 == steps[problem.start])
    ragged = Ragged.from_rows(answers)
    rows = np.arange(len(mazes))
    assert judge_mazes(mazes, rows, rows % 5, ragged, ragged).answer_correct.tolist() == right
    assert 20 < sum(right) < 190


def judge_canonical(traced):
    """Every canonical trace of a batch; returns the verdicts under each strategy."""
    rows = np.arange(len(traced))
    for code, name in enumerate(MAZE_STRATEGIES):
        verdicts = judge_mazes(traced.mazes, rows, np.full(len(rows), code), traced.traces[name], traced.answer)
        for good in ("legal", "complete", "canonical", "answer_correct", "adherent", "joint"):
            wrong = np.nonzero(~getattr(verdicts, good))[0]
            assert len(wrong) == 0, (name, good, wrong[:5], verdicts.row(wrong[0]))


@pytest.mark.parametrize("size", [3, 4, 8, 10, 15])
def test_canonical_traces_of_the_tracers(size):
    judge_canonical(generate_mazes(MazeSettings(size=size), 21, 0, 200))


@pytest.mark.parametrize(("size", "extra"), [(3, 0.5), (8, 0.05), (8, 0.3), (8, 1.0), (15, 0.3)])
def test_canonical_traces_of_the_tracers_on_loops(size, extra):
    mazes = generate_mazes(MazeSettings(size=size), 22, 0, 200).mazes
    judge_canonical(trace_mazes(with_loops(mazes, np.random.default_rng(size), extra)))


@pytest.mark.slow
def test_a_hundred_thousand_mazes():
    for size in range(4, 11):
        judge_canonical(generate_mazes(MazeSettings(size=size), 31, 0, 14_300))


@pytest.mark.slow
@pytest.mark.parametrize("size", range(4, 11))
def test_rules_agree_with_the_reference_on_many(size):
    mazes = generate_mazes(MazeSettings(size=size), 32, 0, 40).mazes
    compare(mazes, size, 5)
    compare(with_loops(mazes, np.random.default_rng(size), 0.2), size, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "count"), [(4, 60), (5, 24), (6, 10), (8, 3)])
def test_every_single_step_corruption_is_refused_or_provably_legal(size, count):
    mazes = generate_mazes(MazeSettings(size=size), 40, 0, count).mazes
    problems = [Problem(mazes, row) for row in range(count)]
    for code, strategy in enumerate(MAZE_STRATEGIES):
        pairs = [
            (row, t) for row in range(count) for t in every_corruption(canonical(problems[row], strategy), size**2)
        ]
        rows, traces = [row for row, _ in pairs], Ragged.from_rows([trace for _, trace in pairs], np.int32)
        verdicts = judge_mazes(mazes, rows, np.full(len(rows), code), traces, traces)
        proved = [replay(problems[row], strategy, trace) for row, trace in pairs]
        assert verdicts.legal.tolist() == [legal for _, legal, _ in proved]
        assert verdicts.complete.tolist() == [complete for _, _, complete in proved]
        assert verdicts.first_illegal_step.tolist() == [-1 if legal else steps for steps, legal, _ in proved]
        assert 0 < verdicts.complete.mean() < 0.2  # most corruptions are faults, and some are another legal order
