"""The deep look of `verify`: every stored row against the row that the plan derives, and against the rules.

What a row consists of is known to its task, its rules to the caller's rule check; the rest compares columns by id.
Everything heavy runs without the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data.errors import DamageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.ragged import Ragged
from lol_data.shards.duplicates import UnitKeys, duplicate_ids
from lol_data.shards.engines import Progress, RowCount, run_threads
from lol_data.shards.kernels import (
    common_ids,
    content_hash,
    differing,
    equal_orders,
    pairs_of,
    row_hashes,
)
from lol_data.shards.manifest import LISTED_DUPLICATES, MANIFEST, FileEntry, Manifest
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import read_rows
from lol_data.shards.unit import data_dir

RuleCheck = Callable[[Any], NDArray[np.bool_]]  # one verdict a row: all its traces and its answer are right


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. kind: manifest, missing, damaged, swapped, foreign, or rows (found by a deep look)."""

    path: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}: {self.detail}"


@dataclass(slots=True)
class _Faults:
    """Rows of one path that are wrong: per reason the lowest id, and how many."""

    path: str
    found: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, ids: NDArray, reason: str) -> None:
        if len(ids):
            first, count = self.found.get(reason, (int(ids[0]), 0))
            self.found[reason] = first, count + len(ids)

    def problems(self) -> list[Problem]:
        return [
            Problem(self.path, "rows", f"id {first}{f' and {count - 1:,} more' if count > 1 else ''}: {reason}")
            for reason, (first, count) in self.found.items()
        ]


