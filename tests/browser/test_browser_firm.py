"""A firm's approval and tick in the browser: the thesis is found without scrolling far."""

from __future__ import annotations

from pathlib import Path

from tests.browser.test_browser_answers import MOST_WORDS, WIDE, WORDS
from tests.doubles.browser import PHONE, Site, Visit, chromium, findings, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import firm_ticks
from torra.dashboard.app import create_app

pytestmark = needs_browser

TOLD = """
() => [...document.querySelectorAll(".thesis .claim dd")].map((one) => ({
  text: one.innerText, top: one.getBoundingClientRect().top + scrollY, seen: one.checkVisibility(),
}))
"""


def test_the_thesis_is_seen_soon_on_approval_and_tick(tmp_path: Path) -> None:
    pages = firm_ticks.lived(tmp_path)
    (row,) = pages.database.proposals(limit=5)
    tick = f"/symbol/{firm_ticks.INSTANCE}/{firm_ticks.TIMEFRAME}/{firm_ticks.BAR}"
    app = create_app(
        pages.app.extensions["torra_agents"].desk_view, access=ACCESS, backing=pages.backing
    )
    with Site(app) as site, chromium() as browser, Visit(browser, screen=WIDE) as visit:
        visit.admit(site)
        for screen, most in ((WIDE, 900), (PHONE, 1500)):
            visit.page.set_viewport_size(screen)
            for address in (tick, f"/approvals/{row['sid']}"):
                visit.page.goto(f"{site.url}{address}")
                (told,) = visit.page.evaluate(TOLD)
                assert told["text"] == firm_ticks.CLAIM
                assert told["seen"]
                assert told["top"] < most, "the trader's words begin within the first look"
                assert visit.overhang() <= 0
                if screen == WIDE:
                    assert findings(visit.page) == []
            visit.page.goto(f"{site.url}{tick}")
            assert visit.page.evaluate(WORDS) <= MOST_WORDS
