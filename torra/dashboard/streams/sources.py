"""Warnings about the calendar and the headlines of the newest ticks, and the event that is near.

A calendar that cannot be read, or headlines that do not come, change every later decision.
So the overview and the symbol pages show these warnings. Names of events are strangers' words and
are cleaned. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from torra.dashboard.record import surroundings
from torra.dashboard.record.surroundings import EventRow
from torra.dashboard.view.desk_values import OverviewSymbol
from torra.exhibits import figures
from torra.tick.tick_record import TickRecord
from torra.words.badge import capital
from torra.words.ticks import CALENDAR, STATUSES

WARNED: Final = ("broken", "no_file", "refused", "rate_limited", "unreachable")
"""Statuses of the news that warn on every page."""

CALENDAR_WARNINGS: Final = {
    status: capital(meaning) for status, meaning in CALENDAR.items() if status != "off"
}
NEWS_WARNINGS: Final = {status: f"News {STATUSES[status].meaning}" for status in WARNED}

JUST_NOW: Final = 60.0
"""Minutes for which the overview still shows an event that has passed."""


def warnings(instances: Sequence[OverviewSymbol]) -> list[str]:
    """Return what is wrong with the calendar and the headlines, and on which streams."""
    return [*filter(None, (calendar_warning(instances), news_warning(instances)))]


def calendar_warning(instances: Iterable[OverviewSymbol]) -> str:
    """Return what is wrong with the calendar, and on which streams; empty for nothing."""
    return _warning(instances, CALENDAR_WARNINGS, _calendar)


def news_warning(instances: Iterable[OverviewSymbol]) -> str:
    """Return what is wrong with the headlines, and on which streams; empty for nothing."""
    return _warning(
        instances, NEWS_WARNINGS, lambda tick: str(tick.news.status if tick.news else None)
    )


def near_event(ticks: Iterable[TickRecord | None], now: str | None) -> str:
    """Return the next event of some ticks within a day, and one of the last hour; or nothing."""
    rows: list[EventRow] = []
    for tick in ticks:
        if tick and tick.events:
            rows += surroundings.event_rows(tick.events.events, now or tick.as_of, "now")
    rows.sort(key=lambda row: abs(row.minutes))
    ahead = [row for row in rows if row.minutes > 0]
    past = [row for row in rows if -JUST_NOW <= row.minutes <= 0]
    return "; ".join([*_first("Next event", ahead), *_first("Last event", past)])


def _first(name: str, rows: Sequence[EventRow]) -> list[str]:
    """Return the events of the first row's moment in one phrase; nothing without rows."""
    if not rows:
        return []
    # several streams of an instance list the same event
    names = dict.fromkeys(row.title for row in rows if row.when == rows[0].when)
    return [f"{name}: {', '.join(names)} {rows[0].far} ({rows[0].when[11:]})"]


def _calendar(tick: TickRecord) -> str:
    flags = tick.deliberation.flags
    flagged = sorted(flag.removeprefix("events:") for flag in flags if flag.startswith("events:"))
    return "_".join(flagged) or str(tick.events.status if tick.events else None)


def _warning(
    instances: Iterable[OverviewSymbol],
    words: Mapping[str, str],
    status: Callable[[TickRecord], str],
) -> str:
    streams_of: dict[str, list[str]] = {}
    for instance in instances:
        for stream in instance.streams:
            warning = words.get(status(stream.tick)) if stream.tick else None
            if warning:
                name = f"{figures.sanitize(instance.instance, 40)} {stream.timeframe}"
                streams_of.setdefault(warning, []).append(name)
    return ". ".join(f"{warning} ({', '.join(names)})" for warning, names in streams_of.items())
