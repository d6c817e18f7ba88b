"""The demo's clock waits for a person who has a proposal before him; no other clock does."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from instance_database import Database
from tests.tries import until
from tests.worlds import desks, stores
from torra import clock as clocks
from torra.clock import Scaled, Simulated, System
from torra.config import DeskSettings, Profile
from torra.dashboard.trade import approvals
from torra.dashboard.view.looking_desk import LookingDesk
from torra.desk.watches import ClockWatch
from torra.home import HALT
from torra.trading.courier import Addressee, Courier
from torra.trading.kill_switch import KillSwitch
from torra.trading.patience import LONGEST, Patience

START = datetime(2021, 11, 1, tzinfo=UTC)


class Hand:
    """Stands for the time module."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    made = Hand()
    monkeypatch.setattr(clocks, "time", made)
    return made


def test_it_stands_while_a_proposal_waits_and_goes_on_once_it_is_decided(hand: Hand) -> None:
    clock, patience = Scaled(START, 180.0), Patience()
    patience.look(clock, [])
    assert clock.held == 0.0
    for _ in range(60):
        patience.look(clock, ["T1"])
        hand.seconds += 1
    assert clock.now() == START
    patience.look(clock, [])
    hand.seconds += 5
    assert clock.now() == START + timedelta(minutes=15)


def test_each_proposal_has_its_two_minutes_and_no_more(hand: Hand) -> None:
    clock, patience = Scaled(START, 180.0), Patience()
    for second in range(400):
        waiting = ["T1"] if second < 60 else ["T1", "T2"]
        patience.look(clock, waiting)
        hand.seconds += 1
    stood = 400 - (clock.now() - START).total_seconds() / 180
    # the second one came a minute later
    assert stood == pytest.approx(60 + LONGEST)


def test_it_tells_that_the_clock_goes_on_before_it_was_to(hand: Hand) -> None:
    clock, patience = Scaled(START, 180.0), Patience()
    told = []
    for waits in ([], ["T1"], ["T1"], ["T1", "T2"], ["T1"], ["T1"], [], []):
        told.append(patience.look(clock, waits))
        hand.seconds += 10
    # the second one would have let it stand for longer, the first one for what was left
    assert told == [False, False, False, False, True, False, True, False]


def test_it_tells_nothing_when_the_clock_has_stood_as_long_as_it_was_to(hand: Hand) -> None:
    clock, patience = Scaled(START, 180.0), Patience()
    for _ in range(int(LONGEST) + 60):
        assert not patience.look(clock, ["T1"])
        hand.seconds += 1
    assert not patience.look(clock, [])


def test_a_desk_in_real_time_is_left_alone(hand: Hand) -> None:
    for clock in (System(), Simulated(START)):
        Patience().look(clock, ["T1"])
        assert clock.running() == hand.seconds


def test_a_wait_is_no_jump_of_the_clock(hand: Hand) -> None:
    clock, watch, patience = Scaled(START, 180.0), ClockWatch(), Patience()
    assert watch.jump("BTCUSD", clock) == timedelta(0)
    patience.look(clock, ["T1"])
    hand.seconds += 100
    patience.look(clock, [])
    hand.seconds += 5
    assert abs(watch.jump("BTCUSD", clock)) < timedelta(seconds=0.01)
    assert not watch.settling(clock)


def waiting(database: Database) -> None:
    """Let a proposal wait."""
    with database.transaction():
        database.connection().conn.execute(
            "INSERT INTO proposals (sid, torra_key, instance, symbol, timeframe, bar_time, "
            "verdict, action, drafts, price, atr, multiplier, created_at, expires, state, reason) "
            "VALUES ('T1', 'k', 'BTCUSD', 'BTCUSD', 'M15', '', 'BUY', 'OPEN_BUY', '[]', 1, 1, 1, "
            "'', '2999-01-01T00:00:00Z', 'WAITING', '')"
        )


def test_the_courier_of_a_demo_waits(tmp_path: Path) -> None:
    clock = Scaled(START, 180.0)
    with closing(stores.open_database(tmp_path)) as database:
        switch = KillSwitch({"desk": tmp_path / HALT}, database)
        paper = Addressee(desks.BTC, Profile(), None)
        told: list[bool] = []
        courier = Courier(
            database, [paper], dict, switch, lambda: clock, earlier=lambda: told.append(True)
        )
        courier.turn()
        assert clock.held == 0.0
        waiting(database)
        courier.turn()
        assert 0.0 < clock.held <= LONGEST
        assert not told
        database.decide_proposal("T1", "REJECTED", "no")
        courier.turn()
        assert clock.held == 0.0
        assert told == [True]


def test_a_desk_ticks_soon_after_the_person_has_decided(tmp_path: Path) -> None:
    """Its timers were set for a clock that stands for as long as it may."""
    made = Scaled(desks.START, 900.0)
    desk = desks.open_desk(tmp_path, make_clock=lambda _: made)
    desk.open()
    desk.start()

    def ticks() -> int:
        rows = desk.database.connection().query("select count(*) as n from ticks")
        return int(next(iter(rows))["n"])

    try:
        until(lambda: ticks() >= 2, 20, "the desk ticks")
        made.hold(60.0)
        before, name = desk.clock.real_now(), desks.BTC.id
        until(
            lambda: (desk.timers()[name][0] or before) > before + timedelta(seconds=30),
            20,
            "its next wake is set for the end of the wait",
        )
        stood = ticks()
        made.go_on()
        desk.look_again()
        until(lambda: ticks() > stood, 20, "it ticks again")
    finally:
        desk.close(within=10)


def test_who_only_looks_does_not_run_ahead_of_a_clock_that_may_stand(tmp_path: Path) -> None:
    now = System().real_now
    with closing(stores.open_database(tmp_path, now)) as database:
        epoch = database.acquire_lease("me", 600.0)
        assert epoch is not None
        later = START + timedelta(hours=1)
        database.renew_lease("me", epoch, 600.0, later)
        looking = LookingDesk(tmp_path, DeskSettings(instances=(desks.BTC,)), database)
        assert isinstance(looking.clock, Scaled)
        waiting(database)
        clock = looking.clock
        assert abs(clock.now() - later) < timedelta(seconds=0.01) and clock.rate == 180.0
        left = clock.real_time_of(later + timedelta(minutes=15)) - clock.real_now()
        assert abs(left - timedelta(seconds=LONGEST + 5)) < timedelta(seconds=1)
        database.decide_proposal("T1", "REJECTED", "no")
        assert isinstance(looking.clock, Scaled)


def test_the_page_says_that_the_clock_waits() -> None:
    assert approvals.lives((desks.BTC,), 180.0).endswith(
        "So its clock stands while one waits for you, at most 2 minutes each."
    )
    assert approvals.lives((desks.BTC,), None) == ""
