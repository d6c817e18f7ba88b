"""A person's yes or no: what `execution: approve` writes instead of signals, and what ends it.

A proposal holds what the desk would have sent; it is no signal and reaches no bridge. Approving is
one transaction: the proposal is taken by compare-and-set, the price may not have drifted, levels
and size are computed anew at the price of now, every check is asked again, and the signals are
enqueued under the ids that the tick gave them. So two clicks, a click and an expiry, or a click and
an automatic close have one winner. A check that objects ends the proposal DENIED with its reason;
only a proposal that is not there, or is decided already, is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import signal_bridge
from instance_database import Database, TickKey
from torra import risk_engine
from torra.clock import duration, iso, parse
from torra.config import Instance, Profile
from torra.errors import ConfigError
from torra.risk_engine import Action, DenyReason, SignalDraft

PROPOSED: Final = "AWAITS_APPROVAL"
"""Reason of a HOLD whose signals wait for a person."""

POSITION_CHANGED: Final = "POSITION_CHANGED"
"""Reason of a denial: what was proposed no longer fits what the instance holds."""

DRIFT_ATR: Final = 0.5
"""How far the price may have moved since the proposal, ATRs (design, section 8)."""


@dataclass(frozen=True, slots=True)
class Decided:
    """How a proposal ended: its state, why, and the signals that were enqueued."""

    sid: str
    state: str
    reason: str
    signals: tuple[Mapping[str, Any], ...] = ()


def propose(
    database: Database,
    action: Action,
    *,
    key: TickKey,
    symbol: str,
    verdict: str,
    price: float,
    atr: float,
    multiplier: float,
    created: datetime,
    expires: datetime,
) -> str:
    """Write what an action would send as a proposal; return its id, that of its first opening."""
    first = max(action.drafts, key=lambda draft: draft.kind == "open")
    sid = signal_bridge.signal_id(
        key.instance, symbol, key.timeframe, key.bar_time, kind=first.kind, side=first.side
    )
    database.propose(
        {
            "sid": sid,
            "torra_key": key.text,
            "instance": key.instance,
            "symbol": symbol,
            "timeframe": key.timeframe,
            "bar_time": key.bar_time,
            "verdict": verdict,
            "action": action.name,
            "drafts": [asdict(draft) for draft in action.drafts],
            "price": price,
            "atr": atr,
            "multiplier": multiplier,
            "created_at": created,
            "expires": expires,
        }
    )
    return sid


def approve(
    database: Database,
    sid: str,
    *,
    instance: Instance,
    profile: Profile,
    now: datetime,
    price: float,
    halted: str,
    life: timedelta,
    figures: Mapping[str, Any] | None = None,
) -> Decided:
    """Send what a proposal holds, if it still may be sent.

    `now` is the desk's clock, `price` the price of now, `halted` why nothing may go out ("" when it
    may), `life` how long the signals live from now, `figures` what the broker says of account and
    symbol, as `risk_engine.review` takes it.
    Raises ConfigError for a proposal that is not there or does not wait any more.
    """
    with database.transaction():
        row = _waiting(database, sid)
        if now >= parse(row["expires"]):
            return _end(database, sid, "EXPIRED", DenyReason.SIGNAL_EXPIRED.value)
        if abs(price - row["price"]) > DRIFT_ATR * row["atr"]:
            return _end(database, sid, "DENIED", DenyReason.PRICE_COLLAR.value)
        action = _review(database, row, instance, profile, now, price, halted, figures or {})
        if action.halt is not None:
            database.halt(f"{action.halt} of {instance.id}, by approval")
        if _meaning(action.drafts) != _meaning_of(row):
            other = action.name != "HOLD" and not action.denied
            return _end(database, sid, "DENIED", POSITION_CHANGED if other else action.reason)
        _end(database, sid, "APPROVED", "")
        signals = tuple(
            signal_bridge.write_signal(
                database,
                draft,
                instance=row["instance"],
                symbol=row["symbol"],
                timeframe=row["timeframe"],
                bar_time=parse(row["bar_time"]),
                created=now,
                expires=now + life,
                bridge=instance.way,
            )
            for draft in action.drafts
        )
        return Decided(sid, "APPROVED", "", signals)


def reject(database: Database, sid: str, reason: str = "") -> Decided:
    """Take a proposal off the table; raises ConfigError as `approve` does."""
    with database.transaction():
        _waiting(database, sid)
        return _end(database, sid, "REJECTED", reason)


def _waiting(database: Database, sid: str) -> dict[str, Any]:
    row = database.proposal(sid)
    if row is None:
        raise ConfigError(f"there is no proposal {sid}; `torra signals` lists those that wait")
    if row["state"] != "WAITING":
        told = f" ({row['reason']})" if row["reason"] else ""
        raise ConfigError(f"the proposal {sid} is {row['state']} since {row['decided_at']}{told}")
    return row


def _end(database: Database, sid: str, state: str, reason: str) -> Decided:
    database.decide_proposal(sid, state, reason)
    return Decided(sid, state, reason)


def _review(
    database: Database,
    row: Mapping[str, Any],
    instance: Instance,
    profile: Profile,
    now: datetime,
    price: float,
    halted: str,
    figures: Mapping[str, Any],
) -> Action:
    """Ask every check anew; what the gate said then still holds, and a veto since then counts."""
    created, expires = parse(row["created_at"]), parse(row["expires"])
    step = duration(row["timeframe"])
    return risk_engine.review(
        verdict=row["verdict"],
        position=database.position(instance.id),
        price=price,
        atr=row["atr"],
        spec=profile.symbol(instance.symbol),
        profile=profile,
        trading_state="HALTED" if halted else database.trading_state(),
        veto=database.latch(instance.id, row["verdict"]),
        opening_stands=True,
        multiplier=row["multiplier"],
        bar_age=max(0.0, (now - parse(row["bar_time"]) - step) / step),
        score_age=(now - created) / (expires - created),
        duplicate=database.signal(row["sid"]) is not None,
        **database.exposure(instance.id, row["timeframe"], as_of=now),
        **figures,
    )


def _meaning(drafts: Sequence[SignalDraft]) -> list[tuple[str, str, str | None]]:
    """Return what drafts do: kind, side and the position that they are about."""
    return [(draft.kind, draft.side, draft.closes) for draft in drafts]


def _meaning_of(row: Mapping[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(draft["kind"], draft["side"], draft["closes"]) for draft in json.loads(row["drafts"])]


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proposal as plain JSON for the commands."""
    names = ("sid", "instance", "timeframe", "verdict", "action", "price", "expires", "state")
    return {name: row[name] for name in names} | {"created_at": iso(parse(row["created_at"]))}
