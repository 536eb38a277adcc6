"""Colours for the order of steps: scales in OKLab, where equal distances look equally different.

A scale is given by a few stops (lightness, chroma, hue in degrees) and walked along at constant speed, so that a step
near the beginning differs from the next one as much as a step near the end does. Every colour is light enough for INK.
"""

from __future__ import annotations

import math
from itertools import pairwise

INK = "#1c1f26"
PAPER = "#ffffff"
QUIET = "#5b6270"
FLOOR = "#f4f4f1"
WAITING = "#dcdcd6"
ANSWER = "#c2185b"
WALK = "#20306b"

Rgb = tuple[int, int, int]


class Scale:
    """A way through OKLab. Stops: (lightness 0..1, chroma, hue in degrees), at least two."""

    def __init__(self, *stops: tuple[float, float, float]) -> None:
        self._points = [
            (light, chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue)))
            for light, chroma, hue in stops
        ]
        self._lengths = [math.dist(a, b) for a, b in pairwise(self._points)]

    def oklab(self, t: float) -> tuple[float, float, float]:
        """(L, a, b) at the share t, 0 to 1, of the way."""
        left = t * sum(self._lengths)
        for leg, length in enumerate(self._lengths):
            if left <= length or leg == len(self._lengths) - 1:
                break
            left -= length
        share = min(1.0, left / length)
        a, b = self._points[leg], self._points[leg + 1]
        light, green_red, blue_yellow = (x + share * (y - x) for x, y in zip(a, b, strict=True))
        return light, green_red, blue_yellow

    def rgb(self, t: float) -> Rgb:
        """sRGB, 0 to 255 a channel, at the share t of the way."""
        red, green, blue = (round(255 * _gamma(value)) for value in _linear_rgb(*self.oklab(t)))
        return red, green, blue

    def hex(self, t: float) -> str:
        """Such as "#4f7fc0", at the share t of the way."""
        return "#{:02x}{:02x}{:02x}".format(*self.rgb(t))


STEPS = Scale((0.955, 0.09, 105), (0.87, 0.12, 150), (0.77, 0.105, 215), (0.67, 0.13, 285))
FROM_START = Scale((0.94, 0.03, 240), (0.67, 0.14, 255))
FROM_GOAL = Scale((0.94, 0.05, 80), (0.71, 0.15, 50))


def share_of(step: int, steps: int) -> float:
    """Where on a scale step 1 <= step <= steps lies: 0 for the first, 1 for the last."""
    return (step - 1) / (steps - 1) if steps > 1 else 0.0


def ansi_background(rgb: Rgb) -> str:
    """The escape sequence for dark ink on the nearest colour of the 6 x 6 x 6 cube that terminals share."""
    levels = (0, 95, 135, 175, 215, 255)
    red, green, blue = (min(range(6), key=lambda k, v=value: abs(levels[k] - v)) for value in rgb)  # type: ignore[misc]
    return f"\x1b[38;5;16;48;5;{16 + 36 * red + 6 * green + blue}m"


def _linear_rgb(light: float, a: float, b: float) -> tuple[float, float, float]:
    """Linear sRGB of an OKLab colour (B. Ottosson's matrices)."""
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _gamma(value: float) -> float:
    value = min(1.0, max(0.0, value))
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
