"""What is said about an output: one array per verdict, one entry per output, whatever the task.

parsed        the output has the form it must have; if not, `parse_reason` says why and nothing else is judged
legal         every step obeys the rules of the strategy that was asked for, and there is a step if one is due;
              else `first_illegal_step` and `illegal_reason`
complete      legal, and the trace ends where that strategy must end
canonical     complete, and every free choice was made as the data set makes it
identified    the strategies for which the whole trace is legal and complete (`identified_exact`); when there is none,
              the one strategy with the strictly longest legal prefix of at least MIN_PREFIX steps, if any, together
              with those that allow whatever it allows
adherent      the strategy asked for is among the identified ones
answer_correct  the answer is right by the rules of the problem, whatever the trace; else `answer_reason`
joint         adherent, legal, complete, and the answer is right
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.jsonl import Record, Told, to_line, to_text
from lol_data.tokenization.vocabulary import OK, PARSE_REASONS

MIN_PREFIX = 2  # one step is the start cell, or one placement: that tells no strategy from another


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on M outputs. Codes index the tuples of names, which belong to the task.

    asked, parse_reason, illegal_reason, answer_reason: uint8 (M,), code 0 meaning that there is nothing to say.
    first_illegal_step: int32 (M,), -1 for none. identified: uint8 (M,), bit s for strategies[s]. The rest: bool (M,).
    """

    strategies: tuple[str, ...]
    illegal_names: tuple[str, ...]
    answer_names: tuple[str, ...]
    asked: NDArray[np.uint8]
    parsed: NDArray[np.bool_]
    parse_reason: NDArray[np.uint8]
    legal: NDArray[np.bool_]
    first_illegal_step: NDArray[np.int32]
    illegal_reason: NDArray[np.uint8]
    complete: NDArray[np.bool_]
    canonical: NDArray[np.bool_]
    identified: NDArray[np.uint8]
    identified_exact: NDArray[np.bool_]
    adherent: NDArray[np.bool_]
    answer_correct: NDArray[np.bool_]
    answer_reason: NDArray[np.uint8]
    joint: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.asked)

    def columns(self) -> dict[str, NDArray]:
        """Every array under its name, codes as codes."""
        return {name: getattr(self, name) for name in FIELDS}

    def table(self) -> pa.Table:
        """The same for people: names for codes, a list of names for `identified`."""
        columns: dict[str, Any] = dict(self.columns())
        for name, names in self._names().items():
            columns[name] = pa.DictionaryArray.from_arrays(columns[name].astype(np.int8), list(names))
        bits = (self.identified[:, None] >> np.arange(len(self.strategies), dtype=np.uint8)) & 1
        offsets = np.concatenate([[0], np.cumsum(bits.sum(axis=1))]).astype(np.int32)
        names_of_bits = pa.DictionaryArray.from_arrays(np.nonzero(bits)[1].astype(np.int8), list(self.strategies))
        columns["identified"] = pa.ListArray.from_arrays(offsets, names_of_bits)
        return pa.table(columns)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every output as plain Python values, ready for JSON: names for codes, None for "no step is illegal"."""
        return _as_rows(self._values())

    def answers(self, lines: list[int], ids: list[str | int | None]) -> Iterator[Record]:
        """The same for outputs that stood on lines: {"line", "id", "strategy"} before the verdicts.

        Most outputs have verdicts that others had before, so what follows the id is kept, as an object and as text.
        """
        known = _KNOWN.setdefault(self.strategies, {})
        if len(known) > MOST_KNOWN:
            known.clear()
        codes = zip(*(column.tolist() for column in self.columns().values()), strict=True)
        for k, (line, id, code) in enumerate(zip(lines, ids, codes, strict=True)):
            if code not in known:
                row = self.row(k)
                tail = {"strategy": row.pop("asked"), **row}
                known[code] = tail, to_line(tail).removeprefix("{")
            tail, text = known[code]
            answer = Told(line=line, id=id, **tail)
            answer["identified"] = tail["identified"].copy()
            answer.text = f'{{"line":{line},"id":{id if type(id) is int else to_text(id)},{text}'
            yield answer

    def row(self, k: int) -> dict[str, Any]:
        """Output k in the form of `rows`."""
        one: dict[str, Any] = {name: column[k : k + 1] for name, column in self.columns().items()}
        return next(replace(self, **one).rows())

    def _values(self) -> dict[str, list[Any]]:
        names = self._names()
        values = {
            name: [names[name][code] for code in column.tolist()] if name in names else column.tolist()
            for name, column in self.columns().items()
        }
        sets = [
            [name for bit, name in enumerate(self.strategies) if mask >> bit & 1]
            for mask in range(1 << len(self.strategies))
        ]
        values["first_illegal_step"] = [None if step < 0 else step for step in values["first_illegal_step"]]
        values["identified"] = [sets[mask].copy() for mask in values["identified"]]
        return values

    def _names(self) -> dict[str, tuple[str, ...]]:
        return {
            "asked": self.strategies,
            "parse_reason": PARSE_REASONS,
            "illegal_reason": self.illegal_names,
            "answer_reason": self.answer_names,
        }


MOST_KNOWN = 1 << 14  # verdicts kept as text; they take some 10 MB
_KNOWN: dict[tuple[str, ...], dict[tuple[Any, ...], tuple[Record, str]]] = {}  # by task
NAMES = ("strategies", "illegal_names", "answer_names")
FIELDS = tuple(name for name in Verdicts.__dataclass_fields__ if name not in NAMES)


def _as_rows(values: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for row in zip(*values.values(), strict=True):
        yield dict(zip(values, row, strict=True))


def verdicts_of(
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    asked: NDArray[np.uint8],
    parse_reason: NDArray[np.uint8],
    found: Sequence[NDArray],
) -> Verdicts:
    """The verdicts that follow from what a replay of M outputs found.

    names: of the strategies, of the reasons for an illegal step, of those for a wrong answer. found: arrays (M,),
    first_illegal_step, illegal_reason, answer_reason, identified, legal, complete, canonical, identified_exact; of an
    output that could not be parsed nothing but False, 0 and -1.
    """
    first_illegal_step, illegal, answer, identified, legal, complete, canonical, exact = found
    parsed = parse_reason == OK
    adherent = (identified >> asked & 1).astype(bool)
    answer_correct = parsed & (answer == 0)
    return Verdicts(
        *names,
        asked=asked,
        parsed=parsed,
        parse_reason=parse_reason,
        legal=legal,
        first_illegal_step=first_illegal_step,
        illegal_reason=illegal,
        complete=complete,
        canonical=canonical,
        identified=identified,
        identified_exact=exact,
        adherent=adherent,
        answer_correct=answer_correct,
        answer_reason=answer,
        joint=adherent & legal & complete & answer_correct,
    )
