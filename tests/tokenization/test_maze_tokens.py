"""Mazes to tokens and back: one literal sequence, exact round trips, and what is refused."""

import numpy as np
import pytest

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAX_SIZE, MAZE_STRATEGIES, MIN_SIZE, Mazes, TracedMazes
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.maze import VOCABULARY_SIZE, MazeLayout, token_name
from lol_data.tokenization.vocabulary import BOS, EOS, NEUTRAL, OK, TRACE

SIZES = range(MIN_SIZE, MAX_SIZE + 1)

# 0-1-2
#   |
# 3-4-5    from 4 to 8
#   | |
# 6-7 8
OPENINGS = [[2, 14, 8, 2, 15, 12, 2, 9, 1]]
TRACES = {
    "bfs": [4, 1, 5, 7, 3, 2, 0, 8],
    "dfs": [4, 1, 2, 1, 0, 1, 4, 5, 8],
    "astar": [4, 5, 8],
    "bidirectional": [4, 8],
    "dead_end_filling": [0, 2, 3, 6, 1, 7],
}


def literal_maze() -> TracedMazes:
    one = np.zeros(1, np.uint8)
    mazes = Mazes(3, np.zeros(1, np.uint64), np.array(OPENINGS, np.uint8), one + 4, one + 8)
    traces = {name: Ragged.from_rows([trace]) for name, trace in TRACES.items()}
    return TracedMazes(mazes, Ragged.from_rows([[4, 5, 8]]), traces)


def test_the_tokens_of_a_literal_maze():
    traced = literal_maze()
    prompt = MazeLayout(3, field=2).prompts(traced.mazes, np.array([MAZE_STRATEGIES.index("dfs")]))
    # <bos>, 11 + openings of each cell, 27 + start, 27 + goal, <dfs> twice
    assert prompt.tolist() == [[1, 13, 25, 19, 13, 26, 23, 13, 20, 12, 31, 35, 7, 7]]
    suffix = MazeLayout(3).suffixes(traced.traces["dfs"], traced.answer)
    # <trace>, 27 + cell ..., <answer>, 27 + cell ..., <eos>
    assert suffix[0].tolist() == [3, 31, 28, 29, 28, 27, 28, 31, 32, 35, 4, 31, 32, 35, 2]
    assert [token_name(token) for token in prompt[0]] == [
        *("<bos>", "-E--", "-ESW", "---W", "-E--", "NESW", "--SW", "-E--", "N--W", "N---"),
        *("4", "8", "<dfs>", "<dfs>"),
    ]


def test_every_token_has_its_own_name_and_fits_a_byte():
    assert VOCABULARY_SIZE <= 256
    assert len({token_name(token) for token in range(VOCABULARY_SIZE)}) == VOCABULARY_SIZE
    for token in (-1, VOCABULARY_SIZE):
        with pytest.raises(ValueError, match="outside the maze vocabulary"):
            token_name(token)


@pytest.mark.parametrize("size", SIZES)
def test_problems_strategies_traces_and_answers_come_back_exactly(size):
    traced = generate_mazes(MazeSettings(size=size), seed=size, lo=0, hi=12)
    layout = MazeLayout(size)
    asked = np.arange(12) % 6 - 1  # <neutral> and every strategy
    prompts = layout.prompts(traced.mazes, asked)
    assert prompts.shape == (12, layout.prompt_length)
    assert prompts.dtype == np.uint8
    assert (prompts[:, 0] == BOS).all()
    mazes, strategies = layout.read_prompts(prompts)
    assert strategies.tolist() == asked.tolist()
    for name in ("openings", "start", "goal"):
        assert np.array_equal(getattr(mazes, name), getattr(traced.mazes, name))

    suffixes = layout.problem_suffixes(traced)
    assert suffixes.values.dtype == np.uint8
    assert int(suffixes.values.max()) < VOCABULARY_SIZE
    assert int(suffixes.lengths.max()) <= layout.longest_suffix
    for row, suffix in enumerate(suffixes):
        problem, strategy = divmod(row, len(MAZE_STRATEGIES))
        assert suffix[0] == TRACE
        parsed = layout.parse(Ragged.from_rows([suffix[1:]]))
        assert parsed.reason.tolist() == [OK]
        assert np.array_equal(parsed.traces[0], traced.traces[MAZE_STRATEGIES[strategy]][problem])
        assert np.array_equal(parsed.answers[0], traced.answer[problem])


