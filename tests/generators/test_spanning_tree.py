"""Wilson's trees: spanning, acyclic, uniform."""

from __future__ import annotations

import numpy as np
import pytest

from lol_data.generators.rng import row_state
from lol_data.generators.spanning_tree import wilson_tree
from lol_data.solvers.grid import grid


def draw_trees(size: int, count: int, seed: int = 1) -> np.ndarray:
    """Openings, uint8 (count, n*n)."""
    trees = np.full((count, size * size), 255, np.uint8)
    neighbours, in_tree, way = grid(size).neighbours, *np.empty((2, size * size), np.uint8)
    for row in range(count):
        state = row_state(np.uint64(0), np.uint64(seed), np.uint64(row))
        wilson_tree(np.uint64(state), trees[row], neighbours, in_tree, way)
    return trees


@pytest.mark.parametrize("size", range(3, 16))
def test_trees_span_the_grid(size):
    cells = size * size
    for openings in draw_trees(size, 20).tolist():
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
        assert len(edges) == cells - 1
        group = list(range(cells))
        for a, b in edges:  # cells - 1 edges that join everything hold no loop
            old, new = group[a], group[b]
            group = [new if g == old else g for g in group]
        assert len(set(group)) == 1


def test_all_192_trees_of_3x3_are_equally_likely():
    expected = 400
    _, counts = np.unique(draw_trees(3, 192 * expected), axis=0, return_counts=True)
    assert len(counts) == 192  # OEIS A007341(3)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert 191 - 5 * np.sqrt(2 * 191) < chi_square < 191 + 5 * np.sqrt(2 * 191)


def test_share_of_dead_ends_of_8x8():
    # 18.88 of 64 cells: measured for uniform trees with two unrelated samplers (Wilson and Aldous-Broder).
    trees = draw_trees(8, 20_000)
    leaves = np.isin(trees, [1, 2, 4, 8]).sum(1).mean()
    assert leaves == pytest.approx(18.88, abs=0.08)


def test_edges_are_as_likely_as_their_effective_resistance():
    # Kirchhoff: an edge is in a uniform spanning tree with probability equal to its effective resistance.
    size, cells, count = 5, 25, 20_000
    edges = [(c, c + 1) for c in range(cells) if c % size < size - 1] + [(c, c + size) for c in range(cells - size)]
    laplacian = np.zeros((cells, cells))
    for a, b in edges:
        laplacian[[a, b], [a, b]] += 1
        laplacian[[a, b], [b, a]] -= 1
    inverse = np.linalg.pinv(laplacian)
    trees = draw_trees(size, count)
    for a, b in edges:
        resistance = inverse[a, a] + inverse[b, b] - 2 * inverse[a, b]
        share = ((trees[:, a] & (2 if b == a + 1 else 4)) != 0).mean()
        assert abs(share - resistance) < 5 * np.sqrt(resistance * (1 - resistance) / count)
