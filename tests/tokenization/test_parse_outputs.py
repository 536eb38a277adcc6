"""Reading a model's output: every reason by hand, any bytes against a plain reference."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.ragged import Ragged
from lol_data.tokenization.maze import CELL_BASE, VOCABULARY_SIZE, MazeLayout
from lol_data.tokenization.vocabulary import ANSWER, BOS, EOS, NEUTRAL, PAD, PARSE_REASONS, TRACE

A, B, C = (CELL_BASE + cell for cell in (0, 4, 8))
OUTSIDE = CELL_BASE + 9  # a cell of larger mazes only

CASES = [
    ("ok", [A, B, ANSWER, C, EOS], [0, 4], [8]),
    ("ok", [ANSWER, EOS], [], []),
    ("ok", [A, ANSWER, C, EOS, TRACE, 255, A], [0], [8]),
    ("empty", [], [], []),
    ("bad_token", [A, TRACE, B], [0], []),
    ("bad_token", [PAD], [], []),
    ("bad_token", [BOS, A], [], []),
    ("bad_token", [A, ANSWER, NEUTRAL, EOS], [0], []),
    ("bad_token", [A, ANSWER, B, ANSWER, EOS], [0], [4]),
    ("bad_token", [A, VOCABULARY_SIZE], [0], []),
    ("bad_token", [A, CELL_BASE - 1], [0], []),
    ("missing_answer", [EOS], [], []),
    ("missing_answer", [A, B, EOS], [0, 4], []),
    ("missing_answer", [A, B], [0, 4], []),
    ("missing_eos", [A, ANSWER], [0], []),
    ("missing_eos", [A, ANSWER, B, C], [0], [4, 8]),
    ("out_of_range", [A, OUTSIDE, ANSWER, EOS], [0], []),
    ("out_of_range", [A, ANSWER, B, OUTSIDE], [0], [4]),
]


@pytest.mark.parametrize(("reason", "tokens", "trace", "answer"), CASES)
def test_a_reason_and_what_was_read_before_the_fault(reason, tokens, trace, answer):
    parsed = MazeLayout(3).parse(Ragged.from_rows([tokens]))
    assert PARSE_REASONS[parsed.reason[0]] == reason
    assert parsed.traces[0].tolist() == trace
    assert parsed.answers[0].tolist() == answer


def test_rows_do_not_run_into_one_another():
    parsed = MazeLayout(3).parse(Ragged.from_rows([tokens for _, tokens, _, _ in CASES]))
    assert [PARSE_REASONS[code] for code in parsed.reason] == [reason for reason, *_ in CASES]
    assert [row.tolist() for row in parsed.traces] == [trace for *_, trace, _ in CASES]
    assert [row.tolist() for row in parsed.answers] == [answer for *_, answer in CASES]


def reference(tokens, cells):
    """The grammar, one regular expression over letters."""
    kinds = {ANSWER: "a", EOS: "e"}
    kinds |= {token: "c" if token < CELL_BASE + cells else "o" for token in range(CELL_BASE, VOCABULARY_SIZE)}
    letters = "".join(kinds.get(token, "x") for token in tokens)
    trace, marker, answer = re.match("(c*)(a?)(c*)", letters).groups()
    answer = answer if marker else ""
    following = letters[len(trace + marker + answer) :][:1]
    reason = {
        "x": "bad_token",
        "a": "bad_token",
        "o": "out_of_range",
        "e": "ok" if marker else "missing_answer",
        "": "missing_eos" if marker else "missing_answer" if trace else "empty",
    }[following]
    cells_read = [token - CELL_BASE for token in tokens[: len(trace + marker + answer)] if token != ANSWER]
    return reason, [cells_read[: len(trace)], cells_read[len(trace) :]]


likely = st.sampled_from([ANSWER, EOS, A, B, C, OUTSIDE])


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 255) | likely, max_size=12), max_size=6), st.integers(3, 15))
def test_any_bytes_are_read_or_given_a_reason(rows, size):
    parsed = MazeLayout(size).parse(Ragged.from_rows(rows))
    for row, tokens in enumerate(rows):
        reason, parts = reference(tokens, size * size)
        assert PARSE_REASONS[parsed.reason[row]] == reason
        assert [parsed.traces[row].tolist(), parsed.answers[row].tolist()] == parts


@settings(deadline=None)  # the parser is compiled for each type in its first example
@given(st.lists(st.integers(-(2**15), 2**15 - 1), max_size=6))
def test_ids_of_wider_types_are_read_the_same_way(tokens):
    parsed = MazeLayout(4).parse(Ragged.from_rows([tokens], np.int64))
    assert PARSE_REASONS[parsed.reason[0]] == reference(tokens, 16)[0]
