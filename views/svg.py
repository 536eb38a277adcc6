"""SVG as text: elements, words, a document. Looks are attributes, so that a page's style sheet can override them."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"

Value = str | float | None


def tag(name: str, *children: str, **attributes: Value) -> str:
    """An element. `data_t=3` is written data-t="3", `class_=` as class=; None leaves an attribute out."""
    head = "".join(
        f" {key.strip('_').replace('_', '-')}={quoteattr(value if isinstance(value, str) else f'{value:.6g}')}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{head}>{''.join(children)}</{name}>" if children else f"<{name}{head}/>"


def words(x: float, y: float, text: str, **attributes: Value) -> str:
    """A line of text whose baseline begins at (x, y), or is centred there with text_anchor="middle"."""
    return tag("text", escape(text), x=x, y=y, **attributes)


def at(x: float, y: float, *children: str) -> str:
    """The children with their origin moved to (x, y)."""
    return tag("g", *children, transform=f"translate({x:g} {y:g})")


def document(width: float, height: float, title: str, paper: str, *children: str) -> str:
    """A whole SVG file, `width` x `height` pixels, with a background of its own and a title for screen readers."""
    return tag(
        "svg",
        tag("title", escape(title)),
        tag("rect", width=width, height=height, fill=paper, class_="paper"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        font_family=FONT,
        role="img",
    )
