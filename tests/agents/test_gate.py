"""The gate's window around scheduled events: its edges, its silence, and what it does to a tick."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_config import GateSettings
from agents.contracts import Feature, GateReason
from agents.risk_gate import ROLE, Rules, rules
from tests.cases import cases
from tests.worlds import desks
from torra.clock import Simulated, duration, parse
from torra.config import Profile, validate
from torra.desk.bar_closes import next_close
from torra.desk.schedule import Desk
from torra.evidence.scheduled_events import EventView, ScheduledEvent, around
from torra.replay.rerun.journal_replay import replay
from torra.replay.rerun.replay_store import JournalDatabase

QUIET = {
    "market.spread_atr": 0.05,
    "market.valid_bars": 750.0,
    "market.bar_age": 0.0,
    "technical.volatility_percentile": 50.0,
    "memory.losing_streak": 0.0,
    "memory.open_elsewhere": 0.0,
}
BEFORE, AFTER = 30.0, 15.0
EVENTS = ("events.to_next_min", "events.since_last_min")


def ruled(
    to_next: Any = None, since_last: Any = None, status: str = "available", **settings: Any
) -> Rules:
    told = {**QUIET, **dict(zip(EVENTS, (to_next, since_last), strict=True))}
    features = {name: Feature(name, value) for name, value in told.items()}
    features["source.events"] = Feature("source.events", status)
    return rules(features, GateSettings(**settings), 0.0)


def vetoed(*minutes: Any, **settings: Any) -> bool:
    found = ruled(*minutes, **settings)
    assert found.flags == ()
    assert found.ruling.multiplier == 1.0
    assert found.ruling.reasons == (("SCHEDULED_EVENT",) if found.ruling.veto else ())
    return found.ruling.veto


@cases(
    ("to_next", "since_last", "veto"),
    [
        (None, None, False),
        (BEFORE + 0.01, None, False),
        (BEFORE, None, True),
        (BEFORE - 0.01, None, True),
        (0.01, None, True),
        (None, AFTER + 0.01, False),
        (None, AFTER, True),
        (None, AFTER - 0.01, True),
        (None, 0.0, True),
        (BEFORE + 1, AFTER + 1, False),
        (BEFORE + 1, AFTER, True),
        (BEFORE, AFTER + 1, True),
    ],
)
def test_both_ends_belong_to_the_window(
    to_next: float | None, since_last: float | None, veto: bool
) -> None:
    assert vetoed(to_next, since_last) is veto


def test_the_settings_are_the_window() -> None:
    assert not vetoed(20.0, event_before_minutes=19.9)
    assert vetoed(1440.0, event_before_minutes=1440.0)
    assert not vetoed(None, 10.0, event_after_minutes=9.9)
    assert vetoed(None, 16.0, event_after_minutes=16.0)


def test_a_window_of_no_minutes_still_vetoes_at_the_event() -> None:
    none = {"event_before_minutes": 0.0, "event_after_minutes": 0.0}
    assert vetoed(None, 0.0, **none)
    assert not vetoed(None, 0.01, **none)
    assert not vetoed(0.01, None, **none)


def test_other_reasons_stay_with_it() -> None:
    features = {name: Feature(name, value) for name, value in QUIET.items()}
    features |= {name: Feature(name, value) for name, value in zip(EVENTS, (5.0, 5.0), strict=True)}
    features["market.spread_atr"] = Feature("market.spread_atr", 0.9)
    features["memory.losing_streak"] = Feature("memory.losing_streak", 3.0)
    found = rules(features, GateSettings(), 0.0).ruling
    assert (found.multiplier, found.veto) == (0.7, True)
    assert found.reasons == ("WIDE_SPREAD", "SCHEDULED_EVENT", "LOSING_STREAK")


@pytest.mark.parametrize("status", ["off", "available"])
def test_without_a_calendar_there_is_no_rule_and_no_flag(status: str) -> None:
    assert ruled(status=status).flags == ()
    features = {name: Feature(name, value) for name, value in QUIET.items()}
    assert rules(features, GateSettings(), 0.0) == ruled()


@pytest.mark.parametrize("status", ["broken", "ended", "broken_ended"])
def test_a_calendar_that_may_miss_what_comes_is_flagged(status: str) -> None:
    flags = tuple(f"events:{word}" for word in status.split("_"))
    assert ruled(status=status).flags == flags
    near = ruled(5.0, status=status)
    assert near.ruling.veto
    assert near.flags == flags


@cases(
    ("ahead", "behind", "veto"),
    [
        (None, None, False),
        (BEFORE, None, True),
        (BEFORE + 0.01, AFTER + 0.01, False),
        (None, AFTER, True),
        (None, 0.0, True),
    ],
)
def test_a_late_tick_is_held_against_the_window_too(
    ahead: float | None, behind: float | None, veto: bool
) -> None:
    features = {name: Feature(name, value) for name, value in QUIET.items()}
    features |= {name: Feature(name, 200.0) for name in EVENTS}
    for name, value in (("ahead", ahead), ("behind", behind)):
        features[f"source.events_{name}_min"] = Feature(f"source.events_{name}_min", value)
    assert rules(features, GateSettings(), 0.0).ruling.veto is veto


@pytest.mark.parametrize("value", ["soon", float("nan"), True])
def test_minutes_that_are_no_number_veto_nothing(value: Any) -> None:
    assert not vetoed(value, value)


def test_the_gate_is_shown_the_events_and_no_forecast() -> None:
    shown = ("events.", "technical.plus_di", "technical.minus_di", "market.")
    assert set(shown) <= set(ROLE.evidence)
    assert not any("forecast" in prefix for prefix in ROLE.evidence)


# --- a tick ---------------------------------------------------------------------------------------


def profile() -> Profile:
    """A desk that opens and closes often: by the record high alone these bars turn soon."""
    settings = {"thresholds": {"buy": 0.05, "sell": 0.05}, "record_score": "high"}
    return validate(Profile, settings, "a test")


def ticks(folder: Path, steps: int, *events: datetime) -> list[dict[str, Any]]:
    """Run so many closes of EURUSD H1 with high-impact events at these moments."""
    folder.mkdir()
    desk = desk_among(folder, events)
    records = []
    for _ in range(steps):
        desks.step(desk)
        record = desk.database.latest_tick("EURUSD", "H1")
        assert record is not None
        records.append(record)
    desk.database.close()
    return records


def desk_among(folder: Path, events: Iterable[datetime]) -> Desk:
    """Return a desk that has the lease, with high-impact events at these moments."""
    desk = desks.open_desk(folder, (desks.EUR,), profile=profile())
    calendar = tuple(ScheduledEvent(moment, "USD", "high", "a decision") for moment in events)
    (name, setup), *_ = desk.setups.items()

    def told(as_of: datetime, now: datetime) -> EventView:
        return around(calendar, ("EUR", "USD"), as_of, now)

    looking = replace(setup, events=told)
    desk.roster.setups = {name: looking}
    settings = profile()
    desk.database.apply_profile("EURUSD", settings.model_dump_json(), settings.digest())
    desks.take_lease(desk)
    return desk


def late_tick(
    folder: Path, steps: int, wait: timedelta, *events: datetime
) -> tuple[dict[str, Any], Desk]:
    """Run so many closes, then the next one so much later than its bar closed."""
    folder.mkdir()
    desk = desk_among(folder, events)
    for _ in range(steps):
        desks.step(desk)
    clock = desk.clock
    assert isinstance(clock, Simulated)
    close = next_close(clock.now(), ["H1"])
    clock.set(close + wait)
    outcomes = desk.wake("EURUSD")
    (record,) = [
        dict(one.record or {}) for one in outcomes if one.key.bar_time == close - duration("H1")
    ]
    return record, desk


def first(records: Iterable[dict[str, Any]], action: str) -> int:
    return next(at for at, record in enumerate(records) if record["action"].startswith(action))


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of a desk without events."""
    return ticks(tmp_path_factory.mktemp("gate") / "free", 12)


