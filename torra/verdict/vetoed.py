"""A vetoed opening on its way: what it would have been, followed on paper until its end.

Of a row of ticks on which the gate took an opening of one side away, the first is the opening; the
others are the same decision asked again. It has the levels of its tick, and would be closed by the
verdicts that close a trade of L1. A value; torra.tick.vetoed lives it through the bars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter

from agents.contracts import GateReason, GateRuling, OfficerReason
from torra.verdict.order_levels import Side

SIDED: Final = tuple(
    map(str, (OfficerReason.CROWDED, OfficerReason.NEGATIVE_EV, OfficerReason.JUDGE_HOLD))
)
"""Reasons that veto a side alone; whatever else lowers a multiplier stands beside them."""

RULED: Final = frozenset(
    map(
        str,
        (
            GateReason.STALE_DATA,
            GateReason.THIN_DATA,
            GateReason.WIDE_SPREAD,
            GateReason.SCHEDULED_EVENT,
        ),
    )
)
"""Reasons for which the gate's own rules veto (agents.risk_gate); others lower the multiplier."""

REFUSERS: Final[Mapping[str, str]] = {
    str(OfficerReason.CROWDED): "risk officer",
    str(OfficerReason.NEGATIVE_EV): "judge",
    str(OfficerReason.JUDGE_HOLD): "judge",
}
"""Who of a swarm takes an opening away, by the reason; else it is the gate."""


def sided(ruling: GateRuling, side: str) -> tuple[str, ...]:
    """Return for what a ruling vetoes one side alone; empty where it does not, or vetoes both."""
    if ruling.veto or side not in ruling.veto_sides:
        return ()
    return tuple(code for code in ruling.reasons if code in SIDED)


def refusal(ruling: GateRuling, side: str) -> str:
    """Return for what a swarm's judge or officer refuses openings of a side; "" where none does.

    A judge that takes no side vetoes both; where a rule of the gate vetoes as well, that counts.
    """
    if reasons := sided(ruling, side):
        return reasons[0]
    on_hold = ruling.veto and str(OfficerReason.JUDGE_HOLD) in ruling.reasons
    return str(OfficerReason.JUDGE_HOLD) if on_hold and RULED.isdisjoint(ruling.reasons) else ""


@dataclass(frozen=True, slots=True)
class VetoedOpening:
    """An opening that the gate took away, or a swarm's judge or risk officer.

    `sid` is the id that its signal would have had; prices are those that the order would have had.
    `lived` is the open time of the last bar that it was followed through. `price` and `opened_at`
    are those of its fill, None before it; `closing_at` is when an opposite verdict of L1 asked for
    its end. `reason` is the deny reason, or that of a judge or an officer (REFUSERS).
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
        plain: dict[str, Any] = ADAPTER.dump_python(self, mode="json")
        return plain

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> VetoedOpening:
        """Return the opening that `as_dict` described; ValueError for what is none."""
        return ADAPTER.validate_python(stored)


ADAPTER: Final = TypeAdapter(VetoedOpening)
