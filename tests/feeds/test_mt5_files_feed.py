"""Bars that the Expert Advisor writes: whole, signed, in UTC, and never half a file."""

from __future__ import annotations

import codecs
import logging
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.worlds.mt5_bars import (
    GOLD,
    KEY,
    NOON,
    Row,
    athens,
    feed,
    new_york_plus_7,
    offset,
    put,
    quarters,
    row,
    rows,
    text,
)
from tests.worlds.price_series import times_of
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import door, mt5_files
from torra.feeds.mt5_files import Mt5FilesFeed, read_sheet
from torra.market.broker_clock import ServerClock

USUAL = ServerClock.parse("new_york+7")
OPENS = quarters(NOON, 4)
AS_OF = NOON + timedelta(hours=1)
OFFSET = 7200


class Channel:
    """A folder with one bars file, and the feed that reads it."""

    def __init__(self, folder: Path, clock: ServerClock = USUAL) -> None:
        self.path = folder / "bars" / "XAUUSD%2Em_M15.csv"
        self.feed = feed(folder, {"XAUUSD": "XAUUSD.m"}, clock)

    def put(
        self, bars: list[Row] | str | bytes, written: datetime = AS_OF, at: int = OFFSET
    ) -> None:
        put(self.path, text(bars, at) if isinstance(bars, list) else bars, written)

    def bars(self, as_of: datetime = AS_OF, limit: int | None = None) -> pd.DataFrame:
        return self.feed.bars("XAUUSD", "M15", as_of, limit)

    def opens(self, as_of: datetime = AS_OF) -> list[datetime]:
        return [time.to_pydatetime() for time in self.bars(as_of).index]

    def refusal(self) -> DataUnavailable:
        with pytest.raises(DataUnavailable) as caught:
            self.bars()
        return caught.value


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel(tmp_path)


EXACT = """\
{"v":2,"msg":"bars","channel":"main","account":1001,"broker_symbol":"XAUUSD.m","tf":"M15",\
"count":2,"server_offset_s":7200}
time,open,high,low,close,tick_volume,spread
1770818400,2062.94,2064.31,2062.1,2063.55,412,28
1770819300,2063.55,2063.9,2061,2061.2,388,27
end,b4503e4376b09e2920c9e70e0a6957cd61f53d141a299b2766d58be5d713d052
"""


