"""One interface for both tasks: which layout belongs to what, and how long sequences are."""

import numpy as np
import pytest

from lol_data.errors import UsageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.tokenization.layout import join
from lol_data.tokenization.maze import MazeLayout
from lol_data.tokenization.sudoku import SudokuLayout
from lol_data.tokenization.tasks import layout_for, layout_of, token_lengths

MAZES = generate_mazes(MazeSettings(size=4), 0, 0, 30)
SUDOKUS = generate_sudokus(SudokuSettings(), 0, 0, 30)


@pytest.mark.parametrize(
    ("traced", "problems", "layout"),
    [(MAZES, MAZES.mazes, MazeLayout(4, 3)), (SUDOKUS, SUDOKUS.sudokus, SudokuLayout(3))],
    ids=["maze", "sudoku"],
)
def test_problems_and_descriptions_lead_to_one_layout(traced, problems, layout):
    assert layout_of(traced, 3) == layout_of(problems, 3) == layout_for(layout.about, 3) == layout
    assert layout.problems(traced) is problems
    assert layout.about["task"] == layout.task
    assert layout_of(traced, 4) != layout
    settings = {"algorithm": "wilson", "clues": [30, 36], "size": 4}
    assert layout_for({**settings, "task": layout.task}, 3) == layout  # other settings do not matter


def test_layouts_of_other_tasks_and_sizes_differ():
    assert len({MazeLayout(4), MazeLayout(5), SudokuLayout()}) == 3
    assert [layout.kind for layout in (MazeLayout(4), SudokuLayout())] == ["4x4 mazes", "sudokus"]


def test_an_unknown_task_is_refused():
    with pytest.raises(UsageError, match="no such task: chess; there are maze and sudoku"):
        layout_for({"task": "chess"}, 8)


@pytest.mark.parametrize("traced", [MAZES, SUDOKUS], ids=["maze", "sudoku"])
def test_lengths_are_those_of_the_sequences(traced):
    layout = layout_of(traced, 8)
    found = token_lengths(traced, 8)
    assert list(found) == list(layout.strategies)
    for strategy, (name, lengths) in enumerate(found.items()):
        prompts = layout.prompts(layout.problems(traced), np.full(len(traced), strategy))
        tokens = join(prompts, layout.suffixes(traced.traces[name], layout.answers(traced)))
        expected = (tokens != 0).sum(1)
        assert lengths == {"min": expected.min(), "mean": pytest.approx(expected.mean()), "max": expected.max()}
        assert lengths["max"] <= layout.prompt_length + layout.longest_suffix


def test_no_problems_have_no_lengths():
    assert token_lengths(SUDOKUS.take(np.empty(0, np.int64)), 8) == {}


def test_sudoku_traces_are_as_long_as_their_steps():
    lengths = token_lengths(SUDOKUS, 8)
    empty = 81 - SUDOKUS.sudokus.clues.astype(int)
    besides = 90 + 3 + 81
    assert lengths["naked_single"]["mean"] == pytest.approx(besides + 2 * empty.mean())
    assert lengths["hidden_single"] == lengths["cross_hatching"]
    assert lengths["hidden_single"]["max"] == besides + 3 * empty.max()
    assert lengths["naked_single"]["min"] < lengths["propagation"]["min"]
    assert lengths["backtracking"]["max"] > lengths["hidden_single"]["max"]
