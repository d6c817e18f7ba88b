"""A running desk takes a profile between two ticks: all of it, or none of it with the reason."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import desks
import pytest

from torra import adoption
from torra.adoption import Refit, fixed, with_models
from torra.config import Profile
from torra.errors import ConfigError, StoreUnavailable
from torra.providers.registry import open_provider

NAME = "default"


def fit(station, profile):
    return replace(station, profile=profile, provider=open_provider(profile.agents))


@pytest.fixture
def desk(tmp_path):
    made = desks.open_desk(tmp_path, (desks.BTC, desks.EUR))
    desks.take_lease(made)
    made.refit = Refit(fit)
    yield made
    made.close()


def changed(**sections):
    return Profile.model_validate(sections)


CAREFUL = changed(thresholds={"buy": 0.9, "sell": 0.9})


def digests(desk):
    return {name: station.profile.digest() for name, station in desk.stations.items()}


def newest(desk, instance="BTCUSD", timeframe="M15"):
    return desk.database.latest_tick(instance, timeframe)


def test_the_next_tick_runs_with_the_new_profile_and_says_so(desk):
    desks.step(desk)
    before = newest(desk)
    provider = desk.stations["BTCUSD"].provider
    desk.adopt(NAME, CAREFUL)
    assert set(digests(desk).values()) == {CAREFUL.digest()}
    assert desk.database.applied_profile("EURUSD")["digest"] == CAREFUL.digest()
    assert desk.stations["BTCUSD"].provider is not provider
    assert desk.wished == {}
    desks.step(desk)
    after = newest(desk)
    assert before["profile"] == Profile().digest()
    assert (after["profile"], after["thresholds"]["buy"]) == (CAREFUL.digest(), 0.9)


def test_another_profile_touches_nobody(desk):
    desk.adopt("mine", CAREFUL)
    assert set(digests(desk).values()) == {Profile().digest()}


def test_a_desk_that_stands_by_applies_nothing(desk):
    epoch, desk.epoch = desk.epoch, None
    desk.adopt(NAME, CAREFUL)
    assert desk.database.applied_profile("BTCUSD") is None
    assert set(digests(desk).values()) == {CAREFUL.digest()}
    desk.epoch = epoch


def test_an_adoption_waits_for_the_tick_that_runs(desk, monkeypatch):
    monkeypatch.setattr(adoption, "PATIENCE", 0.0)
    told = threading.Event()
    desk.refit = Refit(fit, lambda station: told.set())
    with desk.stations["BTCUSD"].lock:  # as a tick holds it
        desk.adopt(NAME, CAREFUL)
        assert digests(desk) == {"BTCUSD": Profile().digest(), "EURUSD": CAREFUL.digest()}
        told.clear()
        third = changed(thresholds={"buy": 0.8})
        desk.adopt(NAME, third)
        assert desk.stations["BTCUSD"].profile.digest() == Profile().digest()
        told.clear()
    assert told.wait(5)
    assert digests(desk)["BTCUSD"] == third.digest()  # the newest wish, not the first


def test_a_wake_that_waited_for_an_adoption_runs_with_the_new_profile(desk):
    """The station is looked up under its lock, not before it."""
    ran = []
    looked = threading.Event()

    class Watched(dict):
        def __getitem__(self, name):
            looked.set()
            return super().__getitem__(name)

    desk.stations = Watched(desk.stations)
    desk.clock.set(desks.next_close(desk.clock.now(), ["M15"]))
    with desk.stations["BTCUSD"].lock:
        looked.clear()
        waking = threading.Thread(target=lambda: ran.append(desk.wake("BTCUSD")))
        waking.start()
        assert looked.wait(20)
        desk.wished["BTCUSD"] = fit(desk.stations["BTCUSD"], CAREFUL)
        adoption._swap(desk, desk.refit, "BTCUSD")
    waking.join(20)
    assert ran
    assert newest(desk)["profile"] == CAREFUL.digest()


def test_what_cannot_be_opened_changes_nothing(desk):
    with pytest.raises(ConfigError, match="cannot be asked here"):
        desk.adopt(NAME, changed(agents={"provider": "anthropic"}))
    assert set(digests(desk).values()) == {Profile().digest()}
    assert desk.wished == {}


def test_a_desk_without_a_way_to_open_says_so(desk):
    desk.refit = None
    with pytest.raises(ConfigError, match="at its start only"):
        desk.adopt(NAME, CAREFUL)


def test_a_database_that_fails_keeps_the_old_profile(desk, monkeypatch):
    def fails(*_):
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(desk.database, "apply_profile", fails)
    with pytest.raises(StoreUnavailable):
        desk.adopt(NAME, CAREFUL)
    assert set(digests(desk).values()) == {Profile().digest()}


def test_conditions_of_a_symbol_do_not_change_under_an_open_position(desk, monkeypatch):
    wider = changed(symbols={"BTCUSD": {"spread": 20.0}})
    monkeypatch.setattr(
        desk.database, "position", lambda name: object() if name == "BTCUSD" else None
    )
    with pytest.raises(ConfigError, match="while BTCUSD holds a position"):
        desk.adopt(NAME, wider)
    desk.adopt(NAME, changed(symbols={"EURUSD": {"spread": 0.0002}}))
    monkeypatch.setattr(desk.database, "position", lambda _: None)
    desk.adopt(NAME, wider)
    assert set(digests(desk).values()) == {wider.digest()}


WITH_NEWS = {"agents": {"include_news": True}}
WAITS = {
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
}


@pytest.mark.parametrize("case", WAITS)
def test_what_waits_for_the_next_start(case):
    before, after, names = WAITS[case]
    found = fixed(changed(**before), changed(**after), [desks.BTC])
    assert [text.split(" ")[0].split(".asset")[0] for text in found] == names


@dataclass(frozen=True)
class Account:
    late: str


def test_answers_that_came_late_are_still_booked_after_a_change():
    class Models:
        def account(self, settings, name):
            return Account("new")

        def provider(self, settings):
            return "provider"

    before = desks.Station(desks.BTC, Profile(), None, None, threading.Lock(), Account("old"))
    after = with_models(Models())(before, CAREFUL)
    assert (after.account.late, after.provider, after.profile) == ("old", "provider", CAREFUL)
    assert after.lock is before.lock
