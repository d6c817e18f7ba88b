"""Desks for tests: the shipped sample on a clock that a test moves from close to close."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from instance_database import Database
from tests.worlds import stores
from torra.clock import Simulated, System, duration
from torra.config import ROOT, Instance, Profile, validate
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
from torra.feeds.sample import SampleFeed
from torra.market.longer_bars import aggregate
from torra.providers.prices import PriceList
from torra.providers.registry import open_provider
from torra.tick.spending import SpendingAccount

THREE = Instance(symbol="BTCUSD", timeframes=("M15", "M30", "H1"))
"""Needs the feed `WithHalfHours`."""

BTC = Instance(symbol="BTCUSD", timeframes=("M15", "H1"))
EUR = Instance(symbol="EURUSD", timeframes=("H1",))
START = datetime.fromisoformat("2021-11-10T10:00:00+00:00")


def open_database(folder: Path) -> Database:
    return stores.open_database(folder, now=System().real_now)


def open_desk(
    folder: Path,
    instances: Sequence[Instance] = (BTC,),
    *,
    profile: Profile | None = None,
    provider: Any = None,
    feed: Any = None,
    make_clock: Callable[[datetime | None], Any] | None = None,
    **more: Any,
) -> Desk:
    """Return a desk on the sample whose clock stands still until the test steps it."""
    profile = profile or Profile()
    feed = feed or sample()
    setups = [
        InstanceRuntime(
            item, profile, feed, provider or open_provider(profile.agents), threading.Lock()
        )
        for item in instances
    ]
    return Desk(
        open_database(folder),
        setups,
        make_clock or (lambda stood: Simulated(stood or START)),
        **more,
    )


_SAMPLE: list[SampleFeed] = []


def sample() -> SampleFeed:
    if not _SAMPLE:
        _SAMPLE.append(SampleFeed(ROOT / "sample_data"))
    return _SAMPLE[0]


class Holed:
    """The sample without some bars, for as long as `missing` names them."""

    def __init__(self, missing: set[datetime]) -> None:
        self.missing = missing

    def bars(self, *words: Any) -> Any:
        frame = sample().bars(*words)
        return frame[~frame.index.isin(list(self.missing))]

    def period(self) -> tuple[datetime, datetime]:
        return sample().period()


class WithHalfHours(Holed):
    """The sample, and half hours made of its quarters: a third timeframe that closes with H1."""

    def bars(self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None) -> Any:
        if timeframe != "M30":
            return super().bars(symbol, timeframe, as_of, limit)
        frame = super().bars(symbol, "M15", as_of, 2 * limit + 1 if limit else None)
        return aggregate(frame, "M15", "M30").tail(limit or len(frame))


def open_for_work(desk: Desk) -> None:
    """Let a desk work without the threads of its own: it takes its home's lock."""
    desk._take_up()


def crash(desk: Desk) -> None:
    """Take a desk's lock from it, as the end of its process does; the object lives on."""
    desk.lock.release()


def eager_profile(agents: dict[str, Any], /, **changes: Any) -> Profile:
    """Return a profile that opens often, and large enough for a share of it to be told."""
    values: dict[str, Any] = {
        "thresholds": {"buy": 0.05, "sell": 0.05},
        "risk": {"capital": 1_000_000.0, "max_signals_per_hour": 60},
        **changes,
        "agents": {**agents, **changes.pop("agents", {})},
    }
    return validate(Profile, values, "a test")


def working_desk(folder: Path, *words: Any, **more: Any) -> Desk:
    """Return a desk as `open_desk` does, which works."""
    desk = open_desk(folder, *words, **more)
    open_for_work(desk)
    return desk


def profiles(desk: Any) -> list[tuple[Instance, Profile]]:
    """Return every instance of a desk and its profile."""
    return [(one.instance, one.profile) for one in desk.setups.values()]


def rows(desk: Desk, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Return what a query of the desk's database finds."""
    return list(desk.database.connection().query(sql, values))


def newest(desk: Desk, timeframe: str = "M15", symbol: str = "BTCUSD") -> dict[str, Any]:
    """Return the record of the newest tick."""
    record = desk.database.latest_tick(symbol, timeframe)
    assert record is not None
    return record


def charge(desk: Any, prices: PriceList, now: Callable[[], datetime], user: str = "mine") -> None:
    """Let the calls of a desk be booked for a user at these prices, as those of paid models are."""
    account = SpendingAccount(desk.database, prices, user, lambda _: False, now)
    desk.roster.setups = {
        name: replace(setup, account=account) for name, setup in desk.setups.items()
    }


def clock_of(desk: Any) -> Simulated:
    """Return the clock of a desk, which a test sets by hand."""
    assert isinstance(desk.clock, Simulated)
    return desk.clock


def step(desk: Desk, times: int = 1) -> datetime:
    """Move the clock to the next close of any stream and wake every instance, so many times."""
    clock = clock_of(desk)
    for _ in range(times):
        frames = {name for item in desk.setups.values() for name in item.instance.timeframes}
        clock.set(next_close(clock.now(), sorted(frames)))
        for name in desk.setups:
            desk.wake(name)
    return clock.now()


def closes_of(instance: Instance, after: datetime, upto: datetime) -> list[tuple[str, datetime]]:
    """Return (timeframe, bar_time) of every close in (after, upto]."""
    found = []
    for name in instance.timeframes:
        size = duration(name)
        moment = after
        while (moment := next_close(moment, [name])) <= upto:
            found.append((name, moment - size))
    return found


QUARTER = timedelta(minutes=15)
