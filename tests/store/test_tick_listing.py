"""Kinds of ticks and their counts are those of the stored ticks, whatever is written and taken."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from numpy.random import default_rng

from instance_database import Database
from tests.worlds import large_database
from tests.worlds.stores import flat, save
from torra.clock import duration, iso, parse
from torra.store import tick_listing
from torra.store.connection import TickKey
from torra.store.tick_listing import AFTER_ALL, Place

NOW = parse("2026-03-02T00:00:00Z")
STREAMS = (("BTCUSD", "M15"), ("BTCUSD", "H1"), ("host:scorer:XAUUSD", "M15"))
SOURCES = ("AGENT_FULL", "L1_ONLY", "")
DID = (("HOLD", "THRESHOLD"), ("OPEN_BUY", "VERDICT"), ("HOLD", "GATE_VETO"))
PROFILE = large_database.profile()


def write(
    database: Database, number: int, rng: Any, stream: tuple[str, str] | None = None
) -> TickKey:
    """Store one tick; every fourth has no journal, as a host may write it."""
    instance, timeframe = stream or STREAMS[rng.integers(len(STREAMS))]
    close = NOW + number * timedelta(hours=1)
    key = TickKey(instance, timeframe, close - duration(timeframe))
    low, high = rng.choice((-0.9, 0.0, 0.9), 2)
    with database.transaction():
        database.save_sentiment(
            flat(high), key=key, close_time=close, ath=high, l1=flat(low), ungated=flat(high),
            source_type=SOURCES[rng.integers(len(SOURCES))], profile=PROFILE, deliberation=None,
            timeframes=(timeframe,),
        )  # fmt: skip
        if number % 4:
            action, reason = DID[rng.integers(len(DID))]
            database.write_journal(key, {"action": action, "reason": reason})
    return key


def told(database: Database) -> list[tuple[Any, ...]]:
    """Return every tick by the tables that hold it, newest first: its number, close and kind."""
    return [
        tuple(row)
        for row in database.connection().execute(
            "SELECT c.close_time, c.sentiment_id, c.instance, c.timeframe, c.l1_verdict, "
            "c.verdict, coalesce(j.action, ''), coalesce(j.reason, ''), s.source_type "
            "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
            "LEFT JOIN journal j ON j.torra_key = c.torra_key ORDER BY 1 DESC, 2 DESC"
        )
    ]


def counted(database: Database) -> None:
    every = told(database)
    kinds = tick_listing.tick_kinds(database)
    assert {tuple(kind)[1:8]: kind.ticks for kind in kinds} == Counter(row[2:] for row in every)
    found = tick_listing.counts_of_kinds(
        database, [kind.id for kind in kinds], "", "~", most=len(every)
    )
    assert found == {kind.id: kind.ticks for kind in kinds}


def test_every_write_and_every_removal_is_counted(database: Database, scaled: Any) -> None:
    rng, keys = default_rng(7), list[TickKey]()
    for number in range(scaled(5_000, least=40)):
        keys.append(write(database, number, rng))
        if number % 5 == 4:
            gone = keys.pop(rng.integers(len(keys)))
            with database.transaction():
                for table in ("journal", "chains", "sentiment"):
                    database.change(f"DELETE FROM {table} WHERE torra_key = ?", gone.text)
        if number % 16 == 0:
            counted(database)
    counted(database)
    assert len(tick_listing.tick_kinds(database)) > 10


def test_pages_of_any_kinds_are_every_tick_of_them_once_in_order(
    database: Database, scaled: Any
) -> None:
    rng = default_rng(11)
    for number in range(60):
        for stream in STREAMS[: rng.integers(1, 4)]:  # several close at one moment
            write(database, number, rng, stream)
    every, kinds = told(database), tick_listing.tick_kinds(database)
    for _ in range(scaled(2_000, least=25)):
        some = [kind for kind in kinds if rng.random() < rng.choice((0.1, 0.5, 1.0))]
        begin = rng.choice(["", every[rng.integers(len(every))][0]])
        limit = int(rng.integers(1, 9))
        fitting = {tuple(kind)[1:8] for kind in some}
        wanted = [row[:2] for row in every if row[2:] in fitting and row[0] >= begin]
        found, place = list[Place](), AFTER_ALL
        while True:
            rows = tick_listing.ticks_of_kinds(
                database, [kind.id for kind in some], begin=begin, before=place, limit=limit
            )
            found += [(row["close_time"], row["sentiment_id"]) for row in rows]
            if len(rows) < limit:
                break
            place = found[-1]
        assert found == wanted


def test_days_are_counted_until_there_are_too_many(database: Database) -> None:
    rng = default_rng(3)
    for number in range(40):
        write(database, number, rng)
    every, kinds = told(database), [kind.id for kind in tick_listing.tick_kinds(database)]
    for first, last in itertools.combinations(range(0, 40, 7), 2):
        begin, end = (iso(NOW + at * timedelta(hours=1)) for at in (first, last))
        number = sum(begin <= row[0] < end for row in every)
        told_counts = tick_listing.counts_of_kinds(database, kinds, begin, end, most=number)
        assert told_counts is not None and sum(told_counts.values()) == number
        assert tick_listing.counts_of_kinds(database, kinds, begin, end, most=number - 1) is None


# --- the rest of a list ---------------------------------------------------------------------------


def stored(database: Database, number: int, deliberation: Any = None, **record: Any) -> TickKey:
    """Store a tick of one stream by its number, with these fields in its record."""
    close = NOW + number * timedelta(minutes=15)
    key = TickKey("BTCUSD", "M15", close - duration("M15"))
    save(database, close, deliberation=deliberation)
    database.write_journal(key, {"action": "HOLD", "reason": "R", **record})
    return key


def kinds_of(database: Database) -> list[int]:
    return [kind.id for kind in tick_listing.tick_kinds(database)]


def test_a_row_of_a_list_has_what_was_done_and_what_it_cost(database: Database) -> None:
    key = stored(database, 0, cost_usd=0.25, elapsed_ms=7.0)
    (row,) = tick_listing.ticks_of_kinds(database, kinds_of(database), limit=9)
    assert {name: row[name] for name in ("instance", "timeframe", "action", "reason")} == {
        "instance": "BTCUSD", "timeframe": "M15", "action": "HOLD", "reason": "R",
    }  # fmt: skip
    assert (row["cost_usd"], row["elapsed_ms"], row["sentiment_id"]) == (0.25, 7.0, 1)
    assert (row["bar_time"], row["close_time"]) == (iso(key.bar_time), iso(key.close_time))
    assert tick_listing.ticks_of_kinds(database, [], limit=9) == []


def test_l1_verdicts_are_read_by_the_keys_that_are_there(database: Database) -> None:
    key = stored(database, 0)
    verdict = database.value("SELECT l1_verdict FROM chains")
    assert tick_listing.alone_of(database, [key.text, "no tick"]) == {key.text: verdict}


def test_every_tick_is_read_once_whatever_is_read_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_listing, "FIRST_LOOK", 2)
    monkeypatch.setattr(tick_listing, "MOST_AT_A_LOOK", 4)
    rng = default_rng(5)
    for number in range(30):
        write(database, number, rng, STREAMS[number % 2])
    every = [row[:2] for row in told(database)]
    begin, place = every[25][0], every[3]
    for at_once in (1, 7, 99):
        rows = tick_listing.every_tick_of_kinds(
            database, kinds_of(database), begin=begin, before=place, at_once=at_once
        )
        assert [(row["close_time"], row["sentiment_id"]) for row in rows] == every[4:26]
    assert not list(
        tick_listing.every_tick_of_kinds(database, [], begin="", before=AFTER_ALL, at_once=9)
    )


def test_what_the_newest_ticks_asked_their_trader(database: Database) -> None:
    stored(database, 0, {"consulted": {"tier": "oldest"}})
    stored(database, 1, {"consulted": {"tier": "quick", "report": {"declined": True}}})
    stored(database, 2, {"consulted": {"tier": "deep", "failure": "timeout"}})
    stored(database, 3, {})
    damaged = stored(database, 4)
    database.change(
        "UPDATE sentiment SET agent_deliberation = 'no JSON' WHERE torra_key = ?", damaged.text
    )
    found = tick_listing.consultations(database, kinds_of(database), limit=4)
    assert sorted(found) == [("", False, ""), ("deep", False, "timeout"), ("quick", True, "")]


def test_rulings_of_the_gate_are_read_by_number(database: Database) -> None:
    stored(database, 0, gate={"veto": True})
    stored(database, 1)
    damaged = stored(database, 2, gate={"veto": False})
    database.change("UPDATE journal SET record = 'none' WHERE torra_key = ?", damaged.text)
    stored(database, 3, gate={"veto": False})
    assert tick_listing.gates_of(database, [1, 2, 3]) == {1: '{"veto":true}'}


def test_closes_without_a_tick_are_counted_by_stream_and_reason(database: Database) -> None:
    skips = [(0, "stale"), (1, "late"), (2, "stale"), (5, "stale")]
    keys = {number: TickKey("BTCUSD", "M15", NOW + number * duration("M15")) for number in range(9)}
    for number, reason in skips:
        database.skip_tick(keys[number], reason, "")
    database.claim_tick(keys[3])

    def closed(number: int) -> str:
        return iso(keys[number].close_time)

    def row(reason: str, count: int, oldest: int, newest: int) -> dict[str, Any]:
        return {
            "instance": "BTCUSD", "timeframe": "M15", "reason": reason, "count": count,
            "bar_time": iso(keys[newest].bar_time), "newest": closed(newest),
            "oldest": closed(oldest),
        }  # fmt: skip

    def without(first: int, last: int, most: int = 9) -> list[dict[str, Any]]:
        return tick_listing.closes_without_tick(database, closed(first), closed(last), most=most)

    assert without(0, 6) == [row("stale", 3, 0, 5), row("late", 1, 1, 1)]
    assert without(1, 5) == [row("stale", 1, 2, 2), row("late", 1, 1, 1)]
    assert without(0, 6, most=3) == [row("stale", 2, 2, 5)], "the claim is one of the three"
