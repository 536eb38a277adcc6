"""Bytes that reach the disk whole or not at all, and the encoder that makes the bytes of one shard.

A shard is encoded in memory and then published: temporary file, fsync, rename, fsync of the folder. So a file in
`data/` is always finished, its size is known before the first byte is written, and an exception half-way through a
shard leaves nothing (a ParquetWriter on a real path would close and leave a valid, short file).
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lol_data.errors import LolDataError
from lol_data.files import whole

ROW_GROUP = 2048  # rows from which on a row group is closed; blocks of 4096 ids make groups of 2k to 6k rows

# Plain encoding: delta encodings of lengths and ids were measured to save 1.4 %, which is not worth a reader that
# lacks them. Statistics are kept for the id alone, by which a reader can skip row groups; a least trace means nothing.
PARQUET_OPTIONS = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": False,
    "write_statistics": ["id"],
    "write_page_checksum": True,
}


class ShardEncoder:
    """Collects the rows of one file; `finish` gives its bytes, a pure function of the batches added."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, **PARQUET_OPTIONS)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch of the schema."""
        if batch.num_rows:
            self._pending.append(batch)
            self._pending_rows += batch.num_rows
            self.rows += batch.num_rows
        if self._pending_rows >= ROW_GROUP:
            self._flush()

    def finish(self) -> pa.Buffer:
        """The finished file."""
        if self._pending:
            self._flush()
        self._writer.close()
        return self._sink.getvalue()

    def _flush(self) -> None:
        # Page cuts follow the chunks of what is written: one chunk per row group keeps the bytes deterministic.
        batch = self._pending[0] if len(self._pending) == 1 else pa.concat_batches(self._pending)
        self._writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
        self._pending, self._pending_rows = [], 0


def write_atomic(target: Path, data: bytes | pa.Buffer, scratch: Path) -> None:
    """Put `data` at `target`: both names before and after a crash hold whole files.

    scratch: an existing folder on the same file system, for the temporary file.
    Raises LolDataError, one line with the path and the bytes needed, when the disk is full or cannot be written.
    """
    view = memoryview(data)
    temporary = scratch / f"{target.name}.{secrets.token_hex(8)}"  # another machine may be making the same file
    try:
        with whole(target, temporary):
            temporary.write_bytes(view)
    except OSError as error:
        raise LolDataError(_write_failure(target, view.nbytes, error)) from error


def _write_failure(target: Path, needed: int, error: OSError) -> str:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{target}: cannot be written: {error.strerror}"
    free = ""
    with contextlib.suppress(OSError):
        free = f", {shutil.disk_usage(target.parent).free:,} are free"
    return (
        f"{target}: {error.strerror}; this file needs {needed:,} bytes{free}. Nothing half-written was left; "
        "make room and run the same command again"
    )
