"""SVG as text: whatever is put in comes out of a parser."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from lol_data.views.svg import at, document, tag, words

printable = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=("Cs", "Cc")))


@given(printable, printable)
def test_any_text_survives(text, value):
    element = ElementTree.fromstring(words(1, 2.5, text, class_="ink", data_t=3, fill=None, stroke=value))
    assert (element.text or "") == text
    assert element.attrib == {"x": "1", "y": "2.5", "class": "ink", "data-t": "3", "stroke": value}


def test_elements_nest():
    assert at(3, 4.5, tag("circle", r=2)) == '<g transform="translate(3 4.5)"><circle r="2"/></g>'


@given(printable)
def test_a_document_has_its_title_and_paper(title):
    root = ElementTree.fromstring(document(30, 20, title, "#ffffff", tag("g")))
    assert [child.tag.split("}")[1] for child in root] == ["title", "rect", "g"]
    assert (root[0].text or "") == title
    assert root.get("viewBox") == "0 0 30 20"
