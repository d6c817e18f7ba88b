"""What a vendor says of a company beside its ratios: its peers' prices, ratings, the last surprise.

All of it is a snapshot of now, known from the moment at which this desk first saw it; today's peers
say nothing of an earlier day. `read` takes what was known at a moment of the company and of its
peers:

    to peers     a ratio over the median of the peers' own; three of them at least, all above 0
    rating       (2 strong buys + buys - sells - 2 strong sells) / (2 analysts), -1 to +1
    surprise     percent by which the last quarter's earnings beat their estimate

Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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

PEER: Final = "peer."
COUNTS: Final = {"strong_buy": 2.0, "buy": 1.0, "hold": 0.0, "sell": -1.0, "strong_sell": -2.0}

Figures = Mapping[str, float]


def peers_of(known: Figures) -> tuple[str, ...]:
    """Return the tickers of a company's peers, in the vendor's order."""
    names = sorted((place, name) for name, place in known.items() if name.startswith(PEER))
    return tuple(name.removeprefix(PEER) for _, name in names)


def read(known: Figures, peers: Mapping[str, Figures], as_of: datetime) -> dict[str, float]:
    """Return what is known beside a company's own ratios; what is not known is left out."""
    figures = {}
    for name in OF_PEERS:
        ratios = [peer[name] for peer in peers.values() if peer.get(name, 0.0) > 0.0]
        own = known.get(name, 0.0)
        times = own / median(ratios) if own > 0.0 and len(ratios) >= LEAST_PEERS else math.inf
        if times <= MOST_TIMES:
            figures[f"{name}_to_peers"] = times
    counts = [known.get(f"rating.{name}") for name in COUNTS]
    ratings = [count for count in counts if count is not None]
    analysts = sum(ratings)
    if _is_near(known.get("rating.period"), as_of) and ratings == counts and analysts > 0.0:
        lean = sum(weight * count for weight, count in zip(COUNTS.values(), ratings, strict=True))
        figures["analyst_rating"] = lean / (2.0 * analysts)
    # The newest quarter may have an estimate alone.
    surprises = (
        (quarter, surprise)
        for quarter in QUARTERS
        if (surprise := known.get(f"earnings.{quarter}.surprise_pct")) is not None
    )
    quarter, surprise = next(surprises, (0, 0.0))
    if _is_near(known.get(f"earnings.{quarter}.period"), as_of):
        figures["earnings_surprise_pct"] = surprise
    return figures


def _is_near(period: float | None, as_of: datetime) -> bool:
    """Tell whether a quarter, as 20251231, ended lately."""
    if period is None:
        return False
    try:
        ended = datetime.strptime(f"{period:.0f}", "%Y%m%d").replace(tzinfo=as_of.tzinfo)
    except ValueError:
        return False
    return timedelta() <= as_of - ended <= NEAR_QUARTER
