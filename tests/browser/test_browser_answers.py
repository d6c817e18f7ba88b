"""A reader's five questions, answered in a browser before anything is unfolded or scrolled far.

On ticks that opened, were vetoed, were changed by agents, were degraded or held, of three streams:
why this verdict, who disagreed and on what, what it cost, on which evidence, and what would have
happened without agents. Then how many words stand on a tick and on Home.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.conftest import Scale
from tests.doubles.browser import PHONE, Site, Visit, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import desks
from tests.worlds.busy_desk import VOICES, run
from tests.worlds.demo_full_desk import CASES
from tests.worlds.demo_view import STREAMS, bars
from tests.worlds.desk_pages import open_pages
from tests.worlds.screens import view_app
from torra.config import DeskSettings
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.replay.changed import listing

pytestmark = needs_browser

TICKS = 50
CLOSES = 280
WIDE = {"width": 1440, "height": 900}
FIRST = {"wide": 900, "phone": 1700}
"""Pixels from the top within which every answer ends."""

MOST_WORDS = 900
MOST_STORY = 60
MOST_HOME = 160
KINDS = ("opened", "vetoed", "changed", "degraded", "held")
HELD = {"BTCUSD": 40, "EURUSD": 8}
"""Bars before the newest at which the scripted desk holds without any trouble."""

CARRIES = {
    "why": re.compile(
        r"\b(consensus|threshold|buys?|sells?|closes?|holds?|nothing)\b", re.IGNORECASE
    ),
    "who": re.compile(
        r"(Disagreed|Against (buy|sell)ing): \w+|Nobody disagreed|No agent (answered|was asked)"
    ),
    "cost": re.compile(r"Paid for the agents\s+(Nothing|\$\d)"),
    "evidence": re.compile(
        r"Evidence\s+(\d+ facts? cited\s+(\d+|all) true to the record: \w|Nothing cited)"
    ),
    "without": re.compile(
        r"The same trade|No trade|[+−]\d+\.\d\d R, [+−][\d,.]+ USD|still open|open still"
        r"|The same: \w+ kept|not known",
        re.IGNORECASE,
    ),
}
"""What the words of an answer must hold."""

SEEN = """
() => [...document.querySelectorAll("[data-answer]")].map((one) => ({
  name: one.dataset.answer, text: one.innerText.replace(/\\s+/g, " ").trim(),
  seen: one.checkVisibility(), end: Math.ceil(one.getBoundingClientRect().bottom + scrollY),
}))
"""
WORDS = """
() => {
  const shown = [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility());
  const titles = shown.map((one) => one.getAttribute("title") ?? "").join(" ");
  const text = `${document.querySelector("main").innerText} ${titles}`;
  return text.split(/\\s+/).filter(Boolean).length;
}
"""
"""Counts what can be read on a page as it is, tooltips included."""


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, scaled: Scale
) -> Iterator[tuple[Site, dict[str, list[str]]]]:
    """A desk that lived through days with agents that say anything, and often veto; its ticks."""
    home = tmp_path_factory.mktemp("wild")
    desk = run(home, VOICES["wild"](), "full", scaled(CLOSES, least=140))
    settings = DeskSettings(instances=(desks.BTC,))
    backing = PageContext(home, desk.database, settings, desk)
    app = create_app(DatabaseView(desk.database, settings, desk), access=ACCESS, backing=backing)
    with contextlib.closing(desk.database), Site(app) as served:
        yield served, sorted_out(desk.database, settings)


@pytest.fixture(scope="module")
def cookies(browser: Browser, site: tuple[Site, dict[str, list[str]]]) -> list[dict[str, Any]]:
    with Visit(browser) as visit:
        return visit.admit(site[0])


def sorted_out(database: Any, settings: DeskSettings) -> dict[str, list[str]]:
    """Return the addresses of a desk's ticks by what came of them, both timeframes in turn."""
    changed = {
        f"{one.instance}|{one.timeframe}|{one.bar_time}"
        for one in listing.listed(database, settings, kinds=listing.KINDS, limit=200).ticks
    }
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for timeframe in desks.BTC.timeframes:
        for row in database.ticks("BTCUSD", timeframe, 400):
            key = f"BTCUSD|{timeframe}|{row['bar_time']}"
            address = f"/symbol/BTCUSD/{timeframe}/{row['bar_time']}"
            found[kind_of(row, key in changed)].append(address)
    return {kind: mixed(addresses) for kind, addresses in found.items()}


def kind_of(row: Any, changed: bool) -> str:
    if row["reason"] == "GATE_VETO":
        return "vetoed"
    if str(row["action"]).startswith("OPEN"):
        # most openings are changed in their size at least; these stand for the opened ones
        return "opened"
    return "changed" if changed else "held"


