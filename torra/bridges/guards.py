"""The last checks before an order goes to the market: one table of guards, asked in one order.

The paper bridge, `mt5_direct` and plug-ins (guarded) ask this table. The Expert Advisor
(mql5/TorraBridge.mq5) asks the same questions in the same order in its own language. The first
guard that objects gives the reason of the refusal; an order that passes all of them is executed.

Everything here is pure: account, symbol and quote come in as values. Distances are counted in
points, 10 ** -digits, and rounded half up, so that both languages count alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from torra.advisor_protocol import PROTOCOL
from torra.bridges.protocol import Order, SymbolTerms

CLOCK_TOLERANCE: Final = 5
"""Seconds by which a signal may come from the future."""

DECISION: Final = "decision"
"""Reason of an order whose seal does not fit (torra.verdict.order_seal): the desk halts for it."""

KINDS: Final = ("open", "modify", "close", "close_all", "ping")

Scope = Literal["all", "trade", "open"]
"""Which kinds a guard looks at: all, all but ping, or openings only."""


@dataclass(frozen=True, slots=True)
class GuardRequest:
    """An order as the guards see it; times are epoch seconds, 0 means that there is none."""

    kind: str
    side: str
    lots: float
    entry: float = 0.0
    stop: float = 0.0
    target: float = 0.0
    created: int = 0
    expires: int = 0
    max_spread_pts: int = 0
    max_dev_pts: int = 0
    authentic: bool = True
    as_decided: bool = True
    version: int = PROTOCOL
    whole: bool = True
    channel: str = ""
    account: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What the executing side knows at the moment of execution.

    `max_lots`, `max_positions` and `max_trades_per_day` are its own inputs, 0 = no limit; no order
    can loosen them. `has_position` says whether the policy "reject_if_open" finds a position: on a
    netting account any of the symbol, else one with the order's magic number. `is_open` says
    whether the position that a close or a modify names is open, `position_lots` how big it is and
    `position_stop` where its stop stands, 0 for none.
    """

    now: int
    bid: float
    ask: float
    digits: int
    channel: str = ""
    account: int = 0
    real_account: bool = False
    demo_only: bool = True
    halted: bool = False
    connected: bool = True
    algo_allowed: bool = True
    trade_mode: str = "full"
    session_open: bool = True
    stops_level: int = 0
    lot_min: float = 0.01
    lot_step: float = 0.01
    lot_max: float = 100.0
    max_lots: float = 0.0
    positions: int = 0
    max_positions: int = 0
    trades_today: int = 0
    max_trades_per_day: int = 0
    has_position: bool = False
    is_open: bool = True
    position_lots: float = 0.0
    position_stop: float = 0.0


def ask_of(order: Order, account: int) -> GuardRequest:
    """Return an order that goes to an account as the guards see it."""
    same = ("kind", "side", "lots", "entry", "stop", "target", "max_spread_pts", "max_dev_pts")
    return GuardRequest(
        **{name: getattr(order, name) for name in (*same, "as_decided")},
        created=int(order.created.timestamp()),
        expires=int(order.expires.timestamp()),
        account=account,
    )


def limits_of(terms: SymbolTerms) -> dict[str, Any]:
    """Return what a symbol's terms tell of a View."""
    names = ("trade_mode", "stops_level", "lot_min", "lot_step", "lot_max")
    return {name: getattr(terms, name) for name in names}


class Guard(NamedTuple):
    """One question: `reason` when `objects` says yes."""

    reason: str
    scope: Scope
    objects: Callable[[GuardRequest, View], bool]
    meaning: str


def points(distance: float, digits: int) -> int:
    """Return a distance in points, rounded half up."""
    # Not round(), which takes a half to the even number: the advisor counts otherwise.
    return math.floor(distance * float(10**digits) + 0.5)


class Limits(NamedTuple):
    """Distances that the market may have from the decision, in whole points."""

    max_spread_pts: int
    max_dev_pts: int


def limits(atr: float, digits: int, *, spread_share: float, deviation_share: float) -> Limits:
    """Return the limits of an opening; both shares are of the ATR at its decision."""
    point = 10.0**-digits
    # Rounded down: a limit is never wider than its share.
    return Limits(math.floor(spread_share * atr / point), math.floor(deviation_share * atr / point))


def price_of(side: str, view: View) -> float:
    """Return the price of an order of this side now: the ask for a BUY, the bid for a SELL."""
    return view.ask if side == "BUY" else view.bid


def _wrong_mode(ask: GuardRequest, view: View) -> bool:
    if view.trade_mode == "disabled":
        return True
    if ask.kind != "open":
        return False
    # A mode that is not known allows nothing; close_only lets closes through, above.
    allowed = {"full": ("BUY", "SELL"), "long_only": ("BUY",), "short_only": ("SELL",)}
    return ask.side not in allowed.get(view.trade_mode, ())


def _wrong_side(ask: GuardRequest, view: View) -> bool:
    price = price_of(ask.side, view)
    towards = 1 if ask.side == "BUY" else -1
    if ask.stop <= 0 or ask.target <= 0:
        return True
    # Written as `not ... > 0` so that a price of NaN objects instead of passing.
    return not ((price - ask.stop) * towards > 0 and (ask.target - price) * towards > 0)


def _too_near(ask: GuardRequest, view: View) -> bool:
    """Measure as brokers do: a BUY's stop and target from the bid, a SELL's from the ask."""
    price = view.bid if ask.side == "BUY" else view.ask
    near = min(abs(price - ask.stop), abs(ask.target - price))
    return points(near, view.digits) < view.stops_level


