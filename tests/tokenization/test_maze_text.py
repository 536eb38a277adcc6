"""Mazes as text and back: one literal example, exact round trips, every reason, and any text at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.jsonl import LineError
from lol_data.mazes import MAZE_STRATEGIES
from lol_data.mazes_jsonl import edges_of, problem_record, read_maze
from lol_data.ragged import Ragged
from lol_data.tokenization.maze import CELL_BASE, MazeLayout
from lol_data.tokenization.maze_text import (
    encode_completions,
    encode_prompts,
    join_edges,
    parse_completions,
    parse_prompt,
)
from lol_data.tokenization.vocabulary import ANSWER, EOS, PARSE_REASONS

from .test_maze_tokens import literal_maze

PROMPT = "maze 3x3 edges 0-1 1-2 1-4 3-4 4-5 4-7 5-8 6-7 start 4 goal 8 strategy dfs"


def test_the_text_of_a_literal_maze():
    traced = literal_maze()
    assert encode_prompts(traced.mazes, "dfs").to_pylist() == [PROMPT]
    completion = encode_completions(traced.traces["dfs"], traced.answer).to_pylist()
    assert completion == [" trace 4 1 2 1 0 1 4 5 8 answer 4 5 8 end"]
    nothing = Ragged.from_rows([[]])
    assert encode_completions(nothing, nothing).to_pylist() == [" trace answer end"]


@pytest.mark.parametrize("size", [3, 8, 15])
def test_every_row_comes_back_exactly(size):
    traced = generate_mazes(MazeSettings(size=size), seed=size, lo=0, hi=20)
    for strategy in MAZE_STRATEGIES:
        prompts = encode_prompts(traced.mazes, strategy).to_pylist()
        for row, prompt in enumerate(prompts):
            record = parse_prompt(prompt)
            expected = problem_record(traced.mazes, row) | {"strategy": strategy}
            assert record == {name: expected[name] for name in record}
            assert read_maze(record).openings == traced.mazes.openings[row].tobytes()
        parsed = parse_completions(encode_completions(traced.traces[strategy], traced.answer).to_pylist(), size)
        assert [PARSE_REASONS[code] for code in parsed.reason] == ["ok"] * 20
        for read, written in ((parsed.traces, traced.traces[strategy]), (parsed.answers, traced.answer)):
            assert np.array_equal(read.values, written.values) and np.array_equal(read.offsets, written.offsets)


def test_no_rows():
    none = generate_mazes(MazeSettings(size=4), 0, 5, 5)
    assert encode_prompts(none.mazes, "bfs").to_pylist() == []
    assert encode_completions(none.traces["bfs"], none.answer).to_pylist() == []
    assert len(parse_completions([], 4).traces) == 0


def test_edges_are_those_of_the_json_form():
    mazes = generate_mazes(MazeSettings(size=6), 1, 0, 30).mazes
    texts = join_edges(mazes, "{}:{}", "/").to_pylist()
    pairs = [[[int(cell) for cell in edge.split(":")] for edge in text.split("/")] for text in texts]
    assert pairs == [edges_of(openings, 6) for openings in mazes.openings]


def test_a_strategy_that_is_none_is_refused():
    with pytest.raises(UsageError, match="idastar"):
        encode_prompts(literal_maze().mazes, "idastar")


CASES = [
    ("ok", " trace 0 4 answer 8 end", [0, 4], [8]),
    ("ok", "trace answer end", [], []),
    ("ok", "\ttrace  0\nanswer 8 end trace 5 !", [0], [8]),
    ("empty", "", [], []),
    ("empty", " \n", [], []),
    ("bad_token", "0 4 answer 8 end", [], []),
    ("bad_token", "Trace 0", [], []),
    ("bad_token", "trace 0, 4", [], []),
    ("bad_token", "trace 0 trace", [0], []),
    ("bad_token", "trace 0 answer 4 answer 8 end", [0], [4]),
    ("bad_token", "trace 0 -1", [0], []),
    ("bad_token", "trace 04", [], []),
    ("bad_token", "trace ٣", [], []),
    ("bad_token", "trace 4 ²", [4], []),
    ("missing_answer", "trace", [], []),
    ("missing_answer", "trace 0 4", [0, 4], []),
    ("missing_answer", "trace 0 end", [0], []),
    ("missing_eos", "trace 0 answer", [0], []),
    ("missing_eos", "trace 0 answer 4 8", [0], [4, 8]),
    ("out_of_range", "trace 0 9 answer end", [0], []),
    ("out_of_range", "trace 0 answer 4 " + "9" * 9999, [0], [4]),
]


@pytest.mark.parametrize(("reason", "text", "trace", "answer"), CASES)
def test_a_reason_and_what_was_read_before_the_fault(reason, text, trace, answer):
    parsed = parse_completions([text], 3)
    assert PARSE_REASONS[parsed.reason[0]] == reason
    assert (parsed.traces[0].tolist(), parsed.answers[0].tolist()) == (trace, answer)


TOKENS = {"answer": ANSWER, "end": EOS, "trace": 0, "x": 1} | {str(cell): CELL_BASE + cell for cell in range(12)}


@settings(deadline=None)  # the parser of tokens is compiled in the first example
@given(st.lists(st.lists(st.sampled_from(sorted(TOKENS)), max_size=10), max_size=5))
def test_text_and_tokens_are_read_alike(rows):
    parsed = parse_completions([" ".join(["trace", *row]) for row in rows], 3)
    tokens = MazeLayout(3).parse(Ragged.from_rows([[TOKENS[word] for word in row] for row in rows]))
    reasons = [PARSE_REASONS[code] for code in tokens.reason]
    # The tokens after <trace> may be empty; a text of one word is not.
    assert [PARSE_REASONS[code] for code in parsed.reason] == [
        "missing_answer" if reason == "empty" else reason for reason in reasons
    ]
    for one, other in ((parsed.traces, tokens.traces), (parsed.answers, tokens.answers)):
        assert [row.tolist() for row in one] == [row.tolist() for row in other]


@given(st.text() | st.lists(st.sampled_from([*PROMPT.split(), "trace", "answer", "end"])).map(" ".join))
def test_any_text_is_read_or_refused_in_one_line(text):
    parsed = parse_completions([text], 3)
    assert (PARSE_REASONS[parsed.reason[0]] == "ok") <= (text.split()[:1] == ["trace"] and "end" in text.split())
    try:
        parse_prompt(text)
    except LineError as error:
        assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(PROMPT, "", "no 'maze'", id="nothing"),
        pytest.param("maze ", "", "no 'maze'", id="no maze"),
        pytest.param("3x3", "3x4", "no size", id="not square"),
        pytest.param("3x3", "3", "no size", id="one side"),
        pytest.param("3x3", "²x²", "no number", id="strange digits"),
        pytest.param("3x3", "2x2", "size 2 is not in", id="too small"),
        pytest.param("3x3", f"{'9' * 5000}x{'9' * 5000}", "no number", id="a huge size"),
        pytest.param("0-1", "0-1 0-1", "second time", id="an edge twice"),
        pytest.param("0-1", "0-2", "no neighbours", id="no edge of the grid"),
        pytest.param("0-1", "0:1", "no edge such as", id="no edge at all"),
        pytest.param("0-1", "0-", "no number", id="half an edge"),
        pytest.param("start 4", "start", "0 words after 'start'", id="no start"),
        pytest.param("start 4", "start 4 5", "2 words after 'start'", id="two starts"),
        pytest.param("start 4", "start 9", "outside the grid", id="the start outside"),
        pytest.param("goal 8", "goal 4", "same cell", id="start is goal"),
        pytest.param("start 4 goal 8", "goal 8 start 4", "no 'goal' where it should be", id="order"),
        pytest.param(" strategy dfs", "", "no 'strategy'", id="no strategy"),
        pytest.param("dfs", "idastar", "strategy must be one of", id="no such strategy"),
        pytest.param("dfs", "dfs please", "2 words after 'strategy'", id="more than a prompt"),
        pytest.param("3x3", "3x3" + " " * 2**20, "longer than", id="endless"),
    ],
)
def test_what_is_no_prompt_is_refused(old, new, words):
    assert old in PROMPT and parse_prompt(PROMPT)
    with pytest.raises(LineError, match=words) as caught:
        parse_prompt(PROMPT.replace(old, new))
    assert len(str(caught.value)) < 200
