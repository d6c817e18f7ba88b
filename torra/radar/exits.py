"""What speaks against holding a position on, as codes: facts beside Torra's own exit, never a verb.

Pure. A scan and the measurement of what each code was worth (docs.radar_worth) ask the same
function.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from torra.verdict.risk_engine import OPENS, PositionSide
from torra.verdict.sentiment_rules import Verdict
from torra.verdict.trade_outcome import gain

AGAINST: Final = 0.05
"""Size of a consensus from which it leans against a position."""

CLOSE_BY: Final = 0.25
"""Share of the way from entry to stop, or to target, from which a price is close to it."""

EVENT_MINUTES: Final = 240.0

LOSS_NEAR: Final = 0.8
"""Share of a day's loss cap from which it is near."""


class PositionState(NamedTuple):
    """A position as one bar's close finds it; None is not known.

    `stop_left` and `target_left` are shares of the way from entry: 1 at the entry, 0 at the level.
    """

    side: PositionSide
    verdict: Verdict
    consensus: float | None
    stop_left: float
    target_left: float
    regime: str
    regime_before: str
    event_minutes: float | None
    stale: bool
    loss_share: float


def way_left(
    side: PositionSide, entry: float, price: float, stop: float, target: float, planned_stop: float
) -> tuple[float, float]:
    """Return the shares of the ways to stop and target that a price leaves; 0 for no way."""
    risk = gain(side, planned_stop, entry)
    reward = gain(side, entry, target)
    return (
        gain(side, stop, price) / risk if risk > 0.0 else 0.0,
        gain(side, price, target) / reward if reward > 0.0 else 0.0,
    )


def exit_codes(held: PositionState) -> tuple[str, ...]:
    """Return the codes that hold, in the order of radar.csv."""
    sign = 1.0 if held.side == "LONG" else -1.0
    holds = {
        "OPPOSITE_VERDICT": held.verdict != "HOLD" and OPENS[held.verdict] != held.side,
        "CONSENSUS_AGAINST": held.consensus is not None and sign * held.consensus < -AGAINST,
        "NEAR_STOP": held.stop_left <= CLOSE_BY,
        "NEAR_TARGET": held.target_left <= CLOSE_BY,
        "EVENT_AHEAD": held.event_minutes is not None and held.event_minutes <= EVENT_MINUTES,
        "STALE_DATA": held.stale,
        "REGIME_TURNED": bool(held.regime_before) and held.regime != held.regime_before,
        "LOSS_CAP_NEAR": held.loss_share >= LOSS_NEAR,
    }
    return tuple(code for code, yes in holds.items() if yes)
