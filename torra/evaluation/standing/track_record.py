"""The track record of a swarm's seats as a tick has it: the query, and the numbers by value.

The numbers are the block `standing` of the evidence, by the part of the id after `standing.`:
`<agent>_hit_share` in the regime of now, `win_share_<k>` of the judge's chances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from agent_config import AgentSettings
from torra.evaluation.standing.past_calls import HitRates, WinRateByBin

LATE: Final = "standing:late"
"""Flag of a tick whose past had not been counted yet: its numbers are not known."""


@dataclass(frozen=True, slots=True)
class TrackRecordQuery:
    """The query of a tick: which stream, which regime, known until when; the close of now."""

    instance: str
    timeframe: str
    regime: str
    as_of: datetime
    close: float


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """What a tick knows of its seats' past; nothing while no number is known."""

    numbers: Mapping[str, float | None] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to put on record."""
        return bool(self.numbers or self.flags)


NO_RECORD: Final = TrackRecord()
TOO_LATE: Final = TrackRecord(flags=(LATE,))

TrackRecordOf = Callable[[TrackRecordQuery], TrackRecord]
"""Tells a tick what its seats' past came to; it raises nothing and waits for nothing."""


def wanted(agents: AgentSettings) -> bool:
    """Tell whether the ticks of a profile have their seats' track record at all."""
    return agents.seats_experts() and agents.standing == "on"


def track_record(book: HitRates, chances: WinRateByBin, query: TrackRecordQuery) -> TrackRecord:
    """Return what is known before a tick; no number while all are None."""
    numbers = book.hit_shares(query.regime) | chances.win_shares(query.as_of)
    known = any(share is not None for share in numbers.values())
    return TrackRecord(numbers) if known else NO_RECORD
