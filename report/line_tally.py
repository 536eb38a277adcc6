"""What a report on other people's outputs keeps of their lines: counts, and the outputs that are worth a look.

A tally is made of a block of lines, wherever they are judged, and tallies add up: what they hold does not grow with
the number of lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lol_data.evaluators.summary import SCHEMA_VERSION, summarise
from lol_data.evaluators.verdicts import FIELDS, Verdicts
from lol_data.jsonl import Record
from lol_data.report.samples import BEST, FAULTS, WORST

ERRORS = 30  # lines that could not be read and are named
LONGEST = 1 << 16  # bytes of a line that the browser of outputs may get; an honest one is below 10,000
FLAGS = (*FAULTS, "canonical", "joint")


@dataclass(frozen=True, slots=True)
class KeptLine:
    """An output that the browser may show. faults: failed verdicts. first: the first illegal step, or a huge number."""

    faults: int
    first: int
    line: bytes
    record: Record

    @property
    def rank(self) -> tuple[int, int, int]:
        """Least for the worst."""
        return -self.faults, self.first, self.record["line"]


@dataclass
class Tally:
    """Counts of judged lines.

    counts: outputs by (strategy, identified strategies, verdicts of FLAGS). reasons: outputs by (strategy, what is
    wrong). errors: lines that could not be read; the first of them are named. kept: by (strategy, whether anything
    failed), worst first.
    """

    counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    errors: int = 0
    named: list[tuple[int, str]] = field(default_factory=list)
    kept: dict[tuple[str, bool], list[KeptLine]] = field(default_factory=dict)

    @staticmethod
    def of(records: list[Record], lines: Sequence[bytes], first: int) -> Tally:
        """Of a block of lines, the first of which has the number `first`."""
        tally = Tally()
        for record in records:
            if "error" in record:
                tally.errors += 1
                tally.named.append((record["line"], record["error"]))
                continue
            strategy = record["strategy"]
            flags = tuple(record[name] for name in FLAGS)
            tally.counts[strategy, tuple(record["identified"]), flags] += 1
            for name, fine in (("parse_reason", "ok"), ("illegal_reason", "none"), ("answer_reason", "none")):
                if record[name] != fine:
                    tally.reasons[strategy, name.removesuffix("_reason"), record[name]] += 1
            line = lines[record["line"] - first]
            if len(line) <= LONGEST:
                faults = flags[: len(FAULTS)].count(False)
                step = record["first_illegal_step"]
                kept = KeptLine(faults, 1 << 40 if step is None else step, line, record)
                tally.kept.setdefault((strategy, faults > 0), []).append(kept)
        tally._cut()
        return tally

    def add(self, other: Tally) -> None:
        """Take another one's lines in, which come later."""
        self.counts.update(other.counts)
        self.reasons.update(other.reasons)
        self.errors += other.errors
        self.named += other.named
        for key, kept in other.kept.items():
            self.kept.setdefault(key, []).extend(kept)
        self._cut()

    def _cut(self) -> None:
        del self.named[ERRORS:]
        for (_, faulty), kept in self.kept.items():
            kept.sort(key=lambda one: one.rank)
            del kept[WORST if faulty else BEST :]

    def summary(self, strategies: tuple[str, ...]) -> dict[str, Any]:
        """Rates, intervals and the confusion matrix of all outputs, in the form of an evaluation's summary."""
        keys = list(self.counts)
        columns: dict[str, Any] = {
            name: np.zeros(len(keys), np.uint8 if name.endswith("reason") else np.int32) for name in FIELDS
        }
        columns["asked"] = np.array([strategies.index(key[0]) for key in keys], np.uint8)
        columns["identified"] = np.array(
            [sum(1 << strategies.index(name) for name in key[1]) for key in keys], np.uint8
        )
        for place, name in enumerate(FLAGS):
            columns[name] = np.array([key[2][place] for key in keys], bool)
        verdicts = Verdicts(strategies, ("none",), ("none",), **columns)
        weight = np.array([self.counts[key] for key in keys], np.int64)
        about = {"schema_version": SCHEMA_VERSION, "protocol": "lines", "n": int(weight.sum()), "errors": self.errors}
        return {**about, **summarise(verdicts, weight=weight)}

    def browser_lines(self) -> list[KeptLine]:
        """The outputs for the browser, worst first."""
        return sorted((one for kept in self.kept.values() for one in kept), key=lambda one: one.rank)
