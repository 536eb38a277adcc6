"""Sudoku rules and canonical traces once more, slowly, with sets; and puzzles made without the package.

A state of a search answers one question: which steps, as tuples of symbols, are legal now? A trace is legal when every
step of it was among them; it is complete when the search has then come to its end.
"""

import random
from functools import lru_cache

from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE

CELLS_OF = (
    [[9 * r + c for c in range(9)] for r in range(9)]
    + [[9 * r + c for r in range(9)] for c in range(9)]
    + [[9 * (3 * b + i) + 3 * s + j for i in range(3) for j in range(3)] for b in range(3) for s in range(3)]
)
UNITS_OF = [[u for u in range(27) if cell in CELLS_OF[u]] for cell in range(81)]
PEERS = [{near for u in units for near in CELLS_OF[u]} - {cell} for cell, units in enumerate(UNITS_OF)]


def digits_of(text):
    return tuple(int(character) if character.isdigit() else 0 for character in text)


def placed(grid, cell, digit):
    return (*grid[:cell], digit, *grid[cell + 1 :])


@lru_cache(maxsize=20_000)
def fitting(grid):
    """{empty cell: the digits that stand in none of its peers}"""
    return {cell: set(range(1, 10)) - {grid[peer] for peer in PEERS[cell]} for cell in range(81) if grid[cell] == 0}


def only_places(grid, unit):
    """{digit: cell} of the digits that fit one cell of a unit."""
    fits = fitting(grid)
    places = {digit: [cell for cell in CELLS_OF[unit] if digit in fits.get(cell, ())] for digit in range(1, 10)}
    return {digit: cells[0] for digit, cells in places.items() if len(cells) == 1}


@lru_cache(maxsize=20_000)
def naked_singles(grid):
    return {(cell, *digits) for cell, digits in fitting(grid).items() if len(digits) == 1}


@lru_cache(maxsize=20_000)
def hidden_singles(grid):
    return {(unit, cell, digit) for unit in range(27) for digit, cell in only_places(grid, unit).items()}


class NakedSingle:
    def __init__(self, puzzle):
        self.grid = puzzle

    @property
    def done(self):
        return 0 not in self.grid

    def allowed(self):
        return {(cell, DIGIT + digit) for cell, digit in naked_singles(self.grid)}

    def step(self, symbols):
        *_, cell, digit = symbols
        self.grid = placed(self.grid, cell, digit - DIGIT)


class HiddenSingle(NakedSingle):
    units = range(27)

    def allowed(self):
        return {(UNIT + u, cell, DIGIT + digit) for u, cell, digit in hidden_singles(self.grid) if u in self.units}


class CrossHatching(HiddenSingle):
    units = range(18, 27)


class Propagation:
    def __init__(self, puzzle):
        self.grid, self.begin = puzzle, puzzle

    @property
    def done(self):
        return 0 not in self.grid and self.grid == self.begin

    def forced(self):
        return naked_singles(self.begin) | {(cell, digit) for _, cell, digit in hidden_singles(self.begin)}

    def allowed(self):
        fits, forced = fitting(self.grid), self.forced()
        steps = {(cell, DIGIT + digit) for cell, digit in forced if digit in fits.get(cell, ())}
        closed = self.grid != self.begin and all(self.grid[cell] == digit for cell, digit in forced)
        return steps | {(WAVE,)} if closed else steps

    def step(self, symbols):
        if symbols == (WAVE,):
            self.begin = self.grid
        else:
            self.grid = placed(self.grid, symbols[0], symbols[1] - DIGIT)


class Backtracking:
    def __init__(self, puzzle):
        self.grid, self.stack, self.open, self.tried = puzzle, [], None, set()
        self.choices = {cell: len(digits) for cell, digits in fitting(puzzle).items()}

    @property
    def done(self):
        return 0 not in self.grid

    def allowed(self):
        fits = fitting(self.grid)
        if self.done:
            return set()
        least = min(self.choices[cell] for cell in fits)
        cells = [cell for cell in fits if self.choices[cell] == least] if self.open is None else [self.open]
        left = {cell: fits[cell] - self.tried for cell in cells}
        steps = {(cell, DIGIT + digit) for cell in cells for digit in left[cell]}
        if self.stack and not all(left.values()):
            steps.add((UNDO, self.stack[-1][0]))
        return steps

    def step(self, symbols):
        if symbols[0] == UNDO:
            cell, self.tried = self.stack.pop()
            self.grid, self.open = placed(self.grid, cell, 0), cell
        else:
            cell, digit = symbols[0], symbols[1] - DIGIT
            self.stack.append((cell, self.tried | {digit}))
            self.grid, self.open, self.tried = placed(self.grid, cell, digit), None, set()


SEARCHES = dict(
    zip(SUDOKU_STRATEGIES, (NakedSingle, HiddenSingle, CrossHatching, Propagation, Backtracking), strict=True)
)


def replay(puzzle, strategy, trace):
    """(legal steps, legal, complete)"""
    search, steps, at, trace = SEARCHES[strategy](puzzle), 0, 0, tuple(trace)
    while at < len(trace):
        allowed = set() if search.done else search.allowed()
        step = next((trace[at : at + n] for n in (1, 2, 3) if trace[at : at + n] in allowed), None)
        if step is None:
            return steps, False, False
        search.step(step)
        steps, at = steps + 1, at + len(step)
    return steps, steps > 0 or search.done, search.done


