"""A batch of problems as lines of JSON, made from whole columns: words are looked up and joined, never formatted.

jsonl   what `lol-data check` reads, see mazes_jsonl and sudokus_jsonl
text    {"id", "strategy", "prompt", "completion"}, see tokenization.maze_text and tokenization.sudoku_text
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lol_data.mazes import MAZE_STRATEGIES, TracedMazes
from lol_data.ragged import Ragged
from lol_data.sudokus import CELLS, DIGIT, SUDOKU_STRATEGIES, UNDO, UNIT, WAVE, Sudokus, TracedSudokus
from lol_data.tokenization import maze_text, sudoku_text
from lol_data.tokenization.text import concat, decimals, join_words

LinesOf = Callable[[Any], pa.StringArray]  # per problem the lines of all strategies, each with its end, string (B,)


def maze_jsonl(traced: TracedMazes) -> pa.StringArray:
    """Form: see mazes_jsonl."""
    mazes = traced.mazes
    edges, answer = maze_text.join_edges(mazes, "[{},{}]", ","), maze_text.join_cells(traced.answer, "{}", ",")
    start, goal = decimals(mazes.start), decimals(mazes.goal)
    head = concat('{"id":', decimals(mazes.id), f',"size":{mazes.size},"edges":[', edges, '],"start":', start)
    head = concat(head, ',"goal":', goal, ',"strategy":"')
    lines = []
    for strategy in MAZE_STRATEGIES:
        trace = maze_text.join_cells(traced.traces[strategy], "{}", ",")
        lines += [head, f'{strategy}","trace":[', trace, '],"answer":[', answer, "]}\n"]
    return concat(*lines)


def maze_prompts(traced: TracedMazes) -> pa.StringArray:
    """Form: see tokenization.maze_text."""
    head = concat('{"id":', decimals(traced.id), ',"strategy":"')
    lines = []
    for strategy in MAZE_STRATEGIES:
        prompt = maze_text.encode_prompts(traced.mazes, strategy)
        completion = maze_text.encode_completions(traced.traces[strategy], traced.answer)
        lines += [head, f'{strategy}","prompt":"', prompt, '","completion":"', completion, '"}\n']
    return concat(*lines)


def sudoku_jsonl(traced: TracedSudokus) -> pa.StringArray:
    """Form: see sudokus_jsonl."""
    sudokus = traced.sudokus
    head = concat('{"id":', decimals(sudokus.id), ',"puzzle":"', _grids(sudokus, "puzzle"), '","strategy":"')
    answer = _grids(sudokus, "solution")
    lines = []
    for strategy in SUDOKU_STRATEGIES:
        steps = _steps(strategy, traced.traces[strategy])
        lines += [head, f'{strategy}","steps":[', steps, '],"answer":"', answer, '"}\n']
    return concat(*lines)


def sudoku_prompts(traced: TracedSudokus) -> pa.StringArray:
    """Form: see tokenization.sudoku_text."""
    head = concat('{"id":', decimals(traced.id), ',"strategy":"')
    lines = []
    for strategy in SUDOKU_STRATEGIES:
        prompt = sudoku_text.encode_prompts(traced.sudokus, strategy)
        completion = sudoku_text.encode_completions(traced.traces[strategy], traced.sudokus.solution)
        lines += [head, f'{strategy}","prompt":"', prompt, '","completion":"', completion, '"}\n']
    return concat(*lines)


LINES: dict[str, dict[str, LinesOf]] = {
    "jsonl": {"maze": maze_jsonl, "sudoku": sudoku_jsonl},
    "text": {"maze": maze_prompts, "sudoku": sudoku_prompts},
}

# The words of a symbol, 128 apart. A step begins with a comma, and so does the first one of a row, where it is cut off.
_FIRST, _INSIDE, _TRY, _UNDONE, _NEW_WAVE = range(0, 5 * 128, 128)
_CELL_FORMS = {_FIRST: ",[{}", _INSIDE: ",{}", _TRY: ',["try",{}', _UNDONE: ",{}]", _NEW_WAVE: ",[[{}"}


def _words() -> pa.StringArray:
    words = [""] * (5 * 128)
    for variant, form in _CELL_FORMS.items():
        words[variant : variant + CELLS] = [form.format(cell) for cell in range(CELLS)]
        words[variant + DIGIT + 1 : variant + DIGIT + 10] = [f",{digit}]" for digit in range(1, 10)]
        words[variant + UNIT : variant + UNIT + 27] = [f",[{unit}" for unit in range(27)]
        words[variant + WAVE], words[variant + UNDO] = "]", ',["undo"'
    return pa.array(words)


_WORDS = _words()


def _steps(strategy: str, trace: Ragged) -> pa.StringArray:
    """The steps of every trace as the inside of a JSON list, string (B,)."""
    symbols = trace.values.astype(np.int64)
    before = np.concatenate([[WAVE], symbols[:-1]])[: len(symbols)]
    before[trace.offsets[:-1][trace.lengths > 0]] = WAVE  # the first symbol of a row opens a wave, too
    if strategy in ("hidden_single", "cross_hatching"):
        variant: Any = _INSIDE
    elif strategy == "propagation":
        variant = np.where(before == WAVE, _NEW_WAVE, _FIRST)
    elif strategy == "backtracking":
        variant = np.where(before == UNDO, _UNDONE, _TRY)
    else:
        variant = _FIRST
    text = join_words(_WORDS.take(pa.array(symbols + variant)), trace.offsets)
    return pc.utf8_slice_codeunits(text, 1)


def _grids(sudokus: Sudokus, name: str) -> pa.StringArray:
    characters = np.frombuffer(b".123456789", np.uint8)[getattr(sudokus, name)]
    offsets = np.arange(len(sudokus) + 1, dtype=np.int32) * CELLS
    return pa.StringArray.from_buffers(len(sudokus), pa.py_buffer(offsets), pa.py_buffer(characters))
