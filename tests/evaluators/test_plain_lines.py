"""The quick reading of plain lines against the careful one: whatever is on a line, both say the same."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.evaluators import maze_jsonl, sudoku_jsonl
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.jsonl import read_object
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.shards.export_lines import maze_jsonl as maze_lines
from lol_data.shards.export_lines import sudoku_jsonl as sudoku_lines
from lol_data.sudokus import SUDOKU_STRATEGIES

CHECKERS = {"maze": maze_jsonl, "sudoku": sudoku_jsonl}
MAZES = [
    line
    for size in (3, 5, 15)
    for text in maze_lines(generate_mazes(MazeSettings(size=size), 1, 0, 3)).to_pylist()
    for line in text.splitlines()
]
SUDOKUS = [
    line for text in sudoku_lines(generate_sudokus(SudokuSettings(), 1, 0, 4)).to_pylist() for line in text.splitlines()
]
LINES = {"maze": MAZES, "sudoku": SUDOKUS}


def both(task, lines, monkeypatch):
    """The answers with the quick reading and without."""
    module = CHECKERS[task]
    quick = list(module.check_lines(lines))
    with monkeypatch.context() as patch:
        patch.setattr(module, "_judge_plain", lambda chunk: [None] * len(chunk))
        return quick, list(module.check_lines(lines))


@pytest.mark.parametrize("task", CHECKERS)
def test_lines_of_an_export_are_plain(task):
    chunk = [(7 + k, line.encode()) for k, line in enumerate(LINES[task])]
    answers = CHECKERS[task]._judge_plain(chunk)
    assert all(answer is not None and answer[0]["joint"] for answer in answers)
    assert [answer[0]["line"] for answer in answers] == [number for number, _ in chunk]


@pytest.mark.parametrize("task", CHECKERS)
def test_every_cut_and_every_changed_byte_gives_the_same(task, monkeypatch):
    lines = []
    for line in LINES[task][1::4][:5]:
        places = range(0, len(line), 1 + len(line) // 150)
        lines += [line[:at] for at in places] + [line[:at] + line[at + 1 :] for at in places]
        lines += [line[:at] + other + line[at + 1 :] for at in places for other in '0-.,[]{}:"\\ \n\x00\x7f\xe9eNt']
    quick, careful = both(task, lines, monkeypatch)
    assert quick == careful and 0.02 < sum("error" not in answer for answer in quick) / len(quick) < 0.9


SPACE = st.sampled_from(["", " ", "\t", "\r\n ", "\v", "\xa0"])
values = st.recursive(
    st.integers(-2, 90)
    | st.integers()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.none()
    | st.booleans()
    | st.text(max_size=4)
    | st.sampled_from(["try", "undo", "bfs", "naked_single"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=10,
)
cells = st.integers(-1, 82)
steps = st.lists(
    st.lists(cells, max_size=3)
    | st.lists(st.lists(cells, min_size=2, max_size=2), max_size=3)
    | st.tuples(st.sampled_from(["try", "undo", "redo"]), cells, cells).map(list)
    | st.tuples(st.just("undo"), cells).map(list),
    max_size=4,
)
changes = st.dictionaries(
    st.sampled_from(
        ["id", "size", "start", "goal", "edges", "strategy", "trace", "answer", "puzzle", "steps", "status", "x"]
    ),
    values
    | steps
    | st.sampled_from(MAZE_STRATEGIES + SUDOKU_STRATEGIES)
    | st.integers(2, 16)
    | st.lists(st.integers(-1, 256), max_size=6)
    | st.lists(st.lists(st.integers(-1, 9), min_size=2, max_size=2), max_size=3)
    | st.text("0123456789.x", min_size=80, max_size=82),
    max_size=3,
)


@st.composite
def a_line(draw, task):
    """A good line with some fields changed, left out, given twice, in another order, with odd white space."""
    record = json.loads(draw(st.sampled_from(LINES[task]))) | draw(changes)
    names = draw(st.permutations(sorted(record)))
    names = names[draw(st.sampled_from([0, 0, 0, 1])) :] + draw(st.sampled_from([[], [], names[:1]]))
    space = draw(SPACE)
    ascii_only = draw(st.booleans())
    fields = [
        f"{space}{json.dumps(name)}{space}:{space}{json.dumps(record[name], ensure_ascii=ascii_only)}" for name in names
    ]
    return f"{space}{{{','.join(fields)}{space}}}{space}" + draw(st.sampled_from(["", "", "\n", "}", "{}"]))


@pytest.mark.parametrize("task", CHECKERS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_both_readings_say_the_same(task, data):
    lines = data.draw(st.lists(a_line(task), min_size=1, max_size=8))
    if data.draw(st.booleans()):
        lines = [line.encode("utf-8", "surrogatepass") for line in lines]
    with pytest.MonkeyPatch.context() as patch:
        quick, careful = both(task, lines, patch)
    assert quick == careful
    assert [list(answer) for answer in quick] == [list(answer) for answer in careful]  # the order of the fields, too


@pytest.mark.parametrize("task", CHECKERS)
def test_what_is_not_plain_is_read_all_the_same(task, monkeypatch):
    good = json.loads(LINES[task][0])
    lines = [
        json.dumps(good | more, ensure_ascii=False)
        for more in (
            {"id": "é"},
            {"id": 'a"b'},
            {"id": None},
            {"note": {"a": [1.5, None]}},
            {"id": 10**30},
            {"status": 3},
        )
    ]
    lines += [json.dumps(good)[:-1] + " " * (1 << 17) + "}", "\ufeff" + json.dumps(good), json.dumps(good, indent=1)]
    quick, careful = both(task, ["", *lines], monkeypatch)
    assert quick == careful and all(answer["joint"] for answer in quick[:7])
    assert [answer["id"] for answer in quick[:7]] == ["é", 'a"b', None, 0, 10**30, 0, 0]
    assert [read_object(line.lstrip("\ufeff"))["strategy"] for line in lines] == [good["strategy"]] * len(lines)
