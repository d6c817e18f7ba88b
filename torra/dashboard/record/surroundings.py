"""The surroundings of a tick: the market's regime, scheduled events near it, and the news it read.

A record of an older version has none of the three and gets no section. Missing news or a missing
calendar is explained in plain words, with what to do about it. Headlines, event names and addresses
are strangers' words: they are cleaned, shown as text, and linked only if `link` accepts the
address. Nothing is fetched. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypedDict
from urllib.parse import urlsplit

from torra import clock
from torra.dashboard.record.shown import Decision, StoredHeadline, TickView
from torra.evidence.scheduled_events import EventView, ScheduledEvent
from torra.exhibits import figures
from torra.exhibits.beyond import outside_words
from torra.exhibits.figures import Cell, cell
from torra.tick.tick_record import Headline, NewsRecord, TickRecord
from torra.tick.words import swarm_words
from torra.words.badge import Badge
from torra.words.market import REGIMES, TRIAGE
from torra.words.ticks import CALENDAR, STATUSES

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


class Pair(TypedDict):
    """A name and its value."""

    name: str
    value: str


class RegimeReading(TypedDict):
    """A value that the regime was read from."""

    id: str
    value: str


class Triage(TypedDict):
    """A flag of the newest bar."""

    word: str
    meaning: str


class RegimeView(TypedDict):
    """The regime's mark, the values that it was read from, and the triage flags."""

    mark: Badge | None
    meaning: str
    reads: list[RegimeReading]
    triage: list[Triage]


class EventRow(NamedTuple):
    """A scheduled event with how far it is from a moment."""

    minutes: float
    when: str
    far: str
    currency: str
    impact: str
    name: str
    title: str


class EventsShown(TypedDict):
    """The next and the last event, and every one within a day."""

    there: bool
    trouble: str
    tone: str
    next: str
    last: str
    rows: list[EventRow]


class Link(NamedTuple):
    """An address that may be followed, and its host."""

    href: str
    host: str


class HeadlineRow(TypedDict):
    """A headline that counted."""

    seen: str
    age: str
    source: str
    event: str
    score: Cell
    weight: str
    headline: str
    link: Link | None


class ClassRow(TypedDict):
    """The headlines of one class."""

    name: str
    count: str
    score: Cell


class Fundamentals(TypedDict):
    """The fundamentals, or why there are none."""

    rows: list[Pair]
    trouble: str


class NewsShown(TypedDict):
    """The headlines that counted with their weights, or why there are none."""

    there: bool
    trouble: str
    tone: str
    rows: list[HeadlineRow]
    unique: str
    more: bool
    score: Cell
    classes: list[ClassRow]
    fundamentals: Fundamentals


class Surroundings(TypedDict):
    """Regime, events and news of a tick."""

    regime: RegimeView
    events: EventsShown
    news: NewsShown


NO_NEWS: Final[NewsShown] = {
    "there": False, "trouble": NEWS["off"], "tone": "flat", "rows": [],
    "unique": figures.DASH, "more": False, "score": cell(None, missing="no headline counts"),
    "classes": [], "fundamentals": {"rows": [], "trouble": ""},
}  # fmt: skip


def surroundings(record: TickView) -> Surroundings:
    """Return regime, events and news of a tick."""
    return {"regime": regime(record), "events": events(record), "news": news(record)}


def regime(record: TickRecord) -> RegimeView:
    """Return the regime's mark, the values that it was read from, and the triage flags."""
    known = record.regime
    return {
        "mark": figures.mark(known.name) if known.name else None,
        "meaning": REGIMES.get(known.name, ""),
        "reads": [
            {"id": figures.sanitize(key, 80), "value": figures.format_any(value)}
            for key, value in known.reads.items()
        ],
        "triage": [
            {"word": figures.title(word).lower(), "meaning": TRIAGE.get(word, "")}
            for word in _triage(record)
        ],
    }


def events(record: TickRecord) -> EventsShown:
    """Return the next and the last event and every one within a day, nearest words first."""
    known = record.events or EventView()
    rows = event_rows(known.events, record.as_of)[:EVENTS_SHOWN]
    there = known.status != "off"
    return {
        "there": there,
        "trouble": _in_words(CALENDAR, known.status),
        "tone": "flat" if not there else "warn",
        "next": _nearest(known.to_next, [r for r in rows if r.minutes > 0], "in {}"),
        "last": _nearest(known.since_last, [r for r in rows[::-1] if r.minutes <= 0], "{} ago"),
        "rows": rows,
    }


def event_rows(
    items: Iterable[ScheduledEvent], moment: str | None, at_once: str = CLOSE
) -> list[EventRow]:
    """Return events with how far they are from a moment, which `at_once` names."""
    return [_event(item, clock.parse(moment), at_once) for item in items] if moment else []


def nearest_events(record: Decision) -> list[str]:
    """Return the event nearest to a tick, and the nearest on its other side when near as well."""
    rows = event_rows(record.events.events if record.events else (), record.as_of)
    ahead = [row for row in rows if row.minutes > 0][:1]
    past = [row for row in rows if row.minutes <= 0][-1:]
    found = sorted([*ahead, *past], key=lambda row: abs(row.minutes))
    return [
        f"{row.title} {row.far}"
        for place, row in enumerate(found)
        if not place or abs(row.minutes) <= NEAR
    ]


