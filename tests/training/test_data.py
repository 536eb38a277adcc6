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
from lol_data.training.config import load_config
from lol_data.training.data import Sequences, split_by_length, step_micro_batches, step_samples

from .common import MODEL, sequences

SMALL = sequences(12)


@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2**40), st.integers(1, 8))
@settings(deadline=None)
def test_every_sample_once_an_epoch_whatever_the_batch(count, batch, seed, epochs):
    steps = -(-count * epochs // batch)
    stream = np.concatenate([step_samples(count, batch, seed, step) for step in range(steps)])
    assert len(stream) == steps * batch
    for epoch in range(epochs):
        assert sorted(stream[epoch * count : (epoch + 1) * count]) == list(range(count))


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


POOLS = {
    "batch": st.integers(1, 30),
    "micro_batch": st.integers(1, 12),
    "pool": st.integers(1, 9),
    "seed": st.integers(0, 2**40),
    "number": st.integers(0, 30),
}


@given(**POOLS)
@settings(deadline=None, max_examples=60)
def test_the_steps_of_a_pool_share_its_samples_out(batch, micro_batch, pool, seed, number):
    data = SMALL
    first = number * pool
    steps = [step_micro_batches(data, batch, micro_batch, pool, seed, step) for step in range(first, first + pool)]
    for parts in steps:
        assert sum(len(part) for part in parts) == batch
        assert len(parts) == -(-batch // micro_batch)
        assert max(len(part) for part in parts) <= micro_batch
        assert max(len(part) for part in parts) - min(len(part) for part in parts) <= 1
    drawn = np.concatenate([part for parts in steps for part in parts])
    stream = np.concatenate([step_samples(len(data), batch, seed, step) for step in range(first, first + pool)])
    assert sorted(drawn) == sorted(stream)  # so each sample once an epoch
    again = step_micro_batches(data, batch, micro_batch, pool, seed, first + pool // 2)  # as after a restart there
    for part, before in zip(again, steps[pool // 2], strict=True):
        assert np.array_equal(part, before)


def test_a_step_takes_one_micro_batch_of_every_band_of_lengths():
    parts = [step_micro_batches(SMALL, 12, 4, 5, 1, step) for step in range(5)]
    lengths = [[SMALL.lengths(part) for part in step] for step in parts]
    for shorter, longer in ((0, 1), (1, 2)):
        assert max(step[shorter].max() for step in lengths) <= min(step[longer].min() for step in lengths)
    ranks = [np.argsort([step[band].sum() for step in lengths], kind="stable").tolist() for band in range(3)]
    assert len({tuple(rank) for rank in ranks}) > 1  # each band dealt out by itself


def test_a_sample_is_as_likely_in_each_step_of_its_pool():
    steps = 4
    counts = np.zeros((len(SMALL), steps), int)
    for seed in range(400):
        for step in range(steps):
            counts[np.concatenate(step_micro_batches(SMALL, 10, 5, steps, seed, step)), step] += 1
    longest = np.argsort(SMALL.lengths(np.arange(len(SMALL))))[-10:]  # whose place in the sorted pool hardly varies
    share = counts[longest].sum(0) / counts[longest].sum()
    assert np.abs(share - 1 / steps).max() < 0.04


def test_a_step_of_one_micro_batch_is_an_independent_draw():
    (part,) = step_micro_batches(SMALL, 20, 64, 8, 0, 3)
    assert sorted(part) == sorted(step_samples(len(SMALL), 20, 0, 3))


@pytest.mark.parametrize("size", [5, 8])
def test_a_pool_of_four_steps_leaves_less_than_a_twentieth_of_padding(size):
    data, train = sequences(500, size=size), load_config("quickstart").train
    parts = [
        part for step in range(16) for part in step_micro_batches(data, train.batch, train.micro_batch, 4, 0, step)
    ]
    batches = [data.gather(part) for part in parts]
    real = sum(int(batch.lengths.sum()) for batch in batches)
    assert 1 - real / sum(batch.tokens.numel() for batch in batches) < 0.05


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
