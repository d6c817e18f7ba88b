"""An order as the desk knows it now, from its proposal over its signal to the end of its trade.

Every page of orders reads this one type. What a stage does not have is None: a verdict under
`execution: auto` sends an order without a proposal, and a proposal that nobody approved has no
signal. Terms, price and checks are those of this moment. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from flask import abort

from instance_database import Database
from torra.clock import duration, floor, iso, parse
from torra.config import Instance, Profile, SymbolSpec
from torra.dashboard.trade import orders
from torra.dashboard.view.rendering import backing, state
from torra.errors import ConfigError, DataUnavailable
from torra.exhibits import figures
from torra.exhibits.money import close_headline, close_outlook
from torra.money.open_positions import PAPER
from torra.store.standings import WarmUps
from torra.store.trade import signals as signal_table
from torra.store.trade.rows import ProposalRow, SignalRow, SignalStep
from torra.tick.tick_record import Damaged, TickRecord, load
from torra.verdict.order_levels import Levels
from torra.verdict.signal_states import UNDER_WAY
from torra.verdict.trade_outcome import evolution_of
from torra.words.badge import Badge
from torra.words.deny_reasons import DenyReason
from torra.words.orders import EVOLUTIONS

if TYPE_CHECKING:
    from torra.tick.approval import Preview
    from torra.trading.hand_close import CloseQuote
    from torra.verdict.risk_engine import Position

WAITING: Final = "WAITING"
DIGITS: Final = 5
"""Decimals of a price whose symbol the desk does not know any more."""


class Terms(NamedTuple):
    """What the desk knows of an instance now; `trouble` says why it lacks a part, "" where not."""

    instance: Instance | None = None
    profile: Profile | None = None
    spec: SymbolSpec | None = None
    trouble: str = ""

    @property
    def digits(self) -> int:
        """The decimals of its prices."""
        return DIGITS if self.spec is None else self.spec.digits

    @property
    def currency(self) -> str:
        """The currency of its account; "" where it is not known."""
        return backing().currency(self.instance.route) if self.instance else ""


def terms_of(name: str) -> Terms:
    """Return what the desk knows of an instance; nothing where no desk stands behind the pages."""
    context = state().backing
    instance = profile = None
    try:
        if context is not None:
            instance = context.settings.instance(name)
            profile = orders.profile_of(instance)
            return Terms(instance, profile, profile.symbol(instance.symbol))
    except ConfigError as error:
        return Terms(instance, profile, trouble=str(error))
    return Terms()


@dataclass(frozen=True)
class DeskOrder:
    """An order; `position` is what it made, or what it would close, as long as that is held."""

    proposal: ProposalRow | None = None
    signal: SignalRow | None = None
    position: Position | None = None

    @classmethod
    def of(cls, row: ProposalRow) -> DeskOrder:
        """Return the order of a proposal; past its time it is EXPIRED, booked as such or not."""
        database = backing().database
        row = current(row)
        signal = database.order(row.sid) if row.state == "APPROVED" else None
        closes = row.state == WAITING and row.first.kind == "close"
        return cls(row, signal, _position_of(row.instance, row.first.closes) if closes else None)

    @classmethod
    def find(cls, sid: str) -> DeskOrder:
        """Return the order of an id, from its proposal to its end; 404 without one."""
        database = backing().database
        proposal, signal = database.proposal(sid), database.order(sid)
        if signal is None:
            return cls.of(proposal or abort(404))
        (signal,) = marked(database, [signal])
        return cls(proposal and current(proposal), signal, _position_of(signal.instance, sid))

    @property
    def proposal_row(self) -> ProposalRow:
        """Its proposal, an empty one without any."""
        return self.proposal or ProposalRow()

    @property
    def signal_row(self) -> SignalRow:
        """Its signal, an empty one without any."""
        return self.signal or SignalRow()

    @property
    def closes_position(self) -> bool:
        """Whether it was proposed to close a position."""
        return self.proposal_row.first.kind == "close"

    @property
    def waits(self) -> bool:
        """Whether a person may still decide about it."""
        return self.proposal_row.state == WAITING

    @cached_property
    def terms(self) -> Terms:
        """What the desk knows of its instance now."""
        return terms_of(self.proposal_row.instance or self.signal_row.instance)

    @property
    def currency(self) -> str:
        """The currency of the account that its signal went to."""
        return backing().currency(self.signal_row.bridge or PAPER)

    # --- while it waits ---------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        """The real seconds until its proposal expires."""
        # the browser counts down in real seconds, and the sample's clock runs faster
        clock = backing().desk.clock
        return (
            clock.real_time_of(parse(self.proposal_row.expires)) - clock.real_now()
        ).total_seconds()

    @cached_property
    def foreseen(self) -> tuple[Preview | None, str]:
        """How approving would end now, None for one that does not wait; or why nobody can tell."""
        from torra.trading import by_hand  # noqa: PLC0415  a page alone must not load the desk

        if not self.waits or self.terms.trouble:
            return None, self.terms.trouble
        try:
            return by_hand.preview(orders.reach(), self.proposal_row.sid), ""
        except (ConfigError, DataUnavailable) as error:
            return None, str(error)

    @property
    def levels(self) -> Levels | None:
        """Entry, stop and target of its opening: at the price of now where that is known."""
        preview, _ = self.foreseen
        return preview.levels if preview else self.proposal_row.first.levels

    @property
    def lots(self) -> float:
        """The size that it would send, or close, now; then that of its proposal."""
        preview, _ = self.foreseen
        return (self.closing or preview or self.proposal_row.first).lots

    @property
    def refused(self) -> list[str]:
        """What speaks against an approval now, or what denied it then."""
        preview, trouble = self.foreseen
        if preview is None:
            ended = self.proposal_row.reason if self.proposal_row.state == "DENIED" else ""
            return list(filter(None, (trouble, ended)))
        failed = [rule for rule, outcome in preview.checks.items() if outcome == "failed"]
        return failed or ([] if preview.passes else [preview.reason])

    @property
    def record(self) -> TickRecord | None:
        """The record of the tick that proposed it; None without one that can be read."""
        return self._loaded if isinstance(self._loaded, TickRecord) else None

    @property
    def damage(self) -> str:
        """Why that record cannot be read, where it cannot."""
        if isinstance(self._loaded, Damaged):
            return f"damaged: {self._loaded.reason}"
        return "not in the store any more"

    @cached_property
    def _loaded(self) -> TickRecord | Damaged | None:
        from torra.store.connection import TickKey  # noqa: PLC0415

        row = self.proposal_row
        key = TickKey(row.instance, row.timeframe, parse(row.bar_time))
        stored = backing().database.tick(key)
        return None if stored is None else load(key.text, stored)

    # --- while it works ---------------------------------------------------------------------------

    @property
    def booked_in(self) -> tuple[str, float]:
        """When an order on paper fills, in words, and the real seconds until that is booked.

        It fills at the next bar's open, and is booked as that bar closes. "" where it is filled,
        was refused, or goes to a broker, who says so himself.
        """
        row, instance = self.signal_row, self.terms.instance
        if row.state not in (*UNDER_WAY, WAITING) or not row.decided_at:
            return "", 0.0
        if instance is None or instance.route != PAPER:
            return "", 0.0
        shortest, clock = instance.shortest, backing().desk.clock
        opens = floor(parse(row.decided_at), shortest) + duration(shortest)
        left = (opens + duration(shortest) - clock.now()).total_seconds() / (clock.rate or 1.0)
        bar = f"{shortest} bar of {figures.moment(iso(opens))}"
        return f"On paper it fills at the open of the {bar}, and is booked as that bar closes", left

    # --- while it is open -------------------------------------------------------------------------

    @cached_property
    def quote(self) -> CloseQuote | None:
        """What closing its position would bring now; None without one."""
        from torra.trading import hand_close  # noqa: PLC0415  a page alone must not load the desk

        return hand_close.quote(orders.reach(), self.position) if self.position else None

    @property
    def closing(self) -> Position | None:
        """The position that it would close; None for another order, and once that is gone."""
        return self.position if self.closes_position else None

    @property
    def question(self) -> str:
        """What a person is asked before the position is closed."""
        return f"{close_headline(self.quote)}? {close_outlook(self.quote)}" if self.quote else ""

    @property
    def plan_now(self) -> Badge | None:
        """How its plan fares at the price of now; None where that is not known."""
        end = self.quote.ends.get("now") if self.quote else None
        return EVOLUTIONS[evolution_of(self.signal_row.model_dump(), end.price)] if end else None

    @property
    def age(self) -> float | None:
        """Seconds since its position was opened."""
        position = self.position
        return (backing().now() - position.opened_at).total_seconds() if position else None

    # --- its whole life ---------------------------------------------------------------------------

    @cached_property
    def steps(self) -> list[SignalStep]:
        """The steps of its signal from one state to the next."""
        return signal_table.signal_events(backing().database, self.signal_row.sid)

    @cached_property
    def others(self) -> list[SignalRow]:
        """The orders that belong to it: its closes, and the opening that it ends."""
        return [*self.closes, *([self.opening] if self.opening else [])]

    @cached_property
    def closes(self) -> list[SignalRow]:
        """The closes of its position."""
        rows = backing().database.closes_of(self.signal_row.instance, self.signal_row.sid)
        return list(map(SignalRow.load, rows))

    @cached_property
    def opening(self) -> SignalRow | None:
        """The opening that it ends; None for an opening."""
        return backing().database.order(self.signal_row.closes) if self.signal_row.closes else None


def current(row: ProposalRow) -> ProposalRow:
    """Return a proposal as it stands: past its time it is EXPIRED, booked as such or not."""
    if row.state != WAITING or backing().now() < parse(row.expires):
        return row
    reason = row.reason or DenyReason.SIGNAL_EXPIRED.value
    return row.model_copy(update={"state": "EXPIRED", "reason": reason})


def open_orders() -> list[DeskOrder]:
    """Return the orders whose positions are open or opening."""
    database = backing().database
    return [DeskOrder(None, database.order(item.signal_id), item) for item in database.positions()]


def _position_of(instance: str, opening: str | None) -> Position | None:
    """Return the position that an opening made, as long as that is held."""
    position = backing().database.position(instance)
    return position if position and position.signal_id == opening else None


def marked(database: Database, rows: Iterable[SignalRow]) -> list[SignalRow]:
    """Return signals, each with whether it was decided in warm-up."""
    warmed = WarmUps(database)
    return [row.model_copy(update={"warm_up": warmed.made(*row.bar)}) for row in rows]
