"""The SVG files: well formed, self-contained, and true to the maze and its traces."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.views.maze_board import CELL
from lol_data.views.maze_picture import first_visits
from lol_data.views.maze_svg import maze_comparison_svg, maze_svg

from .common import NINE, pictures, shut_edges

SVG = "{http://www.w3.org/2000/svg}"


def layers(root, name):
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == name]


def wall_edges(group) -> list[tuple[str, int, int]]:
    """The unit walls along a path's lines."""
    edges = []
    for x, y, way, end in re.findall(r"M(\d+) (\d+)([HV])(\d+)", group.find(f"{SVG}path").get("d")):
        if way == "H":
            edges += [("-", k, int(y)) for k in range(int(x), int(end))]
        else:
            edges += [("|", int(x), k) for k in range(int(y), int(end))]
    return edges


def numbers(group, size) -> dict[int, int]:
    return {
        int(float(text.get("y")) // CELL) * size + int(float(text.get("x")) // CELL): int(text.text) for text in group
    }


def tinted(group, size) -> dict[int, int]:
    cells = {}
    for path in group:
        x, y = re.match(r"M(\d+) (\d+)", path.get("d")).groups()
        cells[int(y) * size + int(x)] = int(path.get("data-t"))
    return cells


@settings(deadline=None, max_examples=50)
@given(pictures, st.sampled_from(MAZE_STRATEGIES))
def test_walls_numbers_and_tints(picture, strategy):
    root = ElementTree.fromstring(maze_svg(picture, strategy))
    edges = wall_edges(layers(root, "walls")[0])
    assert len(edges) == len(set(edges))
    assert set(edges) == shut_edges(picture)
    visits = first_visits(picture.traces[strategy])
    assert numbers(layers(root, "numbers")[0], picture.size) == visits
    assert tinted(layers(root, "tints")[0], picture.size) == visits
    text = [element.text for element in root.iter(f"{SVG}text")]
    facts = f"{picture.name}, {len(picture.traces[strategy])} steps, answer of {len(picture.answer)} cells"
    assert facts in text and {"S", "G"} <= set(text)


@settings(deadline=None, max_examples=30)
@given(pictures)
def test_the_walk_is_drawn_move_by_move(picture):
    trace = picture.traces["dfs"]
    (walk, *_) = layers(ElementTree.fromstring(maze_svg(picture, "dfs")), "walk")
    back = walk.find(f"{SVG}g")
    assert back.get("stroke-dasharray")
    visits = first_visits(trace).values()
    assert [int(path.get("data-t")) for path in walk.findall(f"{SVG}path")] == [step for step in visits if step > 1]
    assert [int(path.get("data-t")) for path in back] == sorted({*range(1, len(trace) + 1)} - {*visits})
    ends = {}
    for path in walk.iter(f"{SVG}path"):
        step = int(path.get("data-t"))
        points = [tuple(map(float, point.split())) for point in path.get("d")[1:].split("L")]
        assert all((a[0] == b[0]) != (a[1] == b[1]) for a, b in pairwise(points))  # straight along the grid
        ends[step] = points[0], points[-1]
        (from_x, from_y), (x, y) = (picture.place(cell) for cell in trace[step - 2 : step])
        assert CELL * x < points[-1][0] < CELL * (x + 1) and CELL * y < points[-1][1] < CELL * (y + 1)
        # On the right hand of whoever goes that way; y grows downwards.
        right = points[-1][0] - CELL * (x + 0.5), points[-1][1] - CELL * (y + 0.5)
        assert (x - from_x) * right[1] - (y - from_y) * right[0] > 0
    for step in range(2, len(trace)):
        assert ends[step][1] == ends[step + 1][0]  # no gap, so the line can be followed


@settings(deadline=None, max_examples=20)
@given(pictures)
def test_all_strategies_in_one_figure(picture):
    root = ElementTree.fromstring(maze_comparison_svg(picture))
    shown = [numbers(group, picture.size) for group in layers(root, "numbers")]
    assert shown == [first_visits(picture.traces[name]) for name in MAZE_STRATEGIES]
    text = [element.text for element in root.iter(f"{SVG}text")]
    assert set(MAZE_STRATEGIES) <= set(text)
    assert text.count("order of the steps") == 1  # one legend
    assert "known, not taken" not in text  # which only the animation shows


@pytest.mark.parametrize("draw", [maze_svg, maze_comparison_svg, *(lambda p, s=s: maze_svg(p, s) for s in NINE.traces)])
def test_a_file_needs_nothing_else_and_never_varies(draw):
    svg = draw(NINE)
    root = ElementTree.fromstring(svg)
    assert svg.startswith("<svg ") and svg.count("http") == 1 and svg.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert not re.search(r"<script|href|url\(|<image|<style", svg)
    paper = root.find(f"{SVG}rect")
    assert (paper.get("width"), paper.get("height")) == (root.get("width"), root.get("height"))
    assert root.find(f"{SVG}title").text.startswith(NINE.name)
    assert svg == draw(NINE)


def test_without_a_strategy_only_the_answer_is_drawn():
    root = ElementTree.fromstring(maze_svg(NINE))
    assert not list(layers(root, "numbers")[0]) and not list(layers(root, "tints")[0])
    (line, *_) = [path for path in root.iter(f"{SVG}path") if path.get("class") == "answer"]
    middle = [CELL * k + CELL // 2 for k in range(3)]
    a, b, c = middle
    assert line.get("d") == f"M{a} {a}L{b} {a}L{b} {b}L{c} {b}L{c} {c}"


def test_an_unknown_strategy():
    with pytest.raises(UsageError, match="unknown"):
        maze_svg(NINE, "ids")
