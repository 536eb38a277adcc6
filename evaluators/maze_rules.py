"""Verdicts on the outputs of any model for maze problems, from the problem and the output alone.

A trace is replayed under the rules of all five strategies; nothing is compared with a stored trace, and no tracer is
called. An answer is judged as a path: through open passages, start to goal, no cell twice, and as short as can be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lol_data.evaluators.arguments import byte_rows, codes
from lol_data.evaluators.maze_frontier_rules import astar_rule, bfs_rule, bidirectional_rule
from lol_data.evaluators.maze_reasons import ANSWER_NOT_SHORTEST, ANSWER_OK, MAZE_ANSWER, MAZE_ILLEGAL, NONE
from lol_data.evaluators.maze_walk_rules import dead_end_rule, dfs_rule, distance, path_fault
from lol_data.evaluators.verdicts import MIN_PREFIX, Verdicts, verdicts_of
from lol_data.jit import njit
from lol_data.mazes import EAST, MAX_SIZE, MAZE_STRATEGIES, MIN_SIZE, NORTH, SOUTH, WEST, Mazes, TracedMazes
from lol_data.ragged import Ragged
from lol_data.tokenization.vocabulary import OK, PARSE_REASONS

BFS, DFS, ASTAR, BIDIRECTIONAL, DEAD_END_FILLING = range(len(MAZE_STRATEGIES))
SCRATCH = 256  # entries of a scratch array, more than a maze has cells
UNKNOWN = -2  # a distance not asked for yet


def judge_mazes(
    mazes: Mazes,
    rows: ArrayLike,
    asked: ArrayLike,
    traces: Ragged,
    answers: Ragged,
    parse_reason: ArrayLike | None = None,
) -> Verdicts:
    """Judge M outputs; output k answers problem rows[k] and was asked for strategy asked[k].

    rows: integers (M,), 0 to len(mazes) - 1. asked: integers (M,), codes of MAZE_STRATEGIES. traces, answers: M rows
    of integers of any kind; a number that is no cell is an illegal step or a wrong answer, never an error.
    parse_reason: codes of PARSE_REASONS (M,), all `ok` if not given; an output that is not `ok` is not judged further.
    Raises ValueError where the arguments do not fit together or `mazes` is not well formed.
    """
    _check_mazes(mazes)
    count = len(traces)
    reasons = np.full(count, OK) if parse_reason is None else parse_reason
    reason_codes = codes("parse_reason", reasons, count, len(PARSE_REASONS)).astype(np.uint8)
    asked_codes = codes("asked", asked, count, len(MAZE_STRATEGIES)).astype(np.uint8)
    found = _judge(
        mazes.size,
        mazes.openings,
        mazes.start,
        mazes.goal,
        codes("rows", rows, count, len(mazes)).astype(np.int64),
        asked_codes,
        reason_codes == OK,
        *byte_rows("traces", traces, count),
        *byte_rows("answers", answers, count),
    )
    return verdicts_of((MAZE_STRATEGIES, MAZE_ILLEGAL, MAZE_ANSWER), asked_codes, reason_codes, found)


def canonical_rows(traced: TracedMazes) -> NDArray[np.bool_]:
    """Whether all traces of a problem are canonical and its answer is right, bool (B,); the rule check of `verify`.

    Every trace is replayed under the rule of its own strategy only. A row whose problem is not well formed is refused.
    """
    mazes, count = traced.mazes, len(traced)
    _check_arrays(mazes)
    size, openings, start, goal = mazes.size, mazes.openings, mazes.start, mazes.goal
    good = _well_formed(size, openings, start, goal)
    for code, name in enumerate(MAZE_STRATEGIES):
        trace, offsets = byte_rows(name, traced.traces[name], count)
        _keep_canonical(code, size, openings, start, goal, trace, offsets, good)
    answer, offsets = byte_rows("answers", traced.answer, count)
    _keep_right(size, openings, start, goal, answer, offsets, good)
    return good


@njit
def _keep_canonical(strategy, size, openings, starts, goals, traces, offsets, good):
    """Clear `good` where the trace of one strategy is not canonical."""
    moves, passage, across, down, marks, cell_list, cell_table, visited, step_of, keys, queues, born = _scratch(size)
    for row in range(len(good)):
        if not good[row]:
            continue
        maze, start, goal = openings[row], starts[row], goals[row]
        trace = traces[offsets[row] : offsets[row + 1]]
        if strategy == BFS:
            verdict = bfs_rule(maze, moves, start, goal, trace, marks, cell_list, step_of)
        elif strategy == DFS:
            verdict = dfs_rule(maze, moves, passage, start, goal, trace, size, visited, cell_table)
        elif strategy == ASTAR:
            verdict = astar_rule(maze, moves, start, goal, trace, marks, keys, across, down)
        elif strategy == BIDIRECTIONAL:
            verdict = bidirectional_rule(maze, moves, start, goal, trace, marks, queues, born)
        else:
            verdict = dead_end_rule(maze, moves, passage, start, goal, trace, marks, cell_table)
        good[row] = verdict[3]


@njit
def _keep_right(size, openings, starts, goals, answers, offsets, good):
    """Clear `good` where the answer is no shortest path."""
    moves, passage, _, _, marks, cell_list, _, visited, _, _, _, _ = _scratch(size)
    for row in range(len(good)):
        if not good[row]:
            continue
        maze, start, goal = openings[row], starts[row], goals[row]
        answer = answers[offsets[row] : offsets[row + 1]]
        right = path_fault(maze, moves, passage, start, goal, answer, size, visited) == ANSWER_OK
        good[row] = right and distance(maze, moves, start, goal, cell_list, marks) == len(answer) - 1


@njit
def _scratch(size):
    """Tables of one size, and arrays that the rules overwrite: one set per kernel call, in local names.

    Numba counts references with atomic operations, and a tuple handed on to a rule would cost more than a short trace.
    """
    moves = np.array([-size, 1, size, -1], np.int64)
    passage = np.zeros(512, np.uint8)
    for d in range(4):
        passage[256 + moves[d]] = 1 << d
    across, down = np.zeros((2, SCRATCH), np.int16)
    for cell in range(size * size):
        across[cell], down[cell] = cell % size, cell // size
    marks, cell_list, cell_table, visited = np.empty((4, SCRATCH), np.uint8)
    step_of, keys = np.empty(SCRATCH, np.int16), np.empty(SCRATCH, np.int32)
    queues, born = np.empty((2, SCRATCH), np.uint8), np.empty((2, SCRATCH), np.int16)
    return moves, passage, across, down, marks, cell_list, cell_table, visited, step_of, keys, queues, born


@njit
def _judge(size, openings, starts, goals, rows, asked, parsed, traces, trace_offsets, answers, answer_offsets):
    """The loop over all outputs; the order of the results is that of the line in judge_mazes."""
    count = len(rows)
    first_illegal_step = np.full(count, -1, np.int32)
    illegal, answer_fault, identified = np.zeros((3, count), np.uint8)
    legal, complete, canonical, exact = np.zeros((4, count), np.bool_)
    shortest = np.full(len(openings), UNKNOWN, np.int16)  # moves of a shortest path, once it is needed

    moves, passage, across, down, marks, cell_list, cell_table, visited, step_of, keys, queues, born = _scratch(size)
    for k in range(count):
        if not parsed[k]:
            continue
        row = rows[k]
        maze, start, goal = openings[row], starts[row], goals[row]
        trace = traces[trace_offsets[k] : trace_offsets[k + 1]]
        longest, runner_up, leader = 0, 0, 0
        for strategy in range(5):
            if strategy == BFS:
                verdict = bfs_rule(maze, moves, start, goal, trace, marks, cell_list, step_of)
            elif strategy == DFS:
                verdict = dfs_rule(maze, moves, passage, start, goal, trace, size, visited, cell_table)
            elif strategy == ASTAR:
                verdict = astar_rule(maze, moves, start, goal, trace, marks, keys, across, down)
            elif strategy == BIDIRECTIONAL:
                verdict = bidirectional_rule(maze, moves, start, goal, trace, marks, queues, born)
            else:
                verdict = dead_end_rule(maze, moves, passage, start, goal, trace, marks, cell_table)
            steps, reason, ended, as_data_set = verdict
            if steps > longest:
                longest, runner_up, leader = steps, longest, strategy
            elif steps > runner_up:
                runner_up = steps
            if ended:
                identified[k] |= 1 << strategy
            if strategy == asked[k]:
                illegal[k], legal[k], complete[k], canonical[k] = reason, reason == NONE, ended, as_data_set
                if reason != NONE:
                    first_illegal_step[k] = steps
        exact[k] = identified[k] != 0
        if not exact[k] and longest >= MIN_PREFIX and longest > runner_up:
            identified[k] = 1 << leader

        answer = answers[answer_offsets[k] : answer_offsets[k + 1]]
        fault = path_fault(maze, moves, passage, start, goal, answer, size, visited)
        if fault == ANSWER_OK:
            if shortest[row] == UNKNOWN:
                shortest[row] = distance(maze, moves, start, goal, cell_list, marks)
            if len(answer) - 1 != shortest[row]:
                fault = ANSWER_NOT_SHORTEST
        answer_fault[k] = fault
    return first_illegal_step, illegal, answer_fault, identified, legal, complete, canonical, exact


@njit
def _well_formed(size, openings, starts, goals):
    """Per maze, whether every passage is open on both sides, none at the border, and start and goal are two cells."""
    cells = size * size
    good = np.empty(len(openings), np.bool_)
    for row in range(len(openings)):
        maze = openings[row]
        bad = np.uint8(0)
        for cell in range(cells):
            bad |= maze[cell] & 0xF0
        for cell in range(cells - 1):  # EAST of a cell is WEST of the next, also, both closed, across a row's end
            bad |= (maze[cell] >> 1 ^ maze[cell + 1] >> 3) & 1
        for cell in range(cells - size):
            bad |= (maze[cell] >> 2 ^ maze[cell + size]) & 1
        for k in range(size):
            bad |= maze[k] & NORTH | maze[cells - 1 - k] & SOUTH
            bad |= maze[k * size] & WEST | maze[k * size + size - 1] & EAST
        good[row] = bad == 0 and starts[row] < cells and goals[row] < cells and starts[row] != goals[row]
    return good


def _check_arrays(mazes: Mazes) -> None:
    size, count = mazes.size, len(mazes)
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(f"size {size} is not in {MIN_SIZE} to {MAX_SIZE}")
    for name, array, shape in (
        ("openings", mazes.openings, (count, size * size)),
        ("start", mazes.start, (count,)),
        ("goal", mazes.goal, (count,)),
    ):
        if array.dtype != np.uint8 or array.shape != shape:
            raise ValueError(f"mazes.{name} must be uint8 {shape}, not {array.dtype} {array.shape}")


def _check_mazes(mazes: Mazes) -> None:
    _check_arrays(mazes)
    good = _well_formed(mazes.size, mazes.openings, mazes.start, mazes.goal)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(f"maze {row}: a passage is open on one side only, or start and goal are not two cells of it")
