"""A tick as its page shows it: the record, and what else the view knows of it by now."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, TypeAdapter

from agent_config import EscalationSettings
from torra.dashboard.lenient import LenientModel, Number, Word, Words
from torra.evidence.scheduled_events import EventView
from torra.tick.tick_record import (
    FeatureRecord,
    GateRecord,
    RecordPart,
    ThresholdsRecord,
    TickRecord,
    Time,
)

WATCH_ONLY: Final = "agents watch only"
"""The badge of agents in shadow: by setting, or until they have earned their influence."""

NOT_COUNTED: Final = f"{WATCH_ONLY}: recorded, not counted"
"""The note beside every figure of theirs."""


class SignalOutcome(RecordPart):
    """The row of a tick's signal as it is now; a close has the opening that it ended."""

    sid: str
    kind: str
    state: str
    price: float | None
    opened_at: Time | None
    detail: str
    close_price: float | None
    closed_at: Time | None
    close_reason: str | None
    profit: float | None
    r_multiple: float | None
    closed: SignalOutcome | None = None


class StoredHeadline(RecordPart):
    """A headline as it is stored: strangers' words."""

    id: str
    first_seen: Time
    source: str
    event: str
    score: float | None
    headline: str
    url: str


class TickLimits(RecordPart):
    """The limits of a tick: its deadline, the ceiling in USD an hour, and those of an opening.

    `escalation` is the rule by which its trader was asked on the chief tier.
    """

    timeout_seconds: float | None = None
    ceiling: float | None = None
    capital: float | None = None
    risk_per_trade_pct: float | None = None
    max_notional_pct: float | None = None
    escalation: EscalationSettings | None = None


class TickView(TickRecord):
    """A record with the decimals of its prices, its outcomes, headlines, limits and neighbours."""

    digits: int | None = None
    outcomes: dict[str, SignalOutcome] = Field(default_factory=dict)
    headlines: tuple[StoredHeadline, ...] = ()
    limits: TickLimits | None = None
    previous: str | None = None
    next: str | None = None


def _strict(part: Callable[[str], object]) -> BeforeValidator:
    """Read JSON as a strict part of a record; what does not fit is the field's default."""
    return BeforeValidator(
        lambda stored: part(json.dumps(stored)) if isinstance(stored, Mapping) else stored
    )


class ListedTick(LenientModel):
    """A tick in a list: its key columns, and of the newest some parts of their records."""

    bar_time: Word = None
    close_time: Word = None
    as_of: Word = None
    price_action: Number = None
    key_levels: Number = None
    momentum: Number = None
    structure: Number = None
    ath: Number = None
    composite: Number = None
    consensus: Number = None
    verdict: Word = None
    l1_composite: Number = None
    l1_consensus: Number = None
    l1_verdict: Word = None
    thresholds: Annotated[ThresholdsRecord | None, _strict(ThresholdsRecord.parse)] = None
    gate: Annotated[GateRecord | None, _strict(GateRecord.parse)] = None
    action: Word = None
    reason: Word = None
    denied: Words = ()
    source_type: Word = None
    flags: Words = ()
    features: tuple[FeatureRecord, ...] = ()
    events: Annotated[EventView | None, _strict(TypeAdapter(EventView).validate_json)] = None


Decision = TickRecord | ListedTick
"""What a tick decided and by which numbers, of a record or of a list."""
