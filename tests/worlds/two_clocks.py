"""Exports of one market under different clocks and of different brokers, made of real bars."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.worlds.price_series import times_of
from torra.market.broker_clock import ServerClock

SPREAD = 1.5e-4
"""Share of the price by which the other broker's quotes lie higher, always."""

NOISE = 3e-5
"""Share of the price by which the two brokers' quotes differ from bar to bar."""

MISSING = 0.05
"""Share of the bars that the other broker does not have."""


def later(bars: pd.DataFrame, hours: float) -> pd.DataFrame:
    """Return the bars with every time moved."""
    return bars.set_axis(times_of(bars) + pd.Timedelta(hours=hours))


def other_broker(bars: pd.DataFrame, seed: int, *, missing: float = MISSING) -> pd.DataFrame:
    """Return the bars as another broker has them: a spread, quotes of its own, holes."""
    chance = np.random.default_rng(seed)
    level = float(bars["close"].mean())
    moved = bars.copy()
    prices = ["open", "high", "low", "close"]
    # All prices of a bar alike: its high stays above its close.
    moved[prices] += level * (SPREAD + chance.normal(0.0, NOISE, (len(bars), 1)))
    return moved[chance.random(len(bars)) >= missing]


def exported(bars: pd.DataFrame, server: str) -> pd.Series:
    """Return the wall seconds of the bars on a server of a clock, by open time."""
    clock = ServerClock.parse(server)
    local = times_of(bars).tz_convert(clock.zone or "UTC").tz_localize(None) + clock.ahead
    return pd.Series(local.as_unit("s").asi8, index=bars.index)


def misread(bars: pd.DataFrame, server: str, clock: str) -> pd.DataFrame:
    """Return the bars of a server of one clock as they are read under another.

    Bars in an hour that this clock never shows or that comes twice are left out.
    """
    times = ServerClock.parse(clock).to_utc_index(exported(bars, server).to_numpy())
    sound = ~times.isna() & ~times.duplicated(keep=False)
    return bars[sound].set_axis(times[sound]).sort_index()


def terminal_export(bars: pd.DataFrame, server: str) -> str:
    """Return the bars as the text of MetaTrader 5's export on a server of a clock."""
    stamps = pd.to_datetime(exported(bars, server), unit="s")
    head = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"
    rows = [
        f"{stamp:%Y.%m.%d}\t{stamp:%H:%M:%S}\t{one.open}\t{one.high}\t{one.low}\t{one.close}"
        f"\t{one.volume:.0f}\t0\t12"
        for stamp, one in zip(stamps, bars.itertuples(), strict=True)
    ]
    return "\r\n".join([head, *rows]) + "\r\n"
