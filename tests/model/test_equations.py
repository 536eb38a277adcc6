"""docs/equations.md: every equation is there, and every place that it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/equations.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| (")]


def test_every_equation_has_code_and_a_test():
    numbers = [int(number) for row in ROWS for number in re.findall(r"\((\d+)\)", row.split("|")[1])]
    assert numbers == list(range(1, 19))
    for row in ROWS:
        _, _, _, code, tests, _ = row.split("|")
        assert ".py:" in code
        assert ":test_" in tests


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`([\w/]+\.py(?::\w+)?)`", TEXT))))
def test_every_place_exists(place):
    file, _, name = place.partition(":")
    source = (ROOT / file).read_text(encoding="utf-8")
    assert not name or re.search(rf"^(def|class) {name}\b", source, re.MULTILINE)


@pytest.mark.parametrize("number", range(1, 17))
def test_every_equation_is_named_where_it_lives(number):
    """In the code that the row points to, as "equation (5)" or "equation 5"."""
    (row,) = [row for row in ROWS if f"({number})" in row.split("|")[1]]
    files = re.findall(r"`([\w/]+\.py):", row.split("|")[3])
    sources = " ".join(" ".join((ROOT / file).read_text(encoding="utf-8").split()) for file in files)
    assert re.search(rf"[Ee]quation \({number}\)|[Ee]quation {number}\b", sources)
