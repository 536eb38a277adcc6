"""Which samples a step sees, and how they become batches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.ragged import Ragged
from lol_data.sudokus import SUDOKU_STRATEGIES, TracedSudokus
from lol_data.tokenization.maze import MazeLayout
from lol_data.tokenization.sudoku import SudokuLayout
from lol_data.tokenization.vocabulary import PAD
from lol_data.training.config import TrainConfig
from lol_data.training.data import Sequences, split_by_length, step_micro_batches, step_samples

from .common import MODEL, sequences

SMALL = sequences(12)


@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2**40), st.integers(1, 8), st.integers(1, 5))
@settings(deadline=None)
def test_every_sample_once_an_epoch_whatever_the_batch(groups, batch, seed, epochs, together):
    count = groups * together
    steps = -(-count * epochs // batch)
    stream = np.concatenate([step_samples(count, batch, seed, step, together) for step in range(steps)])
    assert len(stream) == steps * batch
    for epoch in range(epochs):
        assert sorted(stream[epoch * count : (epoch + 1) * count]) == list(range(count))
    assert (stream[: epochs * count].reshape(-1, together) % together == np.arange(together)).all()


def test_the_traces_of_a_problem_stand_side_by_side_where_asked_to():
    def problems(order):
        train = TrainConfig(batch=20, micro_batch=20, order=order)
        steps = [step_micro_batches(SMALL, train, step) for step in range(len(SMALL) // 20)]
        return [np.unique(part // 5, return_counts=True)[1].tolist() for (part,) in steps]

    assert problems("problem") == [[5, 5, 5, 5]] * 3
    assert problems("mixed") != problems("problem")


def test_a_step_is_a_pure_function_of_seed_and_step():
    forward = [step_samples(30, 7, 5, step) for step in range(20)]
    for step in reversed(range(20)):  # in another order, across the borders of epochs
        step_samples(31, 7, 5, step)
        assert np.array_equal(step_samples(30, 7, 5, step), forward[step])
        assert forward[step].dtype == np.int64
    epochs = np.concatenate(forward)[:120].reshape(4, 30)
    assert len({tuple(epoch) for epoch in epochs}) == 4  # each epoch in an order of its own
    assert not np.array_equal(step_samples(30, 30, 5, 0), step_samples(30, 30, 6, 0))
    one, two = step_samples(30, 20, 5, 0), step_samples(30, 10, 5, 0)
    assert np.array_equal(one[:10], two)  # the batch only cuts the stream


@pytest.mark.parametrize(
    ("traced", "layout"),
    [
        (generate_mazes(MazeSettings(size=4), 0, 0, 9), MazeLayout(4, 2)),
        (generate_sudokus(SudokuSettings(), 0, 0, 9), SudokuLayout(2)),
    ],
    ids=["maze", "sudoku"],
)
def test_gathered_rows_are_prompt_field_suffix_and_padding(traced, layout):
    data = Sequences.of(traced, 2)
    assert data.layout == layout
    samples = np.array([44, 0, 13, 13, 7, 31])
    batch = data.gather(samples)
    assert batch.samples.tolist() == samples.tolist()
    rows = []
    for problem, strategy in (divmod(sample, 5) for sample in samples.tolist()):
        one = traced.take(np.array([problem]))
        prompt = layout.prompts(layout.problems(one), np.array([strategy]))[0]
        rows.append([*prompt, *layout.suffixes(one.traces[layout.strategies[strategy]], layout.answers(one))[0]])
    longest = max(len(row) for row in rows)
    assert batch.tokens.tolist() == [row + [PAD] * (longest - len(row)) for row in rows]
    assert batch.lengths.tolist() == data.lengths(samples).tolist() == [len(row) for row in rows]
    assert len(data) == 45


def backtracking_of(length: int) -> TracedSudokus:
    """Three sudokus, the second with a backtracking trace of so many symbols."""
    traced = generate_sudokus(SudokuSettings(), 0, 10, 13)
    rows = list(traced.traces["backtracking"])
    rows[1] = np.zeros(length, np.uint8)
    return TracedSudokus(traced.sudokus, {**traced.traces, SUDOKU_STRATEGIES[-1]: Ragged.from_rows(rows)})


def test_a_trace_that_would_be_cut_in_decoding_is_refused_by_name():
    longest = SudokuLayout().longest_suffix - 81 - 3
    assert Sequences.of(backtracking_of(longest), 8).lengths(np.array([9])) == 90 + 1106
    with pytest.raises(UsageError, match=r"problem 11: backtracking takes 1107 tokens .* than the 1106 of sudokus"):
        Sequences.of(backtracking_of(longest + 1), 8)


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_parts_by_length_hold_all_samples_in_rising_order(size):
    data = sequences(20)
    samples = step_samples(len(data), 50, 0, 3)
    parts = split_by_length(data, samples, size)
    assert max(len(part) for part in parts) <= size
    assert len(parts) == -(-50 // size)
    assert sorted(np.concatenate(parts)) == sorted(samples)
    assert (np.diff(data.lengths(np.concatenate(parts))) >= 0).all()


def test_the_micro_batches_of_a_step_are_its_samples():
    parts = step_micro_batches(SMALL, TrainConfig(batch=50, micro_batch=16, seed=1), 7)
    assert [len(part) for part in parts] == [13, 13, 12, 12]
    assert sorted(np.concatenate(parts)) == sorted(step_samples(len(SMALL), 50, 1, 7))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_batches_are_gathered_where_the_tokens_are():
    samples = np.array([3, 0, 59])
    here, there = SMALL.gather(samples), SMALL.to(torch.device("cuda")).gather(samples)
    assert there.tokens.is_cuda and there.lengths.is_cuda
    assert torch.equal(here.tokens, there.tokens.cpu()) and torch.equal(here.lengths, there.lengths.cpu())


def test_no_problems_at_all_are_refused():
    with pytest.raises(UsageError, match="empty"):
        sequences(0)


def test_the_field_is_as_long_as_the_model_says():
    assert sequences(1).layout.field == MODEL["field"]
