"""Puts bars of a longer timeframe together from those of a shorter one, on the UTC grid.

A bar exists only where its parts are there, so nothing of the future and no half bar gets in. Of M1
a fifth of the parts may be missing: most sources write no bar for a minute without a trade.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from torra.clock import duration
from torra.market.spreads import SPREAD

AGGREGATES: Final = {
    "open": "first",
    "high": "max",
    "low": "min",
    "close": "last",
    "volume": "sum",
}
"""How the columns of several bars become those of one."""

MINUTES: Final = "M1"
LEAST_MINUTES: Final = 0.8
"""Share of its minutes that a bar must have."""


def aggregate(frame: pd.DataFrame, shorter: str, longer: str) -> pd.DataFrame:
    """Return the bars of `longer` whose parts of `shorter` are there; both on the UTC grid.

    The spread of such a bar is that of its last part.
    """
    step = duration(longer)
    starts = pd.DatetimeIndex(frame.index).floor(pd.Timedelta(step))
    groups = frame.groupby(starts, sort=True)
    columns = {name: how for name, how in AGGREGATES.items() if name in frame.columns}
    parts = step // duration(shorter)
    # A span with a hole gives no bar: half a bar would be a wrong one.
    whole = groups.size() >= (LEAST_MINUTES * parts if shorter == MINUTES else parts)
    if shorter == MINUTES and len(whole):
        # The first span may begin before the file, and the last one go on after it.
        end = frame.index[-1] + pd.Timedelta(duration(shorter))
        whole &= pd.DatetimeIndex(whole.index) >= frame.index[0]
        whole &= pd.DatetimeIndex(whole.index) <= end - pd.Timedelta(step)
    bars = groups.agg(columns)[whole]
    if SPREAD in frame.columns:
        # Not "last", which would look past a spread that is not known to an older one.
        bars[SPREAD] = groups[SPREAD].tail(1).to_numpy()[whole]
    bars.index = bars.index.rename(frame.index.name)
    return bars[list(frame.columns)]
