"""What judges a hosted stream: its subject for the scorecard, and what its scorer told of outcomes.

A hosted stream sends nothing, so no trade of its own is on record. Its scorecard is that of the
verdicts that Torra read, on the bars that were handed over. What the host's own trades came to is
counted from when it was told, and stands beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from instance_database import Database
from torra.config import Profile, validate
from torra.desk.promotion import PromotionSubject
from torra.errors import ConfigError
from torra.evaluation.wording import count
from torra.store import hosted as hosted_table
from torra.store import ticks as claim_table
from torra.store.hosted import hosted_instance

SIDES: Final = {"BUY": 1, "SELL": -1}


def subject_of(database: Database, name: str) -> PromotionSubject:
    """Return a hosted stream as the scorecard knows it, with the profile that counted last.

    Raises ConfigError naming the streams that there are.
    """
    streams = hosted_table.hosted_streams(database)
    if name not in streams:
        names = f"there are {', '.join(streams)}" if streams else "there is none yet"
        raise ConfigError(f"{name} is no stream of another scorer on this home: {names}")
    applied = claim_table.applied_profile(database, name)
    if applied is None:
        raise ConfigError(f"{name} has no profile on record")
    profile = validate(Profile, json.loads(applied["profile"]), f"the profile of {name}")
    # One scorer's streams may lie on one home with a desk's profile of the same name.
    called = ":".join(name.split(":")[:2])
    return PromotionSubject(called, profile, (hosted_instance(name, streams[name]),))


@dataclass(frozen=True, slots=True)
class ReportedOutcomes:
    """What a host told of its bars: how many, its trades with their sum in R, by the agents' side.

    `along` and `against` are (trades, R) where the agents pushed the way of the trade, and the
    other way; where they did not push it is in neither.
    """

    bars: int
    trades: int
    r: float
    along: tuple[int, float]
    against: tuple[int, float]

    @property
    def says(self) -> str:
        """One or two sentences for a trader."""
        if not self.bars:
            return "Your scorer told no outcome yet: overlay.outcome(key, verdict=..., r=...)."
        whole = (
            f"Your scorer told the outcome of {count(self.bars, 'bar')}: "
            f"{count(self.trades, 'trade')}, {self.r:+.2f} R in sum."
        )
        if not self.trades:
            return whole
        (with_them, gained), (other, lost) = self.along, self.against
        return (
            f"{whole} On {with_them:,} of them the agents pushed its way: {gained:+.2f} R; on "
            f"{other:,} they pushed the other way: {lost:+.2f} R."
        )


def reported_outcomes(rows: Iterable[Mapping[str, Any]]) -> ReportedOutcomes:
    """Count outcomes; a row has verdict, r, consensus and l1_consensus."""
    bars = list(rows)
    trades = [row for row in bars if row["r"] is not None and row["verdict"] in SIDES]

    def pushed(way: int) -> tuple[int, float]:
        results = [
            row["r"]
            for row in trades
            if (row["consensus"] - row["l1_consensus"]) * SIDES[row["verdict"]] * way > 0
        ]
        return len(results), round(sum(results), 8)

    total = round(sum((row["r"] for row in trades), 0.0), 8)
    return ReportedOutcomes(len(bars), len(trades), total, pushed(1), pushed(-1))
