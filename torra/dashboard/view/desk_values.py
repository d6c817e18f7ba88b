"""The values that a DeskView returns: the desk, its symbols with their streams, and one stream.

They are made from the rows of the store and shown as they are. A time is ISO 8601 text with Z, a
price or an amount a number, None where it is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from torra.dashboard.record.shown import ListedTick
from torra.feeds.sample import TRUE_YEARS
from torra.store.hosted import FEED
from torra.store.trade.rows import AlarmRow, ProviderBlock, SignalRow
from torra.tick.tick_record import ThresholdsRecord, TickRecord
from torra.verdict.risk_engine import Position
from torra.verdict.sentiment_rules import MarkovView
from torra.verdict.trade_outcome import CloseValue

SAMPLE: Final = "sample"
"""Feed of the bars that are shipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskStatus:
    """The state of the desk.

    `rate` is how many times faster than real time it lives, None in real time. `role` is ACTIVE,
    STOPPED, or HOSTED where there are the streams of other scorers alone. `cost_hour` and `ceiling`
    are USD, `failing` has a line for each model whose calls fail. `waiting_by` is how many
    proposals wait for a person, by instance.
    """

    now: str = ""
    real_now: str = ""
    demo: bool = False
    rate: float | None = None
    role: str = ""
    trading_state: str = ""
    trading_reason: str = ""
    version: str = ""
    cost_hour: float = 0.0
    ceiling: float = 0.0
    waiting_by: Mapping[str, int] = field(default_factory=dict)
    alarms: Sequence[AlarmRow] = ()
    failing: Sequence[str] = ()
    blocks: Sequence[ProviderBlock] = ()

    @property
    def waiting(self) -> int:
        """How many proposals wait for a person."""
        return sum(self.waiting_by.values())

    @property
    def used(self) -> float:
        """The share of the hour's ceiling that is spent, 1 at most; 0 without a ceiling."""
        return min(1.0, self.cost_hour / self.ceiling) if self.ceiling else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return it as it is answered."""
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "alarms": [row.as_json() for row in self.alarms],
            "blocks": [row.as_json() for row in self.blocks],
            "waiting": self.waiting,
        }


class PositionValue(NamedTuple):
    """What an instance holds, and what closing it now would bring; None while that is not known."""

    position: Position
    now: CloseValue | None = None


class ChangeCount(NamedTuple):
    """How many verdicts the agents changed, of all."""

    changed: int = 0
    every: int = 0


@dataclass(frozen=True, slots=True)
class NoBars:
    """The closes without a bar since the newest tick, when nothing else happened since."""

    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Skip:
    """A skipped close, or a run of them: `count` of one reason, of which `oldest` is the first."""

    bar_time: str
    reason: str
    detail: str = ""
    close_time: str = ""
    count: int = 1
    oldest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus:
    """A stream with its newest tick.

    `history` is the consensus of its newest ticks, oldest first. The next tick comes in
    `next_in_seconds` of real time; `age_seconds` are the desk's, `bar_age_seconds` those since the
    newest bar of a late stream closed. `skipped` is the newest skip since the newest tick.
    `damaged` says what of the newest record cannot be read.
    """

    timeframe: str = ""
    key: str | None = None
    tick: TickRecord | None = None
    history: Sequence[float | None] = ()
    next_in_seconds: float | None = None
    age_seconds: float | None = None
    bar_age_seconds: float | None = None
    stale: bool = False
    quiet: NoBars | None = None
    skipped: Skip | None = None
    damaged: str = ""

    @property
    def composite(self) -> float | None:
        """The composite of its newest tick."""
        return self.tick.composite if self.tick else None


@dataclass(frozen=True, kw_only=True)
class SymbolStatus:
    """An instance with its position; `latest` is the newest of its streams' ticks.

    `digits` are the decimals of its prices, `currency` is that of its account, "" where nobody has
    told it.
    """

    instance: str = ""
    symbol: str = ""
    feed: str = ""
    digits: int | None = None
    currency: str = ""
    timeframes: Sequence[str] = ()
    thresholds: ThresholdsRecord | None = None
    latest: TickRecord | None = None
    holding: PositionValue | None = None
    changes: ChangeCount = field(default_factory=ChangeCount)

    @property
    def hosted(self) -> bool:
        """Whether another program's scorer decides here."""
        return self.feed == FEED

    @property
    def decimals(self) -> int:
        """The decimals of its prices, 5 where they are not known."""
        return 5 if self.digits is None else self.digits

    @property
    def limits(self) -> ThresholdsRecord | None:
        """The thresholds of the newest tick; without one those of the profile of now."""
        return self.latest.thresholds if self.latest else self.thresholds

    @property
    def true_year(self) -> str:
        """The year of the shipped bars, where the demo moves their dates; else ""."""
        return TRUE_YEARS.get(self.symbol, "") if self.feed == SAMPLE else ""

    @property
    def position(self) -> dict[str, Any] | None:
        """Its position and, as `now`, what closing it would bring."""
        holding = self.holding
        return holding and {**asdict(holding.position), "now": holding.now}


