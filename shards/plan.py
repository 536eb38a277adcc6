"""What is to be made: a `DatasetPlan`. Every byte of a data set is a pure function of its plan and the versions.

A plan is cut into units of `shard_rows` consecutive ids. A unit is the whole work of one task, whatever engine runs
it, and writes one file per split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lol_data import __version__
from lol_data.errors import DamageError, UsageError
from lol_data.generators.fingerprint import SPLITS, assign_splits
from lol_data.generators.maze import MazeSettings
from lol_data.shards.kernels import content_hash, row_hashes
from lol_data.shards.task import Settings, Task, Traced, task_named

BLOCK = 4096  # ids generated at a time: small enough to stay in cache and to stop promptly, and part of the format
MAX_UNITS = 99_999  # shard names have five digits, the only form that Hugging Face recognises
MAX_SHARD_ROWS = 1_000_000  # a unit is encoded in memory, about 150 bytes a row
PROBE_ROWS = 64


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """Rows 0 .. n - 1 of (settings, seed), in units of `shard_rows` ids, split by fingerprint."""

    n: int
    settings: Settings = field(default_factory=MazeSettings)
    seed: int = 0
    shard_rows: int = 100_000
    validation_share: float = 0.01
    test_share: float = 0.01
    task_name: str = "maze"

    @property
    def task(self) -> Task:
        """What the rows are of."""
        return task_named(self.task_name)

    def validate(self) -> None:
        """Raises UsageError naming the first option that cannot be."""
        self.settings.validate()
        if self.n < 0:
            raise UsageError(f"n is {self.n}; it must be 0 or more")
        if not 0 <= self.seed < 2**64:
            raise UsageError(f"seed is {self.seed}; it must be from 0 to 2^64 - 1")
        if not 1 <= self.shard_rows <= MAX_SHARD_ROWS:
            raise UsageError(f"shard rows is {self.shard_rows}; it must be from 1 to {MAX_SHARD_ROWS:,}")
        if self.units > MAX_UNITS:
            least = -(-self.n // MAX_UNITS)
            raise UsageError(f"{self.units:,} shards are more than {MAX_UNITS:,}: take {least:,} shard rows or more")
        shares = (self.validation_share, self.test_share)
        if not (min(shares) >= 0 and sum(shares) <= 1):
            raise UsageError(f"the shares of validation and test are {shares}; each must be 0 or more, both at most 1")

    @property
    def units(self) -> int:
        """Number of units; one, and empty, when n is 0, so that readers find a schema."""
        return max(1, -(-self.n // self.shard_rows))

    def unit_ids(self, unit: int) -> range:
        """The ids of a unit."""
        return range(unit * self.shard_rows, min(self.n, (unit + 1) * self.shard_rows))

    def file_names(self, unit: int) -> dict[str, str]:
        """File name in `data/` per split. All three exist always, with no rows if need be."""
        return {split: f"{split}-{unit:05d}-of-{self.units:05d}.parquet" for split in SPLITS}

    def blocks(self, ids: range) -> Iterator[Block]:
        """The rows of consecutive ids, BLOCK at a time."""
        for begin in range(ids.start, ids.stop, BLOCK):
            yield self.block(begin, min(begin + BLOCK, ids.stop))

    def block(self, begin: int, end: int) -> Block:
        """The rows begin .. end - 1, with their keys and splits."""
        traced = self.task.generate(self.settings, self.seed, begin, end)
        splits = assign_splits(self.task.fingerprints(traced), self.validation_share, self.test_share)
        return Block(traced, self.task.keys(traced), splits)

    def probe(self) -> str:
        """Content hash of the first rows this code derives; compiles everything a unit needs on the way."""
        block = self.block(0, PROBE_ROWS)
        hashes = row_hashes(block.traced.id, self.task.columns(block.traced))
        return f"{content_hash(hashes + block.splits):016x}"

    def identity(self) -> dict[str, Any]:
        """Plan, versions and probe: two writers may work on the same directory only when these are equal."""
        return {**self.fields(), "versions": versions(), "probe": self.probe()}

    def fields(self) -> dict[str, Any]:
        """Task and options as they are stored, defaults resolved: the same rows, the same fields."""
        names = ("n", "seed", "shard_rows", "validation_share", "test_share")
        options = {name: getattr(self, name) for name in names}
        return {"task": self.task_name, "settings": self.task.fields(self.settings), **options}

    @staticmethod
    def from_identity(identity: Mapping[str, Any]) -> DatasetPlan:
        """The plan again, from `identity()` or from a manifest's fields. Raises DamageError."""
        try:
            options = {name: identity[name] for name in ("n", "seed", "shard_rows", "validation_share", "test_share")}
            settings = task_named(identity["task"]).settings_of(identity["settings"])
            plan = DatasetPlan(settings=settings, task_name=identity["task"], **options)
            plan.validate()
        except (TypeError, KeyError, UsageError) as error:
            raise DamageError(f"the stored plan is none that this version knows: {error}") from None
        return plan


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows. keys: uint64 (B,), equal for equal problems. splits: uint8 (B,), index into SPLITS."""

    traced: Traced
    keys: NDArray[np.uint64]
    splits: NDArray[np.uint8]


def versions() -> dict[str, str]:
    """Versions that the bytes of a file may depend on."""
    return {"lol_data": __version__, **{name: version(name) for name in ("numpy", "numba", "pyarrow")}}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One text "name: old -> new" per field in which two identities differ."""
    flat_old, flat_new = _flat(old), _flat(new)
    names = [*flat_old, *(name for name in flat_new if name not in flat_old)]
    return [
        f"{name}: {flat_old.get(name, 'absent')} -> {flat_new.get(name, 'absent')}"
        for name in names
        if flat_old.get(name, "absent") != flat_new.get(name, "absent")
    ]


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat
