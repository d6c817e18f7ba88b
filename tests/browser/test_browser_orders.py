"""Orders of a person in a real browser: a proposal approved, one expired, a profile and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser

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
from tests.worlds import demo_orders, desks, stores
from tests.worlds.demo_orders import waiting
from torra.clock import Simulated
from torra.config import DeskSettings
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.store import audit as audit_chain

pytestmark = needs_browser

WORDS_ABOVE_THE_FOLD = 160
"""Three claims of agents are among them, and what L1 alone would do."""
PLACES = """(names) => names.map((name) => {
  const found = document.querySelector(name);
  if (!found) return [name, null, null];
  const box = found.getBoundingClientRect();
  return [name, Math.round(box.top), Math.round(box.bottom)];
})"""
WORDS = """() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  let words = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    const seen = box.width > 2 && box.height > 2 && box.top < innerHeight && box.bottom > 0;
    const quiet = node.parentElement.closest(".quiet, [hidden]");
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    const uncovered = top && (top === node.parentElement || node.parentElement.contains(top)
      || top.contains(node.parentElement)) && !(top.closest(".act")
      && !node.parentElement.closest(".act"));
    if (!seen || !uncovered || quiet) continue;
    words += node.textContent.split(/\\s+/).filter((word) => /[a-z]/i.test(word)).length;
  }
  return words;
}"""
HEAD, CHECKS, LADDER, CHART, PANEL, ACTIONS = (
    ".decide > header", ".risk", ".ladder", "#chart", "#panel-name", "#approve",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[PageContext, Simulated, Site]]:
    """A desk with proposals, by a clock that the test holds, and the site of its pages."""
    start = demo_orders.START + demo_orders.STEPS * demo_orders.QUARTER
    clock = Simulated(start + timedelta(seconds=30))
    backing = demo_orders.build(tmp_path, clock=clock)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    app = create_app(view, access=ACCESS, backing=backing)
    with Site(app) as site:
        yield backing, clock, site
    backing.database.close()


def test_a_proposal_is_read_and_approved_and_another_expires(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    backing, clock, site = place
    sid = waiting(backing, "BTCUSD")
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "approve")
        page = visit.page
        page.goto(f"{site.url}/orders/{sid}")
        placed = {name: (top, end) for name, top, end in page.evaluate(
            PLACES, [HEAD, CHECKS, LADDER, CHART, PANEL, ACTIONS])}  # fmt: skip
        assert all(end is not None and end <= DESK["height"] for _, end in placed.values()), placed
        assert placed[CHART][0] < placed[LADDER][1], "the chart lies beside the levels"
        assert page.evaluate(WORDS) <= WORDS_ABOVE_THE_FOLD
        page.locator("#chart canvas").first.wait_for()
        page.focus("#approve")
        page.keyboard.press("Enter")
        page.locator("text=Its signal is").wait_for()
        trade = f"#chart[data-chart='/api/v1/signals/{sid}/chart'] canvas"
        page.locator(trade).first.wait_for()  # the chart of the tick has gone
        assert page.locator("#chart").count() == 1
        assert page.locator("#chart-over").is_visible()
        assert backing.database.proposal(sid).state == "APPROVED"
        assert backing.database.signal(sid)["state"] in ("PENDING", "WAITING")
        assert page.locator("#approve").count() == 0
        entry = next(
            row for row in audit_chain.audit_entries(backing.database) if row["action"] == "approve"
        )
        assert (entry["target"], entry["outcome"].partition(":")[0]) == (sid, "done")
        assert "approve" in entry["actor"]

        other = waiting(backing, "XAUUSD")
        page.goto(f"{site.url}/orders/{other}")
        page.locator("#approve").wait_for()
        clock.set(clock.now() + timedelta(minutes=20))
        page.locator("#approve").wait_for(state="detached")
        assert backing.database.signal(other) is None
        page.goto(f"{site.url}/orders?stage=waiting")
        assert page.locator(f"a[href$='{other}']").count() <= 1


WORDS_SHOWN = """() => {
  const main = document.getElementById("main");
  const others = "[data-own], .lines, [data-countdown]";
  for (const other of main.querySelectorAll(others)) other.hidden = true;
  return main.innerText.replace(/\\s+/g, " ");
}"""
"""What a page says, without what a script of its own draws there and what counts down."""


@pytest.mark.journey
@pytest.mark.parametrize("address", ["/", "/symbols", "/symbol/EURUSD/H1"])
def test_a_live_update_leaves_what_a_new_load_shows(
    browser: Browser, place: tuple[PageContext, Simulated, Site], address: str
) -> None:
    """A position is closed while the page is open: its levels and the note of its risk go too."""
    backing, _, site = place
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(site.url + address)
        held = next(one for one in backing.database.positions() if one.instance == "EURUSD")
        long = page.locator(".position .mark, td[data-label=Position]", has_text="LONG 0.66")
        assert long.count() == 1
        backing.database.close_position(
            held.signal_id, price=held.entry, time=demo_orders.START, profit=0.0, r_multiple=0.0,
            reason="CLOSED",
        )  # fmt: skip
        page.evaluate("document.dispatchEvent(new CustomEvent('torra:command'))")
        long.wait_for(state="detached")
        after = page.evaluate(WORDS_SHOWN)
        page.goto(site.url + address)
        assert after == page.evaluate(WORDS_SHOWN)


@pytest.mark.journey
def test_an_account_without_a_trade_is_one_line_until_it_has_one(
    browser: Browser, tmp_path: Path
) -> None:
    desk = desks.open_desk(tmp_path, (desks.BTC,))
    settings = DeskSettings(instances=(desks.BTC,))
    backing = PageContext(tmp_path, desk.database, settings, desk, {})
    view = DatabaseView(desk.database, settings, desk)
    app = create_app(view, access=ACCESS, backing=backing)
    with Site(app) as site, Visit(browser, screen=DESK) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(site.url)
        card = page.locator(".money")
        assert card.evaluate("one => one.getBoundingClientRect().height") < 64
        now = desk.clock.now()
        row = {"bar_time": now, "decided_at": now, "expires": now}
        desk.database.enqueue_signal({**stores.opening("T1"), **row})
        desk.database.move_signal("T1", "PUBLISHED")
        desk.database.move_signal("T1", "FILLED", fields={"price": 100.0, "opened_at": now})
        page.evaluate("document.dispatchEvent(new CustomEvent('torra:command'))")
        card.get_by_text("open, of no known price").wait_for()
        assert card.locator(".money-line, .switch").locator("visible=true").count() == 2
    desk.database.close()


BOXES = """() => [...document.querySelectorAll("main .scroll")]
  .filter((box) => box.clientWidth)
  .map((box) => {
    const panel = box.closest(".card").getBoundingClientRect(), own = box.getBoundingClientRect();
    return [
      own.left >= panel.left && own.right <= panel.right,
      box.scrollWidth - box.clientWidth,
      getComputedStyle(box).backgroundAttachment,
    ];
  })"""


@pytest.mark.journey
def test_the_trades_stay_in_their_panel_at_any_width(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    """Where the table is wider it scrolls by itself, with its edge in shadow; no page does."""
    _, _, site = place
    scrolled = set()
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site)
        visit.page.goto(f"{site.url}/orders?stage=closed")
        assert visit.page.locator(".listing tbody tr").count() > 0
        for width in (320, 390, 600, 740, 800, 900, 980, 1000, 1080, 1100, 1366, 1440, 1920):
            visit.page.set_viewport_size({"width": width, "height": 900})
            assert visit.overhang() == 0, width
            halt = visit.page.locator(".top .halt button").bounding_box()
            assert halt and halt["x"] + halt["width"] <= width, width
            for within, over, edge in visit.page.evaluate(BOXES):
                assert within, width
                assert "local" in edge and "scroll" in edge
                scrolled |= {width} if over > 0 else set()
    assert 800 in scrolled and not scrolled & {390, 1366, 1440, 1920}


LEFT = """() => Math.round(Math.min(...[...document.querySelectorAll("main :is(h1, h2, p, li)")]
  .filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect().left)))"""
HEIGHTS = """(rows) => [...document.querySelectorAll(rows)]
  .map((row) => Math.round(row.getBoundingClientRect().height)).filter(Boolean)"""
MORE_ROWS = """() => {
  const body = document.getElementById("ticks");
  while (body.rows.length < 30) body.append(body.rows[0].cloneNode(true));
}"""
MOST_ROW = 130
"""Pixels of a tick in a list on a phone: three lines, of which the last may be two."""


@pytest.mark.journey
def test_a_phone_lists_a_tick_in_three_lines_and_ten_of_a_symbol(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    _, _, site = place
    with Visit(browser, screen=PHONE) as visit:
        visit.admit(site)
        visit.page.goto(f"{site.url}/history")
        rows = visit.page.evaluate(HEIGHTS, ".ticks-of tbody tr")
        assert rows and max(rows) <= MOST_ROW, rows
        visit.page.goto(f"{site.url}/symbol/BTCUSD/M15")
        # In one go: what the stream sends first draws the list anew.
        rows = visit.page.evaluate(
            f"(rows) => {{ ({MORE_ROWS})(); return ({HEIGHTS})(rows); }}", "#ticks tr"
        )
        assert len(rows) == 10 and max(rows) <= MOST_ROW, rows
        assert visit.page.get_by_role("link", name="All ticks, with filters").is_visible()


@pytest.mark.journey
def test_every_page_of_the_desk_begins_at_the_same_edge(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    _, _, site = place
    with Visit(browser, screen={"width": 1440, "height": 900}) as visit:
        visit.admit(site)
        lefts = {}
        for name in ("signals", "costs", "models", "health", "profiles", "help"):
            visit.page.goto(f"{site.url}/{name}")
            lefts[name] = visit.page.evaluate(LEFT)
        assert len(set(lefts.values())) == 1, lefts
        visit.page.goto(f"{site.url}/models")
        prose = visit.page.locator(".prose").bounding_box()
        head = visit.page.locator("#paid-name").bounding_box()
        assert prose and head and abs(prose["x"] - head["x"]) < 1


def test_the_proposal_fits_a_phone(
    browser: Browser, place: tuple[PageContext, Simulated, Site], scaled: Scale
) -> None:
    only_nightly(scaled)
    backing, _, site = place
    with Visit(browser, screen=PHONE, scheme="dark") as visit:
        visit.admit(site, "approve")
        visit.page.goto(f"{site.url}/orders/{waiting(backing, 'BTCUSD')}")
        placed = visit.page.evaluate(PLACES, [HEAD, CHECKS, ACTIONS])
        assert all(end is not None and end <= PHONE["height"] for _, _, end in placed), placed
        assert visit.overhang() <= 0
        assert findings(visit.page) == []


@pytest.mark.journey
def test_a_profile_is_edited_and_undone(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    backing, _, site = place
    name = backing.settings.instances[0].profile
    saved = backing.home / "profiles" / f"{name}.json"

    def look_back() -> int:
        return json.loads(saved.read_text())["agents"]["history_lookback"]

    with Visit(browser, screen=DESK) as visit:
        visit.admit(site)
        page = visit.page
        page.goto(f"{site.url}/profiles/{name}")
        page.fill("#filter", "history_lookback")
        field = page.locator("[data-row][data-name='agents.history_lookback'] input").first
        before = int(field.input_value())
        field.fill(str(before + 3))
        page.get_by_role("button", name="Show the difference").click()
        page.locator("code", has_text="agents.history_lookback").first.wait_for()
        page.get_by_role("button", name="Save").first.click()
        page.locator(".entry", has_text="Entry 2").wait_for()
        assert look_back() == before + 3
        page.get_by_role("button", name="Put entry 1 back").first.click()
        page.locator("dialog[open]").get_by_role("button", name="Put entry 1 back").click()
        page.locator(".entry", has_text="Entry 3").wait_for()
        assert look_back() == before
