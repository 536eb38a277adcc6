"""The page that plays a maze: well formed, self-contained, small, and with the data of every strategy."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.views.maze_animation import maze_animation
from lol_data.views.maze_picture import describe, discoveries, first_visits, picture_of
from lol_data.views.player import Panel, player_page

from .common import NINE, pictures

VOID = {"meta", "input"}


class Page(HTMLParser):
    """Checks that tags are closed in order; collects ids and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.scripts = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_data(self, text):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1].get("type", "javascript")] = text


def figures(page):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


@settings(deadline=None, max_examples=15)
@given(pictures)
def test_the_page_holds_every_strategy(picture):
    text = maze_animation(picture)
    data = json.loads(Page(text).scripts["application/json"])
    assert [panel["name"] for panel in data["panels"]] == list(MAZE_STRATEGIES)
    assert data["columns"] == picture.size
    *boards, _ = figures(text)
    for panel, root in zip(data["panels"], boards, strict=True):
        trace = picture.traces[panel["name"]]
        assert panel["at"] == list(trace)
        assert [data["deeds"][k] for k in panel["does"]] == describe(picture, panel["name"])
        shown = {int(e.text): int(e.get("data-t")) for e in root.iter() if e.get("data-t") and e.text}
        assert shown == {step: step for step in first_visits(trace).values()}
        assert [e.get("class") for e in root.iter()].count("cursor") == 1
    for name, root in zip(MAZE_STRATEGIES, boards, strict=True):
        waits = [e for e in root.iter() if e.get("data-w")]
        if name in ("bfs", "astar", "bidirectional"):
            assert len(waits) == len(discoveries(picture, name))
        else:
            assert waits == []


def test_the_page_needs_nothing_else():
    text = maze_animation(NINE)
    assert len(re.findall("http", text)) == text.count('xmlns="http://www.w3.org/2000/svg"') == 6
    assert not re.search(r"src=|href=|url\(|@import|fetch\(|import ", text)
    assert "prefers-color-scheme: dark" in text and "prefers-reduced-motion" in text
    assert text == maze_animation(NINE)


def test_what_the_script_looks_for_is_there():
    text = maze_animation(NINE)
    page = Page(text)
    script = page.scripts["javascript"]
    wanted = set(re.findall(r'(?:find|getElementById)\("(\w+)"\)', script))
    assert len(wanted) >= 8
    assert wanted == set(page.ids) and len(page.ids) == len(wanted)
    for name in re.findall(r'classList\.toggle\("(\w+)"', script):
        assert f".{name}" in text.split("</style>")[0]


def test_a_page_of_the_usual_size_is_small():
    traced = generate_mazes(MazeSettings(8), 0, 0, 5000)
    steps = sum(trace.lengths for trace in traced.traces.values())
    for row in np.argsort(steps)[-3:]:
        assert len(maze_animation(picture_of(traced, int(row))).encode()) < 60_000


def test_nothing_to_fill_is_no_fault():
    picture = replace(NINE, traces={"dead_end_filling": ()})
    assert json.loads(Page(maze_animation(picture)).scripts["application/json"])["panels"][0]["at"] == []


def test_words_cannot_break_out_of_the_page():
    nasty = '</script><b id="x">$title & "'
    text = player_page(nasty, [Panel(nasty, "<svg></svg>", [(0, nasty)])], "", 1, 44)
    page = Page(text)
    assert "x" not in page.ids
    assert json.loads(page.scripts["application/json"])["deeds"] == [nasty]
