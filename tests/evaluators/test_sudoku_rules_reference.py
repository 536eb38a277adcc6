"""The sudoku rules against the slow reference, and against the tracers."""

import random
from functools import cache

import numpy as np
import pytest

from lol_data.evaluators.sudoku_rules import canonical_sudoku_rows, judge_sudokus
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.ragged import Ragged
from lol_data.solvers.sudoku_tracing import trace_sudokus
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, SYMBOLS, UNDO, UNIT, WAVE, Sudokus

from .sudoku_reference import (
    SEARCHES,
    canonical,
    digits_of,
    random_grid,
    random_legal,
    random_problems,
    reference,
    replay,
)

CODE = {name: code for code, name in enumerate(SUDOKU_STRATEGIES)}
problems = cache(random_problems)  # (puzzle, solution, canonical traces) each
HARD = [  # no strategy but backtracking fills these; the second and third have several solutions
    digits_of("4.....8.5.3..........7......2.....6.....8.4......1.......6.3.7.5..2.....1.4......"),
    digits_of("92..8.65.6..2.43..3..5.9.72.7.953.......7.......6..5....142..3.....31..6.6.7..1.."),
    digits_of("49675.8..21869375..5.48..69" + "." * 54),
    (0,) * 81,
]


def steps_of(strategy, trace):
    """The trace cut into steps."""
    steps, at = [], 0
    while at < len(trace):
        size = 3 if "hidden" in strategy or "cross" in strategy else 2 - (trace[at] == WAVE)
        steps.append(tuple(trace[at : at + size]))
        at += size
    return steps


def joined(steps):
    return [symbol for step in steps for symbol in step]


def random_step(strategy, rng):
    unit = [UNIT + rng.randrange(27)] if strategy in ("hidden_single", "cross_hatching") else []
    return (*unit, rng.randrange(81), DIGIT + rng.randint(1, 9))


def corruptions(strategy, trace, rng, each):
    """Single-step and single-symbol corruptions, `each` of a kind."""
    steps = steps_of(strategy, trace)
    for _ in range(each):
        at, other = rng.randrange(len(steps)), rng.randrange(len(steps))
        near = steps[max(0, min(len(steps) - 1, at + rng.randint(-4, 4)))]
        for new in (near, steps[other], random_step(strategy, rng), (UNDO, rng.randrange(81))):
            yield joined([*steps[:at], new, *steps[at + 1 :]])
            yield joined([*steps[:at], new, *steps[at:]])
            yield joined([*steps, new])
        yield joined([*steps[:at], *steps[at + 1 :]])
        yield joined([*steps[:at], *steps[at : at + 2][::-1], *steps[at + 2 :]])
        yield joined(steps[:at])
        place, symbol = rng.randrange(len(trace)), rng.randrange(SYMBOLS + 2)
        yield [*trace[:place], symbol, *trace[place + 1 :]]
        yield [*trace[:place], symbol, *trace[place:]]
        yield [*trace[:place], *trace[place + 1 :]]


def every_corruption(strategy, trace):
    """Every symbol in place of every one and between any two; every step left out, moved to the next place, doubled."""
    steps = steps_of(strategy, trace)
    for place in range(len(trace) + 1):
        for symbol in range(SYMBOLS + 1):
            yield [*trace[:place], symbol, *trace[place:]]
            yield [*trace[:place], symbol, *trace[place + 1 :]]
        yield trace[:place]
        yield [*trace[:place], *trace[place + 1 :]]
    for at in range(len(steps)):
        yield joined([*steps[:at], *steps[at + 1 :]])
        yield joined([*steps[:at], *steps[at : at + 2][::-1], *steps[at + 2 :]])
        yield joined([*steps[:at], steps[at], *steps[at:]])


def batch(puzzles):
    grids = np.array(puzzles, np.uint8).reshape(-1, 81)
    return Sudokus(np.arange(len(grids), dtype=np.uint64), grids, np.zeros_like(grids))


def compare(puzzles, cases):
    """cases: (row, strategy asked, trace), judged and replayed. Returns the share of legal ones."""
    rows, asked, traces = zip(*cases, strict=True)
    ragged = Ragged.from_rows(traces)
    verdicts = judge_sudokus(batch(puzzles), rows, [CODE[name] for name in asked], ragged, ragged)
    best = cache(lambda row, strategy: canonical(puzzles[row], strategy))
    for k, (row, strategy, trace) in enumerate(cases):
        v = verdicts.row(k)
        got = v["legal"], verdicts.first_illegal_step[k], v["complete"], v["identified"], v["identified_exact"]
        assert got == reference(puzzles[row], strategy, trace), (row, v, trace)
        assert v["canonical"] == (v["complete"] and trace == best(row, strategy)), (row, v, trace)
    return verdicts.legal.mean()


def samples(puzzles, rng, each):
    for row, puzzle in enumerate(puzzles):
        for strategy in SUDOKU_STRATEGIES:
            best = canonical(puzzle, strategy) or []  # None: too many tries
            free = random_legal(puzzle, strategy, rng)
            for trace in [best, free, *corruptions(strategy, best or free or [0, 81], rng, each)]:
                yield row, strategy, trace
                if rng.random() < 0.3:
                    yield row, rng.choice(SUDOKU_STRATEGIES), trace


