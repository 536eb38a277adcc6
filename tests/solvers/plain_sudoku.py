"""Sudokus in the plainest Python, sets and lists, for the tests: rules, random puzzles, a brute-force count."""

from __future__ import annotations

import random

import numpy as np

from lol_data.sudokus import Sudokus

ROWS = [[9 * r + c for c in range(9)] for r in range(9)]
COLUMNS = [[9 * r + c for r in range(9)] for c in range(9)]
BOXES = [[9 * (3 * (b // 3) + k // 3) + 3 * (b % 3) + k % 3 for k in range(9)] for b in range(9)]
UNITS = ROWS + COLUMNS + BOXES
PEERS = [{p for unit in UNITS if cell in unit for p in unit} - {cell} for cell in range(81)]


def digits_of(text: str) -> list[int]:
    return [0 if character in ".0" else int(character) for character in text]


def fitting(grid: list[int], cell: int) -> set[int]:
    return set(range(1, 10)) - {grid[peer] for peer in PEERS[cell]}


def homes(grid: list[int], unit: int, digit: int) -> list[int]:
    """The empty cells of a unit that a digit fits, none if it is placed there."""
    return [cell for cell in UNITS[unit] if grid[cell] == 0 and digit in fitting(grid, cell)]


def solutions(grid: list[int], limit: int, rng: random.Random | None = None) -> list[list[int]]:
    """The first solutions of a grid, by brute force; digits in random order if there is an rng."""
    empty = [cell for cell in range(81) if grid[cell] == 0]
    if not empty:
        return [grid[:]]
    cell = min(empty, key=lambda c: len(fitting(grid, c)))
    digits = sorted(fitting(grid, cell))
    if rng:
        rng.shuffle(digits)
    found: list[list[int]] = []
    for digit in digits:
        grid[cell] = digit
        found += solutions(grid, limit - len(found), rng)
        if len(found) == limit:
            break
    grid[cell] = 0
    return found


def solved_grid(rng: random.Random) -> list[int]:
    return solutions([0] * 81, 1, rng)[0]


def with_clues(solution: list[int], clues: int, rng: random.Random) -> list[int]:
    """Random cells of a solution; there may be other solutions."""
    kept = set(rng.sample(range(81), clues))
    return [digit if cell in kept else 0 for cell, digit in enumerate(solution)]


def random_givens(clues: int, rng: random.Random) -> list[int]:
    """Random digits without a conflict, of which hardly any have a solution when there are many. Maybe fewer."""
    grid = [0] * 81
    for cell in rng.sample(range(81), clues):
        grid[cell] = rng.choice([0, *fitting(grid, cell)])
    return grid


def batch(grids: list[list[int]]) -> Sudokus:
    puzzle = np.array(grids, np.uint8).reshape(-1, 81)
    return Sudokus(np.arange(100, 100 + len(puzzle), dtype=np.uint64), puzzle, np.zeros_like(puzzle))
