"""Lines judged by several processes, in their order: a check is one task per line, and Python has one thread.

The lines go out in blocks of bytes. The first one is small and judged here, so that a short file starts no process and
somebody who writes slowly gets answers soon. At most a few blocks are on their way at a time, which bounds the memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from io import BufferedIOBase
from multiprocessing import get_context
from typing import Generic, TypeVar

from lol_data.errors import LolDataError
from lol_data.jsonl import MAX_LINE, Record, to_line

FIRST, BLOCK = 1 << 17, 1 << 22  # bytes of the first block, and of a block
CheckLines = Callable[[Iterable[bytes | str], int], Iterator[Record]]
T = TypeVar("T")
Summarise = Callable[[list[Record], list[bytes], int], T]


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """Judged lines. text: a line of JSON for each record. summary: what the caller's function made of them."""

    text: str
    summary: T


def nothing(records: list[Record], lines: list[bytes], first: int) -> None:
    """The summary of lines whose text is all that is wanted."""


def judge_lines(
    check_lines: CheckLines, source: BufferedIOBase, workers: int, summarise: Summarise[T]
) -> Iterator[Piece[T]]:
    """What `check_lines` says of the lines of a file, a piece per block, in the order of the lines.

    summarise: run beside `check_lines`, on the records of a block, its lines and the number of the first one; another
    process has to be able to import it. Raises LolDataError when a process is lost.
    """
    pool: ProcessPoolExecutor | None = None
    waiting: deque[Future[Piece[T]]] = deque()
    first = 1
    try:
        for block in _blocks(source):
            if workers == 1 or first == 1:
                yield _judge(check_lines, block, first, summarise)
            else:
                # Started for the first block that needs it; compiled code and threads do not survive a fork.
                pool = pool or ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
                waiting.append(pool.submit(_judge, check_lines, block, first, summarise))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            first += block.count(b"\n")
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise LolDataError("a process that judges lines was killed; try again, or with --workers 1") from None
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _judge(check_lines: CheckLines, block: bytes, first: int, summarise: Summarise[T]) -> Piece[T]:
    lines = block.split(b"\n")
    records = list(check_lines(lines, first))
    return Piece("".join(to_line(record) + "\n" for record in records), summarise(records, lines, first))


def _blocks(source: BufferedIOBase) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; of one that is longer only so much that it is refused for its length."""
    rest = b""
    data = source.read1(FIRST)
    while data:
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = data[end:]
        else:
            rest = (rest + data)[: MAX_LINE + 1]
        data = source.read(BLOCK)
    if rest:
        yield rest