def test_a_window_drops_an_opening_and_lets_a_close_through(
    free: list[dict[str, Any]], tmp_path: Path
) -> None:
    opened = first(free, "OPEN")
    closed = first(free, "CLOSE")
    assert opened < closed
    at_opening, at_close = (parse(free[at]["as_of"]) for at in (opened, closed))

    shy = ticks(tmp_path / "shy", opened + 1, at_opening + timedelta(minutes=BEFORE))[opened]
    assert (shy["action"], shy["reason"]) == ("HOLD", "GATE_VETO")
    assert shy["gate"]["rule"]["reasons"] == [GateReason.SCHEDULED_EVENT]
    assert (shy["verdict"], shy["l1"]) == (free[opened]["verdict"], free[opened]["l1"])
    assert shy["signals"] == []

    held = ticks(tmp_path / "held", closed + 1, at_close)
    assert held[opened]["action"] == free[opened]["action"]
    assert held[closed]["action"] == "CLOSE"
    assert held[closed]["gate"]["veto"]
    assert held[closed]["gate"]["rule"]["reasons"] == [GateReason.SCHEDULED_EVENT]
    assert [signal["kind"] for signal in held[closed]["signals"]] == ["close"]


def test_a_tick_beside_the_window_opens(free: list[dict[str, Any]], tmp_path: Path) -> None:
    opened = first(free, "OPEN")
    moment = parse(free[opened]["as_of"])
    beside = (
        moment + timedelta(minutes=BEFORE, microseconds=10**6),
        moment - timedelta(minutes=AFTER, microseconds=10**6),
    )
    near = ticks(tmp_path / "near", opened + 1, *beside)[opened]
    assert near["action"] == free[opened]["action"]
    told = {row["id"]: row["value"] for row in near["features"]}
    assert told["events.to_next_min"] == pytest.approx(BEFORE + 1 / 60, abs=0.006)
    assert [row["name"] for row in near["events"]["events"]] == ["a decision"] * 2


