"""The rules in the seats of a swarm's experts: a report over the scores, a lean, what is odd.

An expert reads the table that `expert_readings` has for it, and moves the scores towards what that
says, never past it. `bias` is its side; without one, because the scores have said it already, the
way in which its evidence leans on the whole by `LEANS` or more.

An anomaly is named where the evidence has it, and what it was seen in is cited. A pattern is named
only where code found it, a level only as code has it. Where trading is dear for its hour, the
microstructure expert is sure of nothing.

Pure functions; nothing raises, and nobody else is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from agents.arguments import way
from agents.contracts import NO_ANOMALY, PATTERNS, WALL_EVENTS, Feature, Request
from torra.providers.rules.expert_readings import ANY, SHAPES, companions, table_of
from torra.providers.rules.opinions import Reply, cite, focus, opinion
from torra.providers.rules.readings import (
    CLOSE,
    NAMED,
    Reading,
    TrendStrength,
    mean_lean,
    number,
    readings,
    regime,
    word,
)

LEANS: Final = 0.1
"""Mean lean from which evidence leans at all."""

WORDS: Final[Mapping[int, str]] = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}

TREND_IN: Final[Mapping[str, float]] = {
    "trend_up": 1.0,
    "trend_down": 1.0,
    "range": 0.0,
    "quiet": 0.0,
}
"""How much of a trend a regime is; a volatile one is half of it, as without a name."""

TRIAGE: Final = "market.triage"
FRESH_BARS: Final = 2.0
"""Age up to which a sweep is what is odd now."""

CLEAR_DELTA: Final = 0.05
"""Delta of 20 bars from which its divergence is one."""

ONE_SIDED: Final = 0.7
"""Imbalance of the book that is one (document 003: 70 %)."""

WALL: Final = 0.5
WALL_PRESSED: Final = 0.1
"""A wall is a book that leans by the first, was changed WALL_EVENTS times or more within the bar,
and against which the bar's own moves went by so much more than half of them."""

SHARE_DECIMALS: Final = 4
DEAR_RANK: Final = 95.0
DEAR_JUMP: Final = 2.0
SLIPS_ATR: Final = 0.25
"""A market is fragile where the spread ranks so high in its hour and is so many times the usual, or
where one lot slips so far."""

PANIC_RANK: Final = 95.0
"""Rank of fear from which there is panic."""

TOGETHER: Final = 0.5
APART: Final = 0.6
"""A companion diverges that moves with this market by so much and stands at such an end of its own
range while this market stands on the other side of its mean."""

NARROW: Final = 0.3
LEVEL: Final = 0.02
"""Range of 20 bars over that of 100, and ATR a bar of the channel, up to which price is held in."""

LEVELS: Final = 4
"""Levels that are named."""

FEARS: Final = ("derivs.dvol_rank", "derivs.put_call_rank", "macro.vix_rank")

Odd = tuple[str, tuple[str, ...]]
"""An anomaly, and the features in which it was seen."""


def expert(request: Request) -> Reply:
    """Return what an expert finds; it abstains where its table reads nothing."""
    now, role = trend_of(request.features), request.role
    found = readings(request.features, now, (ANY,), table_of(role.id, request.features)).get(ANY)
    heard = dict.fromkeys(focus(request), found) if found else {}
    reply = opinion(request, now, heard, overlay=True)
    if reply["abstained"]:
        return reply | _named(request, NO_ANOMALY, 0)
    if role.id == "microstructure" and _is_dear(request.features):
        reply["confidence"] = "low"
    side = way(reply["adjustments"], role.focus) or _lean(found or ())
    odd, seen_in = next(ODDITIES[role.id](request.features), (NO_ANOMALY, ()))
    cited = {one["id"] for one in reply["evidence"]}
    reply["evidence"] += cite(request, (name for name in seen_in if name not in cited))
    return reply | _named(request, odd, side)


def trend_of(features: Mapping[str, Feature]) -> TrendStrength:
    """Return how much of a trend there is: by ADX where it is shown, else by the regime's name."""
    known = regime(features)
    named = TREND_IN.get(word(features.get(NAMED)) or "")
    return known if known.adx is not None or named is None else TrendStrength(named, None)


def _lean(found: Sequence[Reading]) -> int:
    """Return the side to which readings lean on the whole, 0 for neither."""
    mean = mean_lean(found)
    return 0 if abs(mean) < LEANS else 1 if mean > 0.0 else -1


def _named(request: Request, odd: str, side: int) -> dict[str, Any]:
    """Return what a finding has beside a report."""
    told: dict[str, Any] = {"anomaly": odd, "bias": WORDS[side]}
    if request.role.id != "geometry":
        return told
    return told | {"pattern": _pattern(request.features, side), "levels": _levels(request.features)}


# --- geometry -------------------------------------------------------------------------------------


def _found(features: Mapping[str, Feature]) -> list[str]:
    """Return the patterns that code found."""
    return [name for name in PATTERNS if number(features.get(f"geometry.pattern.{name}")) == 1.0]


