"""The SVG files: well formed, self-contained, and true to the sudoku, its traces and their reasons."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.sudokus import SUDOKU_STRATEGIES
from lol_data.views.sudoku_board import CELL, RING
from lol_data.views.sudoku_reasons import describe, reasons
from lol_data.views.sudoku_svg import sudoku_comparison_svg, sudoku_svg

from .sudoku_common import LITERAL, fitting, pictures

SVG = "{http://www.w3.org/2000/svg}"


def groups(root, name):
    return [group for group in root.iter(f"{SVG}g") if name in (group.get("class") or "").split()]


def cell_at(x, y):
    return int(float(y) // CELL) * 9 + int(float(x) // CELL)


def givens(root):
    (group, *_) = groups(root, "givens")
    return {cell_at(text.get("x"), text.get("y")): int(text.text) for text in group}


def placed(group):
    """{cell: (digit, step)}, and the digits must stand on a colour."""
    found = {}
    for part in group:
        x, y = re.fullmatch(r"translate\((\d+) (\d+)\)", part.get("transform")).groups()
        tint, digit, number = part
        assert re.fullmatch("#[0-9a-f]{6}", tint.get("fill"))
        assert cell_at(x, y) not in found
        found[cell_at(x, y)] = int(digit.text), int(number.text)
        assert part.get("data-t") == number.text
    return found


def pencilled(group):
    """(cell, digit) of the marks, each in its ninth of the cell."""
    found = set()
    for text in group:
        x, y, digit = float(text.get("x")), float(text.get("y")), int(text.text)
        assert (int(x % CELL // (CELL / 3)), int((y - 4) % CELL // (CELL / 3))) == ((digit - 1) % 3, (digit - 1) // 3)
        found.add((cell_at(x, y), digit))
    return found


def marked(root, name, dx, dy):
    """The cells of a path's marks; (dx, dy) is where in a cell each begins."""
    paths = [path for path in root.iter(f"{SVG}path") if path.get("class") == name]
    starts = re.findall(r"M(\d+) (\d+)", "".join(path.get("d") for path in paths[:1]))
    return {cell_at(x, y) for x, y in starts if (int(x) % CELL, int(y) % CELL) == (dx, dy)}


@settings(deadline=None, max_examples=20)
@given(pictures, st.sampled_from(SUDOKU_STRATEGIES))
def test_a_finished_trace(picture, strategy):
    root = ElementTree.fromstring(sudoku_svg(picture, strategy))
    assert givens(root) == {cell: digit for cell, digit in enumerate(picture.puzzle) if digit}
    last = {cell: step for step, made in enumerate(picture.traces[strategy], 1) for cell, _ in made.placed}
    (group,) = groups(root, "placed")[:1]
    assert placed(group) == {cell: (picture.solution[cell], step) for cell, step in last.items()}
    text = [element.text for element in root.iter(f"{SVG}text")]
    assert f"{picture.name}, {picture.clues} givens, {picture.count(strategy)}" in text
    assert "candidates" not in text


