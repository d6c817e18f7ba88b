"""Practice on the demo: it asks soon, writes no file, and ends with the first decision."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import System
from torra.config import Profile, Thresholds
from torra.dashboard.settings import practice
from torra.dashboard.view.backing import PageContext
from torra.desk import roster
from torra.desk.roster import ProfileReload
from torra.errors import ConfigError, StoreUnavailable
from torra.profiles.fields import canonical
from torra.profiles.guard import compare, loosening
from torra.profiles.practice import EASY, is_eased
from torra.store.trade import proposals_and_alarms as execution_table

JSON = {"Accept": "application/json"}
PROPOSAL: dict[str, Any] = {
    "sid": "TAAAAAAAAAAAA", "torra_key": "x", "instance": "BTCUSD", "symbol": "BTCUSD",
    "timeframe": "M15", "bar_time": "2021-11-08T02:45:00Z", "verdict": "BUY",
    "action": "OPEN_BUY", "drafts": [], "price": 1.0, "atr": 1.0, "multiplier": 1.0,
    "created_at": "2021-11-08T03:00:00Z", "expires": "2021-11-08T03:15:00Z",
}  # fmt: skip


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
def known(pages: Pages) -> Iterator[tuple[PageContext, list[tuple[str, Profile]]]]:
    """A demo as the pages know it, whose desk takes profiles, and what was adopted."""
    adopted: list[tuple[str, Profile]] = []
    pages.desk.roster.refit = ProfileReload(lambda setup, profile: replace(setup, profile=profile))

    def adopt(name: str, profile: Profile) -> None:
        pages.desk.adopt(name, profile)
        adopted.append((name, profile))

    found = replace(pages.backing, desk=_Desk(pages.desk), adopt=adopt)
    yield found, adopted
    vars(found)["adopt"] = adopt
    practice.end(found)


class _Desk:
    """The desk of a test with the clock of a demo, or another one."""

    def __init__(self, desk: Any, clock: System | None = None) -> None:
        self._desk = desk
        self.clock = clock or Fast()
        self.active = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)


def running(known: PageContext) -> Profile:
    return next(iter(known.desk.setups.values())).profile


class Refusing:
    """A desk that takes no profile while it `refuses`."""

    def __init__(self, known: PageContext) -> None:
        self._adopt, self.refuses, self.asked = known.adopt, False, 0
        vars(known)["adopt"] = self

    def __call__(self, name: str, profile: Profile) -> None:
        self.asked += 1
        if self.refuses:
            raise StoreUnavailable("the disk is full")
        assert self._adopt is not None
        self._adopt(name, profile)


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
    assert profile.thresholds.buy == profile.thresholds.sell == EASY
    assert is_eased(profile)
    assert sorted(path for path in backing.home.rglob("*") if path.suffix == ".json") == before


def test_it_loosens_thresholds_and_influence_and_nothing_goes_out_without_a_yes(
    known: Any,
) -> None:
    backing, adopted = known
    before = running(backing)
    practice.begin(backing)
    changes = compare(canonical(before), canonical(adopted[0][1]))
    assert {change.name for change in loosening(changes)} == {
        "thresholds.buy", "thresholds.sell", "agents.influence",
    }  # fmt: skip
    assert adopted[0][1].execution == "approve"
    assert Profile.model_validate(canonical(adopted[0][1]))


def test_a_decision_ends_it(known: Any) -> None:
    backing, adopted = known
    before = running(backing)
    practice.begin(backing)
    backing.database.propose(PROPOSAL)
    assert practice.going(backing) is not None
    execution_table.decide_proposal(backing.database, PROPOSAL["sid"], "APPROVED", "")
    until(lambda: practice.going(backing) is None)
    assert adopted[1:] == [("default", before)]
    assert running(backing) == before


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
    assert adopted == [("default", running(backing))]


@pytest.mark.journey
def test_a_profile_that_is_not_given_back_at_once_is_later(known: Any) -> None:
    backing, _ = known
    before = running(backing)
    desk = Refusing(backing)
    practice.begin(backing)
    desk.refuses = True
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        practice.end(backing)
    assert practice.going(backing) is not None, "it goes on, and the page must say so"
    with pytest.raises(ConfigError, match="is not over yet"):
        practice.begin(backing)
    asked = desk.asked
    until(lambda: desk.asked > asked)  # nobody asks again but the watch
    desk.refuses = False
    until(lambda: practice.going(backing) is None)
    assert running(backing) == before


def test_a_database_that_is_away_for_a_while_does_not_end_the_watch(
    known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing, _ = known
    before = running(backing)
    away = threading.Event()

    def lost(*_: object) -> bool:
        away.set()
        raise StoreUnavailable("no database")

    practice.begin(backing)
    with monkeypatch.context() as patch:
        patch.setattr(practice, "_decided", lost)
        assert away.wait(10)
    assert practice.going(backing) is not None
    backing.database.propose(PROPOSAL)
    execution_table.decide_proposal(backing.database, PROPOSAL["sid"], "REJECTED", "weak case")
    until(lambda: practice.going(backing) is None)
    assert running(backing) == before


def test_it_is_not_over_before_the_tick_that_runs(
    known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing, adopted = known
    monkeypatch.setattr(roster, "PATIENCE", 0.01)
    before = running(backing)
    practice.begin(backing)
    with next(iter(backing.desk.setups.values())).lock:  # a tick runs
        assert practice.end(backing)
        assert practice.going(backing) is not None
        with pytest.raises(ConfigError, match="is not over yet"):
            practice.begin(backing)
        time.sleep(0.1)
        assert len(adopted) == 2, "asked once: the desk takes it by itself"
    until(lambda: practice.going(backing) is None)
    assert running(backing) == before


def test_a_desk_that_works_no_more_ends_it(known: Any) -> None:
    backing, adopted = known
    practice.begin(backing)
    backing.desk.active = False
    until(lambda: practice.going(backing) is None)
    assert len(adopted) == 1, "one that takes over reads the files anew"


def test_a_file_that_waits_for_the_next_start_does_not_keep_it_on(known: Any) -> None:
    backing, _ = known
    before = running(backing)
    events = before.events.model_copy(update={"calendar": "calendar.csv"})
    later = before.model_copy(update={"events": events})
    practice.begin(backing)
    with pytest.raises(ConfigError, match="next start"):
        backing.adopt("default", later)
    folder = backing.home / "profiles"
    folder.mkdir()
    (folder / "default.json").write_text(json.dumps(canonical(later)))
    assert practice.end(backing)
    assert practice.going(backing) is None
    assert running(backing) == before


def test_a_profile_that_was_taken_meanwhile_stays(known: Any) -> None:
    backing, adopted = known
    practice.begin(backing)
    other = running(backing).model_copy(update={"thresholds": Thresholds(buy=0.7, sell=0.7)})
    backing.adopt("default", other)
    assert practice.end(backing)
    assert running(backing) == other
    assert len(adopted) == 2


def test_an_end_waits_for_a_beginning(known: Any) -> None:
    backing, _ = known
    before, adopt = running(backing), backing.adopt
    ended: list[bool] = []
    other = threading.Thread(target=lambda: ended.append(practice.end(backing)))

    def slow(name: str, profile: Profile) -> None:
        if profile.execution == "approve":
            other.start()
            other.join(0.2)  # without a lock it has ended by then
        adopt(name, profile)

    vars(backing)["adopt"] = slow
    practice.begin(backing)
    other.join(10)
    assert ended == [True]
    assert practice.going(backing) is None
    assert running(backing) == before


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
    adopted: list[str] = []
    vars(pages.backing)["adopt"] = lambda name, _: adopted.append(name)
    vars(pages.backing)["desk"] = _Desk(pages.desk, System())
    client = pages.client()
    answer = client.post("/api/v1/practice/begin", json={}, headers=JSON)
    assert answer.status_code == 409
    told = "no practice: this desk lives in real time: practice is for the demo"
    assert answer.json["reason"] == told
    assert not adopted
    answer = client.post("/api/v1/practice/end", json={}, headers=JSON)
    assert (answer.status_code, answer.json["reason"]) == (409, "no practice goes on")


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


def test_the_page_shows_a_proposal_that_waits(pages: Pages) -> None:
    assert "Look at it and decide" not in pages.text("/first-run")
    pages.database.propose(PROPOSAL)
    page = pages.text("/first-run")
    assert "A proposal waits for you." in Page(page).text
    assert re.search(rf'href="[^"]*{PROPOSAL["sid"]}">Look at it and decide<', page)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(20, "is likely within 20 s"), (None, "is likely with one of the next closes")],
)
def test_the_page_says_how_soon(
    known: Any, pages: Pages, monkeypatch: pytest.MonkeyPatch, seconds: int | None, words: str
) -> None:
    backing, _ = known
    monkeypatch.setattr(practice, "likely_within", lambda _: seconds)
    practice.begin(backing)
    assert words.replace("", ";") in Page(pages.text("/first-run")).text.replace("", ";")