@dataclass(slots=True)
class _Stored:
    """The rows of one stored file. ids: uint64 (rows,), rising."""

    ids: NDArray[np.uint64]
    columns: dict[str, Ragged]
    faults: _Faults

    def compare(
        self, ids: NDArray[np.uint64], columns: dict[str, Ragged], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Hold what is stored under consecutive ids to what is derived; `rows` of them belong in this file.

        Gives the rows that are in it.
        """
        begin, end = np.searchsorted(self.ids, ids[0]), np.searchsorted(self.ids, ids[-1], "right")
        stored = self.ids[begin:end]
        derived_at, stored_at = common_ids(ids[rows], stored)
        self.faults.add(np.delete(stored, stored_at), "belongs in another split")
        here, stored_rows = rows[derived_at], stored_at + begin
        for name, column in columns.items():
            wrong = differing(column, here, self.columns[name], stored_rows)
            self.faults.add(ids[here[wrong]], f"column {name} is not what the settings derive")
        return here


@dataclass(slots=True)
class _Unit:
    """What the look at one unit found. absent: ids derived for a file but not in it; unseen: ids of skipped files."""

    problems: list[Problem]
    keys: UnitKeys
    absent: NDArray[np.int64]
    unseen: NDArray[np.int64]
    equal: NDArray[np.int64]


def check_rows(
    path: Path,
    manifest: Manifest,
    plan: DatasetPlan,
    skip: set[str],
    workers: int,
    progress: Progress,
    rule_check: RuleCheck | None,
) -> list[Problem]:
    """Every problem in the rows of the files that are not in `skip`.

    Holds KEY_BYTES (12) per row of the whole set, and 8 bytes more per row of a file in `skip`.
    """
    count = RowCount()
    entries = {entry.name: entry for entry in manifest.files if f"data/{entry.name}" not in skip}

    def look(unit: int) -> _Unit:
        return _look(path, plan, unit, entries, rule_check, count.step)

    units = run_threads(look, range(plan.units), workers, count.stop, lambda: progress(count.done, plan.n))
    problems = [problem for unit in units for problem in unit.problems]
    duplicates = duplicate_ids(plan, lambda unit: units[unit].keys)
    absent = np.concatenate([unit.absent for unit in units])
    unseen = np.concatenate([unit.unseen for unit in units])
    lost, kept = np.setdiff1d(absent, duplicates), np.setdiff1d(duplicates, np.concatenate([absent, unseen]))
    for ids, reason in ((lost, "not there, and no duplicate"), (kept, "there, though a duplicate of a lower id")):
        for unit in np.unique(ids // plan.shard_rows):
            faults = _Faults(f"data/*-{unit:05d}-of-*")
            faults.add(ids[ids // plan.shard_rows == unit], reason)
            problems += faults.problems()
    listed = duplicates.tolist() if len(duplicates) <= LISTED_DUPLICATES else None
    if manifest.duplicates != {"dropped": len(duplicates), "ids": listed}:
        problems.append(Problem(MANIFEST, "manifest", f"its duplicates are wrong: there are {len(duplicates):,}"))
    equal = dict(zip(pairs_of(plan.task.strategies), sum(unit.equal for unit in units).tolist(), strict=True))
    if not unseen.size and not lost.size and not kept.size and manifest.equal_orders != equal:
        problems.append(Problem(MANIFEST, "manifest", f"its counts of equal traces are wrong: they are {equal}"))
    return problems


def _look(
    path: Path,
    plan: DatasetPlan,
    unit: int,
    entries: dict[str, FileEntry],
    rule_check: RuleCheck | None,
    step: Callable[[int], None],
) -> _Unit:
    """Look at the files of one unit that are in `entries`. step: called with the rows of every block."""
    ids = plan.unit_ids(unit)
    files: dict[str, _Stored] = {}
    problems: list[Problem] = []
    for split, name in plan.file_names(unit).items():
        if name not in entries:
            continue
        try:
            rows = read_rows(plan.task, data_dir(path) / name, entries[name].rows, plan.settings)
        except DamageError as error:
            problems.append(Problem(f"data/{name}", "damaged", str(error)))
            continue
        files[split] = stored = _Stored(rows.id, plan.task.columns(rows), _Faults(f"data/{name}"))
        problems += _stored_problems(plan, rows, stored, ids, entries[name], rule_check)
    none = np.empty(0, np.uint64)
    keys, absent, unseen, equal = [none], [none], [none], np.zeros(len(pairs_of(plan.task.strategies)), np.int64)
    for block in plan.blocks(ids):
        block_ids, columns = block.traced.id, plan.task.columns(block.traced)
        present = np.zeros(len(block_ids), bool)
        for index, split in enumerate(SPLITS):
            derived = np.flatnonzero(block.splits == index)
            if split in files:
                present[files[split].compare(block_ids, columns, derived)] = True
                absent.append(block_ids[derived[~present[derived]]])
            else:
                unseen.append(block_ids[derived])
        equal += equal_orders(plan.task.orders(block.traced), present)
        keys.append(block.keys)
        step(len(block_ids))
    problems += [problem for stored in files.values() for problem in stored.faults.problems()]
    return _Unit(
        problems,
        UnitKeys.of(np.concatenate(keys)),
        np.concatenate(absent).astype(np.int64),
        np.concatenate(unseen).astype(np.int64),
        equal,
    )


def _stored_problems(
    plan: DatasetPlan, rows: Any, stored: _Stored, ids: range, entry: FileEntry, rule_check: RuleCheck | None
) -> list[Problem]:
    """What is wrong with the rows of a file of the unit `ids`, whatever the plan derives."""
    there = stored.ids
    stored.faults.add(there[(there < ids.start) | (there >= ids.stop)], "belongs in another file")
    if len(rows):
        stored.faults.add(there[~plan.task.sound(rows, plan.settings)], f"is not {plan.task.promise}")
    if rule_check is not None and len(rows):
        stored.faults.add(there[~rule_check(rows)], "the rules reject a trace or the answer")
    if f"{content_hash(row_hashes(there, stored.columns)):016x}" == entry.content_hash:
        return []
    return [Problem(f"data/{entry.name}", "rows", "its content hash is not the one in the manifest")]
