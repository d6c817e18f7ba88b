"""The order flow of the Expert Advisor's files: whole, signed, its own, or none with a reason."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import desks, flow_files
from tests.worlds.flow_files import Bar, line, market, points, slippage, spreads
from tests.worlds.mt5_bars import (
    ACCOUNT,
    GOLD,
    KEY,
    new_york_plus_7,
    put,
    signed,
    text,
)
from torra.config import Channel as Channel_
from torra.config import Instance
from torra.evidence.flow_readings import FlowRow, FlowThen
from torra.feeds.mt5_files import FlowFiles, read_flow
from torra.feeds.registry import FeedPlace, open_feed
from torra.market.broker_clock import ServerClock

USUAL = ServerClock.parse("new_york+7")
NOON = datetime(2026, 2, 11, 12, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
TIMES = [NOON + number * QUARTER for number in range(20)]


class Channel:
    """A folder with one file of order flow, and its reader."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "flow" / "XAUUSD%2Em_M15.csv"
        self.feed = FlowFiles(
            folder, {"XAUUSD": "XAUUSD.m"}, USUAL, KEY, channel="main", account=ACCOUNT
        )

    def put(self, content: str | bytes | Sequence[str]) -> None:
        told = content if isinstance(content, str | bytes) else flow_files.text(content)
        put(self.path, told)

    def flow(self, times: Sequence[datetime] = TIMES) -> FlowThen:
        return self.feed.flow("XAUUSD", "M15", times)


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel(tmp_path)


def bars(count: int = 20, *, books: bool = True, seed: int = 1) -> list[Bar]:
    return market(new_york_plus_7(NOON), count, seconds=900, books=books, seed=seed)


def lines(made: Sequence[Bar]) -> list[str]:
    return [line(bar, bar.books[-1][1] if bar.books else None, len(bar.books)) for bar in made]


EXACT = """\
{"v":2,"msg":"flow","channel":"main","account":1001,"broker_symbol":"XAUUSD.m","tf":"M15",\
"count":2,"digits":2,"server_offset_s":7200}
time,ticks,up,down,spread_mean,spread_widest,levels,bid_volume,ask_volume,imbalance,slippage,events
1770818400,412,120,98,28.2500,65,10,12.50,7.50,0.2500,4.50,310
1770819300,388,101,0,27.0000,31,,,,,,
end,"""


def test_a_file_as_it_is_written(channel: Channel) -> None:
    channel.put(signed(EXACT.split("\n")[:-1]))
    found = channel.flow(TIMES[:2])
    assert found == FlowThen(
        {
            NOON: FlowRow(
                NOON, 412, 120, 98, 0.2825, 0.65, 10, 12.5, 7.5, 0.25, 0.045, 310
            ),
            NOON + QUARTER: FlowRow(NOON + QUARTER, 388, 101, 0, 0.27, 0.31),
        },
        "available",
        "mt5_files",
    )  # fmt: skip


def test_what_is_written_comes_back(channel: Channel, scaled: Callable[..., int]) -> None:
    made = bars(scaled(1000, least=40))
    channel.put(lines(made))
    found = channel.flow([NOON])
    assert len(found.rows) == len(made)
    for bar, row in zip(made, found.rows.values(), strict=True):
        wide = spreads(bar.ticks)
        assert row.ticks == len(bar.ticks)
        assert row.spread_mean == pytest.approx(sum(wide) / len(wide) / 100, abs=1e-6)
        assert row.spread_widest is not None and points(row.spread_widest) == max(wide)
        book = [one for one in (bar.books[-1][1] if bar.books else []) if one[1] > 0]
        assert row.levels == (len(book) or None)
        slipped = slippage(book) if book else None
        assert row.slippage == (None if slipped is None else pytest.approx(float(slipped) / 100))
        assert row.events == (len(bar.books) if book else None)


