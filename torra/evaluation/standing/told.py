"""What a tick is told of its seats' past: the question, and the numbers by value.

The numbers are the block `standing` of the evidence, by the part of the id after `standing.`:
`<agent>_hit_share` in the regime of now, `win_share_<k>` of the judge's chances, `trust_<expert>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from agent_config import AgentSettings
from torra.evaluation.standing.past_calls import CallBook, Chances

LATE: Final = "standing:late"
"""Flag of a tick whose past had not been counted yet: its numbers are not known."""

EARNED: Final = "earned"


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of a tick: which stream, which regime, known until when; the close of now."""

    instance: str
    timeframe: str
    regime: str
    as_of: datetime
    close: float


@dataclass(frozen=True, slots=True)
class StandingTold:
    """What a tick was told; nothing while no number is known."""

    numbers: Mapping[str, float | None] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to put on record."""
        return bool(self.numbers or self.flags)


NOTHING: Final = StandingTold()
TOO_LATE: Final = StandingTold(flags=(LATE,))

PastOf = Callable[[Asked], StandingTold]
"""Tells a tick what its seats' past came to; it raises nothing and waits for nothing."""


def wanted(agents: AgentSettings) -> bool:
    """Tell whether the ticks of a profile are told of their seats' past at all."""
    return agents.seats_experts() and (agents.standing == "on" or agents.trust == EARNED)


def told(book: CallBook, chances: Chances, asked: Asked, agents: AgentSettings) -> StandingTold:
    """Return what the settings of a profile have a tick told; not a number while all are None."""
    numbers: dict[str, float | None] = {}
    if agents.standing == "on":
        numbers |= book.hit_shares(asked.regime) | chances.win_shares(asked.as_of)
    if agents.trust == EARNED:
        numbers |= book.trust(asked.regime)
    return StandingTold(numbers) if any(one is not None for one in numbers.values()) else NOTHING
