"""A class is styled by one component: no sheet of a page changes what another one means by it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from torra.config import ROOT

STATIC, TEMPLATES = ROOT / "static", ROOT / "templates" / "torra_agents"
NAME = re.compile(r"\.([a-zA-Z][\w-]*)")
WHOLE = re.compile(r"\.([a-zA-Z][\w-]*)(?:\[[^\]]*\]|:[\w-]+(?:\([^()]*\))?)*")

SHARED = {
    "chart": "the chart of every page",
    "chip": "a small pill",
    "fault": "what is wrong with a field",
    "moment": "the moment of a tick, with what was seen then",
    "filter": "the filter above a list",
    "order": "the order of a list",
    "stream-line": "a stream in the list of symbols",
    "pages": "the links to older and newer entries",
    "voice": "what an agent says",
}
"""Blocks that a page's own sheet may place, and what each is on every page."""


def sheets_of(template: str) -> list[str]:
    text = (TEMPLATES / template).read_text("utf-8")
    named = re.findall(r"\{% set sheets = \[(.*?)\]", text)
    own = [f"{name}.css" for part in named for name in re.findall(r"\w+", part)]
    return own + re.findall(r"filename='(\w+\.css)'", text)


def selectors(sheet: str) -> Iterator[str]:
    text = re.sub(r"/\*.*?\*/", "", (STATIC / sheet).read_text("utf-8"), flags=re.DOTALL)
    for head in re.findall(r"([^{}]+)\{", text):
        if not head.strip().startswith("@"):
            yield from (one.strip() for one in re.split(r",(?![^(]*\))", head))


def of_two(base: list[str], pages: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the classes that a page's own sheet styles bare and another of its sheets names."""
    names: dict[str, set[str]] = defaultdict(set)
    bare: dict[str, set[str]] = defaultdict(set)
    for sheet in {*base, *(one for own in pages.values() for one in own)}:
        for selector in selectors(sheet):
            names[sheet].update(NAME.findall(selector))
            if whole := WHOLE.fullmatch(selector):
                bare[sheet].add(whole[1])
    found: dict[str, list[str]] = defaultdict(list)
    for page, own in pages.items():
        for sheet in own:
            others = set().union(*(names[one] for one in {*base, *own} - {sheet}))
            for name in (bare[sheet] & others) - set(SHARED):
                found[name].append(f"{page}: {sheet}")
    return dict(found)


def test_a_class_of_two_components_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form and a banner were both `note`: the form's grid broke the banner."""
    monkeypatch.setattr("tests.dashboard.test_style_sheets.STATIC", tmp_path)
    (tmp_path / "base.css").write_text(".banner.note, .filter a { color: red; }")
    (tmp_path / "own.css").write_text("@media print { .note { display: grid; } }\n.own p { a: b; }")
    pages = {"trades.html": ["own.css"], "help.html": []}
    assert of_two(["base.css"], pages) == {"note": ["trades.html: own.css"]}
    (tmp_path / "own.css").write_text(".trade-note { display: grid; }")
    assert of_two(["base.css"], pages) == {}


def test_a_class_is_styled_by_one_component() -> None:
    base = sheets_of("base.html")
    pages = {
        path.name: own
        for path in TEMPLATES.glob("*.html")
        if path.name != "base.html" and (own := sheets_of(path.name))
    }
    assert len(pages) > 15
    assert of_two(base, pages) == {}


DRAWN = re.compile(r"\.(plot|fall|board)\b")
"""Text inside of a drawing is as large as its units, not as the page's text."""


def test_a_size_of_text_is_a_step_of_the_scale() -> None:
    odd = []
    for path in sorted(STATIC.glob("*.css")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        for head, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
            for size in re.findall(r"\bfont(?:-size)?: ([^;]+)", body):
                on_paper = size.endswith("pt") and "report" in head
                if "var(--text-" in size or size in ("inherit", ".9em") or on_paper:
                    continue
                if not (size.endswith("px") and DRAWN.search(head)):
                    odd.append(f"{path.name}: {head.strip()} {size}")
    assert odd == []
