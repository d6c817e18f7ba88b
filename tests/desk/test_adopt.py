"""A running desk takes a profile between two ticks: all of it, or none of it with the reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.cases import cases
from tests.worlds import desks
from torra.config import DeskSettings, Profile
from torra.desk import roster, wiring
from torra.desk.roster import InstanceRuntime, ProfileReload, fixed
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
from torra.errors import ConfigError, StoreUnavailable
from torra.providers.registry import open_provider
from torra.store import ticks as claim_table

NAME = "default"


def fit(setup: InstanceRuntime, profile: Profile) -> InstanceRuntime:
    return replace(setup, profile=profile, provider=open_provider(profile.agents))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = desks.working_desk(tmp_path, (desks.BTC, desks.EUR))
    made.roster.refit = ProfileReload(fit)
    yield made
    made.close()


def changed(**sections: Any) -> Profile:
    return Profile.model_validate(sections)


CAREFUL = changed(thresholds={"buy": 0.9, "sell": 0.9})


def digests(desk: Desk) -> dict[str, str]:
    return {name: setup.profile.digest() for name, setup in desk.setups.items()}


def in_use(desk: Desk) -> set[str]:
    return set(digests(desk).values())


def test_the_next_tick_runs_with_the_new_profile_and_says_so(desk: Desk) -> None:
    desks.step(desk)
    before = desks.newest(desk)
    provider = desk.setups["BTCUSD"].provider
    desk.adopt(NAME, CAREFUL)
    assert in_use(desk) == {CAREFUL.digest()}
    assert claim_table.applied_profile(desk.database, "EURUSD")["digest"] == CAREFUL.digest()
    assert desk.setups["BTCUSD"].provider is not provider
    assert desk.roster.wished == {}
    desks.step(desk)
    after = desks.newest(desk)
    assert before["profile"] == Profile().digest()
    assert (after["profile"], after["thresholds"]["buy"]) == (CAREFUL.digest(), 0.9)


def test_another_profile_touches_nobody(desk: Desk) -> None:
    desk.adopt("mine", CAREFUL)
    assert in_use(desk) == {Profile().digest()}


def test_a_desk_that_lost_its_lock_applies_nothing(desk: Desk) -> None:
    desk.lock.path.unlink()
    with pytest.raises(StoreUnavailable, match="lost the lock"):
        desk.adopt(NAME, CAREFUL)
    assert in_use(desk) == {Profile().digest()}
    assert claim_table.applied_profile(desk.database, "BTCUSD")["digest"] == Profile().digest()
    assert desk.lock.restore()


def test_an_adoption_waits_for_the_tick_that_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "PATIENCE", 0.0)
    told = threading.Event()
    desk.roster.refit = ProfileReload(fit, lambda setup: told.set())
    with desk.setups["BTCUSD"].lock:  # as a tick holds it
        desk.adopt(NAME, CAREFUL)
        assert digests(desk) == {"BTCUSD": Profile().digest(), "EURUSD": CAREFUL.digest()}
        told.clear()
        third = changed(thresholds={"buy": 0.8})
        desk.adopt(NAME, third)
        assert desk.setups["BTCUSD"].profile.digest() == Profile().digest()
        told.clear()
    assert told.wait(5)
    assert digests(desk)["BTCUSD"] == third.digest()  # the newest wish, not the first


def test_a_wake_that_waited_for_an_adoption_runs_with_the_new_profile(desk: Desk) -> None:
    """The setup is looked up under its lock, not before it."""
    ran = []
    looked = threading.Event()

    class Watched(dict[str, InstanceRuntime]):
        def __getitem__(self, name: str) -> InstanceRuntime:
            looked.set()
            return super().__getitem__(name)

    desk.roster.setups = Watched(desk.setups)
    desks.clock_of(desk).set(next_close(desk.clock.now(), ["M15"]))
    with desk.setups["BTCUSD"].lock:
        looked.clear()
        waking = threading.Thread(target=lambda: ran.append(desk.wake("BTCUSD")))
        waking.start()
        assert looked.wait(20)
        desk.roster.wished["BTCUSD"] = fit(desk.setups["BTCUSD"], CAREFUL)
        desk.roster._swap("BTCUSD")
    waking.join(20)
    assert ran
    assert desks.newest(desk)["profile"] == CAREFUL.digest()


def test_what_cannot_be_opened_changes_nothing(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="cannot be asked here"):
        desk.adopt(NAME, changed(agents={"provider": "anthropic"}))
    assert in_use(desk) == {Profile().digest()}
    assert desk.roster.wished == {}


def test_a_desk_without_a_way_to_open_says_so(desk: Desk) -> None:
    desk.roster.refit = None
    with pytest.raises(ConfigError, match="at its start only"):
        desk.adopt(NAME, CAREFUL)


def test_conditions_of_a_symbol_do_not_change_under_an_open_position(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = changed(symbols={"BTCUSD": {"spread": 20.0}})
    monkeypatch.setattr(
        desk.database, "position", lambda name: object() if name == "BTCUSD" else None
    )
    with pytest.raises(ConfigError, match="while BTCUSD holds a position"):
        desk.adopt(NAME, wider)
    desk.adopt(NAME, changed(symbols={"EURUSD": {"spread": 0.0002}}))
    monkeypatch.setattr(desk.database, "position", lambda _: None)
    desk.adopt(NAME, wider)
    assert in_use(desk) == {wider.digest()}


WITH_NEWS = {"agents": {"include_news": True}}
WAITS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "news on": ({}, WITH_NEWS, ["agents.include_news"]),
    "their age": (WITH_NEWS, {**WITH_NEWS, "news": {"max_items": 5}}, ["news"]),
    "news off, so who cares": ({}, {"news": {"max_items": 5}}, []),
    "calendar": ({}, {"events": {"calendar": "a.csv"}}, ["events.calendar"]),
    "words": (
        WITH_NEWS,
        {**WITH_NEWS, "symbols": {"BTCUSD": {"ticker": "BTC"}}},
        ["symbols.BTCUSD"],
    ),
    "risk": ({}, {"risk": {"max_positions": 1}}, []),
    "sources": ({}, {"outside": {"sources": ["fred", "file"]}}, ["outside.sources"]),
    "its class, for what it reads beyond the chart": (
        {},
        {"symbols": {"BTCUSD": {"asset": "gold"}}},
        ["symbols.BTCUSD"],
    ),
}


@cases("case", WAITS)
def test_what_waits_for_the_next_start(case: str) -> None:
    before, after, names = WAITS[case]
    found = fixed(changed(**before), changed(**after), [desks.BTC])
    assert [text.split(" ")[0].split(".asset")[0] for text in found] == names


@dataclass(frozen=True)
class Account:
    late: str


def test_answers_that_came_late_are_still_booked_after_a_change() -> None:
    class Models:
        def account(self, settings: Any, name: str) -> Account:
            return Account("new")

        def provider(self, settings: Any) -> str:
            return "provider"

    old: Any = Account("old")
    models: Any = Models()
    before = InstanceRuntime(desks.BTC, Profile(), None, None, threading.Lock(), old)
    after: Any = wiring.fit(models, before, CAREFUL)
    assert (after.account.late, after.provider, after.profile) == ("old", "provider", CAREFUL)
    assert after.lock is before.lock


# --- all of it or none of it ----------------------------------------------------------------------


def test_a_database_that_fails_at_the_second_instance_changes_neither(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = desk.database.apply_profile

    def fails(name: str, *words: Any) -> Any:
        if name == "EURUSD":
            raise StoreUnavailable("the disk is full")
        return real(name, *words)

    monkeypatch.setattr(desk.database, "apply_profile", fails)
    with pytest.raises(StoreUnavailable):
        desk.adopt(NAME, CAREFUL)
    assert in_use(desk) == {Profile().digest()}
    assert claim_table.applied_profile(desk.database, "BTCUSD")["digest"] == Profile().digest()
    assert desk.roster.wished == {}
    assert not any(setup.lock.locked() for setup in desk.setups.values())


def test_all_busy_setups_together_cost_one_patience(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try to lock a setup that is busy takes as long as it may; the clock tells it."""
    waited = []

    class Busy:
        def acquire(self, timeout: float) -> bool:
            waited.append(timeout)
            clock[0] += timeout
            return False

    clock = [100.0]
    monkeypatch.setattr(desk.clock, "monotonic", lambda: clock[0])
    monkeypatch.setattr(roster.InstanceRegistry, "_swap_later", lambda *_: None)
    before = desk.setups
    desk.roster.setups = {
        str(n): replace(before["BTCUSD"], instance=desks.BTC.model_copy(update={"name": str(n)}),
                        lock=cast(Any, Busy()))
        for n in range(50)
    }  # fmt: skip
    desk.adopt(NAME, CAREFUL)
    assert (len(waited), sum(waited)) == (50, roster.PATIENCE)
    assert set(desk.roster.wished) == set(desk.setups)
    desk.roster.setups = before


