"""Bars that a store remembers: it writes what a store that remembers nothing writes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from instance_database import Database
from tests.conftest import Scale
from tests.worlds.stores import NOON, open_database
from torra.store import bars as bar_table

STREAM = "BTCUSD", "M15"
COLUMNS = ("open", "high", "low", "close", "volume")
STEPS = 60
WINDOW = 6


def frame(first: int, closes: list[float]) -> pd.DataFrame:
    times = [NOON + timedelta(minutes=15 * (first + place)) for place in range(len(closes))]
    prices = np.array([[close, close + 1.0, close - 1.0, close, 7.0] for close in closes])
    index = pd.DatetimeIndex(times, name="time")
    return pd.DataFrame(prices, index=index, columns=list(COLUMNS))


def rows(database: Database) -> list[tuple[Any, ...]]:
    every = "SELECT instance, timeframe, bar_time, revision, open, close, volume FROM bars"
    found = database.connection().conn.execute(f"{every} ORDER BY 1, 2, 3, 4").fetchall()
    for table in ("record_highs", "record_lows"):
        found += database.connection().conn.execute(f"SELECT * FROM {table}").fetchall()
    return found


def read_rows(database: Database, given: pd.DataFrame) -> int:
    """Store a frame; return how many bars are in the range that was read for it."""
    asked: list[str] = []
    database.connection().conn.set_trace_callback(asked.append)
    try:
        database.store_bars(*STREAM, given)
    finally:
        database.connection().conn.set_trace_callback(None)
    reading = [sql for sql in asked if sql.startswith("SELECT bar_time, open")]
    return sum(len(database.connection().conn.execute(sql).fetchall()) for sql in reading)


class Undone(Exception):
    """Ends a transaction."""


def step(draw: Random, closes: list[float]) -> tuple[str, pd.DataFrame]:
    """Let a market go on by a bar or two, and draw what its feed brings, and who stores it."""
    closes += [float(draw.randint(5, 15)) for _ in range(draw.randint(0, 2))]
    if draw.random() < 0.1:
        closes[-draw.randint(1, WINDOW)] += 0.5
    start = len(closes) - draw.randint(WINDOW - 2, WINDOW)
    there = frame(start, closes[start : len(closes) - draw.randint(0, 1)])
    if draw.random() < 0.1:
        there = there.drop(there.index[draw.randrange(len(there))])
    return draw.choice((*["us"] * 9, "other", "undone", "twice", "withdrawn")), there


def undo(database: Database, there: pd.DataFrame) -> None:
    """Store a frame twice in one transaction, which is undone."""
    with database.transaction():
        for _ in range(2):
            database.store_bars(*STREAM, there)
        raise Undone


def live(database: Database, other: Database, who: str, there: pd.DataFrame) -> int:
    if who == "other":
        return other.store_bars(*STREAM, there + 0.25)
    if who == "withdrawn":
        return database.withdraw_others(*STREAM, there)
    if who == "undone":
        with pytest.raises(Undone):
            undo(database, there + 0.25)
    if who == "twice":
        with database.transaction():
            return database.store_bars(*STREAM, there) + database.store_bars(*STREAM, there + 0.25)
    return database.store_bars(*STREAM, there)


def test_what_is_stored_is_the_same(tmp_path: Path, scaled: Scale) -> None:
    for seed in range(scaled(200)):
        lives(Random(seed), tmp_path / str(seed))


def lives(draw: Random, tmp_path: Path) -> None:
    closes = [10.0] * WINDOW
    ours, plain = open_database(tmp_path / "ours"), open_database(tmp_path / "plain")
    others = [open_database(tmp_path / name) for name in ("ours", "plain")]
    try:
        for _ in range(STEPS):
            who, there = step(draw, closes)
            plain._bar_cache.forget()
            assert live(ours, others[0], who, there) == live(plain, others[1], who, there)
            assert rows(ours) == rows(plain), who
    finally:
        for database in (ours, plain, *others):
            database.close()


def test_a_tick_reads_the_newest_stored_bar_alone(database: Database) -> None:
    closes = [float(10 + place % 3) for place in range(60)]
    read = [read_rows(database, frame(at, closes[at : at + 50])) for at in range(6)]
    assert read == [50, 50, 2, 2, 2, 2]


def test_a_bar_that_changed_is_seen(database: Database) -> None:
    bars = frame(0, [10.0] * 20)
    for _ in range(2):
        database.store_bars(*STREAM, bars)
    changed = bars.copy()
    changed.iloc[3, 3] = 10.5
    assert database.store_bars(*STREAM, changed) == 0
    assert bar_table.bar_rows(database, *STREAM) == 21


def test_what_was_undone_is_not_remembered(tmp_path: Path) -> None:
    database, other = open_database(tmp_path), open_database(tmp_path)
    bars, changed = frame(0, [10.0] * 20), frame(0, [11.0] * 20)
    with pytest.raises(Undone):
        undo(database, changed)
    other.store_bars(*STREAM, bars)
    assert database.store_bars(*STREAM, changed) == 0
    assert bar_table.bar_rows(database, *STREAM) == 40
    database.close()
    other.close()
