"""A question from any page: the key, the field in the header, the answer and its citations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.doubles.browser import DESK, PHONE, Site, Visit, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import demo_orders
from torra.dashboard.app import create_app
from torra.dashboard.view.desk_view import DatabaseView

pytestmark = needs_browser

FOCUSED = "document.activeElement.getAttribute('name') ?? document.activeElement.className"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    backing = demo_orders.build(tmp_path_factory.mktemp("ask"))
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    with Site(create_app(view, access=ACCESS, backing=backing)) as site:
        yield site
    backing.database.close()


def test_a_key_and_a_question_lead_to_an_answer(browser: Browser, site: Site) -> None:
    with Visit(browser, screen=DESK) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(f"{site.url}/history")
        page.keyboard.press("/")
        assert page.evaluate(FOCUSED) == "question"
        page.keyboard.type("why did BTCUSD/XAUUSD not trade?")  # a slash is a letter in the field
        page.keyboard.press("Enter")
        page.wait_for_url("**/ask#newest")
        answer = page.locator("#newest")
        assert answer.locator("h2").inner_text() == "why did BTCUSD/XAUUSD not trade?"
        answer.locator(".sentences a").first.click()
        assert page.evaluate("location.hash") == "#fact-1-1"
        answer.locator("tbody tr a").first.click()
        page.wait_for_url("**/symbol/**")
        page.keyboard.press("f")
        page.go_back()
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "question"


def test_on_a_phone_a_link_leads_to_the_page(browser: Browser, site: Site) -> None:
    with Visit(browser, screen=PHONE) as visit:
        visit.admit(site, "read")
        page = visit.page
        page.goto(site.url)
        assert page.locator(".ask-field").is_hidden()
        page.keyboard.press("/")
        assert page.evaluate(FOCUSED) == "ask-link"
        page.locator(".ask-link").click()
        page.wait_for_url("**/ask")
        page.get_by_role("link", name="What do I hold, and what is at risk?").click()
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_url("**/ask#newest")
        assert page.locator(".sentences li").count() >= 3
        assert visit.overhang() == 0