@settings(deadline=None, max_examples=60)
@given(pictures, st.sampled_from(SUDOKU_STRATEGIES), st.data())
def test_a_step(picture, strategy, data):
    step = data.draw(st.integers(1, len(picture.traces[strategy])))
    root = ElementTree.fromstring(sudoku_svg(picture, strategy, step))
    grid, held = picture.grids(strategy)[step - 1], reasons(picture, strategy)[step - 1]
    shown = {cell: digit for cell, (digit, _) in placed(groups(root, "placed")[0]).items()}
    assert shown | givens(root) == {cell: digit for cell, digit in enumerate(grid) if digit}
    assert all(number < step for _, number in placed(groups(root, "placed")[0]).values())
    marks = groups(root, "pencil")[0]
    assert pencilled(marks) == {(c, digit) for c in range(81) if grid[c] == 0 for digit in fitting(grid, c)}
    bold = [text for text in marks if text.get("font-weight") == "bold"]
    assert pencilled(bold) == set(picture.traces[strategy][step - 1].placed)
    reason = " ".join(e.text for e in root.iter(f"{SVG}text") if "reason" in (e.get("class") or ""))
    word = "wave" if strategy == "propagation" else "step"
    assert reason == f"{word} {step}: {describe(picture, strategy)[step - 1]}"
    if len(held) == 1:
        (one,) = held
        if one.holders:
            assert marked(root, "rings", CELL // 2, CELL // 2 - RING) == set(one.holders) - {one.cell}
        if one.ruled_out:
            assert marked(root, "crosses", 12, 12) == {cell for _, cell in one.ruled_out}
    else:
        frames = [path for path in root.iter(f"{SVG}path") if re.match(r"M\d+ \d+h40v40h-40z", path.get("d"))]
        kinds = {}
        for path in frames[: len(held)]:
            x, y = re.match(r"M(\d+) (\d+)", path.get("d")).groups()
            kinds[cell_at(x, y)] = "hidden single" if path.get("stroke-dasharray") else "naked single"
        assert kinds == {one.cell: one.rule for one in held}


@settings(deadline=None, max_examples=10)
@given(pictures)
def test_all_strategies_in_one_figure(picture):
    root = ElementTree.fromstring(sudoku_comparison_svg(picture))
    boards = [group for group in groups(root, "placed") if list(group) and group[0].get("transform")]
    for name, group in zip(SUDOKU_STRATEGIES, boards, strict=True):
        last = {cell: step for step, made in enumerate(picture.traces[name], 1) for cell, _ in made.placed}
        assert placed(group) == {cell: (picture.solution[cell], step) for cell, step in last.items()}
    text = [element.text for element in root.iter(f"{SVG}text")]
    assert {*SUDOKU_STRATEGIES, *(picture.count(name) for name in SUDOKU_STRATEGIES)} <= set(text)
    assert text.count("order of the steps") == 1  # one legend


STEPS = [(name, step) for name in LITERAL.traces for step in (None, len(LITERAL.traces[name]))]


@pytest.mark.parametrize(
    "draw", [sudoku_svg, sudoku_comparison_svg, *(lambda p, s=s, k=k: sudoku_svg(p, s, k) for s, k in STEPS)]
)
def test_a_file_needs_nothing_else_and_never_varies(draw):
    svg = draw(LITERAL)
    root = ElementTree.fromstring(svg)
    assert svg.startswith("<svg ") and svg.count("http") == 1 and svg.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert not re.search(r"<script|href|url\(|<image|<style", svg)
    paper = root.find(f"{SVG}rect")
    assert (paper.get("width"), paper.get("height")) == (root.get("width"), root.get("height"))
    assert root.find(f"{SVG}title").text.startswith(LITERAL.name)
    assert svg == draw(LITERAL)
    assert len(svg.encode()) < 70_000


def test_the_solution_and_nothing_else():
    root = ElementTree.fromstring(sudoku_svg(LITERAL))
    (group,) = groups(root, "solved")
    solved = {cell_at(text.get("x"), text.get("y")): int(text.text) for text in group}
    assert solved | givens(root) == dict(enumerate(LITERAL.solution))
    assert not groups(root, "placed") and not groups(root, "pencil")


def test_a_digit_that_is_undone_and_one_that_was_tried():
    root = ElementTree.fromstring(sudoku_svg(LITERAL, "backtracking", 14))
    (stroke,) = [path for path in root.iter(f"{SVG}path") if path.get("class") == "undone"]
    assert stroke.get("d").startswith(f"M{5 * CELL + 10} {3 * CELL + 34}")  # r4c6
    struck = [text for text in groups(root, "pencil")[0] if text.get("text-decoration")]
    assert pencilled(struck) == {(46, 6)}


def test_requests_that_make_no_sense():
    with pytest.raises(UsageError, match="unknown"):
        sudoku_svg(LITERAL, "ids")
    with pytest.raises(UsageError, match="step 99 does not exist"):
        sudoku_svg(LITERAL, "naked_single", 99)
    with pytest.raises(UsageError, match="step 0 does not exist"):
        sudoku_svg(LITERAL, "naked_single", 0)
    with pytest.raises(UsageError, match="step 1 of which strategy"):
        sudoku_svg(LITERAL, step=1)
