"""Places the levels of an opening: its entry, its stop and its target.

Levels are the code's own, never a model's. They are whole ticks, computed as exact fractions of
what is written in decimals. A price or an ATR that allows no levels gives a deny reason, never an
exception. Document 000 keeps the model's prices when the ATR is below one tick; here no model names
a price, so the opening is denied. torra.verdict.position_size has the lots.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

from torra.config import SymbolSpec
from torra.words.deny_reasons import DenyReason

Side = Literal["BUY", "SELL"]
"""Side of an order."""

STOP_ATR: Final = 2
"""The stop lies this many ATR(14) from the entry (document 000)."""

FARTHEST_STOP_ATR: Final = 4
"""A stop farther than this many ATR(14) from the entry is refused (document 000)."""

TARGET_R: Final = 2
"""The target lies this many times the stop distance from the entry (document 000)."""

LARGEST_PRICE: Final = 10**12
"""A price above this is a broken number: a double could no longer hold its ticks."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The prices of an opening, each a whole number of ticks; `atr` is the one they came from."""

    entry: float
    stop: float
    target: float
    atr: float


def levels(side: str, price: float, atr: float, spec: SymbolSpec) -> Levels | DenyReason:
    """Return entry, stop (2 ATR away) and target (2R away) in whole ticks, or why there are none.

    BAD_NUMBER: the price, the ATR or a level is not a positive number. STOP_TOO_CLOSE: the ATR is
    below one tick, or the stop nearer than `nearest_stop`.
    """
    if not (usable(price) and usable(atr)):
        return DenyReason.BAD_NUMBER
    tick, wide = exact(spec.tick_size), exact(atr)
    # In ticks, so that the target is exactly twice as far as the stop after rounding too.
    distance = _in_ticks(STOP_ATR * wide.numerator, wide.denominator, tick)
    if wide < tick or distance * tick < nearest_stop(spec):
        return DenyReason.STOP_TOO_CLOSE
    at = exact(price)
    entry = _in_ticks(at.numerator, at.denominator, tick)
    towards = 1 if side == "BUY" else -1
    prices = (entry, entry - towards * distance, entry + towards * TARGET_R * distance)
    if min(prices) <= 0 or max(prices) * tick.numerator > LARGEST_PRICE * tick.denominator:
        return DenyReason.BAD_NUMBER
    at_entry, at_stop, at_target = (ticks * tick.numerator / tick.denominator for ticks in prices)
    return Levels(at_entry, at_stop, at_target, atr)


def _in_ticks(numerator: int, denominator: int, tick: Fraction) -> int:
    """Return the whole ticks nearest to a fraction, of two as near ones the even one."""
    # As round() of the quotient, which would first be brought to its lowest terms.
    top, bottom = numerator * tick.denominator, denominator * tick.numerator
    whole, rest = divmod(2 * top + bottom, 2 * bottom)
    return whole - 1 if rest == 0 and whole % 2 else whole


def stakes(price: float, atr: float, spec: SymbolSpec) -> dict[str, float]:
    """Return what an opening stakes, in units of what its stop loses (R); empty without levels.

    `reward_r` is what its target gains, `cost_r` the spread and the slippage of both ends, and
    `break_even` the chance of the target, 0 to 1, from which it gains on average.
    """
    prices = levels("BUY", price, atr, spec)
    if not isinstance(prices, Levels):
        return {}
    risked = exact(prices.entry) - exact(prices.stop)
    reward = (exact(prices.target) - exact(prices.entry)) / risked
    cost = (exact(spec.spread) + 2 * exact(spec.slippage)) / risked
    return {
        "reward_r": float(reward),
        "cost_r": float(cost),
        "break_even": float((1 + cost) / (1 + reward)),
    }


def nearest_stop(spec: SymbolSpec, live_spread: float | None = None) -> Fraction:
    """Return how near a stop may be: the spread plus one tick, or plus the broker's stops level.

    The wider one counts each time: of tick and stops level, and of the assumed and the live spread.
    """
    least = max(exact(spec.tick_size), spec.stops_level * Fraction(1, 10**spec.digits))
    return widest_spread(spec, live_spread) + least


def widest_spread(spec: SymbolSpec, live_spread: float | None = None) -> Fraction:
    """Return the assumed spread, or that of now when it is known and wider."""
    assumed = exact(spec.spread)
    return assumed if live_spread is None else max(assumed, exact(live_spread))


def usable(price: float) -> bool:
    """Return whether a number can be a price, a distance or a size above zero."""
    return 0 < price <= LARGEST_PRICE  # no comparison with NaN holds


@lru_cache(maxsize=4096)  # trading conditions and limits are asked for with every opening
def exact(number: float) -> Fraction:
    """Return the decimal number that a float was written as: 0.1 is one tenth."""
    # Not Fraction(number): that is the exact binary value, and 0.1 is none of its ticks.
    return Fraction(Decimal(repr(float(number))))
