"""Why a step of a maze trace, or an answer, is refused: the names and their codes."""

from __future__ import annotations

MAZE_ILLEGAL = (
    "none",
    "empty_trace",  # no step at all, though one is due
    "out_of_range",  # not a cell of this maze
    "after_end",  # the strategy had already come to its end
    "wrong_start",  # the first step is not the start cell
    "already_closed",  # left the queue, or was closed, before
    "not_in_frontier",  # no neighbour of it was expanded yet
    "queue_order",  # in the queue, behind others that must leave first
    "lower_f_open",  # open, but a cell with a lower f is open too
    "wrong_side",  # the other side's cell: the two sides take turns
    "not_adjacent",  # a move to a cell that is no neighbour
    "wall",  # a move to a neighbour through a wall
    "already_visited",  # a move to a visited cell that is not the way back
    "backed_up_too_early",  # back to the parent with an unvisited neighbour left
    "start_or_goal_filled",
    "already_filled",
    "not_a_dead_end",  # not exactly one open unfilled neighbour
)
(
    NONE,
    EMPTY_TRACE,
    OUT_OF_RANGE,
    AFTER_END,
    WRONG_START,
    ALREADY_CLOSED,
    NOT_IN_FRONTIER,
    QUEUE_ORDER,
    LOWER_F_OPEN,
    WRONG_SIDE,
    NOT_ADJACENT,
    WALL,
    ALREADY_VISITED,
    BACKED_UP_TOO_EARLY,
    START_OR_GOAL_FILLED,
    ALREADY_FILLED,
    NOT_A_DEAD_END,
) = range(len(MAZE_ILLEGAL))

MAZE_ANSWER = (
    "none",
    "empty_answer",
    "out_of_range",
    "wrong_start",
    "wrong_end",
    "not_adjacent",
    "wall",
    "repeated_cell",
    "not_shortest",
)
(
    ANSWER_OK,
    ANSWER_EMPTY,
    ANSWER_OUT_OF_RANGE,
    ANSWER_WRONG_START,
    ANSWER_WRONG_END,
    ANSWER_NOT_ADJACENT,
    ANSWER_WALL,
    ANSWER_REPEATED,
    ANSWER_NOT_SHORTEST,
) = range(len(MAZE_ANSWER))
