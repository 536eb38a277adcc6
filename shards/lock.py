"""One writer per directory."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lol_data.errors import LolDataError, RefusedError


@contextmanager
def directory_lock(path: Path) -> Iterator[None]:
    """Hold `path` as a lock while the block runs.

    The lock belongs to the open file, so it ends with its process however that ends: there are no stale locks.
    Raises RefusedError, naming the holder, when another writer has it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 300).decode(errors="replace").strip() or "an unknown process"
            raise RefusedError(
                f"{path.parent.parent}: {holder} is writing here; wait for it to end, or use another --out"
            ) from None
        except OSError as error:
            raise LolDataError(f"{path}: cannot be locked on this file system: {error.strerror}") from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        os.close(descriptor)