def test_an_undo_of_a_wish_that_waits_is_the_newest_wish(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "PATIENCE", 0.0)
    lock = desk.setups["BTCUSD"].lock
    threads = set(threading.enumerate())
    with lock:
        desk.adopt(NAME, CAREFUL)
        desk.adopt(NAME, Profile())
    for thread in set(threading.enumerate()) - threads:
        thread.join(20)
    assert in_use(desk) == {Profile().digest()}
    assert desk.roster.wished == {}


def late_failure(desk, monkeypatch: pytest.MonkeyPatch):
    """Adopt while a tick of BTCUSD runs; return what waits for the end of the swap."""
    monkeypatch.setattr(roster, "PATIENCE", 0.0)
    threads = set(threading.enumerate())
    with desk.setups["BTCUSD"].lock:
        desk.adopt(NAME, CAREFUL)
        return [thread for thread in threading.enumerate() if thread not in threads]


@pytest.mark.parametrize(
    "error", [StoreUnavailable("locked"), ValueError("anything")], ids=["store", "else"]
)
def test_a_swap_that_fails_later_raises_an_alarm_that_ends_with_the_next(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real = desk.database.apply_profile

    def fails(name: str, *words: Any) -> Any:
        if name == "BTCUSD":
            raise error
        return real(name, *words)

    monkeypatch.setattr(desk.database, "apply_profile", fails)
    tries = iter([StoreUnavailable("still locked"), None])
    raising = desk.database.raise_alarm

    def raise_alarm(*words: Any) -> Any:
        if found := next(tries):
            raise found
        return raising(*words)

    monkeypatch.setattr(desk.database, "raise_alarm", raise_alarm)
    monkeypatch.setattr(roster, "real_sleep", lambda _: None)
    for thread in late_failure(desk, monkeypatch):
        thread.join(20)
    assert digests(desk) == {"BTCUSD": Profile().digest(), "EURUSD": CAREFUL.digest()}
    (alarm,) = desk.database.alarms()
    assert (alarm.key, alarm.kind) == ("profile BTCUSD", "PROFILE")
    assert f"goes on with its old profile, its tick had to end first: {error}" in alarm.detail
    monkeypatch.setattr(desk.database, "apply_profile", real)
    desk.adopt(NAME, CAREFUL)
    assert desk.database.alarms() == []


def test_a_position_that_the_running_tick_opens_keeps_the_conditions(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "PATIENCE", 0.0)
    threads = set(threading.enumerate())
    wider = changed(symbols={"BTCUSD": {"spread": 20.0}})
    with desk.setups["BTCUSD"].lock:
        desk.adopt(NAME, wider)
        waiting = [thread for thread in threading.enumerate() if thread not in threads]
        monkeypatch.setattr(desk.database, "position", lambda _: object())
    for thread in waiting:
        thread.join(20)
    assert digests(desk)["BTCUSD"] == Profile().digest()
    assert "while BTCUSD holds a position" in desk.database.alarms()[0].detail


def at_home(tmp_path: Path) -> Desk:
    """Return a desk as `torra run` opens it."""
    (tmp_path / "desk.json").write_text(DeskSettings(instances=(desks.BTC,)).model_dump_json())
    return wiring.open_desk(tmp_path)[0]


def test_a_profile_that_does_not_fit_the_instance_is_not_taken(tmp_path: Path) -> None:
    desk = at_home(tmp_path)
    without = changed(timeframe_weights={"D1": 1.0})
    with pytest.raises(ConfigError, match="gives it no weight"):
        desk.adopt(NAME, without)
    desk.close()
