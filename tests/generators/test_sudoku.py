"""Generated sudokus: purity of rows, conditions, settings, spread."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import LolDataError, UsageError
from lol_data.generators import sudoku as sudoku_module
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.generators.sudoku_fingerprint import sudoku_fingerprint, sudoku_key
from lol_data.generators.sudoku_grid import solved_grids
from lol_data.solvers.sudoku_count import count_solutions
from lol_data.solvers.sudoku_tracing import trace_sudokus
from lol_data.sudokus import DIGIT, SUDOKU_STRATEGIES, UNDO, TracedSudokus

from .test_sudoku_removal import closed_by_cross_hatching, closed_by_naked_singles


def columns(made: TracedSudokus) -> list[np.ndarray]:
    flat = [made.sudokus.id, made.sudokus.puzzle, made.sudokus.solution]
    for trace in made.traces.values():
        flat += [trace.values, trace.lengths]
    return flat


def assert_same(one: TracedSudokus, other: TracedSudokus) -> None:
    assert tuple(one.traces) == tuple(other.traces) == SUDOKU_STRATEGIES
    for mine, theirs in zip(columns(one), columns(other), strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


# ---- rows are pure ----


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(29, 50), st.integers(29, 50)).map(sorted).map(tuple),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**62),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_rows_do_not_depend_on_the_block(clues, seed, lo, before, after):
    kind = SudokuSettings(clues)
    whole = generate_sudokus(kind, seed, lo, lo + before + after)
    assert_same(whole.take(np.arange(before)), generate_sudokus(kind, seed, lo, lo + before))
    tail = generate_sudokus(kind, seed, lo + before, lo + before + after)
    assert_same(whole.take(np.arange(before, before + after)), tail)
    assert whole.sudokus.id.tolist() == list(range(lo, lo + before + after))


def test_threads_do_not_disturb_each_other():
    blocks = [(k * 200, (k + 1) * 200) for k in range(16)]

    def make(block: tuple[int, int]) -> TracedSudokus:
        return generate_sudokus(SudokuSettings(), 11, *block)

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(make, blocks))
    for block, made in zip(blocks, together, strict=True):
        assert_same(made, make(block))


def test_bytes_are_pinned():
    # A change of this hash is a change of every published data set: raise the version and say so.
    digest = hashlib.sha256()
    for clues in ((30, 36), (25, 25)):
        for column in columns(generate_sudokus(SudokuSettings(clues), 2**64 - 1, 0, 300)):
            digest.update(np.ascontiguousarray(column).astype(column.dtype.newbyteorder("<")).tobytes())
    assert digest.hexdigest() == "cbb841013a93a1c04c897177fc944ddd6ac48e61dee8f30e13ff0db947378e82"


def test_numpy_global_state_is_left_alone():
    np.random.seed(1)  # noqa: NPY002
    first = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    generate_sudokus(SudokuSettings(), 0, 0, 10)
    assert np.random.random() == first  # noqa: NPY002


# ---- conditions ----


def assert_searched(made: TracedSudokus) -> None:
    """Every backtracking trace has an undo and at most 256 tries."""
    for trace in made.traces["backtracking"]:
        steps = trace.reshape(-1, 2)
        undos = int((steps[:, 0] == UNDO).sum())
        assert undos >= 1
        assert len(steps) - undos <= 256
        assert ((steps[:, 0] == UNDO) | (steps[:, 1] > DIGIT)).all()


@pytest.mark.parametrize("clues", [(30, 36), (24, 24), (64, 64)])
def test_conditions_hold(clues):
    made = generate_sudokus(SudokuSettings(clues), 5, 0, 60)
    puzzles, solutions = made.sudokus.puzzle, made.sudokus.solution
    assert (np.where(puzzles == 0, solutions, puzzles) == solutions).all()
    for puzzle in puzzles.tolist():
        assert clues[0] <= 81 - puzzle.count(0) <= clues[1]
        assert closed_by_naked_singles(puzzle)
        assert closed_by_cross_hatching(puzzle)
    counts, found = count_solutions(puzzles)
    assert (counts == 1).all()
    assert np.array_equal(found, solutions)
    assert_searched(made)


def test_traces_are_the_canonical_ones():
    made = generate_sudokus(SudokuSettings(), 6, 0, 500)
    assert_same(made, TracedSudokus(made.sudokus, trace_sudokus(made.sudokus).traces))


@pytest.mark.slow
def test_100000_puzzles_are_unique_distinct_and_even():
    made = generate_sudokus(SudokuSettings(), 0, 0, 100_000)
    counts, found = count_solutions(made.sudokus.puzzle)
    assert (counts == 1).all()
    assert np.array_equal(found, made.sudokus.solution)
    assert len(np.unique(sudoku_key(made.sudokus))) == len(np.unique(made.sudokus.solution, axis=0)) == 100_000
    assert_even(np.bincount(made.sudokus.clues, minlength=37)[30:])
    assert_searched(made)


# ---- spread ----


def assert_even(counts: np.ndarray) -> None:
    freedom, expected = counts.size - 1, counts.sum() / counts.size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


@pytest.fixture(scope="module")
def made() -> TracedSudokus:
    return generate_sudokus(SudokuSettings(), 1, 0, 20_000)


def test_numbers_of_clues_are_uniform(made):
    counts = np.bincount(made.sudokus.clues)
    assert len(counts) == 37 and not counts[:30].any()
    assert_even(counts[30:])


def test_20000_sudokus_are_distinct(made):
    assert len(np.unique(made.sudokus.puzzle, axis=0)) == len(np.unique(made.sudokus.solution, axis=0)) == 20_000
    assert len(np.unique(sudoku_fingerprint(made.sudokus))) >= 20_000 - 3  # equivalent by chance: 0.04 expected


def test_every_cell_can_be_a_given_or_empty(made):
    given_share = (made.sudokus.puzzle > 0).mean(0)
    assert given_share.min() > 0.3 and given_share.max() < 0.5
    assert len(np.unique(made.sudokus.solution[:, 0])) == 9


@pytest.mark.parametrize(("one", "other"), [(0, 1), (41, 42), (2**64 - 1, 0)])
def test_seeds_share_nothing(one, other):
    prints = [sudoku_fingerprint(generate_sudokus(SudokuSettings(), s, 0, 1000).sudokus) for s in (one, other)]
    assert not set(prints[0].tolist()) & set(prints[1].tolist())


def test_other_clues_and_bare_grids_are_other_streams():
    prints = [
        set(sudoku_fingerprint(generate_sudokus(SudokuSettings(clues), 0, 0, 300).sudokus).tolist())
        for clues in ((30, 36), (30, 35), (31, 36), (36, 36))
    ]
    assert sum(map(len, prints)) == len(set().union(*prints)) == 1200
    plain = generate_sudokus(SudokuSettings(), 0, 0, 300).sudokus
    bare = type(plain)(plain.id, plain.puzzle, solved_grids(0, 300))
    assert not prints[0] & set(sudoku_fingerprint(bare).tolist())


# ---- settings ----


@pytest.mark.parametrize(
    "clues",
    [(23, 30), (30, 65), (36, 30), (30.0, 36), (True, 36), (30,), (30, 33, 36), 30, "30:36", None, ("30", "36")],
)
def test_impossible_settings_are_refused(clues):
    with pytest.raises(UsageError, match=r"clues .* are not two integers, least and most, from 24 to 64") as caught:
        generate_sudokus(SudokuSettings(clues), 0, 0, 1)
    assert "\n" not in str(caught.value)


def test_a_hopeless_search_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(sudoku_module, "MAX_GRIDS", 1)
    with pytest.raises(LolDataError, match="24 to 24 clues are too rare: row 7 found none in 1 grids") as caught:
        generate_sudokus(SudokuSettings((24, 24)), 0, 7, 40)
    assert not isinstance(caught.value, UsageError)


@pytest.mark.parametrize(("lo", "hi"), [(-1, 1), (2, 1), (0, 2**63)])
def test_ranges_that_are_refused(lo, hi):
    with pytest.raises(UsageError, match="ids"):
        generate_sudokus(SudokuSettings(), 0, lo, hi)


def test_numpy_integers_are_integers():
    plain = generate_sudokus(SudokuSettings((31, 33)), 3, 5, 9)
    settings = SudokuSettings((np.int32(31), np.uint8(33)))  # type: ignore[arg-type]
    assert_same(generate_sudokus(settings, np.uint64(3), np.uint64(5), np.int16(9)), plain)  # type: ignore[arg-type]


def test_no_rows():
    made = generate_sudokus(SudokuSettings(), 0, 7, 7)
    assert len(made) == 0
    assert all(trace.offsets.tolist() == [0] for trace in made.traces.values())
