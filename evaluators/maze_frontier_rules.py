"""The rules of the three strategies with a frontier: breadth first, bidirectional, A*.

Every rule replays one trace and returns (steps, reason, complete, canonical): how many of the first steps are legal,
why the next one is not (NONE if there is none), whether the trace is legal and ends where it must, and whether every
choice on the way was the canonical one as well.

Arguments of every rule: openings uint8 (cells,) of one maze, moves int64 (4,) = what a move N, E, S, W adds to a cell,
start, goal, trace uint8 (steps,), and scratch arrays of 256 entries whose content does not matter. A maze may have
loops, and parts that cannot be reached.

The loops over the four directions look at all four cells before they ask whether the way there is open, because a
branch that cannot be foretold costs more than the work it saves. Beyond the grid that means entries from -15 to 239 of
a scratch array, where negative ones count from its end: they exist, and what is read there is masked out.
"""

from __future__ import annotations

import numpy as np

from lol_data.evaluators.maze_reasons import (
    AFTER_END,
    ALREADY_CLOSED,
    EMPTY_TRACE,
    LOWER_F_OPEN,
    NONE,
    NOT_IN_FRONTIER,
    OUT_OF_RANGE,
    QUEUE_ORDER,
    WRONG_SIDE,
    WRONG_START,
)
from lol_data.jit import njit

# Marks of a cell in `marks`. The goal's side of a bidirectional search uses the same bits two places higher.
KNOWN, CLOSED = 1, 2
# A key of A*, 31 bits from the highest down: 8 of f (at most 253), 5 of h (at most 28), 10 of rank of insertion (a cell
# is inserted at most four times, once for a neighbour), 8 of cell.
RANK, H, F = 8, 18, 23
DIRECTION = np.array([0, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0], np.uint8)  # of a single bit


@njit
def place_in_group(queue, born, head, tail, cell):
    """Where `cell` waits among the siblings at the head of a FIFO, or -1.

    born[i] is the step that put queue[i] in. Cells put in by one step are siblings, and siblings may leave in any
    order; nobody may overtake an older family.
    """
    i = head
    while i < tail and born[i] == born[head]:
        if queue[i] == cell:
            return i
        i += 1
    return -1


@njit
def queue_fault(mark):
    """Why a cell with these marks cannot leave the queue now."""
    if mark & CLOSED:
        return ALREADY_CLOSED
    return QUEUE_ORDER if mark & KNOWN else NOT_IN_FRONTIER


@njit
def bfs_rule(openings, moves, start, goal, trace, marks, queue, born):
    """Cells leave a FIFO queue, the start first, the goal last. marks, queue: uint8. born: int16."""
    cells = len(openings)
    if len(trace) == 0:
        return 0, EMPTY_TRACE, False, False
    marks[:] = 0
    marks[start] = KNOWN
    queue[0], born[0], tail = start, -1, 1
    canonical = True
    for k in range(len(trace)):
        cell = trace[k]
        if k > 0 and trace[k - 1] == goal:
            return k, AFTER_END, False, False
        if cell >= cells:
            return k, OUT_OF_RANGE, False, False
        at = place_in_group(queue, born, k, tail, cell)
        if at < 0:
            return k, WRONG_START if k == 0 else queue_fault(marks[cell]), False, False
        if at != k:
            canonical = False
            queue[at], queue[k] = queue[k], cell
        marks[cell] |= CLOSED
        around = openings[cell]
        for d in range(4):
            near = cell + moves[d]
            new = around >> d & (marks[near] == 0)
            queue[tail], born[tail] = near, k
            marks[near] |= new * KNOWN
            tail += new
    complete = trace[-1] == goal
    return len(trace), NONE, complete, canonical and complete


