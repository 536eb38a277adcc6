"""Scales: evenly spaced to the eye, inside sRGB, and light enough to read ink on."""

import math
from itertools import pairwise

import pytest

from lol_data.views.colours import FROM_GOAL, FROM_START, INK, STEPS, Scale, ansi_background, share_of

SCALES = [STEPS, FROM_START, FROM_GOAL]
SHARES = [k / 100 for k in range(101)]


def luminance(rgb):
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scale", SCALES)
def test_equal_shares_look_equally_far_apart(scale):
    points = [scale.oklab(t) for t in SHARES]
    steps = [math.dist(a, b) for a, b in pairwise(points)]
    assert max(steps) == pytest.approx(sum(steps) / len(steps), rel=0.02)
    assert min(steps) > 0.8 * max(steps)  # a little less where the way bends
    lightness = [point[0] for point in points]
    assert lightness == sorted(lightness, reverse=True)  # so it can be read in grey too


@pytest.mark.parametrize("scale", SCALES)
def test_ink_can_be_read_on_every_colour(scale):
    ink = luminance(bytes.fromhex(INK[1:]))
    for t in SHARES:
        assert (luminance(scale.rgb(t)) + 0.05) / (ink + 0.05) > 4.5
        assert scale.hex(t) == "#" + bytes(scale.rgb(t)).hex()


def test_known_colours():
    assert Scale((1.0, 0.0, 0), (0.0, 0.0, 0)).rgb(0) == (255, 255, 255)
    assert Scale((1.0, 0.0, 0), (0.0, 0.0, 0)).rgb(1) == (0, 0, 0)
    red = Scale((0.627955, 0.257683, 29.2339), (1.0, 0.0, 0))
    assert red.rgb(0) == (255, 0, 0)


def test_shares():
    assert [share_of(k, 5) for k in (1, 3, 5)] == [0, 0.5, 1]
    assert share_of(1, 1) == 0


def test_the_nearest_colour_of_a_terminal():
    assert ansi_background((255, 0, 0)) == "\x1b[38;5;16;48;5;196m"
    assert ansi_background((250, 170, 100)) == "\x1b[38;5;16;48;5;215m"
