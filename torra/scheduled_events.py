"""Scheduled events, and how near the next and the last one that matters to a symbol is.

Pure functions over events that were read from a calendar file (torra.event_file). What matters is
of high impact and for one of the symbol's currencies, or for all. That an event will come is known
before it comes, so an event later than the tick is no look into the future; what came of it would
be, and is not kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

Impact = Literal["high", "medium", "low"]
EventStatus = Literal["off", "available", "ended", "broken"]

EVERY_CURRENCY: Final = "ALL"
"""The currency of an event that concerns every symbol."""

REACH: Final = timedelta(days=1)
"""How far around a moment events are looked for; GateSettings reach no further."""

MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Event:
    """One scheduled event: when (UTC), for which currency, how much it can move, what it is."""

    time: datetime
    currency: str
    impact: Impact
    name: str


@dataclass(frozen=True, slots=True)
class EventView:
    """High-impact events around a moment, for some currencies.

    `to_next` and `since_last` are minutes, None when there is none within a day; an event at the
    moment itself is the last, 0 minutes ago. `status` is off (no calendar), available, ended (the
    calendar has nothing at all after the moment) or broken (it could not be read again; the last
    good one is used). `events` are those of a day before and after, oldest first.
    """

    status: EventStatus = "off"
    to_next: float | None = None
    since_last: float | None = None
    events: tuple[Event, ...] = ()


def around(
    events: Sequence[Event], currencies: Iterable[str], as_of: datetime, *, broken: bool = False
) -> EventView:
    """Return the events that matter to the currencies within a day of `as_of`.

    `events` are a whole calendar, oldest first. `broken` says that it is the last good one.
    """
    concerned = {*currencies, EVERY_CURRENCY}
    start = bisect_left(events, as_of - REACH, key=_time)
    end = bisect_right(events, as_of + REACH, lo=start, key=_time)
    near = tuple(
        event
        for event in events[start:end]
        if event.impact == "high" and event.currency in concerned
    )
    ahead = [event.time for event in near if event.time > as_of]
    past = [event.time for event in near if event.time <= as_of]
    ended = not events or events[-1].time <= as_of
    return EventView(
        "broken" if broken else "ended" if ended else "available",
        to_next=(ahead[0] - as_of) / MINUTE if ahead else None,
        since_last=(as_of - past[-1]) / MINUTE if past else None,
        events=near,
    )


def _time(event: Event) -> datetime:
    return event.time
