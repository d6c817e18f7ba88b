"""The rules' tables for a swarm's experts: what each of them reads, and its weight in each regime.

What an expert reads is no measure of one score but lies over all that it may touch: a row has no
vector of its own (`ANY`). A sweep of stops counts the less the older it is; a pool of equal highs
draws price until it is taken; a spread that is dear for its hour takes the weight from the bar's
own move, whichever way it went. Turn the market upside down, and every lean turns.

Companions have the names that a user gave them, so their rows are made for each tick: one that has
moved with this market speaks for the way it went, one that moves against it for the other. Below
`MOVES_WITH` nothing is heard. Weights are a textbook's, as in `readings`. Nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from agents.contracts import Feature
from agents.features import COMPANION
from agents.phrases import Phrase
from torra.providers.rules.readings import READERS, ReadingRule, number, ramp, tanh_of, technical
from torra.providers.rules.specialists import POSITIONS, WORTH

ANY: Final = ""
"""The vector of a row that lies over every score."""

FORGOTTEN: Final = 5.0
"""Bars after which a sweep counts for 1/e."""

DRAWN: Final = 2.0
"""ATR at which a pool of stops draws with 1/e."""

ABSORBS: Final = (1.5, 3.0)
"""Volume over the usual one for its range between which a bar absorbs, not at all to fully."""

DEAR: Final = (50.0, 95.0)
"""Ranks of the spread in its hour between which the bar's move counts less, down to nothing."""

MADE, BEGUN = 1.0, 0.4
"""Lean of a pattern that a close completed, and of one that is a maybe."""

MOVES_WITH: Final = 0.3
"""Correlation, either way, from which a companion says something of this market."""

SHAPES: Final[Mapping[str, int]] = {
    "head_shoulders": -1,
    "inverse_head_shoulders": 1,
    "double_top": -1,
    "double_bottom": 1,
    "bull_flag": 1,
    "bear_flag": -1,
    "ascending_triangle": 1,
    "descending_triangle": -1,
    "rising_wedge": -1,
    "falling_wedge": 1,
}
"""Which way each pattern leans."""


def _swept(low: float, high: float, age: float) -> float:
    """Return the lean of swept stops: those below a low lean up; 0 where both were taken."""
    return (low - high) * math.exp(-max(age, 0.0) / FORGOTTEN)


def _drawn(way: float, atr: float) -> float:
    return way * math.exp(-max(atr, 0.0) / DRAWN)


def _absorbed(vwap: float, effort: float) -> float:
    """Return the lean of much volume that moved little: against where price has come from."""
    return -tanh_of(vwap, 1.5) * ramp(effort, *ABSORBS)


def _on_usual_spread(body: float, rank: float) -> float:
    return math.tanh(body) * (1.0 - ramp(rank, *DEAR))


def _shaped(way: int) -> Callable[[float, float], float]:
    return lambda found, done: way * found * (MADE if done else BEGUN)


SWEEPS: Final = (
    ReadingRule(
        ANY,
        ("liquidity.sweep_low", "liquidity.sweep_high", "liquidity.sweep_age"),
        _swept,
        trend=0.5,
        range=0.9,
        sparse=True,
    ),
    ReadingRule(
        ANY,
        ("liquidity.pool_above_atr",),
        lambda atr: _drawn(1.0, atr),
        trend=0.3,
        range=0.4,
    ),
    ReadingRule(
        ANY,
        ("liquidity.pool_below_atr",),
        lambda atr: _drawn(-1.0, atr),
        trend=0.3,
        range=0.4,
    ),
)
"""Stops that were taken, and those that wait."""

LIQUIDITY: Final = (
    *SWEEPS,
    ReadingRule(
        ANY,
        ("liquidity.delta20",),
        lambda delta: tanh_of(delta, 0.2),
        trend=0.6,
        range=0.3,
    ),
    ReadingRule(
        ANY,
        ("liquidity.divergence", "liquidity.delta20"),
        lambda divergence, _: divergence,
        trend=0.3,
        range=0.7,
        sparse=True,
    ),
    ReadingRule(
        ANY,
        ("liquidity.vwap_atr",),
        lambda atr: tanh_of(atr, 2.0),
        trend=0.7,
        range=-0.6,
    ),
    ReadingRule(
        ANY,
        ("liquidity.poc_atr",),
        lambda atr: tanh_of(atr, 3.0),
        trend=0.4,
        range=-0.5,
    ),
    ReadingRule(
        ANY,
        ("liquidity.vwap_atr", "liquidity.effort"),
        _absorbed,
        trend=0.2,
        range=0.5,
        sparse=True,
    ),
)

