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

import math
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
    panic, liquidated, funding = (highest(features, *row) for row in (PANIC, LIQUIDATED, FUNDING))
    slope, slope_rank = (highest(features, name) for name in SLOPE)
    inverted = slope < 0.0 and slope_rank <= 100.0 - settings.panic_percentile
    panics = inverted or panic >= settings.panic_percentile
    flushed = liquidated >= settings.liquidations_percentile
    triage = features.get(TRIAGE)
    worn = triage is not None and EXHAUSTED in str(triage.value).split()
    crowded = _crowded(funding, settings.crowded_percentile)
    reasons = {
        OfficerReason.MACRO_PANIC: panics,
        OfficerReason.LIQUIDATIONS: flushed,
        OfficerReason.EXHAUSTION: worn,
        OfficerReason.CROWDED: bool(crowded),
    }
    # A bar at which nothing is odd has the feature without a word: that is data.
    silent = {
        PANIC[0]: math.isnan(panic) and math.isnan(slope_rank),
        LIQUIDATED[0]: math.isnan(liquidated),
        FUNDING[0]: math.isnan(funding),
        TRIAGE: triage is None,
    }
    return RiskOverlay(
        storm=min(
            settings.panic_multiplier if panics else 1.0,
            settings.liquidations_multiplier if flushed else 1.0,
        ),
        worn=settings.exhaustion_multiplier if worn else 1.0,
        veto_sides=crowded,
        reasons=tuple(str(reason) for reason, holds in reasons.items() if holds),
        flags=tuple(f"silent:{name}" for name, unknown in silent.items() if unknown),
    )


def highest(features: Mapping[str, Feature], *names: str) -> float:
    """Return the highest of some numbers; NaN, which is beyond no limit, where none is known."""
    known = [value for name in names if (value := number(features, name)) is not None]
    return max(known, default=math.nan)


def _crowded(rank: float, limit: float) -> tuple[str, ...]:
    """Return the sides that are not opened: who pays to hold a side is on it already."""
    sides = {"BUY": rank >= limit, "SELL": rank <= 100.0 - limit}
    return tuple(side for side, crowded in sides.items() if crowded)
