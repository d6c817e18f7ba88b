"""Order flow on a desk: its files beside the bars, a drive that hangs, and what doctor says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import desks, flow_files, journals, mt5_bars
from tests.worlds.flows import Flowing
from tests.worlds.mt5_bars import KEY, put
from torra.config import Instance
from torra.desk.checks import stored
from torra.evidence.flow_readings import MEAN_BARS, FlowThen
from torra.feeds.limited import LimitedFeed, LimitedFlow
from torra.feeds.mt5_files import FlowFiles
from torra.feeds.protocol import no_flow
from torra.market.broker_clock import ServerClock
from torra.services import Service, Services
from torra.store import flow as flow_table
from torra.store import replay_queries
from torra.tick.bar_window import LiveWindow
from torra.time_limit import TimeLimit


class Hanging(Flowing):
    """Its order flow does not come before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self.asked = 0

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        self.asked += 1
        assert self.let_go.wait(30)
        return super().flow(symbol, timeframe, times)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.let_go.set()


def lived(folder: Path, feed: Any) -> list[dict[str, Any]]:
    """Return the records of a desk's ticks."""
    desk = desks.open_desk(folder, (desks.BTC,), profile=journals.a_profile(), feed=feed)
    desks.open_for_work(desk)
    desks.step(desk, 6)
    with closing(desk.database):
        keys = replay_queries.journalled(desk.database, desks.BTC.id)
        return [replay_queries.journal_row(desk.database, key)[0] for key in keys]


@pytest.mark.journey
def test_a_drive_that_hangs_is_asked_once_and_costs_no_tick(
    tmp_path: Path, hanging: Hanging
) -> None:
    """Side by side with the same desk whose order flow answers; the bars come in both."""
    flow = LimitedFlow(hanging)
    limited = LimitedFeed(hanging, TimeLimit("bars", 30.0), flow)
    records, beside = lived(tmp_path / "hangs", limited), lived(tmp_path / "answers", Flowing())
    assert hanging.asked == 1, "until it answers nobody waits for it any more"
    assert [one["bar_time"] for one in records] == [one["bar_time"] for one in beside]
    for record, other in zip(records, beside, strict=True):
        assert record["outside"]["statuses"]["flow"] == "unreachable"
        assert (record["l1"], record["consensus"]) == (other["l1"], other["consensus"])


def test_a_desk_asks_once_before_its_first_tick(tmp_path: Path) -> None:
    """A terminal's first answer may take long: better then than at a close."""
    seen: list[Any] = []

    class Noting(Flowing):
        def begin_flow(self, _symbol: str, timeframe: str, times: Sequence[datetime]) -> Any:
            seen.append((timeframe, times))
            return no_flow

    def no_timer(*_: Any) -> None:
        seen.append("timers")

    class Opens(Service):
        def open(self) -> None:
            seen.append("start")

    desk = desks.open_desk(tmp_path, (desks.BTC,), feed=Noting())
    desk.services = Services(Opens("opens", 3600.0, lambda: None))
    desk._set_timers = no_timer  # type: ignore[method-assign]
    desks.open_for_work(desk)
    desk.start()
    hour = timedelta(hours=1)
    assert seen == ["start", ("H1", [desks.START - hour]), "timers"]
    desk.close()


class Changing(Flowing):
    """It counts anew with each look, as an Expert Advisor does after a restart."""

    def __init__(self) -> None:
        super().__init__()
        self.more = 0

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        self.more += 1000
        found = super().flow(symbol, timeframe, times)
        rows = {
            time: row._replace(ticks=row.ticks + self.more, levels=None)
            for time, row in found.rows.items()
        }
        return found._replace(rows=rows)


def test_what_was_seen_first_stands_for_later_ticks(tmp_path: Path) -> None:
    with closing(desks.open_database(tmp_path)) as database:
        window = LiveWindow(desks.BTC, Changing(), database)
        bars = window.bars("M15", desks.START)
        times = bars.newest_times(MEAN_BARS)
        first = window.flow("M15", times)
        with database.transaction():
            window.keep("M15", bars)
        assert first.rows
        assert window.flow("M15", times).rows == first.rows


class LeftOutOnce(Flowing):
    """It left bars out, and counts them whole after a restart."""

    whole = False

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        found = super().flow(symbol, timeframe, times)
        left = {time for time in found.rows if time.hour % 3 == 0 and time != times[-1]}
        rows = {time: row for time, row in found.rows.items() if self.whole or time not in left}
        return found._replace(rows=rows)


def test_what_a_tick_used_is_what_a_replay_finds(tmp_path: Path) -> None:
    with closing(desks.open_database(tmp_path)) as database:
        feed = LeftOutOnce()
        window = LiveWindow(desks.BTC, feed, database)
        bars = window.bars("M15", desks.START)
        times = bars.newest_times(MEAN_BARS)
        for whole in (False, True):
            feed.whole = whole
            used = window.flow("M15", times)
            with database.transaction():
                window.keep("M15", bars)
            stored = flow_table.flow_rows(database, desks.BTC.id, "M15", times[0], times[-1])
            assert {row.bar_time: row for row in stored} == used.rows
        assert len(used.rows) > 12


# --- doctor ---------------------------------------------------------------------------------------


class Fed:
    """Bars and order flow of the channel's folder, as doctor meets them."""

    def __init__(self, folder: Path) -> None:
        clock, symbols = ServerClock.parse("+03:00"), {"XAUUSD": "XAUUSD.m"}
        self.bars_feed = mt5_bars.feed(folder, symbols, clock)
        flow = FlowFiles(folder, symbols, clock, KEY, channel="main", account=mt5_bars.ACCOUNT)
        self.feed = LimitedFeed(self.bars_feed, TimeLimit("bars", 3.0), LimitedFlow(flow))


@pytest.mark.parametrize(
    ("rows", "level", "said"),
    [
        (20, "ok", "that of the newest bar is there"),
        (19, "ok", "not there yet"),
        (5, "warn", "nothing has been counted"),
        (0, "ok", "writes none"),
        (-1, "warn", "cannot be used"),
    ],
)
def test_doctor_says_how_the_order_flow_stands(
    tmp_path: Path, rows: int, level: str, said: str
) -> None:
    folder = tmp_path
    opens = mt5_bars.quarters(mt5_bars.NOON, 20)
    bars = mt5_bars.rows(opens, mt5_bars.plus_3)
    written = opens[-1] + timedelta(minutes=16)
    put(folder / "bars" / "XAUUSD%2Em_M15.csv", mt5_bars.text(bars, 10_800), written)
    if rows:
        lines = [f"{bar[0]},5,1,1,,,,,,,," for bar in bars[: max(rows, 1)]]
        told = flow_files.text(lines, key=KEY if rows > 0 else "another")
        put(folder / "flow" / "XAUUSD%2Em_M15.csv", told)
    instance = Instance(symbol="XAUUSD", timeframes=("M15",), feed="mt5_files")
    (found,) = stored.order_flow(instance, "M15", Fed(folder).feed)
    assert (found.name, found.level) == ("order flow", level)
    assert found.detail.startswith("XAUUSD M15: ") and said in found.detail
    assert bool(found.remedy) == (level == "warn")


def test_doctor_says_nothing_of_a_feed_without_any() -> None:
    assert not [*stored.order_flow(desks.BTC, "M15", desks.sample())]
    assert not [
        *stored.order_flow(desks.BTC, "M15", LimitedFeed(desks.sample(), TimeLimit("x", 3.0)))
    ]
