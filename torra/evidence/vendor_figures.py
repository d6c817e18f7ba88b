"""What a vendor says of a company beside its ratios: its peers' prices, ratings, the last surprise.

All of it is a snapshot of now, known from the moment at which this desk first saw it; today's peers
say nothing of an earlier day. `beside` takes what was known at a moment of the company and of its
peers:

    to peers     a ratio over the median of the peers' own; three of them at least, all above 0
    rating       (2 strong buys + buys - sells - 2 strong sells) / (2 analysts), -1 to +1
    surprise     percent by which the last quarter's earnings beat their estimate

Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from statistics import median
from typing import Final

LEAST_PEERS: Final = 3
"""Peers of whom a ratio must be known: the middle of two is no middle."""

MOST_TIMES: Final = 1e6
"""No ratio is so many times that of the peers."""

OF_PEERS: Final = ("pe", "pb")
"""Ratios that are held against the peers'."""

QUARTERS: Final = range(1, 5)
"""The quarters that a vendor tells, 1 is the newest."""

NEAR_QUARTER: Final = timedelta(days=200)
"""How old the last quarter may be whose surprise is told, and a count of ratings."""

SURPRISE: Final = "earnings_surprise_pct"
RATING: Final = "analyst_rating"
BESIDE: Final = (*(f"{name}_to_peers" for name in OF_PEERS), RATING, SURPRISE)
"""The names of what is told."""

PEER: Final = "peer."
COUNTS: Final = {"strong_buy": 2.0, "buy": 1.0, "hold": 0.0, "sell": -1.0, "strong_sell": -2.0}

Figures = Mapping[str, float]


def peers_of(known: Figures) -> tuple[str, ...]:
    """Return the tickers of a company's peers, in the vendor's order."""
    names = sorted((place, name) for name, place in known.items() if name.startswith(PEER))
    return tuple(name.removeprefix(PEER) for _, name in names)


def beside(known: Figures, peers: Mapping[str, Figures], as_of: datetime) -> dict[str, float]:
    """Return what is known beside a company's own ratios; what is not known is left out."""
    return dict(_beside(known, peers, as_of))


def _beside(
    known: Figures, peers: Mapping[str, Figures], as_of: datetime
) -> Iterator[tuple[str, float]]:
    for name in OF_PEERS:
        theirs = [one[name] for one in peers.values() if one.get(name, 0.0) > 0.0]
        own = known.get(name, 0.0)
        if own > 0.0 and len(theirs) >= LEAST_PEERS:
            times = own / median(theirs)
            if times <= MOST_TIMES:
                yield f"{name}_to_peers", times
    counts = {name: known.get(f"rating.{name}") for name in COUNTS}
    told = {name: count for name, count in counts.items() if count is not None}
    analysts = sum(told.values())
    fresh = _is_near(known.get("rating.period"), as_of)
    if fresh and len(told) == len(COUNTS) and analysts > 0.0:
        leaning = sum(COUNTS[name] * count for name, count in told.items())
        yield RATING, leaning / (2.0 * analysts)
    # The newest quarter may have an estimate alone.
    for quarter in QUARTERS:
        surprise = known.get(f"earnings.{quarter}.surprise_pct")
        if surprise is not None:
            if _is_near(known.get(f"earnings.{quarter}.period"), as_of):
                yield SURPRISE, surprise
            return


def _is_near(period: float | None, as_of: datetime) -> bool:
    """Tell whether a quarter, as 20251231, ended lately."""
    if period is None:
        return False
    try:
        ended = datetime.strptime(f"{period:.0f}", "%Y%m%d").replace(tzinfo=as_of.tzinfo)
    except ValueError:
        return False
    return timedelta() <= as_of - ended <= NEAR_QUARTER
