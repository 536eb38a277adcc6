"""The rules of depth first and dead-end filling, and of the answer. Arguments and results: see maze_frontier_rules.

`passage`, uint8 (512,), maps the difference of two cell ids, plus 256, to the direction bit of that move, and every
other difference to 0. One look-up tells whether a move is open, since no passage leads out of the grid.
"""

from __future__ import annotations

import numpy as np

from lol_data.evaluators.maze_frontier_rules import DIRECTION
from lol_data.evaluators.maze_reasons import (
    AFTER_END,
    ALREADY_FILLED,
    ALREADY_VISITED,
    ANSWER_EMPTY,
    ANSWER_NOT_ADJACENT,
    ANSWER_OK,
    ANSWER_OUT_OF_RANGE,
    ANSWER_REPEATED,
    ANSWER_WALL,
    ANSWER_WRONG_END,
    ANSWER_WRONG_START,
    BACKED_UP_TOO_EARLY,
    EMPTY_TRACE,
    NONE,
    NOT_A_DEAD_END,
    NOT_ADJACENT,
    OUT_OF_RANGE,
    START_OR_GOAL_FILLED,
    WALL,
    WRONG_START,
)
from lol_data.jit import njit

FILLED = 255  # in place of the directions of the unfilled neighbours


@njit
def dead_end(ways):
    """1 if exactly one direction bit is set, else 0."""
    return np.int64((ways != 0) & (ways & (ways - 1) == 0))


@njit
def move_fault(moves, here, there, size):
    """NOT_ADJACENT or WALL, for a move that no open passage allows."""
    move = np.int64(there) - np.int64(here)
    if move == moves[0] or move == moves[2]:
        return WALL
    if (move == moves[1] or move == moves[3]) and here // size == there // size:
        return WALL
    return NOT_ADJACENT  # also from the last cell of a row to the first of the next: they differ by one


@njit
def joined(openings, passage, here, there):
    """Is there an open passage from here to there? passage: uint8 (512,), see the note above."""
    return openings[here] & passage[np.int64(there) - np.int64(here) + 256] != 0


@njit
def dfs_rule(openings, moves, passage, start, goal, trace, size, visited, parent):
    """A walk from the start to the goal: on to an unvisited neighbour, or back to the parent when none is left.

    visited: uint8. parent: uint8.
    """
    cells = len(openings)
    if len(trace) == 0:
        return 0, EMPTY_TRACE, False, False
    if trace[0] != start:
        return 0, WRONG_START if trace[0] < cells else OUT_OF_RANGE, False, False
    visited[:] = 0
    visited[start] = 1
    parent[start] = start
    canonical = True
    for k in range(1, len(trace)):
        here, there = trace[k - 1], trace[k]
        if here == goal:
            return k, AFTER_END, False, False
        if there >= cells:
            return k, OUT_OF_RANGE, False, False
        if not joined(openings, passage, here, there):
            return k, move_fault(moves, here, there, size), False, False
        if visited[there] and there != parent[here]:
            return k, ALREADY_VISITED, False, False
        around = openings[here]
        fresh = 0  # directions of the unvisited neighbours
        for d in range(4):
            fresh |= (around & 1 << d) * (1 - visited[here + moves[d]])
        if not visited[there]:
            canonical &= fresh & -fresh == passage[np.int64(there) - np.int64(here) + 256]
            visited[there] = 1
            parent[there] = here
        elif fresh:
            return k, BACKED_UP_TOO_EARLY, False, False
    complete = trace[-1] == goal
    return len(trace), NONE, complete, canonical and complete


@njit
def dead_end_rule(openings, moves, passage, start, goal, trace, ways, wave):
    """Fill any cell that has exactly one unfilled neighbour now, never the start or the goal, until none is left.

    Canonical: in rounds, each in index order. A cell belongs to the round after the one that made it a dead end, so
    the trace is canonical just when (round, cell) rises all along. ways, wave: uint8.
    """
    cells = len(openings)
    if len(trace) > 0 and trace[0] in (start, goal):  # other strategies' traces leave here
        return 0, START_OR_GOAL_FILLED, False, False
    left = 0  # dead ends that may be filled now
    for cell in range(cells):
        ways[cell] = openings[cell]  # directions of the unfilled neighbours
        wave[cell] = 0
        left += dead_end(ways[cell])
    left -= dead_end(ways[start])
    left -= dead_end(ways[goal])
    if len(trace) == 0 and left > 0:
        return 0, EMPTY_TRACE, False, False
    canonical = True
    last = -1
    for k in range(len(trace)):
        cell = trace[k]
        if left == 0:
            return k, AFTER_END, False, False
        if cell >= cells:
            return k, OUT_OF_RANGE, False, False
        if cell in (start, goal):
            return k, START_OR_GOAL_FILLED, False, False
        if not dead_end(ways[cell]):
            return k, ALREADY_FILLED if ways[cell] == FILLED else NOT_A_DEAD_END, False, False
        rank = wave[cell] * cells + cell
        canonical &= rank > last
        last = rank
        near = cell + moves[DIRECTION[ways[cell]]]
        ways[cell] = FILLED
        left -= 1
        was = dead_end(ways[near])
        ways[near] -= passage[np.int64(cell) - near + 256]
        if near != start and near != goal:
            left += dead_end(ways[near]) - was
            wave[near] = wave[cell] + 1
    return len(trace), NONE, left == 0, canonical and left == 0


@njit
def distance(openings, moves, start, goal, queue, marks):
    """Moves on a shortest way from start to goal, -1 where there is none. queue, marks: uint8."""
    marks[:] = 0
    marks[start] = 1
    queue[0] = start
    head, tail, steps = 0, 1, 0
    while head < tail:
        steps += 1
        ring_end = tail
        while head < ring_end:
            cell = queue[head]
            head += 1
            around = openings[cell]
            for d in range(4):
                near = cell + moves[d]
                new = around >> d & (marks[near] == 0)
                queue[tail] = near
                marks[near] |= new
                tail += new
        if marks[goal]:
            return steps
    return -1


@njit
def path_fault(openings, moves, passage, start, goal, answer, size, visited):
    """Why an answer is no path of open passages from start to goal without a cell twice; ANSWER_OK if it is one.

    Whether the path is a shortest one is not looked at. visited: uint8.
    """
    cells = len(openings)
    if len(answer) == 0:
        return ANSWER_EMPTY
    visited[:cells] = 0
    for k in range(len(answer)):
        cell = answer[k]
        if cell >= cells:
            return ANSWER_OUT_OF_RANGE
        if k == 0:
            if cell != start:
                return ANSWER_WRONG_START
        else:
            if not joined(openings, passage, answer[k - 1], cell):
                wall = move_fault(moves, answer[k - 1], cell, size) == WALL
                return ANSWER_WALL if wall else ANSWER_NOT_ADJACENT
        if visited[cell]:
            return ANSWER_REPEATED
        visited[cell] = 1
    return ANSWER_OK if answer[-1] == goal else ANSWER_WRONG_END
