"""Histograms of several distributions under each other, on one axis, as an SVG for a paper.

The picture stands alone: no script, no style sheet, no font of its own, nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lol_data.errors import UsageError
from lol_data.views.colours import INK, PAPER
from lol_data.views.svg import document, tag, words

WIDTH, LEFT, RIGHT = 640, 166, 16  # in pixels, as everything here
TOP, PANEL, GAP, BOTTOM = 54, 52, 24, 48  # the gap above a panel is where its median is named
MOST_BINS = 120
STEPS = (1, 2, 5)  # times a power of ten: widths of bins, distances of ticks
BAR, GRID, MEDIAN = "#4477aa", "#dddddd", "#cc3311"


def histogram_svg(histograms: Mapping[str, ArrayLike], title: str = "", x_label: str = "length in cells") -> str:
    """One panel per histogram, by name: the share of rows per bin, with the median marked.

    histograms: counts, integers (greatest value + 1,); counts[k] rows have the value k. All panels share the x axis,
    which has the range of values that occur; each has a y axis of its own. Raises UsageError when there is none.
    """
    counts = {name: np.asarray(values, np.int64) for name, values in histograms.items()}
    if not counts:
        raise UsageError("no histogram to draw")
    axis = _Axis.over(list(counts.values()))
    rows = {int(values.sum()) for values in counts.values()}
    one_n = len(rows) == 1
    title = _writable(f"{title} (n = {max(rows):,})".strip() if one_n else title)
    height = TOP + len(counts) * (PANEL + GAP) - GAP + BOTTOM
    floor = height - BOTTOM
    parts = [_text(LEFT, 22, title, font_size="14")]
    for tick in axis.ticks:
        x = axis.x(tick + 0.5)
        parts.append(_line(x, TOP, x, floor + 5, GRID))
        parts.append(_text(x, floor + 17, str(tick), text_anchor="middle"))
    unit = f" (bins of {axis.bin_width})" if axis.bin_width > 1 else ""
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, floor + 36, x_label + unit, text_anchor="middle"))
    for index, (name, values) in enumerate(counts.items()):
        parts += _panel(name, values, axis, TOP + index * (PANEL + GAP), own_n=not one_n)
    return document(WIDTH, height, title, PAPER, tag("g", *parts, font_size="11"))


class _Axis:
    """The x axis: bins of equal width over the values from `low`, a multiple of it."""

    def __init__(self, low: int, bins: int, bin_width: int) -> None:
        self.low, self.bins, self.bin_width = low, bins, bin_width
        self.ticks = self._ticks()

    @staticmethod
    def over(counts: Sequence[NDArray[np.int64]]) -> _Axis:
        present = np.concatenate([np.flatnonzero(values) for values in counts])
        low, high = (int(present.min()), int(present.max())) if len(present) else (0, 0)
        bin_width = _round_step((high - low + 1) / MOST_BINS)
        low -= low % bin_width
        return _Axis(low, (high - low) // bin_width + 1, bin_width)

    def x(self, value: float) -> float:
        """The place of the left edge of a value."""
        return LEFT + (value - self.low) / (self.bins * self.bin_width) * (WIDTH - LEFT - RIGHT)

    def binned(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts per bin, int64 (bins,)."""
        whole = np.zeros(self.low + self.bins * self.bin_width, np.int64)
        whole[: len(counts)] = counts[: len(whole)]
        return whole[self.low :].reshape(self.bins, self.bin_width).sum(axis=1)

    def _ticks(self) -> list[int]:
        span = self.bins * self.bin_width
        step = _round_step(span / 8)
        return list(range(-(-self.low // step) * step, self.low + span, step))


def _panel(name: str, counts: NDArray[np.int64], axis: _Axis, top: float, own_n: bool) -> list[str]:
    n, floor = int(counts.sum()), top + PANEL
    parts = [_text(LEFT - 48, top + 30, name.replace("_", " "), text_anchor="end", font_weight="bold")]
    if own_n:
        parts.append(_text(LEFT - 48, top + 45, f"n = {n:,}", text_anchor="end"))
    if n:
        bins = axis.binned(counts)
        tallest = int(bins.max())
        outline = [f"M{axis.x(axis.low):g} {floor:g}"]
        for index, count in enumerate(bins.tolist()):
            right = axis.x(axis.low + (index + 1) * axis.bin_width)
            outline.append(f"V{floor - PANEL * count / tallest:.2f}H{right:.2f}")
        parts.append(tag("path", d="".join([*outline, f"V{floor:g}Z"]), fill=BAR))
        parts.append(
            _text(LEFT - 6, top + 4, f"{100 * tallest / n:.{2 if tallest < 0.995 * n else 3}g} %", text_anchor="end")
        )
        parts.append(_line(LEFT - 4, top, LEFT, top, INK))
        median = int(np.searchsorted(2 * np.cumsum(counts), n))
        x = axis.x(median + 0.5)
        parts.append(_line(x, top - 13, x, floor, MEDIAN, stroke_dasharray="3 2", stroke_width="1.5"))
        right_half = x > (LEFT + WIDTH - RIGHT) / 2
        label_x, anchor = (x - 5, "end") if right_half else (x + 5, "start")
        parts.append(_text(label_x, top - 5, f"median {median}", text_anchor=anchor))
    parts.append(_line(LEFT, top, LEFT, floor, INK))
    parts.append(_line(LEFT, floor, WIDTH - RIGHT, floor, INK))
    return parts


def _round_step(least: float) -> int:
    """The least of 1, 2, 5, 10, 20, 50, ... that is no less."""
    power = 1
    while True:
        for step in STEPS:
            if step * power >= least:
                return step * power
        power *= 10


def _text(x: float, y: float, text: str, **attributes: str) -> str:
    return words(x, y, _writable(text), fill=INK, **attributes)


def _writable(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, **attributes: str) -> str:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, **attributes)