def news(record: TickView) -> NewsShown:
    """Return the headlines that counted with their weights, or why there are none."""
    known = record.news
    if known is None:
        return NO_NEWS
    status = known.status
    trouble = status in ("no_file", "rate_limited", "refused", "unreachable", "broken")
    stored = {row.id: row for row in record.headlines}
    rows = [_headline(item, stored.get(item.id)) for item in known.items]
    return {
        "there": bool(rows),
        "trouble": _in_words(NEWS, status),
        "tone": "warn" if trouble else "flat",
        "rows": rows,
        "unique": figures.plain(known.unique, 0),
        "more": known.unique > len(rows),
        "score": cell(known.score, missing="no headline counts"),
        "classes": list(_classes(known)),
        "fundamentals": _fundamentals(known),
    }


def plain_reason(reason: str | None) -> str:
    """Return why an agent abstained, with the status words of its sources put into plain words."""
    text = figures.sanitize(reason, 400)
    if lacks := swarm_words.lack(text):
        return lacks
    head, colon, words = text.rpartition(": ")
    known = [_source_in_words(head, told) for told in words.split(", ")]
    return f"{head} ({'; '.join(filter(None, known))})" if colon and all(known) else text


def _source_in_words(head: str, told: str) -> str:
    """Return the status of a source in plain words, "" for none.

    It stands behind its source's name where sources differ, else alone: then `head` tells of whom.
    """
    name, _, word = told.rpartition(" ")
    news = STATUSES[word].meaning if word in STATUSES else ""
    if name in BEYOND:
        return f"{BEYOND[name]}: {STATUSES[word].word}" if word in STATUSES else ""
    if name:
        return f"{name}: {news}" if name in NEWS_NAMES and news else ""
    # what news and numbers share is told in words that fit both
    shared = word in ("off", "empty") and any(one in head.split() for one in ("macro", "sentiment"))
    return STATUSES[word].word if shared else news


def link(address: str | None) -> Link | None:
    """Return an https address with its host, if it names a public host plainly, else None.

    Refused are other schemes, names and passwords in the address, ports, IP numbers, names of a
    home network, and any character that a browser would have to mend.
    """
    text = address or ""
    if len(text) > MAX_ADDRESS or not re.fullmatch(r"https://[!-~]+", text):
        return None
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    # a bracket or a port that cannot be one
    except ValueError:
        return None
    # a browser reads a backslash as a slash, and a text before an @ as a name: both hide the host
    if re.search(r"[@\\]", parts.netloc + parts.path[:1]) or port not in HTTPS_PORTS:
        return None
    if not HOST.fullmatch(host) or host.endswith(HOME):
        return None
    return Link(text, host)


def _triage(record: TickRecord) -> list[str]:
    for item in record.features:
        if item.id == "market.triage" and isinstance(item.value, str):
            return [figures.sanitize(word, 40) for word in item.value.split()]
    return []


def _in_words(words: Mapping[str, str], status: str) -> str:
    return words.get(status, figures.sanitize(status, 80) or "no status is recorded")


def _event(item: ScheduledEvent, as_of: datetime, at_once: str) -> EventRow:
    minutes = (item.time - as_of).total_seconds() / 60
    currency, name = figures.sanitize(item.currency, 8), figures.sanitize(item.name, 120)
    return EventRow(
        minutes=minutes,
        when=figures.moment(clock.iso(item.time)),
        far=_far(minutes, at_once),
        currency=currency,
        impact=figures.sanitize(item.impact, 12),
        name=name,
        title=f"{currency} {name}".strip(),
    )


def _far(minutes: float, at_once: str) -> str:
    if abs(minutes) < AT_ONCE:
        return at_once
    told = figures.span(abs(minutes) * 60)
    return f"in {told}" if minutes >= 0 else f"{told} ago"


def _nearest(known: float | None, rows: Sequence[EventRow], form: str) -> str:
    """Return how far the nearest event is, with its name if it is among `rows`."""
    if known is None:
        return "none within a day"
    far = CLOSE if known < AT_ONCE else form.format(figures.span(known * 60))
    named = [row.title for row in rows if abs(abs(row.minutes) - known) < 1]
    return ", ".join([far, *dict.fromkeys(named)])


def _headline(item: Headline, stored: StoredHeadline | None) -> HeadlineRow:
    return {
        "seen": figures.moment(stored and stored.first_seen),
        "age": figures.span(item.age_hours * 3600),
        "source": figures.sanitize(stored.source, 40) if stored else figures.DASH,
        "event": figures.sanitize(stored.event, 20) if stored else figures.DASH,
        "score": cell(stored and stored.score, 2, "the headline is not stored"),
        "weight": figures.plain(item.weight, 2),
        "headline": figures.sanitize(stored.headline, HEADLINE_CHARS) if stored else "",
        "link": link(stored.url) if stored else None,
    }


def _classes(known: NewsRecord) -> Iterable[ClassRow]:
    for name, (count, mean) in known.events.items():
        yield {
            "name": figures.sanitize(name, 20),
            "count": f"{figures.plain(count, 0)} headline{'' if count == 1 else 's'}",
            "score": cell(mean, 2),
        }


def _fundamentals(known: NewsRecord) -> Fundamentals:
    status = known.fundamentals_status
    rows: list[Pair] = [
        {"name": FUNDAMENTALS.get(key, figures.title(key)), "value": figures.format_any(value)}
        for key, value in known.fundamentals.items()
    ]
    why = "" if status in ("off", "available") else _in_words(NEWS, status)
    return {"rows": rows, "trouble": why}
