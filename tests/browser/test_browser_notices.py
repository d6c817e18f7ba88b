"""The browser's own notifications: offered, asked for, shown once, and of new notices alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.doubles.browser import WITH_WINDOWS, Site, Visit, chromium_alone, needs_browser, unfold
from tests.doubles.visitors import ACCESS
from tests.worlds.desk_pages import Pages, open_pages
from torra.dashboard.app import create_app
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.event_stream import EventStream
from torra.store import notices as notice_table

pytestmark = needs_browser

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)
HOSTILE = "<img src=x onerror=alert(1)> \u202e*bold* @everyone"
CAPTURE = """
window.told = [];
window.displayed = [];
window.Notification = new Proxy(window.Notification, {
  construct(target, [title, options]) {
    window.told.push({ title, ...options });
    const made = Reflect.construct(target, [title, options]);
    made.addEventListener("show", () => window.displayed.push(made.tag));
    return made;
  },
});
"""
ALLOWED = """
const state = () => (document.cookie.includes("allowed") ? "granted" : "default");
Object.defineProperty(Notification, "permission", { get: state });
Notification.requestPermission = async () => {
  document.cookie = "allowed=1";
  return state();
};
"""
"""A headless shell refuses whatever is granted; a page then stands before one that allows."""


HEARD = """() => document.addEventListener("torra:changed", (event) => {
  if (event.detail?.what === "notices") window.heard = true;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium_alone(WITH_WINDOWS) as opened:
        yield opened


def allow(visit: Visit, site: Site) -> None:
    visit.context.grant_permissions(["notifications"], origin=site.url)
    if WITH_WINDOWS is None:
        visit.context.add_init_script(ALLOWED)
    visit.context.add_init_script(CAPTURE)


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path)
    events = EventStream(found.database)
    events.start()
    yield replace(found, backing=replace(found.backing, events=events))
    events.close()
    found.database.close()


@pytest.fixture
def site(pages: Pages) -> Iterator[Site]:
    view = DatabaseView(pages.database, pages.backing.settings, pages.desk)
    with Site(create_app(view, access=ACCESS, backing=pages.backing)) as served:
        yield served


def tell(pages: Pages, key: str, title: str = "EURUSD: a proposal waits", **more: Any) -> None:
    row = {
        "key": key, "kind": "proposal", "level": "decision", "title": title,
        "text": "Buy 0.20 lots.", "instance": "EURUSD", "desk_time": NOW, "at": NOW,
        "silent": False, **more,
    }  # fmt: skip
    assert notice_table.add_notice(pages.database, row, ())


def tags(page: Any, count: int) -> list[str]:
    page.wait_for_function(f"() => window.told.length >= {count}")
    return [one["tag"] for one in page.evaluate("window.told")]


def switch_on(page: Any) -> None:
    unfold(page)
    page.click("#open-display")
    assert page.inner_text("#notices-told") == "Off."
    page.click("text=Switch notices on")
    page.wait_for_function(
        "() => document.getElementById('notices-told').textContent.startsWith('On,')"
    )
    page.wait_for_function("() => localStorage.getItem('torra-notices-seen') !== null")
    page.keyboard.press("Escape")


@pytest.mark.journey
def test_new_notices_are_shown_once_while_a_page_is_open(
    browser: Browser, pages: Pages, site: Site
) -> None:
    tell(pages, "past")
    with Visit(browser) as visit:
        allow(visit, site)
        visit.admit(site, "read")
        visit.page.goto(site.url + "/")
        page = visit.page
        switch_on(page)
        tell(pages, "one")
        tell(pages, "quiet", silent=True)
        tell(pages, "two", HOSTILE)
        assert tags(page, 2) == ["one", "two"]
        if WITH_WINDOWS is not None:
            page.wait_for_function("() => window.displayed.length == 2")
        first, second = page.evaluate("window.told")
        assert first == {
            "title": "EURUSD: a proposal waits", "body": "Buy 0.20 lots.", "tag": "one",
        }  # fmt: skip
        assert "\u202e" not in second["title"] and second["title"].startswith("<img")
        page.reload()  # the next page goes on behind what was shown
        tell(pages, "three")
        assert tags(page, 1) == ["three"]
        assert page.locator("img").count() == 0

        unfold(page)

        page.click("#open-display")
        page.click("text=Switch notices off")
        assert page.inner_text("#notices-told") == "Off."
        page.keyboard.press("Escape")
        page.evaluate(HEARD)
        tell(pages, "four")
        page.wait_for_function("() => window.heard")  # and time to ask for it and show it
        page.evaluate("new Promise((then) => setTimeout(then, 600))")
        assert tags(page, 1) == ["three"]


@pytest.mark.journey
def test_two_tabs_show_one(browser: Browser, pages: Pages, site: Site) -> None:
    with Visit(browser) as visit, ExitStack() as stack:
        allow(visit, site)
        visit.admit(site, "read")
        visit.page.goto(site.url + "/")
        switch_on(visit.page)
        other = visit.context.new_page()
        stack.callback(other.close)
        other.goto(site.url)
        other.wait_for_selector("#open-display", state="attached")
        tell(pages, "one")
        for page in (visit.page, other):
            page.wait_for_function(
                "() => localStorage.getItem('torra-notices-seen').startsWith('1 ')"
            )
        shown = [
            tag for page in (visit.page, other) for tag in page.evaluate("told.map(t => t.tag)")
        ]
        assert set(shown) == {"one"}, "the same tag: the browser shows one, whoever was quicker"


@pytest.mark.journey
def test_a_browser_that_refuses_is_told_where_to_allow(
    browser: Browser, pages: Pages, site: Site
) -> None:
    with Visit(browser) as visit:
        visit.context.add_init_script(
            "Object.defineProperty(Notification, 'permission', { get: () => 'denied' });"
            "Notification.requestPermission = async () => 'denied';"
        )
        visit.admit(site, "read")
        visit.page.goto(site.url + "/")
        page = visit.page
        unfold(page)
        page.click("#open-display")
        assert "allow notifications for this address" in page.inner_text("#notices-told")
        page.click("text=Switch notices on")
        assert page.evaluate("localStorage.getItem('torra-notices')") is None


def test_a_browser_without_notifications_is_offered_none(browser: Browser, site: Site) -> None:
    with Visit(browser) as visit:
        visit.context.add_init_script("delete window.Notification;")
        visit.admit(site, "read")
        visit.page.goto(site.url + "/")
        unfold(visit.page)
        visit.page.click("#open-display")
        assert visit.page.locator(".preferences fieldset").count() == 5
        assert visit.page.locator("#notices-switch").count() == 0
