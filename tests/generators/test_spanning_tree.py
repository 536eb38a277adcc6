"""Random trees: spanning, acyclic, and each as likely as its algorithm makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.spanning_tree import ALGORITHMS, spanning_trees

Edge = tuple[int, int]
Tree = frozenset[Edge]


def grid_edges(size: int) -> list[Edge]:
    cells = range(size * size)
    return [(c, c + 1) for c in cells if c % size < size - 1] + [(c, c + size) for c in cells if c < size * (size - 1)]


def tree_of(openings: list[int], size: int) -> Tree:
    """Its edges, once the grid's rules are checked: a closed border, and both sides of a wall say the same."""
    edges = []
    for cell, ways in enumerate(openings):
        row, col = divmod(cell, size)
        assert ways < 16
        assert not (row == 0 and ways & 1) and not (col == size - 1 and ways & 2)
        assert not (row == size - 1 and ways & 4) and not (col == 0 and ways & 8)
        if ways & 2:
            edges.append((cell, cell + 1))
        if ways & 4:
            edges.append((cell, cell + size))
        assert not ways & 2 or openings[cell + 1] & 8
        assert not ways & 4 or openings[cell + size] & 1
        assert not ways & 8 or openings[cell - 1] & 2
        assert not ways & 1 or openings[cell - size] & 4
    return frozenset(edges)


def groups(cells: int, edges: Tree) -> list[int]:
    """For every cell, the name of the piece of the graph that it is in."""
    group = list(range(cells))
    for a, b in edges:
        old, new = group[a], group[b]
        group = [new if g == old else g for g in group]
    return group


@pytest.mark.parametrize("size", range(3, 16))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_trees_span_the_grid(algorithm, size):
    for openings in spanning_trees(algorithm, size, 1, 15).tolist():
        edges = tree_of(openings, size)
        assert len(edges) == size * size - 1  # so many edges that join everything hold no loop
        assert len(set(groups(size * size, edges))) == 1


# ---- how likely each tree is ----
#
# The algorithms again, as probabilities: from every state that can be reached, to each of the next with its chance.


def kruskal_chances(size: int) -> dict[Tree, float]:
    """Among the walls between different pieces, each is equally likely to be the next one of a random order."""
    cells, forests = size * size, {frozenset(): 1.0}
    for _ in range(cells - 1):
        grown: Counter[Tree] = Counter()
        for forest, chance in forests.items():
            group = groups(cells, forest)
            joining = [(a, b) for a, b in grid_edges(size) if group[a] != group[b]]
            for edge in joining:
                grown[forest | {edge}] += chance / len(joining)
        forests = dict(grown)
    return forests


def prim_chances(size: int) -> dict[Tree, float]:
    """From every cell equally likely; each edge between inside and outside is equally likely to be the next."""
    cells = size * size
    states = {(frozenset([cell]), frozenset()): 1 / cells for cell in range(cells)}
    for _ in range(cells - 1):
        grown: Counter = Counter()
        for (inside, edges), chance in states.items():
            frontier = [edge for edge in grid_edges(size) if (edge[0] in inside) != (edge[1] in inside)]
            for edge in frontier:
                grown[inside.union(edge), edges | {edge}] += chance / len(frontier)
        states = dict(grown)
    trees: Counter[Tree] = Counter()
    for (_, edges), chance in states.items():
        trees[edges] += chance
    return dict(trees)


def backtracker_chances(size: int) -> dict[Tree, float]:
    """From every cell equally likely; each unvisited neighbour is equally likely to be the next."""
    cells = size * size
    beside = {c: [a + b - c for a, b in grid_edges(size) if c in (a, b)] for c in range(cells)}

    def walks(trail: tuple[int, ...], seen: frozenset[int], edges: Tree, chance: float) -> Iterator[tuple[Tree, float]]:
        if len(seen) == cells:
            yield edges, chance
            return
        here = trail[-1]
        fresh = [cell for cell in beside[here] if cell not in seen]
        for cell in fresh:
            edge = (min(here, cell), max(here, cell))
            yield from walks((*trail, cell), seen | {cell}, edges | {edge}, chance / len(fresh))
        if not fresh:
            yield from walks(trail[:-1], seen, edges, chance)

    trees: Counter[Tree] = Counter()
    for start in range(cells):
        for tree, chance in walks((start,), frozenset([start]), frozenset(), 1 / cells):
            trees[tree] += chance
    return dict(trees)


def wilson_chances(size: int) -> dict[Tree, float]:
    """All equally likely: those that Kruskal can make, which are all there are."""
    trees = kruskal_chances(size)
    return dict.fromkeys(trees, 1 / len(trees))


CHANCES = {
    "wilson": wilson_chances(3),
    "backtracker": backtracker_chances(3),
    "kruskal": kruskal_chances(3),
    "prim": prim_chances(3),
}
SAMPLE = 80_000


