"""Sudokus to draw: a literal one with the first steps of each strategy, generated ones, and the rules once more."""

from functools import lru_cache

from hypothesis import strategies as st

from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.views.sudoku_picture import Step, SudokuPicture, sudoku_picture_of

UNITS = {f"row {k + 1}": {9 * k + j for j in range(9)} for k in range(9)}
UNITS |= {f"column {k + 1}": {9 * j + k for j in range(9)} for k in range(9)}
UNITS |= {f"box {k + 1}": {c for c in range(81) if c // 27 == k // 3 and c % 9 // 3 == k % 3} for k in range(9)}


def digits(text):
    return tuple(int(character) for character in text.replace(".", "0"))


def tried(cell, digit):
    return Step(((cell, int(digit)),))


FORCED = (1, 5, 7, 9, 21, 24, 29, 30, 40, 42, 45, 50, 54, 62, 65, 67, 77, 78)  # in the first wave

LITERAL = SudokuPicture(
    id=7,
    puzzle=digits("...68.....52.4.6......73.84....1.7.53472.8.16..1...84..25.9436..7....5..68.73...1"),
    solution=digits("734682159852941673916573284268419735347258916591367842125894367473126598689735421"),
    traces={
        "naked_single": (Step(((40, 5),)), Step(((42, 9),)), Step(((49, 6),))),
        "hidden_single": (Step(((9, 8),), 1), Step(((24, 2),), 2), Step(((21, 5),), 2)),
        "cross_hatching": (Step(((5, 2),), 19), Step(((24, 2),), 20), Step(((67, 2),), 25)),
        "propagation": (Step(tuple(zip(FORCED, map(int, "325852845957173254"), strict=True))),),
        "backtracking": (
            *map(tried, (40, 42, 54, 12, 14, 18, 20, 28), "59119966"),
            Step(undone=28),
            *map(tried, (28, 32, 46), "966"),
            Step(undone=46),
            Step(undone=32),
        ),
    },
)


def peers(cell):
    return {other for unit in UNITS.values() if cell in unit for other in unit} - {cell}


def fitting(grid, cell):
    return {1, 2, 3, 4, 5, 6, 7, 8, 9} - {grid[peer] for peer in peers(cell)}


def cell_of(name):
    return 9 * (int(name[1]) - 1) + int(name[3]) - 1


@lru_cache
def _batch():
    return generate_sudokus(SudokuSettings(), 5, 0, 40)


@lru_cache
def generated(row):
    return sudoku_picture_of(_batch(), row)


pictures = st.builds(generated, st.integers(0, 39))
