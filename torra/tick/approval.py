"""Proposals under `execution: approve`: written in place of signals, ended by a yes, a no or time.

A proposal holds what the desk would have sent. It is no signal and reaches no bridge. `approve` is
one transaction: it takes the proposal by compare-and-set, refuses a price that has drifted,
computes levels and size anew at the price of now, asks every check again, and enqueues the signals
under the ids that the tick gave them. So two clicks, a click and an expiry, or a click and an
automatic close have one winner.

A check that objects ends the proposal as DENIED with its reason. Only a proposal that is not there,
or is decided already, raises ConfigError. `preview` asks the same questions in the same words and
changes nothing: a page shows before the yes what the yes would meet at that moment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import signal_bridge
from instance_database import Database, TickKey
from torra.clock import Clock, duration, parse
from torra.config import Instance, Profile
from torra.errors import ConfigError
from torra.lessons.lesson import Thesis
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import Draft, OrderRequest, ProposalRow
from torra.tick.marks import DEMO_SECONDS
from torra.tick.tick_database import TickDatabase
from torra.verdict import risk_engine
from torra.verdict.risk_engine import (
    Account,
    Action,
    Decision,
    DenyReason,
    Intent,
    Levels,
    SignalDraft,
)
from torra.words.deny_reasons import ENGINE

POSITION_CHANGED: Final = "POSITION_CHANGED"
"""Reason of a denial: what was proposed no longer fits what the instance holds."""

REQUEST_KEY: Final = "asked_by"
"""What names, in the stored orders of a proposal, who asks for it in place of a verdict."""

DRIFT_ATR: Final = 0.5
"""How far the price may have moved since the proposal, ATRs (design, section 8).

