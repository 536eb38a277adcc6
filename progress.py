"""One progress bar for every command: on stderr, silent off a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yields advance(done, total), both counted from the start."""
    with tqdm(unit=unit, unit_scale=True, disable=None) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance
