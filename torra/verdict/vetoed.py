"""A vetoed opening on its way: what it would have been, followed on paper until its end.

Of a row of ticks on which the gate took an opening of one side away, the first is the opening; the
others are the same decision asked again. It has the levels of its tick, and would be closed by the
verdicts that close a trade of L1. A value; torra.tick.vetoed lives it through the bars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from agents.contracts import GateRuling, OfficerReason
from torra.clock import iso, parse
from torra.verdict.order_levels import Side

SIDED: Final = tuple(
    map(str, (OfficerReason.CROWDED, OfficerReason.NEGATIVE_EV, OfficerReason.JUDGE_HOLD))
)
"""Reasons that veto a side alone; whatever else lowers a multiplier stands beside them."""

TIMES: Final = ("bar_time", "decided_at", "lived", "opened_at", "closing_at")


def sided(ruling: GateRuling, side: str) -> tuple[str, ...]:
    """Return for what a ruling vetoes one side alone; empty where it does not, or vetoes both."""
    if ruling.veto or side not in ruling.veto_sides:
        return ()
    return tuple(code for code in ruling.reasons if code in SIDED)


@dataclass(frozen=True, slots=True)
class VetoedOpening:
    """An opening that the gate took away.

    `sid` is the id that its signal would have had; prices are those that the order would have had.
    `lived` is the open time of the last bar that it was followed through. `price` and `opened_at`
    are those of its fill, None before it; `closing_at` is when an opposite verdict of L1 asked for
    its end. `reason` is the deny reason, or of a veto of one side why that side was vetoed (SIDED).
    """

    sid: str
    instance: str
    symbol: str
    timeframe: str
    bar_time: datetime
    side: Side
    decided_at: datetime
    entry: float
    stop: float
    target: float
    lived: datetime
    reason: str
    price: float | None = None
    opened_at: datetime | None = None
    closing_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON; `of` makes the same of it again."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return told | {name: told[name] and iso(told[name]) for name in TIMES}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> VetoedOpening:
        """Return the opening that `as_dict` described."""
        return cls(**{**told, **{name: told[name] and parse(told[name]) for name in TIMES}})
