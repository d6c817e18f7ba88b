"""What speaks against a ticket, written down a second time from the promises and not from the code.

It takes the data types and does its own arithmetic, in decimals that may not be rounded: a rounding
would raise. Reasons are told by their names.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

from torra.config import Profile, Risk, SymbolSpec
from torra.verdict.risk_engine import Account, Levels, Ticket

UNROUNDED = decimal.Context(
    prec=3_000, Emin=-99_999, Emax=99_999, traps=[decimal.Inexact, decimal.InvalidOperation]
)


def exactly(number: float) -> Decimal:
    """Read a float as it is written."""
    return Decimal(repr(float(number)))


def broken_ticket(ticket: Ticket) -> bool:
    at = ticket.levels
    for price in (at.entry, at.stop, at.target, at.atr, ticket.price):
        if math.isnan(price) or price <= 0 or price > 1_000_000_000_000:
            return True
    return any(
        math.isnan(number) or math.isinf(number)
        for number in (ticket.lots, ticket.bar_age, ticket.score_age)
    )


def broken_account(account: Account) -> bool:
    numbers = [account.positions_open, account.signals_last_hour, account.day_loss]
    numbers += [account.gross_notional, *account.same_side_last_hour.values()]
    numbers += account.bars_since_loss.values()
    for wins, trades in account.win_rates.values():
        numbers += [wins, trades]
    numbers += [
        number
        for number in (account.free_margin, account.leverage, account.live_spread)
        if number is not None
    ]
    numbers += [one for one in (account.equity, account.most_notional) if one is not None]
    numbers += account.levered.values()
    if any(math.isnan(number) or math.isinf(number) for number in numbers):
        return True
    if account.gross_notional < 0 or (account.live_spread is not None and account.live_spread < 0):
        return True
    if account.leverage is not None and account.leverage <= 0:
        return True
    if min(account.levered.values(), default=0) < 0:
        return True
    return any(wins < 0 or wins > trades for wins, trades in account.win_rates.values())


def oracle(ticket: Ticket, account: Account, spec: SymbolSpec, profile: Profile) -> set[str]:
    """Say by name what speaks against a ticket."""
    with decimal.localcontext(UNROUNDED):
        said = moment(ticket, account, profile)
        bad_ticket, bad_account = broken_ticket(ticket), broken_account(account)
        if bad_ticket or bad_account:
            said.add("BAD_NUMBER")
        lots = Decimal(0) if bad_ticket or ticket.lots < 0 else exactly(ticket.lots)
        spread = exactly(spec.spread)
        if not bad_account and account.live_spread is not None:
            spread = max(spread, exactly(account.live_spread))
        if not bad_ticket:
            said |= geometry(ticket, spec, profile, spread) | volume(ticket.lots, spec)
        if not bad_account:
            said |= throttled(ticket.side, account, profile.risk)
        if not bad_ticket and not bad_account:
            said |= prospects(ticket, account, profile, spread)
        # in units of tick_size / 100, to do without a division
        unit = exactly(spec.tick_size) * 100
        entry = Decimal(0) if bad_ticket else exactly(ticket.levels.entry)
        reach = Decimal(0) if bad_ticket else abs(entry - exactly(ticket.levels.stop))
        worth, loss = (x * lots * exactly(spec.tick_value) * 100 for x in (entry, reach))
        return said | money(worth, loss, unit, None if bad_account else account, profile.risk)


def moment(ticket: Ticket, account: Account, profile: Profile) -> set[str]:
    said = set()
    if account.trading_state == "REDUCING":
        said.add("TRADING_REDUCING")
    elif account.trading_state != "ACTIVE":
        said.add("TRADING_HALTED")
    if ticket.veto:
        said.add("GATE_VETO")
    if not ticket.opening_stands:
        said.add("GATE_CANNOT_OPEN")
    if ticket.declined:
        said.add("TRADER_DECLINED")
    if ticket.duplicate:
        said.add("DUPLICATE_SIGNAL")
    if not account.clock_ok:
        said.add("CLOCK_SKEW")
    if not account.market_open:
        said.add("MARKET_CLOSED")
    if account.sides not in ("both", "long_only" if ticket.side == "BUY" else "short_only"):
        said.add("VENUE_SIDE")
    if ticket.bar_age - profile.gate.max_bar_age > 0:
        said.add("STALE_BAR")
    if not (math.isnan(ticket.score_age) or ticket.score_age < 1):
        said.add("STALE_SCORE")
    return said


def geometry(ticket: Ticket, spec: SymbolSpec, profile: Profile, spread: Decimal) -> set[str]:
    said = set()
    at = ticket.levels
    entry, stop, target, atr = (
        exactly(at.entry),
        exactly(at.stop),
        exactly(at.target),
        exactly(at.atr),
    )
    tick, level = exactly(spec.tick_size), Decimal(spec.stops_level).scaleb(-spec.digits)
    if not (stop < entry if ticket.side == "BUY" else stop > entry):
        said.add("STOP_WRONG_SIDE")
    if not (target > entry if ticket.side == "BUY" else target < entry):
        said.add("TARGET_WRONG_SIDE")
    reach = max(entry, stop) - min(entry, stop)
    if reach < spread + tick or reach < spread + level or atr < tick:
        said.add("STOP_TOO_CLOSE")
    if reach > atr + atr + atr + atr:
        said.add("STOP_TOO_FAR")
    collar = exactly(profile.risk.price_collar_atr) * atr
    if not entry - collar <= exactly(ticket.price) <= entry + collar:
        said.add("PRICE_COLLAR")
    return said


def volume(lots: float, spec: SymbolSpec) -> set[str]:
    if lots <= 0:
        return {"SIZE_ZERO"}
    said = set()
    if exactly(lots) < exactly(spec.lot_min):
        said.add("LOT_BELOW_MIN")
    if exactly(lots) > exactly(spec.lot_max):
        said.add("LOT_ABOVE_MAX")
    places = min(exactly(lots).as_tuple().exponent, exactly(spec.lot_step).as_tuple().exponent, 0)
    whole, step = (int(exactly(number).scaleb(-places)) for number in (lots, spec.lot_step))
    if whole % step:
        said.add("LOT_STEP")
    return said


def money(
    worth: Decimal, loss: Decimal, unit: Decimal, account: Account | None, risk: Risk
) -> set[str]:
    """Compare what is worth / unit and loss / unit in account currency with the limits."""
    said = set()
    capital = exactly(risk.capital)
    if loss * 100 > capital * exactly(risk.risk_per_trade_pct) * unit:
        said.add("RISK_PER_TRADE")
    if worth * 100 > capital * exactly(risk.max_notional_pct) * unit:
        said.add("MAX_NOTIONAL")
    if account is None:
        return said
    gross = exactly(account.gross_notional) * unit + worth
    if gross * 100 > capital * exactly(risk.exposure_cap_pct) * unit:
        said.add("EXPOSURE_CAP")
    if gross > capital * exactly(risk.account_leverage_cap) * unit:
        said.add("MARGIN")
    told = account.free_margin is not None and account.leverage is not None
    if told and worth > exactly(account.free_margin) * exactly(account.leverage) * unit:
        said.add("MARGIN")
    if account.most_notional is not None and not worth <= exactly(account.most_notional) * unit:
        said.add("VENUE_SIDE")
    means = capital if account.equity is None else min(capital, exactly(account.equity))
    for name, times in risk.leverage_caps.items():
        held = account.levered.get(name)
        if held is not None and exactly(held) * unit + worth > exactly(times) * means * unit:
            said.add("LEVERAGE_CAP")
    if not account.positions_open < risk.max_positions:
        said.add("MAX_POSITIONS")
    if not exactly(account.day_loss) * 100 < capital * exactly(risk.daily_loss_cap_pct):
        said.add("DAILY_LOSS_CAP")
    if loss * 100 > capital * exactly(risk.daily_loss_cap_pct) * unit:
        said.add("DAILY_LOSS_CAP")
    return said


def throttled(side: str, account: Account, risk: Risk) -> set[str]:
    said = set()
    if not account.signals_last_hour < risk.max_signals_per_hour:
        said.add("MESSAGE_RATE")
    openings, bars = account.same_side_last_hour.get(side), account.bars_since_loss.get(side)
    if openings is not None and not openings < risk.max_same_openings_per_hour:
        said.add("REPEATED_EXECUTION")
    if bars is not None and bars < risk.cooldown_bars and risk.cooldown_bars > 0:
        said.add("COOLDOWN")
    return said


def prospects(ticket: Ticket, account: Account, profile: Profile, spread: Decimal) -> set[str]:
    said = set()
    at, live = ticket.levels, account.live_spread
    if live is not None and exactly(live) > exactly(profile.gate.max_spread_atr) * exactly(at.atr):
        said.add("SPREAD")
    if ticket.side in account.win_rates:
        wins, trades = account.win_rates[ticket.side]
        entry, stop, target = map(exactly, (at.entry, at.stop, at.target))
        if ticket.side == "BUY":  # bought at the ask, sold at the bid
            won, lost = target - entry - spread, entry + spread - stop
        else:
            won, lost = entry - target - spread, stop + spread - entry
        balance = sum([won] * wins, Decimal(0)) - sum([lost] * (trades - wins), Decimal(0))
        if trades >= profile.risk.min_trades_for_ev and balance <= 0:
            said.add("NEGATIVE_EV")
    return said


def fits(lots: Decimal, at: Levels, spec: SymbolSpec, risk: Risk, share: Decimal) -> bool:
    """Say whether lots stay within a share of what the account allows."""
    loss = abs(exactly(at.entry) - exactly(at.stop)) * lots * exactly(spec.tick_value) * 100
    worth = exactly(at.entry) * lots * exactly(spec.tick_value) * 100
    budget = exactly(risk.capital) * exactly(spec.tick_size) * share
    return (
        loss <= budget * exactly(risk.risk_per_trade_pct)
        and worth <= budget * exactly(risk.max_notional_pct)
        and lots <= exactly(spec.lot_max) * share
    )
