"""The sample feed: shipped bars, moved by whole weeks, closed at as_of, without end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from technical_calculator import HISTORY
from tests.worlds.price_series import times_of
from torra.clock import duration
from torra.config import ROOT
from torra.errors import ConfigError
from torra.feeds import door
from torra.feeds.frame import StoredFeed
from torra.feeds.sample import SampleFeed

FOLDER = ROOT / "sample_data"
FEED = SampleFeed(FOLDER)
WEEK = timedelta(weeks=1)
FIRST = datetime(2020, 12, 1, tzinfo=UTC)
FAR = datetime(2030, 1, 1, tzinfo=UTC)
streams = pytest.mark.parametrize(("symbol", "timeframe"), FEED.streams)


def shipped(symbol: str, timeframe: str) -> pd.DataFrame:
    path = FOLDER / f"{symbol}_{timeframe}.csv"
    return pd.read_csv(path, index_col="time", parse_dates=["time"]).astype(float)


def test_bitcoin_is_handed_over_as_shipped() -> None:
    for timeframe in ("M15", "H1"):
        frame = shipped("BTCUSD", timeframe)
        end = frame.index[-1].to_pydatetime() + duration(timeframe)
        pd.testing.assert_frame_equal(FEED.bars("BTCUSD", timeframe, end), frame)


def test_the_euro_is_moved_by_208_weeks_and_nothing_else() -> None:
    frame = shipped("EURUSD", "H1")
    moved = frame.set_axis(frame.index + 208 * WEEK)
    end = moved.index[-1].to_pydatetime() + duration("H1")
    pd.testing.assert_frame_equal(FEED.bars("EURUSD", "H1", end), moved)
    assert end == datetime(2021, 12, 24, 22, tzinfo=UTC)


@streams
def test_only_bars_closed_at_as_of_are_seen(symbol: str, timeframe: str) -> None:
    whole = FEED.bars(symbol, timeframe, FAR, 30_000)
    step = duration(timeframe)
    for at in (0, 1, 800, 2000, 5000, len(whole) - 1):
        closed = whole.index[at].to_pydatetime() + step
        bars = FEED.bars(symbol, timeframe, closed, 3)
        assert bars.index[-1] + step == closed
        early = FEED.bars(symbol, timeframe, closed - timedelta(microseconds=1), 3)
        assert len(early) == 0 or early.index[-1] < bars.index[-1]


@streams
def test_passes_follow_each_other_without_a_repeated_bar_time(symbol: str, timeframe: str) -> None:
    bars = FEED.bars(symbol, timeframe, FAR)
    assert bars.index.is_monotonic_increasing
    assert bars.index.is_unique
    assert np.diff(times_of(bars).asi8).max() < timedelta(days=4) // timedelta(microseconds=1)
    assert bars.index[-1] > FAR - timedelta(days=3)
    door.check(bars, timeframe, as_of=FAR, max_age_bars=300)


@streams
def test_a_later_pass_is_the_sample_moved_by_whole_weeks(symbol: str, timeframe: str) -> None:
    bars = FEED.bars(symbol, timeframe, FAR)
    frame = shipped(symbol, timeframe)
    late = bars.iloc[-1000:]
    rows = {tuple(row): time for time, row in zip(frame.index, frame.to_numpy(), strict=True)}
    shifts = {
        time - rows[tuple(row)] for time, row in zip(late.index, late.to_numpy(), strict=True)
    }
    assert all(shift % WEEK == timedelta(0) and shift > timedelta(0) for shift in shifts)


def test_both_timeframes_of_a_symbol_tell_the_same_story_in_every_pass() -> None:
    for as_of in (datetime(2021, 11, 20, tzinfo=UTC), datetime(2024, 5, 8, tzinfo=UTC)):
        quarters = FEED.bars("BTCUSD", "M15", as_of, 2000)
        hours = FEED.bars("BTCUSD", "H1", as_of, 400)
        built = quarters.resample("1h").agg({"high": "max", "low": "min", "close": "last"})
        both = hours.index.intersection(built.index[1:])
        assert len(both) > 300
        pd.testing.assert_frame_equal(
            hours.loc[both, ["high", "low", "close"]], built.loc[both], check_freq=False
        )


def test_a_demo_may_start_where_every_stream_has_its_history() -> None:
    start, end = FEED.period()
    step = timedelta(minutes=15)
    assert all(len(FEED.bars(*stream, start, HISTORY)) == HISTORY for stream in FEED.streams)
    assert any(len(FEED.bars(*stream, start - step, HISTORY)) < HISTORY for stream in FEED.streams)
    assert end - start > 7 * WEEK
    for symbol, timeframe in FEED.streams:
        bars = FEED.bars(symbol, timeframe, start, HISTORY)
        assert len(door.check(bars, timeframe, as_of=start)) == HISTORY


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FEED.streams),
    st.integers(0, 5 * 365 * 86_400).map(lambda late: FIRST + timedelta(seconds=late)),
    st.integers(0, 900),
)
def test_a_limited_answer_is_the_end_of_the_whole_one(
    stream: tuple[str, str], as_of: datetime, limit: int
) -> None:
    whole = FEED.bars(*stream, as_of)
    expected = whole.iloc[max(0, len(whole) - limit) :]
    pd.testing.assert_frame_equal(FEED.bars(*stream, as_of, limit), expected)


def test_what_is_handed_out_may_be_written_to() -> None:
    as_of = datetime(2021, 11, 1, tzinfo=UTC)
    bars = FEED.bars("BTCUSD", "H1", as_of, 10)
    bars.iloc[:, :] = 0.0
    assert (FEED.bars("BTCUSD", "H1", as_of, 10)["close"] > 0).all()


@pytest.mark.parametrize("stream", [("XAUUSD", "H1"), ("BTCUSD", "M5"), ("btcusd", "H1")])
def test_an_unknown_stream_names_what_is_shipped(stream: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"BTCUSD H1, BTCUSD M15, EURUSD H1"):
        FEED.bars(*stream, FAR, 10)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("X_H1.csv", "time,open,high\n2021-01-01T00:00:00Z,1,2\n"),
        ("X_H1.csv", "time,open,high,low,close,volume\n2021-01-01 00:00,1,1,1,1,1\n"),
        ("X_H1.csv", "time,open,high,low,close,volume\n2021-01-01T00:00:00Z,1,1,1,one,1\n"),
        ("X_H7.csv", "time,open,high,low,close,volume\n2021-01-01T00:00:00Z,1,1,1,1,1\n"),
        ("X_H1.csv", ""),
        ("X_H1.csv", "time,open,high,low,close,volume\n"),
        ("X_H1.csv", "time,open,high,low,close,volume\n2021-01-01T00:00:00Z,1,1,1,1,1\n"),
    ],
)
def test_an_unreadable_sample_names_symbol_and_remedy(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="sample of X"):
        SampleFeed(tmp_path)


def test_an_empty_folder_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected files like"):
        SampleFeed(tmp_path)


def test_the_stored_feed_asks_the_store_and_changes_nothing() -> None:
    asked: list[object] = []
    frame = FEED.bars("BTCUSD", "H1", FAR, 5)

    def load(name: str, timeframe: str, *, as_of: datetime, limit: int | None) -> pd.DataFrame:
        asked.append((name, timeframe, as_of, limit))
        return frame

    assert StoredFeed(load, "BTCUSD").bars("BTCUSD", "H1", FAR, 5) is frame
    assert asked == [("BTCUSD", "H1", FAR, 5)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.csv")), ids=lambda path: path.name)
def test_the_provenance_page_tells_of_every_file(path: Path) -> None:
    frame = pd.read_csv(path, parse_dates=["time"])["time"]
    first, last = (f"{moment:%Y-%m-%d %H:%M}" for moment in (frame.iloc[0], frame.iloc[-1]))
    row = f"| {path.name} | {len(frame):,} | {first} | {last} |"
    assert row in (FOLDER / "README.md").read_text()
