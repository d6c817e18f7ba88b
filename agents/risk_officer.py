"""The risk officer's rows: fixed arithmetic beside the gate's rules, where a swarm sits.

Each row reads one kind of number and does one thing, as the section `gate` of a profile says:

    MACRO_PANIC     VIX or DVOL at panic_percentile of its own past, or the 10-year less the 2-year
                    US yield below 0 and at 100 less that: x panic_multiplier
    LIQUIDATIONS    longs or shorts liquidated at liquidations_percentile: x liquidations_multiplier
    EXHAUSTION      the bar went beyond a swing on wide range and volume and closed back inside:
                    x exhaustion_multiplier
    CROWDED         funding at crowded_percentile: no BUY; at 100 less that: no SELL

Limits are ranks of a number's own past and no dollars: scales change by venue and year. High
volatility, panic, liquidations and the regime's budget read the same storm, so of them the smallest
factor counts and not their product. A row without data is silent, which is flagged. Pure functions;
nothing raises. (Document 003, the CRO; docs/agents.md.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from agent_config import GateSettings

from .contracts import Feature, OfficerReason
from .features import number

PANIC: Final = ("macro.vix_rank", "derivs.dvol_rank", "companion.vix.percentile")
SLOPE: Final = ("macro.slope", "macro.slope_rank")
LIQUIDATED: Final = ("derivs.long_liquidations_rank", "derivs.short_liquidations_rank")
FUNDING: Final = ("derivs.funding_rank",)
TRIAGE: Final = "market.triage"
EXHAUSTED: Final = "exhaustion"


class RiskOverlay(NamedTuple):
    """What the rows come to.

    `storm` is the smallest factor of panic and liquidations, `worn` that of exhaustion, both in
    [0, 1]; `veto_sides` are the sides, BUY or SELL, that are not opened; `flags` are
    `silent:<feature>` for each row without data.
    """

    storm: float = 1.0
    worn: float = 1.0
    veto_sides: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


NO_ROWS: Final = RiskOverlay()
"""Of a desk without a risk officer."""


def rows(features: Mapping[str, Feature], settings: GateSettings) -> RiskOverlay:
    """Return what the rows say of one tick."""
    panic = _highest(features, PANIC)
    liquidated = _highest(features, LIQUIDATED)
    funding = _highest(features, FUNDING)
    panics = panic is not None and panic >= settings.panic_percentile
    panics = panics or _inverted(features, settings.panic_percentile)
    flushed = liquidated is not None and liquidated >= settings.liquidations_percentile
    worn = EXHAUSTED in _words(features)
    crowded = _crowded(funding, settings.crowded_percentile)
    told = {
        OfficerReason.MACRO_PANIC: panics,
        OfficerReason.LIQUIDATIONS: flushed,
        OfficerReason.EXHAUSTION: worn,
        OfficerReason.CROWDED: bool(crowded),
    }
    # A bar at which nothing is odd has the feature without a word: that is data.
    known = {
        PANIC[0]: number(features, SLOPE[1]) if panic is None else panic,
        LIQUIDATED[0]: liquidated,
        FUNDING[0]: funding,
        TRIAGE: features.get(TRIAGE),
    }
    return RiskOverlay(
        storm=min(
            settings.panic_multiplier if panics else 1.0,
            settings.liquidations_multiplier if flushed else 1.0,
        ),
        worn=settings.exhaustion_multiplier if worn else 1.0,
        veto_sides=crowded,
        reasons=tuple(str(reason) for reason, holds in told.items() if holds),
        flags=tuple(f"silent:{name}" for name, value in known.items() if value is None),
    )


def _highest(features: Mapping[str, Feature], names: tuple[str, ...]) -> float | None:
    known = [value for name in names if (value := number(features, name)) is not None]
    return max(known, default=None)


def _inverted(features: Mapping[str, Feature], limit: float) -> bool:
    """Tell whether the yield curve is inverted, and more so than in most of its own past."""
    slope, rank = (number(features, name) for name in SLOPE)
    return slope is not None and rank is not None and slope < 0.0 and rank <= 100.0 - limit


def _crowded(rank: float | None, limit: float) -> tuple[str, ...]:
    """Return the sides that are not opened: who pays to hold a side is on it already."""
    if rank is None:
        return ()
    longs, shorts = rank >= limit, rank <= 100.0 - limit
    return (*(("BUY",) if longs else ()), *(("SELL",) if shorts else ()))


def _words(features: Mapping[str, Feature]) -> list[str]:
    told = features.get(TRIAGE)
    return str(told.value).split() if told is not None and told.value else []
