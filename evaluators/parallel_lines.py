"""Lines judged by several processes, in their order: a check is one task per line, and Python has one thread.

The lines go out in groups. The first one is judged here and small, so that a short file starts no process and somebody
who writes slowly gets answers soon. At most a few groups are on their way at a time, which bounds the memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Generic, TypeVar

from lol_data.errors import LolDataError
from lol_data.jsonl import Record, to_line

FIRST, GROUP, GROUP_BYTES = 256, 8192, 1 << 22  # lines of the first group, of a group, and its bytes, at most
Lines = list[bytes | str]
CheckLines = Callable[[Iterable[bytes | str], int], Iterator[Record]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """Judged lines. text: a line of JSON for each record. summary: what the caller's function made of them."""

    text: str
    summary: T


def nothing(records: list[Record], lines: Lines, first: int) -> None:
    """The summary of a group whose text is all that is wanted."""


def judge_lines(
    check_lines: CheckLines,
    lines: Iterable[bytes | str],
    workers: int,
    summarise: Callable[[list[Record], Lines, int], T],
) -> Iterator[Piece[T]]:
    """What `check_lines` says of the lines, a piece per group, in the order of the lines.

    summarise: run beside `check_lines`, on the records of a group, its lines and the number of the first one; another
    process has to be able to import it. Raises LolDataError when a process is lost.
    """
    pool: ProcessPoolExecutor | None = None
    waiting: deque[Future[Piece[T]]] = deque()
    try:
        for first, group in _groups(lines):
            if workers == 1 or first == 1:
                yield _judge(check_lines, group, first, summarise)
                continue
            # Started for the first group that needs it; compiled code and threads do not survive a fork.
            pool = pool or ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
            waiting.append(pool.submit(_judge, check_lines, group, first, summarise))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise LolDataError("a process that judges lines was killed; try again, or with --workers 1") from None
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _judge(
    check_lines: CheckLines, group: Lines, first: int, summarise: Callable[[list[Record], Lines, int], T]
) -> Piece[T]:
    records = list(check_lines(group, first))
    return Piece("".join(to_line(record) + "\n" for record in records), summarise(records, group, first))


def _groups(lines: Iterable[bytes | str]) -> Iterator[tuple[int, Lines]]:
    """Groups of lines with the number of the first one."""
    group: Lines = []
    first, size = 1, 0
    for line in lines:
        group.append(line)
        size += len(line)
        if len(group) == (FIRST if first == 1 else GROUP) or size > GROUP_BYTES:
            yield first, group
            first, group, size = first + len(group), [], 0
    if group:
        yield first, group
