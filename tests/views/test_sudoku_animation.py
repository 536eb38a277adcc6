"""The page that plays a sudoku: well formed, self-contained, and at every step true to the grid."""

import json
import re
from html.parser import HTMLParser
from math import inf
from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings

from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.sudokus import SUDOKU_STRATEGIES
from lol_data.views.sudoku_animation import sudoku_animation
from lol_data.views.sudoku_picture import sudoku_picture_of
from lol_data.views.sudoku_reasons import describe, reasons

from .sudoku_common import LITERAL, fitting, pictures
from .test_sudoku_svg import SVG, givens, groups, pencilled, placed


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])


def boards(page):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)][:-1]


def shown_at(elements, step):
    """The rule of the player: from data-t on, up to data-u."""
    return [e for e in elements if float(e.get("data-t", -inf)) <= step < float(e.get("data-u", inf))]


@settings(deadline=None, max_examples=6)
@given(pictures)
def test_every_step_shows_the_grid_behind_it_and_what_proves_it(picture):
    page = sudoku_animation(picture)
    for name, root in zip(SUDOKU_STRATEGIES, boards(page), strict=True):
        given_digits, held = givens(root), reasons(picture, name)
        (made,), (pencil,), (proof, *_) = groups(root, "placed"), groups(root, "pencil"), groups(root, "proof")
        for step, grid in enumerate(picture.grids(name)):
            now = {cell: digit for cell, (digit, _) in placed(shown_at(made, step)).items()}
            assert now | given_digits == {cell: digit for cell, digit in enumerate(grid) if digit}
            marks = pencilled(shown_at(pencil, step))
            if name in ("cross_hatching", "backtracking"):
                assert not marks
            elif step % 5 == 0:
                assert marks == {(cell, d) for cell in range(81) if grid[cell] == 0 for d in fitting(grid, cell)}
            proofs = shown_at(proof, step)
            assert [int(group.get("data-t")) for group in proofs] == ([step] if step else [])
            if step and len(held[step - 1]) > 1:
                assert len(proofs[0][0]) == len(held[step - 1])  # a frame a placement
        assert [path.get("class") for path in root.iter(f"{SVG}path")].count("cursor") == 1


@settings(deadline=None, max_examples=8)
@given(pictures)
def test_the_page_says_every_step(picture):
    data = data_of(sudoku_animation(picture))
    assert (data["columns"], data["numbered"]) == (9, False)
    assert [panel["name"] for panel in data["panels"]] == list(SUDOKU_STRATEGIES)
    for panel in data["panels"]:
        trace = picture.traces[panel["name"]]
        assert [data["deeds"][k] for k in panel["does"]] == describe(picture, panel["name"])
        for cell, step in zip(panel["at"], trace, strict=True):
            cells = [step.undone] if step.undone is not None else [c for c, _ in step.placed]
            assert cell == (cells[0] if len(cells) == 1 else None)


class Tags(HTMLParser):
    """Checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        pass


def test_the_page_needs_nothing_else():
    page = sudoku_animation(LITERAL)
    Tags(page)
    assert len(re.findall("http", page)) == page.count('xmlns="http://www.w3.org/2000/svg"') == 6
    assert not re.search(r"src=|href=|url\(|@import|fetch\(|import ", page)
    assert page == sudoku_animation(LITERAL)


def test_without_a_script_nothing_is_shown_that_was_taken_away():
    page = sudoku_animation(LITERAL)
    assert "<noscript><style>[data-u] { display: none; }</style></noscript>" in page.split("</head>")[0]
    root = boards(page)[4]
    (made,) = groups(root, "placed")
    left = {cell: digit for cell, (digit, _) in placed([e for e in made if e.get("data-u") is None]).items()}
    grid = LITERAL.grids("backtracking")[-1]
    assert left | givens(root) == {cell: digit for cell, digit in enumerate(grid) if digit}


def test_the_longest_pages_are_small():
    traced = generate_sudokus(SudokuSettings(), 0, 0, 1000)
    steps = traced.traces["backtracking"].lengths
    assert steps.max() > 900  # symbols, two a step
    for row in np.argsort(steps)[-2:]:
        assert len(sudoku_animation(sudoku_picture_of(traced, int(row))).encode()) < 400_000
