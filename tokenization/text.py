"""What the text forms of all tasks have in common: fields of a prompt, the frame of a completion, columns of strings.

    prompt       TASK word ... strategy NAME
    completion    trace word ... answer word ... end

Words stand apart by white space. A completion begins with a space, so that prompt + completion is one text whose words
a tokeniser cuts as it does inside of one.

Writing goes by the column: whole Arrow arrays of strings, so that a million lines take seconds. Reading takes any
string there is: a prompt gives its problem or an error, a completion a reason of `vocabulary.PARSE_REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lol_data.jsonl import MAX_LINE, LineError
from lol_data.ragged import Ragged
from lol_data.tokenization.layout import ParsedOutputs
from lol_data.tokenization.vocabulary import BAD_TOKEN, EMPTY, MISSING_ANSWER, MISSING_EOS, OK

TRACE_WORD, ANSWER_WORD, END_WORD = "trace", "answer", "end"
Reader = Callable[[str], Sequence[int] | int]  # the numbers that a word stands for, or the reason why for none


class PromptFields(dict[str, list[str]]):
    """The words behind each field's name."""

    def only(self, field: str) -> str:
        """The single word of a field. Raises LineError."""
        if len(self[field]) != 1:
            raise LineError(f"not a {next(iter(self))} prompt: {len(self[field])} words after {field!r}, not one")
        return self[field][0]


def prompt_fields(text: str, names: Sequence[str]) -> PromptFields:
    """The fields of a prompt, which stand in the order of `names`; the first one is the task. Raises LineError."""
    if len(text) > MAX_LINE:
        raise LineError(f"the prompt is longer than {MAX_LINE} characters")
    fields = PromptFields()
    for word in text.split():
        if len(fields) < len(names) and word == names[len(fields)]:
            values = fields[word] = []
        elif fields:
            values.append(word)
        else:
            break
    if len(fields) < len(names):
        raise LineError(f"not a {names[0]} prompt: no {names[len(fields)]!r} where it should be")
    return fields


def completion(traces: pa.StringArray, answers: pa.StringArray) -> pa.StringArray:
    """Completions of traces and answers in words, each with a space before it, string (B,)."""
    return concat(f" {TRACE_WORD}", traces, f" {ANSWER_WORD}", answers, f" {END_WORD}")


def parse_words(texts: Iterable[Iterable[str]], read_step: Reader, read_answer: Reader) -> ParsedOutputs:
    """What completions, given as their words, say, by the grammar `trace step* answer answer* end`."""
    parsed = [_parse(iter(words), read_step, read_answer) for words in texts]
    traces = Ragged.from_rows([trace for trace, _, _ in parsed], np.int16)
    answers = Ragged.from_rows([answer for _, answer, _ in parsed], np.int16)
    return ParsedOutputs(traces, answers, np.array([code for _, _, code in parsed], np.uint8))


def concat(*parts: pa.StringArray | str) -> pa.StringArray:
    """Columns of strings, and strings that are the same in every row, joined row by row."""
    return pc.binary_join_element_wise(*parts, "")


def join_words(words: pa.StringArray, offsets: NDArray[np.int64], separator: str = "") -> pa.StringArray:
    """Rows of words as one text each, string (rows,); row i is words[offsets[i]:offsets[i + 1]]."""
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), words), separator)


def decimals(numbers: NDArray[np.unsignedinteger]) -> pa.StringArray:
    """Numbers (B,) in decimal, string (B,)."""
    return pa.array(numbers).cast(pa.string())


def _parse(words, read_step: Reader, read_answer: Reader) -> tuple[list[int], list[int], int]:
    trace: list[int] = []
    answer: list[int] = []
    first = next(words, None)
    if first != TRACE_WORD:
        return trace, answer, EMPTY if first is None else BAD_TOKEN
    part, read, without_end = trace, read_step, MISSING_ANSWER
    for word in words:
        if word == END_WORD:
            return trace, answer, OK if part is answer else MISSING_ANSWER
        if word == ANSWER_WORD and part is trace:
            part, read, without_end = answer, read_answer, MISSING_EOS
            continue
        numbers = read(word)
        if isinstance(numbers, int):
            return trace, answer, numbers
        part += numbers
    return trace, answer, without_end
