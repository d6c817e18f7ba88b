"""The closes of whole days: the same from a store, live, and from a history, in a replay."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pandas as pd

from tests.worlds import desks
from tests.worlds.price_series import walk
from torra.config import Instance
from torra.feeds.frame import FrameFeed
from torra.tick.bar_window import HistoryWindow, LiveWindow

GOLD = Instance(symbol="XAUUSD", timeframes=("M15", "H1"), feed="store")
BEGIN = datetime(2025, 1, 2, tzinfo=UTC)
SPAN = timedelta(days=420)


def hours(days: int) -> pd.DataFrame:
    made = walk(days * 24, seed=4)
    return made.set_axis(pd.date_range(BEGIN, periods=len(made), freq="h", name="time"))


def test_live_and_replay_have_the_same_closes(tmp_path: Path) -> None:
    frame = hours(500)
    database = desks.open_database(tmp_path)
    try:
        database.store_bars("XAUUSD", "H1", frame)
        live = LiveWindow(GOLD, FrameFeed({"H1": frame}), database)
        history = HistoryWindow({"H1": frame})
        for as_of in (
            BEGIN + timedelta(days=40, hours=9),
            BEGIN + timedelta(days=460),
            BEGIN + timedelta(days=460, hours=23),
        ):
            found = list(live.daily_closes(as_of, SPAN))
            assert found == list(history.daily_closes(as_of, SPAN))
            assert found[-1][0] == as_of.date() - timedelta(days=1)
            assert len(found) == min((as_of - BEGIN).days, SPAN.days)
            for day, close in (found[0], found[-1]):
                last = pd.Timestamp(day, tz=UTC) + timedelta(hours=23)
                assert close == frame.loc[last, "close"]
    finally:
        database.close()


def test_a_corrected_and_a_withdrawn_bar_count_as_they_are_now(tmp_path: Path) -> None:
    frame = hours(3)
    database = desks.open_database(tmp_path)
    try:
        database.store_bars("XAUUSD", "H1", frame)
        corrected = frame.iloc[[23]].copy()
        corrected["close"] = corrected["low"]
        database.store_bars("XAUUSD", "H1", corrected)
        (first, *_) = database.daily_closes("XAUUSD", "H1", BEGIN.date(), date(2025, 1, 4))
        assert first == (BEGIN.date(), float(corrected["close"].iloc[0]))
    finally:
        database.close()
