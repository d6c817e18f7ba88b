"""The page Help: every state has its sentence, every term its anchor, every link its target."""

from __future__ import annotations

import re
from pathlib import Path

from tests.doubles.page_reader import get
from torra.config import ROOT
from torra.dashboard.doors.access import SCOPES
from torra.verdict.signal_states import TRANSITIONS
from torra.words import glossary, market
from torra.words.ticks import SOURCES

TEMPLATES = ROOT / "templates" / "torra_agents"


def ids():
    return {attributes["id"] for _, attributes in get("/help").tags if "id" in attributes}


def rows():
    return {row[0].strip(): row[1].strip() for row in get("/help").rows if len(row) == 2}


def test_every_state_of_a_signal_has_a_sentence_and_no_other() -> None:
    shown = {name: text for name, text in rows().items() if name in TRANSITIONS}
    assert set(shown) == set(TRANSITIONS)
    assert all(text.endswith(".") and len(text) > 20 for text in shown.values())
    anchored = {name for name in ids() if name.startswith("signal-")}
    assert anchored == {f"signal-{n.lower().replace('_', '-')}" for n in TRANSITIONS}


def test_every_term_can_be_linked_to() -> None:
    found = ids()
    wanted = {name.lower().replace("_", "-") for name in (*SOURCES, *market.REGIMES)}
    wanted |= {f"triage-{name.replace('_', '-')}" for name in market.TRIAGE}
    wanted |= {f"scope-{name}" for name in SCOPES}
    wanted |= {f"live-{name}" for name in ("live", "polling", "lost", "frozen")}
    wanted |= {"halted", "reducing", "alarm", "keys", "settings", "approvals", "palette"}
    assert wanted <= found


def test_every_link_within_the_page_has_its_target() -> None:
    targets = [a["href"][1:] for a in get("/help").all("a") if a.get("href", "").startswith("#")]
    assert len(targets) > 14
    assert set(targets) <= ids()


def test_links_of_other_pages_to_terms_have_their_target() -> None:
    named = re.compile(
        r"url_for\('torra_agents\.help'(?:, _anchor='([^']+)')?\) \}\}(?:#([\w-]+))?"
    )
    for path in Path(TEMPLATES).glob("*.html"):
        for hit in named.finditer(path.read_text(encoding="utf-8")):
            anchor = hit[1] or hit[2]
            assert not anchor or anchor in ids(), (path.name, anchor)


def test_the_palettes_of_the_shell_are_told() -> None:
    prefs = (ROOT / "static" / "prefs.js").read_text(encoding="utf-8")
    assert len(re.findall(r'\["(blue-orange|classic|red-up|mono)"', prefs)) == 3
    text = rows()["Palette"]
    assert all(word in text for word in ("blue and orange", "classic", "red for up"))


def test_the_filter_shows_only_with_scripts() -> None:
    page = get("/help")
    (box,) = [item for item in page.all("input") if item.get("type") == "search"]
    assert "data-filter" in box
    (row,) = [item for item in page.all("p") if item.get("id") == "help-filter-row"]
    assert "hidden" in row
    script = (ROOT / "static" / "help.js").read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(|fetch\(", script)
    assert "querySelectorAll" in script and "hidden = false" in script


def test_every_entry_has_one_idea_and_an_address_of_its_own() -> None:
    every = [one for section in glossary.SECTIONS.values() for one in section]
    every += list(glossary.evidence())
    assert len({one.slug for one in every}) == len(every)
    assert all(one.line.endswith(".") and len(one.line.split()) <= 24 for one in every)
