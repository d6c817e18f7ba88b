"""What the pages may ask the desk: a protocol, and the view of it that reads the database.

A view only reads. It returns plain dicts (times as ISO text with Z, numbers as they are stored,
None for what is not known), so that a page can be shown from a script in a test just as well. What
the database cannot answer raises StoreUnavailable, which the pages turn into one clear page.
Formatting is left to `figures` and `screens`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, Protocol

import pandas as pd

from torra import clock as clocks
from torra.config import DeskSettings, Instance
from torra.dashboard.stored import Row
from torra.errors import ConfigError

if TYPE_CHECKING:
    from instance_database import Database, TickKey

HISTORY: Final = 48
"""Ticks in the small consensus line of the overview."""

STALE_AFTER: Final = 1.5
"""A stream is stale when its newest tick closed more than this many bars ago."""

NEIGHBOURS: Final = 5000
"""How many ticks back the links to the previous and next tick look."""

COST_WINDOW: Final = timedelta(hours=1)


class DeskView(Protocol):
    """The data source of the pages."""

    def desk(self) -> Row:
        """Return the state strip.

        demo, now, real_now, role (ACTIVE or STANDBY), trading_state, trading_reason, version,
        cost_hour and ceiling (USD).
        """
        ...

    def overview(self) -> Row:
        """Return {"desk", "instances": [...]}.

        An instance: instance, symbol, digits, timeframes, thresholds, latest (the record of its
        newest tick, with its timeframe) or None, position or None, streams. A stream: timeframe,
        tick (newest record) or None, history (consensus, oldest first), next_close,
        next_in_seconds (real), age_seconds (desk) or None, stale, skipped (newest skip) or None.
        """
        ...

    def symbol(self, instance: str, timeframe: str, limit: int) -> Row | None:
        """Return one stream, or None when the desk has no such stream.

        {"desk", instance, symbol, digits, timeframe, timeframes, thresholds, latest, position,
        bars (oldest first), ticks (newest first, key columns), trades, skipped, previous and next
        (names of the neighbouring instances), next_in_seconds, age_seconds, stale}.
        """
        ...

    def tick(self, instance: str, timeframe: str, bar_time: str) -> Row | None:
        """Return everything of one tick, or None when there is none.

        The journal record with "deliberation", "calls", "digits", "desk", "previous" and "next"
        (bar times). A skipped tick has only its key and "skipped" {reason, detail}.
        """
        ...


class RunningDesk(Protocol):
    """What the view asks of the desk that runs in this process (torra.schedule.Desk)."""

    clock: clocks.Clock
    stations: Mapping[str, Any]
    """By instance, each with its profile."""

    @property
    def active(self) -> bool:
        """Whether this process holds the lease."""
        ...


class DatabaseView:
    """The desk as its database tells it, to the pages of the process that runs it."""

    def __init__(self, database: Database, settings: DeskSettings, desk: RunningDesk) -> None:
        self._database = database
        self._settings = settings
        self._desk = desk
        self._profiles = {name: station.profile for name, station in desk.stations.items()}
        self._version = version()

    @property
    def _clock(self) -> clocks.Clock:
        return self._desk.clock  # a desk that takes over goes on with another clock

    def desk(self) -> Row:
        """Return the state strip."""
        real = self._clock.real_now()
        states = self._database.trading_states(1)
        budgets = {i.profile: self._profiles[i.id] for i in self._settings.instances}
        return {
            "demo": self._clock.accelerated,
            "now": clocks.iso(self._clock.now().replace(microsecond=0)),
            "real_now": clocks.iso(real.replace(microsecond=0)),
            "role": "ACTIVE" if self._desk.active else "STANDBY",
            "trading_state": self._database.trading_state(),
            "trading_reason": states[0]["reason"] if states else "",
            "version": self._version,
            "cost_hour": self._database.cost_since(real - COST_WINDOW),
            "ceiling": sum(item.agents.max_api_cost_per_hour for item in budgets.values()),
        }

    def overview(self) -> Row:
        """Return every instance with its streams."""
        return {
            "desk": self.desk(),
            "instances": [self._instance(one) for one in self._settings.instances],
        }

    def symbol(self, instance: str, timeframe: str, limit: int) -> Row | None:
        """Return one stream with its bars, ticks and trades."""
        found = self._find(instance, timeframe)
        if found is None:
            return None
        ticks = self._database.ticks(found.id, timeframe, limit)
        stream = self._stream(found, timeframe)
        return {
            "desk": self.desk(),
            **self._names(found),
            "timeframe": timeframe,
            "latest": stream["tick"],
            "position": _plain(self._database.position(found.id)),
            "bars": self._bars(found.id, timeframe, limit),
            "ticks": ticks,
            "trades": [_plain(row) for row in self._database.closed_trades(found.id, 20)],
            "skipped": self._skips(found.id, timeframe, limit),
            **self._beside(found),
            **{name: stream[name] for name in ("next_in_seconds", "age_seconds", "stale")},
        }

    def tick(self, instance: str, timeframe: str, bar_time: str) -> Row | None:
        """Return the whole record of one tick."""
        found = self._find(instance, timeframe)
        if found is None:
            return None
        moment = clocks.parse(bar_time)
        record = self._database.tick(_key(found.id, timeframe, moment))
        known = record or self._skip_at(found.id, timeframe, moment)
        if known is None:
            return None
        return {
            **known,
            "desk": self.desk(),
            "digits": self._digits(found),
            **self._neighbours(found.id, timeframe, clocks.iso(moment)),
        }

    def _instance(self, one: Instance) -> Row:
        streams = [self._stream(one, timeframe) for timeframe in one.timeframes]
        records = [stream["tick"] for stream in streams if stream["tick"]]
        latest = max(records, key=lambda record: record["as_of"], default=None)
        return {
            **self._names(one),
            "streams": streams,
            "latest": latest,
            "position": _plain(self._database.position(one.id)),
        }

    def _stream(self, one: Instance, timeframe: str) -> Row:
        record = self._database.latest_tick(one.id, timeframe)
        now = self._clock.now()
        step = clocks.duration(timeframe)
        next_close = clocks.floor(now, timeframe) + step
        wait = self._clock.real_time_of(next_close) - self._clock.real_now()
        age = None if record is None else (now - clocks.parse(record["as_of"])).total_seconds()
        rows = self._database.ticks(one.id, timeframe, HISTORY)
        skips = self._skips(one.id, timeframe, 1)
        return {
            "timeframe": timeframe,
            "tick": record,
            "history": [row.get("consensus") for row in reversed(rows)],
            "next_close": clocks.iso(next_close),
            "next_in_seconds": wait.total_seconds(),
            "age_seconds": age,
            "stale": age is not None and age > STALE_AFTER * step.total_seconds(),
            "skipped": skips[0] if skips else None,
        }

    def _names(self, one: Instance) -> Row:
        thresholds = self._profiles[one.id].thresholds
        return {
            "instance": one.id,
            "symbol": one.symbol,
            "digits": self._digits(one),
            "timeframes": list(one.timeframes),
            "thresholds": {"buy": thresholds.buy, "sell": thresholds.sell},
        }

    def _digits(self, one: Instance) -> int | None:
        try:
            return int(self._profiles[one.id].symbol(one.symbol).digits)
        except ConfigError:
            return None

    def _find(self, name: str, timeframe: str) -> Instance | None:
        for one in self._settings.instances:
            if one.id == name and timeframe in one.timeframes:
                return one
        return None

    def _bars(self, instance: str, timeframe: str, limit: int) -> list[Row]:
        frame = self._database.load_bars(instance, timeframe, as_of=self._clock.now(), limit=limit)
        columns = ["open", "high", "low", "close", "volume"]
        return [
            {"time": clocks.iso(moment), **dict(zip(columns, values, strict=True))}
            for moment, values in zip(
                pd.DatetimeIndex(frame.index).to_pydatetime(),
                frame[columns].to_numpy().tolist(),
                strict=True,
            )
        ]

    def _skips(self, instance: str, timeframe: str, limit: int) -> list[Row]:
        states = self._database.tick_states(instance, timeframe, limit)
        return [dict(row) for row in states if row.get("state") == "skipped"]

    def _skip_at(self, instance: str, timeframe: str, moment: datetime) -> Row | None:
        wanted = clocks.iso(moment)
        for row in self._skips(instance, timeframe, NEIGHBOURS):
            if row["bar_time"] == wanted:
                return {
                    "instance": instance,
                    "timeframe": timeframe,
                    "bar_time": wanted,
                    "skipped": {"reason": row.get("reason"), "detail": row.get("detail")},
                }
        return None

    def _beside(self, found: Instance) -> Row:
        names = [one.id for one in self._settings.instances]
        return neighbours(names, found.id)

    def _neighbours(self, instance: str, timeframe: str, bar_time: str) -> Row:
        states = self._database.tick_states(instance, timeframe, NEIGHBOURS)
        times = [row["bar_time"] for row in states if row["state"] != "claimed"]
        return neighbours(sorted(times), bar_time)


@cache
def version() -> str:
    """Return the installed version of Torra, empty when it runs without being installed."""
    try:
        return metadata.version("torra")
    except metadata.PackageNotFoundError:
        return ""


def neighbours(ordered: list[str], wanted: str) -> Row:
    """Return the entries before and after one that need not be there itself."""
    place = ordered.index(wanted) if wanted in ordered else bisect_left(ordered, wanted)
    after = place + (wanted in ordered)
    return {
        "previous": ordered[place - 1] if place > 0 else None,
        "next": ordered[after] if after < len(ordered) else None,
    }


def _key(instance: str, timeframe: str, moment: datetime) -> TickKey:
    from instance_database import TickKey  # noqa: PLC0415  the pages must not load the database

    return TickKey(instance, timeframe, moment)


def _plain(value: Any) -> Any:
    """Return a record as a dict with ISO times."""
    if value is None:
        return None
    pairs: Iterable[tuple[str, Any]]
    if is_dataclass(value) and not isinstance(value, type):
        pairs = asdict(value).items()
    elif isinstance(value, Mapping):
        pairs = value.items()
    else:
        raise TypeError(f"no record: {type(value).__name__}")
    return {name: clocks.iso(item) if isinstance(item, datetime) else item for name, item in pairs}