@pytest.fixture(scope="module")
def samples() -> dict[str, Counter[Tree]]:
    counted = {}
    for algorithm in ALGORITHMS:
        trees, counts = np.unique(spanning_trees(algorithm, 3, 2, SAMPLE), axis=0, return_counts=True)
        counted[algorithm] = Counter(
            {tree_of(tree, 3): count for tree, count in zip(trees.tolist(), counts.tolist(), strict=True)}
        )
    return counted


def fits(sample: Counter[Tree], chances: dict[Tree, float]) -> bool:
    """Chi-square, five standard deviations; what cannot be must not have come up."""
    if not sample.keys() <= chances.keys():
        return False
    statistic = sum((sample[tree] - SAMPLE * chance) ** 2 / (SAMPLE * chance) for tree, chance in chances.items())
    freedom = len(chances) - 1
    return statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_the_chances_are_probabilities():
    for chances in CHANCES.values():
        assert sum(chances.values()) == pytest.approx(1)
        assert min(chances.values()) * SAMPLE > 5  # so that chi-square holds
    assert {name: len(chances) for name, chances in CHANCES.items() if name != "backtracker"} == dict.fromkeys(
        ("wilson", "kruskal", "prim"), 192
    )  # OEIS A007341(3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_tree_of_3x3_is_as_likely_as_its_algorithm_makes_it(algorithm, samples):
    assert samples[algorithm].keys() == CHANCES[algorithm].keys()
    assert [name for name in ALGORITHMS if fits(samples[algorithm], CHANCES[name])] == [algorithm]


# Dead ends of 8 x 8, measured with unrelated samplers, 300,000 trees each.
@pytest.mark.parametrize(
    ("algorithm", "mean"), [("wilson", 18.88), ("backtracker", 8.25), ("kruskal", 19.70), ("prim", 21.45)]
)
def test_share_of_dead_ends_of_8x8(algorithm, mean):
    leaves = np.isin(spanning_trees(algorithm, 8, 1, 20_000), [1, 2, 4, 8]).sum(1)
    assert abs(leaves.mean() - mean) < 5 * leaves.std() / np.sqrt(20_000) + 0.005


def test_edges_are_as_likely_as_their_effective_resistance():
    # Kirchhoff: an edge is in a uniform spanning tree with probability equal to its effective resistance.
    size, cells, count = 5, 25, 20_000
    laplacian = np.zeros((cells, cells))
    for a, b in grid_edges(size):
        laplacian[[a, b], [a, b]] += 1
        laplacian[[a, b], [b, a]] -= 1
    inverse = np.linalg.pinv(laplacian)
    trees = spanning_trees("wilson", size, 1, count)
    for a, b in grid_edges(size):
        resistance = inverse[a, a] + inverse[b, b] - 2 * inverse[a, b]
        share = ((trees[:, a] & (2 if b == a + 1 else 4)) != 0).mean()
        assert abs(share - resistance) < 5 * np.sqrt(resistance * (1 - resistance) / count)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_corner_and_no_direction_is_preferred(algorithm):
    trees = spanning_trees(algorithm, 8, 3, 20_000)
    corners = np.bitwise_count(trees[:, [0, 7, 56, 63]]) == 2
    assert np.ptp(corners.mean(0)) < 5 * np.sqrt(2) * corners.std() / np.sqrt(20_000)
    southward = ((trees & 4) != 0).sum(1)
    assert abs(southward.mean() - 63 / 2) < 5 * southward.std() / np.sqrt(20_000)


# ---- rows ----


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ALGORITHMS), st.integers(3, 15), st.integers(0, 2**64 - 1), st.integers(0, 30))
def test_a_tree_does_not_depend_on_those_before(algorithm, size, seed, count):
    trees = spanning_trees(algorithm, size, seed, 30)
    assert trees.dtype == np.uint8 and trees.shape == (30, size * size)
    assert np.array_equal(spanning_trees(algorithm, size, seed, count), trees[:count])


def test_trees_of_8x8_are_distinct():
    trees = np.concatenate([spanning_trees(a, 8, seed, 5000) for a in ALGORITHMS for seed in (0, 1)])
    assert len(np.unique(trees, axis=0)) == 40_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dfs", 8, 0, 1), "algorithm 'dfs' is unknown; choose from wilson, backtracker, kruskal, prim"),
        (("prim", 2, 0, 1), "size 2"),
        (("prim", 16, 0, 1), "size 16"),
        (("prim", 8, -1, 1), "seed -1"),
        (("prim", 8, 0, -1), "count -1"),
        (("prim", 8, 0, 1.0), "count 1.0"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message) as caught:
        spanning_trees(*arguments)
    assert "\n" not in str(caught.value)
