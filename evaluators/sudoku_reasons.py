"""Why a step of a sudoku trace, or an answer, is refused: the names and their codes."""

from __future__ import annotations

SUDOKU_ILLEGAL = (
    "none",
    "empty_trace",  # no step at all, though the grid is not full
    "not_a_cell",  # a cell is due here; also a cell outside the grid
    "not_a_digit",  # a digit is due here; also a digit that is not in 1 to 9
    "not_a_unit",  # a unit is due here
    "unfinished_step",  # the trace ends in the middle of a step
    "after_end",  # the strategy had already come to its end
    "given_changed",  # a step on a given
    "already_filled",
    "digit_in_peers",  # a given or placed digit of the cell's row, column or box
    "not_the_only_digit",  # another digit fits the cell too
    "not_a_box",
    "cell_not_in_unit",
    "not_the_only_place",  # the digit fits another cell of the unit too
    "not_forced_in_this_wave",  # by neither rule, on the grid as the wave found it
    "empty_wave",
    "wave_incomplete",  # closed with a forced placement left out
    "wrong_cell_order",  # a cell with fewer candidates is due, or the cell of the last undo
    "already_tried",
    "undo_not_last",  # not the last tried cell that still stands
    "undo_too_early",  # with a digit left to try
)
(
    NONE,
    EMPTY_TRACE,
    NOT_A_CELL,
    NOT_A_DIGIT,
    NOT_A_UNIT,
    UNFINISHED_STEP,
    AFTER_END,
    GIVEN_CHANGED,
    ALREADY_FILLED,
    DIGIT_IN_PEERS,
    NOT_THE_ONLY_DIGIT,
    NOT_A_BOX,
    CELL_NOT_IN_UNIT,
    NOT_THE_ONLY_PLACE,
    NOT_FORCED_IN_THIS_WAVE,
    EMPTY_WAVE,
    WAVE_INCOMPLETE,
    WRONG_CELL_ORDER,
    ALREADY_TRIED,
    UNDO_NOT_LAST,
    UNDO_TOO_EARLY,
) = range(len(SUDOKU_ILLEGAL))

SUDOKU_ANSWER = (
    "none",
    "empty_answer",
    "wrong_length",  # not 81 digits
    "out_of_range",  # not a digit in 1 to 9
    "given_changed",
    "duplicate_in_unit",
)
(
    ANSWER_OK,
    ANSWER_EMPTY,
    ANSWER_WRONG_LENGTH,
    ANSWER_OUT_OF_RANGE,
    ANSWER_GIVEN_CHANGED,
    ANSWER_DUPLICATE,
) = range(len(SUDOKU_ANSWER))