That is for a life of one bar; it grows with the square root of the bars, as prices wander.
"""

CHECKED: Final = tuple(reason for reason in DenyReason if ENGINE in reason.issuers)
"""Every check of an opening, in the order in which reasons are listed."""

HALTED: Final = "TRADING_HALTED"
WITHOUT_NUMBERS: Final = (
    HALTED, "TRADING_REDUCING", "GATE_VETO", "GATE_CANNOT_OPEN", "TRADER_DECLINED",
    "DUPLICATE_SIGNAL", "STALE_BAR", "STALE_SCORE", "CLOCK_SKEW", "MARKET_CLOSED", "VENUE_SIDE",
    "BAD_NUMBER",
)  # fmt: skip
"""Checks that are asked whatever the numbers of ticket and account are."""

CheckOutcome = Literal["ok", "failed", "not asked"]


@dataclass(frozen=True, slots=True)
class Decided:
    """How a proposal ended: its state, why, and the signals that were enqueued."""

    sid: str
    state: str
    reason: str
    signals: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalContext:
    """What a proposal is judged by: `now` by the desk's clock, `price` that of now.

    `halted` says why nothing may go out, "" when it may. `figures` is what the broker says of
    account and symbol, by the names of `risk_engine.Account`.
    """

    instance: Instance
    profile: Profile
    now: datetime
    price: float
    halted: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview:
    """How approving would end at this moment: `state` and `reason` are those of Decided.

    `drift` is how far the price has gone since the proposal, ATRs, up positive, None without an
    ATR. `levels` and `lots` are those of the opening at the price of now, None and 0.0 where there
    are none; for a close alone `lots` is what is closed. `checks` maps each reason that can object
    to its outcome.
    """

    state: str
    reason: str
    action: Action
    price: float
    drift: float | None
    levels: Levels | None
    lots: float
    checks: Mapping[str, CheckOutcome]

    @property
    def passes(self) -> bool:
        """Whether approving now would send something."""
        return self.state == "APPROVED"


def expiry(as_of: datetime, timeframe: str, clock: Clock) -> datetime:
    """Return until when a proposal of a close waits: the next close brings a newer verdict."""
    end = as_of + duration(timeframe)
    if not clock.accelerated or clock.rate is None:
        return end
    return max(end, clock.now() + timedelta(seconds=DEMO_SECONDS * clock.rate))


def propose(
    database: TickDatabase,
    action: Action,
    decision: Decision,
    *,
    key: TickKey,
    symbol: str,
    created: datetime,
    expires: datetime,
    request: OrderRequest | None = None,
) -> str:
    """Write what an action would send as a proposal; return its id, that of its first opening.

    `request` is who asks for it, where that is no verdict.
    """
    # A reverse closes and opens: the proposal is named after its opening.
    first = max(action.drafts, key=lambda draft: draft.kind == "open")
    sid = signal_bridge.signal_id(
        key.instance, symbol, key.timeframe, key.bar_time, kind=first.kind, side=first.side
    )
    by = {REQUEST_KEY: request._asdict()} if request else {}
    database.propose(
        {
            "sid": sid,
            "torra_key": key.text,
            "instance": key.instance,
            "symbol": symbol,
            "timeframe": key.timeframe,
            "bar_time": key.bar_time,
            "verdict": decision.verdict,
            "action": action.name,
            "drafts": [asdict(draft) | by for draft in action.drafts],
            "price": decision.price,
            "atr": decision.atr,
            "multiplier": decision.multiplier,
            "created_at": created,
            "expires": expires,
        }
    )
    return sid


def approve(
    database: Database,
    sid: str,
    at: ApprovalContext,
    *,
    life: timedelta,
    typed: float | None = None,
) -> Decided:
    """Send what a proposal holds, if it still may be sent; the signals live for `life` from now.

    `typed` is the size that a person has typed, where one had to.

    A caller that may have to wait for the database takes these values inside a transaction of its
    own, which this function joins: what was true before the wait is no ground to send. Raises
    ConfigError for a proposal that is not there or does not wait any more, and for a typed size
    that is not the one of now; nothing has changed then.
    """
    with database.transaction():
        row = _whole(database, sid)
        state, reason, action = _judge(database, row, at)
        # A runaway halts the desk even though this proposal is denied for it.
        if action.halt is not None and reason == action.halt.value:
            database.halt(f"{action.halt} of {at.instance.id}, by approval")
        if state != "APPROVED":
            return _end(database, sid, state, reason)
        # After the checks: a denial is recorded whatever was typed; a wrong size changes nothing.
        lots = max(action.drafts, key=lambda draft: draft.kind == "open").lots
        if typed is not None and typed != lots:
            raise ConfigError(
                f"the size is {lots:g} lots at the price of now, not {typed:g}: nothing was "
                "sent; look at the proposal again"
            )
        # The compare-and-set comes before the signals, so a second yes finds nothing to take.
        _end(database, sid, "APPROVED", "")
        signals = tuple(
            signal_bridge.write_signal(
                database,
                draft,
                instance=row.instance,
                symbol=row.symbol,
                timeframe=row.timeframe,
                bar_time=parse(row.bar_time),
                # From the yes: counted from the tick's close the signal could be old at once.
                created=at.now,
                expires=at.now + life,
                authority="approval",
                bridge=at.instance.route,
            )
            for draft in action.drafts
        )
        return Decided(sid, "APPROVED", "", signals)


def preview(database: Database, sid: str, at: ApprovalContext) -> Preview:
    """Return how approving would end now, with every check; changes nothing.

    Raises ConfigError as `approve` does.
    """
    row = _whole(database, sid)
    state, reason, action = _judge(database, row, at)
    side, spec = _opens(row), at.profile.symbol(at.instance.symbol)
    prices = side and risk_engine.levels(side, at.price, row.atr, spec)
    levels = prices if isinstance(prices, Levels) else None
    # What would be sent; where a check objects, what it objected to.
    sizes = (draft.lots for draft in action.drafts if draft.kind == "open" or side is None)
    lots = next(sizes, None)
    if lots is None:
        lots = risk_engine.size(levels, spec, at.profile.risk, row.multiplier) if levels else 0.0
    position = database.position(at.instance.id)
    wanted = risk_engine.intent(row.verdict, position, _profile(row, at).on_opposite)
    return Preview(
        state=state,
        reason=reason,
        action=action,
        price=at.price,
        drift=(at.price - row.price) / row.atr if row.atr else None,
        levels=levels,
        lots=lots,
        checks=_checks(row, action, wanted, levels, drifted=_drifted(row, at.price)),
    )


def reject(database: Database, sid: str, reason: str = "") -> Decided:
    """Take a proposal off the table; raises ConfigError as `approve` does."""
    with database.transaction():
        waiting(database, sid)
        return _end(database, sid, "REJECTED", reason)


def _opens(row: ProposalRow) -> str | None:
    """Return the side that a proposal would open; None when it only closes."""
    return next((draft.side for draft in row.orders if draft.kind == "open"), None)


def _judge(database: Database, row: ProposalRow, at: ApprovalContext) -> tuple[str, str, Action]:
    """Return how a proposal would end now, why, and the action that the checks leave."""
    action = _review(database, row, at)
    if at.now >= parse(row.expires):
        return "EXPIRED", DenyReason.SIGNAL_EXPIRED.value, action
    if _drifted(row, at.price):
        return "DENIED", DenyReason.PRICE_COLLAR.value, action
    return *_verdict(row, action), action


def _verdict(row: ProposalRow, action: Action) -> tuple[str, str]:
    """Return how a proposal ends whose checks were asked anew."""
    # Sizes and levels may differ, they are of now; what is closed and opened may not.
    if _meaning(action.drafts) == _meaning(row.orders):
        return "APPROVED", ""
    other = action.name != "HOLD" and not action.denied
    return "DENIED", POSITION_CHANGED if other else action.reason


def _drifted(row: ProposalRow, price: float) -> bool:
    close, end = _life(row)
    bars = max(0.0, (end - close) / duration(row.timeframe))
    return bool(abs(price - row.price) > DRIFT_ATR * row.atr * math.sqrt(bars))


def _life(row: ProposalRow) -> tuple[datetime, datetime]:
    """Return the close that a proposal is of, and when it ends."""
    return parse(row.bar_time) + duration(row.timeframe), parse(row.expires)


def _checks(
    row: ProposalRow,
    action: Action,
    wanted: Intent,
    levels: Levels | None,
    *,
    drifted: bool,
) -> dict[str, CheckOutcome]:
    """Return the outcome of every check; one that had no opening to look at was not asked."""
    legs = [leg.kind for leg in wanted.legs]
    changed = _verdict(row, action) == ("DENIED", POSITION_CHANGED) or not legs
    sound = levels is not None and "BAD_NUMBER" not in action.denied
    outcomes: dict[str, CheckOutcome] = {}
    for reason in CHECKED:
        # A halt stops closes too; every other check looks at openings only.
        halts = reason == HALTED and bool(legs)
        checked = halts or ("open" in legs and (sound or reason in WITHOUT_NUMBERS))
        failed = reason in action.denied
        outcomes[reason.value] = "failed" if failed else "ok" if checked else "not asked"
    if drifted:
        outcomes[DenyReason.PRICE_COLLAR.value] = "failed"
    return {**outcomes, POSITION_CHANGED: "failed" if changed else "ok"}


def waiting(database: Database, sid: str) -> ProposalRow:
    """Return a proposal that waits; raises ConfigError for one that is not there or has ended."""
    row = database.proposal(sid)
    if row is None:
        raise ConfigError(f"there is no proposal {sid}; `torra signals` lists those that wait")
    if row.state != "WAITING":
        why = f" ({row.reason})" if row.reason else ""
        raise ConfigError(f"the proposal {sid} is {row.state} since {row.decided_at}{why}")
    return row


def _whole(database: Database, sid: str) -> ProposalRow:
    """Return a proposal that waits; ConfigError for a damaged one, too."""
    row = waiting(database, sid)
    if row.damaged:
        raise ConfigError(
            f"the proposal {row.sid} cannot be read ({row.damaged}), so nothing was sent; reject it"
        )
    return row


def _end(database: Database, sid: str, state: str, reason: str) -> Decided:
    execution_table.decide_proposal(database, sid, state, reason)
    return Decided(sid, state, reason)


def _review(database: Database, row: ProposalRow, at: ApprovalContext) -> Action:
    """Ask every check anew; what the gate said then still holds, and a veto since then counts."""
    instance, profile = at.instance, _profile(row, at)
    close, end = _life(row)
    position = database.position(instance.id)
    closes = [closed for kind, _, closed in _meaning(row.orders) if kind == "close"]
    if row.asked_by and (position is None or position.signal_id not in closes):
        return Action("HOLD", POSITION_CHANGED)  # nothing is opened in its place, nor asked about
    decision = Decision(
        verdict=row.verdict,
        price=at.price,
        atr=row.atr,
        multiplier=row.multiplier,
        veto=row.verdict in database.latches(instance.id),
        # The gate cannot be asked again without another debate.
        opening_stands=True,
        bar_age=max(0.0, _age(at.now, close, end)),
        score_age=_age(at.now, parse(row.created_at), end),
        duplicate=database.signal(row.sid) is not None,
    )
    figures = dict(at.figures)
    if profile.risk.leverage_caps:
        figures["levered"] = database.levered(instance.id, row.timeframe, instance.route)
    account = Account(
        trading_state="HALTED" if at.halted else database.trading_state(),
        **database.exposure(instance.id, row.timeframe, as_of=at.now),
        **figures,
    )
    spec = profile.symbol(instance.symbol)
    return risk_engine.review(decision, position, account, spec, profile)


def _age(now: datetime, begin: datetime, end: datetime) -> float:
    """Return the part of a life that is over; infinite of one that was none."""
    return (now - begin) / (end - begin) if end > begin else math.inf


def _profile(row: ProposalRow, at: ApprovalContext) -> Profile:
    """Return the settings that a proposal is judged by: a close that was asked for only closes."""
    return at.profile.model_copy(update={"on_opposite": "close"}) if row.asked_by else at.profile


def _meaning(drafts: Iterable[SignalDraft | Draft]) -> list[tuple[str, str, str | None]]:
    """Return what drafts do: kind, side and the position that they are about."""
    return [(draft.kind, draft.side, draft.closes) for draft in drafts]


def as_json(row: ProposalRow, database: Database) -> dict[str, Any]:
    """Return a proposal as plain JSON, with its orders and with its thesis where it has one.

    The orders are None where they cannot be read; the rest is answered all the same.
    """
    document = row.model_dump(exclude={"torra_key", "damaged"})
    document["drafts"] = json.loads(row.drafts) if row.orders else None
    if row.damaged:
        document["damaged"] = row.damaged
    thesis = thesis_of(row, database)
    return {**document, "thesis": thesis.as_dict()} if thesis else document


def thesis_of(row: ProposalRow, database: Database) -> Thesis | None:
    """Return what the trader wrote of a proposal's opening; None where it wrote nothing."""
    where = (row.instance, row.symbol, row.timeframe, parse(row.bar_time))
    sid = signal_bridge.signal_id(*where, kind="open", side=row.verdict)
    situation = database.situation(sid)
    return None if situation is None else situation.thesis
