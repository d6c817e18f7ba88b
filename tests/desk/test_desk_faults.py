"""What the world does to a desk: a deleted lock, a jumping clock, a lock at a bad moment, holes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from instance_database import TickKey
from tests.tries import Tries
from tests.worlds import desks
from tests.worlds.homes import profile_file
from torra.clock import Simulated, System, iso, parse
from torra.desk import wiring
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.desk.watches import SETTLING_SECONDS
from torra.desk_lock import is_locked
from torra.errors import ConfigError, DataUnavailable, StoreUnavailable
from torra.feeds.frame import FrameFeed
from torra.store import bars as bar_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.tick import record as tick_record
from torra.tick.bar_window import HistoryWindow, LiveWindow
from torra.verdict import sentiment_rules

H1 = timedelta(hours=1)


def states(desk: Any, instance: str, timeframe: str) -> dict[str, str]:
    found = tick_queries.tick_states(desk.database, instance, timeframe, 100)
    return {row["bar_time"]: row["state"] for row in found}


def test_a_desk_whose_database_was_deleted_halts_at_its_next_look(euro_desk: Desk) -> None:
    euro_desk.database.path.unlink()
    euro_desk.keep()
    assert "deleted, moved or replaced" in euro_desk.kill_switch.engaged()
    assert all(path.exists() for path in euro_desk.kill_switch._files.values())
    assert not euro_desk.database.path.exists()


def test_a_desk_that_closes_lets_no_wake_hang(tmp_path: Path) -> None:
    desk = desks.working_desk(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        assert desk.close()
        late = pool.submit(desk.wake, "BTCUSD")
        assert late.result(timeout=5) == []


def test_a_failing_instance_does_not_give_back_the_claims_of_another(tmp_path: Path) -> None:
    desk = desks.working_desk(tmp_path, (desks.BTC, desks.EUR))
    key = TickKey("BTCUSD", "M15", desks.START)
    desk.database.claim_tick(key)
    desk._owed[key] = ("error", "it failed before and runs again now")
    desk.wake("EURUSD")
    (row,) = desks.rows(desk, "select state from ticks where instance = 'BTCUSD'")
    assert row["state"] == "claimed"


def test_a_close_that_could_not_be_claimed_is_not_passed_over(euro_desk: Desk) -> None:
    euro_desk.wake("EURUSD")
    claim = type(euro_desk.database).claim_tick
    lost = desks.START

    def locked(self: Any, key: TickKey) -> bool:
        if key.bar_time == lost and euro_desk.clock.now() < lost + 2 * H1:
            raise StoreUnavailable("locked")
        return claim(self, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(euro_desk.database), "claim_tick", locked)
        desks.step(euro_desk)
        # another close is done first, as by a desk that had the lock in between
        later = TickKey("EURUSD", "H1", lost + H1)
        desks.clock_of(euro_desk).set(lost + 2 * H1)
        euro_desk.database.skip_tick(later, "test", "")
    euro_desk.wake("EURUSD")
    assert states(euro_desk, "EURUSD", "H1")[iso(lost)] == "done"


class Jumpy(System):
    """A live clock whose wall time a test moves; monotonic time runs on."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def real_time_of(self, moment: datetime) -> datetime:
        return self.real_now() + (moment - self.moment)


def test_a_clock_that_jumps_ahead_writes_no_bar_off(tmp_path: Path) -> None:
    desk = desks.working_desk(tmp_path, (desks.EUR,), make_clock=lambda _: Jumpy(desks.START))
    assert isinstance(desk.clock, Jumpy)
    desk.wake("EURUSD")
    desk.clock.moment += timedelta(days=1)
    assert desk.wake("EURUSD") == []
    desk.clock.moment = desks.START
    desk.wake("EURUSD")
    assert set(states(desk, "EURUSD", "H1").values()) == {"done"}


def test_a_clock_that_stays_ahead_writes_no_bar_off_for_a_while(tmp_path: Path) -> None:
    desk = desks.working_desk(tmp_path, (desks.EUR,), make_clock=lambda _: Jumpy(desks.START))
    assert isinstance(desk.clock, Jumpy)
    desk.wake("EURUSD")
    desk.clock.moment += timedelta(days=1, seconds=30)
    assert desk.wake("EURUSD") == []
    reasons = Counter(outcome.reason for outcome in desk.wake("EURUSD"))
    assert reasons["clock"] > 20
    assert set(reasons) <= {"clock", "late", ""}
    assert "skipped" not in states(desk, "EURUSD", "H1").values()


