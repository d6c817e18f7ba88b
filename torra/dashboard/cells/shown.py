"""The values that the overview and a symbol's page show, read from what a DeskView returns.

What each field is, DeskView says. A view of another maker may lack any of it.
"""

from __future__ import annotations

from pydantic import Field

from torra.dashboard.lenient import Flag, LenientModel, Number, Numbers, Whole, Word, Words
from torra.dashboard.record.shown import ListedTick
from torra.tick.tick_record import ThresholdsRecord, TickRecord


class ShownAlarm(LenientModel):
    """An alarm that stands."""

    kind: Word = None
    detail: Word = None
    at: Word = None


class ShownBlock(LenientModel):
    """A provider that is not asked for now."""

    provider: Word = None
    reason: Word = None
    until: Word = None


class Strip(LenientModel):
    """The state of the desk."""

    demo: Flag = False
    rate: Number = None
    now: Word = None
    version: Word = None
    role: Word = None
    trading_state: Word = None
    trading_reason: Word = None
    cost_hour: Number = None
    ceiling: Number = None
    waiting: Whole = None
    waiting_by: dict[str, Whole] = Field(default_factory=dict)
    alarms: tuple[ShownAlarm, ...] = ()
    failing: Words = ()
    blocks: tuple[ShownBlock, ...] = ()


class ShownPosition(LenientModel):
    """An open position, and what closing it now would bring."""

    side: Word = None
    state: Word = None
    lots: Number = None
    entry: Number = None
    stop: Number = None
    target: Number = None
    opened_at: Word = None
    profit: Number = None
    r_multiple: Number = None
    leave: Number = None


class ShownTally(LenientModel):
    """How many verdicts the agents changed, of all."""

    changed: Whole = None
    all: Whole = None


class Quiet(LenientModel):
    """The closes without a bar since the newest tick."""

    count: int = 0
    first: Word = Field(default=None, alias="from")
    last: Word = Field(default=None, alias="to")


class Skip(LenientModel):
    """A skipped close, or a run of them: `count` of one reason, of which `oldest` is the first."""

    bar_time: Word = None
    close_time: Word = None
    reason: Word = None
    detail: Word = None
    count: int = 1
    oldest: Word = None


class Timed(LenientModel):
    """A stream's age and its wait."""

    timeframe: str = ""
    next_in_seconds: Number = None
    age_seconds: Number = None
    stale: Flag = False
    quiet: Quiet | None = None
    bar_age_seconds: Number = None


class ShownStream(Timed):
    """A stream of an instance, with its newest tick."""

    tick: TickRecord | None = None
    history: tuple[Number, ...] = ()
    skipped: Skip | None = None


class Named(LenientModel):
    """An instance's names, limits and position."""

    instance: str = ""
    symbol: str = ""
    feed: Word = None
    currency: Word = None
    digits: Whole = None
    timeframes: Words = ()
    thresholds: ThresholdsRecord | None = None
    latest: TickRecord | None = None
    position: ShownPosition | None = None
    changes: ShownTally = ShownTally()


class PriceBar(LenientModel):
    """A bar of a chart."""

    time: Word = None
    open: Number = None
    high: Number = None
    low: Number = None
    close: Number = None
    volume: Number = None


class TradeMark(LenientModel):
    """A position that was opened or left: when, on which side, and which of both."""

    at: Word = None
    side: Word = None
    what: Word = None


class ShownInstance(Named):
    """An instance on the overview, with its small chart where there are few of them."""

    streams: tuple[ShownStream, ...] = ()
    price: Number = None
    day_close: Number = None
    bars: tuple[PriceBar, ...] = ()
    marks: tuple[TradeMark, ...] = ()


class ShownDebate(LenientModel):
    """A debate that runs now."""

    stream_id: Word = None
    instance: Word = None
    timeframe: Word = None


class Overview(LenientModel):
    """The desk and its instances."""

    desk: Strip = Strip()
    instances: tuple[ShownInstance, ...] = ()
    debates: tuple[ShownDebate, ...] = ()


class ClosedTrade(LenientModel):
    """A trade that is over, by the row of its signal: entry was planned, price filled."""

    side: Word = None
    state: Word = None
    lots: Number = None
    entry: Number = None
    price: Number = None
    close_price: Number = None
    opened_at: Word = None
    closed_at: Word = None
    close_reason: Word = None
    profit: Number = None
    r_multiple: Number = None


class Bars(LenientModel):
    """Bars with the lines over them; `ticks` are the bar times that have a tick."""

    digits: Whole = None
    bars: tuple[PriceBar, ...] = ()
    columns: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    ticks: Words = ()


class StateThen(LenientModel):
    """The state of a stream at a close."""

    close_time: Word = None
    state: Word = None


class ShownMarkov(LenientModel):
    """How often each state has followed the present one."""

    state: Word = None
    duration: Whole = None
    counts: tuple[tuple[int, ...], ...] = ()
    next: Numbers = Field(default_factory=dict)
    smoothing: Number = None
    history: tuple[StateThen, ...] = ()


class Symbol(Named, Timed):
    """One stream with its bars, ticks and trades."""

    desk: Strip = Strip()
    bars: tuple[PriceBar, ...] = ()
    columns: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    ticks: tuple[ListedTick, ...] = ()
    trades: tuple[ClosedTrade, ...] = ()
    skipped: tuple[Skip, ...] = ()
    markov: ShownMarkov = ShownMarkov()
    sides: Numbers = {}  # noqa: RUF012 - pydantic copies it
    previous: Word = None
    next: Word = None