MICROSTRUCTURE: Final = (
    ReadingRule(
        ANY,
        ("flow.up_share",),
        lambda share: tanh_of(share - 0.5, 0.15),
        trend=0.7,
        range=0.4,
    ),
    ReadingRule(
        ANY,
        ("flow.book_imbalance",),
        lambda imbalance: tanh_of(imbalance, 0.5),
        trend=0.5,
        range=0.6,
    ),
    ReadingRule(
        ANY,
        ("technical.body_atr", "micro.spread_percentile"),
        _on_usual_spread,
        trend=0.6,
        range=0.3,
    ),
    ReadingRule(
        ANY,
        technical("lower_wick", "upper_wick"),
        lambda lower, upper: lower - upper,
        trend=0.2,
        range=0.6,
    ),
)

GEOMETRY: Final = (
    ReadingRule(
        ANY,
        ("geometry.channel_slope_atr", "geometry.channel_r2"),
        lambda slope, r2: tanh_of(slope, 0.05) * r2,
        trend=0.9,
        range=0.3,
    ),
    ReadingRule(
        ANY,
        ("geometry.channel_place", "geometry.channel_r2"),
        lambda place, r2: (2.0 * place - 1.0) * math.sqrt(max(r2, 0.0)),
        trend=0.1,
        range=-0.8,
    ),
    *(
        ReadingRule(
            ANY,
            (f"geometry.pattern.{name}", "geometry.pattern_done"),
            _shaped(way),
            trend=0.7,
            range=0.8,
            sparse=True,
        )
        for name, way in SHAPES.items()
    ),
    *(
        replace(row, vector=ANY, trend=row.trend / 2.0, range=row.range / 2.0)
        for row in READERS
        if row.reads in (technical("trend_state"), technical("bos"))
    ),
)

SEEN_BY_MACRO: Final = ("macro.", "cot.", "positioning.", "derivs.")
MACRO: Final = tuple(
    replace(row, vector=ANY)
    for row in {row.reads: row for row in (*WORTH, *POSITIONS)}.values()
    if row.reads[0].startswith(SEEN_BY_MACRO)
)
"""Money and positions as the fundamental and the sentiment analyst read them, by one weight."""

EXPERT_TABLES: Final[Mapping[str, tuple[ReadingRule, ...]]] = {
    "liquidity": LIQUIDITY,
    "microstructure": MICROSTRUCTURE,
    "macro": MACRO,
    "geometry": GEOMETRY,
}
"""The table of each expert; who is named here is one."""


def table_of(expert: str, features: Mapping[str, Feature]) -> tuple[ReadingRule, ...]:
    """Return what an expert reads of these features, companions among it."""
    table = EXPERT_TABLES[expert]
    return (*table, *_companions(features)) if expert == "macro" else table


def companions(features: Mapping[str, Feature]) -> Iterator[tuple[str, float, float]]:
    """Yield each companion that goes with this market or against it: its id, correlation, stretch.

    The stretch is the rank of its close, from -1 (the lowest of late) to +1.
    """
    for name in features:
        if name.startswith(COMPANION) and name.endswith(".correlation"):
            one = name.removesuffix(".correlation")
            together = number(features[name])
            ranked = number(features.get(f"{one}.percentile"))
            if together is not None and ranked is not None and abs(together) >= MOVES_WITH:
                yield one, together, _stretch(ranked)


def _stretch(ranked: float) -> float:
    return ranked / 50.0 - 1.0


def _companions(features: Mapping[str, Feature]) -> Iterator[ReadingRule]:
    for one, together, _ in companions(features):
        yield _companion(one, with_it=together > 0.0)


@lru_cache(maxsize=64)
def _companion(one: str, *, with_it: bool) -> ReadingRule:
    """Return the row of a companion: it counts where its change over 20 bars and its rank agree."""
    return ReadingRule(
        ANY,
        (f"{one}.change_20", f"{one}.correlation", f"{one}.percentile"),
        _beside,
        trend=0.5,
        range=0.4,
        sparse=True,
        own=_said_of(one.removeprefix(COMPANION), with_it=with_it),
    )


def _beside(change: float, together: float, ranked: float) -> float:
    return together * _stretch(ranked) if change * _stretch(ranked) > 0.0 else 0.0


def _said_of(name: str, *, with_it: bool) -> Phrase:
    went, goes = ("rose", "with") if with_it else ("fell", "against")
    return Phrase(
        f"{name.replace('_', ' ')} {went} {{n}} in 20 bars",
        f"and it goes {goes} this market, so buyers have it behind them",
        lambda change, *_: abs(change),
        "{:.2f} %",
    )
