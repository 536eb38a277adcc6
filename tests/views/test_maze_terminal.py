"""The drawing for a terminal: two by hand, and what every drawing keeps to."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.views.maze_picture import first_visits
from lol_data.views.maze_terminal import maze_text

from .common import NINE, generated, pictures, shut_edges

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

NINE_DFS = """\
       0     1     2
    ┏━━━━━━━━━━━━━━━━━┓
  0 ┃ S1 ─── 2     3  ┃
    ┣━━━━━╸  │  ╺━━━━━┫
  3 ┃        5 ─── 6  ┃
    ┣━━━━━╸     ╻  │  ┃
  6 ┃           ┃ G7  ┃
    ┗━━━━━━━━━━━┻━━━━━┛
3x3 maze 7, dfs: 7 steps, answer of 5 cells
walk, moves back with ←: 0 1 2 ←1 4 5 8
"""

NINE_ANSWER = """\
      0   1   2
    ┏━━━━━━━━━━━┓
  0 ┃ S───┐     ┃
    ┣━━━╸ │ ╺━━━┫
  3 ┃     └───┐ ┃
    ┣━━━╸   ╻ │ ┃
  6 ┃       ┃ G ┃
    ┗━━━━━━━┻━━━┛
3x3 maze 7: answer of 5 cells
"""


def cell_text(lines, picture, cell, width=5):
    x, y = picture.place(cell)
    begin = 5 + x * (width + 1)
    return lines[2 + 2 * y][begin : begin + width]


def test_a_walk_by_hand():
    assert maze_text(NINE, "dfs") == NINE_DFS


def test_an_answer_by_hand():
    assert maze_text(NINE) == NINE_ANSWER


@settings(deadline=None, max_examples=60)
@given(pictures, st.sampled_from(MAZE_STRATEGIES))
def test_numbers_are_the_first_visits_and_lines_are_the_walls(picture, strategy):
    lines = maze_text(picture, strategy).splitlines()
    shown = {}
    for cell in range(picture.size**2):
        if number := re.search(r"\d+", cell_text(lines, picture, cell)):
            shown[cell] = int(number[0])
    assert shown == first_visits(picture.traces[strategy])
    assert "S" in cell_text(lines, picture, picture.start)
    assert "G" in cell_text(lines, picture, picture.goal)
    walls = set()
    for y in range(picture.size + 1):
        for x in range(picture.size + 1):
            if x < picture.size and lines[1 + 2 * y][5 + 6 * x] == "━":
                walls.add(("-", x, y))
            if y < picture.size and lines[2 + 2 * y][4 + 6 * x] == "┃":
                walls.add(("|", x, y))
    assert walls == shut_edges(picture)


@settings(deadline=None, max_examples=30)
@given(pictures)
def test_the_answer_runs_through_the_gaps(picture):
    lines = maze_text(picture).splitlines()
    gaps = sum(line[4 + 4 * k] == "─" for line in lines[2:-2:2] for k in range(picture.size))
    gaps += sum(line[6 + 4 * k : 7 + 4 * k] == "│" for line in lines[1:-1:2] for k in range(picture.size))
    assert gaps == len(picture.answer) - 1


@settings(deadline=None, max_examples=40)
@given(pictures, st.sampled_from((None, *MAZE_STRATEGIES)))
def test_colour_changes_no_character(picture, strategy):
    coloured = maze_text(picture, strategy, colour=True)
    assert ESCAPE.search(coloured)
    assert ESCAPE.sub("", coloured) == maze_text(picture, strategy)


@pytest.mark.parametrize(("size", "columns"), [(3, 80), (8, 80), (12, 80), (15, 95)])
def test_width(size, columns):
    for seed in range(20):
        for strategy in (None, *MAZE_STRATEGIES):
            text = maze_text(generated(size, seed), strategy)
            assert max(map(len, text.splitlines())) <= columns
            assert all(line == line.rstrip() for line in text.splitlines())


def test_the_walk_below_is_the_whole_walk():
    picture = generated(8, 5)
    below = maze_text(picture, "dfs").split("walk, moves back with ←:")[1].split()
    assert [int(cell.removeprefix("←")) for cell in below] == list(picture.traces["dfs"])
    seen = set()
    for cell in below:
        assert cell.startswith("←") == (cell.removeprefix("←") in seen)
        seen.add(cell.removeprefix("←"))


def test_an_unknown_strategy():
    with pytest.raises(UsageError, match="unknown"):
        maze_text(NINE, "ids")
