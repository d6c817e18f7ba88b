"""Judges a closed trade: its outcome, and what that says of the thesis behind it.

It works from facts, never from a model's words. An opening as the table of signals keeps it and the
way it ended go in, a frozen record comes out; the same facts always give the same record. Outcome,
R multiple and evolution of the thesis follow document 000, stage 12: a win has realized the thesis,
a loss falsified it, a scratch weakened it.

A number that is not finite raises ValueError, because a broken result must never be remembered as a
small one. Pure; the written review of a trade is left to others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from torra.clock import time_of
from torra.config import SymbolSpec
from torra.verdict.position_size import worth
from torra.verdict.risk_engine import OPENS, TARGET_R, Position, PositionSide

Outcome = Literal["win", "loss", "scratch"]
Evolution = Literal["Strengthened", "Weakened", "Falsified", "Realized", "Unknown"]

SCRATCH_R: Final = 0.1
"""Below a tenth of the planned risk a result is a scratch: spread and slippage of a single fill
move it by as much, so its sign says nothing about the thesis.
"""

HALF_WAY: Final = 0.5
"""Share of the way to target or stop from which an open trade says something of its thesis."""

STRENGTHENED_R: Final = HALF_WAY * TARGET_R
WEAKENED_R: Final = -HALF_WAY
"""Unrealised R from which an open thesis counts as strengthened, and down from which as weakened:
the target lies at +TARGET_R, the stop at -1.
"""

DECIMALS: Final = 8
"""R multiples are rounded to this many decimals, as those of the paper bridge are."""

PERCENT_DECIMALS: Final = 4
HOUR_DECIMALS: Final = 4

REMEMBERED: Final = 3
"""Number of the newest closed trades in the memory context."""
REMEMBERED_DECIMALS: Final = 2
"""Decimals of the numbers in the memory context."""

HOUR: Final = timedelta(hours=1)

VERDICTS: Final[Mapping[Outcome, Evolution]] = {
    "win": "Realized",
    "loss": "Falsified",
    "scratch": "Weakened",
}
"""The end of a thesis by the outcome of its trade (document 000)."""


@dataclass(frozen=True, slots=True)
class TradeOutcome:
    """The end of a trade, compared with its plan.

    Percentages are of the entry, a gain of the trade positive: the plan's stop lies below zero, its
    target above, measured from the decided entry; the result is measured from the fill. `planned_r`
    is what the target would have brought over the planned risk. `slipped_r` is how much of the
    planned risk the fill cost (negative: it was better than decided). `reason` is why it ended:
    STOPPED, TARGET, CLOSED; `profit` is in account currency.
    """

    side: PositionSide
    outcome: Outcome
    evolution: Evolution
    reason: str
    r_multiple: float
    planned_r: float
    slipped_r: float
    planned_stop_pct: float
    planned_target_pct: float
    realized_pct: float
    hours_held: float
    profit: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)


def judge(
    opening: Mapping[str, Any],
    *,
    exit_price: float,
    closed_at: datetime,
    profit: float,
    reason: str,
) -> TradeOutcome:
    """Return the outcome of a trade.

    `opening` is its row in the table signals; without a fill (price, opened_at) the decided entry
    and time stand for it. `exit_price` is the volume-weighted price of its end, `profit` what the
    account made of it, with swap and commission. Raises ValueError for a price or a profit that is
    not a finite number, and for a price that is not positive.
    """
    entry, stop, target = (_price(name, opening[name]) for name in ("entry", "stop", "target"))
    fill = _price("price", entry if opening.get("price") is None else opening["price"])
    left = _price("exit_price", exit_price)
    side = OPENS[opening["side"]]
    r_multiple = r_of(side, fill, left, stop, target)
    money = _finite("profit", profit)
    outcome = outcome_of(r_multiple, money)
    planned = planned_risk(stop, target)
    return TradeOutcome(
        side=side,
        outcome=outcome,
        # Stop and target at one price: there was no plan to measure against.
        evolution=VERDICTS[outcome] if planned else "Unknown",
        reason=reason,
        r_multiple=r_multiple,
        planned_r=_share(gain(side, entry, target), abs(entry - stop)),
        slipped_r=_share(gain(side, entry, fill), planned),
        planned_stop_pct=_percent(gain(side, entry, stop), entry),
        planned_target_pct=_percent(gain(side, entry, target), entry),
        realized_pct=_percent(gain(side, fill, left), fill),
        hours_held=_hours(closed_at, time_of(opening.get("opened_at") or opening["decided_at"])),
        profit=money,
    )


def leaving(side: PositionSide, price: float, spread: float) -> float:
    """Return at which price a position is left at a bid: a long there, a short pays the spread."""
    return price if side == "LONG" else price + spread


def gain(side: PositionSide, entry: float, price: float) -> float:
    """Return what a position has won in price from `entry` to `price`."""
    return price - entry if side == "LONG" else entry - price


def planned_risk(stop: float, target: float) -> float:
    """Return one R in price units: the target lies TARGET_R of them from the entry, the stop one.

    Measured between stop and target, so that a tick of rounding at the entry does not change it.
    """
    return abs(target - stop) / (1 + TARGET_R)


def r_of(side: PositionSide, entry: float, price: float, stop: float, target: float) -> float:
    """Return the gain from `entry` to `price` over the planned risk; 0.0 where none was planned.

    Costs that are not in the price (commission, swap) are not in it either.
    """
    return _share(gain(side, entry, price), planned_risk(stop, target))


class CloseValue(NamedTuple):
    """The end of a position at a price: its profit in the account's currency, and in planned R."""

    price: float
    profit: float
    r: float


