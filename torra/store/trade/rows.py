"""The rows of the tables of trading as values, and the one door at which a stored row is read.

A row that fits its model is that row. One that does not, because a file was damaged or somebody
changed it, is made of what fits, and `damaged` says what does not: a page shows it so, and stops at
no row. Times are ISO 8601 text with Z, as stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple, Self

from annotated_types import Len
from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from torra.clock import parse
from torra.errors import bounded
from torra.verdict.order_levels import Levels, Side
from torra.verdict.risk_engine import Kind

Facts = dict[str, Any]


def json_text(kind: Any) -> AfterValidator:
    """Return the check that a text is JSON of a type; the text stays as it is stored."""
    of = TypeAdapter(kind)

    def check(text: str) -> str:
        of.validate_json(text)
        return text

    return AfterValidator(check)


def _a_time(text: str) -> str:
    parse(text)
    return text


Time = Annotated[str, AfterValidator(_a_time)]
EPOCH: Final = "1970-01-01T00:00:00Z"
"""Stands for a time that cannot be read: whatever waits until then waits no more."""


class Row(BaseModel):
    """A row of a table; a field that cannot be read has its default."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)

    damaged: str = ""
    """What of the row cannot be read, and why; "" for a whole one."""

    @classmethod
    def load(cls, columns: Mapping[str, Any]) -> Self:
        """Return a stored row."""
        try:
            return cls.model_validate(columns)
        except ValidationError as error:
            faults = {str(one["loc"][0]): one["msg"] for one in error.errors()}
        reason = "; ".join(f"{name}: {why}" for name, why in faults.items())
        whole = {name: value for name, value in columns.items() if name not in faults}
        return cls.model_validate({**whole, "damaged": bounded(reason)})

    def as_json(self) -> dict[str, Any]:
        """Return the columns that were read, as they are answered."""
        return self.model_dump(exclude_unset=True)


class SignalRow(Row):
    """A signal from its decision to its end; `closes` is the id of the opening that it ends."""

    seq: int = 0
    sid: str = ""
    instance: str = ""
    symbol: str = ""
    timeframe: str = ""
    bar_time: str = ""
    kind: str = ""
    side: str = ""
    lots: float | None = None
    entry: float | None = None
    stop: float | None = None
    target: float | None = None
    atr: float | None = None
    decided_at: str = ""
    expires: str | None = None
    state: str = ""
    detail: str = ""
    after: str | None = None
    closes: str | None = None
    opened_at: str | None = None
    price: float | None = None
    ticket: str | None = None
    closed_at: str | None = None
    close_price: float | None = None
    profit: float | None = None
    r_multiple: float | None = None
    close_reason: str | None = None
    bridge: str | None = None
    filled_lots: float | None = None
    deal: str | None = None
    misses: int = 0
    missed_at: str | None = None
    outcome: str | None = None
    evolution: str | None = None
    thesis: Annotated[str, json_text(dict[str, float | str | None])] | None = None
    """The plan beside the result once the trade is over, as JSON."""

    authority: str | None = None
    seal: str | None = None
    broker_stop: float | None = None
    note: str = ""
    tags: str = ""
    """What a person wrote to it, and the tags by space; in lists of closed trades alone."""

    warm_up: bool = False
    """Whether it was decided in warm-up, on bars from before the desk's first start."""

    @property
    def bar(self) -> tuple[str, str, str]:
        """Instance, timeframe and time of the bar that decided it."""
        return self.instance, self.timeframe, self.bar_time

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan beside the result, by name; empty before its end."""
        return dict(json.loads(self.thesis)) if self.thesis else {}

    @property
    def filled(self) -> float | None:
        """The lots that were executed; a fill that names no size is of all lots."""
        whole = self.state in ("FILLED", "CLOSED") and self.price is not None
        return self.lots if self.filled_lots is None and whole else self.filled_lots


class SignalStep(Row):
    """A step of a signal from one state to the next."""

    from_state: str | None = None
    to_state: str = ""
    detail: str = ""
    at: str | None = None


class OrderRequest(NamedTuple):
    """Who asks for an order in place of a verdict, and why."""

    agent: str
    why: str


class Draft(BaseModel):
    """An order of a proposal; one that only closes has no levels."""

    kind: Kind
    side: Side
    lots: float
    closes: str | None
    levels: Levels | None = None
    asked_by: OrderRequest | None = None


NO_ORDER: Final = Draft(kind="open", side="BUY", lots=0.0, closes=None)
"""What stands for the orders of a proposal that cannot be read."""

Drafts = Annotated[tuple[Draft, ...], Len(1)]
DRAFTS: Final[TypeAdapter[tuple[Draft, ...]]] = TypeAdapter(Drafts)


class ProposalRow(Row):
    """A proposal with its orders; `reason` is why it ended, "" while it waits."""

    sid: str = ""
    torra_key: str = ""
    instance: str = ""
    symbol: str = ""
    timeframe: str = ""
    bar_time: Time = EPOCH
    verdict: str = ""
    action: str = ""
    drafts: Annotated[str, json_text(Drafts)] = ""
    """Its orders as JSON."""

    price: float = 0.0
    atr: float = 0.0
    multiplier: float = 0.0
    created_at: Time = EPOCH
    expires: Time = EPOCH
    state: str = ""
    reason: str = ""
    decided_at: str | None = None

    @cached_property
    def orders(self) -> tuple[Draft, ...]:
        """Its orders; none where they cannot be read."""
        return DRAFTS.validate_json(self.drafts) if self.drafts else ()

    @property
    def first(self) -> Draft:
        """The opening of a reversal, whose levels count; else the only order."""
        return max(self.orders, key=lambda draft: draft.kind == "open", default=NO_ORDER)

    @property
    def asked_by(self) -> OrderRequest | None:
        """Who asks for it in place of a verdict, None where a verdict does."""
        return next((draft.asked_by for draft in self.orders if draft.asked_by), None)


class BridgeRow(Row):
    """A bridge as it was noted last; `deny` is what keeps it from sending, "" when it may."""

    name: str = ""
    deny: str = ""
    detail: str = ""
    facts: Annotated[str, json_text(Facts)] = "{}"
    """What its last report told of the account, as JSON."""

    at: str = ""
    reconciled_at: str | None = None

    @cached_property
    def account(self) -> Facts:
        """What its last report told of the account; nothing where that cannot be read."""
        return dict(json.loads(self.facts))


class AlarmRow(Row):
    """An alarm; it stands until `ended_at`."""

    key: str = ""
    kind: str = ""
    detail: str = ""
    at: str = ""
    ended_at: str | None = None


class TradingStateRow(Row):
    """A state of trading, and since when; `id` is the number of the change."""

    id: int = 0

    state: str = ""
    reason: str = ""
    at: str = ""


class ProviderBlock(Row):
    """A provider that is not asked for now, in real time."""

    provider: str = ""
    reason: str = ""
    since: str = ""
    until: str = ""


class SignalEvent(SignalRow):
    """A step of a signal with the signal as it is now; `step` is its number."""

    step: int = 0
    to_state: str = ""


class DeskEvent(Row):
    """An event of a debate or of the desk, as it is streamed; `terminal` is 1 for the last one."""

    seq: int = 0
    event: str = ""
    terminal: int = 0
    payload: Annotated[str, json_text(Facts)] = "{}"
    at: str = ""

    @property
    def body(self) -> Facts:
        """What it tells."""
        return dict(json.loads(self.payload))
