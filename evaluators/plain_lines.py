"""Lines of JSON in their plain form, read by compiled code, a hundred times as fast as object by object.

A line is plain if it is one object whose fields are all known, each given once, and whose values are integers of at
most 18 digits, strings of printable ASCII without a backslash, or lists of such values, however deep. Every other line
is left to lol_data.jsonl, which says what is wrong with it or reads it all the same. So whoever reads plain lines may
give up on a line for any reason, but must never read out of it anything else than jsonl does.

A line becomes tokens: an integer is its value, held within LIMIT; the rest is OPEN, CLOSE or STRING.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lol_data.jit import njit
from lol_data.jsonl import NumberedLine

LIMIT = 1 << 20  # integers beyond mean nothing in any field but the id, which is read from the text
OPEN, CLOSE, STRING = LIMIT + 1, LIMIT + 2, LIMIT + 3
LONGEST = 1 << 16  # of a plain line
HEAD = ("id", "strategy", "status")  # the first names of every task; `solve` writes a status, which says nothing here
ID, STRATEGY, STATUS = range(len(HEAD))
_MOST_DIGITS = 18
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _ZERO, _NINE = b'"\\,:-09'
_LIST, _END_LIST, _OBJECT, _END_OBJECT = b"[]{}"


def word_table(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words, ASCII, for `word_code`: a row each, filled up with zeros."""
    return np.array([list(word.encode().ljust(max(map(len, words)) + 1, b"\0")) for word in words], np.uint8)


def join_lines(lines: Sequence[NumberedLine]) -> tuple[bytes, NDArray[np.int64]]:
    """All lines in one text, and where each begins and the last ends; one that is too long counts as empty."""
    parts = [line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass") for _, line in lines]
    parts = [part if len(part) <= LONGEST else b"" for part in parts]
    return b"".join(parts), np.cumsum([0, *map(len, parts)], dtype=np.int64)


def read_plain_id(text: bytes, begin: int, end: int) -> str | int | None:
    """The id that stands at text[begin:end], None where nothing stands there."""
    if begin == end:
        return None
    return text[begin + 1 : end - 1].decode() if text[begin] == _QUOTE else int(text[begin:end])


@njit
def word_code(text, begin, end, words):
    """The row of `words` that text[begin:end] is; -1 if it is none."""
    for code in range(len(words)):
        k = 0
        while begin + k < end and k < words.shape[1] and text[begin + k] == words[code, k]:
            k += 1
        if begin + k == end and words[code, k] == 0:
            return code
    return -1


@njit
def line_tokens(text, names, kinds, begins, ends, fields):
    """Whether a line is plain; if so, its values as tokens.

    text: uint8. names: of word_table. kinds, begins, ends: int32, as long as the line: the tokens and where they stand.
    fields: int64 (names, 2): per name its first token and the one behind its last; equal where it is not given.
    """
    fields[:] = 0
    end, count = len(text), 0
    at = _skip_space(text, 0, end)
    if at == end or text[at] != _OBJECT:
        return False
    while True:  # text[at] is the brace or a comma
        at = _skip_space(text, at + 1, end)
        behind = _end_of_string(text, at, end)
        if behind < 0:
            return False
        name = word_code(text, at + 1, behind - 1, names)
        if name < 0 or fields[name, 1] > 0:
            return False
        at = _skip_space(text, behind, end)
        if at == end or text[at] != _COLON:
            return False
        fields[name, 0] = count
        at, count = _value_tokens(text, at + 1, end, kinds, begins, ends, count)
        if at < 0:
            return False
        fields[name, 1] = count
        at = _skip_space(text, at, end)
        if at == end or (text[at] != _COMMA and text[at] != _END_OBJECT):
            return False
        if text[at] == _END_OBJECT:
            return _skip_space(text, at + 1, end) == end


@njit
def read_head(text, kinds, begins, ends, fields, strategies, id_span):
    """The code of the strategy, -1 where the head is not as it should be; and id_span: where the id stands."""
    at, behind = fields[STATUS]
    if behind > at and kinds[at] != STRING:
        return -1
    at, behind = fields[ID]
    if behind > at:
        if kinds[at] == OPEN:
            return -1
        id_span[0], id_span[1] = begins[at], ends[at]
    at, behind = fields[STRATEGY]
    if at == behind or kinds[at] != STRING:
        return -1
    return word_code(text, begins[at] + 1, ends[at] - 1, strategies)


@njit
def _value_tokens(text, at, end, kinds, begins, ends, count):
    """Append the tokens of the value that begins at `at`; returns the place behind it, or -1, and the new count."""
    depth = 0
    while True:
        at = _skip_space(text, at, end)
        if at == end:
            return -1, count
        begins[count], first = at, text[at]
        if _ZERO <= first <= _NINE:  # most values by far
            start, value = at, 0
            while at < end and _ZERO <= text[at] <= _NINE:
                value = 10 * value + text[at] - _ZERO
                at += 1
            if at - start > _MOST_DIGITS or (first == _ZERO and at - start > 1):
                return -1, count
            kinds[count] = min(value, LIMIT)
        elif first == _LIST:
            kinds[count] = OPEN
            depth += 1
            at += 1
        elif first == _QUOTE:
            kinds[count] = STRING
            at = _end_of_string(text, at, end)
        else:
            kinds[count], at = _negative(text, at, end)
        if at < 0:
            return -1, count
        ends[count] = at
        count += 1
        if first == _LIST:
            at = _skip_space(text, at, end)
            if at < end and text[at] != _END_LIST:
                continue
        while depth > 0:
            at = _skip_space(text, at, end)
            if at == end or text[at] != _END_LIST:
                break
            kinds[count], begins[count], ends[count] = CLOSE, at, at + 1
            count += 1
            depth -= 1
            at += 1
        if depth == 0:
            return at, count
        if at == end or text[at] != _COMMA:
            return -1, count
        at += 1


@njit
def _skip_space(text, at, end):
    while at < end and (text[at] == 32 or text[at] == 9 or text[at] == 10 or text[at] == 13):
        at += 1
    return at


@njit
def _end_of_string(text, at, end):
    """The place behind the string that begins at `at`; -1 if there is none, or one that is not plain."""
    if at == end or text[at] != _QUOTE:
        return -1
    at += 1
    while at < end and text[at] != _QUOTE:
        if not 32 <= text[at] <= 126 or text[at] == _BACKSLASH:
            return -1
        at += 1
    return at + 1 if at < end else -1


@njit
def _negative(text, at, end):
    """The negative integer that begins at `at`, held within LIMIT, and the place behind it, -1 if there is none."""
    first = at + 1
    at, value = first, 0
    while at < end and text[first - 1] == _MINUS and _ZERO <= text[at] <= _NINE:
        value = min(10 * value + text[at] - _ZERO, LIMIT)
        at += 1
    if not 1 <= at - first <= _MOST_DIGITS or (text[first] == _ZERO and at - first > 1):
        return 0, -1
    return -value, at
