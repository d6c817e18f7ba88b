"""Where agents only look on, each page that shows them says so in the same words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doubles.page_reader import Page
from tests.worlds import firm_ticks
from torra.dashboard.record.shown import WATCH_ONLY

TICK = f"/symbol/{firm_ticks.INSTANCE}/{firm_ticks.TIMEFRAME}/{firm_ticks.BAR}"


@pytest.mark.parametrize(
    ("influence", "badge"), [("shadow", True), ("earned", True), ("full", False)]
)
def test_the_badge_stands_on_home_the_tick_and_the_setting(
    tmp_path: Path, influence: str, badge: bool
) -> None:
    profile = {**firm_ticks.FIRM, "agents": {**firm_ticks.FIRM["agents"], "influence": influence}}
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "default.json").write_text(json.dumps(profile))
    pages = firm_ticks.lived(tmp_path, profile=profile)
    for address in ("/", TICK, "/profiles/default"):
        page = Page(pages.text(address))
        assert (WATCH_ONLY in page.text) == badge, address
        # A size that no conviction lessens names none: another figure stands beside it.
        assert not badge or "conviction 1" not in page.text, address
    pages.desk.close()
