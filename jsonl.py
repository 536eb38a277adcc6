"""Lines of JSON from other programs, whatever the task: reading one, saying what is wrong with it, going through all.

Reading either gives what a line says or raises LineError with one clear line; no line stops the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

MAX_LINE = 1 << 20  # characters or bytes; the largest honest line is below 10,000
CHUNK = 256  # lines worked on together: so few that the garbage collector does not see them grow old

T = TypeVar("T")
Record = dict[str, Any]
NumberedLine = tuple[int, bytes | str]
_encode = json.JSONEncoder(separators=(",", ":")).encode


class LineError(ValueError):
    """One line is not what it should be; the message says what is wrong with it, in one line."""


def read_object(line: bytes | str) -> Record:
    """The JSON object on a line. Raises LineError."""
    if len(line) > MAX_LINE:
        raise LineError(f"the line is longer than {MAX_LINE} characters")
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique_fields, parse_constant=_no_constant)
    except LineError:
        raise
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8: byte {error.start} of the line") from None
    except json.JSONDecodeError as error:
        raise LineError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise LineError("not readable: nested too deep") from None
    except ValueError:  # an integer with thousands of digits
        raise LineError("not readable: a number is too long") from None
    if not isinstance(value, dict):
        raise LineError(f"not a JSON object but {kind(value)}")
    return value


def read_id(record: Record) -> str | int | None:
    """The id, None where there is none. Raises LineError."""
    value = record.get("id")
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise LineError(f"id must be a string or an integer, not {kind(value)}")
    return value


def read_field(record: Record, name: str) -> Any:
    """The value of a field. Raises LineError."""
    if name not in record:
        raise LineError(f"{name} is missing")
    return record[name]


class Told(dict[str, Any]):
    """An object whose line is known already."""

    __slots__ = ("text",)
    text: str


def to_line(record: Record) -> str:
    """An object as one line, without the line's end; pure ASCII, so that any string survives."""
    return record.text if isinstance(record, Told) else _encode(record)


def to_text(value: Any) -> str:
    """A value as JSON."""
    return _encode(value)


def answer_lines(
    lines: Iterable[bytes | str],
    read: Callable[[bytes | str], Record],
    understand: Callable[[int, Record], T],
    answer: Callable[[list[T]], Iterable[list[Record]]],
    on_error: Record,
    quick: Callable[[list[NumberedLine]], list[list[Record] | None]] | None = None,
    first: int = 1,
) -> Iterator[Record]:
    """The objects that answer every line that is not blank, in the order of the lines.

    A line is read, its number and object are understood, and what they mean is answered, with that of some hundred
    other lines. Where one of the first two raises LineError the answer is {"line", "id", "error"} and `on_error`.
    quick: gives the answers to those lines of a chunk that it can answer by itself, None for the others. first: the
    number of the first line.
    """
    for chunk in _chunks(numbered(lines, first)):
        results: list[list[Record] | None] = quick(chunk) if quick else [None] * len(chunk)
        understood: list[T] = []
        places: list[int] = []
        for place, (number, line) in enumerate(chunk):
            if results[place] is not None:
                continue
            record = None
            try:
                record = read(line)
                understood.append(understand(number, record))
            except LineError as error:
                results[place] = [_error_record(number, record, error) | on_error]
            else:
                places.append(place)
        for place, answers in zip(places, answer(understood) if places else (), strict=True):
            results[place] = answers
        for result in results:
            yield from result or ()


def numbered(lines: Iterable[bytes | str], first: int = 1) -> Iterator[NumberedLine]:
    """Lines with their numbers; blank lines are left out, a byte order mark at the top of all is taken off."""
    for number, line in enumerate(lines, first):
        if number == 1:
            line = line.removeprefix("\ufeff") if isinstance(line, str) else line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


def kind(value: Any) -> str:
    """What a value of JSON is, for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {int: "an integer", float: "a fraction", str: "a string", list: "a list", dict: "an object"}
    return names[type(value)]


def short(value: int | str) -> str:
    """A value for a message: one line, of bounded length. Some integers are too long to be turned into digits."""
    if isinstance(value, int) and abs(value) > 10**18:
        return "a huge number"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _chunks(lines: Iterable[NumberedLine]) -> Iterator[list[NumberedLine]]:
    chunk: list[NumberedLine] = []
    size = 0
    for numbered_line in lines:
        chunk.append(numbered_line)
        size += len(numbered_line[1])
        if len(chunk) == CHUNK or size > MAX_LINE:  # so that long lines fill no memory
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _error_record(number: int, record: Record | None, error: LineError) -> Record:
    """What is said of a line that cannot be read: its number, its id where it has one, and the error."""
    try:
        name = read_id(record) if record else None
    except LineError:
        name = None
    return {"line": number, "id": name, "error": str(error)}


def _unique_fields(pairs: list[tuple[str, Any]]) -> Record:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise LineError("a field is given twice")
    return fields


def _no_constant(text: str) -> NoReturn:
    raise LineError(f"{text} is no number of JSON")
