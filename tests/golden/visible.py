"""A page as text: what a reader gets, and the elements that do or name something.

`read` returns the sections of a page, those inside of the element `main` from heading to heading. A
line is a block, a row of a table with its cells, or a line of preformatted text. What is hidden at
first is marked, and the text of a bubble follows the line of its label. Of elements stands what
they lead to, send, say and hold: no class and no id, so that a page may be built otherwise.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final, NamedTuple

INLINE: Final = frozenset(
    (
        *("a", "abbr", "b", "button", "cite", "code", "em", "i", "input", "kbd", "label", "mark"),
        *("meter", "output", "q", "s", "select", "small", "span", "strong", "sub", "sup", "svg"),
        *("time", "tspan", "var", "wbr", "g", "path", "rect", "line", "circle", "polyline"),
        *("polygon", "use", "img", "td", "th"),
    )
)
"""Elements within a line; every other one begins a line."""

VOID: Final = frozenset(("br", "hr", "img", "input", "link", "meta", "wbr"))
UNREAD: Final = frozenset(("script", "style", "link", "meta"))
CELLS: Final = ("td", "th")
HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
BEGINNING: Final = ("h1", "h2", "h3")
"""Elements that begin a section of the main part."""

AROUND: Final = ("main", "nav", "section", "footer")
"""Elements that begin a section where they stand around it."""

KEPT: Final = (
    *("href", "action", "method", "name", "type", "value", "role", "aria-label", "title", "alt"),
    *("aria-current", "placeholder", "min", "max", "step", "pattern", "maxlength", "download"),
    *("required", "checked", "selected", "disabled", "hidden", "open"),
)
"""Attributes of the elements' lines, in their order."""

CHANCE: Final = frozenset(("csrf",))
"""Fields whose value is drawn anew for each session."""


class Section(NamedTuple):
    """A part of a page: the lines of its text, and those of its elements."""

    inside: bool
    text: list[str]
    elements: list[str]


def read(html: str) -> list[Section]:
    """Return the sections of a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.end_line()
    return reader.sections


class _Open(NamedTuple):
    """An element that has begun; a bubble keeps the line in which it stands."""

    tag: str
    mark: str
    outside: str | None


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections = [Section(False, [], [])]
        self._within: list[_Open] = []
        self._line = ""
        self._bubbles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        inside = self._inside("main")
        if tag in (BEGINNING if inside else AROUND):
            self.end_line()
            self.sections.append(Section(inside, [], []))
        if tag not in UNREAD:
            self._describe(tag, attributes)
        mark = "(hidden) " if "hidden" in attributes else ""
        if "popover" in attributes:
            self._within.append(_Open(tag, "(bubble) ", self._line))
            self._line = ""
            return
        self._break(tag, hidden=bool(mark))
        if tag not in VOID:
            self._within.append(_Open(tag, mark, None))
        if tag in CELLS and self._line.strip():
            self._line += " | "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._inside(tag):
            return
        while self._within[-1].tag != tag:
            self._within.pop()
        ended = self._within[-1]
        if ended.outside is not None:
            self._bubbles.append(f"{ended.mark}{' '.join(self._line.split())}")
            self._line = ended.outside
        else:
            self._break(tag, hidden=bool(ended.mark))
        self._within.pop()

    def handle_data(self, data: str) -> None:
        if self._inside(*UNREAD):
            return
        first, *others = data.split("\n") if self._inside("pre") else [data]
        self._line += f" {first}"
        for line in others:
            self.end_line()
            self._line = line

    def end_line(self) -> None:
        """End the line that is being read, if it says anything; its bubbles follow it."""
        words = " ".join(self._line.split())
        self._line = ""
        lines, self._bubbles = self._bubbles, []
        if words.strip("| "):
            heading = next((HEADINGS[one.tag] for one in self._within if one.tag in HEADINGS), "")
            mark = next((one.mark for one in self._within if one.mark), "")
            lines.insert(0, f"{heading} {mark}{words}".lstrip())
        self.sections[-1].text.extend(lines)

    def _break(self, tag: str, *, hidden: bool) -> None:
        in_line = tag in INLINE or (tag != "tr" and self._inside("tr")) or self._in_bubble()
        if self._inside("pre") or not in_line or (hidden and not self._in_bubble()):
            self.end_line()

    def _in_bubble(self) -> bool:
        return any(one.outside is not None for one in self._within)

    def _inside(self, *tags: str) -> bool:
        return any(one.tag in tags for one in self._within)

    def _describe(self, tag: str, attributes: dict[str, str | None]) -> None:
        if attributes.get("name") in CHANCE:
            attributes["value"] = "<chance>"
        kept = [
            f"{name}={value}" if (value := attributes[name]) else name
            for name in KEPT
            if name in attributes
        ]
        if kept not in ([], ["hidden"]):
            self.sections[-1].elements.append(" ".join([tag, *" ".join(kept).split()]))
