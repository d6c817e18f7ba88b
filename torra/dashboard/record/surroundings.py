"""The surroundings of a tick: the market's regime, scheduled events near it, and the news it read.

The template reads the record; here is what is reckoned beside it. Headlines, event names and
addresses are strangers' words: they are cleaned, shown as text, and linked only if `linked_host`
accepts the address. Nothing is fetched. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from torra import clock
from torra.dashboard.record.shown import Decision, StoredHeadline, TickView
from torra.evidence.scheduled_events import EventView, ScheduledEvent
from torra.exhibits import figures
from torra.exhibits.beyond import outside_words
from torra.tick.tick_record import TickRecord
from torra.tick.words import swarm_words
from torra.words.ticks import STATUSES

HEADLINE_CHARS: Final = 300
MAX_ADDRESS: Final = 2000
"""Characters of the longest address that is linked."""

EVENTS_SHOWN: Final = 40
NEAR: Final = 60.0
"""A second event is shown beside the nearest if it is within this many minutes."""

CLOSE: Final = "at the close"
AT_ONCE: Final = 1 / 60
"""An event less than this many minutes away is at the close itself."""

HTTPS_PORTS: Final = (None, 443)
HOST: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
"""A public DNS name: at least two labels, and the last one no number, so no address of a machine.
"""

HOME: Final = (".local", ".localhost", ".internal", ".home", ".lan", ".arpa", ".onion")
"""Ends of names that lead nowhere public."""

NEWS: Final = {status: row.meaning for status, row in STATUSES.items()}
TROUBLED: Final = ("no_file", "rate_limited", "refused", "unreachable", "broken")
"""Statuses of news that a trader should mend."""

BEYOND: Final = {
    "macro": outside_words.BLOCKS["macro"],
    "positions": outside_words.BLOCKS["cot"],
    "derivatives": "derivatives",
    "filings": "reports",
}
"""What an agent that abstains calls the blocks of numbers from beyond the chart, for a trader."""

NEWS_NAMES: Final = ("news", "company")

FUNDAMENTALS: Final = {
    "pe": "P/E",
    "pb": "P/B",
    "ev_ebitda": "EV/EBITDA",
    "revenue_growth_pct": "revenue growth, %",
    "net_margin_pct": "net margin, %",
    "pe_to_peers": "P/E, times the peers' middle",
    "pb_to_peers": "P/B, times the peers' middle",
    "analyst_rating": "analysts, −1 sell to +1 buy",
    "earnings_surprise_pct": "last earnings against their estimate, %",
}


class EventRow(NamedTuple):
    """A scheduled event, and how far it is from a moment: in minutes, and in words."""

    event: ScheduledEvent
    minutes: float
    far: str

    @property
    def when(self) -> str:
        """Its time."""
        return figures.moment(clock.iso(self.event.time))

    @property
    def title(self) -> str:
        """Its currency and its name."""
        event = self.event
        return f"{figures.sanitize(event.currency, 8)} {figures.sanitize(event.name, 120)}".strip()


def events(record: TickRecord) -> list[EventRow]:
    """Return the events within a day of a tick, oldest first."""
    known = record.events.events if record.events else ()
    return event_rows(known, record.as_of)[:EVENTS_SHOWN]


def next_event(record: TickRecord) -> str:
    """Return how far the next event is, with its name if that is known."""
    rows = [row for row in events(record) if row.minutes > 0]
    return _nearest((record.events or EventView()).to_next, rows, "in {}")


def last_event(record: TickRecord) -> str:
    """Return how far the last event is, with its name if that is known."""
    rows = [row for row in events(record)[::-1] if row.minutes <= 0]
    return _nearest((record.events or EventView()).since_last, rows, "{} ago")


def event_rows(
    items: Iterable[ScheduledEvent], moment: str | None, at_once: str = CLOSE
) -> list[EventRow]:
    """Return events with how far they are from a moment, which `at_once` names."""
    as_of = clock.parse(moment) if moment else None
    return [_event(item, as_of, at_once) for item in items] if as_of else []


def nearest_events(record: Decision) -> list[str]:
    """Return the event nearest to a tick, and the nearest on its other side when near as well."""
    rows = event_rows(record.events.events if record.events else (), record.as_of)
    ahead = [row for row in rows if row.minutes > 0][:1]
    past = [row for row in rows if row.minutes <= 0][-1:]
    nearest = sorted([*ahead, *past], key=lambda row: abs(row.minutes))
    return [
        f"{row.title} {row.far}"
        for place, row in enumerate(nearest)
        if not place or abs(row.minutes) <= NEAR
    ]


def plain_reason(reason: str | None) -> str:
    """Return why an agent abstained, with the status words of its sources put into plain words."""
    text = figures.sanitize(reason, 400)
    if lacks := swarm_words.lack(text):
        return lacks
    head, colon, words = text.rpartition(": ")
    known = [_source_in_words(head, source) for source in words.split(", ")]
    return f"{head} ({'; '.join(filter(None, known))})" if colon and all(known) else text


def _source_in_words(head: str, source: str) -> str:
    """Return the status of a source in plain words, "" for none.

    It stands behind its source's name where sources differ, else alone: then `head` tells of whom.
    """
    name, _, word = source.rpartition(" ")
    news = STATUSES[word].meaning if word in STATUSES else ""
    if name in BEYOND:
        return f"{BEYOND[name]}: {STATUSES[word].word}" if word in STATUSES else ""
    if name:
        return f"{name}: {news}" if name in NEWS_NAMES and news else ""
    # what news and numbers share is told in words that fit both
    shared = word in ("off", "empty") and any(one in head.split() for one in ("macro", "sentiment"))
    return STATUSES[word].word if shared else news


def linked_host(address: str | None) -> str:
    """Return the host of an https address that may be linked; "" of any other.

    Refused are other schemes, names and passwords in the address, ports, IP numbers, names of a
    home network, and any character that a browser would have to mend.
    """
    text = address or ""
    if len(text) > MAX_ADDRESS or not re.fullmatch(r"https://[!-~]+", text):
        return ""
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    # a bracket or a port that cannot be one
    except ValueError:
        return ""
    # a browser reads a backslash as a slash, and a text before an @ as a name: both hide the host
    if re.search(r"[@\\]", parts.netloc + parts.path[:1]) or port not in HTTPS_PORTS:
        return ""
    return host if HOST.fullmatch(host) and not host.endswith(HOME) else ""


def triage(record: TickRecord) -> list[str]:
    """Return the triage flags of the newest bar."""
    for item in record.features:
        if item.id == "market.triage" and isinstance(item.value, str):
            return [figures.sanitize(word, 40) for word in item.value.split()]
    return []


def headlines(record: TickView) -> Mapping[str, StoredHeadline]:
    """Return the stored headlines of a tick by id."""
    return {row.id: row for row in record.headlines}


def _event(item: ScheduledEvent, as_of: datetime, at_once: str) -> EventRow:
    minutes = (item.time - as_of).total_seconds() / 60
    span = figures.span(abs(minutes) * 60)
    far = f"in {span}" if minutes >= 0 else f"{span} ago"
    return EventRow(item, minutes, at_once if abs(minutes) < AT_ONCE else far)


def _nearest(known: float | None, rows: Sequence[EventRow], form: str) -> str:
    """Return how far the nearest event is, with its name if it is among `rows`."""
    if known is None:
        return "none within a day"
    far = CLOSE if known < AT_ONCE else form.format(figures.span(known * 60))
    named = [row.title for row in rows if abs(abs(row.minutes) - known) < 1]
    return ", ".join([far, *dict.fromkeys(named)])
