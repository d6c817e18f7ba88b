"""The pages of another program's scorer, in a real browser: nothing wrong, and reached by keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.test_browser_tour import LOOKS, look_at
from tests.conftest import Scale
from tests.doubles.browser import Site, Visit, needs_browser
from tests.worlds.screens import OF_A_KIND, addresses_of, hosted_app

pytestmark = needs_browser

STREAM = "/symbol/host:scorer:BTCUSD/M15"


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, scaled: Scale
) -> Iterator[tuple[Site, dict[str, str]]]:
    app = hosted_app(tmp_path_factory.mktemp("hosted"))
    with Site(app) as served:
        yield served, addresses_of(app, OF_A_KIND if scaled.whole else 1)
    app.extensions["torra_agents"].backing.database.close()


@pytest.fixture(scope="module")
def cookies(browser: Browser, site: tuple[Site, dict[str, str]]) -> list[dict[str, Any]]:
    with Visit(browser) as visit:
        return visit.admit(site[0])


def test_nothing_is_wrong_with_any_hosted_screen(
    browser: Browser,
    site: tuple[Site, dict[str, str]],
    cookies: list[dict[str, Any]],
    scaled: Scale,
) -> None:
    served, addresses = site
    assert addresses["tick"].startswith(f"{STREAM}/") and addresses["symbol"] == STREAM
    cases = [
        (name, served.url + address, *look) for name, address in addresses.items() for look in LOOKS
    ]
    random.Random(9).shuffle(cases)  # the same every day
    taken = cases[: scaled(len(cases), least=1)]
    wrong = [line for case in taken for line in look_at(browser, cookies, *case)]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.nightly
def test_hosted_screens_are_reached_by_keys_alone(
    browser: Browser, site: tuple[Site, dict[str, str]], cookies: list[dict[str, Any]]
) -> None:
    """By day test_browser_tour walks a desk of Torra's own by the same keys."""
    with Visit(browser, cookies=cookies) as visit:
        page = visit.page
        page.goto(site[0].url + "/")

        def press(*keys: str) -> str:
            with page.expect_navigation():
                for key in keys:
                    page.keyboard.press(key)
            return str(page.evaluate("location.pathname"))

        where = "document.activeElement.getAttribute('href')"
        while page.evaluate(where) != STREAM:
            before = page.evaluate(where)
            page.keyboard.press("j")
            assert page.evaluate(where) != before
        assert press("Enter") == STREAM
        newest = press("j", "Enter")
        assert newest.startswith(f"{STREAM}/")
        assert press("[") != newest and press("]") == newest
        for key in ("c", "h", "d"):
            press("g", key)
