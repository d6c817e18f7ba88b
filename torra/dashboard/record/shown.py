"""A tick as its page shows it: the record, and what else the view knows of it by now."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from torra.tick.tick_record import Number, RecordPart, TickRecord, Whole, Word

WATCH_ONLY: Final = "agents watch only"
"""The badge of agents in shadow: by setting, or until they have earned their influence."""

NOT_COUNTED: Final = f"{WATCH_ONLY}: recorded, not counted"
"""The note beside every figure of theirs."""


class Trade(RecordPart):
    """The row of a signal as it is now."""

    sid: Word = None
    kind: Word = None
    state: Word = None
    price: Number = None
    opened_at: Word = None
    detail: Word = None
    close_price: Number = None
    closed_at: Word = None
    close_reason: Word = None
    profit: Number = None
    r_multiple: Number = None


class SignalOutcome(Trade):
    """The row of a tick's signal; a close has the opening that it ended."""

    closed: Trade = Trade()


class StoredHeadline(RecordPart):
    """A headline as it is stored: strangers' words."""

    id: Word = None
    first_seen: Word = None
    source: Word = None
    event: Word = None
    score: Number = None
    headline: Word = None
    url: Word = None


class EscalationTold(RecordPart):
    """By which rule a trader is asked on the chief tier, as the tick's profile had it."""

    when: Word = None
    at: Number = None


class TickLimits(RecordPart):
    """The limits of a tick: its deadline, the ceiling in USD an hour, and those of an opening.

    `escalation` is the rule by which its trader was asked on the chief tier.
    """

    timeout_seconds: Number = None
    ceiling: Number = None
    capital: Number = None
    risk_per_trade_pct: Number = None
    max_notional_pct: Number = None
    escalation: EscalationTold = EscalationTold()


class ShownTick(TickRecord):
    """A record with the decimals of its prices, its outcomes, headlines, limits and neighbours."""

    instance: str = ""
    timeframe: str = ""
    bar_time: str = ""
    digits: Whole = None
    outcomes: dict[str, SignalOutcome] = Field(default_factory=dict)
    headlines: tuple[StoredHeadline, ...] = ()
    limits: TickLimits = TickLimits()
    previous: Word = None
    next: Word = None
