"""The evidence of the microstructure expert that its other blocks lack: the spread in its own hour.

A spread is dear or cheap for the hour of the day: every market is thin at its own time. The hour of
the week would be finer, but 750 bars of M15 hold fewer than 30 bars of any. What the order book and
the ticks say stands in the block `flow`. torra.market.spreads does the arithmetic, where a record
keeps what was seen.
"""

from __future__ import annotations

from typing import Final

from torra.evidence.expert_bars import Numbers
from torra.market.spreads import SpreadView

UNITS: Final = {
    "spread_percentile": ("of 100", 2),
    "spread_jump": ("x", 2),
    "spread_count": ("bars", 0),
}
"""Unit and decimals of each number, by name."""


def read(view: SpreadView) -> Numbers:
    """Return the numbers of the block; None of each where the deciding bar's spread is unknown."""
    hour = view.hour
    if hour is None:
        return dict.fromkeys(UNITS)
    return {
        "spread_percentile": hour.percentile,
        "spread_jump": hour.jump,
        "spread_count": float(hour.count),
    }