def test_rules_agree_with_the_reference():
    puzzles = [puzzle for puzzle, *_ in problems(4)]
    assert 0.05 < compare(puzzles, list(samples(puzzles, random.Random(1), 6))) < 0.6


def test_rules_agree_with_the_reference_on_hard_puzzles():
    compare(HARD, list(samples(HARD, random.Random(2), 2)))


def test_rules_agree_with_the_reference_on_few_empty_cells():
    rng = random.Random(3)
    puzzles = []
    for _ in range(40):  # dense enough to finish, loose enough for ties, undos and several solutions
        puzzle = list(random_grid(rng))
        digits = rng.sample(range(1, 10), 3)
        for cell in rng.sample([cell for cell in range(81) if puzzle[cell] in digits], rng.randint(4, 20)):
            puzzle[cell] = 0
        puzzles.append(tuple(puzzle))
    compare(puzzles, list(samples(puzzles, rng, 2)))


def test_the_tracers_and_the_reference_agree_and_are_canonical():
    found = problems(12, 5)
    sudokus = batch([puzzle for puzzle, *_ in found])
    sudokus.solution[:] = [solution for _, solution, _ in found]
    traced = trace_sudokus(sudokus)
    for name in SUDOKU_STRATEGIES:
        for trace, (*_, traces) in zip(traced.traces[name], found, strict=True):
            assert trace.tolist() == traces[name]
        answers = Ragged.from_rows([solution for _, solution, _ in found])
        rows = np.arange(len(found))
        verdicts = judge_sudokus(sudokus, rows, np.full(len(rows), CODE[name]), traced.traces[name], answers)
        assert verdicts.canonical.all() and verdicts.joint.all()
    assert canonical_sudoku_rows(traced).all()


def legal_steps_are_those_of_the_reference(puzzle, strategy, trace, every):
    """At every `every`-th prefix of the trace: of all steps that there are, just the reference's are legal."""
    units = range(27) if strategy in ("hidden_single", "cross_hatching") else [None]
    head = [[UNIT + unit] if unit is not None else [] for unit in units]
    steps = [(*unit, cell, DIGIT + digit) for unit in head for cell in range(81) for digit in range(1, 10)]
    steps += [(UNDO, cell) for cell in range(81)] + [(WAVE,)]
    search, prefix = SEARCHES[strategy](puzzle), []
    for k, step in enumerate(steps_of(strategy, trace)):
        if k % every == 0:
            traces = Ragged.from_rows([[*prefix, *step] for step in steps])
            zeros = np.zeros(len(steps), int)
            verdicts = judge_sudokus(batch([puzzle]), zeros, zeros + CODE[strategy], traces, traces)
            assert {steps[i] for i in np.flatnonzero(verdicts.legal)} == search.allowed()
            assert (verdicts.first_illegal_step[~verdicts.legal] == k).all()
        search.step(step)
        prefix += step


@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_the_legal_steps_are_those_of_the_reference(strategy):
    ((puzzle, _, traces),) = problems(1, 9)
    legal_steps_are_those_of_the_reference(puzzle, strategy, traces[strategy], 12)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_the_legal_steps_are_those_of_the_reference_at_every_prefix(strategy):
    for puzzle, _, traces in problems(2, 10):
        legal_steps_are_those_of_the_reference(puzzle, strategy, traces[strategy], 1)
        free = random_legal(puzzle, strategy, random.Random(0))[:240]
        legal_steps_are_those_of_the_reference(puzzle, strategy, free, 5)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", SUDOKU_STRATEGIES)
def test_every_single_symbol_corruption_is_refused_or_provably_legal(strategy):
    for puzzle, _, traces in problems(2, 11):
        cases = list(every_corruption(strategy, traces[strategy][:150]))
        ragged, zeros = Ragged.from_rows(cases), np.zeros(len(cases), int)
        verdicts = judge_sudokus(batch([puzzle]), zeros, zeros + CODE[strategy], ragged, ragged)
        proved = [replay(puzzle, strategy, trace) for trace in cases]
        assert verdicts.legal.tolist() == [legal for _, legal, _ in proved]
        assert verdicts.complete.tolist() == [complete for *_, complete in proved]
        assert verdicts.first_illegal_step.tolist() == [-1 if legal else steps for steps, legal, _ in proved]
        assert 0 < verdicts.legal.mean() < 0.1


@pytest.mark.slow
def test_a_hundred_thousand_sudokus():
    for first in range(0, 100_000, 20_000):
        traced = generate_sudokus(SudokuSettings(), 31, first, first + 20_000)
        assert canonical_sudoku_rows(traced).all()
        rows, answers = np.arange(len(traced)), Ragged.from_rows(traced.sudokus.solution)
        for name, code in CODE.items():
            verdicts = judge_sudokus(traced.sudokus, rows, np.full(len(rows), code), traced.traces[name], answers)
            assert verdicts.joint.all() and verdicts.canonical.all()


@pytest.mark.slow
def test_rules_agree_with_the_reference_on_hundreds():
    puzzles = [puzzle for puzzle, *_ in problems(200, 12)]
    assert 0.05 < compare(puzzles, list(samples(puzzles, random.Random(4), 1))) < 0.6
