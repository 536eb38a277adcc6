"""The deep look of `verify`: every stored row against the row that the plan derives, and against the rules."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lol_data.errors import DamageError
from lol_data.generators.fingerprint import SPLITS
from lol_data.mazes import TracedMazes
from lol_data.shards.duplicates import duplicate_ids
from lol_data.shards.generate import Progress, run_threads
from lol_data.shards.kernels import STRATEGY_PAIRS, content_hash, equal_traces, row_hashes
from lol_data.shards.manifest import LISTED_DUPLICATES, MANIFEST, FileEntry, Manifest
from lol_data.shards.plan import DatasetPlan
from lol_data.shards.reader import read_file
from lol_data.shards.schema import from_table, to_batch
from lol_data.shards.unit import data_dir

RuleCheck = Callable[[TracedMazes], NDArray[np.bool_]]  # one verdict a row: all its traces and its answer are right


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. kind: manifest, missing, damaged, swapped, foreign, or rows (found by a deep look)."""

    path: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}: {self.detail}"


@dataclass(slots=True)
class _Unit:
    """What the look at one unit found. absent: ids derived for a file but not in it; unseen: ids of skipped files."""

    problems: list[Problem]
    keys: NDArray[np.uint64]
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
    """Every problem in the rows of the files that are not in `skip`. Holds 8 bytes per row of the whole set."""
    stop, lock, done = threading.Event(), threading.Lock(), [0]

    def look(unit: int) -> _Unit:
        found = _Unit([], np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64))
        if not stop.is_set():
            found = _look(path, manifest, plan, unit, skip, rule_check)
            with lock:
                done[0] += len(found.keys)
        return found

    units = run_threads(look, range(plan.units), workers, stop, lambda: progress(done[0], plan.n))
    problems = [problem for unit in units for problem in unit.problems]
    duplicates = duplicate_ids(plan, lambda unit: units[unit].keys)
    absent = np.concatenate([unit.absent for unit in units])
    unseen = np.concatenate([unit.unseen for unit in units])
    lost, kept = np.setdiff1d(absent, duplicates), np.setdiff1d(duplicates, np.concatenate([absent, unseen]))
    for ids, detail in ((lost, "not there, and no duplicate"), (kept, "there, though a duplicate of a lower id")):
        for unit in np.unique(ids // plan.shard_rows):
            inside = ids[ids // plan.shard_rows == unit]
            problems.append(Problem(f"data/*-{unit:05d}-of-*", "rows", f"id {inside[0]}{_more(len(inside))}: {detail}"))
    listed = duplicates.tolist() if len(duplicates) <= LISTED_DUPLICATES else None
    if manifest.duplicates != {"dropped": len(duplicates), "ids": listed}:
        problems.append(Problem(MANIFEST, "manifest", f"its duplicates are wrong: there are {len(duplicates):,}"))
    equal = dict(zip(STRATEGY_PAIRS, sum(unit.equal for unit in units).tolist(), strict=True))
    if not skip and not lost.size and not kept.size and manifest.equal_traces != equal:
        problems.append(Problem(MANIFEST, "manifest", f"its counts of equal traces are wrong: they are {equal}"))
    return problems


def _look(
    path: Path, manifest: Manifest, plan: DatasetPlan, unit: int, skip: set[str], rule_check: RuleCheck | None
) -> _Unit:
    entries = {entry.name: entry for entry in manifest.files}
    tables: dict[str, pa.Table] = {}
    problems: list[Problem] = []
    for split, name in plan.file_names(unit).items():
        if f"data/{name}" in skip:
            continue
        try:
            table = read_file(data_dir(path) / name, entries[name].rows, size=plan.settings.size)
            problems += _stored_problems(from_table(table, name), entries[name], rule_check)
            tables[split] = table
        except DamageError as error:
            problems.append(Problem(f"data/{name}", "damaged", str(error)))
    keys, absent, unseen = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    equal, wrong = np.zeros(len(STRATEGY_PAIRS), np.int64), set()
    seen = dict.fromkeys(tables, 0)
    for block in plan.blocks(plan.unit_ids(unit)):
        ids, batch = block.traced.mazes.id, to_batch(block.traced)
        present = np.zeros(len(ids), bool)
        for index, split in enumerate(SPLITS):
            derived = block.splits == index
            if split not in tables:
                unseen.append(ids[derived].astype(np.int64))
                continue
            stored = _between(tables[split], int(ids[0]), int(ids[-1]) + 1)
            seen[split] += stored.num_rows
            here = derived & np.isin(ids, stored["id"].to_numpy())
            absent.append(ids[derived & ~here].astype(np.int64))
            present |= here
            difference = _difference(batch.filter(pa.array(here)), stored)
            if difference and split not in wrong:
                wrong.add(split)
                problems.append(Problem(f"data/{plan.file_names(unit)[split]}", "rows", difference))
        equal += equal_traces(block.traced, present)
        keys.append(block.keys)
    for split, table in tables.items():
        if seen[split] != table.num_rows:
            detail = f"{table.num_rows - seen[split]:,} rows have ids of another file"
            problems.append(Problem(f"data/{plan.file_names(unit)[split]}", "rows", detail))
    return _Unit(problems, np.concatenate(keys), np.concatenate(absent), np.concatenate(unseen), equal)


def _stored_problems(traced: TracedMazes, entry: FileEntry, rule_check: RuleCheck | None) -> list[Problem]:
    """What is wrong with stored rows, whatever the plan derives."""
    problems = []
    if f"{content_hash(row_hashes(traced)):016x}" != entry.content_hash:
        problems.append(Problem(f"data/{entry.name}", "rows", "its content hash is not the one in the manifest"))
    if rule_check is not None and len(traced):
        broken = traced.mazes.id[~rule_check(traced)]
        if len(broken):
            detail = f"id {broken[0]}{_more(len(broken))}: the rules reject a trace or the answer"
            problems.append(Problem(f"data/{entry.name}", "rows", detail))
    return problems


def _between(table: pa.Table, low: int, high: int) -> pa.Table:
    """The rows with low <= id < high of a table in order of id."""
    begin, end = np.searchsorted(table["id"].to_numpy(), np.array([low, high], np.uint64))
    return table.slice(begin, end - begin)


def _difference(derived: pa.RecordBatch, stored: pa.Table) -> str:
    """How the stored rows differ from the derived ones, in words; empty when they do not."""
    if derived.num_rows != stored.num_rows:
        strange = np.setdiff1d(stored["id"].to_numpy(), derived["id"].to_numpy())
        return f"id {strange[0]}{_more(len(strange))}: belongs in another split"
    for name in derived.schema.names:
        if not pa.chunked_array([derived[name]]).equals(stored[name]):
            pairs = zip(derived[name].to_pylist(), stored[name].to_pylist(), strict=True)
            row = next(index for index, (old, new) in enumerate(pairs) if old != new)
            return f"id {stored['id'][row]}: column {name} is not what the settings derive"
    return ""


def _more(count: int) -> str:
    return f" and {count - 1:,} more" if count > 1 else ""