def mixed(addresses: list[str]) -> list[str]:
    """Return addresses so that the first few are of every timeframe."""
    groups = [
        list(group) for _, group in itertools.groupby(addresses, lambda one: one.split("/")[3])
    ]
    return [one for some in itertools.zip_longest(*groups) for one in some if one]


def scripted() -> list[tuple[str, str]]:
    """Return ticks of the scripted desk of eight: each case, and a stream of another symbol."""
    m15 = [bar["time"] for bar in bars("BTCUSD", "M15")]
    cases = [("degraded" if case == "degraded" else "vetoed" if case in ("vetoed", "latched")
              else "held", f"/symbol/BTCUSD/M15/{m15[-1 - place]}")
             for place, case in enumerate(CASES)]  # fmt: skip
    others = [
        ("held", f"/symbol/{name}/H1/{bars(name, 'H1')[-HELD[name]]['time']}")
        for name in HELD
        if "H1" in STREAMS[name]
    ]
    # the case of a desk without a quorum first, so that every run has it
    return sorted([*cases, *others], key=lambda one: KINDS.index(one[0]) != 3)


def faults(page: Any, what: str, most: int) -> list[str]:
    """Return what a reader of a tick misses."""
    answers = {one["name"]: one for one in page.evaluate(SEEN)}
    wrong = [f"{what}: no answer to {name}" for name in CARRIES if name not in answers]
    for name, one in answers.items():
        if not one["seen"]:
            wrong.append(f"{what}: {name} is hidden")
        if one["end"] > most:
            wrong.append(f"{what}: {name} ends at {one['end']}, below {most}")
        if not CARRIES[name].search(one["text"]):
            wrong.append(f"{what}: {name} says nothing: {one['text']}")
    if len(answers.get("why", {"text": ""})["text"].split()) > MOST_STORY:
        wrong.append(f"{what}: the story has more than {MOST_STORY} words")
    words = page.evaluate(WORDS)
    return [*wrong, *([f"{what}: {words} words"] if words > MOST_WORDS else [])]


@pytest.mark.journey
def test_a_tick_answers_the_five_questions_on_its_first_screen(
    browser: Browser,
    site: tuple[Site, dict[str, list[str]]],
    cookies: list[dict[str, Any]],
    scaled: Scale,
) -> None:
    served, found = site
    assert all(found[kind] for kind in ("opened", "vetoed", "changed", "held")), found
    count = scaled(TICKS, least=7)
    in_turn = itertools.zip_longest(*(found[kind] for kind in KINDS if found[kind]))
    own = [address for row in in_turn for address in row if address][: count * 3 // 5]
    made = scripted()[: count - len(own)]
    wrong: list[str] = []
    with Site(view_app()) as view:
        stops = [(served, one) for one in own] + [(view, one) for _, one in made]
        assert len({one.rsplit("/", 1)[0] for _, one in stops}) >= 3 or count < TICKS
        with Visit(browser, screen=WIDE, cookies=cookies) as visit:
            for at, address in stops:
                visit.page.goto(at.url + address)
                for name, screen in (("wide", WIDE), ("phone", PHONE)):
                    visit.page.set_viewport_size(screen)
                    if scaled.whole:  # by day the page of the first look is made narrow
                        visit.page.goto(at.url + address)
                    wrong += faults(visit.page, f"{name} {address}", FIRST[name])
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.journey
def test_a_tick_that_agents_changed_says_what_it_would_have_come_to_in_money(
    browser: Browser,
    site: tuple[Site, dict[str, list[str]]],
    cookies: list[dict[str, Any]],
    scaled: Scale,
) -> None:
    served, found = site
    told = []
    with Visit(browser, screen=WIDE, cookies=cookies) as visit:
        for address in found["changed"][: scaled(20, least=4)]:
            visit.page.goto(served.url + address)
            told.append(visit.page.inner_text("[data-answer='without']"))
            if in_money(told[-1]) and not scaled.whole:
                break
    assert any(map(in_money, told)), told


def in_money(told: str) -> bool:
    return bool(re.search(r"[+−][\d,.]+ USD", told))


def test_home_of_two_symbols_has_few_words(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pages = open_pages(tmp_path_factory.mktemp("two"), (desks.BTC, desks.EUR), steps=6)
    app = create_app(pages.app.extensions["torra_agents"].desk_view, access=ACCESS,
                     backing=pages.backing)  # fmt: skip
    with contextlib.closing(pages.desk), Site(app) as served, Visit(browser, screen=WIDE) as visit:
        visit.admit(served)
        visit.page.goto(served.url + "/")
        visit.page.wait_for_load_state("load")
        assert len(visit.page.query_selector_all(".card.symbol")) == 2
        said = visit.page.inner_text("main").split()
        assert len(said) <= MOST_HOME, said
