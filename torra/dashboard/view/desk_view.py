"""The data source of the pages: the protocol DeskView, and DatabaseView, which reads the database.

A view only reads. It returns plain dicts (times as ISO text with Z, numbers as stored, None for
unknown), so a script in a test can stand in for it. If the database cannot be read, it raises
StoreUnavailable, which the pages turn into one clear page. `exhibits.text` and `cells` do the
formatting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Final, Protocol, TypedDict

from pydantic import JsonValue

from torra import clock as clocks
from torra.config import DeskSettings, Instance, Profile, SymbolSpec
from torra.dashboard.view import stream_reading
from torra.dashboard.view.bar_reading import BarReading, Drawn
from torra.dashboard.view.hosted_streams import HostedStreams
from torra.dashboard.view.kept import Kept
from torra.dashboard.view.stream_reading import Json, Stream, StreamReading
from torra.desk.models import call_words
from torra.errors import ConfigError
from torra.money.book import known_currencies
from torra.outside.invented import headlines
from torra.providers import call_health
from torra.store.hosted import is_hosted
from torra.tick.tick_record import Damaged, TickRecord, load
from torra.verdict import one_sided, sentiment_rules
from torra.verdict.position_size import worth
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import gain, leaving, planned_risk

if TYPE_CHECKING:
    from instance_database import Database, TickKey

DEBATE_SECONDS: Final = 900
"""Real seconds that a debate may last; an older one without an end was left by a dead desk."""

LISTED: Final = stream_reading.LISTED

KEPT_COUNTS: Final = 200
"""Instances whose counted verdicts are kept until their next tick."""

MARKOV_TICKS: Final = 500
"""Newest ticks in which moves between states are counted; the brain counts in as many."""

COST_WINDOW: Final = timedelta(hours=1)


class OverviewTold(TypedDict):
    """The desk with its instances and the debates that run now (DeskView.overview)."""

    desk: Json
    instances: list[Stream]
    debates: list[Json]


class DeskView(Protocol):
    """The data source of the pages."""

    def desk(self) -> Json:
        """Return the state strip.

        demo, rate (how many times faster than real time, None for a desk in real time), now,
        real_now, role (ACTIVE, STANDBY, or HOSTED where there are the streams of other scorers
        alone), trading_state, trading_reason, version, cost_hour and
        ceiling (USD), failing (models whose calls fail, a line each), blocks (providers that are
        not asked for now: provider, reason, until),
        waiting (proposals that wait for a person), waiting_by (how many, by instance), alarms
        (that stand: key, kind, detail, at).
        """
        ...

    def overview(self) -> OverviewTold:
        """Return every instance with its streams.

        An instance: instance, symbol, feed, digits, currency (of its account, "" where nobody has
        told it), timeframes, thresholds, latest (the newest of
        its streams' ticks) or None, position or None, changes, streams. A stream: timeframe, tick
        (of the newest record what stream_reading.brief keeps) or None, history (consensus, oldest
        first), next_close, next_in_seconds (real), age_seconds (desk) or None, stale, skipped
        (newest skip since the newest tick) or None, quiet, bar_age_seconds (of a late stream, since
        its newest bar closed). A
        debate that runs now, newest first: stream_id, instance, timeframe, bar_time, at.

        A position has besides its own fields `profit`, `r_multiple` and `leave`: what closing it at
        the newest close would bring and at which price, None while it is not filled. `changes` is
        {"changed", "all"}: verdicts that the agents changed. `quiet` is {"count", "from", "to"},
        the closes without a bar since the newest tick, when nothing else happened since; else None.

        A desk of at most CHARTED instances has of each besides: price (its newest close), day_close
        (the last one of the UTC day before), bars (the newest HISTORY of its shortest timeframe,
        oldest first) and marks, the trades in them: at, side, and what ("open" or "close").
        """
        ...

    def symbol(self, instance: str, timeframe: str, limit: int) -> Stream | None:
        """Return one stream, or None when the desk has no such stream.

        {"desk", instance, symbol, digits, currency, timeframe, timeframes, thresholds, latest,
        position, bars (as `bars` has them, without columns), ticks (newest first, key columns; the
        first LISTED with OWN of their records), trades, skipped, previous and next (names of the
        neighbouring instances), changes (of the stream), next_in_seconds, age_seconds, stale,
        quiet, markov}. `latest` is a tick as the overview has it. A trade is a row of its signal:
        entry was planned, price filled. `markov`: state, duration (ticks), counts (from and to, in
        the order of sentiment_rules.STATES), next (probabilities), smoothing, cut_points, history
        (close_time and state, oldest first).
        """
        ...

    def bars(self, instance: str, timeframe: str, as_of: str, limit: int) -> Json | None:
        """Return the newest `limit` bars that were closed at a moment (ISO), None for no stream.

        {"digits", "bars" (oldest first: time, open, high, low, close, volume), "columns" (prices by
        the names of bar_reading.COLUMNS, for each bar, None where not known), "ticks" (bar times
        within that have a tick)}.
        """
        ...

    def tick(self, instance: str, timeframe: str, bar_time: str) -> Json | None:
        """Return everything of one tick, or None when there is none.

        The journal record with "deliberation", "calls", "digits", "desk", "previous" and "next"
        (bar times), "told_outcome": what another scorer told of its own tick (verdict, r, at) or
        None, and "outcomes": by the id of each of its signals that signal's row as it is
        now, a close's with "closed", the row of the opening that it ended; "headlines": its news
        items that are stored, strangers' words. A skipped tick has only its key and "skipped"
        {reason, detail}.
        """
        ...


class RunningSetup(Protocol):
    """An instance as the desk runs it."""

    @property
    def instance(self) -> Instance:
        """The instance of desk.json."""
        ...

    @property
    def profile(self) -> Profile:
        """The profile that it runs with, which may be changed while it runs."""
        ...


class RunningDesk(Protocol):
    """The parts of the desk in this process that the view reads (torra.desk.schedule.Desk)."""

    @property
    def clock(self) -> clocks.Clock:
        """The desk's clock; a desk that takes over goes on with another one."""
        ...

    @property
    def setups(self) -> Mapping[str, RunningSetup]:
        """The instances by their names."""
        ...

    @property
    def active(self) -> bool:
        """Whether this process holds the lease."""
        ...


class DatabaseView:
    """The view of the process that runs the desk: it reads the desk's database."""

    def __init__(self, database: Database, settings: DeskSettings, desk: RunningDesk) -> None:
        self._database = database
        self._settings = settings
        self._desk = desk
        self._version = version()
        self._streams = StreamReading(database, self._profile)
        self._drawn = BarReading(database)
        self._hosted = HostedStreams(database)
        self._counted: Kept[dict[str, int]] = Kept(KEPT_COUNTS)

    @property
    def _clock(self) -> clocks.Clock:
        return self._desk.clock  # a desk that takes over goes on with another clock

    def _profile(self, one: Instance) -> Profile:
        if is_hosted(one.id):
            return self._hosted.profile(one)
        return self._desk.setups[one.id].profile

    def _instances(self) -> list[Instance]:
        """Return the instances of the desk, and after them those of other scorers."""
        return [*self._settings.instances, *self._hosted.instances()]

    def desk(self) -> Json:
        """Return the state strip."""
        clock = self._clock
        real = clock.real_now()
        states = self._database.trading_states(1)
        # by profile: the instances of one profile share its ceiling
        budgets = {one.profile: self._profile(one).agents for one in self._instances()}
        waiting = Counter(self._database.waiting())
        return {
            "demo": clock.accelerated,
            "rate": clock.rate if clock.accelerated else None,
            "now": clocks.iso(clock.now().replace(microsecond=0)),
            "real_now": clocks.iso(real.replace(microsecond=0)),
            "role": self._role(),
            "trading_state": states[0]["state"] if states else "ACTIVE",
            "trading_reason": states[0]["reason"] if states else "",
            "version": self._version,
            "cost_hour": self._database.spent_together(list(budgets), real - COST_WINDOW),
            "ceiling": sum(agents.max_api_cost_per_hour for agents in budgets.values()),
            "waiting": waiting.total(),
            "waiting_by": dict(waiting),
            "alarms": [*self._database.alarms(limit=5)],
            "failing": [
                f"{one.name}: {call_words.line(one)}"
                for one in call_health.health(budgets.values(), self._database.newest_calls)
                if one.failing
            ],
            "blocks": [
                row for row in self._database.provider_blocks() if clocks.parse(row["until"]) > real
            ],
        }

    def _role(self) -> str:
        if self._desk.active:
            return "ACTIVE"
        return "STANDBY" if self._settings.instances else "HOSTED"

    def overview(self) -> OverviewTold:
        """Return every instance with its streams."""
        every = self._instances()
        names = [one.id for one in every]
        tallies = self._database.verdict_tallies(names)
        read = self._streams.read(every, self._clock, tallies)
        held = {position.instance: position for position in self._database.positions()}
        currencies = known_currencies(self._database, self._settings.paper_currency)
        return {
            "desk": self.desk(),
            "debates": self._debates(),
            "instances": [
                {
                    **self._names(one, currencies),
                    **_of_instance([read[one.id, timeframe] for timeframe in one.timeframes]),
                    "position": self._position(one, held.get(one.id)),
                    "changes": _changes(tallies, [(one.id, name) for name in one.timeframes]),
                    **(
                        self._chart(one, held.get(one.id))
                        if len(every) <= stream_reading.CHARTED
                        else {}
                    ),
                }
                for one in every
            ],
        }

    def _chart(self, one: Instance, held: Position | None) -> Json:
        """Return the small chart of an instance: its price, bars and trades."""
        now = self._clock.now()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        bars = self._bars(one.id, min(one.timeframes, key=clocks.duration), stream_reading.HISTORY)
        since = str(bars[0]["time"]) if bars else ""
        marks: list[Json] = []
        if held is not None:
            side = "BUY" if held.side == "LONG" else "SELL"
            marks.append({"at": clocks.iso(held.opened_at), "side": side, "what": "open"})
        for row in self._database.closed_trades(one.id, limit=stream_reading.HISTORY):
            ends = (("open", row["opened_at"]), ("close", row["closed_at"]))
            marks += [{"at": at, "side": row["side"], "what": what} for what, at in ends]
        return {
            "price": self._database.newest_close(one.id, one.timeframes, now),
            "day_close": self._database.newest_close(one.id, one.timeframes, midnight),
            "bars": [*bars],
            "marks": [mark for mark in marks if str(mark["at"] or "") >= since],
        }

    def symbol(self, instance: str, timeframe: str, limit: int) -> Stream | None:
        """Return one stream with its bars, ticks and trades."""
        found = self._find(instance, timeframe)
        if found is None:
            return None
        key = (found.id, timeframe)
        tallies = self._database.verdict_tallies([found.id])
        stream = self._streams.read([found], self._clock, tallies)[key]
        ticks = self._streams.listed(key, limit, stream["key"], tallies.get(key, (0, 0))[1])
        oldest = str(ticks[-1]["bar_time"]) if ticks else ""
        return {
            "desk": self.desk(),
            **self._names(found, known_currencies(self._database, self._settings.paper_currency)),
            **stream,
            "latest": stream["tick"],
            "position": self._position(found, self._database.position(found.id)),
            "changes": _changes(tallies, [key]),
            "bars": [*self._bars(found.id, timeframe, limit)],
            "ticks": [*ticks],
            "trades": [_plain(row) for row in self._database.closed_trades(found.id, 20)],
            "skipped": [*self._database.skips_from(*key, oldest, limit)],
            "markov": self._markov(found, timeframe),
            "debates": [one for one in self._debates() if one["instance"] == found.id],
            "sides": self._sides(found),
            **self._beside(found),
        }

    def _sides(self, found: Instance) -> Json:
        """Return how often the newest ticks of an instance said each verdict."""
        names = list(found.timeframes)
        tallies = self._database.verdict_tallies([found.id])
        # Counted anew where a tick has come, or one was deleted.
        key = (found.id, *sorted((name, ticks) for (_, name), (_, ticks) in tallies.items()))
        count = partial(self._database.verdicts_of, found.id, names, one_sided.TICKS)
        return {**self._counted.get(key, count)}

    def bars(self, instance: str, timeframe: str, as_of: str, limit: int) -> Json | None:
        """Return bars up to a moment, with the lines that arguments cite."""
        found = self._find(instance, timeframe)
        if found is None:
            return None
        moment = min(clocks.parse(as_of), self._clock.now())
        drawn = self._drawn.read(found.id, timeframe, moment, limit)
        times = [str(bar["time"]) for bar in drawn["bars"]]
        there = self._database.tick_times(found.id, timeframe, times[0], times[-1]) if times else []
        return {"digits": self._digits(found), **_told_bars(drawn), "ticks": [*there]}

    def tick(self, instance: str, timeframe: str, bar_time: str) -> Json | None:
        """Return the whole record of one tick."""
        found = self._find(instance, timeframe)
        if found is None:
            return None
        moment = clocks.parse(bar_time)
        at = clocks.iso(moment)
        stored = self._database.tick(_key(found.id, timeframe, moment))
        known = stored or self._skip_at(found.id, timeframe, at)
        if known is None:
            return None
        before, after = self._database.beside(found.id, timeframe, at)
        record = load(f"{found.id}|{timeframe}|{at}", known)
        return {
            **known,
            **({"damaged": record.reason} if isinstance(record, Damaged) and stored else {}),
            "desk": self.desk(),
            "digits": self._digits(found),
            "outcomes": self._outcomes(record),
            "told_outcome": self._told_outcome(found.id, timeframe, moment),
            "headlines": [*self._headlines(record)],
            "previous": before,
            "next": after,
        }

    def _debates(self) -> list[Json]:
        since = self._clock.real_now() - timedelta(seconds=DEBATE_SECONDS)
        running = []
        for row in self._database.running_debates(since):
            instance, timeframe, bar_time = [*str(row["torra_key"]).split("|"), "", ""][:3]
            told = {"instance": instance, "timeframe": timeframe, "bar_time": bar_time}
            running.append({"stream_id": row["stream_id"], "at": row["at"], **told})
        return running

    def _markov(self, one: Instance, timeframe: str) -> Json:
        rows = self._database.consensus_history(one.id, timeframe, MARKOV_TICKS)
        settings = self._profile(one).markov
        history = [(clocks.parse(row["close_time"]), row["consensus"]) for row in rows]
        view = sentiment_rules.markov(history, timeframe, settings)
        return {
            "state": view.state,
            "duration": view.duration,
            "counts": [list(row) for row in view.counts],
            "next": {str(name): chance for name, chance in view.next_probabilities.items()},
            "smoothing": settings.smoothing,
            "cut_points": list(settings.cut_points),
            "history": [
                {
                    "close_time": row["close_time"],
                    "state": sentiment_rules.state(row["consensus"], settings.cut_points),
                }
                for row in rows
            ],
        }

    def _names(self, one: Instance, currencies: Mapping[str, str]) -> Json:
        thresholds = self._profile(one).thresholds
        return {
            "instance": one.id,
            "symbol": one.symbol,
            "feed": one.feed,
            "digits": self._digits(one),
            "currency": currencies.get(one.route, ""),
            "timeframes": list(one.timeframes),
            "thresholds": {"buy": thresholds.buy, "sell": thresholds.sell},
        }

    def _digits(self, one: Instance) -> int | None:
        spec = self._spec(one)
        return None if spec is None else int(spec.digits)

    def _spec(self, one: Instance) -> SymbolSpec | None:
        try:
            return self._profile(one).symbol(one.symbol)
        except ConfigError:
            return None

    def _position(self, one: Instance, held: Position | None) -> Json | None:
        if held is None:
            return None
        opening = self._database.signal(held.signal_id) or {}
        filled = opening.get("price") is not None
        now = self._clock.now()
        price = self._database.newest_close(one.id, one.timeframes, now) if filled else None
        return {**_plain(asdict(held)), **_gain(held, price, self._spec(one))}

    def _outcomes(self, record: TickRecord | Damaged) -> Json:
        found: dict[str, JsonValue] = {}
        for sid in [row.sid for row in record.signals] if isinstance(record, TickRecord) else []:
            row = self._database.signal(sid)
            if row:
                ended = self._database.signal(row["closes"]) if row.get("closes") else None
                found[sid] = {**row, "closed": ended}
        return found

    def _told_outcome(self, instance: str, timeframe: str, moment: datetime) -> Json | None:
        if not is_hosted(instance):
            return None
        return self._database.hosted_outcome(_key(instance, timeframe, moment).text)

    def _headlines(self, record: TickRecord | Damaged) -> list[Json]:
        news = record.news if isinstance(record, TickRecord) else None
        ids = [item.id for item in news.items] if news else []
        found = [*headlines(ids)] or self._database.news_items(ids)
        return [_plain(asdict(item)) for item in found]

    def _find(self, name: str, timeframe: str) -> Instance | None:
        for one in self._instances():
            if one.id == name and timeframe in one.timeframes:
                return one
        return None

    def _bars(self, instance: str, timeframe: str, limit: int) -> list[Json]:
        now = self._clock.now()
        rows = self._database.newest_bars(instance, timeframe, as_of=now, limit=limit)
        names = ("open", "high", "low", "close", "volume")
        return [{"time": row["bar_time"], **{name: row[name] for name in names}} for row in rows]

    def _skip_at(self, instance: str, timeframe: str, bar_time: str) -> Json | None:
        row = self._database.tick_state(instance, timeframe, bar_time)
        if row is None or row["state"] != "skipped":
            return None
        return {
            "instance": instance,
            "timeframe": timeframe,
            "bar_time": bar_time,
            "skipped": {"reason": row["reason"], "detail": row["detail"]},
        }

    def _beside(self, found: Instance) -> Json:
        names = [one.id for one in self._instances()]
        return neighbours(names, found.id)


@cache
def version() -> str:
    """Return the installed version of Torra, empty when it runs without being installed."""
    try:
        return metadata.version("torra")
    except metadata.PackageNotFoundError:
        return ""


def neighbours(ordered: list[str], wanted: str) -> Json:
    """Return the entries before and after a name, which need not be in the list itself."""
    place = ordered.index(wanted) if wanted in ordered else bisect_left(ordered, wanted)
    after = place + (wanted in ordered)
    return {
        "previous": ordered[place - 1] if place > 0 else None,
        "next": ordered[after] if after < len(ordered) else None,
    }


def _gain(held: Position, price: float | None, spec: SymbolSpec | None) -> Json:
    """Return the result of closing now: a long leaves at the bid, a short pays the spread.

    Money is counted as the brain's memory does (instance_database), R as the books do at the end.
    """
    if price is None or spec is None:
        return {"profit": None, "r_multiple": None, "leave": None}
    leave = leaving(held.side, price, spec.spread)
    won, risk = gain(held.side, held.entry, leave), planned_risk(held.planned_stop, held.target)
    return {
        "profit": worth(won, held.lots, spec),
        "r_multiple": won / risk if risk else None,
        "leave": leave,
    }


def _of_instance(streams: list[Stream]) -> Stream:
    """Return an instance's streams and the newest tick of them all."""
    records = [tick for stream in streams if isinstance(tick := stream["tick"], TickRecord)]
    latest = max(records, key=lambda record: record.as_of, default=None)
    return {"streams": [*streams], "latest": latest}


def _changes(
    tallies: Mapping[tuple[str, str], tuple[int, int]], streams: Iterable[tuple[str, str]]
) -> Json:
    """Return how many verdicts of some streams the agents changed, and how many there are."""
    found = [tallies.get(stream, (0, 0)) for stream in streams]
    return {"changed": sum(one[0] for one in found), "all": sum(one[1] for one in found)}


def _key(instance: str, timeframe: str, moment: datetime) -> TickKey:
    from instance_database import TickKey  # noqa: PLC0415  the pages must not load the database

    return TickKey(instance, timeframe, moment)


def _told_bars(drawn: Drawn) -> Json:
    columns: Json = {name: [*values] for name, values in drawn["columns"].items()}
    return {"bars": [*drawn["bars"]], "columns": columns}


def _plain(row: Mapping[str, JsonValue | datetime]) -> Json:
    """Return a row with ISO times."""
    told = row.items()
    return {name: clocks.iso(item) if isinstance(item, datetime) else item for name, item in told}