def reference(puzzle, strategy, trace):
    """(legal, first illegal step or -1, complete, identified, exact), as they must come out."""
    replays = {name: replay(puzzle, name, trace) for name in SUDOKU_STRATEGIES}
    steps, legal, complete = replays[strategy]
    identified = [name for name in SUDOKU_STRATEGIES if replays[name][2]]
    exact = bool(identified)
    longest = max(replay[0] for replay in replays.values())
    leaders = [name for name in SUDOKU_STRATEGIES if replays[name][0] == longest]
    one_way = len(leaders) == 1 or leaders == ["hidden_single", "cross_hatching"]  # every box is a unit
    if not exact and longest >= 2 and one_way:
        identified = leaders
    return legal, -1 if legal else steps, complete, identified, exact


# ---------------------------------------------------------------- canonical traces, by the book


def sweeps(puzzle, places, step_at):
    """Look at the places again and again; make each step as it is met."""
    grid, trace, before = puzzle, [], None
    while before != grid:
        before = grid
        for place in places:
            step = step_at(grid, place)
            if step:
                trace += step
                grid = placed(grid, step[-2], step[-1] - DIGIT)
    return trace


def canonical(puzzle, strategy, max_tries=256):
    """The canonical trace, which may end before the grid is full; backtracking None if there are too many tries."""
    if strategy == "naked_single":

        def only_digit(grid, cell):
            digits = fitting(grid).get(cell, ())
            return [cell, *(DIGIT + digit for digit in digits)] if len(digits) == 1 else None

        return sweeps(puzzle, range(81), only_digit)
    if strategy in ("hidden_single", "cross_hatching"):

        def only_place(grid, place):
            cell = only_places(grid, place[0]).get(place[1])
            return None if cell is None else [UNIT + place[0], cell, DIGIT + place[1]]

        if strategy == "hidden_single":
            return sweeps(puzzle, [(unit, digit) for unit in range(27) for digit in range(1, 10)], only_place)
        return sweeps(puzzle, [(box, digit) for digit in range(1, 10) for box in range(18, 27)], only_place)
    if strategy == "propagation":
        search, trace = Propagation(puzzle), []
        while not search.done and search.forced():
            for cell, digit in sorted(search.forced()):
                trace += [cell, DIGIT + digit]
                search.step((cell, DIGIT + digit))
            trace.append(WAVE)
            search.step((WAVE,))
        return trace
    order = sorted(fitting(puzzle), key=lambda cell: (len(fitting(puzzle)[cell]), cell))
    trace, tries = [], 0

    def fill(grid, depth):
        nonlocal tries
        if depth == len(order):
            return True
        cell = order[depth]
        for digit in sorted(fitting(grid)[cell]):
            tries += 1
            if tries > max_tries:
                return False
            trace.extend([cell, DIGIT + digit])
            if fill(placed(grid, cell, digit), depth + 1):
                return True
            if tries > max_tries:
                return False
            trace.extend([UNDO, cell])
        return False

    return trace if fill(puzzle, 0) else None


def random_legal(puzzle, strategy, rng):
    """A trace whose every free choice is random; backtracking may be cut short."""
    search, trace = SEARCHES[strategy](puzzle), []
    while not search.done and len(trace) < 1000 and (allowed := sorted(search.allowed())):
        step = rng.choice(allowed)
        trace += step
        search.step(step)
    return trace


# ---------------------------------------------------------------- puzzles


def random_grid(rng):
    """A full grid: the cell with the fewest digits first, digits in random order."""
    grid, fits = [0] * 81, [set(range(1, 10)) for _ in range(81)]

    def fill(empty):
        if not empty:
            return True
        cell = min(empty, key=lambda cell: (len(fits[cell]), rng.random()))
        for digit in rng.sample(sorted(fits[cell]), len(fits[cell])):
            touched = [peer for peer in PEERS[cell] & empty if digit in fits[peer]]
            for peer in touched:
                fits[peer].remove(digit)
            grid[cell] = digit
            if fill(empty - {cell}):
                return True
            for peer in touched:
                fits[peer].add(digit)
        return False

    assert fill(frozenset(range(81)))
    return tuple(grid)


def filled_by(puzzle, strategy):
    """Does the strategy alone fill the grid? Order does not matter, so all singles of a moment are placed at once."""
    grid = puzzle
    while 0 in grid:
        found = (
            naked_singles(grid)
            if strategy == "naked_single"
            else {(cell, digit) for u in range(18, 27) for digit, cell in only_places(grid, u).items()}
        )
        if not found:
            return False
        grid = list(grid)
        for cell, digit in found:
            grid[cell] = digit
        grid = tuple(grid)
    return True


def random_puzzle(rng, clues):
    """(puzzle, solution), solvable by naked singles alone and by cross-hatching alone."""
    while True:
        solution = puzzle = random_grid(rng)
        for cell in rng.sample(range(81), 81):
            fewer = placed(puzzle, cell, 0)
            if filled_by(fewer, "naked_single") and filled_by(fewer, "cross_hatching"):
                puzzle = fewer
                if 81 - puzzle.count(0) == clues:
                    return puzzle, solution


def random_problem(rng):
    """(puzzle, solution, canonical traces), fit for a data set."""
    while True:
        puzzle, solution = random_puzzle(rng, rng.randint(30, 36))
        traces = {name: canonical(puzzle, name) for name in SUDOKU_STRATEGIES}
        if traces["backtracking"] is not None and UNDO in traces["backtracking"]:
            return puzzle, solution, traces


def random_problems(count, seed=0):
    rng = random.Random(seed)
    return [random_problem(rng) for _ in range(count)]
