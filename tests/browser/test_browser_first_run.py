"""The first steps in a real browser: from Home to a decided trade, by mouse and by keys alone."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests import ROOT
from tests.conftest import Scale
from tests.doubles.browser import DESK, PHONE, Site, Visit, findings, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import demo_orders
from torra.clock import Simulated, System, iso
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView

pytestmark = needs_browser

LOOKS = [(screen, scheme) for screen in (DESK, PHONE) for scheme in ("light", "dark")]


LONG_NAME = "home_" + "x" * 70
"""A word that no phone shows in one line, and the pages show the home's path."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[PageContext, Site]]:
    """A desk that has lived for a moment, with a proposal that waits."""
    clock = Simulated(
        demo_orders.START + demo_orders.STEPS * demo_orders.QUARTER + timedelta(seconds=30)
    )
    home = tmp_path / LONG_NAME
    backing = demo_orders.build(home, clock=clock)
    since = iso(System().real_now().replace(microsecond=0))
    (home / "lived.json").write_text(json.dumps({"since": since}))
    with backing.database.transaction():
        backing.database.connection().execute(
            "DELETE FROM proposals WHERE state <> 'WAITING' OR instance <> 'BTCUSD'"
        )
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    with Site(create_app(view, access=ACCESS, backing=backing)) as site:
        yield backing, site
    backing.database.close()


def marks(page: Page) -> list[str]:
    return [text.split()[0] for text in page.locator(".first .mark-of").all_inner_texts()]


@pytest.mark.journey
def test_the_steps_are_walked_beside_the_real_pages(
    browser: Browser, place: tuple[PageContext, Site]
) -> None:
    _, site = place
    with Visit(browser) as visit:
        visit.admit(site)
        page = visit.page
        page.goto(site.url + "/")
        page.get_by_role("complementary", name="First steps").wait_for()
        page.get_by_role("link", name="All steps").click()
        page.wait_for_url("**/first-run")
        assert marks(page)[0] == "✓", "a tick is stored"
        page.get_by_role("link", name="Look at it and decide").click()
        page.wait_for_url("**/orders/*")
        assert page.locator(".points").first.is_visible(), "why it was proposed"
        page.locator("#approve").focus()
        page.keyboard.press("Enter")
        page.get_by_text("✓ approved").wait_for()
        page.get_by_text("On paper it fills at the open of the M15 bar").wait_for()
        page.goto(site.url + "/first-run")
        assert marks(page) == ["✓"] * 5
        page.get_by_text("That was all.").wait_for()
        page.goto(site.url + "/")
        assert page.locator(".tour").count() == 0
        page.goto(site.url + "/help")
        page.get_by_role("link", name="Five first steps").click()
        page.wait_for_url("**/first-run")


def test_a_phone_shows_the_yes_above_its_five_words(
    browser: Browser, place: tuple[PageContext, Site]
) -> None:
    backing, site = place
    (row,) = backing.database.proposals()
    with Visit(browser, screen=PHONE) as visit:
        visit.admit(site)
        visit.page.goto(f"{site.url}/orders/{row.sid}")
        yes = visit.page.locator("#approve").bounding_box()
        words = visit.page.locator(".rooms").bounding_box()
        assert yes and words and yes["y"] + yes["height"] <= words["y"]


@pytest.mark.journey
def test_the_new_pages_are_right_in_every_look(
    browser: Browser, place: tuple[PageContext, Site], scaled: Scale
) -> None:
    """Nightly each page in each look; by day some of them."""
    backing, site = place
    (backing.home / "uploads").mkdir()
    shutil.copy(ROOT / "sample_data" / "BTCUSD_M15.csv", backing.home / "uploads")
    addresses = (
        "/", "/first-run", "/models", "/add-symbol", "/add-symbol?source=files&symbol=BTCEUR",
    )  # fmt: skip
    with Visit(browser) as visit:
        cookies = visit.admit(site)
    cases = [(address, *look) for address in addresses for look in LOOKS]
    random.Random(3).shuffle(cases)  # the same every day
    wrong = []
    for address, screen, scheme in cases[: scaled(len(cases), least=2)]:
        with Visit(browser, screen=screen, scheme=scheme, cookies=cookies) as visit:
            visit.page.goto(site.url + address)
            visit.page.wait_for_load_state("load")
            found = [f"sideways {over}"] if (over := visit.overhang()) > 0 else []
            found += findings(visit.page)
            wrong += [f"{address} {screen['width']} {scheme}: {line}" for line in found]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.journey
def test_a_symbol_is_added_by_keys_alone(
    browser: Browser, place: tuple[PageContext, Site], scaled: Scale
) -> None:
    backing, site = place
    (backing.home / "uploads").mkdir()
    shutil.copy(
        ROOT / "sample_data" / "BTCUSD_M15.csv", backing.home / "uploads" / "SOLUSD_M15.csv"
    )
    with Visit(browser, screen=PHONE) as visit:
        visit.admit(site)
        page = visit.page
        page.goto(site.url + "/add-symbol")
        page.locator("#f-source").select_option("files")
        page.locator("#f-symbol").focus()
        page.keyboard.type("SOLUSD")
        page.keyboard.press("Enter")
        page.get_by_text("Nothing is known of it here").wait_for()
        visit.forgive("422", "/api/v1/symbols/check")
        page.get_by_role("button", name="Show what will be written").press("Enter")
        page.get_by_text("fields need attention").wait_for()
        for name, text in (
            ("digits", "2"), ("tick_size", "0.01"), ("tick_value", "0.01"), ("contract_size", "1"),
            ("lot_min", "0.01"), ("lot_step", "0.01"), ("lot_max", "10"), ("spread", "0.05"),
            ("stops_level", "0"),
        ):  # fmt: skip
            page.locator(f"#f-{name}").fill(text)
        page.get_by_role("button", name="Show what will be written").press("Enter")
        page.get_by_text("5. What will be written").wait_for()
        assert visit.overhang() <= 0
        if scaled.whole:  # the form still stands there at the second look
            assert not findings(page)
        page.get_by_role("button", name="Write it").press("Enter")
        page.get_by_text("SOLUSD is added").wait_for()
        assert visit.overhang() <= 0 and not findings(page)
