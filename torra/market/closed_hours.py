"""How long a market may bring no bar because it is closed: its weekend, and its longest pause.

No calendar of sessions and holidays is kept: of each class of assets a bound is known. Pure
functions of times (aware, UTC).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from torra.config import Profile
from torra.errors import ConfigError

SILENT_BARS: Final = 2.5
"""Bars of an open market that are missing when its feed counts as silent, not as late."""

CLOSED_FOR: Final[Mapping[str, timedelta]] = {
    "crypto": timedelta(hours=2),
    "fx": timedelta(hours=6),
    "gold": timedelta(hours=6),
    "oil": timedelta(hours=6),
}
"""Time of an open week without a single bar that is no pause of the market, by asset class."""

CLOSED_AT_MOST: Final = timedelta(hours=48)
"""The same for other classes, whose sessions are not known: nights and a holiday are shorter."""

WEEKEND: Final = (timedelta(days=4, hours=20), timedelta(days=6, hours=23))
"""Begin and end of a weekend, from Monday 00:00 UTC: from the earliest close to the latest open."""

WEEK: Final = timedelta(days=7)


def closed_at_most(
    profile: Profile, symbol: str, step: timedelta, since: datetime, now: datetime
) -> timedelta:
    """Return how long a feed that answers may bring no bar: its market is closed, or the week is.

    `since` is the close of the newest bar, `step` the length of one.
    """
    least = CLOSED_FOR.get(_asset(profile, symbol), CLOSED_AT_MOST)
    return max(least, step * SILENT_BARS) + closed_weekends(profile, symbol, since, now)


def closed_weekends(profile: Profile, symbol: str, since: datetime, now: datetime) -> timedelta:
    """Return how much of a time a symbol's market is closed for the weekend."""
    return timedelta() if _asset(profile, symbol) == "crypto" else weekends(since, now)


def _asset(profile: Profile, symbol: str) -> str:
    try:
        return profile.symbol(symbol).asset
    except ConfigError:
        return ""


def weekends(begin: datetime, end: datetime) -> timedelta:
    """Return how much of a time lies in weekends."""
    total, monday = timedelta(), begin - timedelta(days=begin.weekday())
    monday = monday.replace(hour=0, minute=0, second=0, microsecond=0)
    while monday < end:
        first, last = max(begin, monday + WEEKEND[0]), min(end, monday + WEEKEND[1])
        total += max(timedelta(), last - first)
        monday += WEEK
    return total