def test_suffixes_of_a_problem_stand_in_the_order_of_the_strategies():
    traced = generate_mazes(MazeSettings(size=5), seed=2, lo=0, hi=7)
    layout = MazeLayout(5)
    joined = layout.problem_suffixes(traced)
    assert len(joined) == 7 * len(MAZE_STRATEGIES)
    for s, name in enumerate(MAZE_STRATEGIES):
        alone = layout.suffixes(traced.traces[name], traced.answer)
        for p in range(7):
            assert np.array_equal(joined[p * len(MAZE_STRATEGIES) + s], alone[p])


def test_longest_suffix_covers_the_longest_walk_there_is():
    # A depth-first walk over every cell, back to the start but for the last leg, and an answer of one cell per cell.
    for size in SIZES:
        cells = size * size
        walk, answer = Ragged.from_rows([[0] * (2 * cells - 1)]), Ragged.from_rows([[0] * cells])
        layout = MazeLayout(size)
        assert layout.suffixes(walk, answer).lengths.tolist() == [layout.longest_suffix]


def test_the_field_alone_depends_on_the_strategy():
    mazes = literal_maze().mazes.take(np.zeros(6, np.int64))
    asked = np.array([NEUTRAL_FIELD, 0, 1, 2, 3, 4])
    layout = MazeLayout(3, field=3)
    prompts = layout.prompts(mazes, asked)
    assert (prompts[:, :-3] == prompts[0, :-3]).all()
    field = prompts[:, -3:]
    assert (field == field[:, :1]).all()
    assert [token_name(token) for token in field[:, 0]] == ["<neutral>", *(f"<{name}>" for name in MAZE_STRATEGIES)]
    assert field[0, 0] == NEUTRAL
    assert layout.field_token(asked).tolist() == field[:, 0].tolist()


@pytest.mark.parametrize("size", SIZES)
def test_prompts_of_a_size_have_one_length(size):
    assert MazeLayout(size).prompt_length == size * size + 11
    assert MazeLayout(size, field=1).prompt_length == size * size + 4


@pytest.mark.parametrize(
    ("place", "token"),
    [
        pytest.param(0, EOS, id="no bos"),
        pytest.param(3, 10, id="a strategy for a wall"),
        pytest.param(3, 27, id="a cell for a wall"),
        pytest.param(10, 26, id="a wall for the start"),
        pytest.param(10, 27 + 9, id="the start outside the maze"),
        pytest.param(11, 255, id="the goal outside the vocabulary"),
        pytest.param(13, 8, id="a field of two minds"),
        pytest.param((12, 13), 0, id="a field of padding"),
        pytest.param((12, 13), 11, id="a field past the strategies"),
    ],
)
def test_what_is_no_prompt_is_refused(place, token):
    layout = MazeLayout(3, field=2)
    prompts = layout.prompts(literal_maze().mazes.take(np.zeros(2, np.int64)), np.array([1, 1]))
    prompts[1, list(np.atleast_1d(place))] = token
    with pytest.raises(ValueError, match="prompt 1 is not a prompt for 3x3 mazes"):
        layout.read_prompts(prompts)


def test_a_prompt_of_another_length_is_refused():
    with pytest.raises(ValueError, match="13 tokens; 3x3 mazes need 14"):
        MazeLayout(3, field=2).read_prompts(np.zeros((1, 13), np.uint8))
