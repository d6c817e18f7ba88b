"""Checks an opening before it is sent: every limit, for a ticket however it was made.

A ticket, the account as the opening would meet it, the symbol and the profile go in. Every reason
against it comes out, in the order of the enum. Pure, and the same answer twice. Denying is a value;
no number raises. A broken number denies by itself, and every check that does not need it is still
made. The arithmetic is in exact fractions: a limit is broken above it, never at it or a rounding
below. torra.verdict.risk_engine makes tickets; the caller knows the account.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from torra.config import Profile, Risk, SymbolSpec
from torra.verdict.order_levels import (
    FARTHEST_STOP_ATR,
    Levels,
    Side,
    exact,
    nearest_stop,
    usable,
    widest_spread,
)
from torra.verdict.position_size import loss_of_one, lot_denials, percent, value_of_one
from torra.words.deny_reasons import DenyReason

TAKES: Final[Mapping[str, tuple[Side, ...]]] = {
    "both": ("BUY", "SELL"),
    "long_only": ("BUY",),
    "short_only": ("SELL",),
}
"""Openings that are taken by the word of a channel or a broker; another word takes none."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """An opening as it is looked at before it is sent, however it was made.

    `price` is the last price, `bar_age` the bars since the deciding bar closed. `score_age` is the
    verdict's age as a share of the life that its signal, or its proposal, has: at 1 it is over.
    `veto` is the gate's or the latch's, `declined` the trader's; `duplicate` says that the decision
    has its signal already.
    """

    side: Side
    lots: float
    levels: Levels
    price: float
    bar_age: float = 0.0
    score_age: float = 0.0
    veto: bool = False
    opening_stands: bool = True
    duplicate: bool = False
    declined: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """Desk, account and market as an opening would meet them; money in account currency.

    `positions_open` and `gross_notional` (the sum of `notional` at entry prices) are the whole
    desk's; `day_loss` is this UTC day's, a gain negative. Counts of signals are the instance's own.
    What is kept by side (BUY, SELL) speaks of openings of that side: how many there were within the
    hour, wins and trades of a replay, bars since the last losing trade was closed. None and a side
    that is missing stand for "not known", which denies nothing. `leverage` is the broker's: what
    one unit of margin carries; `live_spread` is ask minus bid now, in price units. A trading state
    that is neither ACTIVE nor REDUCING counts as HALTED.

    `levered` is what other instances hold at this account, as `gross_notional`, by the names of
    `risk.leverage_caps` that concern an opening: its timeframe, and the whole account. `equity` is
    the account's own. `sides` is a word of TAKES; `most_notional` is what one position may be worth
    at its channel, `most_leverage` the same times the capital, or the equity where that is lower.
    """

    positions_open: int = 0
    gross_notional: float = 0.0
    day_loss: float = 0.0
    signals_last_hour: int = 0
    same_side_last_hour: Mapping[str, int] = field(default_factory=dict)
    win_rates: Mapping[str, Sequence[int]] = field(default_factory=dict)
    bars_since_loss: Mapping[str, float] = field(default_factory=dict)
    free_margin: float | None = None
    leverage: float | None = None
    live_spread: float | None = None
    trading_state: str = "ACTIVE"
    market_open: bool = True
    clock_ok: bool = True
    levered: Mapping[str, float] = field(default_factory=dict)
    equity: float | None = None
    sides: str = "both"
    most_notional: float | None = None
    most_leverage: float | None = None


def check(
    ticket: Ticket, account: Account, spec: SymbolSpec, profile: Profile
) -> tuple[DenyReason, ...]:
    """Return every reason not to send a ticket, in the order of the enum; none lets it pass.

    A ticket with a broken number is BAD_NUMBER, and so is an account with one; what would need the
    broken side is then not asked, everything else still is.
    """
    broken = () if _sound(ticket) else (DenyReason.BAD_NUMBER,)
    return in_order((*broken, *objections(ticket, account, spec, profile)))


def objections(
    ticket: Ticket, account: Account, spec: SymbolSpec, profile: Profile
) -> Iterator[DenyReason]:
    """Yield every reason but that the ticket itself is broken."""
    sound, known = _sound(ticket), _known(account)
    # A broken ticket adds nothing: the desk's limits are then asked of what it holds already.
    loss = worth = Fraction(0)
    yield from _failed_checks(_moment(ticket, account, profile))
    if sound:
        # A negative size must not look like a gain; `lot_denials` refuses it below.
        lots = exact(max(ticket.lots, 0.0))
        loss = lots * loss_of_one(ticket.levels, spec)
        worth = lots * exact(ticket.levels.entry) * value_of_one(spec)
        # The live spread of a broken account may be NaN, and exact arithmetic raises over that.
        yield from _failed_checks(
            _shape(ticket, account.live_spread if known else None, spec, profile)
        )
        yield from lot_denials(ticket.lots, spec)
        yield from _failed_checks(_own_limits(loss, worth, profile.risk))
    # What needs the account cannot be asked of a broken one.
    if not known:
        yield DenyReason.BAD_NUMBER
        return
    yield from _failed_checks(_desk_limits(loss, worth, account, profile.risk))
    yield from _failed_checks(_limits_there(worth, account, profile.risk))
    yield from _failed_checks(_throttles(ticket.side, account, profile.risk))
    if sound:
        yield from _failed_checks(_prospects(ticket, account, spec, profile))


def in_order(reasons: Iterable[DenyReason]) -> tuple[DenyReason, ...]:
    """Return reasons in the order of the enum, each once."""
    given = set(reasons)
    return tuple(reason for reason in DenyReason if reason in given)


# --- details ------------------------------------------------------------------------------------


def _failed_checks(checks: Mapping[DenyReason, bool]) -> Iterator[DenyReason]:
    return (reason for reason, applies in checks.items() if applies)


def _sound(ticket: Ticket) -> bool:
    at = ticket.levels
    prices = (at.entry, at.stop, at.target, at.atr, ticket.price)
    others = (ticket.lots, ticket.bar_age, ticket.score_age)
    return all(map(usable, prices)) and all(map(math.isfinite, others))


def _known(account: Account) -> bool:
    known = (account.free_margin, account.leverage, account.live_spread)
    there = (account.equity, account.most_notional, account.most_leverage)
    figures = (
        account.day_loss,
        account.gross_notional,
        account.positions_open,
        account.signals_last_hour,
        *account.same_side_last_hour.values(),
        *account.bars_since_loss.values(),
        *account.levered.values(),
        *(figure for figure in (*known, *there) if figure is not None),
    )
    return (
        all(map(math.isfinite, figures))
        and account.gross_notional >= 0
        and all(notional >= 0 for notional in account.levered.values())
        and (account.leverage is None or account.leverage > 0)
        and (account.live_spread is None or account.live_spread >= 0)
        # NaN fails every comparison.
        and all(0 <= wins <= trades < math.inf for wins, trades in account.win_rates.values())
    )


def _moment(ticket: Ticket, account: Account, profile: Profile) -> dict[DenyReason, bool]:
    """Return the objections of desk, gate, clock and market, whatever the ticket asks for."""
    return {
        DenyReason.TRADING_HALTED: account.trading_state not in ("ACTIVE", "REDUCING"),
        DenyReason.TRADING_REDUCING: account.trading_state == "REDUCING",
        DenyReason.GATE_VETO: ticket.veto,
        DenyReason.GATE_CANNOT_OPEN: not ticket.opening_stands,
        DenyReason.TRADER_DECLINED: ticket.declined,
        DenyReason.DUPLICATE_SIGNAL: ticket.duplicate,
        DenyReason.STALE_BAR: ticket.bar_age > profile.gate.max_bar_age,
        DenyReason.STALE_SCORE: ticket.score_age >= 1,
        DenyReason.CLOCK_SKEW: not account.clock_ok,
        DenyReason.MARKET_CLOSED: not account.market_open,
        DenyReason.VENUE_SIDE: ticket.side not in TAKES.get(account.sides, ()),
    }


def _shape(
    ticket: Ticket, live_spread: float | None, spec: SymbolSpec, profile: Profile
) -> dict[DenyReason, bool]:
    """Return the objections to where the levels lie (document 000, the thesis validator)."""
    entry, atr = exact(ticket.levels.entry), exact(ticket.levels.atr)
    risked, gained = _moves(ticket)
    distance, away = abs(risked), abs(entry - exact(ticket.price))
    too_close = atr < exact(spec.tick_size) or distance < nearest_stop(spec, live_spread)
    return {
        DenyReason.PRICE_COLLAR: away > exact(profile.risk.price_collar_atr) * atr,
        DenyReason.STOP_WRONG_SIDE: risked <= 0,
        DenyReason.STOP_TOO_CLOSE: too_close,
        DenyReason.STOP_TOO_FAR: distance > FARTHEST_STOP_ATR * atr,
        DenyReason.TARGET_WRONG_SIDE: gained <= 0,
    }


def _own_limits(loss: Fraction, worth: Fraction, risk: Risk) -> dict[DenyReason, bool]:
    """Return the objections to what this one opening may lose and is worth."""
    return {
        DenyReason.RISK_PER_TRADE: loss > percent(risk.capital, risk.risk_per_trade_pct),
        DenyReason.MAX_NOTIONAL: worth > percent(risk.capital, risk.max_notional_pct),
    }


def _desk_limits(
    loss: Fraction, worth: Fraction, account: Account, risk: Risk
) -> dict[DenyReason, bool]:
    """Return the objections to what the whole desk would hold and lose with this opening."""
    gross = exact(account.gross_notional) + worth
    daily = percent(risk.capital, risk.daily_loss_cap_pct)
    levered = gross > exact(risk.capital) * exact(risk.account_leverage_cap)
    return {
        DenyReason.EXPOSURE_CAP: gross > percent(risk.capital, risk.exposure_cap_pct),
        DenyReason.MARGIN: levered or _lacks_margin(worth, account),
        DenyReason.MAX_POSITIONS: account.positions_open >= risk.max_positions,
        DenyReason.DAILY_LOSS_CAP: exact(account.day_loss) >= daily or loss > daily,
    }


def _limits_there(worth: Fraction, account: Account, risk: Risk) -> dict[DenyReason, bool]:
    """Return the objections to what would be held at the account that the opening goes to."""
    means = exact(risk.capital)
    if account.equity is not None:
        means = min(means, exact(account.equity))
    most, times = account.most_notional, account.most_leverage
    return {
        DenyReason.VENUE_SIDE: most is not None and worth > exact(most),
        DenyReason.LEVERAGE_CAP: (times is not None and worth > exact(times) * means)
        or any(
            exact(notional) + worth > exact(risk.leverage_caps[name]) * means
            for name, notional in account.levered.items()
            if name in risk.leverage_caps
        ),
    }


def _lacks_margin(worth: Fraction, account: Account) -> bool:
    if account.free_margin is None or account.leverage is None:
        return False
    return worth > exact(account.free_margin) * exact(account.leverage)


def _throttles(side: Side, account: Account, risk: Risk) -> dict[DenyReason, bool]:
    """Return the objections to opening this side so often, or so soon after a loss."""
    openings = account.same_side_last_hour.get(side, 0)
    bars = account.bars_since_loss.get(side, math.inf)
    return {
        DenyReason.COOLDOWN: max(bars, 0) < risk.cooldown_bars,
        DenyReason.MESSAGE_RATE: account.signals_last_hour >= risk.max_signals_per_hour,
        DenyReason.REPEATED_EXECUTION: openings >= risk.max_same_openings_per_hour,
    }


def _prospects(
    ticket: Ticket, account: Account, spec: SymbolSpec, profile: Profile
) -> dict[DenyReason, bool]:
    """Return the objections to the trade's worth by experience (document 003) and to the spread.

    Lots and tick value are factors of both sides of the bet and cancel out.
    """
    wins, trades = account.win_rates.get(ticket.side, (0, 0))
    cost, live = widest_spread(spec, account.live_spread), account.live_spread
    risked, gained = _moves(ticket)
    # The spread is paid either way: it takes from a win and adds to a loss.
    worth = wins * (gained - cost) - (trades - wins) * (risked + cost)
    widest = exact(profile.gate.max_spread_atr) * exact(ticket.levels.atr)
    return {
        DenyReason.NEGATIVE_EV: trades >= profile.risk.min_trades_for_ev and worth <= 0,
        DenyReason.SPREAD: live is not None and exact(live) > widest,
    }


def _moves(ticket: Ticket) -> tuple[Fraction, Fraction]:
    """Return how far the stop lies against the ticket and the target in its favour."""
    at, towards = ticket.levels, 1 if ticket.side == "BUY" else -1
    entry = exact(at.entry)
    return towards * (entry - exact(at.stop)), towards * (exact(at.target) - entry)