def _widens(ask: GuardRequest, view: View) -> bool:
    """Return whether a `modify` moves a stop away from the price; its side is the opening's."""
    if ask.kind != "modify" or view.position_stop <= 0 or ask.stop <= 0:
        return False
    near = (ask.stop - view.position_stop) * (1 if ask.side == "BUY" else -1)
    return ask.side in ("BUY", "SELL") and near < -0.5 * 10.0**-view.digits


def _bad_volume(ask: GuardRequest, view: View) -> bool:
    steps = ask.lots / view.lot_step
    # Binary fractions: 0.3 / 0.1 is not 3, so a millionth of a step is forgiven.
    off_grid = abs(steps - math.floor(steps + 0.5)) > 1e-6
    if ask.kind == "close":
        return ask.lots <= 0 or off_grid or ask.lots > view.position_lots + view.lot_step * 1e-6
    return ask.lots < view.lot_min - view.lot_step * 1e-6 or ask.lots > view.lot_max or off_grid


GUARDS: Final = (
    Guard("auth", "all", lambda a, _v: not a.authentic, "the signature does not fit the message"),
    Guard("version", "all", lambda a, _v: a.version != PROTOCOL, "another version of the protocol"),
    Guard(
        "schema",
        "all",
        lambda a, _v: not a.whole or a.kind not in KINDS,
        "a field is missing, unknown or of the wrong type",
    ),
    Guard("channel", "all", lambda a, v: a.channel != v.channel, "meant for another channel"),
    Guard("account", "all", lambda a, v: a.account != v.account, "meant for another account"),
    Guard(
        DECISION,
        "trade",
        lambda a, _v: not a.as_decided,
        "side, lots, levels or times are not those that were decided",
    ),
    Guard(
        "live",
        "trade",
        lambda _a, v: v.demo_only and v.real_account,
        "a real account while demo_only is on",
    ),
    Guard("kill", "trade", lambda _a, v: v.halted, "the file control/HALT is there"),
    Guard(
        "clock",
        "all",
        lambda a, v: a.created > v.now + CLOCK_TOLERANCE,
        "the signal comes from the future: the clocks differ",
    ),
    Guard("stale", "all", lambda a, v: v.now >= a.expires, "the signal has expired"),
    Guard("not_connected", "trade", lambda _a, v: not v.connected, "no connection to the broker"),
    Guard("autotrading_off", "trade", lambda _a, v: not v.algo_allowed, "algo trading is off"),
    Guard("symbol", "trade", _wrong_mode, "the symbol is unknown or not tradeable this way"),
    Guard("session", "trade", lambda _a, v: not v.session_open, "the market is closed"),
    Guard(
        "quote",
        "trade",
        # A quote of NaN fails both comparisons, and so objects too.
        lambda _a, v: not (v.bid > 0 and v.ask >= v.bid),
        "there is no usable quote",
    ),
    Guard(
        "spread",
        "open",
        lambda a, v: points(v.ask - v.bid, v.digits) > a.max_spread_pts,
        "the spread is wider than the signal allows",
    ),
    Guard(
        "deviation",
        "open",
        lambda a, v: points(abs(price_of(a.side, v) - a.entry), v.digits) > a.max_dev_pts,
        "the price has moved too far from the signal's entry",
    ),
    Guard(
        "side",
        "trade",
        lambda a, v: _wrong_side(a, v) if a.kind == "open" else _widens(a, v),
        "stop or target lie on the wrong side of the price, or a stop would move away from it",
    ),
    Guard("stops", "open", _too_near, "stop or target lie nearer than the broker's stops level"),
    Guard(
        "no_position",
        "trade",
        lambda a, v: a.kind in ("close", "modify") and not v.is_open,
        "the position is not open",
    ),
    Guard(
        "volume",
        "trade",
        lambda a, v: a.kind in ("open", "close") and _bad_volume(a, v),
        "the lots do not fit the symbol's minimum, step and maximum, or the position",
    ),
    Guard(
        "max_lots",
        "open",
        lambda a, v: 0 < v.max_lots < a.lots,
        "more lots than the advisor's own limit",
    ),
    Guard(
        "max_positions",
        "open",
        lambda _a, v: 0 < v.max_positions <= v.positions,
        "as many positions as the advisor's own limit",
    ),
    Guard(
        "max_trades",
        "open",
        lambda _a, v: 0 < v.max_trades_per_day <= v.trades_today,
        "as many trades today as the advisor's own limit",
    ),
    Guard(
        "policy",
        "open",
        lambda _a, v: v.has_position,
        "reject_if_open: there is a position already",
    ),
)
"""In the order in which they are asked."""

REASONS: Final = tuple(guard.reason for guard in GUARDS)

WITHOUT_QUOTE: Final = tuple(reason for reason in REASONS if reason != "quote")
"""The guards of a close at the market: a missing quote must not keep a position open."""

SCOPES: Final[dict[Scope, tuple[str, ...]]] = {
    "all": KINDS,
    "trade": tuple(kind for kind in KINDS if kind != "ping"),
    "open": ("open",),
}


def first_objection(ask: GuardRequest, view: View, *, only: tuple[str, ...] = REASONS) -> str:
    """Return the reason of the first guard that objects, "" when none does.

    `only` leaves out guards whose moment has passed or not come yet: a bridge that accepts now and
    fills later asks the expiry once, at acceptance.
    """
    for guard in GUARDS:
        # An unknown kind still meets the guards for everything; `schema` then refuses it.
        applies = ask.kind in SCOPES[guard.scope] or (
            ask.kind not in KINDS and guard.scope == "all"
        )
        if guard.reason in only and applies and guard.objects(ask, view):
            return guard.reason
    return ""
