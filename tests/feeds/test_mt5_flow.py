"""The MetaTrader5 package fills the same rows; what it cannot know is None."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.doubles.fake_metatrader5 import RATES, BookInfo
from tests.worlds.flow_files import Bar, market, moves, slippage, spreads
from tests.worlds.terminals import NOON, TerminalDesk
from torra.evidence.flow_readings import FlowThen
from torra.feeds.mt5_direct import BOOK_SECONDS

QUARTER = timedelta(minutes=15)
TICKS = [("time", "<i8"), ("bid", "<f8"), ("ask", "<f8"), ("last", "<f8"), ("volume", "<u8"),
         ("time_msc", "<i8"), ("flags", "<u4"), ("volume_real", "<f8")]  # fmt: skip


class Desk(TerminalDesk):
    """A terminal with ticks and a book, just after the close of the bar of NOON."""

    def fill_ticks(self, bars: list[Bar], *, ticks: int | None = None) -> None:
        every = [
            (at // 1000, bid, ask, last, 0, at, flags, 0.0)
            for bar in bars
            for at, bid, ask, last, flags in bar.ticks
        ]
        self.package.ticks["XAUUSD.m"] = np.array(every, dtype=TICKS)
        rates = np.zeros(len(bars), dtype=RATES)
        rates["time"] = [bar.time for bar in bars]
        rates["tick_volume"] = [len(bar.ticks) if ticks is None else ticks for bar in bars]
        self.package.rates["XAUUSD.m", 15] = rates

    def flow(self, bar_time: datetime = NOON) -> FlowThen:
        return self.feed.flow("XAUUSD", "M15", [bar_time])


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk(now=NOON + QUARTER + timedelta(seconds=2))
    yield made
    made.terminal.close()


def bars(desk: Desk, count: int = 3, **how: object) -> list[Bar]:
    """Return bars of which the second is that of NOON."""
    first = desk.server.from_utc(NOON - QUARTER)
    return market(first, count, seconds=900, books=True, **how)  # type: ignore[arg-type]


def test_ticks_and_spreads_are_those_of_a_recount(desk: Desk, scaled: Callable[..., int]) -> None:
    for seed in range(scaled(300, least=15)):
        made = bars(desk, trades=seed % 2 == 0, seed=seed)
        desk.fill_ticks(made)
        row = desk.flow().rows[NOON]
        ticks, wide = made[1].ticks, spreads(made[1].ticks)
        assert (row.ticks, (row.up, row.down)) == (len(ticks), moves(ticks))
        assert row.spread_mean == pytest.approx(sum(wide) / len(wide) / 100)
        assert row.spread_widest == pytest.approx(max(wide) / 100)
        assert row.levels is row.events is row.slippage is None


def test_a_book_is_that_of_now_and_its_changes_are_not_known(
    desk: Desk, scaled: Callable[..., int]
) -> None:
    for seed in range(scaled(300, least=15)):
        made = bars(desk, seed=seed)
        desk.fill_ticks(made)
        book = next((told for _, told in made[0].books if told), [])
        desk.package.books["XAUUSD.m"] = tuple(
            BookInfo(kind, price, whole, exact) for kind, price, whole, exact in book
        )
        desk.flow()  # the first look asks for the book
        row = desk.flow().rows[NOON]
        priced = [one for one in book if one[1] > 0]
        assert row.levels == (len(priced) or None)
        slipped = slippage(priced) if priced else None
        assert row.slippage == (None if slipped is None else pytest.approx(float(slipped) / 100))
        assert row.events is None
        desk.open({"XAUUSD": "XAUUSD.m"})


def test_a_book_of_later_is_not_that_of_the_close(desk: Desk) -> None:
    desk.fill_ticks(bars(desk))
    desk.package.books["XAUUSD.m"] = (BookInfo(1, 2000.1, 3, 3.0), BookInfo(2, 2000.0, 2, 2.0))
    assert desk.flow().rows[NOON].imbalance == -0.2
    desk.clock.moment = NOON + QUARTER + BOOK_SECONDS + timedelta(seconds=1)
    row = desk.flow().rows[NOON]
    assert row.ticks and row.levels is row.imbalance is None


def test_a_book_that_cannot_be_had_is_asked_for_again(desk: Desk) -> None:
    desk.fill_ticks(bars(desk))
    book = (BookInfo(1, 2000.1, 3, 3.0), BookInfo(2, 2000.0, 2, 2.0))
    desk.package.books["XAUUSD.m"] = book
    desk.package.silent["market_book_add"] = (-1, "not connected")
    assert desk.flow().rows[NOON].levels is None
    del desk.package.silent["market_book_add"]
    assert [desk.flow().rows[NOON].levels for _ in range(2)] == [2, 2]
    assert desk.package.calls.count("market_book_add") == 2


def test_a_gap_in_the_ticks_leaves_the_bar_out(desk: Desk) -> None:
    desk.fill_ticks(bars(desk), ticks=1000)
    assert desk.flow() == FlowThen({}, "left_out", "mt5_direct")


@pytest.mark.parametrize("silent", ["copy_ticks_range", "copy_rates_range", "symbol_info"])
def test_what_the_terminal_does_not_say_is_no_row(desk: Desk, silent: str) -> None:
    desk.fill_ticks(bars(desk))
    desk.package.silent[silent] = (-1, "no")
    assert desk.flow() == FlowThen({}, "left_out", "mt5_direct")


def test_of_an_hour_that_the_server_shows_twice_no_row_is_taken(desk: Desk) -> None:
    """On 2026-11-01 the server's clock goes back at 06:00 UTC; both hours have the same ticks."""
    first = datetime(2026, 11, 1, 4, 30, tzinfo=UTC)
    opens = [first + number * QUARTER for number in range(12)]
    desk.clock.moment = opens[-1] + 2 * QUARTER
    walls = sorted({desk.server.from_utc(at) for at in opens})
    desk.fill_ticks(
        [Bar(wall, market(wall, 1, seconds=900, books=False)[0].ticks) for wall in walls]
    )
    found = [bool(desk.flow(at).rows) for at in opens]
    assert found == [True] * 2 + [False] * 8 + [True] * 2