class PriceBar(NamedTuple):
    """A bar of a chart."""

    time: str
    open: float | None
    high: float | None
    low: float | None
    close: float | None
    volume: float | None = None


class TradeMark(NamedTuple):
    """A position that was opened or left (`what` is open or close)."""

    at: str
    side: str
    what: str


@dataclass(frozen=True, kw_only=True)
class OverviewSymbol(SymbolStatus):
    """An instance on the overview, with its small chart where there are few of them.

    `price` is its newest close, `day_close` the last one of the UTC day before; `bars` are those of
    its shortest timeframe, oldest first, `marks` the trades in them.
    """

    streams: Sequence[StreamStatus] = ()
    price: float | None = None
    day_close: float | None = None
    bars: Sequence[PriceBar] = ()
    marks: Sequence[TradeMark] = ()

    @property
    def day_change(self) -> float | None:
        """The change of the price since the day before, in per cent."""
        if self.price is None or not self.day_close:
            return None
        return 100 * (self.price / self.day_close - 1.0)


class RunningDebate(NamedTuple):
    """A debate that runs now."""

    stream_id: str
    instance: str
    timeframe: str


class Overview(NamedTuple):
    """The desk with its instances, and the debates that run now, newest first."""

    desk: DeskStatus = DeskStatus()
    instances: Sequence[OverviewSymbol] = ()
    debates: Sequence[RunningDebate] = ()

    @property
    def streams(self) -> list[StreamStatus]:
        """The streams of all instances."""
        return [stream for one in self.instances for stream in one.streams]


class ChartBars(NamedTuple):
    """Bars, oldest first, with the lines over them.

    `columns` has the prices of each line for each bar; `ticks` are the bar times that have a tick.
    """

    digits: int | None = None
    bars: Sequence[PriceBar] = ()
    columns: Mapping[str, Sequence[float | None]] = {}
    ticks: Sequence[str] = ()


class StateHistory(NamedTuple):
    """The states of a stream by their closes, oldest first, and the moves between them."""

    view: MarkovView
    smoothing: float
    history: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Symbol(SymbolStatus):
    """One stream with its bars, ticks, trades and skips, the newest ticks, trades, skips first.

    `sides` is how often the newest ticks of the instance said each verdict; `previous` and `next`
    are the neighbouring instances.
    """

    desk: DeskStatus = DeskStatus()
    stream: StreamStatus
    bars: Sequence[PriceBar] = ()
    ticks: Sequence[ListedTick] = ()
    trades: Sequence[SignalRow] = ()
    skipped: Sequence[Skip] = ()
    states: StateHistory
    sides: Mapping[str, int] = field(default_factory=dict)
    previous: str | None = None
    next: str | None = None
