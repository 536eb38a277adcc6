"""One progress bar for every command: on stderr, silent off a terminal, and of the first process alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yields advance(done, total), both counted from the start."""
    with tqdm(unit=unit, unit_scale=True, disable=None if os.environ.get("RANK", "0") == "0" else True) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance
