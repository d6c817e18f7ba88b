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
from torra.config import DeskSettings, Instance, SymbolSpec
from torra.dashboard.stored import Row, mapping, sequence
from torra.errors import ConfigError
from torra.risk_engine import TARGET_R, Position

if TYPE_CHECKING:
    from instance_database import Database, TickKey

HISTORY: Final = 48
"""Ticks in the small consensus line of the overview."""

STALE_AFTER: Final = 1.5
"""A stream is stale when its newest tick closed more than this many bars ago."""

NO_BAR: Final = "no_bar"
"""Reason of a skipped close for which the feed brought no bar (torra.schedule)."""

QUIET_WITHIN: Final = 4
"""The newest close without a bar is at most this many bars old while a desk is awake: it gives a
close up after two bars, looks again at the next, and may be late.
"""

LISTED: Final = 40
"""Newest ticks of a stream that are listed with what their records say."""

OWN: Final = ("thresholds", "gate", "denied", "events", "as_of")
"""What a listed tick is told by, besides its key columns: its own, not what holds today."""

NEIGHBOURS: Final = 5000
"""How many ticks back the links to the previous and next tick look."""

COST_WINDOW: Final = timedelta(hours=1)


class DeskView(Protocol):
    """The data source of the pages."""

    def desk(self) -> Row:
        """Return the state strip.

        demo, rate (how many times faster than real time, None for a desk in real time), now,
        real_now, role (ACTIVE or STANDBY), trading_state, trading_reason, version, cost_hour and
        ceiling (USD), blocks (providers that are not asked for now: provider, reason, until),
        waiting (proposals that wait for a person), alarms (that stand: key, kind, detail, at).
        """
        ...

    def overview(self) -> Row:
        """Return {"desk", "instances": [...]}.

        An instance: instance, symbol, digits, timeframes, thresholds, latest (the record of its
        newest tick, with its timeframe) or None, position or None, changes, streams. A stream:
        timeframe, tick (newest record) or None, history (consensus, oldest first), next_close,
        next_in_seconds (real), age_seconds (desk) or None, stale, skipped (newest skip since the
        newest tick) or None, quiet.

        A position has besides its own fields `profit`, `r_multiple` and `leave`: what closing it at
        the newest close would bring and at which price, None while it is not filled. `changes` is
        {"changed", "all"}: verdicts that the agents changed. `quiet` is {"count", "from", "to"},
        the closes without a bar since the newest tick, when nothing else happened since; else None.
        """
        ...

    def symbol(self, instance: str, timeframe: str, limit: int) -> Row | None:
        """Return one stream, or None when the desk has no such stream.

        {"desk", instance, symbol, digits, timeframe, timeframes, thresholds, latest, position,
        bars (oldest first), ticks (newest first, key columns; the first LISTED with OWN of their
        records), trades, skipped, previous and next (names of the neighbouring instances), changes
        (of the stream), next_in_seconds, age_seconds, stale, quiet}. A trade is a row of its
        signal: entry was planned, price filled.
        """
        ...

    def tick(self, instance: str, timeframe: str, bar_time: str) -> Row | None:
        """Return everything of one tick, or None when there is none.

        The journal record with "deliberation", "calls", "digits", "desk", "previous" and "next"
        (bar times), and "outcomes": by the id of each of its signals that signal's row as it is
        now, a close's with "closed", the row of the opening that it ended; "headlines": its news
        items that are stored, strangers' words. A skipped tick has only its key and "skipped"
        {reason, detail}.
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
        self._own: dict[tuple[str, str], dict[str, Row]] = {}

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
            "rate": self._clock.rate if self._clock.accelerated else None,
            "now": clocks.iso(self._clock.now().replace(microsecond=0)),
            "real_now": clocks.iso(real.replace(microsecond=0)),
            "role": "ACTIVE" if self._desk.active else "STANDBY",
            "trading_state": self._database.trading_state(),
            "trading_reason": states[0]["reason"] if states else "",
            "version": self._version,
            "cost_hour": sum(self._database.spent(name, real - COST_WINDOW) for name in budgets),
            "ceiling": sum(item.agents.max_api_cost_per_hour for item in budgets.values()),
            "waiting": len(self._database.proposals()),
            "alarms": self._database.alarms(limit=5),
            "blocks": [
                row for row in self._database.provider_blocks() if clocks.parse(row["until"]) > real
            ],
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
        ticks = self._listed(found.id, timeframe, limit)
        stream = self._stream(found, timeframe)
        return {
            "desk": self.desk(),
            **self._names(found),
            "timeframe": timeframe,
            "latest": stream["tick"],
            "position": self._position(found),
            "changes": self._changes(found.id, timeframe),
            "bars": self._bars(found.id, timeframe, limit),
            "ticks": ticks,
            "trades": [_plain(row) for row in self._database.closed_trades(found.id, 20)],
            "skipped": self._skips(found.id, timeframe, limit),
            **self._beside(found),
            **{name: stream[name] for name in ("next_in_seconds", "age_seconds", "stale", "quiet")},
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
            "outcomes": self._outcomes(known),
            "headlines": self._headlines(known),
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
            "position": self._position(one),
            "changes": self._changes(one.id),
        }

    def _stream(self, one: Instance, timeframe: str) -> Row:
        record = self._database.latest_tick(one.id, timeframe)
        now = self._clock.now()
        step = clocks.duration(timeframe)
        next_close = clocks.floor(now, timeframe) + step
        wait = self._clock.real_time_of(next_close) - self._clock.real_now()
        age = None if record is None else (now - clocks.parse(record["as_of"])).total_seconds()
        rows = self._database.ticks(one.id, timeframe, HISTORY)
        skips = self._skips_since(one.id, timeframe, record, now)
        quiet = _quiet(skips, now, step)
        old = age is not None and age > STALE_AFTER * step.total_seconds()
        return {
            "timeframe": timeframe,
            "tick": record,
            "history": [row.get("consensus") for row in reversed(rows)],
            "next_close": clocks.iso(next_close),
            "next_in_seconds": wait.total_seconds(),
            "age_seconds": age,
            "stale": old and quiet is None,
            "quiet": quiet,
            "skipped": skips[0] if skips else None,
        }

    def _listed(self, instance: str, timeframe: str, limit: int) -> list[Row]:
        """Return the newest ticks; a record never changes, so each is read once."""
        ticks = self._database.ticks(instance, timeframe, limit)
        before = self._own.get((instance, timeframe), {})
        keys = [str(tick["torra_key"]) for tick in ticks[:LISTED]]
        own = {key: before[key] if key in before else self._own_words(key) for key in keys}
        self._own[instance, timeframe] = own
        return [{**tick, **own.get(str(tick["torra_key"]), {})} for tick in ticks]

    def _own_words(self, torra_key: str) -> Row:
        try:
            record, _ = self._database.journal_row(torra_key)
        except KeyError:
            return {}
        return {name: record[name] for name in OWN if name in record}

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
        spec = self._spec(one)
        return None if spec is None else int(spec.digits)

    def _spec(self, one: Instance) -> SymbolSpec | None:
        try:
            spec: SymbolSpec = self._profiles[one.id].symbol(one.symbol)
        except ConfigError:
            return None
        return spec

    def _position(self, one: Instance) -> Row | None:
        held = self._database.position(one.id)
        if held is None:
            return None
        opening = self._database.signal(held.signal_id) or {}
        filled = opening.get("price") is not None
        gain = _gain(held, self._newest_close(one) if filled else None, self._spec(one))
        return {**_plain(held), **gain}

    def _newest_close(self, one: Instance) -> float | None:
        newest: tuple[str, float] | None = None
        for timeframe in one.timeframes:
            for bar in self._bars(one.id, timeframe, 1):
                end = clocks.iso(clocks.parse(bar["time"]) + clocks.duration(timeframe))
                newest = max(newest or (end, bar["close"]), (end, bar["close"]))
        return newest[1] if newest else None

    def _changes(self, instance: str, timeframe: str | None = None) -> Row:
        changed, every = self._database.verdict_changes(instance, timeframe)
        return {"changed": changed, "all": every}

    def _outcomes(self, record: Row) -> dict[str, Row]:
        listed = sequence(record.get("signals")) or [record.get("signal")]
        found = {}
        for sid in [mapping(signal).get("sid") for signal in listed]:
            row = self._database.signal(str(sid)) if sid else None
            if row:
                ended = self._database.signal(row["closes"]) if row.get("closes") else None
                found[str(sid)] = {**row, "closed": ended}
        return found

    def _headlines(self, record: Row) -> list[Row]:
        items = map(mapping, sequence(mapping(record.get("news")).get("items")))
        ids = [str(item["id"]) for item in items if item.get("id")]
        return [_plain(item) for item in self._database.news_items(ids)]

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

    def _skips_since(
        self, instance: str, timeframe: str, tick: Row | None, now: datetime
    ) -> list[Row]:
        """Return the skips since the newest tick, newest first."""
        if tick is None:
            return self._skips(instance, timeframe, HISTORY)
        since = now - clocks.parse(tick["as_of"])
        closes = max(0, since // clocks.duration(timeframe)) + 1
        skips = self._skips(instance, timeframe, min(NEIGHBOURS, closes))
        return [skip for skip in skips if skip["bar_time"] > tick["bar_time"]]

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


def _gain(held: Position, price: float | None, spec: SymbolSpec | None) -> Row:
    """Return what closing now would bring: a long leaves at the bid, a short pays the spread.

    Money is counted as the brain's memory does (instance_database), R as the books do at the end.
    """
    if price is None or spec is None:
        return {"profit": None, "r_multiple": None, "leave": None}
    leave = price if held.side == "LONG" else price + spec.spread
    gain = leave - held.entry if held.side == "LONG" else held.entry - leave
    risk = abs(held.target - held.stop) / (1 + TARGET_R)
    return {
        "profit": gain / spec.tick_size * spec.tick_value * held.lots,
        "r_multiple": gain / risk if risk else None,
        "leave": leave,
    }


def _quiet(skips: list[Row], now: datetime, step: timedelta) -> Row | None:
    """Return the run of closes without a bar that a stream is in; None when it is in none."""
    if not skips or any(skip.get("reason") != NO_BAR for skip in skips):
        return None
    first, last = (clocks.parse(skips[place]["bar_time"]) + step for place in (-1, 0))
    if now - last > QUIET_WITHIN * step:
        return None  # nobody has looked for a bar for longer than a desk that is awake takes
    return {"count": len(skips), "from": clocks.iso(first), "to": clocks.iso(last)}


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
