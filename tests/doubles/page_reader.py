"""Pages as a test reads them: elements, words, tables, live cells; and what holds for every page.

`get(address, state)` asks an app over the scripted view in that state; the state `desk` is the full
desk of demo_full_desk, `desk:CASE` with that case as its newest tick.
"""

from __future__ import annotations

import functools
import itertools
import re
from html.parser import HTMLParser
from typing import Any, NamedTuple

from flask import Flask
from flask.testing import FlaskClient

from tests.doubles.visitors import open_app
from tests.worlds.demo_full_desk import FullDeskView
from tests.worlds.demo_view import ScriptedView

VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "path", "rect", "line"))


class Element(NamedTuple):
    """An element, the text within it but that of bubbles, and the ids of the elements around it."""

    tag: str
    attributes: dict[str, str | None]
    parts: list[str]
    within: tuple[str | None, ...]

    @property
    def tone(self) -> str | None:
        return self.attributes.get("data-tone")

    @property
    def text(self) -> str:
        return re.sub(r"[ \n]+", " ", "".join(self.parts)).strip()


class Page(HTMLParser):
    """A page's elements with attributes and the text within them.

    The text of a bubble, which a press of its label opens, is not among it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._every: list[Element] = []
        self._around: list[Element] = []
        self._rows: list[list[Element]] = []
        self.words: list[str] = []
        self.feed(text)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        within = [one.attributes["id"] for one in self._around if "id" in one.attributes]
        element = Element(tag, dict(attrs), [], tuple(within))
        self._every.append(element)
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th") and self._rows:
            self._rows[-1].append(element)
        if tag not in VOID:
            self._around.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            while self._around and self._around.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        if any("popover" in one.attributes for one in self._around):
            return
        self.words.append(data)
        for element in self._around:
            element.parts.append(data)

    @property
    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        return [(one.tag, one.attributes) for one in self._every]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of each row of a table."""
        return [["".join(cell.parts) for cell in row] for row in self._rows]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [one.attributes for one in self._every if one.tag == tag]

    def elements(self, name: str, within: str | None = None) -> list[Element]:
        """Return the elements of a class or tag, those in the element of an id if one is named."""
        return [
            one
            for one in self._every
            if name in (one.tag, *(one.attributes.get("class") or "").split())
            and (within is None or within in one.within)
        ]

    def texts(self, name: str, within: str | None = None) -> list[str]:
        return [element.text for element in self.elements(name, within)]


@functools.cache
def app_of(state: str) -> Flask:
    desk, _, case = state.partition(":")
    return open_app(FullDeskView(case or "demo") if desk == "desk" else ScriptedView(state))


def client(state: str = "demo") -> FlaskClient:
    return app_of(state).test_client()


def get(address: str, state: str = "demo", status: int = 200) -> Page:
    """Return a page; one that was asked for before is not asked for again."""
    return (read if status == 200 else read.__wrapped__)(address, state, status)


@functools.cache
def read(address: str, state: str, status: int) -> Page:
    answer = client(state).get(address)
    assert answer.status_code == status, answer.text[:400]
    return Page(answer.text)


def page_of(address: str = "/", state: str = "demo", **answers: object) -> Page:
    """Return a page over a scripted view some of whose methods answer these."""
    view = ScriptedView(state)
    for name, answer in answers.items():
        setattr(view, name, lambda *_, answer=answer: answer)
    found = open_app(view).test_client().get(address)
    assert found.status_code == 200
    return Page(found.text)


class OneTickView(FullDeskView):
    """The full desk, with one record of a test's own."""

    def __init__(self, record: dict[str, Any]) -> None:
        super().__init__("demo")
        self.record = record

    def tick(self, instance: str, timeframe: str, bar_time: str) -> dict[str, Any] | None:
        mine = bar_time == self.record["bar_time"]
        return self.record if mine else super().tick(instance, timeframe, bar_time)


def tick_text(record: dict[str, Any]) -> str:
    """Return the page of a tick with this stored record."""
    address = f"/symbol/{record['instance']}/{record['timeframe']}/{record['bar_time']}"
    answer = open_app(OneTickView(record)).test_client().get(address)
    assert answer.status_code == 200
    return answer.text


NAMELESS = ("div", "span", "p")
"""Elements whose `aria-label` nobody is told, but where they have a role."""


def check_structure(page: Any) -> None:
    """Check headings, captions, scopes, ids: what a screen reader follows."""
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert len(page.all("table")) == len(page.all("caption"))
    heads = [name for name, attributes in page.tags if name == "th" and "scope" not in attributes]
    assert not heads
    assert [attributes["lang"] for attributes in page.all("html")] == ["en"]
    assert {"class": "skip", "href": "#main"} in page.all("a")
    assert any(attributes.get("id") == "main" for attributes in page.all("main"))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
        if "aria-label" in attributes and tag in NAMELESS:
            assert "role" in attributes, attributes["aria-label"]


def check_policy(page: Any, *, forms: bool = False) -> None:
    """Check that a page needs nothing that its policy forbids; `forms`: it may have some."""
    for tag, attributes in page.tags:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
    assert all(
        attributes.get("src", "").startswith("/assets/") for attributes in page.all("script")
    )
    assert "style" not in {tag for tag, _ in page.tags}
    assert forms or not page.all("form")
