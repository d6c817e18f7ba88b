"""That a model's calls fail is told once, and that they succeed again is told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.calls import HAIKU, store
from tests.worlds.told import PAID, Pager, ToldDesk
from torra.config import Profile
from torra.store import ledger as ledger_table
from torra.store import notices as notice_table

FAILS = "anthropic: models fail"
WELL = "anthropic: models are well again"
SONNET = "claude-sonnet-5-5"
GEMINI = "google:gemini-3.8-flash"


@pytest.fixture
def desk(tmp_path: Path) -> ToldDesk:
    found = ToldDesk(tmp_path, Pager(), profile=PAID)
    assert found.look() == []
    return found


def test_a_failing_model_is_told_once_and_well_again_once(desk: ToldDesk) -> None:
    store(desk.database, ["garbage"] * 4)
    assert desk.later_look() == []
    store(desk.database, ["timeout"])
    assert desk.later_look() == [FAILS]
    assert desk.texts()[-1] == (
        f"{FAILS}. Of the newest 5 calls to {HAIKU} 0 were usable. torra models says why, and what "
        "to do. Where agents count, an opening is smaller while none is heard."
    )
    for statuses in (["error"] * 30, ["ok"] * 4, ["garbage"], ["ok"] * 4):
        store(desk.database, statuses)
        assert desk.later_look() == []
    store(desk.database, ["ok"])
    assert desk.later_look() == [WELL]
    store(desk.database, ["ok"] * 30)
    assert desk.later_look() == []
    store(desk.database, ["garbage"] * 5)
    assert desk.later_look() == [FAILS]
    kinds = [(row["kind"], row["level"]) for row in notice_table.notices(desk.database, 10)][::-1]
    failing, well = ("models_failing", "decision"), ("models_well", "note")
    assert kinds == [failing, well, failing]


def test_a_vendor_is_told_once_however_many_of_its_models_fail(desk: ToldDesk) -> None:
    store(desk.database, ["garbage"] * 5)
    assert desk.later_look() == [FAILS]
    store(desk.database, ["garbage"] * 5, model=SONNET)
    assert desk.later_look() == []
    store(desk.database, ["ok"] * 5)
    assert desk.later_look() == [], "the other one still fails"
    store(desk.database, ["ok"] * 5, model=SONNET)
    assert desk.later_look() == [WELL]


def test_one_that_was_told_of_and_is_not_asked_keeps_silent_of_no_other(desk: ToldDesk) -> None:
    store(desk.database, ["garbage"] * 5, model=SONNET)
    assert desk.later_look() == [FAILS]
    desk.later_look()
    ledger_table.begin_calls(desk.database)
    store(desk.database, ["ok"] * 5)
    assert desk.later_look() == []
    store(desk.database, ["garbage"] * 20)
    assert desk.later_look() == [FAILS]
    assert desk.later_look() == []


def test_each_vendor_is_told_of_alone(tmp_path: Path) -> None:
    agents = {**PAID.agents.model_dump(), "role_models": {"momentum": GEMINI}}
    desk = ToldDesk(tmp_path, Pager(), profile=Profile.model_validate({"agents": agents}))
    store(desk.database, ["garbage"] * 5)
    assert desk.later_look() == [FAILS]
    store(desk.database, ["timeout"] * 5, model=GEMINI)
    assert desk.later_look() == ["google: models fail"]
    store(desk.database, ["ok"] * 5)
    assert desk.later_look() == [WELL]


def test_models_that_are_well_are_no_news(desk: ToldDesk) -> None:
    store(desk.database, ["ok"] * 40)
    assert desk.later_look() == []
    before = desk.database.connection().conn.total_changes
    assert desk.later_look() == []
    assert desk.database.connection().conn.total_changes == before, "nor is anything written"


def test_a_start_of_the_desk_neither_tells_it_again_nor_forgets_that_it_was_told(
    desk: ToldDesk,
) -> None:
    store(desk.database, ["garbage"] * 6)
    assert desk.later_look() == [FAILS]
    desk.later(seconds=1)
    ledger_table.begin_calls(desk.database)
    assert desk.later_look() == []
    store(desk.database, ["garbage"] * 6)
    assert desk.later_look() == []
    desk.later(seconds=1)
    ledger_table.begin_calls(desk.database)
    store(desk.database, ["ok"] * 5)
    assert desk.later_look() == [WELL]


def test_what_nobody_asks_any_more_is_told_anew_when_somebody_does(desk: ToldDesk) -> None:
    store(desk.database, ["garbage"] * 6)
    assert desk.later_look() == [FAILS]
    desk.profile = Profile()
    assert desk.later_look() == []
    desk.profile = PAID
    assert desk.later_look() == [FAILS]
