"""Verdicts on the outputs of any model for sudokus, from the puzzle and the output alone.

A trace is replayed under the rules of all five strategies; nothing is compared with a stored trace or solution, and no
tracer or solver is called. What counts at every step are the givens and the digits placed so far. An answer is judged
by the rules and the givens, so a puzzle with several solutions has several right answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lol_data.evaluators.arguments import byte_rows, codes
from lol_data.evaluators.sudoku_backtracking_rule import backtracking_rule, static_order
from lol_data.evaluators.sudoku_board import UNITS, answer_fault, given_fault, read_givens
from lol_data.evaluators.sudoku_placing_rules import hidden_single_rule, naked_single_rule, propagation_rule
from lol_data.evaluators.sudoku_reasons import ANSWER_OK, NONE, SUDOKU_ANSWER, SUDOKU_ILLEGAL
from lol_data.evaluators.verdicts import MIN_PREFIX, Verdicts, verdicts_of
from lol_data.jit import njit
from lol_data.ragged import Ragged
from lol_data.sudokus import (
    BACKTRACKING,
    CELLS,
    CROSS_HATCHING,
    HIDDEN_SINGLE,
    NAKED_SINGLE,
    PROPAGATION,
    SUDOKU_STRATEGIES,
    Sudokus,
    TracedSudokus,
)
from lol_data.tokenization.vocabulary import OK, PARSE_REASONS

# Per strategy, bit t: whatever its rule allows, that of strategy t allows too. A box is a unit.
ALLOWED_BY = np.array([1, 2, 1 << HIDDEN_SINGLE | 1 << CROSS_HATCHING, 8, 16], np.uint8)


def judge_sudokus(
    sudokus: Sudokus,
    rows: ArrayLike,
    asked: ArrayLike,
    traces: Ragged,
    answers: Ragged,
    parse_reason: ArrayLike | None = None,
) -> Verdicts:
    """Judge M outputs; output k answers puzzle rows[k] and was asked for strategy asked[k].

    rows: integers (M,), 0 to len(sudokus) - 1; outputs for one puzzle are judged faster side by side. asked: integers
    (M,), codes of SUDOKU_STRATEGIES. traces: M rows of symbols. answers: M rows of 81 digits, 1 to 9. Both are integers
    of any kind; a number that means nothing is an illegal step or a wrong answer, never an error. parse_reason: codes
    of PARSE_REASONS (M,), all `ok` if not given; an output that is not `ok` is not judged further.

    A step, in `first_illegal_step` and wherever steps are counted, is a placement, a try, an undo or a wave marker, not
    a symbol; symbols that form no step are an illegal step. `sudokus.solution` is not looked at.
    Raises ValueError where the arguments do not fit together or the givens of a puzzle in use break the rules.
    """
    _check_puzzles(sudokus.puzzle, len(sudokus))
    count = len(traces)
    reasons = np.full(count, OK) if parse_reason is None else parse_reason
    reason_codes = codes("parse_reason", reasons, count, len(PARSE_REASONS)).astype(np.uint8)
    asked_codes = codes("asked", asked, count, len(SUDOKU_STRATEGIES)).astype(np.uint8)
    fault_row, *found = _judge(
        np.ascontiguousarray(sudokus.puzzle),
        codes("rows", rows, count, len(sudokus)).astype(np.int64),
        asked_codes,
        reason_codes == OK,
        *byte_rows("traces", traces, count),
        *byte_rows("answers", answers, count),
    )
    if fault_row >= 0:
        raise ValueError(f"sudoku {fault_row}: {given_fault(sudokus.puzzle[fault_row])}")
    return verdicts_of((SUDOKU_STRATEGIES, SUDOKU_ILLEGAL, SUDOKU_ANSWER), asked_codes, reason_codes, found)


def canonical_sudoku_rows(traced: TracedSudokus) -> NDArray[np.bool_]:
    """Whether all traces of a puzzle are canonical and its solution is right, bool (B,); the rule check of `verify`.

    Every trace is replayed under the rule of its own strategy only. A row whose givens break the rules is refused.
    Raises ValueError where the columns do not fit together.
    """
    sudokus, count = traced.sudokus, len(traced)
    _check_puzzles(sudokus.puzzle, count)
    if sudokus.solution.dtype != np.uint8 or sudokus.solution.shape != (count, CELLS):
        raise ValueError(f"sudokus.solution must be uint8 {(count, CELLS)}")
    puzzle = np.ascontiguousarray(sudokus.puzzle)
    good = _right_solutions(puzzle, np.ascontiguousarray(sudokus.solution))
    for code, name in enumerate(SUDOKU_STRATEGIES):
        _keep_canonical(code, puzzle, *byte_rows(name, traced.traces[name], count), good)
    return good


@njit
def _right_solutions(puzzle, solution):
    """Per row, whether the givens keep the rules and the solution is right."""
    good = np.empty(len(puzzle), np.bool_)
    used, start, _, _, _, _, _, _, _, _, _ = _scratch()
    for row in range(len(puzzle)):
        sound = read_givens(puzzle[row], used, start) >= 0
        good[row] = sound and answer_fault(puzzle[row], solution[row], used) == ANSWER_OK
    return good


@njit
def _keep_canonical(strategy, puzzle, traces, offsets, good):
    """Clear `good` where the trace of one strategy is not canonical."""
    given_used, start, choices, order, candidates, forced, single, used, grid, standing, tried = _scratch()
    for row in range(len(good)):
        if not good[row]:
            continue
        givens, trace = puzzle[row], traces[offsets[row] : offsets[row + 1]]
        empty = read_givens(givens, given_used, start)
        if strategy == NAKED_SINGLE:
            verdict = naked_single_rule(trace, givens, start, empty, candidates)
        elif strategy == PROPAGATION:
            verdict = propagation_rule(trace, givens, start, empty, candidates, forced)
        elif strategy == BACKTRACKING:
            static_order(start, choices, order)
            verdict = backtracking_rule(trace, givens, given_used, choices, order, empty, used, grid, standing, tried)
        else:
            verdict = hidden_single_rule(trace, givens, start, empty, strategy == CROSS_HATCHING, candidates, single)
        good[row] = verdict[3]


@njit
def _scratch():
    """Arrays that hold a puzzle, and those that the rules overwrite: one set per kernel call."""
    given_used, used = np.empty((2, UNITS), np.uint16)
    start, candidates, forced = np.empty((3, CELLS), np.uint16)
    single = np.empty(UNITS, np.int16)
    choices, order, grid, standing = np.empty((4, CELLS), np.uint8)
    tried = np.empty(CELLS + 1, np.uint16)
    return given_used, start, choices, order, candidates, forced, single, used, grid, standing, tried


@njit
def _judge(puzzle, rows, asked, parsed, traces, trace_offsets, answers, answer_offsets):
    """The loop over all outputs; the results as in judge_sudokus, a row that is no puzzle (or -1) before them."""
    count = len(rows)
    first_illegal_step = np.full(count, -1, np.int32)
    illegal, answer_reason, identified = np.zeros((3, count), np.uint8)
    legal, complete, canonical, exact = np.zeros((4, count), np.bool_)
    fault_row, known_row, empty = -1, -1, 0

    given_used, start, choices, order, candidates, forced, single, used, grid, standing, tried = _scratch()
    for k in range(count):
        if not parsed[k]:
            continue
        givens = puzzle[rows[k]]
        if rows[k] != known_row:
            known_row = rows[k]
            empty = read_givens(givens, given_used, start)
            if empty < 0:
                fault_row = known_row
                break
            static_order(start, choices, order)
        trace = traces[trace_offsets[k] : trace_offsets[k + 1]]
        longest, leaders = 0, 0  # most legal steps, and the strategies that allow so many
        for strategy in range(5):
            if strategy == NAKED_SINGLE:
                verdict = naked_single_rule(trace, givens, start, empty, candidates)
            elif strategy == PROPAGATION:
                verdict = propagation_rule(trace, givens, start, empty, candidates, forced)
            elif strategy == BACKTRACKING:
                verdict = backtracking_rule(
                    trace, givens, given_used, choices, order, empty, used, grid, standing, tried
                )
            else:
                verdict = hidden_single_rule(
                    trace, givens, start, empty, strategy == CROSS_HATCHING, candidates, single
                )
            steps, reason, ended, as_data_set = verdict
            if steps > longest:
                longest, leaders = steps, 0
            if steps == longest:
                leaders |= 1 << strategy
            if ended:
                identified[k] |= 1 << strategy
            if strategy == asked[k]:
                illegal[k], legal[k], complete[k], canonical[k] = reason, reason == NONE, ended, as_data_set
                if reason != NONE:
                    first_illegal_step[k] = steps
        exact[k] = identified[k] != 0
        if not exact[k] and longest >= MIN_PREFIX and np.any(leaders == ALLOWED_BY):
            identified[k] = leaders
        answer_reason[k] = answer_fault(givens, answers[answer_offsets[k] : answer_offsets[k + 1]], used)
    return fault_row, first_illegal_step, illegal, answer_reason, identified, legal, complete, canonical, exact


def _check_puzzles(puzzle: NDArray[np.uint8], count: int) -> None:
    if puzzle.dtype != np.uint8 or puzzle.shape != (count, CELLS):
        raise ValueError(f"sudokus.puzzle must be uint8 {(count, CELLS)}, not {puzzle.dtype} {puzzle.shape}")
