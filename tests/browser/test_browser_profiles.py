"""A profile in a real browser: the bar that saves stays in view, a try comes back beside the field,
and an undo asks with what it will change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import Scale
from tests.doubles.browser import (
    DESK,
    PHONE,
    Site,
    Visit,
    findings,
    needs_browser,
    only_nightly,
)
from tests.doubles.visitors import ACCESS
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import parse
from torra.config import Instance
from torra.dashboard.app import create_app
from torra.dashboard.view.desk_view import DatabaseView
from torra.jobs.worker import Worker
from torra.replay.job_kinds import KINDS

pytestmark = needs_browser

END = parse("2021-11-20T00:00:00Z")
ADDRESS = "/profiles/default"
COVERED = 72
"""Pixels of a phone that the bar may cover at most."""

PLACE = "document.getElementById('bar').getBoundingClientRect().toJSON()"
NAVIGATION = """() => {
  const rooms = document.querySelector("nav.rooms");
  const below = getComputedStyle(rooms).position === "fixed";
  return below ? rooms.getBoundingClientRect().top : innerHeight;
}"""
SCROLLED = ("scrollTo(0, 0)", "scrollTo(0, document.body.scrollHeight / 2)",
            "scrollTo(0, document.body.scrollHeight)")  # fmt: skip


@contextmanager
def served(home: Path, tried: tuple[Instance, ...] = ()) -> Iterator[tuple[Pages, Site]]:
    """A desk with its worker, and months of bars of the instances that settings are tried on."""
    pages = open_pages(home)
    for item in tried:
        for name in item.timeframes:
            bars = desks.sample().bars(item.symbol, name, END, 4000)
            pages.database.store_bars(item.id, name, bars)
    backing = pages.backing
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    worker = Worker(pages.database, backing.home, KINDS)
    worker.start()
    with Site(create_app(view, access=ACCESS, backing=backing)) as site:
        yield pages, site
    worker.close()
    pages.desk.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pages, Site]]:
    """A desk for everybody who saves nothing."""
    with served(tmp_path_factory.mktemp("shared") / "home", (desks.BTC, desks.EUR)) as found:
        yield found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Pages, Site]]:
    """A desk for who saves."""
    with served(tmp_path / "home") as found:
        yield found


@pytest.fixture(scope="module")
def cookies(browser: Browser, shared: tuple[Pages, Site]) -> list[dict[str, Any]]:
    with Visit(browser) as visit:
        return visit.admit(shared[1])


@pytest.mark.journey
def test_a_limit_that_needs_the_command_line_says_so_before_it_is_saved(
    browser: Browser, shared: tuple[Pages, Site], cookies: list[dict[str, Any]]
) -> None:
    _, site = shared
    with Visit(browser, cookies=cookies) as visit:
        visit.page.goto(site.url + ADDRESS)
        row = visit.page.locator("[data-name='risk.max_positions']")
        expect(row.locator("[data-fault]")).to_be_hidden()
        row.locator("input").fill("9")
        expect(row.locator("[data-fault]")).to_have_text("✕ ▲ looser: command line")
        visit.forgive("403", "/api/v1/profiles/default/save")
        visit.page.get_by_role("button", name="Save", exact=True).click()
        expect(visit.page.locator("#toasts")).to_contain_text("Not saved. Loosening Positions")
        expect(visit.page.locator("#check-state")).to_have_text("✕ Not saved.")
        expect(visit.page.locator("#outcome pre")).to_contain_text("risk.max_positions=9 --yes")
        row.locator("input").fill("1")
        expect(row.locator("[data-fault]")).to_be_hidden()


@pytest.mark.journey
@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_the_bar_that_saves_is_in_view_wherever_one_is(
    browser: Browser,
    shared: tuple[Pages, Site],
    cookies: list[dict[str, Any]],
    scaled: Scale,
    screen: Any,
) -> None:
    """By day on a phone, where it may lie over the navigation too."""
    if screen is DESK:
        only_nightly(scaled)
    _, site = shared
    with Visit(browser, screen=screen, cookies=cookies) as visit:
        page = visit.page
        page.goto(site.url + ADDRESS)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for where in SCROLLED:
            page.evaluate(where)
            seen = page.evaluate(PLACE)
            below = page.evaluate(NAVIGATION)
            assert seen["top"] > 0 and seen["bottom"] <= below + 0.5, (where, seen, below)
            assert seen["height"] <= COVERED
            assert seen["left"] >= 0 and seen["right"] <= screen["width"]
        fields = page.locator(".setting :is(input, select, textarea)")
        for field in (fields.first, fields.nth(60), fields.last):
            field.focus()
            shown = field.bounding_box()
            assert shown is not None
            assert shown["y"] + shown["height"] <= page.evaluate(PLACE)["top"], "it hides a field"
        page.evaluate(SCROLLED[-1])
        last = page.locator("footer p").last.bounding_box()
        assert last is not None
        assert last["y"] + last["height"] <= page.evaluate(PLACE)["top"], "it hides the end"
        assert visit.overhang() <= 0
        if scaled.whole:  # all that folds away takes axe seconds: by day a try looks without it
            assert findings(page) == []


def test_save_is_reached_and_pressed_by_keys_alone(
    browser: Browser, place: tuple[Pages, Site], cookies: list[dict[str, Any]]
) -> None:
    pages, site = place
    with Visit(browser, screen=DESK, cookies=cookies) as visit:
        page = visit.page
        page.goto(site.url + ADDRESS)
        page.get_by_label("Positions at once").focus()
        page.keyboard.press("Control+A")
        page.keyboard.type("2")
        expect(page.locator("#bar-state")).to_have_text("1 changed")
        for _ in range(80):
            if page.evaluate("document.activeElement.matches('#bar button.save')"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#toasts")).to_contain_text("Saved. It takes effect at the next start")
        assert pages.json("/api/v1/profiles/default")["values"]["risk"]["max_positions"] == 2


@pytest.mark.journey
def test_a_try_comes_back_beside_the_field_and_keeps_what_was_typed(
    browser: Browser, shared: tuple[Pages, Site], cookies: list[dict[str, Any]], scaled: Scale
) -> None:
    _, site = shared
    with Visit(browser, screen=PHONE, cookies=cookies) as visit:
        page = visit.page
        page.goto(site.url + ADDRESS)
        page.get_by_label("Buy from").fill("0.2")
        page.locator("#bar [data-try]").click()
        expect(page.locator("#try-state")).to_have_text("● done", timeout=60_000)
        expect(page.locator("#tried")).to_contain_text("Buy from: 0.5 → 0.2")
        effect = page.locator("[data-name='thresholds.buy'] .by-itself")
        expect(effect).to_contain_text("0.5 → 0.2 alone, last 30 days:")
        assert page.get_by_label("Buy from").input_value() == "0.2"
        assert visit.overhang() <= 0
        if scaled.whole:  # what came back still stands there at the second look
            assert findings(page) == []
        page.locator("#check").click()
        expect(page.locator("#outcome")).to_contain_text("Loosening Buy from (thresholds.buy)")
        expect(page.locator("#outcome pre")).to_have_text(
            "torra profile set default thresholds.buy=0.2 --yes"
        )
        expect(page.locator("#outcome-title")).to_be_focused()
        assert findings(page) == []


@pytest.mark.journey
def test_finding_a_setting_opens_its_section(
    browser: Browser, shared: tuple[Pages, Site], cookies: list[dict[str, Any]]
) -> None:
    _, site = shared
    with Visit(browser, screen=DESK, cookies=cookies) as visit:
        page = visit.page
        page.goto(site.url + ADDRESS)
        page.fill("#filter", "cooldown")
        expect(page.locator("[data-name='risk.cooldown_bars'] input")).to_be_visible()
        expect(page.locator("[data-name='risk.capital']")).to_be_hidden()
        expect(page.locator("#filter-told")).to_have_text("1 setting")
        page.fill("#filter", "spread")
        expect(page.locator("#filter-told")).to_contain_text("and 1 of the ten above")
        page.fill("#filter", "")
        expect(page.locator("[data-section=risk]")).to_be_visible()


@pytest.mark.journey
def test_an_undo_asks_with_what_comes_back(
    browser: Browser, place: tuple[Pages, Site], cookies: list[dict[str, Any]], scaled: Scale
) -> None:
    pages, site = place
    with Visit(browser, screen=DESK, cookies=cookies) as visit:
        page = visit.page
        page.goto(site.url + ADDRESS)
        page.fill("#filter", "history_lookback")
        page.locator("[data-name='agents.history_lookback'] input").fill("13")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_role("button", name="Put entry 1 back").click()
        asked = page.locator("dialog[open]")
        expect(asked).to_contain_text("Agents: history lookback 13 → 10?")
        if scaled.whole:  # by day the page is looked at without the question
            assert findings(page) == []
        asked.get_by_role("button", name="Put entry 1 back").click()
        page.locator(".entry", has_text="Entry 3").wait_for()
        values = pages.json("/api/v1/profiles/default")["values"]
        assert values["agents"]["history_lookback"] == 10
