"""Finds scheduled events: how near the next and the last one that matters to a symbol is.

Pure functions over events that were read from a calendar file (torra.news.event_file). An event
matters when it is of high impact and for one of the symbol's currencies, or for all. When an event
is due is known before it comes, so an event later than the tick is no look into the future. Its
result would be, and is not kept. So a tick that runs late may know what is due between its bar's
close and now.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final, Literal

Impact = Literal["high", "medium", "low"]
EventStatus = Literal["off", "available", "ended", "broken", "broken_ended"]

EVERY_CURRENCY: Final = "ALL"
"""The currency of an event that concerns every symbol."""

REACH: Final = timedelta(days=1)
"""How far around a moment events are looked for; GateSettings reach no further."""

MINUTE: Final = timedelta(minutes=1)
TIME: Final = attrgetter("time")


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """One scheduled event: when (UTC), for which currency, how much it can move, what it is."""

    time: datetime
    currency: str
    impact: Impact
    name: str


@dataclass(frozen=True, slots=True)
class EventView:
    """High-impact events around a moment, for some currencies.

    `to_next` and `since_last` are minutes from the close of the bar, None when there is none within
    a day; an event at the moment itself is the last, 0 minutes ago. `ahead` and `behind` are the
    same for the whole time from the close to the tick, which is what a window is held against:
    minutes from the tick to the next event, and from the last one before the close to it, 0 for an
    event between the two. `status` is off (no calendar), available, ended (the calendar has nothing
    at all after the tick), broken (it could not be read again; the last good one is used) or both.
    `events` are those of a day before the close and after the tick, oldest first.
    """

    status: EventStatus = "off"
    to_next: float | None = None
    since_last: float | None = None
    ahead: float | None = None
    behind: float | None = None
    events: tuple[ScheduledEvent, ...] = ()


def around(
    events: Sequence[ScheduledEvent],
    currencies: Iterable[str],
    as_of: datetime,
    now: datetime | None = None,
    *,
    broken: bool = False,
) -> EventView:
    """Return the events that matter to the currencies within a day of `as_of` and of `now`.

    `as_of` is the close of the bar, `now` when the tick runs (None, or earlier: at the close).
    `events` are a whole calendar, oldest first. `broken` says that it is the last good one.
    """
    concerned = {*currencies, EVERY_CURRENCY}
    # A tick cannot run before its close, whatever the clock says.
    tick = as_of if now is None else max(as_of, now)
    start = bisect_left(events, as_of - REACH, key=TIME)
    end = bisect_right(events, tick + REACH, lo=start, key=TIME)
    near = tuple(
        event
        for event in events[start:end]
        if event.impact == "high" and event.currency in concerned
    )
    later = [event.time for event in near if event.time > as_of]
    coming = [time for time in later if time > tick]
    past = [event.time for event in near if event.time <= as_of]
    since_last = (as_of - past[-1]) / MINUTE if past else None
    return EventView(
        _status(broken=broken, ended=not events or events[-1].time <= tick),
        to_next=(later[0] - as_of) / MINUTE if later and later[0] <= as_of + REACH else None,
        since_last=since_last,
        events=near,
        ahead=(coming[0] - tick) / MINUTE if coming else None,
        # An event between the close and the tick is right now, for a window.
        behind=since_last if len(coming) == len(later) else 0.0,
    )


def _status(*, broken: bool, ended: bool) -> EventStatus:
    if broken:
        return "broken_ended" if ended else "broken"
    return "ended" if ended else "available"