def test_a_file_as_it_is_written(channel: Channel) -> None:
    channel.put(EXACT)
    frame = channel.bars()
    assert frame.index.tolist() == [NOON, NOON + timedelta(minutes=15)]
    assert frame.index.name == "time" and str(times_of(frame).tz) == "UTC"
    assert frame.to_numpy().tolist() == [
        [2062.94, 2064.31, 2062.1, 2063.55, 412.0, 0.28],
        [2063.55, 2063.9, 2061.0, 2061.2, 388.0, 0.27],
    ]
    assert list(frame.columns) == ["open", "high", "low", "close", "volume", "spread"]
    assert set(map(str, frame.dtypes)) == {"float64"}
    assert frame.attrs == {"clock": "new_york+7", "utc_offsets": ("+02:00",)}
    assert channel.feed.period() is None
    assert len(door.check(frame, "M15", as_of=AS_OF, minimum=2)) == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "ascii"),
        (codecs.BOM_UTF8, "ascii"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_every_encoding_of_the_terminal(
    channel: Channel, newline: str, mark: bytes, encoding: str
) -> None:
    content = text(rows(OPENS), OFFSET, newline=newline)
    channel.put(mark + content.encode(encoding))
    assert channel.opens() == OPENS
    channel.put(mark + content.rstrip().encode(encoding))  # no newline after the last line
    assert channel.opens() == OPENS


def test_only_bars_that_are_closed_and_as_many_as_asked_for(channel: Channel) -> None:
    channel.put(rows(OPENS))
    assert channel.opens(AS_OF - timedelta(seconds=1)) == OPENS[:3]
    assert channel.opens(NOON) == []
    assert channel.bars(limit=2).index.tolist() == OPENS[2:]
    assert channel.bars(limit=9).index.tolist() == OPENS
    assert len(channel.bars(limit=0)) == 0


def test_of_a_long_file_the_newest_bars_may_be_enough(channel: Channel) -> None:
    bars = rows(OPENS)
    whole = read_sheet(text(bars, OFFSET).encode(), KEY, GOLD)
    for newest in (1, 3, len(bars), len(bars) + 5):
        found = read_sheet(text(bars, OFFSET).encode(), KEY, GOLD, newest)
        assert found.wall.tolist() == whole.wall.tolist()[-newest:]
        assert found.bars.tolist() == whole.bars.tolist()[-newest:]
    spoilt = text([*bars[:-1], (1, 1e-07, 1, 1, 1, 1, 1)], OFFSET)
    with pytest.raises(ValueError, match=f"line {len(bars) + 2} is not a bar"):
        read_sheet(spoilt.encode(), KEY, GOLD, 2)


# --- reading again, and only then -----------------------------------------------------------------


def test_a_file_is_read_once_until_it_changes(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def counted(raw: bytes, *words: Any) -> mt5_files.BarSheet:
        reads.append(len(raw))
        return read_sheet(raw, *words)

    monkeypatch.setattr(mt5_files, "read_sheet", counted)
    channel.put(rows(OPENS[:3]))
    for _ in range(20):
        assert channel.opens() == OPENS[:3]
    assert len(reads) == 1
    channel.put(rows(OPENS[1:]))  # as long and, on a coarse disk, of the same time
    assert channel.opens() == OPENS[1:]
    channel.put(rows(OPENS), AS_OF + timedelta(seconds=1))
    assert channel.opens() == OPENS
    assert len(reads) == 3


def test_no_part_of_a_file_is_ever_taken_for_the_whole(
    channel: Channel, scaled: Callable[..., int]
) -> None:
    old, new = text(rows(OPENS[:3]), OFFSET), text(rows(OPENS), OFFSET).rstrip()
    channel.put(new[:-1])
    refusal = channel.refusal()
    assert refusal.reason == "bad_file" and "half-written" in refusal.detail
    channel.put(old)
    assert channel.opens() == OPENS[:3]
    cuts = range(len(new))
    chance = random.Random(4)
    for cut in [*chance.sample(cuts, min(len(cuts), scaled(len(cuts), 40))), len(new) - 1]:
        channel.path.write_text(new[:cut])  # in place, as a writer without a draft would
        assert channel.opens() == OPENS[:3]
    channel.path.write_text(new)
    assert channel.opens() == OPENS


def test_no_change_of_a_byte_changes_a_bar(channel: Channel, scaled: Callable[..., int]) -> None:
    chance = random.Random(9)
    good = bytearray(text(rows(OPENS), OFFSET).encode())
    channel.put(rows(OPENS))
    kept = channel.bars()
    for _ in range(scaled(3_000, 60)):
        bad = bytearray(good)
        bad[chance.randrange(len(bad))] = chance.randrange(256)
        channel.put(bytes(bad))
        pd.testing.assert_frame_equal(channel.bars(), kept)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (text(rows(OPENS), OFFSET, key="another key"), "signature is wrong: do both sides"),
        (text(rows(OPENS), OFFSET, count=5), "it has 4 bars and says 5"),
        (text(rows(OPENS), OFFSET, header="time,open,high,low,close,volume"), "its columns are"),
        (text([row(new_york_plus_7(NOON))], OFFSET).replace("2001.25", "2001.26"), "signature"),
        (text([(1770811200, 1e-07, 1, 1, 1, 1, 1)], OFFSET), "line 3 is not a bar"),
        (text([row(1), (1, 1.0, float("nan"), 1.0, 1.0, 1, 1)], OFFSET), "line 4 is not a bar"),
        (text([(99_999_999_999, 1, 1, 1, 1, 1, 1)], OFFSET), "line 3 is not a bar"),
        ("", "last line is missing"),
        ("\n\n", "last line is missing"),
        ("end," + "0" * 64, "signature"),
        (b"\xff\xfe\x00", "cannot be used"),
        ("é" + text([], OFFSET), "cannot be used"),
        ("x" * 5_000_000, "last line is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_what_is_wrong_is_refused_in_words(
    channel: Channel, content: str | bytes, said: str
) -> None:
    channel.put(content)
    refusal = channel.refusal()
    assert refusal.reason == "bad_file" and said in refusal.detail
    assert str(channel.path) in refusal.detail
    channel.put(rows(OPENS))
    assert channel.opens() == OPENS
    channel.put(content)
    assert channel.opens() == OPENS


def test_a_missing_file_names_the_remedy(channel: Channel) -> None:
    refusal = channel.refusal()
    assert refusal.reason == "no_file"
    assert "with XAUUSD.m in its input bar_symbols and M15 in bar_timeframes?" in refusal.detail


def test_the_last_good_copy_stands_and_that_is_said_once(
    channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    channel.put(rows(OPENS))
    channel.bars()
    with caplog.at_level(logging.WARNING, logger="torra"):
        channel.path.unlink()
        for _ in range(3):
            assert channel.opens() == OPENS
        assert ["last good copy" in line for line in caplog.messages] == [True]
        channel.put("rubbish")
        for _ in range(3):
            assert channel.opens() == OPENS
        assert len(caplog.messages) == 2
        channel.put(rows(OPENS))
        assert channel.opens() == OPENS
        channel.put("rubbish")
        assert channel.opens() == OPENS
        assert len(caplog.messages) == 3
    assert KEY not in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes among files")
def test_a_pipe_in_the_place_of_a_file_is_told_and_not_waited_for(channel: Channel) -> None:
    channel.path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(channel.path)
    refusal = channel.refusal()
    assert refusal.reason == "bad_file"
    assert "it is no regular file" in refusal.detail
    channel.path.unlink()
    channel.put(rows(OPENS))
    assert channel.opens() == OPENS


def test_a_file_that_another_program_holds_is_no_end(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*_: object, **__: object) -> object:
        raise PermissionError(13, "sharing violation", str(channel.path))

    with monkeypatch.context() as patch:
        channel.put(rows(OPENS))
        patch.setattr(mt5_files, "read_regular", held)
        refusal = channel.refusal()
        assert (refusal.reason, "sharing violation" in refusal.detail) == ("bad_file", True)
    assert channel.opens() == OPENS
    channel.put(rows(OPENS[1:]))
    monkeypatch.setattr(mt5_files, "read_regular", held)
    assert channel.opens() == OPENS


def test_what_the_channel_does_not_bring(channel: Channel, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"brings no bars of EURUSD; it brings XAUUSD"):
        channel.feed.bars("EURUSD", "M15", AS_OF)
    with pytest.raises(ValueError, match="unknown timeframe"):
        channel.feed.bars("XAUUSD", "M7", AS_OF)
    with pytest.raises(ConfigError, match="no channel key is set"):
        Mt5FilesFeed(tmp_path, {}, USUAL, "", channel="main", account=1)


# --- the server's clock ---------------------------------------------------------------------------

BETWEEN = datetime(2026, 3, 10, 12, tzinfo=UTC)  # the USA has changed its clocks, Europe has not


def test_another_clock_than_the_servers_brings_no_bars(tmp_path: Path) -> None:
    channel = Channel(tmp_path)
    opens = quarters(BETWEEN, 4)
    written = BETWEEN + timedelta(hours=1)
    channel.put(rows(opens, athens), written, at=offset(athens, BETWEEN))
    refusal = channel.refusal()
    assert refusal.reason == "server_clock"
    assert "new_york+7 was +03:00" in refusal.detail and "Europe/Athens" in refusal.detail
    right = Channel(tmp_path, ServerClock.parse("Europe/Athens"))
    assert right.opens(written) == opens
    channel.put(rows(opens), written, at=offset(new_york_plus_7, BETWEEN))
    assert channel.opens(written) == opens
    assert right.refusal().reason == "server_clock"


@pytest.mark.parametrize(
    ("written", "at", "refused"),
    [
        (datetime(2026, 3, 6, 22, 1, tzinfo=UTC), 7200, False),  # Friday, before the change
        (datetime(2026, 3, 9, 5, tzinfo=UTC), 10800, False),  # restarted on Monday, no new bar
        (datetime(2026, 5, 1, tzinfo=UTC), 7200, False),  # copied long after
        (datetime(2026, 3, 6, 22, 1, tzinfo=UTC), 10800, True),
        (datetime(2026, 3, 9, 5, tzinfo=UTC), 0, True),
        (datetime(2026, 5, 1, tzinfo=UTC), 14400, True),
    ],
)
def test_the_offset_is_that_of_the_moment_of_writing(
    channel: Channel, written: datetime, at: int, refused: bool
) -> None:
    friday = quarters(datetime(2026, 3, 6, 21, tzinfo=UTC), 4)
    channel.put(rows(friday), written, at=at)
    if refused:
        assert channel.refusal().reason == "server_clock"
    else:
        assert channel.opens(written) == friday


AUTUMN = quarters(datetime(2026, 11, 1, 4, 30, tzinfo=UTC), 12)  # two, the hour twice, two


@pytest.mark.parametrize("cut", range(12))
def test_at_the_files_head_an_hour_shown_twice_is_left_out(channel: Channel, cut: int) -> None:
    channel.put(rows(AUTUMN[cut:]), AUTUMN[-1] + timedelta(minutes=15))
    certain = AUTUMN[max(cut, 10):] if cut > 5 else AUTUMN[cut:]  # fmt: skip
    assert channel.opens(AUTUMN[-1] + timedelta(hours=1)) == certain