@njit
def bidirectional_rule(openings, moves, start, goal, trace, marks, queue, born):
    """Two FIFOs take turns, the start's first, until an expanded cell has a neighbour known to the other side.

    A side with nothing left in its queue is passed over. marks: uint8. queue: uint8 (2, 256). born: int16 (2, 256).
    """
    cells = len(openings)
    if len(trace) == 0:
        return 0, EMPTY_TRACE, False, False
    marks[:cells] = 0
    marks[start] |= KNOWN
    marks[goal] |= KNOWN << 2
    queue[0, 0], queue[1, 0] = start, goal
    born[0, 0], born[1, 0] = -1, -1
    head0, tail0, head1, tail1 = 0, 1, 0, 1
    side = 0
    touched, canonical = False, True
    for k in range(len(trace)):
        cell = trace[k]
        if touched:
            return k, AFTER_END, False, False
        if cell >= cells:
            return k, OUT_OF_RANGE, False, False
        if side == 0 and head0 == tail0 and head1 < tail1:
            side = 1
        elif side == 1 and head1 == tail1 and head0 < tail0:
            side = 0
        head, tail = (head0, tail0) if side == 0 else (head1, tail1)
        mine, other = 2 * side, 2 - 2 * side  # how far the marks of either side are shifted
        at = place_in_group(queue[side], born[side], head, tail, cell)
        if at < 0:
            if k == 0:
                return k, WRONG_START, False, False
            fault = queue_fault(marks[cell] >> mine)
            if fault == NOT_IN_FRONTIER:
                theirs = queue_fault(marks[cell] >> other)
                fault = WRONG_SIDE if theirs == QUEUE_ORDER else theirs
            return k, fault, False, False
        if at != head:
            canonical = False
            queue[side, at], queue[side, head] = queue[side, head], cell
        head += 1
        marks[cell] |= CLOSED << mine
        around = openings[cell]
        for d in range(4):
            near = cell + moves[d]
            touched |= around >> d & marks[near] >> other & KNOWN != 0
            new = around >> d & 1 & ~(marks[near] >> mine)
            queue[side, tail], born[side, tail] = near, k
            marks[near] |= new * KNOWN << mine
            tail += new
        if side == 0:
            head0, tail0 = head, tail
        else:
            head1, tail1 = head, tail
        side = 1 - side
    return len(trace), NONE, touched, canonical and touched


@njit
def insert(keys, waiting, key):
    """Put a key into keys[:waiting], which falls."""
    while waiting > 0 and keys[waiting - 1] < key:
        keys[waiting] = keys[waiting - 1]
        waiting -= 1
    keys[waiting] = key


@njit
def remove(keys, waiting, at):
    """Take keys[at] out of keys[:waiting]."""
    for i in range(at, waiting - 1):
        keys[i] = keys[i + 1]


@njit
def place_of_cell(keys, waiting, cell):
    """Where `cell` stands in keys[:waiting], or -1; the least keys are looked at first."""
    at = waiting - 1
    while at >= 0 and keys[at] & 255 != cell:
        at -= 1
    return at


@njit
def astar_rule(openings, moves, start, goal, trace, marks, keys, across, down):
    """Closed is always an open cell with the least f = g + h, h the Manhattan distance to the goal; the goal is last.

    Equal f may be closed in any order; the canonical one is the least h, then the first inserted. h is consistent, so
    a closed cell is never opened again; an open cell that is reached more cheaply, which takes a loop, is inserted
    anew. The open cells are int32 keys in falling order, so that the canonical choice is the last one. marks: uint8.
    across, down: int16, column and row of every cell.
    """
    cells = len(openings)
    if len(trace) == 0:
        return 0, EMPTY_TRACE, False, False
    if trace[0] != start:
        return 0, WRONG_START if trace[0] < cells else OUT_OF_RANGE, False, False
    marks[:] = 0
    marks[start] = KNOWN
    start_h = abs(across[start] - across[goal]) + abs(down[start] - down[goal])
    keys[0] = start_h << F | start_h << H | np.int64(start)
    waiting, inserted = 1, 1
    canonical = True
    for k in range(len(trace)):
        cell = trace[k]
        if k > 0 and trace[k - 1] == goal:
            return k, AFTER_END, False, False
        if cell >= cells:
            return k, OUT_OF_RANGE, False, False
        if marks[cell] != KNOWN:
            return k, queue_fault(marks[cell]), False, False
        at = place_of_cell(keys, waiting, cell)
        key = keys[at]
        if key >> F != keys[waiting - 1] >> F:
            return k, LOWER_F_OPEN, False, False
        canonical &= at == waiting - 1
        remove(keys, waiting, at)
        waiting -= 1
        marks[cell] |= CLOSED
        g = (key >> F) - (key >> H & 31) + 1  # of the neighbours
        around = openings[cell]
        fresh = 0  # directions of the neighbours that are not closed
        for d in range(4):
            fresh |= around & (1 - (marks[cell + moves[d]] >> 1)) << d
        while fresh:
            near = cell + moves[DIRECTION[fresh & -fresh]]
            fresh &= fresh - 1
            h = abs(across[near] - across[goal]) + abs(down[near] - down[goal])
            if marks[near]:
                old = place_of_cell(keys, waiting, near)
                if keys[old] >> F <= g + h:
                    continue
                remove(keys, waiting, old)
                waiting -= 1
            marks[near] = KNOWN
            insert(keys, waiting, (g + h) << F | h << H | inserted << RANK | near)
            waiting += 1
            inserted += 1
    complete = trace[-1] == goal
    return len(trace), NONE, complete, canonical and complete
