"""What was made in warm-up is told apart from what a running desk made, and counted apart."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.worlds import desks
from torra.clock import parse
from torra.config import Profile, validate
from torra.desk.promotion import PromotionSubject
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
from torra.money.open_positions import bar_of
from torra.replay.live import made
from torra.store import standings as standing_table
from torra.store.standings import WarmUps
from torra.store.trade import signals as signal_table
from torra.trading import by_hand, signal_list

LATE = timedelta(seconds=2)
"""How long after a close a running desk looks."""

TRADING = validate(
    Profile, {"thresholds": {"buy": 0.05, "sell": 0.05}, "agents": {"mode": "budget"}}, "a test"
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk that was warmed up and then ran for two hours."""
    folder = tmp_path_factory.mktemp("warm")
    found = desks.open_desk(folder, profile=TRADING)
    desks.open_for_work(found)
    list(found.warm_up(desks.START, bars=48))
    clock = desks.clock_of(found)
    for _ in range(8):
        clock.set(next_close(clock.now(), ["M15", "H1"]) + LATE)
        found.wake("BTCUSD")
    return found


@pytest.mark.journey
def test_the_warm_up_ends_at_the_start_of_each_stream(desk: Desk) -> None:
    for timeframe in ("M15", "H1"):
        assert standing_table.warm_up_end(desk.database, "BTCUSD", timeframe) == desks.START
        has = WarmUps(desk.database).has
        assert has("BTCUSD", timeframe, desks.START)
        assert not has("BTCUSD", timeframe, desks.START + timedelta(minutes=15))
    assert standing_table.warm_up_end(desk.database, "EURUSD", "H1") is None


def test_a_record_without_its_moment_was_no_warm_up(tmp_path: Path) -> None:
    old = desks.working_desk(tmp_path, profile=TRADING)
    list(old.warm_up(desks.START, bars=2))
    assert standing_table.warm_up_end(old.database, "BTCUSD", "M15") == desks.START
    with old.database.transaction():
        old.database.connection().execute(
            "UPDATE journal SET record = json_remove(record, '$.now')"
        )
    assert standing_table.warm_up_end(old.database, "BTCUSD", "M15") is None
    # A signal whose bar cannot be told is left unmarked, and nothing raises.
    assert not WarmUps(old.database).made("BTCUSD", "M15", "no time")


@pytest.mark.journey
def test_signals_are_marked_and_counted(desk: Desk) -> None:
    rows = desk.database.signals(limit=1000)
    marked = [WarmUps(desk.database).made(*bar_of(row)) for row in rows]
    assert any(marked)
    # An order of the running desk is decided at a later close.
    assert marked == [parse(row["decided_at"]) <= desks.START for row in rows]
    told = [
        {name: row[name] for name in by_hand.COLUMNS} | {"warm_up": mark}
        for row, mark in zip(rows, marked, strict=True)
    ]
    document = {
        "trading_state": "ACTIVE", "reason": "", "at": None, "bridges": [], "alarms": [],
        "proposals": [], "signals": told,
    }  # fmt: skip
    lines = signal_list.table(document).splitlines()
    assert sum(line.endswith(", warm-up") for line in lines) == sum(marked)
    assert lines[-1].startswith(f"{sum(marked)} of these {len(rows)}: made in warm-up")


@pytest.mark.journey
def test_the_scorecard_counts_both_apart(desk: Desk) -> None:
    subject = PromotionSubject("default", TRADING, (desks.BTC,))
    found = made(desk.database, subject)
    assert found.document is not None
    assert found.warmed.ticks == 48 + 12
    assert found.as_json()["warm_up"]["ticks"] == 60
    (told,) = (line for line in found.document.warnings if "warm-up" in line)
    assert told.startswith("Of 70 ticks the running desk made 10 and its warm-up 60")


@pytest.mark.journey
def test_the_scorecard_says_what_a_person_closed(desk: Desk) -> None:
    closed = signal_table.closed_trades(desk.database, "BTCUSD")
    assert closed
    sql = "UPDATE signals SET close_reason = 'BY_HAND' WHERE sid = ?"
    with desk.database.transaction():
        desk.database.connection().execute(sql, (closed[0].sid,))
    found = made(desk.database, PromotionSubject("default", TRADING, (desks.BTC,)))
    assert found.document is not None
    assert found.as_json()["left_out"] == {"by_hand": 1}
    assert "Trades left out: by hand 1." in found.document.warnings
