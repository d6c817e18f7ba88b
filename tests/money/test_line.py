"""The line of results: what was closed by then, what was open then, at any moment of the past."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Scale
from tests.worlds import desks, stores
from torra.clock import duration, iso, parse
from torra.config import Profile, validate
from torra.desk.timers import next_close
from torra.money.book import MoneyBook
from torra.money.open_positions import PERIODS, LinePoint, line, moments
from torra.store import bars as bar_table
from torra.store.standings import WarmUps
from torra.verdict.risk_engine import OPENS

NOW = datetime.fromisoformat("2021-11-12T10:00:00+00:00")


def test_a_trade_counts_from_its_end_on_and_what_is_not_known_is_a_gap() -> None:
    ends = [("2021-11-12T08:00:00Z", 5.0), ("2021-11-12T09:00:00Z", -2.0)]
    at = [NOW - timedelta(hours=3), NOW - timedelta(hours=2), NOW]
    found = line(ends, dict(zip(at, (0.0, 1.5, None), strict=True)))
    assert found == (
        LinePoint(at[0], 0.0, 0.0), LinePoint(at[1], 5.0, 6.5), LinePoint(at[2], 3.0, None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("period", "hours"), [("today", 24), ("week", 168), ("month", 720), ("all", 26 + 1 / 60)]
)
def test_a_period_goes_back_so_far(period: str, hours: float) -> None:
    found = moments(period, NOW, "2021-11-11T08:00:00Z", 4)
    begin, step = NOW - timedelta(hours=hours), timedelta(hours=hours) / 3
    assert found == [begin, begin + step, begin + 2 * step, NOW], "evenly spread, with both ends"
    assert moments(period, NOW, iso(NOW + timedelta(hours=1)))[-1] == NOW


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Any:
    values = {
        "thresholds": {"buy": 0.04, "sell": 0.04}, "on_opposite": "reverse",
        "risk": {"capital": 100_000.0},
    }  # fmt: skip
    found = desks.open_desk(
        tmp_path_factory.mktemp("line"), profile=validate(Profile, values, "a test")
    )
    desks.open_for_work(found)
    for _ in range(scaled(48, least=28)):
        moment = next_close(found.clock.now(), ["M15"])
        # A second late, as a desk always is: what looks at its very close is the warm-up.
        desks.clock_of(found).set(moment + timedelta(seconds=1))
        found.wake("BTCUSD")
    yield found
    found.close()


def test_each_moment_equals_a_recount_from_fills_and_bars(desk: Any) -> None:
    """Of every signal and bar of a desk on paper, by other means than the line's own."""
    setups = desks.profiles(desk)
    found = MoneyBook(desk.database).lines(setups, desk.clock.now(), "all")["paper"]
    rows = [row for row in desk.database.signals(limit=10_000) if row["kind"] == "open"]
    spec = setups[0][1].symbol("BTCUSD")
    per_price = spec.tick_value / spec.tick_size
    dice = random.Random(3)
    for point in dice.sample(found, 30):
        closed = open_ = 0.0
        for row in rows:
            if row["closed_at"] is not None and parse(row["closed_at"]) <= point.at:
                closed += row["profit"]
            elif row["opened_at"] is not None and parse(row["opened_at"]) <= point.at:
                bars = desk.database.load_bars("BTCUSD", "M15", as_of=point.at, limit=1)
                assert bars.index[-1] + duration("M15") <= point.at
                bid = float(bars["close"].iloc[-1])
                long = OPENS[row["side"]] == "LONG"
                won = bid - row["price"] if long else row["price"] - bid - spec.spread
                open_ += won * per_price * (row["filled_lots"] or row["lots"])
        assert point.closed == pytest.approx(closed, abs=0.005)
        assert point.whole == pytest.approx(closed + open_, abs=0.005)
    assert any(point.whole != point.closed for point in found), "something was open at times"
    assert len({point.closed for point in found}) > 2


def test_an_open_position_alone_has_a_line(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setups = desks.profiles(desk)
    database, now = desks.open_database(tmp_path), desk.clock.now()
    desk.database.connection().conn.backup(database.connection().conn)
    filled = now - timedelta(hours=2)
    with database.transaction():
        database.connection().execute("DELETE FROM signal_events")
        database.connection().execute("DELETE FROM signals")
    price = bar_table.newest_close(database, "BTCUSD", ("M15",), now)
    row = stores.opening("T1", decided_at=filled, bar_time=filled, lots=0.1)
    assert database.enqueue_signal({**row, "entry": price, "stop": 1.0, "target": 1e6})
    database.move_signal("T1", "PUBLISHED")
    database.move_signal("T1", "FILLED", fields={"price": price - 100.0, "opened_at": filled})
    book = MoneyBook(database)
    (account,) = book.money(setups, now).accounts
    for period in PERIODS:
        points = book.lines(setups, now, period)["paper"]
        assert (points[0].closed, points[0].whole) == (0.0, 0.0)
        assert points[-1].whole == pytest.approx(account.open.result) == pytest.approx(10.0)
    whole = book.lines(setups, now, "all")["paper"]
    assert whole[0].at == filled - timedelta(minutes=1)
    monkeypatch.setattr(WarmUps, "made", lambda *_: True)
    assert book.lines(setups, now, "all") == {}
    (account,) = book.money(setups, now).accounts
    assert account.open.warm_up == account.open.result == pytest.approx(10.0)
