"""The values that the overview and a symbol's page show, read from what a DeskView returns.

What each field is, DeskView says. A view of another maker may lack any of it.
"""

from __future__ import annotations

from pydantic import Field

from torra.tick.tick_record import (
    Decided,
    Flag,
    Number,
    Numbers,
    Part,
    Thresholds,
    TickRecord,
    Whole,
    Word,
    Words,
)


class Alarm(Part):
    """An alarm that stands."""

    kind: Word = None
    detail: Word = None
    at: Word = None


class Block(Part):
    """A provider that is not asked for now."""

    provider: Word = None
    reason: Word = None
    until: Word = None


class Strip(Part):
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
    alarms: tuple[Alarm, ...] = ()
    blocks: tuple[Block, ...] = ()


class Position(Part):
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


class Tally(Part):
    """How many verdicts the agents changed, of all."""

    changed: Whole = None
    all: Whole = None


class Quiet(Part):
    """The closes without a bar since the newest tick."""

    count: int = 0
    first: Word = Field(default=None, alias="from")
    last: Word = Field(default=None, alias="to")


class Skip(Part):
    """A skipped close, or a run of them: `count` of one reason, of which `oldest` is the first."""

    bar_time: Word = None
    close_time: Word = None
    reason: Word = None
    detail: Word = None
    count: int = 1
    oldest: Word = None


class Timed(Part):
    """A stream's age and its wait."""

    timeframe: str = ""
    next_in_seconds: Number = None
    age_seconds: Number = None
    stale: Flag = False
    quiet: Quiet | None = None
    newest_bar: Word = None


class Stream(Timed):
    """A stream of an instance, with its newest tick."""

    tick: TickRecord | None = None
    history: tuple[Number, ...] = ()
    skipped: Skip | None = None


class Named(Part):
    """An instance's names, limits and position."""

    instance: str = ""
    symbol: str = ""
    feed: Word = None
    digits: Whole = None
    timeframes: Words = ()
    thresholds: Thresholds = Thresholds()
    latest: TickRecord | None = None
    position: Position | None = None
    changes: Tally = Tally()


class Shown(Named):
    """An instance on the overview."""

    streams: tuple[Stream, ...] = ()


class Watched(Part):
    """A debate that runs now."""

    stream_id: Word = None
    instance: Word = None
    timeframe: Word = None


class Overview(Part):
    """The desk and its instances."""

    desk: Strip = Strip()
    instances: tuple[Shown, ...] = ()
    debates: tuple[Watched, ...] = ()


class PriceBar(Part):
    """A bar of a chart."""

    time: Word = None
    open: Number = None
    high: Number = None
    low: Number = None
    close: Number = None


class ListedTick(Decided):
    """A tick in a list: its key columns, and of the newest some parts of their records."""

    close_time: Word = None
    price_action: Number = None
    key_levels: Number = None
    momentum: Number = None
    structure: Number = None


class ClosedTrade(Part):
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


class StateThen(Part):
    """The state of a stream at a close."""

    close_time: Word = None
    state: Word = None


class Markov(Part):
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
    ticks: tuple[ListedTick, ...] = ()
    trades: tuple[ClosedTrade, ...] = ()
    skipped: tuple[Skip, ...] = ()
    markov: Markov = Markov()
    previous: Word = None
    next: Word = None
