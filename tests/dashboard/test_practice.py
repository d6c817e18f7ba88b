"""Practice on the demo: it asks soon, writes no file, and ends with the first decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import demo_orders, desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import System
from torra.config import Profile, load_profile
from torra.dashboard.settings import practice
from torra.dashboard.view.backing import Backing
from torra.errors import ConfigError
from torra.profiles.fields import canonical
from torra.profiles.guard import compare, loosening

JSON = {"Accept": "application/json"}


class Fast(System):
    """A clock that says that it runs 180 times as fast."""

    accelerated = True
    rate = 180.0


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    monkeypatch.setattr(practice, "LOOK_EVERY", 0.01)
    found = open_pages(tmp_path / "home", (desks.BTC,), steps=2)
    yield found
    practice.end(found.backing)
    found.desk.close()


@pytest.fixture
def known(pages: Pages) -> Iterator[tuple[Backing, list[tuple[str, Profile]]]]:
    """A demo as the pages know it, and what was adopted."""
    adopted: list[tuple[str, Profile]] = []
    desk = _Desk(pages.desk)
    found = replace(
        pages.backing, desk=desk, adopt=lambda name, profile: adopted.append((name, profile))
    )
    yield found, adopted
    practice.end(found)


class _Desk:
    """The desk of a test with the clock of a demo."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self.clock = Fast()
        self.active = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    assert what()


def test_the_demo_asks_and_no_file_is_written(known: Any) -> None:
    backing, adopted = known
    before = sorted(path for path in backing.home.rglob("*") if path.suffix == ".json")
    practice.begin(backing)
    ((name, profile),) = adopted
    assert (name, profile.execution, profile.agents.influence) == ("default", "approve", "shadow")
    assert profile.thresholds.buy == profile.thresholds.sell == practice.EASY
    assert sorted(path for path in backing.home.rglob("*") if path.suffix == ".json") == before


def test_it_loosens_the_thresholds_alone_and_nothing_goes_out_without_a_yes(known: Any) -> None:
    backing, adopted = known
    running = next(iter(backing.desk.setups.values())).profile
    practice.begin(backing)
    changes = compare(canonical(running), canonical(adopted[0][1]))
    assert {change.place[0] for change in loosening(changes)} == {"thresholds"}
    assert adopted[0][1].execution == "approve"
    assert Profile.model_validate(canonical(adopted[0][1]))


def test_a_decision_ends_it(known: Any) -> None:
    backing, adopted = known
    practice.begin(backing)
    backing.database.propose(
        {
            "sid": "TAAAAAAAAAAAA", "torra_key": "x", "instance": "BTCUSD", "symbol": "BTCUSD",
            "timeframe": "M15", "bar_time": "2021-11-08T02:45:00Z", "verdict": "BUY",
            "action": "OPEN_BUY", "drafts": [], "price": 1.0, "atr": 1.0, "multiplier": 1.0,
            "created_at": "2021-11-08T03:00:00Z", "expires": "2021-11-08T03:15:00Z",
        }
    )  # fmt: skip
    assert practice.going(backing) is not None
    backing.database.decide_proposal("TAAAAAAAAAAAA", "APPROVED", "")
    until(lambda: practice.going(backing) is None)
    until(lambda: len(adopted) == 2)
    assert adopted[1] == ("default", load_profile("default", backing.home))


def test_a_profile_that_is_not_taken_leaves_all_as_they_were(
    known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing, adopted = known

    def refuse(name: str, profile: Profile) -> None:
        if profile.execution == "approve":
            raise ConfigError("not now")
        adopted.append((name, profile))

    vars(backing)["adopt"] = refuse
    with pytest.raises(ConfigError, match="not now"):
        practice.begin(backing)
    assert practice.going(backing) is None
    assert adopted == [("default", load_profile("default", backing.home))]


def test_time_ends_it(known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backing, adopted = known
    monkeypatch.setattr(practice, "LASTS", timedelta(seconds=0.05))
    practice.begin(backing)
    until(lambda: len(adopted) == 2)
    assert practice.going(backing) is None


def test_a_second_wish_begins_nothing_new(known: Any) -> None:
    backing, adopted = known
    assert practice.begin(backing) is practice.begin(backing)
    assert len(adopted) == 1
    assert practice.end(backing) and not practice.end(backing)
    assert len(adopted) == 2


def test_how_soon_is_told_from_what_was(known: Any) -> None:
    backing, _ = known
    within = practice.likely_within(backing)
    # two ticks of M15 at 180 times: one close in five seconds
    assert within is not None and 5 <= within <= 20 and within % practice.ROUNDED == 0


def test_a_desk_in_real_time_is_refused(pages: Pages) -> None:
    client = pages.client()
    answer = client.post("/api/v1/practice/begin", json={}, headers=JSON)
    assert answer.status_code == 409 and "no practice: " in answer.get_json()["reason"]
    assert client.post("/api/v1/practice/end", json={}, headers=JSON).status_code == 409


def test_an_order_that_leaves_is_refused(known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backing, adopted = known
    setup = next(iter(backing.desk.setups.values()))
    sent = setup.instance.model_copy(update={"bridge": "torra_files"})
    monkeypatch.setattr(_Desk, "setups", {sent.id: replace(setup, instance=sent)}, raising=False)
    with pytest.raises(ConfigError, match="BTCUSD does not trade on paper"):
        practice.begin(backing)
    assert not adopted


def test_a_desk_that_sends_nothing_is_not_made_to(
    known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing, adopted = known
    setup = next(iter(backing.desk.setups.values()))
    off = setup.profile.model_copy(update={"execution": "off"})
    silent = {setup.instance.id: replace(setup, profile=off)}
    monkeypatch.setattr(_Desk, "setups", silent, raising=False)
    with pytest.raises(ConfigError, match=r"sends nothing \(execution: off\)"):
        practice.begin(backing)
    assert not adopted


@pytest.mark.parametrize("scope", ["read", "approve"])
def test_only_an_administrator_may(pages: Pages, scope: str) -> None:
    for what in ("begin", "end"):
        headers = JSON | bearer(scope)
        answer = pages.client().post(f"/api/v1/practice/{what}", json={}, headers=headers)
        assert answer.status_code == 403


def test_the_page_shows_a_proposal_that_waits(tmp_path: Path) -> None:
    made = demo_orders.build(tmp_path / "home")
    try:
        page = demo_orders.open_pages(made).test_client().get("/first-run").text
        assert "Look at it and decide" in page or "✓ done" in Page(page).text
    finally:
        made.database.close()
