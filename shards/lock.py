"""One writer per directory, or per range of units of a directory.

Locks belong to open files, so they end with their process however that ends: there are no stale locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lol_data.errors import LolDataError, RefusedError


class BusyError(RefusedError):
    """Another writer is at work."""


@contextmanager
def directory_lock(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold `path` as a lock while the block runs.

    wait: for another holder to end; else BusyError, naming the holder. Raises LolDataError where nothing can be locked.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _try_lock(descriptor, path, wait):
            raise BusyError(
                f"{path.parent.parent}: {_holder(descriptor)} is writing here; wait for it to end, or use another --out"
            )
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def units_lock(folder: Path, units: range) -> Iterator[None]:
    """Be the only writer of `units` while the block runs; writers of other units may be at work in the same directory.

    folder: holds one file per writer, named after its units, and the lock under which writers look at one another.
    Raises BusyError, naming the holder, when another writer's units overlap. Works on every file system on which flock
    does, over several machines too (NFS from version 3 on).
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / f"{units.start:05d}-{units.stop:05d}"
    with directory_lock(folder / "lock", wait=True):
        for path in sorted(folder.glob("*-*")):
            holder = _live_holder(path)
            begin, end = map(int, path.name.split("-"))
            if holder and max(begin, units.start) < min(end, units.stop):
                raise BusyError(
                    f"{folder.parent.parent}: {holder} is writing here (shards {begin}:{end}); wait for it to end, "
                    "or use another --out"
                )
        descriptor = os.open(own, os.O_RDWR | os.O_CREAT, 0o644)
        held = _try_lock(descriptor, own, wait=False)
    try:
        if not held:
            raise LolDataError(f"{own}: cannot be locked")
        _sign(descriptor)
        yield
    finally:
        # In this order: a file that can be locked is then one that nobody holds, and may be removed.
        own.unlink(missing_ok=True)
        os.close(descriptor)


def _live_holder(path: Path) -> str | None:
    """Who holds the lock of another writer; when nobody does, the file goes."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        if not _try_lock(descriptor, path, wait=False):
            return _holder(descriptor)
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, path: Path, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        raise LolDataError(f"{path}: cannot be locked on this file system: {error.strerror}") from error
    return True


def _sign(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a full disk: the lock holds without a name too
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 300, 0).decode(errors="replace").strip() or "another process"
