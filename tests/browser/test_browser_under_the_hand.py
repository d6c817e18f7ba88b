"""What a person is in the middle of while the page renews itself: a question, a word, the focus."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.doubles.browser import DESK, Site, Visit, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import demo_orders, stores
from tests.worlds.demo_orders import waiting
from torra.clock import Simulated
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView

pytestmark = needs_browser

RENEW = "document.dispatchEvent(new CustomEvent('torra:changed'))"
SHOWN = """() => [...document.querySelectorAll("[data-until-expiry]")]
  .filter((form) => form.checkVisibility()).length"""
ENDS_NOW = """() => {
  const one = document.querySelector("[data-expiry]");
  Object.assign(one.dataset, { countdown: "2", seen: String(performance.now()) });
}"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[PageContext, Simulated, Site]]:
    """A desk with proposals and a position, by a clock that the test holds."""
    start = demo_orders.START + demo_orders.STEPS * demo_orders.QUARTER
    clock = Simulated(start + timedelta(seconds=30))
    backing = demo_orders.build(tmp_path, clock=clock)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    with Site(create_app(view, access=ACCESS, backing=backing)) as site:
        yield backing, clock, site
    backing.database.close()


def _sent(page: Page) -> list[str]:
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url) if one.method == "POST" else None)
    return sent


def _agree(page: Page, sent: list[str]) -> str:
    """Say yes to what is asked, and return the command that was sent."""
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.locator("dialog[open] button").last.click()
    return sent[-1].rpartition("/api/v1/")[2]


def test_a_yes_is_for_the_position_that_was_asked_about(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    """The position leaves while its question is open: the next row of the list is not closed."""
    backing, clock, site = place
    database, now = backing.database, clock.now()
    row = {"bar_time": now, "decided_at": now, "expires": now}
    database.enqueue_signal({**stores.opening("TNEXT"), **row})
    database.move_signal("TNEXT", "PUBLISHED")
    database.move_signal("TNEXT", "FILLED", fields={"price": 100.0, "opened_at": now})
    held = next(one for one in database.positions() if one.instance == "EURUSD")
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site)
        page = visit.page
        page.goto(f"{site.url}/orders")
        sent, own = (
            _sent(page),
            page.locator("tr", has=page.locator(f"a[href$='{held.signal_id}']")),
        )
        own.locator("input[name=price]").fill("1.1822")
        own.get_by_role("button", name="Close").click()
        page.locator("dialog[open]", has_text="EURUSD").wait_for()
        database.close_position(
            held.signal_id, price=held.entry, time=demo_orders.START, profit=0.0, r_multiple=0.0,
            reason="CLOSED",
        )  # fmt: skip
        page.evaluate(RENEW)
        page.locator(".positions tbody tr").nth(2).wait_for(state="detached")
        typed = page.locator(".positions input[name=price]").evaluate_all(
            "(all) => all.map((one) => one.value)"
        )
        assert _agree(page, sent) == f"positions/{held.signal_id}/close"
        visit.forgive("4*", "/api/v1/*")
    assert database.signal("TNEXT")["state"] == "FILLED"
    assert typed == [""], "a stop was typed for another position"


def test_a_yes_to_a_halt_never_resumes(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    backing, _, site = place
    for alarm in backing.database.alarms():
        backing.database.end_alarm(alarm.key)
    with Visit(browser, screen=DESK, preferences={"confirm": "every"}) as visit:
        visit.admit(site)
        page = visit.page
        page.goto(f"{site.url}/orders")
        sent = _sent(page)
        page.locator(".hand button.stop").click()
        page.locator("dialog[open]").wait_for()
        backing.database.set_trading_state("HALTED", "somebody else")
        page.evaluate(RENEW)
        page.locator("#resume-reason").wait_for(state="attached")
        assert _agree(page, sent) == "halt"
        visit.forgive("4*", "/api/v1/*")


@pytest.mark.parametrize("frozen", [True, False])
def test_what_has_expired_cannot_be_answered_though_nobody_tells(
    browser: Browser, place: tuple[PageContext, Simulated, Site], *, frozen: bool
) -> None:
    """The page is frozen, or the desk is silent, at the moment a proposal expires."""
    backing, clock, site = place
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "approve")
        page = visit.page
        page.goto(f"{site.url}/orders/{waiting(backing, 'BTCUSD')}")
        page.locator("#live-state", has_text="live").wait_for()
        if frozen:
            page.evaluate("document.getElementById('more').open = true")
            page.click("#live-freeze")
            page.wait_for_timeout(500)
        else:
            visit.context.set_offline(True)
            page.locator("#live-state", has_text="stale").wait_for()
        clock.set(clock.now() + timedelta(minutes=20))
        page.evaluate(ENDS_NOW)
        page.wait_for_function(f"() => ({SHOWN})() === 0")
        visit.forgive("ERR_INTERNET_DISCONNECTED", "http://*")


def test_the_focus_of_a_part_that_left_is_in_the_page(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    backing, clock, site = place
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "approve")
        page = visit.page
        page.goto(f"{site.url}/orders/{waiting(backing, 'BTCUSD')}")
        page.focus("#approve")
        clock.set(clock.now() + timedelta(minutes=20))
        page.evaluate(RENEW)
        page.locator("#approve").wait_for(state="detached")
        page.wait_for_function("() => document.activeElement.localName !== 'body'")


@pytest.mark.journey
def test_a_page_does_not_keep_what_the_desk_answered_before(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    backing, _, site = place
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(f"{site.url}/orders")
        for number in range(12):
            backing.database.raise_alarm(f"k{number}", "ODD_BOOKS", f"the alarm {number}")
            page.evaluate(RENEW)
            page.locator(".alarm", has_text=f"the alarm {number}").first.wait_for()
        chrome = visit.context.new_cdp_session(page)
        chrome.send("Performance.enable")
        chrome.send("HeapProfiler.collectGarbage")
        told = chrome.send("Performance.getMetrics")["metrics"]
        assert next(one["value"] for one in told if one["name"] == "Documents") <= 4


def test_a_session_that_ended_is_not_called_live(
    browser: Browser, place: tuple[PageContext, Simulated, Site]
) -> None:
    """The desk leads to its login: that page is no answer."""
    _, _, site = place
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(f"{site.url}/health")
        page.locator("#live-state", has_text="live").wait_for()
        visit.context.clear_cookies()
        page.evaluate(RENEW)
        state = "document.getElementById('live-state').innerText"
        page.wait_for_function(f"() => !{state}.includes('live')")
        visit.forgive("401", "/api/v1/*")


def test_a_frozen_page_stands(browser: Browser, place: tuple[PageContext, Simulated, Site]) -> None:
    backing, _, site = place
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(f"{site.url}/orders")
        page.evaluate("document.getElementById('more').open = true")
        page.click("#live-freeze")
        page.wait_for_timeout(500)
        backing.database.raise_alarm("one more", "ODD_BOOKS", "an alarm while it is frozen")
        page.evaluate(RENEW)
        page.wait_for_timeout(1500)
        assert page.locator(".alarm", has_text="while it is frozen").count() == 0