MINUTE = timedelta(minutes=1)


@pytest.mark.journey
@pytest.mark.parametrize(
    ("event", "opens"),
    [
        (60 * MINUTE, False),
        (95 * MINUTE + BEFORE * MINUTE, False),
        (96 * MINUTE + BEFORE * MINUTE, True),
        (-AFTER * MINUTE, False),
        (-AFTER * MINUTE - MINUTE, True),
    ],
)
def test_a_late_tick_opens_nothing_inside_a_window(
    event: timedelta, opens: bool, free: list[dict[str, Any]], tmp_path: Path
) -> None:
    """It runs 95 minutes after the close: what lies between the two, and around it, counts."""
    opened = next(at for at, row in enumerate(free) if at >= 2 and row["action"].startswith("OPEN"))
    moment, wait = parse(free[opened]["as_of"]), 95 * MINUTE
    record, desk = late_tick(tmp_path / "late", opened, wait, moment + event)
    assert parse(record["as_of"]) == moment
    assert (record["verdict"], record["l1"]) == (free[opened]["verdict"], free[opened]["l1"])
    assert record["action"].startswith("OPEN") is opens
    assert ("SCHEDULED_EVENT" in record["gate"]["rule"]["reasons"]) is not opens
    told = {row["id"]: row["value"] for row in record["features"]}
    if event > timedelta():
        assert told["events.to_next_min"] == event / MINUTE, "agents are told as of the close"
    into = JournalDatabase.at(tmp_path / "again.db")
    again = list(replay(desk.database, into, desks.EUR.id))
    assert {(one.state, *one.differences) for one in again} == {("same",)}
    into.close()
    desk.database.close()
