"""A swarm's tick in the browser: its board is drawn, and the five answers stay first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.test_browser_answers import FIRST, WIDE, faults
from tests.browser.test_browser_firm import site_of
from tests.conftest import Scale
from tests.doubles.browser import PHONE, Visit, chromium, findings, needs_browser
from tests.worlds import swarm_ticks

pytestmark = needs_browser

SEEN = """
() => [...document.querySelectorAll(".board circle, .board .clash, .worth tfoot td strong")]
  .map((one) => ({ width: one.getBoundingClientRect().width, seen: one.checkVisibility() }))
"""
LOOK = """
([scheme, palette]) => Object.assign(document.documentElement.dataset, { scheme, palette })
"""
PALETTES = ("blue-orange", "classic", "red-up")


@pytest.mark.journey
def test_a_swarms_tick_has_its_answers_first_and_its_board_drawn(
    tmp_path: Path, scaled: Scale
) -> None:
    wrong: list[str] = []
    cases = tuple(swarm_ticks.SCRIPTS) if scaled.whole else ("disputed",)
    with chromium() as browser:
        for case in cases:
            pages = swarm_ticks.lived(tmp_path / case, swarm_ticks.SCRIPTS[case])
            with site_of(pages) as site, Visit(browser, screen=WIDE) as visit:
                visit.admit(site)
                for kind, screen in (("wide", WIDE), ("phone", PHONE)):
                    visit.page.set_viewport_size(screen)
                    visit.page.goto(f"{site.url}{swarm_ticks.TICK}")
                    wrong += faults(visit.page, f"{kind} {case}", FIRST[kind])
                    assert visit.overhang() <= 0
                    if case == "disputed":
                        drawn = visit.page.evaluate(SEEN)
                        assert len(drawn) == 4, "two experts, their conflict, the value"
                        assert all(one["seen"] and one["width"] > 4 for one in drawn)
    assert not wrong, "\n".join(["", *wrong])


def test_a_swarms_tick_is_readable_in_every_palette_and_by_keys(
    tmp_path: Path, scaled: Scale
) -> None:
    pages = swarm_ticks.lived(tmp_path)
    looks = [(scheme, name) for scheme in ("dark", "light") for name in PALETTES]
    with chromium() as browser, site_of(pages) as site, Visit(browser, screen=WIDE) as visit:
        visit.admit(site)
        visit.page.goto(f"{site.url}{swarm_ticks.TICK}")
        for look in looks[: scaled(len(looks), least=1)]:
            visit.page.evaluate(LOOK, look)
            assert findings(visit.page) == [], look
        visit.page.focus("a[href='#swarm']")
        visit.page.keyboard.press("Enter")
        assert visit.page.evaluate("scrollY") > 0
        visit.page.focus(".swarm-judge .worth caption .term")
        visit.page.keyboard.press("Enter")
        assert visit.page.is_visible("#term-expected-value")


BOXES = """
() => Object.fromEntries([".trade", ".seen", "#chart", "h1"].map((name) => {
  const box = document.querySelector(name).getBoundingClientRect();
  return [name, { left: box.left, right: box.right, top: box.top, bottom: box.bottom }];
}))
"""


def test_the_chart_of_a_close_has_the_whole_width_below_the_levels(tmp_path: Path) -> None:
    pages = swarm_ticks.asked_to_close(tmp_path)
    (row,) = pages.database.proposals()
    with chromium() as browser, site_of(pages) as site, Visit(browser, screen=WIDE) as visit:
        visit.admit(site)
        for screen in ({"width": 1440, "height": 900}, PHONE):
            visit.page.set_viewport_size(screen)
            visit.page.goto(f"{site.url}/orders/{row.sid}")
            boxes = visit.page.evaluate(BOXES)
            seen, chart = boxes[".seen"], boxes["#chart"]
            assert seen["left"] == boxes[".trade"]["left"]
            assert seen["top"] >= boxes[".trade"]["bottom"]
            assert chart["right"] - chart["left"] > 0.85 * screen["width"]
            assert boxes["h1"]["right"] <= screen["width"]
            assert visit.overhang() <= 0
            assert findings(visit.page) == []
