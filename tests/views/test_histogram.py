"""The picture as a reader of its XML finds it: bars, medians, titles, nothing from elsewhere."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.errors import UsageError
from lol_data.views.histogram import histogram_svg

SVG = "{http://www.w3.org/2000/svg}"


def texts(root):
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def bars(path):
    """(left, right, height) of the bars of one panel, in pixels, from its outline."""
    numbers = re.findall(r"([MVH])([\d.]+)(?: ([\d.]+))?", path.get("d"))
    x, floor = float(numbers[0][1]), float(numbers[0][2])
    found, y = [], floor
    for letter, value, _ in numbers[1:]:
        if letter == "V":
            y = float(value)
        else:
            found.append((x, float(value), floor - y))
            x = float(value)
    return found


def test_bars_and_medians_of_a_small_histogram():
    root = ET.fromstring(histogram_svg({"bfs": [0, 0, 1, 4, 2], "dead_end_filling": [0, 0, 0, 0, 0, 7]}, "Lengths"))
    assert "Lengths (n = 7)" in texts(root)
    assert [text for text in texts(root) if "median" in text] == ["median 3", "median 5"]
    assert "57 %" in texts(root) and "100 %" in texts(root)
    assert "bfs" in texts(root) and "dead end filling" in texts(root)
    one, other = (bars(path) for path in root.iter(f"{SVG}path"))
    assert [bar[:2] for bar in one] == [bar[:2] for bar in other]  # one axis for both
    heights = [bar[2] for bar in one]
    assert heights == pytest.approx([heights[1] / 4, heights[1], heights[1] / 2, 0], abs=0.02)
    assert [bar[2] > 0 for bar in other] == [False, False, False, True]
    widths = [right - left for left, right, _ in one]
    assert max(widths) - min(widths) < 0.02
    dashed = [float(line.get("x1")) for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray")]
    assert [one[1][0] < dashed[0] < one[1][1], one[3][0] < dashed[1] < one[3][1]] == [True, True]
    shown = {text: float(e.get("x")) for e in root.iter(f"{SVG}text") if (text := e.text or "").isdigit()}
    assert set(shown) == {"2", "3", "4", "5"}
    assert all(one[k][0] < shown[str(2 + k)] < one[k][1] for k in range(4))


def test_different_numbers_of_rows_are_given_with_each_panel():
    found = texts(ET.fromstring(histogram_svg({"a": [3], "b": [0, 1234], "none": []}, "T")))
    assert "T" in found and {"n = 3", "n = 1,234", "n = 0"} <= set(found)


def test_it_stands_alone_and_any_name_survives():
    svg = histogram_svg({"<script>&\x00\n": [1]}, title='"&<a href="x">\x1b', x_label="</svg>")
    root = ET.fromstring(svg)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags == {"svg", "title", "rect", "g", "text", "line", "path"}
    assert not [name for element in root.iter() for name in element.attrib if "href" in name or name == "style"]
    assert '"&<a href="x">\ufffd (n = 1)' in texts(root)
    assert svg.count("http") == 1  # the name of the language
    with pytest.raises(UsageError):
        histogram_svg({})


counts = st.lists(st.integers(0, 50), max_size=40) | st.tuples(st.integers(0, 2000), st.integers(1, 9)).map(
    lambda pair: [0] * pair[0] + [pair[1]]
)


@given(st.lists(counts, min_size=1, max_size=4))
def test_no_row_is_lost_and_nothing_leaves_the_picture(histograms):
    root = ET.fromstring(histogram_svg({str(k): values for k, values in enumerate(histograms)}))
    filled = [values for values in histograms if any(values)]
    paths = list(root.iter(f"{SVG}path"))
    assert len(paths) == len(filled)
    width, height = float(root.get("width")), float(root.get("height"))
    medians = [int(text.removeprefix("median ")) for text in texts(root) if text.startswith("median")]
    for values, path, median in zip(filled, paths, medians, strict=True):
        shape = bars(path)
        tallest = max(bar[2] for bar in shape)
        total = sum(bar[2] for bar in shape) / tallest  # in rows of the highest bin
        assert len(shape) <= 121 and total >= 1 - 1e-9
        spread = np.repeat(np.arange(len(values)), values)
        assert median == spread[(len(spread) - 1) // 2]
    for line in root.iter(f"{SVG}line"):
        assert all(0 <= float(line.get(name)) <= limit for name, limit in (("x1", width), ("x2", width)))
        assert all(0 <= float(line.get(name)) <= height for name in ("y1", "y2"))