def _pattern(features: Mapping[str, Feature], side: int) -> str:
    """Return the pattern of the expert's own side, else the only one."""
    found = _found(features)
    backing = [name for name in found if SHAPES[name] == side]
    if not backing and len(found) == 1:
        backing = found
    return backing[0] if backing else NO_ANOMALY


def _levels(features: Mapping[str, Feature]) -> list[float]:
    """Return the prices of the nearest levels, nearest first."""
    close = number(features.get(CLOSE))
    named = (features[name] for name in sorted(features) if name.startswith("geometry.level."))
    prices = dict.fromkeys(price for one in named if (price := number(one)) is not None)
    if close is None:
        return list(prices)[:LEVELS]
    return sorted(prices, key=lambda price: abs(price - close))[:LEVELS]


# --- what is odd ----------------------------------------------------------------------------------


def _of_liquidity(features: Mapping[str, Feature]) -> Iterator[Odd]:
    low, high, age, delta, divergence = _numbers(
        features, "liquidity", "sweep_low", "sweep_high", "sweep_age", "delta20", "divergence"
    )
    if divergence and delta is not None and abs(delta) >= CLEAR_DELTA:
        yield "whale_cvd_divergence", ("liquidity.divergence", "liquidity.delta20")
    if (low or high) and age is not None and age <= FRESH_BARS:
        taken = "liquidity.sweep_low" if low else "liquidity.sweep_high"
        yield "stop_sweep", (taken, "liquidity.sweep_age")


def _of_microstructure(features: Mapping[str, Feature]) -> Iterator[Odd]:
    book, share, events = _numbers(features, "flow", "book_imbalance", "up_share", "book_events")
    if book is not None and share is not None and events is not None and events >= WALL_EVENTS:
        # rounded as it is shown, so that the limit itself counts
        pressed = round(math.copysign(1.0, book) * (0.5 - share), SHARE_DECIMALS)
        if abs(book) >= WALL and pressed >= WALL_PRESSED:
            yield "fake_wall", ("flow.book_imbalance", "flow.book_events", "flow.up_share")
    if book is not None and abs(book) >= ONE_SIDED:
        yield "imbalance", ("flow.book_imbalance",)
    if _is_dear(features):
        yield "fragile", ("micro.spread_percentile", "micro.spread_jump", "flow.slippage_atr")


def _is_dear(features: Mapping[str, Feature]) -> bool:
    """Tell whether trading costs so much now that a move says little."""
    ranked, jump = _numbers(features, "micro", "spread_percentile", "spread_jump")
    (slips,) = _numbers(features, "flow", "slippage_atr")
    jumped = ranked is not None and jump is not None and ranked >= DEAR_RANK and jump >= DEAR_JUMP
    return jumped or (slips is not None and slips >= SLIPS_ATR)


def _of_macro(features: Mapping[str, Feature]) -> Iterator[Odd]:
    afraid = [name for name in FEARS if (number(features.get(name)) or 0.0) >= PANIC_RANK]
    if afraid:
        yield "options_panic", tuple(afraid)
    close, mean = (number(features.get(name)) for name in (CLOSE, "technical.sma50"))
    if close is None or mean is None:
        return
    for one, together, stretch in companions(features):
        says = math.copysign(1.0, together) * stretch
        if abs(together) >= TOGETHER and abs(says) >= APART and says * (close - mean) < 0.0:
            yield "macro_divergence", (f"{one}.percentile", f"{one}.correlation", CLOSE)


def _of_geometry(features: Mapping[str, Feature]) -> Iterator[Odd]:
    place, slope, narrow, done = _numbers(
        features, "geometry", "channel_place", "channel_slope_atr", "compression", "pattern_done"
    )
    triage = (word(features.get(TRIAGE)) or "").split()
    broke = number(features.get("technical.bos")) or 0.0
    found = [f"geometry.pattern.{name}" for name in _found(features)]
    leans = {SHAPES[name] for name in _found(features)}
    if "exhaustion" in triage and place is not None and place != 0.5:
        name = "exhaustion_top" if place > 0.5 else "capitulation_bottom"
        yield name, (TRIAGE, "geometry.channel_place")
    if "breakout" in triage and broke:
        yield "clean_breakout", (TRIAGE, "technical.bos")
    if done and broke and leans == {-broke}:
        yield "fake_breakout", (*found, "geometry.pattern_done", "technical.bos")
    if len(leans) == len((1, -1)):
        yield "geometric_trap", tuple(found)
    if narrow is not None and slope is not None and narrow <= NARROW and abs(slope) <= LEVEL:
        yield "accumulation_range", ("geometry.compression", "geometry.channel_slope_atr")


def _numbers(features: Mapping[str, Feature], block: str, *names: str) -> list[float | None]:
    return [number(features.get(f"{block}.{name}")) for name in names]


ODDITIES: Final[Mapping[str, Callable[[Mapping[str, Feature]], Iterator[Odd]]]] = {
    "liquidity": _of_liquidity,
    "microstructure": _of_microstructure,
    "macro": _of_macro,
    "geometry": _of_geometry,
}
"""What is odd for each expert, what counts most first."""
