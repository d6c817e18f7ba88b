"""A firm's approval and tick in the browser: the thesis is found, and the five answers too."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_browser_answers import FIRST, WIDE, faults
from tests.doubles.browser import PHONE, Site, Visit, chromium, findings, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import firm_ticks
from torra.dashboard.app import create_app

pytestmark = needs_browser

TICK = f"/symbol/{firm_ticks.INSTANCE}/{firm_ticks.TIMEFRAME}/{firm_ticks.BAR}"
LONG = (
    "Buyers hold the close above the twenty-bar mean, RSI at 61 leaves them room to the resistance "
    "that capped every advance since the session opened today in London."
)
"""A claim of all the letters that a trader has."""

TOLD = """
() => [...document.querySelectorAll(".thesis .claim")].map((one) => ({
  text: one.innerText, top: one.getBoundingClientRect().top + scrollY, seen: one.checkVisibility(),
}))
"""
ENDS = ".thesis .ends"


@pytest.mark.journey
def test_the_thesis_is_seen_soon_on_approval_and_tick(tmp_path: Path) -> None:
    pages = firm_ticks.lived(tmp_path)
    (row,) = pages.database.proposals(limit=5)
    with chromium() as browser, site_of(pages) as site, Visit(browser, screen=WIDE) as visit:
        visit.admit(site)
        for screen, most in ((WIDE, 900), (PHONE, 1500)):
            visit.page.set_viewport_size(screen)
            for address in (TICK, f"/orders/{row.sid}"):
                visit.page.goto(f"{site.url}{address}")
                (told,) = visit.page.evaluate(TOLD)
                assert told["text"] == firm_ticks.CLAIM
                assert told["seen"]
                assert told["top"] < most, "the trader's words begin within the first look"
                # a decision needs it unfolded, a tick of the past has its six facts first
                assert visit.page.is_visible(ENDS) is (address != TICK)
                assert visit.overhang() <= 0
                if screen == WIDE:
                    assert findings(visit.page) == []
            visit.page.goto(f"{site.url}{TICK}")
            visit.page.click(".thesis summary")
            assert visit.page.is_visible(ENDS)


def test_a_thesis_leaves_the_five_answers_on_the_first_screen(tmp_path: Path) -> None:
    def declines(request: Any) -> dict[str, Any]:
        return firm_ticks.thesis(request, claim=LONG, decline=True, reason_code="HIGH_VOLATILITY")

    wrong: list[str] = []
    with chromium() as browser:
        for name, script in (("written", {}), ("declined", {"trader": declines})):
            pages = firm_ticks.lived(tmp_path / name, script)
            with site_of(pages) as site, Visit(browser, screen=WIDE) as visit:
                visit.admit(site)
                for kind, screen in (("wide", WIDE), ("phone", PHONE)):
                    visit.page.set_viewport_size(screen)
                    visit.page.goto(f"{site.url}{TICK}")
                    wrong += faults(visit.page, f"{kind} {name}", FIRST[kind])
    assert not wrong, "\n".join(["", *wrong])


@contextlib.contextmanager
def site_of(pages: Any) -> Any:
    view = pages.app.extensions["torra_agents"].desk_view
    app = create_app(view, access=ACCESS, backing=pages.backing)
    with contextlib.closing(pages.desk), Site(app) as site:
        yield site
