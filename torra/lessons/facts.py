"""The facts of a lesson: what a trade came to, by arithmetic, and the market in which it began.

`situation_of` reads a situation from the features of a tick, so that it has the very numbers that
the agents were shown. `facts_of` puts it beside the outcome that torra.verdict.trade_outcome has
judged.

    mae_r     = min(0, worst gain) / planned risk, mfe_r = max(0, best gain) / planned risk
    p         = (wins + W p0) / (trades + W), p0 = 1 / (1 + planned R), W = PRIOR_TRADES
    surprise  = |r - (p planned R - (1 - p))|

The gains are measured from the fill, at the prices at which the position could be left. p0 is the
chance with which a price without drift comes to the target before the stop; the trades of a replay
that the desk has stored pull it to their own share of wins. Without any the plan is worth 0 R, and
the surprise is the size of the result.

Pure. A number that is not finite raises ValueError, as torra.verdict.trade_outcome does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from agents.contracts import EVENT_CLASSES, VECTORS, Feature
from agents.features import number
from technical_calculator import COMPONENTS
from torra.clock import parse
from torra.lessons.lesson import SCALES, Kind, LessonFacts, Situation
from torra.verdict.risk_engine import PositionSide
from torra.verdict.trade_outcome import DECIMALS, TradeOutcome, gain, leaving, planned_risk

STRONGEST: Final = 3
"""Components of L1 that a situation names."""

PRIOR_TRADES: Final = 4
"""What the chance of a price without drift weighs beside trades that were counted: Beta(2, 2)'s."""

WEIGHTS: Final = {name: weight for parts in COMPONENTS.values() for name, weight in parts.items()}


class PriceRange(NamedTuple):
    """The lowest and the highest bid of the whole bars between fill and end."""

    low: float
    high: float


class WinRate(NamedTuple):
    """How many trades a replay has counted of a side, and how many of them won."""

    wins: int = 0
    trades: int = 0


UNCOUNTED: Final = WinRate()


def situation_of(features: Mapping[str, Feature], l1: Mapping[str, float]) -> Situation:
    """Return the market of a tick by its features and its four L1 scores."""
    numbers: dict[str, float | None] = {vector: l1[vector] for vector in VECTORS}
    numbers |= {
        name: number(features, scale.feature) for name, scale in SCALES.items() if scale.feature
    }
    numbers["di_difference"] = _less(features, "technical.plus_di", "technical.minus_di")
    gap, atr = (
        _less(features, "technical.close", "technical.ema20"),
        number(features, "technical.atr14"),
    )
    numbers["ema_gap_atr"] = None if gap is None or not atr else round(gap / atr, DECIMALS) + 0.0
    return Situation(
        numbers=numbers,
        regime=_word(features, "market.regime"),
        session=_word(features, "market.session"),
        triage=tuple(_word(features, "market.triage").split()),
        strongest=tuple(_strongest(features)),
        events=tuple(
            name for name in EVENT_CLASSES if (number(features, f"news.{name}_items") or 0.0) > 0.0
        ),
    )


def facts_of(
    opening: Mapping[str, Any],
    end: TradeOutcome,
    *,
    kind: Kind,
    exit_price: float,
    closed_at: datetime,
    known_at: datetime,
    price_range: PriceRange | None,
    asset: str,
    spread: float,
    situation: Situation | None,
    counted: WinRate = UNCOUNTED,
    refused: str = "",
) -> LessonFacts:
    """Return the facts of an opening that ended, by its row in the table signals.

    `price_range` is None where no whole bar lies between fill and end; `spread` is in price units.
    """
    fill = float(opening["entry"] if opening.get("price") is None else opening["price"])
    risk = planned_risk(opening["stop"], opening["target"])
    worst, best = excursions(end.side, fill, exit_price, price_range, spread)
    expected = expectation(end.planned_r, counted)
    return LessonFacts(
        sid=opening["sid"],
        kind=kind,
        instance=opening["instance"],
        symbol=opening["symbol"],
        asset=asset,
        timeframe=opening["timeframe"],
        side=end.side,
        bar_time=parse(opening["bar_time"]),
        opened_at=parse(opening.get("opened_at") or opening["decided_at"]),
        closed_at=closed_at,
        known_at=known_at,
        outcome=end.outcome,
        evolution=end.evolution,
        reason=end.reason,
        r=end.r_multiple,
        planned_r=end.planned_r,
        slipped_r=end.slipped_r,
        mae_r=_in_r(worst, risk),
        mfe_r=_in_r(best, risk),
        hours_held=end.hours_held,
        surprise=round(abs(end.r_multiple - expected), DECIMALS) + 0.0,
        profit=end.profit if kind == "trade" else None,
        situation=situation,
        refused=refused,
    )


def excursions(
    side: PositionSide,
    fill: float,
    exit_price: float,
    price_range: PriceRange | None,
    spread: float,
) -> tuple[float, float]:
    """Return the worst (<= 0) and the best (>= 0) gain of a position in price units.

    The end counts, and the bars that lie wholly between it and the fill: nobody knows what of the
    bar of the end came after it.
    """
    prices = [exit_price]
    if price_range is not None:
        prices += [leaving(side, price, spread) for price in price_range]
    gains = [gain(side, fill, price) for price in prices]
    return min(0.0, *gains), max(0.0, *gains)


def expectation(planned_r: float, counted: WinRate = UNCOUNTED) -> float:
    """Return what a plan is worth in R; 0.0 for one without a target."""
    if planned_r <= 0.0:
        return 0.0
    undrifted = 1.0 / (1.0 + planned_r)
    chance = (counted.wins + PRIOR_TRADES * undrifted) / (counted.trades + PRIOR_TRADES)
    return chance * planned_r - (1.0 - chance)


def _strongest(features: Mapping[str, Feature]) -> Sequence[tuple[str, int]]:
    """Return the components that weigh most, with the signs of their values."""
    values = {name: number(features, f"component.{name}") or 0.0 for name in WEIGHTS}
    order = sorted(values, key=lambda name: -abs(round(WEIGHTS[name] * values[name], DECIMALS)))
    return [(name, 1 if values[name] > 0.0 else -1) for name in order[:STRONGEST] if values[name]]


def _less(features: Mapping[str, Feature], one: str, other: str) -> float | None:
    first, second = number(features, one), number(features, other)
    return None if first is None or second is None else round(first - second, DECIMALS) + 0.0


def _word(features: Mapping[str, Feature], name: str) -> str:
    feature = features.get(name)
    return "" if feature is None or feature.value is None else str(feature.value)


def _in_r(price: float, risk: float) -> float:
    return round(price / risk, DECIMALS) + 0.0 if risk else 0.0
