"""Sudokus as text and back: literal examples, exact round trips, every reason, and any text at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.jsonl import LineError
from lol_data.ragged import Ragged
from lol_data.sudokus import SUDOKU_STRATEGIES, SYMBOLS
from lol_data.sudokus_jsonl import grid_text
from lol_data.tokenization.sudoku import GRID_BASE, SYMBOL_BASE, SudokuLayout, symbol_name
from lol_data.tokenization.sudoku_text import (
    encode_completions,
    encode_prompts,
    parse_completions,
    parse_prompt,
)
from lol_data.tokenization.vocabulary import ANSWER, EOS, PARSE_REASONS

from .test_sudoku_tokens import PUZZLE, literal_sudoku

ROWS = "53..7.... 6..195... .98....6. 8...6...3 4..8.3..1 7...2...6 .6....28. ...419..5 ....8..79"
SOLVED = "534678912 672195348 198342567 859761423 426853791 713924856 961537284 287419635 345286179"
PROMPT = f"sudoku {ROWS} strategy backtracking"


@pytest.mark.parametrize(
    ("strategy", "steps"),
    [
        ("naked_single", "r5c5=5"),
        ("hidden_single", "column5 r5c5=5"),
        ("cross_hatching", "box5 r5c5=5"),
        ("propagation", "r5c5=5 wave"),
        ("backtracking", "r5c5=5 undo r5c5"),
    ],
)
def test_the_text_of_a_literal_sudoku(strategy, steps):
    traced = literal_sudoku()
    assert encode_prompts(traced.sudokus, strategy).to_pylist() == [f"sudoku {ROWS} strategy {strategy}"]
    completions = encode_completions(traced.traces[strategy], traced.sudokus.solution)
    assert completions.to_pylist() == [f" trace {steps} answer {SOLVED} end"]


def test_every_row_comes_back_exactly():
    traced = generate_sudokus(SudokuSettings(), seed=1, lo=0, hi=25)
    for strategy in SUDOKU_STRATEGIES:
        prompts = encode_prompts(traced.sudokus, strategy).to_pylist()
        for prompt, puzzle in zip(prompts, traced.sudokus.puzzle, strict=True):
            assert parse_prompt(prompt) == {"puzzle": grid_text(puzzle), "strategy": strategy}
        written = traced.traces[strategy]
        parsed = parse_completions(encode_completions(written, traced.sudokus.solution).to_pylist())
        assert [PARSE_REASONS[code] for code in parsed.reason] == ["ok"] * 25
        assert np.array_equal(parsed.traces.values, written.values)
        assert np.array_equal(parsed.traces.offsets, written.offsets)
        assert np.array_equal(parsed.answers.values, traced.sudokus.solution.reshape(-1))


@given(
    st.lists(st.integers(0, SYMBOLS - 1), max_size=20),
    st.lists(st.integers(0, 9), min_size=81, max_size=81),
)
def test_any_symbols_and_any_grid_come_back_exactly(symbols, grid):
    text = encode_completions(Ragged.from_rows([symbols]), np.array([grid], np.uint8)).to_pylist()
    parsed = parse_completions(text)
    assert PARSE_REASONS[parsed.reason[0]] == "ok"
    assert (parsed.traces[0].tolist(), parsed.answers[0].tolist()) == (symbols, grid)


def test_no_rows():
    none = generate_sudokus(SudokuSettings(), 0, 5, 5)
    assert encode_prompts(none.sudokus, "propagation").to_pylist() == []
    assert encode_completions(none.traces["propagation"], none.sudokus.solution).to_pylist() == []
    assert len(parse_completions([]).traces) == 0


def test_a_strategy_that_is_none_is_refused():
    with pytest.raises(UsageError, match="x_wing"):
        encode_prompts(literal_sudoku().sudokus, "x_wing")


CASES = [
    ("ok", " trace r1c1=5 undo r9c9 answer 53. 4 end", [0, 85, 118, 80], [5, 3, 0, 4]),
    ("ok", "trace answer end", [], []),
    ("ok", "\ttrace  r1c2 =1\nwave answer 0 end trace !", [1, 81, 117], [0]),
    ("ok", "trace =9 row1 column1 box9 answer end", [89, 90, 99, 116], []),
    ("empty", "", [], []),
    ("empty", " \n", [], []),
    ("bad_token", "r1c1=5 answer 5 end", [], []),
    ("bad_token", "trace r1c1=5, r1c2=3", [0], []),
    ("bad_token", "trace r1c1 = 5", [0], []),
    ("bad_token", "trace R1C1=5", [], []),
    ("bad_token", "trace r1c1=5 trace", [0, 85], []),
    ("bad_token", "trace r1c1==5", [0], []),
    ("bad_token", "trace r٣c1", [], []),
    ("bad_token", "trace 40", [], []),
    ("bad_token", "trace r1c1=5 answer 53a4 end", [0, 85], []),
    ("bad_token", "trace answer 5³ end", [], []),
    ("bad_token", "trace answer 5 answer 5 end", [], [5]),
    ("missing_answer", "trace", [], []),
    ("missing_answer", "trace r1c1=5", [0, 85], []),
    ("missing_answer", "trace r1c1=5 end", [0, 85], []),
    ("missing_eos", "trace answer", [], []),
    ("missing_eos", "trace answer 534 678", [], [5, 3, 4, 6, 7, 8]),
    ("out_of_range", "trace r0c1=5", [], []),
    ("out_of_range", "trace r10c1=5", [], []),
    ("out_of_range", "trace r1c1=0 answer end", [0], []),
    ("out_of_range", "trace row0 r1c1=5", [], []),
    ("out_of_range", "trace r1c1=" + "9" * 9999, [0], []),
]


@pytest.mark.parametrize(("reason", "text", "trace", "answer"), CASES)
def test_a_reason_and_what_was_read_before_the_fault(reason, text, trace, answer):
    parsed = parse_completions([text])
    assert PARSE_REASONS[parsed.reason[0]] == reason
    assert (parsed.traces[0].tolist(), parsed.answers[0].tolist()) == (trace, answer)


# A digit's word in the trace has a sign of equality before it, in the answer none: each stands for one token only.
TOKENS = {"answer": ANSWER, "end": EOS, "trace": 0, "x": 1, ".": GRID_BASE, "7": GRID_BASE + 7}
TOKENS |= {symbol_name(symbol): SYMBOL_BASE + symbol for symbol in (0, 8, 40, 81, 89, 90, 116, 117, 118)}


@settings(deadline=None)  # the parser of tokens is compiled in the first example
@given(st.lists(st.lists(st.sampled_from(sorted(TOKENS)), max_size=10), max_size=5))
def test_text_and_tokens_are_read_alike(rows):
    parsed = parse_completions([" ".join(["trace", *row]) for row in rows])
    tokens = SudokuLayout().parse(Ragged.from_rows([[TOKENS[word] for word in row] for row in rows]))
    reasons = [PARSE_REASONS[code] for code in tokens.reason]
    # The tokens after <trace> may be empty; a text of one word is not.
    assert [PARSE_REASONS[code] for code in parsed.reason] == [
        "missing_answer" if reason == "empty" else reason for reason in reasons
    ]
    for one, other in ((parsed.traces, tokens.traces), (parsed.answers, tokens.answers)):
        assert [row.tolist() for row in one] == [row.tolist() for row in other]


WORDS = [*PROMPT.split(), "trace", "answer", "end", "r1c1=5", "wave"]


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_read_or_refused_in_one_line(text):
    parsed = parse_completions([text])
    assert (PARSE_REASONS[parsed.reason[0]] == "ok") <= (text.split()[:1] == ["trace"] and "end" in text.split())
    try:
        parse_prompt(text)
    except LineError as error:
        assert len(str(error).splitlines()) == 1


def test_a_prompt_may_hold_its_grid_in_any_parts():
    expected = {"puzzle": PUZZLE, "strategy": "backtracking"}
    assert parse_prompt(PROMPT) == parse_prompt(f"sudoku {PUZZLE} strategy backtracking") == expected


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(PROMPT, "", "not a sudoku prompt: no 'sudoku'", id="nothing"),
        pytest.param("sudoku ", "", "no 'sudoku'", id="no sudoku"),
        pytest.param(" strategy backtracking", "", "no 'strategy'", id="no strategy"),
        pytest.param("backtracking", "x_wing", "strategy must be one of", id="no such strategy"),
        pytest.param("backtracking", "backtracking please", "2 words after 'strategy'", id="more than a prompt"),
        pytest.param("79 ", "7 ", "80 characters, not 81", id="a cell too few"),
        pytest.param("79 ", "799 ", "82 characters, not 81", id="a cell too many"),
        pytest.param("53..", "x3..", "at character 0", id="a letter"),
        pytest.param("53..", "٣3..", "at character 0", id="a strange digit"),
        pytest.param(" strategy", " " * 2**20 + " strategy", "longer than", id="endless"),
    ],
)
def test_what_is_no_prompt_is_refused(old, new, words):
    assert old in PROMPT and parse_prompt(PROMPT)
    with pytest.raises(LineError, match=words) as caught:
        parse_prompt(PROMPT.replace(old, new))
    assert len(str(caught.value)) < 200
