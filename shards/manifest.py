"""The papers of a data set: sealed JSON, receipts of finished units, the manifest.

A sealed file carries the hash of its own content and must be, byte for byte, the form this module writes; one flipped
bit anywhere in it is therefore found. A receipt is the last file of its unit to be written, the manifest the last of
its data set. Neither holds a time, a host or a path: both are pure functions of the plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lol_data.errors import DamageError
from lol_data.shards.writer import write_atomic

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
WORK = ".work"
LISTED_DUPLICATES = 1000  # a manifest lists the dropped ids up to this many


def sha256(data: bytes | pa.Buffer) -> str:
    """Hex digest of bytes in memory."""
    return hashlib.sha256(memoryview(data)).hexdigest()


def file_sha256(path: Path) -> str:
    """Hex digest of a file. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(content: Mapping[str, Any]) -> bytes:
    """JSON bytes of `content` with a `checksum` over everything else."""
    body = dict(content)
    plain = json.dumps(body, sort_keys=True, separators=(",", ":"))
    body["checksum"] = hashlib.sha256(plain.encode()).hexdigest()
    return (json.dumps(body, indent=1) + "\n").encode()


def write_sealed(path: Path, content: Mapping[str, Any], scratch: Path) -> None:
    """Seal `content` and put it at `path` atomically."""
    write_atomic(path, seal(content), scratch)


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a sealed file. Raises DamageError when its seal does not hold, FileNotFoundError."""
    data = path.read_bytes()
    try:
        content = json.loads(data)
        content.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise DamageError(f"{path}: not the JSON that was written here") from None
    if seal(content) != data:
        raise DamageError(f"{path}: its checksum does not hold: it was damaged or edited")
    return content


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One finished file of `data/`. content_hash: 16 hex digits, see `kernels`."""

    name: str
    split: str
    rows: int
    bytes: int
    sha256: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one finished unit says of itself. dropped: ids left out as duplicates, rising."""

    unit: int
    files: list[FileEntry]
    dropped: list[int]
    equal_orders: dict[str, int]
    keys_sha256: str

    def write(self, path: Path, scratch: Path) -> None:
        """Put the receipt at `path`, atomically."""
        write_sealed(path, asdict(self), scratch)

    @staticmethod
    def read(path: Path) -> Receipt:
        """Raises DamageError, FileNotFoundError."""
        return _build(Receipt, read_sealed(path), path)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a user of the data set has to know, and what `verify` holds the files to.

    duplicates: {"dropped": count, "ids": the ids, or null when there are more than LISTED_DUPLICATES}.
    equal_orders: rows that two strategies search in the same order of cells, per pair "bfs=dfs".
    probe: content hash of the first rows that the plan derives, which tells two versions of the generator apart.
    """

    task: str
    settings: dict[str, Any]
    seed: int
    n: int
    shard_rows: int
    validation_share: float
    test_share: float
    versions: dict[str, str]
    probe: str
    rows: int
    bytes: int
    content_hash: str
    splits: dict[str, dict[str, Any]]
    duplicates: dict[str, Any]
    equal_orders: dict[str, int]
    files: list[FileEntry] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION

    def write(self, path: Path, scratch: Path) -> None:
        """Put the manifest at `path`, atomically."""
        content = asdict(self)
        write_sealed(path, {"schema_version": content.pop("schema_version"), **content}, scratch)

    @staticmethod
    def read(path: Path) -> Manifest:
        """Raises DamageError (damaged, or of another schema version), FileNotFoundError."""
        content = read_sealed(path)
        if content.get("schema_version") != SCHEMA_VERSION:
            raise DamageError(f"{path}: schema version {content.get('schema_version')}, this reads {SCHEMA_VERSION}")
        return _build(Manifest, content, path)


def totals(files: list[FileEntry]) -> dict[str, Any]:
    """Files, rows, bytes and content hash of a set of files."""
    return {
        "files": len(files),
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.bytes for file in files),
        "content_hash": f"{sum(int(file.content_hash, 16) for file in files) % 2**64:016x}",
    }


def _build(cls: Any, content: dict[str, Any], path: Path) -> Any:
    try:
        files = [FileEntry(**entry) for entry in content.pop("files")]
        return cls(files=files, **content)
    except (TypeError, KeyError, AttributeError):
        raise DamageError(f"{path}: its fields are not those of a {cls.__name__.lower()}") from None
