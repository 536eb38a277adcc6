"""Sudokus to tokens and back: one literal sequence, exact round trips, every reason, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lol_data.generators.sudoku import SudokuSettings, generate_sudokus
from lol_data.ragged import Ragged
from lol_data.sudokus import DIGIT, MAX_TRIES, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE, Sudokus, TracedSudokus
from lol_data.tokenization.layout import NEUTRAL_FIELD
from lol_data.tokenization.sudoku import GRID_BASE, SYMBOL_BASE, VOCABULARY_SIZE, SudokuLayout, token_name
from lol_data.tokenization.vocabulary import ANSWER, BOS, EOS, NEUTRAL, OK, PAD, PARSE_REASONS, TRACE

LAYOUT = SudokuLayout()
PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


def digits(text):
    return np.array([[int(character) for character in text.replace(".", "0")]], np.uint8)


def literal_sudoku() -> TracedSudokus:
    """The first step of each strategy: r5c5 = 5, the last digit of row 5, column 5 or box 5 in the end."""
    place = [40, DIGIT + 5]
    traces = {
        "naked_single": place,
        "hidden_single": [UNIT + 13, *place],
        "cross_hatching": [UNIT + 22, *place],
        "propagation": [*place, WAVE],
        "backtracking": [*place, UNDO, 40],
    }
    sudokus = Sudokus(np.zeros(1, np.uint64), digits(PUZZLE), digits(SOLUTION))
    return TracedSudokus(sudokus, {name: Ragged.from_rows([trace]) for name, trace in traces.items()})


@pytest.fixture(scope="module")
def traced():
    return generate_sudokus(SudokuSettings(), seed=3, lo=0, hi=60)


def test_the_tokens_of_a_literal_sudoku():
    sudokus, suffixes = literal_sudoku().sudokus, LAYOUT.problem_suffixes(literal_sudoku())
    prompt = SudokuLayout(field=2).prompts(sudokus, np.array([SUDOKU_STRATEGIES.index("propagation")]))[0]
    # <bos>, 11 + digit of each cell, <propagation> twice
    assert prompt[:10].tolist() == [1, 16, 14, 11, 11, 18, 11, 11, 11, 11]
    assert prompt[-4:].tolist() == [18, 20, 9, 9]
    assert "".join(token_name(token) for token in prompt[1:-2]) == PUZZLE
    # <trace>, 21 + symbol ..., <answer>, 11 + digit ..., <eos>
    assert suffixes[0][:5].tolist() == [3, 61, 106, 4, 16]
    names = [[token_name(token) for token in suffix] for suffix in suffixes]
    for row in names:
        assert row[0] == "<trace>" and row[-1] == "<eos>" and row[-83] == "<answer>"
        assert "".join(row[-82:-1]) == SOLUTION
    assert [row[1:-83] for row in names] == [
        ["r5c5", "=5"],
        ["column5", "r5c5", "=5"],
        ["box5", "r5c5", "=5"],
        ["r5c5", "=5", "wave"],
        ["r5c5", "=5", "undo", "r5c5"],
    ]


def test_every_token_has_a_name_and_fits_a_byte():
    assert VOCABULARY_SIZE <= 256
    names = [token_name(token) for token in range(VOCABULARY_SIZE)]
    assert len(set(names)) == VOCABULARY_SIZE
    assert names[GRID_BASE : GRID_BASE + 10] == list(".123456789")
    assert [names[SYMBOL_BASE + symbol] for symbol in (0, 80, 81, 89, 90, 98, 99, 116, 117, 118)] == [
        *("r1c1", "r9c9", "=1", "=9", "row1", "row9", "column1", "box9", "wave", "undo")
    ]
    for token in (-1, VOCABULARY_SIZE):
        with pytest.raises(ValueError, match="outside the sudoku vocabulary"):
            token_name(token)


def test_puzzles_strategies_traces_and_answers_come_back_exactly(traced):
    asked = np.arange(len(traced)) % 6 - 1  # <neutral> and every strategy
    prompts = LAYOUT.prompts(traced.sudokus, asked)
    assert prompts.shape == (len(traced), LAYOUT.prompt_length) == (len(traced), 90)
    assert prompts.dtype == np.uint8
    assert (prompts[:, 0] == BOS).all()
    sudokus, strategies = LAYOUT.read_prompts(prompts)
    assert strategies.tolist() == asked.tolist()
    assert np.array_equal(sudokus.puzzle, traced.sudokus.puzzle)
    assert not sudokus.solution.any()  # a prompt does not say it

    suffixes = LAYOUT.problem_suffixes(traced)
    assert suffixes.values.dtype == np.uint8
    assert int(suffixes.values.max()) < VOCABULARY_SIZE
    for row, suffix in enumerate(suffixes):
        problem, strategy = divmod(row, len(SUDOKU_STRATEGIES))
        trace = traced.traces[SUDOKU_STRATEGIES[strategy]][problem]
        assert suffix[0] == TRACE
        assert np.array_equal(suffix[1 : 1 + len(trace)], trace + SYMBOL_BASE)
        parsed = LAYOUT.parse(Ragged.from_rows([suffix[1:]]))
        assert parsed.reason.tolist() == [OK]
        assert np.array_equal(parsed.traces[0], trace)
        assert np.array_equal(parsed.answers[0], traced.sudokus.solution[problem])


def test_backtracking_undoes_every_try_that_does_not_stand_so_no_trace_is_longer_than_said(traced):
    empty = 81 - traced.sudokus.clues.astype(int)
    tries = np.array([np.isin(trace, range(DIGIT + 1, DIGIT + 10)).sum() for trace in traced.traces["backtracking"]])
    undos = tries - empty
    lengths = LAYOUT.problem_suffixes(traced).lengths.reshape(-1, 5)[:, SUDOKU_STRATEGIES.index("backtracking")]
    assert lengths.tolist() == (2 * tries + 2 * undos + 81 + 3).tolist()
    assert tries.max() <= MAX_TRIES
    assert LAYOUT.longest_suffix == 2 * MAX_TRIES + 2 * (MAX_TRIES - 1) + 81 + 3 == 1106
    # The other strategies place each of at most 80 digits once, in three symbols at most.
    assert LAYOUT.longest_suffix > 3 * 81 + 81 + 3


def test_the_field_alone_depends_on_the_strategy():
    sudokus = literal_sudoku().sudokus.take(np.zeros(6, np.int64))
    prompts = SudokuLayout(field=3).prompts(sudokus, np.array([NEUTRAL_FIELD, 0, 1, 2, 3, 4]))
    assert (prompts[:, :-3] == prompts[0, :-3]).all()
    field = prompts[:, -3:]
    assert (field == field[:, :1]).all()
    assert [token_name(token) for token in field[:, 0]] == ["<neutral>", *(f"<{name}>" for name in SUDOKU_STRATEGIES)]
    for strategy in (-2, 5):
        with pytest.raises(ValueError, match="from -1 to 4"):
            LAYOUT.field_token(np.array([strategy]))


@pytest.mark.parametrize(
    ("place", "token"),
    [
        pytest.param(0, EOS, id="no bos"),
        pytest.param(1, 10, id="a strategy for a digit"),
        pytest.param(81, SYMBOL_BASE, id="a symbol for a digit"),
        pytest.param(83, 8, id="a field of two minds"),
        pytest.param((82, 83), PAD, id="a field of padding"),
        pytest.param((82, 83), 11, id="a field past the strategies"),
    ],
)
def test_what_is_no_prompt_is_refused(place, token):
    layout = SudokuLayout(field=2)
    prompts = layout.prompts(literal_sudoku().sudokus.take(np.zeros(2, np.int64)), np.array([1, 1]))
    prompts[1, list(np.atleast_1d(place))] = token
    with pytest.raises(ValueError, match="prompt 1 is not a prompt for sudokus"):
        layout.read_prompts(prompts)


def test_a_prompt_of_another_length_is_refused():
    with pytest.raises(ValueError, match="83 tokens; sudokus need 84"):
        SudokuLayout(field=2).read_prompts(np.zeros((1, 83), np.uint8))


A, B, UNDONE = SYMBOL_BASE, SYMBOL_BASE + DIGIT + 5, SYMBOL_BASE + UNDO
DOT, NINE = GRID_BASE, GRID_BASE + 9

CASES = [
    ("ok", [A, B, UNDONE, ANSWER, NINE, DOT, EOS], [0, 85, 118], [9, 0]),
    ("ok", [ANSWER, EOS, 255], [], []),
    ("empty", [], [], []),
    ("bad_token", [A, NINE], [0], []),  # digits of a grid and of a step are different tokens
    ("bad_token", [A, ANSWER, NINE, B], [0], [9]),
    ("bad_token", [A, VOCABULARY_SIZE], [0], []),
    ("bad_token", [A, ANSWER, ANSWER], [0], []),
    ("bad_token", [NEUTRAL], [], []),
    ("missing_answer", [A, B, EOS], [0, 85], []),
    ("missing_eos", [A, ANSWER, NINE], [0], [9]),
]


def test_a_reason_and_what_was_read_before_the_fault():
    parsed = LAYOUT.parse(Ragged.from_rows([tokens for _, tokens, _, _ in CASES]))
    assert [PARSE_REASONS[code] for code in parsed.reason] == [reason for reason, *_ in CASES]
    assert [row.tolist() for row in parsed.traces] == [trace for *_, trace, _ in CASES]
    assert [row.tolist() for row in parsed.answers] == [answer for *_, answer in CASES]


def reference(tokens):
    """The grammar, one regular expression over letters."""
    kinds = {ANSWER: "a", EOS: "e"} | dict.fromkeys(range(GRID_BASE, SYMBOL_BASE), "d")
    kinds |= dict.fromkeys(range(SYMBOL_BASE, VOCABULARY_SIZE), "s")
    letters = "".join(kinds.get(token, "x") for token in tokens)
    trace, marker, answer = re.match("(s*)(a?)(d*)", letters).groups()
    answer = answer if marker else ""
    after = len(trace + marker + answer)
    missing = "missing_eos" if marker else "missing_answer" if trace else "empty"
    ended = "ok" if marker else "missing_answer"
    reason = {"e": ended, "": missing}.get(letters[after : after + 1], "bad_token")
    return reason, tokens[: len(trace)], tokens[after - len(answer) : after]


likely = st.sampled_from([ANSWER, EOS, A, B, UNDONE, DOT, NINE])


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 255) | likely, max_size=12), max_size=6))
def test_any_bytes_are_read_or_given_a_reason(rows):
    parsed = LAYOUT.parse(Ragged.from_rows(rows))
    for row, tokens in enumerate(rows):
        reason, trace, answer = reference(tokens)
        assert PARSE_REASONS[parsed.reason[row]] == reason
        assert (parsed.traces[row] + SYMBOL_BASE).tolist() == trace
        assert (parsed.answers[row] + GRID_BASE).tolist() == answer
