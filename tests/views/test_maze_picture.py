"""What is drawn: rows become pictures, searches are replayed as they went, damage is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from lol_data.errors import DamageError, UsageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.views.maze_picture import describe, discoveries, first_visits, picture_of

from .common import NINE, pictures


def test_a_row_becomes_a_picture():
    traced = generate_mazes(MazeSettings(5), 1, 10, 14)
    picture = picture_of(traced, 2)
    assert (picture.id, picture.size, picture.name) == (12, 5, "5x5 maze 12")
    assert list(picture.openings) == traced.mazes.openings[2].tolist()
    assert (picture.start, picture.goal) == (traced.mazes.start[2], traced.mazes.goal[2])
    assert list(picture.answer) == traced.answer[2].tolist()
    assert {name: list(trace) for name, trace in picture.traces.items()} == {
        name: traced.traces[name][2].tolist() for name in MAZE_STRATEGIES
    }


@pytest.mark.parametrize("row", [-1, 4])
def test_a_row_that_does_not_exist(row):
    with pytest.raises(UsageError, match=f"row {row} does not exist; there are 4 rows"):
        picture_of(generate_mazes(MazeSettings(5), 1, 10, 14), row)


def test_a_strategy_without_a_trace():
    with pytest.raises(UsageError, match="'ids' is unknown; choose from bfs, dfs, astar"):
        NINE.trace("ids")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": (0, 1, 9)}, "answer names cell 9"),
        ({"answer": ()}, "answer is empty"),
        ({"answer": (0, 3)}, "answer goes from 0 to 3"),
        ({"traces": {"dfs": (0, 1, 5)}}, "dfs goes from 1 to 5"),
        ({"traces": {"bfs": ()}}, "bfs is empty"),
    ],
)
def test_what_no_search_can_have_made_is_damage(change, message):
    with pytest.raises(DamageError, match=message):
        replace(NINE, **change)


def test_a_search_that_takes_a_cell_out_of_nowhere_is_damage():
    with pytest.raises(DamageError, match="takes cell 8 at step 2"):
        discoveries(replace(NINE, traces={"bfs": (0, 8)}), "bfs")


def test_dead_end_filling_may_have_nothing_to_fill():
    assert describe(replace(NINE, traces={"dead_end_filling": ()}), "dead_end_filling") == []


@settings(deadline=None, max_examples=60)
@given(pictures)
def test_replayed_searches(picture):
    for strategy in ("bfs", "astar", "bidirectional"):
        found = discoveries(picture, strategy)
        trace = picture.traces[strategy]
        for step, cell in enumerate(trace, 1):
            assert found[cell].step < step
        known = {picture.start, *trace, *(n for cell in trace for n in picture.neighbours(cell))}
        known |= {picture.goal} if strategy == "bidirectional" else set()
        assert set(found) == known
    # In a perfect maze neither queue runs dry before the sides touch, so they take strict turns.
    found = discoveries(picture, "bidirectional")
    assert [found[cell].side for cell in picture.traces["bidirectional"]] == [
        k % 2 for k in range(len(picture.traces["bidirectional"]))
    ]
    found = discoveries(picture, "astar")
    assert [found[cell].distance for cell in picture.answer] == list(range(len(picture.answer)))


@settings(deadline=None, max_examples=60)
@given(pictures)
def test_every_step_is_described(picture):
    for strategy, trace in picture.traces.items():
        assert len(describe(picture, strategy)) == len(trace)
    moves = describe(picture, "dfs")
    assert moves.count("is walked back to") == len(moves) - len(first_visits(picture.traces["dfs"]))
    costs = [int(text.rsplit(" = ")[-1]) for text in describe(picture, "astar")]
    assert costs == sorted(costs)
    assert costs[-1] == len(picture.answer) - 1


def test_descriptions_of_a_literal_maze():
    assert describe(NINE, "bidirectional") == [
        "is expanded from the start",
        "is expanded from the goal",
        "is expanded from the start",
        "is expanded from the goal; the sides touch",
    ]
    assert describe(NINE, "dfs")[2:5] == ["is entered", "is walked back to", "is entered"]
    assert describe(NINE, "astar")[1] == "is closed: f = 1 + 3 = 4"
