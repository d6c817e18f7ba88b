"""The data source of the pages: the protocol DeskView, and DatabaseView, which reads the database.

A view only reads. It returns the values of torra.dashboard.view.desk_values, so a script in a test
can stand in for it. If the database cannot be read, it raises StoreUnavailable, which the pages
turn into one clear page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, Protocol

from torra import clock as clocks
from torra.config import DeskSettings, Instance, Profile, SymbolSpec
from torra.dashboard.view import stream_reading
from torra.dashboard.view.bar_reading import BarReading, price_bars
from torra.dashboard.view.desk_values import (
    ChangeCount,
    ChartBars,
    DeskStatus,
    Overview,
    OverviewSymbol,
    PositionValue,
    PriceBar,
    RunningDebate,
    StateHistory,
    Symbol,
    TradeMark,
)
from torra.dashboard.view.hosted_streams import HostedStreams
from torra.dashboard.view.kept import LruCache
from torra.dashboard.view.stream_reading import Json, StreamReading
from torra.desk.looking_desk import RunningDesk
from torra.desk.models import call_words
from torra.errors import ConfigError
from torra.money.book import known_currencies
from torra.outside.invented import headlines
from torra.providers import call_health
from torra.store import bars as bar_table
from torra.store import hosted as hosted_table
from torra.store import ledger as ledger_table
from torra.store import news as news_table
from torra.store import streams as stream_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.store.hosted import is_hosted
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade import signals as signal_table
from torra.tick.tick_record import Damaged, ThresholdsRecord, TickRecord, load
from torra.verdict import one_sided, sentiment_rules
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import value_at_bid

if TYPE_CHECKING:
    from instance_database import Database

DEBATE_SECONDS: Final = 900
"""Real seconds that a debate may last; an older one without an end was left by a dead desk."""

KEPT_COUNTS: Final = 200
"""Instances whose counted verdicts are kept until their next tick."""

MARKOV_TICKS: Final = 500
"""Newest ticks in which moves between states are counted; the brain counts in as many."""

COST_WINDOW: Final = timedelta(hours=1)


class DeskView(Protocol):
    """The data source of the pages."""

    def desk(self) -> DeskStatus:
        """Return the state of the desk."""
        ...

    def overview(self) -> Overview:
        """Return every instance with its streams; of at most CHARTED with their small charts."""
        ...

    def symbol(self, instance: str, timeframe: str, limit: int) -> Symbol | None:
        """Return one stream with its newest `limit` bars and ticks; None for no such stream."""
        ...

    def bars(self, instance: str, timeframe: str, as_of: str, limit: int) -> ChartBars | None:
        """Return the newest `limit` bars that were closed at a moment (ISO), None for no stream."""
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
        self._counted: LruCache[dict[str, int]] = LruCache(KEPT_COUNTS)

    @property
    def _clock(self) -> clocks.Clock:
        return self._desk.clock  # a start goes on with another clock

    def _profile(self, instance: Instance) -> Profile:
        if is_hosted(instance.id):
            return self._hosted.profile(instance)
        return self._desk.setups[instance.id].profile

    def _instances(self) -> list[Instance]:
        """Return the instances of the desk, and after them those of other scorers."""
        return [*self._settings.instances, *self._hosted.instances()]

    def desk(self) -> DeskStatus:
        """Return the state of the desk."""
        clock = self._clock
        real = clock.real_now()
        states = claim_table.trading_states(self._database, 1)
        # by profile: the instances of one profile share its ceiling
        budgets = {one.profile: self._profile(one).agents for one in self._instances()}
        waiting = Counter(execution_table.waiting(self._database))
        return DeskStatus(
            demo=clock.accelerated,
            rate=clock.rate if clock.accelerated else None,
            now=clocks.iso(clock.now().replace(microsecond=0)),
            real_now=clocks.iso(real.replace(microsecond=0)),
            role=self._role(),
            trading_state=states[0].state if states else "ACTIVE",
            trading_reason=states[0].reason if states else "",
            version=self._version,
            cost_hour=ledger_table.spent_together(
                self._database, list(budgets), real - COST_WINDOW
            ),
            ceiling=sum(agents.max_api_cost_per_hour for agents in budgets.values()),
            waiting_by=waiting,
            alarms=self._database.alarms(limit=5),
            failing=[
                f"{one.name}: {call_words.line(one)}"
                for one in call_health.health(
                    budgets.values(), partial(ledger_table.newest_calls, self._database)
                )
                if one.failing
            ],
            blocks=ledger_table.provider_blocks(self._database),
        )

    def _role(self) -> str:
        if self._desk.active:
            return "ACTIVE"
        return "STOPPED" if self._settings.instances else "HOSTED"

    def overview(self) -> Overview:
        """Return every instance with its streams."""
        every = self._instances()
        tallies = tick_queries.verdict_tallies(self._database, [instance.id for instance in every])
        streams = self._streams.read(every, self._clock, tallies)
        positions = {position.instance: position for position in self._database.positions()}
        currencies = known_currencies(self._database, self._settings.paper_currency)
        charted = len(every) <= stream_reading.CHARTED
        instances = []
        for instance in every:
            own = [streams[instance.id, timeframe] for timeframe in instance.timeframes]
            position = positions.get(instance.id)
            ticks = [stream.tick for stream in own if stream.tick]
            instances.append(
                OverviewSymbol(
                    **self._names(instance, currencies),
                    streams=own,
                    latest=max(ticks, key=lambda tick: str(tick.as_of), default=None),
                    holding=self._holding(instance, position),
                    changes=_changes(
                        tallies, [(instance.id, name) for name in instance.timeframes]
                    ),
                    **(self._chart(instance, position) if charted else {}),
                )
            )
        return Overview(self.desk(), instances, self._debates())

    def _chart(self, instance: Instance, position: Position | None) -> dict[str, Any]:
        """Return the small chart of an instance: its price, bars and trades."""
        now = self._clock.now()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        bars = self._bars(
            instance.id, min(instance.timeframes, key=clocks.duration), stream_reading.HISTORY
        )
        since = bars[0].time if bars else ""
        marks: list[TradeMark] = []
        if position is not None:
            side = "BUY" if position.side == "LONG" else "SELL"
            marks.append(TradeMark(clocks.iso(position.opened_at), side, "open"))
        for row in signal_table.closed_trades(
            self._database, instance.id, limit=stream_reading.HISTORY
        ):
            marks.append(TradeMark(row.opened_at or "", row.side, "open"))
            marks.append(TradeMark(row.closed_at or "", row.side, "close"))
        return {
            "price": bar_table.newest_close(self._database, instance.id, instance.timeframes, now),
            "day_close": bar_table.newest_close(
                self._database, instance.id, instance.timeframes, midnight
            ),
            "bars": bars,
            "marks": [mark for mark in marks if str(mark.at) >= since],
        }

    def symbol(self, instance: str, timeframe: str, limit: int) -> Symbol | None:
        """Return one stream with its bars, ticks and trades."""
        entry = self._find(instance, timeframe)
        if entry is None:
            return None
        key = (entry.id, timeframe)
        tallies = tick_queries.verdict_tallies(self._database, [entry.id])
        stream = self._streams.read([entry], self._clock, tallies)[key]
        ticks = self._streams.listed(key, limit, stream.key, tallies.get(key, (0, 0))[1])
        oldest = str(ticks[-1].bar_time) if ticks else ""
        # A host may have taken its instance back since it was looked up.
        names = [*dict.fromkeys([*(other.id for other in self._instances()), entry.id])]
        place = names.index(entry.id)
        return Symbol(
            desk=self.desk(),
            **self._names(entry, known_currencies(self._database, self._settings.paper_currency)),
            stream=stream,
            latest=stream.tick,
            holding=self._holding(entry, self._database.position(entry.id)),
            changes=_changes(tallies, [key]),
            bars=self._bars(entry.id, timeframe, limit),
            ticks=ticks,
            trades=signal_table.closed_trades(self._database, entry.id, 20),
            skipped=[
                stream_reading.skip_of(row)
                for row in tick_queries.skips_from(self._database, *key, oldest, limit)
            ],
            states=self._states(entry, timeframe),
            sides=self._sides(entry, tallies),
            previous=names[place - 1] if place else None,
            next=next(iter(names[place + 1 :]), None),
        )

    def _sides(
        self, entry: Instance, tallies: Mapping[tuple[str, str], tuple[int, int]]
    ) -> Mapping[str, int]:
        """Return how often the newest ticks of an instance said each verdict."""
        names = list(entry.timeframes)
        # Counted anew where a tick has come, or one was deleted.
        key = (entry.id, *sorted((name, ticks) for (_, name), (_, ticks) in tallies.items()))
        count = partial(tick_queries.verdicts_of, self._database, entry.id, names, one_sided.TICKS)
        return self._counted.get(key, count)

    def bars(self, instance: str, timeframe: str, as_of: str, limit: int) -> ChartBars | None:
        """Return bars up to a moment, with the lines that arguments cite."""
        entry = self._find(instance, timeframe)
        if entry is None:
            return None
        moment = min(clocks.parse(as_of), self._clock.now())
        bars, columns = self._drawn.read(entry.id, timeframe, moment, limit)
        ends = (bars[0].time, bars[-1].time) if bars else ()
        ticks = tick_queries.tick_times(self._database, entry.id, timeframe, *ends) if ends else ()
        return ChartBars(self._digits(entry), bars, columns, ticks)

    def tick(self, instance: str, timeframe: str, bar_time: str) -> Json | None:
        """Return the whole record of one tick."""
        entry = self._find(instance, timeframe)
        if entry is None:
            return None
        moment = clocks.parse(bar_time)
        at = clocks.iso(moment)
        from instance_database import TickKey  # noqa: PLC0415  the pages must not load the database

        stored = self._database.tick(TickKey(entry.id, timeframe, moment))
        row = stored or self._skip_at(entry.id, timeframe, at)
        if row is None:
            return None
        before, after = tick_queries.adjacent_ticks(self._database, entry.id, timeframe, at)
        key = f"{entry.id}|{timeframe}|{at}"
        record = load(key, row)
        return {
            **row,
            **({"damaged": record.reason} if isinstance(record, Damaged) and stored else {}),
            "desk": self.desk().as_json(),
            "digits": self._digits(entry),
            "outcomes": self._outcomes(record),
            "told_outcome": hosted_table.hosted_outcome(self._database, key)
            if is_hosted(entry.id)
            else None,
            "headlines": self._headlines(record),
            "previous": before,
            "next": after,
        }

    def _debates(self) -> list[RunningDebate]:
        since = self._clock.real_now() - timedelta(seconds=DEBATE_SECONDS)
        return [
            RunningDebate(row["stream_id"], *[*str(row["torra_key"]).split("|"), ""][:2])
            for row in stream_table.running_debates(self._database, since)
        ]

    def _states(self, instance: Instance, timeframe: str) -> StateHistory:
        rows = tick_queries.consensus_history(self._database, instance.id, timeframe, MARKOV_TICKS)
        settings = self._profile(instance).markov
        history = [(clocks.parse(row["close_time"]), row["consensus"]) for row in rows]
        return StateHistory(
            sentiment_rules.markov(history, timeframe, settings),
            settings.smoothing,
            [
                (row["close_time"], sentiment_rules.state(row["consensus"], settings.cut_points))
                for row in rows
            ],
        )

    def _names(self, instance: Instance, currencies: Mapping[str, str]) -> dict[str, Any]:
        thresholds = self._profile(instance).thresholds
        return {
            "instance": instance.id,
            "symbol": instance.symbol,
            "feed": instance.feed,
            "digits": self._digits(instance),
            "currency": currencies.get(instance.route, ""),
            "timeframes": instance.timeframes,
            "thresholds": ThresholdsRecord(buy=thresholds.buy, sell=thresholds.sell),
        }

    def _digits(self, instance: Instance) -> int | None:
        spec = self._spec(instance)
        return None if spec is None else int(spec.digits)

    def _spec(self, instance: Instance) -> SymbolSpec | None:
        try:
            return self._profile(instance).symbol(instance.symbol)
        except ConfigError:
            return None

    def _holding(self, instance: Instance, position: Position | None) -> PositionValue | None:
        if position is None:
            return None
        opening = self._database.order(position.signal_id)
        spec, now = self._spec(instance), self._clock.now()
        if opening is None or opening.price is None or spec is None:
            return PositionValue(position)
        price = bar_table.newest_close(self._database, instance.id, instance.timeframes, now)
        return PositionValue(
            position, None if price is None else value_at_bid(position, price, spec)
        )

    def _outcomes(self, record: TickRecord | Damaged) -> Json:
        signals = record.signals if isinstance(record, TickRecord) else ()
        outcomes: dict[str, Any] = {}
        for row in filter(None, (self._database.order(signal.sid) for signal in signals)):
            ended = self._database.order(row.closes) if row.closes else None
            outcomes[row.sid] = {**row.as_json(), "closed": ended and ended.as_json()}
        return outcomes

    def _headlines(self, record: TickRecord | Damaged) -> list[Json]:
        news = record.news if isinstance(record, TickRecord) else None
        ids = [item.id for item in news.items] if news else []
        items = [*headlines(ids)] or news_table.news_items(self._database, ids)
        times = ("published", "first_seen")
        return [
            {**asdict(item), **{name: clocks.iso(getattr(item, name)) for name in times}}
            for item in items
        ]

    def _find(self, name: str, timeframe: str) -> Instance | None:
        return next(
            (
                instance
                for instance in self._instances()
                if instance.id == name and timeframe in instance.timeframes
            ),
            None,
        )

    def _bars(self, instance: str, timeframe: str, limit: int) -> list[PriceBar]:
        now = self._clock.now()
        return price_bars(
            bar_table.newest_bars(self._database, instance, timeframe, as_of=now, limit=limit)
        )

    def _skip_at(self, instance: str, timeframe: str, bar_time: str) -> Json | None:
        row = tick_queries.tick_state(self._database, instance, timeframe, bar_time)
        if row is None or row["state"] != "skipped":
            return None
        return {
            "instance": instance,
            "timeframe": timeframe,
            "bar_time": bar_time,
            "skipped": {"reason": row["reason"], "detail": row["detail"]},
        }


@cache
def version() -> str:
    """Return the installed version of Torra, empty when it runs without being installed."""
    try:
        return metadata.version("torra")
    except metadata.PackageNotFoundError:
        return ""


def _changes(
    tallies: Mapping[tuple[str, str], tuple[int, int]], streams: Iterable[tuple[str, str]]
) -> ChangeCount:
    """Return how many verdicts of some streams the agents changed, and how many there are."""
    rows = [tallies.get(stream, (0, 0)) for stream in streams]
    return ChangeCount(*map(sum, zip(*rows, strict=True)))