def forgeries() -> dict[str, str | bytes]:
    rows = lines(bars())
    other = {
        "channel": replace(GOLD, channel="other"),
        "account": replace(GOLD, account=7),
        "symbol": replace(GOLD, broker_symbol="EURUSD"),
        "timeframe": replace(GOLD, timeframe="H1"),
    }
    first = rows[0].split(",")
    return {
        "forged": flow_files.text(rows, key="another key"),
        "a file of bars": text([], 7200),
        "bars under its name": flow_files.text(rows).replace('"msg":"flow"', '"msg":"bars"'),
        "other columns": flow_files.text(rows, header=flow_files.HEADER.replace("up", "upp")),
        "no number": flow_files.text([",".join([*first[:1], "x", *first[2:]])]),
        "negative": flow_files.text([",".join([*first[:1], "-3", *first[2:]])]),
        "half a book": flow_files.text([",".join([*first[:6], "3", "", "", "", "", ""])]),
        "more moves than ticks": flow_files.text([",".join([first[0], "3", "3", "1", *first[4:]])]),
        "a bar twice": flow_files.text([rows[0], rows[0]]),
        "out of order": flow_files.text([rows[1], rows[0]]),
        "too many decimals": flow_files.text(rows, digits=12),
        **{f"another {name}": flow_files.text(rows, source) for name, source in other.items()},
    }


FORGERIES = forgeries()


@pytest.mark.parametrize("name", FORGERIES)
def test_what_is_not_whole_signed_and_its_own_is_refused_and_the_last_good_copy_stands(
    channel: Channel, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    channel.put(FORGERIES[name])
    assert channel.flow() == FlowThen({}, "broken", "mt5_files")
    channel.put(lines(bars()))
    good = channel.flow()
    assert good.status == "available" and len(good.rows) == 20
    channel.put(FORGERIES[name])
    caplog.clear()
    with caplog.at_level(logging.WARNING, "torra"):
        assert [channel.flow(), channel.flow()] == [good, good]
        for bars_later in (1, 9):  # in time to be late, and long after
            later = [at + bars_later * QUARTER for at in TIMES]
            assert channel.flow(later).status == "broken"
    assert [record.message.count("cannot be used") for record in caplog.records] == [1]


def test_an_old_file_says_nothing_of_a_new_bar(channel: Channel) -> None:
    channel.put(lines(bars()))
    days = [time + timedelta(days=3) for time in TIMES]
    assert channel.flow(days).status == "stale"
    assert channel.flow([*TIMES[1:], TIMES[-1] + QUARTER]).status == "not_yet"


def test_a_bar_that_was_left_out_has_no_row(channel: Channel) -> None:
    made = bars(21)
    del made[-2]
    channel.put(lines(made))
    found = channel.flow()
    assert found.status == "left_out" and TIMES[-1] not in found.rows


def test_of_an_hour_that_the_server_shows_twice_no_row_is_taken() -> None:
    """On 2026-11-01 the clocks of New York go back at 06:00 UTC, 08:00 to 09:00 of the server."""
    first = datetime(2026, 11, 1, 4, tzinfo=UTC)
    opens = [first + number * timedelta(minutes=30) for number in range(10)]
    rows = [f"{new_york_plus_7(at)},5,1,1,,,,,,,," for at in opens]
    found = read_flow(flow_files.text(rows).encode(), KEY, GOLD, USUAL)
    assert [row.bar_time for row in found] == [*opens[:2], *opens[6:]]


def place(folder: Path, feed: str, **more: Any) -> FeedPlace:
    instance = Instance(
        symbol="XAUUSD", broker_symbol="XAUUSD.m", timeframes=("M15",), feed=feed, channel="main"
    )
    return FeedPlace(
        instance,
        folder,
        {},
        load_bars=lambda *_: None,
        sample=desks.sample,
        channel=Channel_(folder=str(folder), account=ACCOUNT, server_clock="new_york+7"),
        folder=lambda: folder,
        key=lambda: KEY,
        **more,
    )


def test_the_feed_of_an_instance_brings_it_beside_its_bars(tmp_path: Path) -> None:
    feed: Any = open_feed(place(tmp_path, "mt5_files"), lambda _name: None)
    assert feed.flow("XAUUSD", "M15", TIMES) == FlowThen({}, "no_file", "mt5_files")
    Channel(tmp_path).put(lines(bars()))
    assert feed.flow("XAUUSD", "M15", TIMES).status == "available"


@pytest.mark.parametrize(("brings", "status"), [(True, "available"), (False, "off")])
def test_a_plug_in_may_bring_it(tmp_path: Path, brings: bool, status: str) -> None:
    class Plug:
        bars = period = staticmethod(lambda *_: None)

    class WithFlow(Plug):
        def flow(self, *_: Any) -> FlowThen:
            return FlowThen({})

    made = WithFlow() if brings else Plug()
    feed: Any = open_feed(place(tmp_path, "acme:feed"), lambda _name: lambda _place: made)
    assert feed.flow("XAUUSD", "M15", TIMES).status == status
