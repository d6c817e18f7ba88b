"""What explains itself in a browser: words that open, a marker's tip, a reason that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.doubles.browser import PHONE, Site, Visit, needs_browser
from tests.worlds.screens import desk_app, view_app

pytestmark = needs_browser

MARKER = """
async () => {
  const { point, marked, markersOf } = await import("/assets/markers.js");
  const holder = document.getElementById("chart");
  const markers = [
    { time: 60, kind: "OPEN_BUY", text: "buy", tone: "up" },
    { time: 60, kind: "EXIT", text: "STOPPED −17", tone: "down" },
    { time: 120, kind: "SELL", text: "", tone: "flat" },
  ];
  const data = { markers, candles: [{ time: 60 }, { time: 120 }], linked: new Set([60]) };
  const told = [];
  for (const [id, at] of [["60", { x: 5, y: 80 }], ["120", { x: 9999, y: 2 }], [undefined, null]]) {
    point(holder, { point: at, hoveredObjectId: id }, data, (time) => `at ${time}`);
    const tip = holder.querySelector(".chart-tip");
    const box = tip.getBoundingClientRect();
    const around = holder.getBoundingClientRect();
    const within = tip.hidden || (box.left >= around.left && box.right <= around.right);
    told.push([tip.hidden, tip.textContent, within]);
  }
  return { told, texts: markersOf(data).map((one) => one.text ?? ""), words: marked(data, 120) };
}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Site]:
    app = desk_app(tmp_path)
    with Site(app) as site:
        yield site
    app.extensions["torra_agents"].backing.database.close()


def test_a_word_opens_its_explanation_by_key_and_by_touch(browser: Browser) -> None:
    with Site(view_app()) as site, Visit(browser, screen=PHONE) as visit:
        visit.admit(site)
        page = visit.page
        page.goto(f"{site.url}/symbol/BTCUSD/M15")
        word, bubble = page.locator("button.term").first, page.locator(".bubble").first
        assert not bubble.is_visible()
        word.focus()
        page.keyboard.press("Enter")
        bubble.wait_for(state="visible")
        assert "Without agents" in bubble.inner_text()
        box = bubble.bounding_box()
        assert box is not None
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
        page.keyboard.press("Escape")
        bubble.wait_for(state="hidden")
        word.click()
        bubble.wait_for(state="visible")
        exact = bubble.locator(".computed")
        assert "measured, never sent" not in bubble.inner_text()
        exact.locator("summary").click()
        assert "measured, never sent" in bubble.inner_text()


@pytest.mark.journey
def test_a_marker_says_what_it_stands_for_and_has_no_text_of_its_own(browser: Browser) -> None:
    with Site(view_app()) as site, Visit(browser) as visit:
        visit.admit(site)
        visit.page.goto(f"{site.url}/symbol/BTCUSD/M15")
        visit.page.wait_for_selector("#chart canvas")
        found = visit.page.evaluate(MARKER)
    first, second, none = found["told"]
    assert first == [False, "buy, STOPPED −17, at 60: a click opens its tick", True]
    assert second == [False, "sell signal, not traded, at 120", True]
    assert none[0]
    assert found["texts"] == ["", "", ""]


@pytest.mark.journey
def test_a_missing_reason_is_told_beside_its_field(browser: Browser, desk: Site) -> None:
    with Visit(browser) as visit:
        visit.admit(desk)
        page = visit.page
        page.goto(desk.url + "/")
        halt(page)
        page.goto(f"{desk.url}/orders")
        assert page.locator("text=Halt everything").count() == 0
        page.locator("button:has-text('Resume')").click()
        told = page.locator(".missing")
        assert told.inner_text() == "Say why it may go on: the reason goes on record."
        assert page.evaluate("document.activeElement.id") == "resume-reason"
        assert page.get_attribute("#resume-reason", "aria-describedby") == "resume-reason-missing"
        page.fill("#resume-reason", "looked")
        assert told.count() == 0
        visit.forgive("*", "/api/v1/halt")


def test_the_header_says_halted_as_soon_as_the_desk_has_answered(
    browser: Browser, desk: Site
) -> None:
    with Visit(browser) as visit:
        visit.admit(desk)
        page = visit.page
        page.clock.install()
        page.goto(f"{desk.url}/health")
        page.wait_for_load_state("load")
        # no timer runs any more: neither what the stream asks for nor the page's own pace
        page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
        halt(page)
        page.wait_for_selector(".chip [data-current][data-tone='alert']")
        assert "halted" in page.inner_text(".chip [data-current]")
        visit.forgive("*", "/api/v1/halt")


COVERED = """
() => [...document.querySelectorAll(".act button, header form.halt button, .rooms a")]
  .filter((one) => one.checkVisibility())
  .filter((one) => {
    const box = one.getBoundingClientRect();
    const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return !one.contains(hit);
  })
  .map((one) => one.textContent.trim())
"""


@pytest.mark.journey
def test_nothing_lies_over_what_decides_on_a_phone(browser: Browser, desk: Site) -> None:
    proposals = desk.app.extensions["torra_agents"].backing.database.proposals()
    with Visit(browser, screen=PHONE) as visit:
        visit.admit(desk)
        for row in proposals[:3]:
            visit.page.goto(f"{desk.url}/orders/{row.sid}")
            visit.page.wait_for_load_state("load")
            assert visit.page.evaluate(COVERED) == []


def halt(page: Any) -> None:
    with page.expect_response("**/halt"):
        page.locator("header form.halt button").click()
