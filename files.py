"""Files and folders that are there whole or not at all: both names before and after a crash hold whole ones."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def draft_of(target: Path) -> Path:
    """The name beside a file or folder under which it is written."""
    return target.with_name(f".draft-{target.name}")


@contextlib.contextmanager
def whole(target: Path, draft: Path | None = None) -> Iterator[Path]:
    """Another name to write a file or folder under, by default one beside `target`; it becomes `target`, synced, when
    the block ends well, and is gone when it does not. What a crash has left under the other name is removed first. A
    folder may replace an empty one only. Raises OSError."""
    draft = draft or draft_of(target)
    _remove(draft)
    try:
        yield draft
        for inside in draft.rglob("*"):
            sync(inside)
        sync(draft)
        os.replace(draft, target)
        sync(target.parent)
    except BaseException:
        _remove(draft)
        raise


def write_whole(target: Path, content: str) -> None:
    """Put a text into a file that way. Raises OSError."""
    with whole(target) as draft:
        draft.write_text(content, encoding="utf-8")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def sync(path: Path) -> None:
    """fsync of a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