class Slept(Jumpy):
    """A live clock of a machine that slept: only its monotonic time a test moves as well."""

    passed = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.passed


def test_every_close_of_a_long_sleep_has_a_row_once_the_clock_is_believed(tmp_path: Path) -> None:
    """The newest closes are run at once, and none of the many before them is passed over."""
    desk = desks.working_desk(tmp_path, (desks.EUR,), make_clock=lambda _: Slept(desks.START))
    assert isinstance(desk.clock, Slept)
    desk.wake("EURUSD")
    desk.clock.moment += timedelta(days=2)
    assert desk.wake("EURUSD") == []
    assert "done" in {outcome.state for outcome in desk.wake("EURUSD")}
    desk.clock.passed = SETTLING_SECONDS + 1.0
    desk.clock.moment += timedelta(seconds=SETTLING_SECONDS + 1.0)
    desk.wake("EURUSD")
    told = desks.rows(desk, "select bar_time, state, reason from ticks where timeframe = 'H1'")
    found = [parse(row["bar_time"]) for row in told]
    first = desks.START - H1
    assert sorted(found) == [first + hour * H1 for hour in range(49)]
    assert Counter(row["reason"] for row in told)["missed"] > 40
    assert desk.wake("EURUSD") == []


def test_a_gap_in_the_run_hides_no_record(tmp_path: Path) -> None:
    desk = desks.working_desk(tmp_path)
    desk.wake("BTCUSD")
    desks.clock_of(desk).set(desk.clock.now() + 40 * desks.QUARTER)
    desk.wake("BTCUSD")
    feed = desks.sample().bars("BTCUSD", "M15", desk.clock.now(), None)
    known = desk.database.records("BTCUSD", "M15", as_of=desk.clock.now())
    assert known is not None
    assert (known.high, known.low) == (feed["high"].max(), feed["low"].min())
    assert bar_table.bar_rows(desk.database, "BTCUSD", "M15") == len(feed)


def test_the_hash_of_the_bars_names_their_values() -> None:
    bars = desks.sample().bars("EURUSD", "H1", desks.START, 300)
    again = desks.sample().bars("EURUSD", "H1", desks.START, 300)
    told = tick_record.describe(bars, 1)
    assert told == tick_record.describe(again, 1)
    assert (told["count"], told["revision"]) == (300, 1)
    seconds = bars.set_axis(pd.DatetimeIndex(bars.index).as_unit("s"))
    assert told["hash"] == tick_record.describe(seconds)["hash"], "whatever unit pandas counts in"
    again.loc[again.index[7], again.columns[0]] += 1e-9
    assert tick_record.describe(again)["hash"] != told["hash"]
    assert tick_record.describe(bars.shift(freq="h"))["hash"] != told["hash"]


@pytest.mark.journey
def test_a_stream_without_enough_bars_does_not_stop_the_others(tmp_path: Path) -> None:
    desk = desks.working_desk(tmp_path)
    setup = desk.setups["BTCUSD"]
    upto = desks.START
    frames = {
        "M15": desks.sample().bars("BTCUSD", "M15", upto, 100),
        "H1": desks.sample().bars("BTCUSD", "H1", upto, 400),
    }
    feed = FrameFeed(frames)
    desk.roster.setups = {
        "BTCUSD": InstanceRuntime(
            setup.instance, setup.profile, feed, setup.provider, threading.Lock()
        )
    }
    ran = list(desk.warm_up(upto))
    assert ran and ran[-1][0] == ran[-1][1]
    assert set(states(desk, "BTCUSD", "H1").values()) == {"done"}
    assert states(desk, "BTCUSD", "M15") == {}
    assert HistoryWindow({"M15": frames["M15"].iloc[:0]}).times == {}


def test_the_paper_bridge_lives_through_no_bar_that_the_door_refuses(tmp_path: Path) -> None:
    bars = desks.sample().bars("BTCUSD", "M15", desks.START, 20).copy()
    database = desks.open_database(tmp_path)
    window = LiveWindow(desks.BTC, FrameFeed({"M15": bars}), database)
    before = desks.START - 3 * desks.QUARTER
    assert len(window.path("M15", before, desks.START)) == 2
    bars.iloc[-1, bars.columns.get_loc("low")] = 0.0
    window = LiveWindow(desks.BTC, FrameFeed({"M15": bars}), database)
    lived = window.path("M15", before, desks.START)
    assert [bar.time for bar in lived] == [bars.index[-2].to_pydatetime()]


