"""The rows of signals, proposals, bridges and alarms as values, read once from the store.

Reading is lenient (torra.dashboard.lenient): a column that is missing or of another type reads
as its default. What is answered as JSON stays the row as it is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue, model_validator

from torra.dashboard.lenient import LenientModel, Number, Numbers, Word
from torra.errors import MALFORMED
from torra.verdict.order_levels import Levels


class SignalRow(LenientModel):
    """A signal from its decision to its end; `closes` is the id of the opening that it ends."""

    seq: int = 0
    sid: str = ""
    instance: str = ""
    symbol: str = ""
    timeframe: str = ""
    bar_time: str = ""
    kind: str = ""
    side: str = ""
    lots: Number = None
    entry: Number = None
    stop: Number = None
    target: Number = None
    decided_at: Word = None
    expires: Word = None
    state: str = ""
    detail: str = ""
    closes: Word = None
    bridge: Word = None
    authority: Word = None
    ticket: Word = None
    opened_at: Word = None
    price: Number = None
    filled_lots: Number = None
    closed_at: Word = None
    close_price: Number = None
    profit: Number = None
    r_multiple: Number = None
    close_reason: Word = None
    outcome: Word = None
    evolution: Word = None
    note: str = ""
    tags: str = ""
    """What a person wrote to it, and the tags by space; in lists of closed trades alone."""

    warm_up: bool = False
    """Whether it was decided in warm-up, on bars from before the desk's first start."""
    thesis: Numbers = Field(default_factory=dict)
    """The plan beside the result, once the trade is over; by name."""

    @model_validator(mode="before")
    @classmethod
    def _unpacked(cls, told: object) -> object:
        return unpacked(told, "thesis")

    @property
    def filled(self) -> float | None:
        """The lots that were executed; a fill that names no size is of all lots."""
        whole = self.state in ("FILLED", "CLOSED") and self.price is not None
        return self.lots if self.filled_lots is None and whole else self.filled_lots


class SignalStep(LenientModel):
    """A step of a signal from one state to the next."""

    from_state: Word = None
    to_state: str = ""
    detail: str = ""
    at: Word = None


class AskedBy(LenientModel):
    """Who asks for an order in place of a verdict, and why."""

    agent: str = ""
    why: str = ""


class Draft(LenientModel):
    """An order of a proposal; one that only closes has no levels."""

    kind: str = ""
    lots: float = 0.0
    closes: Word = None
    levels: Levels | None = None
    asked_by: AskedBy | None = None


class ProposalRow(LenientModel):
    """A proposal with its orders; `reason` is why it ended, "" while it waits."""

    sid: str = ""
    instance: str = ""
    symbol: str = ""
    timeframe: str = ""
    bar_time: str = ""
    verdict: str = ""
    action: str = ""
    price: Number = None
    atr: Number = None
    multiplier: Number = None
    created_at: str = ""
    expires: str = ""
    state: str = ""
    reason: str = ""
    decided_at: Word = None
    drafts: tuple[Draft, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _unpacked(cls, told: object) -> object:
        return unpacked(told, "drafts")

    @property
    def first(self) -> Draft:
        """The opening of a reversal, whose levels count; else the only order."""
        return max(self.drafts, key=lambda draft: draft.kind == "open", default=Draft())


class BridgeRow(LenientModel):
    """A bridge as it was noted last; `deny` is what keeps it from sending, "" when it may."""

    name: str = ""
    deny: str = ""
    detail: str = ""
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    at: str = ""
    reconciled_at: Word = None

    @model_validator(mode="before")
    @classmethod
    def _unpacked(cls, told: object) -> object:
        return unpacked(told, "facts")


class AlarmRow(LenientModel):
    """An alarm; it stands until `ended_at`."""

    key: str = ""
    kind: str = ""
    detail: str = ""
    at: Word = None
    ended_at: Word = None


class TradingStateRow(LenientModel):
    """A state of trading, and since when."""

    state: str = ""
    reason: str = ""
    at: Word = None


def unpacked(told: object, name: str) -> object:
    """Return a row with a column of JSON as what it holds; None for text that is no JSON."""
    return {**told, name: json_of(told.get(name))} if isinstance(told, Mapping) else told


def json_of(text: object) -> JsonValue:
    """Return what a column of JSON holds; None for what is no JSON, or too deep to read."""
    try:
        found: JsonValue = json.loads(text)  # type: ignore[arg-type]
    except MALFORMED:
        return None
    return found


def without_bytes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for an answer in JSON: None for a column that holds bytes, which none has."""
    return {name: None if isinstance(value, bytes) else value for name, value in row.items()}
