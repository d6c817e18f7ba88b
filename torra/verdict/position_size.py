"""Sizes a position: its lots in whole steps of the symbol, and their worth in account currency.

`tick_value` is what one tick of one lot is worth in the account's own currency. So contract size
and exchange rate are in it, and count nowhere a second time. Everything is exact fractions of what
is written in decimals: no binary rounding lifts the loss at the stop above its budget. An
impossible size is 0.0, an impossible value NaN or infinite; no number raises.
torra.verdict.ticket_checks has the limits of the whole account.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache

from torra.config import Risk, SymbolSpec
from torra.verdict.order_levels import Levels, exact, usable
from torra.words.deny_reasons import DenyReason


def size(levels: Levels, spec: SymbolSpec, risk: Risk, multiplier: float = 1.0) -> float:
    """Return the lots of an opening, 0.0 when the account is too small for one.

    floor((capital x risk_per_trade_pct / 100) / value of the stop distance) in steps of the symbol
    (document 000, Stage 7), at most `max_notional_pct` of the capital, at most `lot_max`. The
    multiplier, cut to [0, 1], scales what is left before the floor; NaN counts as zero.
    """
    # Above 1 would enlarge a position; only the profile says how large one may be.
    scale = max(0.0, min(multiplier, 1.0)) if not math.isnan(multiplier) else 0.0
    if not (usable(levels.entry) and usable(levels.stop)) or levels.entry == levels.stop:
        return 0.0
    loss, one_lot = loss_of_one(levels, spec), (exact(levels.entry), value_of_one(spec))
    step, least, share = exact(spec.lot_step), exact(spec.lot_min), exact(scale)
    # Rounded down: up would put the loss at the stop above its budget.
    steps = min(
        _whole((percent(risk.capital, risk.risk_per_trade_pct), share), (loss, step)),
        _whole((percent(risk.capital, risk.max_notional_pct), share), (*one_lot, step)),
        _whole((exact(spec.lot_max), share), (step,)),
    )
    if steps * step.numerator * least.denominator < least.numerator * step.denominator:
        return 0.0
    return steps * step.numerator / step.denominator


def _whole(over: Iterable[Fraction], under: Iterable[Fraction]) -> int:
    """Return how many whole times the product of `under`, all above 0, goes into that of `over`."""
    top = bottom = 1
    for one in over:  # as `//` of the products, which would first be brought to lowest terms
        top, bottom = top * one.numerator, bottom * one.denominator
    for one in under:
        top, bottom = top * one.denominator, bottom * one.numerator
    return top // bottom


def smallest(spec: SymbolSpec) -> float:
    """Return the smallest order of a symbol in lots: a whole number of steps, lot_min at least."""
    step = exact(spec.lot_step)
    return float(step * math.ceil(exact(spec.lot_min) / step))


def notional(lots: float, price: float, spec: SymbolSpec) -> float:
    """Return what a position is worth in account currency; NaN for a broken number."""
    if not (math.isfinite(lots) and math.isfinite(price)):
        return math.nan
    try:
        return float(exact(lots) * exact(price) * value_of_one(spec))
    except OverflowError:
        # Infinite breaks every limit: the opening is denied, and nothing raises.
        return math.inf


def worth(distance: float, lots: float, spec: SymbolSpec) -> float:
    """Return what a distance in price is worth for so many lots, in account currency."""
    return distance / spec.tick_size * spec.tick_value * lots


def lot_denials(lots: float, spec: SymbolSpec) -> Iterator[DenyReason]:
    """Yield every reason for which a symbol's lot rules refuse a size."""
    if not math.isfinite(lots):
        yield DenyReason.BAD_NUMBER
    elif lots <= 0:
        yield DenyReason.SIZE_ZERO
    else:
        wanted = exact(lots)
        if wanted < exact(spec.lot_min):
            yield DenyReason.LOT_BELOW_MIN
        if wanted > exact(spec.lot_max):
            yield DenyReason.LOT_ABOVE_MAX
        if wanted % exact(spec.lot_step):
            yield DenyReason.LOT_STEP


def lot_denial(lots: float, spec: SymbolSpec) -> DenyReason | None:
    """Return why a symbol's lot rules refuse a size; None when they accept it."""
    return next(lot_denials(lots, spec), None)


def loss_of_one(levels: Levels, spec: SymbolSpec) -> Fraction:
    """Return what one lot loses between entry and stop, in account currency."""
    return abs(exact(levels.entry) - exact(levels.stop)) * value_of_one(spec)


def value_of_one(spec: SymbolSpec) -> Fraction:
    """Return what a move by one whole price unit is worth for one lot, in account currency."""
    return _quotient(spec.tick_value, spec.tick_size)


@lru_cache(maxsize=256)
def _quotient(one: float, other: float) -> Fraction:
    return exact(one) / exact(other)


@lru_cache(maxsize=256)
def percent(amount: float, share: float) -> Fraction:
    """Return so many percent of an amount."""
    return exact(amount) * exact(share) / 100
