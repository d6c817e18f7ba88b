"""Warnings about the calendar and the headlines of the newest ticks, and the event that is near.

A calendar that cannot be read, or headlines that do not come, change every later decision.
So the overview and the symbol pages show these warnings. Names of events are strangers' words and
are cleaned. Pure functions over what a DeskView returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from torra.dashboard.record import surroundings
from torra.dashboard.record.stored import Row, mapping, sequence
from torra.exhibits import figures

CALENDAR: Final = {
    "broken": "Calendar cannot be read; the last good one is used",
    "broken_ended": "Calendar cannot be read; the last good one is used, and lists nothing after "
    "the newest tick, so no event is seen coming",
    "ended": "Calendar has ended: it lists nothing after the newest tick, so no event is seen "
    "coming; put a newer file in its place",
}
"""Warnings of a calendar, by the status of the tick's events, or its flags events:<word>."""

NEWS: Final = {
    "broken": "Headlines cannot be read: what the sources answered is no news that we know",
    "no_file": "Headline file is missing: nothing is at the path news.file of the profile",
    "refused": "News vendor refuses the key, or does not sell this data",
    "rate_limited": "News vendor answers no more for now (rate limited); tried again later",
    "unreachable": "No source of news answers; tried again later",
}
"""Warnings of the news, by the status of the tick's news."""

JUST_NOW: Final = 60.0
"""Minutes for which the overview still shows an event that has passed."""


def calendar_warning(instances: Iterable[Mapping[str, Any]]) -> str:
    """Return what is wrong with the calendar, and on which streams; empty for nothing."""
    return _warning(instances, CALENDAR, _calendar)


def news_warning(instances: Iterable[Mapping[str, Any]]) -> str:
    """Return what is wrong with the headlines, and on which streams; empty for nothing."""
    return _warning(instances, NEWS, lambda tick: str(mapping(tick.get("news")).get("status")))


def near_event(streams: Iterable[Mapping[str, Any]], now: Any) -> str:
    """Return the next event of some streams within a day, and one of the last hour; or nothing."""
    rows: list[Row] = []
    for stream in streams:
        tick = mapping(stream.get("tick"))
        told = mapping(tick.get("events"))
        rows += surroundings.event_rows(told.get("events"), now or tick.get("as_of"), "now")
    ahead = sorted((r for r in rows if r["minutes"] > 0), key=_minutes)
    past = sorted((r for r in rows if -JUST_NOW <= r["minutes"] <= 0), key=_minutes, reverse=True)
    return "; ".join([*_first("Next event", ahead), *_first("Last event", past)])


def _first(name: str, rows: Sequence[Row]) -> list[str]:
    """Return the events of the first row's moment in one phrase; nothing without rows."""
    if not rows:
        return []
    # several streams of an instance list the same event
    names = dict.fromkeys(row["title"] for row in rows if row["when"] == rows[0]["when"])
    return [f"{name}: {', '.join(names)} {rows[0]['far']} ({rows[0]['when'][11:]})"]


def _minutes(row: Row) -> float:
    return float(row["minutes"])


def _calendar(tick: Mapping[str, Any]) -> str:
    flags = map(str, sequence(mapping(tick.get("deliberation")).get("flags")))
    flagged = sorted(flag.removeprefix("events:") for flag in flags if flag.startswith("events:"))
    return "_".join(flagged) or str(mapping(tick.get("events")).get("status"))


def _warning(instances: Iterable[Mapping[str, Any]], words: Mapping[str, str], status: Any) -> str:
    found: dict[str, list[str]] = {}
    for one in instances:
        for stream in one["streams"]:
            told = words.get(status(mapping(stream.get("tick"))))
            if told:
                name = f"{figures.clean(one['instance'], 40)} {stream['timeframe']}"
                found.setdefault(told, []).append(name)
    return ". ".join(f"{told} ({', '.join(names)})" for told, names in found.items())
