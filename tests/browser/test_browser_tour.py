"""Every screen in a real browser: on a desk and on a phone, light and dark, by mouse and by keys.

Nightly every screen in every look; by day some of them. A screen may have nothing on its console,
break no policy, ask nobody else, not scroll sideways, give axe nothing of any level, and have no
target that is hard to hit.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

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
    small_targets,
)
from tests.worlds.screens import (
    OF_A_KIND,
    UNLINKED,
    addresses_of,
    desk_app,
    page_routes,
    view_app,
)

pytestmark = needs_browser

LOOKS = [(screen, scheme) for screen in (DESK, PHONE) for scheme in ("light", "dark")]
PALETTES = ("classic", "red-up")
ELSEWHERE = {"replay", "replay_report", "replay_trades", "watch", "picture"}
"""Screens of what these desks do not have: their own tests make it."""


@pytest.fixture(scope="module")
def sites(
    tmp_path_factory: pytest.TempPathFactory, scaled: Scale
) -> Iterator[dict[str, tuple[Site, dict[Any, Any]]]]:
    """Return {name: (site, addresses)}, by day those of the first page of a kind."""
    kind = OF_A_KIND if scaled.whole else 1
    apps = {"desk": desk_app(tmp_path_factory.mktemp("desk")), "view": view_app()}
    with contextlib.ExitStack() as served:
        yield {
            name: (served.enter_context(Site(app)), addresses_of(app, kind))
            for name, app in apps.items()
        }
    apps["desk"].extensions["torra_agents"].backing.database.close()


@pytest.fixture(scope="module")
def cookies(
    browser: Browser, sites: dict[str, tuple[Site, dict[Any, Any]]]
) -> list[dict[str, Any]]:
    with Visit(browser) as visit:
        return visit.admit(sites["desk"][0])


def stops(sites):
    """Return (what it is, address with host) of every screen of both desks."""
    return [
        (f"{name} {endpoint}", site.url + address)
        for name, (site, addresses) in sites.items()
        for endpoint, address in sorted(addresses.items())
    ]


def look_at(browser, cookies, what, url, screen, scheme, status=200, **more):
    """Return all that is wrong with a screen, which answers with a status."""
    visit = Visit(browser, screen=screen, scheme=scheme, cookies=cookies, **more)
    with contextlib.closing(visit.context):
        if status != 200:
            visit.forgive(str(status), url)
        answer = visit.page.goto(url)
        visit.page.wait_for_load_state("load")
        wrong = [] if answer.status == status else [f"answered {answer.status}"]
        over = visit.overhang()
        wrong += [f"scrolls sideways by {over} px"] if over > 0 else []
        wrong += findings(visit.page) + small_targets(visit.page) + visit.wrong
    return [f"{what} {screen['width']} {scheme}: {line}" for line in wrong]


def test_links_lead_to_every_screen(sites: dict[str, tuple[Site, dict[Any, Any]]]) -> None:
    found = {name for _, addresses in sites.values() for name in addresses}
    assert page_routes() - found - UNLINKED <= ELSEWHERE


def test_nothing_is_wrong_with_any_screen(
    browser: Browser,
    sites: dict[str, tuple[Site, dict[Any, Any]]],
    cookies: list[dict[str, Any]],
    scaled: Scale,
) -> None:
    cases = [(*stop, *look) for stop in stops(sites) for look in LOOKS]
    random.Random(6).shuffle(cases)  # the same every day
    taken = cases[: scaled(len(cases), least=2)]
    wrong = [line for case in taken for line in look_at(browser, cookies, *case)]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.journey
def test_nothing_is_wrong_in_any_palette(
    browser: Browser,
    sites: dict[str, tuple[Site, dict[Any, Any]]],
    cookies: list[dict[str, Any]],
    scaled: Scale,
) -> None:
    only_nightly(scaled)
    site, addresses = sites["view"]
    cases = [
        (name, site.url + addresses[name], DESK, scheme, palette)
        for palette in PALETTES
        for scheme in ("dark", "light")
        for name in ("overview", "symbol", "tick")
    ]
    wrong = []
    for *case, palette in cases:
        chosen = {"preferences": {"palette": palette}}
        wrong += look_at(browser, cookies, *case, **chosen)
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.journey
@pytest.mark.parametrize(
    "state", ["demo", "empty", "stale", "halted", "stopped", "reducing", "blocked", "broken"]
)
def test_nothing_is_wrong_in_any_state(
    browser: Browser, cookies: list[dict[str, Any]], scaled: Scale, state: str
) -> None:
    only_nightly(scaled)
    status = 503 if state == "broken" else 200
    with Site(view_app(state)) as site:
        wrong = [
            line
            for look in LOOKS
            for line in look_at(browser, cookies, state, f"{site.url}/", *look, status)
        ]
        assert not wrong, "\n".join(["", *wrong])


@pytest.mark.journey
def test_high_contrast_and_no_motion_change_nothing_that_matters(
    browser: Browser,
    sites: dict[str, tuple[Site, dict[Any, Any]]],
    cookies: list[dict[str, Any]],
    scaled: Scale,
) -> None:
    only_nightly(scaled)
    site, addresses = sites["view"]
    more: dict[str, Any] = {"forced_colors": "active", "reduced_motion": "reduce"}
    with Visit(browser, cookies=cookies, **more) as visit:
        visit.page.goto(site.url + addresses["symbol"])
        assert visit.page.evaluate("document.getAnimations().length") == 0
        assert visit.page.evaluate("matchMedia('(forced-colors: active)').matches")
        bare = visit.page.evaluate(
            """() => [...document.querySelectorAll("button, .pill:not([hidden]), select")]
              .filter((one) => one.checkVisibility())
              .filter((one) => getComputedStyle(one).borderStyle === "none")
              .map((one) => one.outerHTML)"""
        )
        assert bare == []


@pytest.mark.journey
def test_the_whole_desk_is_reached_by_keys_alone(
    browser: Browser, sites: dict[str, tuple[Site, dict[Any, Any]]], cookies: list[dict[str, Any]]
) -> None:
    site, addresses = sites["desk"]
    with Visit(browser, cookies=cookies) as visit:
        page = visit.page
        page.goto(site.url + "/")

        def press(*keys):
            with page.expect_navigation():
                for key in keys:
                    page.keyboard.press(key)
            return page.evaluate("location.pathname")

        for room, name in {"Orders": "orders", "Research": "replays", "Desk": "health"}.items():
            page.locator(".rooms a", has_text=room).focus()
            assert press("Enter") == addresses[name]
            for _ in range(40):  # Tab leads on to the other pages of the room
                if page.evaluate("!!document.activeElement.closest('.pages-of')"):
                    break
                page.keyboard.press("Tab")
            page.keyboard.press("Tab")
            second = page.evaluate("document.activeElement.pathname")
            assert second != addresses[name] and press("Enter") == second
        page.goto(sites["view"][0].url)  # whose ticks have everything
        where = "document.activeElement.getAttribute('href')"
        while page.evaluate(where) != "/symbol/BTCUSD/M15":
            before = page.evaluate(where)
            page.keyboard.press("j")
            assert page.evaluate(where) != before
        assert press("Enter") == "/symbol/BTCUSD/M15"
        assert page.evaluate("document.activeElement === document.body")
        first = press("j", "j", "Enter")
        assert first.count("/") == 4  # /symbol/BTCUSD/M15/<bar>
        page.keyboard.press("?")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        page.keyboard.press(".")
        page.wait_for_selector("#live-freeze[aria-pressed=true]", state="attached")
        page.goto(site.url + "/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
