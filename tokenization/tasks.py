"""Which layout belongs to which problems. What differs between the tasks is asked of the layout, nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lol_data.errors import UsageError
from lol_data.mazes import Mazes, TracedMazes
from lol_data.sudokus import Sudokus, TracedSudokus
from lol_data.tokenization.layout import MARKS, Layout
from lol_data.tokenization.maze import MazeLayout
from lol_data.tokenization.sudoku import SudokuLayout

Problems = Mazes | Sudokus
Traced = TracedMazes | TracedSudokus
AnyLayout = Layout[Any, Any]


def layout_of(problems: Problems | Traced, field: int) -> AnyLayout:
    """The layout of a batch of problems, traced or not."""
    if isinstance(problems, Sudokus | TracedSudokus):
        return SudokuLayout(field)
    return MazeLayout(problems.mazes.size if isinstance(problems, TracedMazes) else problems.size, field)


def layout_for(about: Mapping[str, Any], field: int) -> AnyLayout:
    """The same from "task" and, for mazes, "size". Raises UsageError for a task that is none."""
    if about["task"] == MazeLayout.task:
        return MazeLayout(int(about["size"]), field)
    if about["task"] == SudokuLayout.task:
        return SudokuLayout(field)
    raise UsageError(f"no such task: {about['task']}; there are {MazeLayout.task} and {SudokuLayout.task}")


def token_lengths(traced: Traced, field: int) -> dict[str, dict[str, float]]:
    """Tokens of a sequence, prompt included, per strategy: {"min", "mean", "max"}; nothing for no problems."""
    layout = layout_of(traced, field)
    besides = layout.prompt_length + MARKS + layout.answers(traced).lengths
    lengths = {name: besides + traced.traces[name].lengths for name in layout.strategies}
    return {
        name: {"min": int(tokens.min()), "mean": float(tokens.mean()), "max": int(tokens.max())}
        for name, tokens in lengths.items()
        if len(tokens)
    }
