"""The words of the pages: what was not understood stands behind "How this is computed" alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.visitors import ACCESS
from tests.worlds import quoted_sentences, screens
from tests.worlds.demo_view import ScriptedView
from tests.worlds.desk_pages import open_pages
from torra.dashboard.app import create_app
from torra.exhibits import glossary

SPOKEN = (
    "title",
    "aria-label",
    "placeholder",
    "data-confirm",
    "data-label",
    "alt",
    "aria-valuetext",
)
"""Attributes whose words a person sees or hears."""

VOID = frozenset(
    ["meta", "link", "input", "br", "hr", "img", "wbr", "col", "path", "rect", "line", "circle"]
)
UNSEEN = ("script", "style", "template")


class Told(HTMLParser):
    """All words of a page but those behind "How this is computed", tooltips and labels included."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self.folds = 0
        self._open: list[tuple[str, bool]] = []
        self._hiding = 0
        self.feed(text)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.said))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        fold = tag == "details" and "computed" in (known.get("class") or "").split()
        if not self._hiding:
            self.said += [f" | {known[name]} | " for name in SPOKEN if known.get(name)]
        if tag not in VOID:
            hides = fold or tag in UNSEEN
            self._open.append((tag, hides))
            self._hiding += hides
            self.folds += fold

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element that closes itself opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in reversed(self._open)):
            name = ""
            while name != tag:
                name, hides = self._open.pop()
                self._hiding -= hides
        self.said.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hiding:
            self.said.append(data)


def found_in(text: str) -> list[str]:
    told = Told(text).text
    return [one for one in quoted_sentences.wanted() if quoted_sentences.pattern(one).search(told)]


def faults(app, of_a_kind: int = screens.OF_A_KIND) -> dict[str, list[str]]:
    """Return, for each page that a visitor can reach, the sentences that stand openly on it."""
    wrong: dict[str, list[str]] = {}
    for name, (address, page) in screens.pages_of(app, of_a_kind).items():
        found = found_in(page)
        if found:
            wrong[f"{name} {address}"] = found
    return wrong


STATES = (
    "demo",
    "empty",
    "halted",
    "many",
    *(
        pytest.param(state, marks=pytest.mark.nightly)
        for state in ("stale", "weekend", "standby", "blocked", "busy", "bare")
    ),
)
"""By day those whose pages have the most to say, and the least."""


@pytest.mark.journey
@pytest.mark.parametrize("state", STATES)
def test_no_page_of_a_scripted_desk_says_them_openly(state, scaled: Scale) -> None:
    """By day the first page of each kind: a state is told on every page."""
    found = faults(create_app(ScriptedView(state), access=ACCESS), scaled(screens.OF_A_KIND))
    assert not found


CASES = ("full", "degraded", *(
    pytest.param(case, marks=pytest.mark.nightly) for case in ("demo", "event", "shadow")
))  # fmt: skip


@pytest.mark.journey
@pytest.mark.parametrize("case", CASES)
def test_no_page_of_the_full_desk_says_them_openly(case, scaled: Scale) -> None:
    """By day the first page of each kind, which is that of the case."""
    assert not faults(screens.view_app(case), scaled(screens.OF_A_KIND))


@pytest.mark.journey
def test_no_page_of_a_desk_that_asks_a_person_says_them_openly(tmp_path, scaled: Scale) -> None:
    assert not faults(screens.desk_app(tmp_path), scaled(screens.OF_A_KIND))


@pytest.mark.journey
def test_no_page_of_another_programs_home_says_them_openly(tmp_path, scaled: Scale) -> None:
    assert not faults(screens.hosted_app(tmp_path), scaled(screens.OF_A_KIND))


@pytest.mark.journey
def test_no_page_of_an_empty_desk_says_them_openly(tmp_path) -> None:
    assert not faults(open_pages(tmp_path / "home", steps=0).app)


def test_a_sentence_is_found_in_text_and_tooltip_and_not_in_a_fold() -> None:
    said = "<p>Kept at worst case</p>"
    assert found_in(said)
    assert found_in('<p title="Kept at  worst case">x</p>')
    assert not found_in(f'<details class="computed"><summary>How</summary>{said}</details><p>x</p>')
    assert found_in("<p>1 of 3 <b>without bars now</b></p>")


@cases("word", quoted_sentences.LABELS)
def test_a_single_word_that_stays_has_an_entry(word) -> None:
    assert glossary.entry(word).line


def test_every_entry_has_one_idea_and_an_address_of_its_own() -> None:
    every = [one for section in glossary.SECTIONS.values() for one in section]
    every += list(glossary.evidence())
    assert len({one.slug for one in every}) == len(every)
    assert all(one.line.endswith(".") and len(one.line.split()) <= 24 for one in every)
    openly = " ".join(one.line for one in every)
    assert not [one for one in quoted_sentences.wanted() if one in openly]