def test_a_desk_that_is_refused_changes_no_setting(tmp_path: Path) -> None:
    first, _ = wiring.open_desk(tmp_path)
    first.open()
    applied = claim_table.applied_profile(first.database, "BTCUSD")
    profile_file(tmp_path, {"symbols": {"BTCUSD": {"contract_size": 7.0}}})
    second, _ = wiring.open_desk(tmp_path)
    with pytest.raises(ConfigError, match=rf"another desk \(process {os.getpid()}, since"):
        second.open()
    assert claim_table.applied_profile(first.database, "BTCUSD") == applied
    assert second.close() and is_locked(tmp_path)
    assert first.close()


def test_queueing_behind_another_tick_counts_towards_the_deadline(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path, make_clock=lambda _: Later(desks.START))
    assert isinstance(desk.clock, Later)
    before = desks.START - desks.QUARTER
    now = desk.clock.monotonic()
    closed = desks.START - timedelta(seconds=40)
    key = TickKey("BTCUSD", "M15", closed - desks.QUARTER)
    assert desk._due_moment(key, before) < now - 39
    assert desk._due_moment(key, None) >= now
    old = TickKey("BTCUSD", "M15", desks.START - 2 * desks.QUARTER)
    assert desk._due_moment(old, before) >= now


class Later(Simulated):
    """A simulated clock that knows how long ago a moment was."""

    def monotonic(self) -> float:
        return 1000.0


def test_a_late_bar_is_a_record_and_no_trade_once_a_newer_tick_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = desks.START + desks.QUARTER
    missing = {late}
    feed = desks.Holed(missing)
    desk = desks.working_desk(tmp_path, feed=feed)
    desk.wake("BTCUSD")
    desks.step(desk, 3)
    assert states(desk, "BTCUSD", "M15")[iso(late + desks.QUARTER)] == "done"
    missing.clear()
    monkeypatch.setattr(sentiment_rules, "verdict", lambda *_: "BUY")
    monkeypatch.setattr(sentiment_rules, "opening_stands", lambda *_: True)
    for outcome in desk.wake("BTCUSD"):
        assert outcome.record is not None
        assert (outcome.record["action"], outcome.record["reason"]) == ("HOLD", "EXECUTION_OFF")
    assert states(desk, "BTCUSD", "M15")[iso(late)] == "done"
    assert desk.database.signals() == []


def test_after_a_clock_correction_desk_and_timers_go_on(tmp_path: Path, tries: Tries) -> None:
    for attempt in tries():
        active = after_two_corrections(attempt.folder(tmp_path))
        with attempt:
            assert active


def after_two_corrections(folder: Path) -> bool:
    """Set a desk's clock forth and back; return whether it works."""
    clock = Jumpy(desks.START)
    desk = desks.open_desk(folder, (desks.EUR,), make_clock=lambda _: clock)
    desk.open()
    desk.start()
    try:
        time.sleep(0.3)
        clock.moment += timedelta(days=1)
        time.sleep(0.4)
        clock.moment = desks.START + timedelta(seconds=1)
        time.sleep(0.5)
        found = desk.active
        job = desk._timers.job("bars EURUSD")
        assert job is not None
        assert job.next_run_time - System().now() <= H1 + timedelta(seconds=1)
        finished = states(desk, "EURUSD", "H1")
        assert not [at for at, state in finished.items() if state == "skipped"]
    finally:
        assert desk.close()
    return found


def test_a_feed_without_a_file_does_not_keep_the_desk_from_starting(tmp_path: Path) -> None:
    """Its bridge, its positions and its pages are wanted all the same."""

    class Fileless:
        def bars(self, *_: object) -> pd.DataFrame:
            raise DataUnavailable("no_file", "there is no BTCUSD_M15.csv")

        def period(self) -> None:
            return None

    desk = desks.working_desk(tmp_path, feed=Fileless())
    assert list(desk.warm_up(desks.START)) == []
    (outcome, *_) = desk.wake("BTCUSD")
    assert (outcome.state, outcome.reason) in {("late", "late"), ("skipped", "no_file")}
    desk.close()
