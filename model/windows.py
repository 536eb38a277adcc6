"""Window geometry: which positions share a block at each depth (equation 2).

Window 0 is the prompt, whole, at every depth. Behind it, position i = prompt + j belongs at depth l = 1, 2, ... to
window 1 + floor((j + delta) / W) with delta = ((l - 1) S) mod W, so the first window behind the prompt may be short.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Windows:
    """The windows of one model shape; depths count from 1, as in the equations."""

    prompt: int
    window: int
    shift: int

    def offset(self, depth: int) -> int:
        """delta of equation (2)."""
        return (depth - 1) * self.shift % self.window

    def index(self, position: int, depth: int) -> int:
        """w_l(i): the number of the window that holds a position."""
        if position < self.prompt:
            return 0
        return self.index_behind(position, depth)

    def index_behind(self, position: Any, depth: int) -> Any:
        """The same for a position, or an array of them, known to lie behind the prompt."""
        return 1 + (position - self.prompt + self.offset(depth)) // self.window

    def starts(self, position: int, depth: int) -> bool:
        """Whether a position is the first one of its window."""
        return position in (0, self.prompt) or (
            position > self.prompt and (position - self.prompt + self.offset(depth)) % self.window == 0
        )

    def slices(self, length: int, depth: int) -> list[tuple[int, int]]:
        """[start, end) of every window of a sequence of `length` positions, window 0 first; the last may be cut."""
        bounds = [0]
        edge = self.prompt
        step = self.window - self.offset(depth)
        while edge < length:
            bounds.append(edge)
            edge += step
            step = self.window
        bounds.append(length)
        return list(itertools.pairwise(bounds))
