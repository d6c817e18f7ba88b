"""Kinds of ticks and their counts are those of the stored ticks, whatever is written and taken."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import timedelta
from typing import Any

from numpy.random import default_rng

from instance_database import Database
from tests.worlds import large_database
from tests.worlds.stores import flat
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