def value_at(position: Position, price: float, spec: SymbolSpec) -> CloseValue:
    """Return what a position comes to that is left at a price."""
    won = gain(position.side, position.entry, price)
    r = r_of(position.side, position.entry, price, position.planned_stop, position.target)
    return CloseValue(price, worth(won, position.lots, spec), r)


def value_at_bid(position: Position, bid: float, spec: SymbolSpec) -> CloseValue:
    """Return what a position comes to that is left now: bars are bid prices."""
    return value_at(position, leaving(position.side, bid, spec.spread), spec)


def outcome_of(r_multiple: float, profit: float | None) -> Outcome:
    """Return how a trade ended; raises ValueError for a number that is not finite.

    Inside SCRATCH_R it is a scratch. Outside, the account decides: a trade that won in price and
    lost to commission and swap is a loss. Without a profit, or with none at all, the price decides.
    """
    if abs(_finite("r_multiple", r_multiple)) < SCRATCH_R:
        return "scratch"
    # `or`: a profit of exactly 0 has no sign, so the price decides.
    money = r_multiple if profit is None else _finite("profit", profit) or r_multiple
    return "win" if money > 0 else "loss"


def evolution_of(opening: Mapping[str, Any], price: float | None) -> Evolution:
    """Return how the thesis of an open trade fares at a price at which it could be left now.

    From half the way to the target on it is Strengthened, from half the way to the stop on
    Weakened, between them, before the fill and without a price Unknown. Realized and Falsified are
    only said of an end (`judge`), however far the price has gone.
    """
    if price is None or opening.get("price") is None:
        return "Unknown"
    side, fill = OPENS[opening["side"]], _price("price", opening["price"])
    stop, target = (_price(name, opening[name]) for name in ("stop", "target"))
    if not planned_risk(stop, target):
        return "Unknown"
    now = r_of(side, fill, _price("price", price), stop, target)
    if now >= STRENGTHENED_R:
        return "Strengthened"
    return "Weakened" if now <= WEAKENED_R else "Unknown"


def remembered(trades: Iterable[Mapping[str, Any]], as_of: datetime) -> list[dict[str, Any]]:
    """Return the newest trades that were closed before `as_of`, as the memory context has them.

    `trades` are rows of closed trades, newest first. One that was closed at `as_of` is left out:
    the end of a trade at a bar's open is known when that bar has closed.
    """
    closes = ((trade, time_of(trade["closed_at"])) for trade in trades)
    known = ((trade, closed) for trade, closed in closes if closed < as_of)
    return [_summary(trade, as_of - closed) for trade, closed in islice(known, REMEMBERED)]


def _summary(trade: Mapping[str, Any], ago: timedelta) -> dict[str, Any]:
    r_multiple = _finite("r_multiple", trade["r_multiple"] or 0.0)
    return {
        "side": OPENS[trade["side"]],
        "outcome": trade["outcome"],
        # + 0.0 makes a negative zero a plain one.
        "r_multiple": round(r_multiple, REMEMBERED_DECIMALS) + 0.0,
        "evolution": trade["evolution"],
        "hours_ago": round(ago / HOUR, REMEMBERED_DECIMALS),
    }


def _share(won: float, risk: float) -> float:
    # + 0.0 makes a negative zero a plain one.
    return round(won / risk, DECIMALS) + 0.0 if risk else 0.0


def _percent(gain: float, entry: float) -> float:
    return round(gain / entry * 100, PERCENT_DECIMALS) + 0.0


def _hours(closed: datetime, opened: datetime) -> float:
    """Return hours held; clocks that disagree make no negative ones."""
    return round(max(closed - opened, timedelta(0)) / HOUR, HOUR_DECIMALS)


def _price(name: str, value: Any) -> float:
    price = _finite(name, value)
    if price <= 0:
        raise ValueError(f"{name} must be a positive price, not {value!r}")
    return price


def _finite(name: str, value: Any) -> float:
    if type(value) is float and math.isfinite(value):  # nearly every one
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return float(value)
