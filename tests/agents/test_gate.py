"""The gate's window around scheduled events: its edges, its silence, and what it does to a tick."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_config import GateSettings
from agents.contracts import Feature, GateReason, GateRuling
from agents.risk_gate import CALENDAR, ROWS, VOLATILITY, Rules, rules
from tests.cases import cases
from tests.worlds import desks
from torra.clock import Simulated, duration, parse
from torra.config import Profile, validate
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
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
NEXT, LAST = "events.to_next_min", "events.since_last_min"
AHEAD, BEHIND = "source.events_ahead_min", "source.events_behind_min"


def ruled(told: Mapping[str, Any], **settings: Any) -> Rules:
    features = {name: Feature(name, value) for name, value in {**QUIET, **told}.items()}
    return rules(features, GateSettings(**settings), 0.0)


NO_MINUTES = {"event_before_minutes": 0.0, "event_after_minutes": 0.0}


@cases(
    ("minutes", "settings", "veto"),
    [
        ({}, {}, False),
        *(
            ({name: limit + more}, {}, more <= 0)
            for name, limit in ((NEXT, BEFORE), (LAST, AFTER))
            for more in (0.01, 0.0, -0.01)
        ),
        ({NEXT: BEFORE + 1, LAST: AFTER}, {}, True),
        ({NEXT: BEFORE, LAST: AFTER + 1}, {}, True),
        # a late tick is held against the window too
        *(
            ({NEXT: 200.0, LAST: 200.0, **late}, {}, veto)
            for late, veto in (
                ({AHEAD: BEFORE}, True),
                ({BEHIND: AFTER}, True),
                ({AHEAD: BEFORE + 0.01, BEHIND: AFTER + 0.01}, False),
            )
        ),
        # the settings are the window; one of no minutes still vetoes at the event
        ({NEXT: 20.0}, {"event_before_minutes": 19.9}, False),
        ({LAST: 16.0}, {"event_after_minutes": 16.0}, True),
        *(({LAST: past, NEXT: 0.01}, NO_MINUTES, past == 0.0) for past in (0.0, 0.01)),
        *((dict.fromkeys((NEXT, LAST), odd), {}, False) for odd in ("soon", math.nan, True)),
    ],
)
def test_both_ends_belong_to_the_window(
    minutes: dict[str, Any], settings: dict[str, float], veto: bool
) -> None:
    reasons = ("SCHEDULED_EVENT",) if veto else ()
    assert ruled(minutes, **settings) == (GateRuling(1.0, veto, reasons), (), 1.0)


def test_each_row_holds_beyond_its_limit_and_says_so_where_it_knows_nothing() -> None:
    limits = {
        "market.spread_atr": (0.15, 0.1501, 1.0, "WIDE_SPREAD"),
        "market.valid_bars": (210.0, 209.0, 1.0, "THIN_DATA"),
        "market.bar_age": (2.0, 2.01, 1.0, "STALE_DATA"),
        VOLATILITY: (95.0, 95.01, 0.7, "HIGH_VOLATILITY"),
        "memory.losing_streak": (2.0, 3.0, 0.7, "LOSING_STREAK"),
        "memory.open_elsewhere": (0.0, 1.0, 0.8, "OPEN_EXPOSURE"),
    }
    assert [row.feature for row in ROWS] == [*limits]
    for name, (within, beyond, factor, reason) in limits.items():
        assert ruled({name: within}) == (GateRuling(), (), 1.0)
        found = ruled({name: beyond})
        assert found.ruling == GateRuling(factor, factor == 1.0, (reason,))
        assert found.storm == (factor if name == VOLATILITY else 1.0)
        assert ruled({name: None}) == (GateRuling(), (f"silent:{name}",), 1.0)
    worst = {name: beyond for name, (_, beyond, _, _) in limits.items()} | {NEXT: 5.0, LAST: 5.0}
    reasons = [reason for *_, reason in limits.values()]
    reasons.insert(3, "SCHEDULED_EVENT")
    assert ruled(worst).ruling == GateRuling(round(0.7 * 0.7 * 0.8, 8), True, tuple(reasons))


@cases("status", ["off", "available", "broken", "ended", "broken_ended"])
def test_a_calendar_that_may_miss_what_comes_is_flagged(status: str) -> None:
    flags = tuple(
        f"events:{word}" for word in status.split("_") if word not in ("off", "available")
    )
    near = ruled({CALENDAR: status, NEXT: 5.0})
    assert ruled({CALENDAR: status}).flags == near.flags == flags
    assert near.ruling.veto


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
    """Return a desk that works, with high-impact events at these moments."""
    desk = desks.open_desk(folder, (desks.EUR,), profile=profile())
    calendar = tuple(ScheduledEvent(moment, "USD", "high", "a decision") for moment in events)
    (name, setup), *_ = desk.setups.items()

    def told(as_of: datetime, now: datetime) -> EventView:
        return around(calendar, ("EUR", "USD"), as_of, now)

    looking = replace(setup, events=told)
    desk.roster.setups = {name: looking}
    settings = profile()
    desk.database.apply_profile("EURUSD", settings.model_dump_json(), settings.digest())
    desks.open_for_work(desk)
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
