"""The surroundings of a tick: the market's regime, scheduled events near it, and the news it read.

A record of an older version has none of the three and gets no section. Missing news or a missing
calendar is explained in plain words, with what to do about it. Headlines, event names and addresses
are strangers' words: they are cleaned, shown as text, and linked only if `link` accepts the
address. Nothing is fetched. Pure functions over plain dicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from torra import clock
from torra.dashboard.record.stored import Row, mapping, sequence
from torra.exhibits import figures
from torra.exhibits.figures import cell
from torra.market import regime as market_regime

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

NEWS: Final = {
    "available": "",
    "off": "switched off: agents.include_news",
    "no_key": "no key: set FINNHUB_API_KEY or ALPHAVANTAGE_API_KEY",
    "no_file": "no file: nothing is at the path news.file of the profile",
    "not_yet": "not yet: the first round of collecting had not ended",
    "empty": "no headline: the sources answered, and nothing recent concerns this symbol",
    "rate_limited": "rate limited: tried again later",
    "refused": "refused: the vendor does not take this key or does not sell it this data",
    "unreachable": "unreachable: no source answered; tried again later",
    "broken": "broken: what the sources answered could not be read; tried again later",
}
"""Why there is no news, by torra.evidence.news_digest.NewsStatus."""

CALENDAR: Final = {
    "available": "",
    "off": "no calendar: name a file in events.calendar of the profile",
    "ended": "calendar ended: it lists nothing after this tick; put a newer file in its place",
    "broken": "the calendar cannot be read; the last good one is used",
    "broken_ended": "the calendar cannot be read, and the last good one lists nothing any more",
}
"""What is wrong with the calendar, by torra.evidence.scheduled_events.EventView.status."""

TRIAGE: Final = {
    "range_spike": f"high less low is {market_regime.RANGE_SPIKE_ATR:g} ATR or more",
    "volume_spike": f"{market_regime.VOLUME_SPIKE:g} times the usual volume or more",
    "gap": f"it opened {market_regime.GAP_ATR:g} ATR or more from the close before",
    "stale": "a newer bar is missing",
}
"""What each flag of the feature market.triage says of the newest bar (torra.market.regime)."""

REGIMES: Final = {
    "trend_up": f"ADX is {market_regime.TREND_ADX:g} or more and +DI above −DI",
    "trend_down": f"ADX is {market_regime.TREND_ADX:g} or more and −DI above +DI",
    "range": "no trend, and volatility is neither high nor low",
    "volatile": "ATR/close is at or above the "
    f"{market_regime.VOLATILE_FROM:g}th percentile of its own past, trend or not",
    "quiet": "no trend, and ATR/close is at or below the "
    f"{market_regime.QUIET_UPTO:g}th percentile of its own past",
}
"""The definition of each regime (torra.market.regime)."""

FUNDAMENTALS: Final = {
    "pe": "P/E",
    "pb": "P/B",
    "ev_ebitda": "EV/EBITDA",
    "revenue_growth_pct": "revenue growth, %",
    "net_margin_pct": "net margin, %",
}

UNTOLD: Final = "not recorded: the tick is older than this page"


def surroundings(record: Mapping[str, Any]) -> Row | None:
    """Return regime, events and news of a tick; None when its record knows none of them."""
    if not {"regime", "news", "events"} & set(record):
        return None
    return {"regime": regime(record), "events": events(record), "news": news(record)}


def regime(record: Mapping[str, Any]) -> Row:
    """Return the regime's mark, the values that it was read from, and the triage flags."""
    told = mapping(record.get("regime"))
    name = told.get("name")
    return {
        "mark": figures.mark(name) if name else None,
        "meaning": REGIMES.get(str(name), ""),
        "reads": [
            {"id": figures.clean(key, 80), "value": figures.loose(value)}
            for key, value in mapping(told.get("reads")).items()
        ],
        "triage": [
            {"word": figures.title(word).lower(), "meaning": TRIAGE.get(word, "")}
            for word in _triage(record)
        ],
    }


def events(record: Mapping[str, Any]) -> Row:
    """Return the next and the last event and every one within a day, nearest words first."""
    told = mapping(record.get("events"))
    missing = UNTOLD if "events" not in record else CALENDAR["off"]
    status = str(told.get("status") or "") if told else ""
    known = event_rows(told.get("events"), record.get("as_of"))[:EVENTS_SHOWN]
    there = bool(told) and status != "off"
    return {
        "there": there,
        "trouble": _in_words(CALENDAR, status) if told else missing,
        "tone": "flat" if not there else "warn",
        "next": _nearest(told.get("to_next"), [r for r in known if r["minutes"] > 0], "in {}"),
        "last": _nearest(
            told.get("since_last"), [r for r in known[::-1] if r["minutes"] <= 0], "{} ago"
        ),
        "rows": known,
    }


def event_rows(items: Any, moment: Any, at_once: str = CLOSE) -> list[Row]:
    """Return events with how far they are from a moment, which `at_once` names.

    Those without a time are left out.
    """
    rows = [_event(item, moment, at_once) for item in sequence(items)]
    return [row for row in rows if row["minutes"] is not None]


def nearest_events(record: Mapping[str, Any]) -> list[str]:
    """Return the event nearest to a tick, and the nearest on its other side when near as well."""
    rows = event_rows(mapping(record.get("events")).get("events"), record.get("as_of"))
    ahead = [row for row in rows if row["minutes"] > 0][:1]
    past = [row for row in rows if row["minutes"] <= 0][-1:]
    found = sorted([*ahead, *past], key=lambda row: abs(float(row["minutes"])))
    return [
        f"{row['title']} {row['far']}"
        for place, row in enumerate(found)
        if not place or abs(row["minutes"]) <= NEAR
    ]


def news(record: Mapping[str, Any]) -> Row:
    """Return the headlines that counted with their weights, or why there are none."""
    told = mapping(record.get("news"))
    status = str(told.get("status") or "") if told else ""
    trouble = status in ("no_file", "rate_limited", "refused", "unreachable", "broken")
    off = UNTOLD if "news" not in record else NEWS["off"]
    known = {str(row.get("id")): row for row in map(mapping, sequence(record.get("headlines")))}
    rows = [_headline(mapping(item), known) for item in sequence(told.get("items"))]
    return {
        "there": bool(rows),
        "trouble": _in_words(NEWS, status) if told else off,
        "tone": "warn" if trouble else "flat",
        "rows": rows,
        "unique": figures.plain(told.get("unique"), 0),
        "more": (figures.number(told.get("unique")) or 0) > len(rows),
        "score": cell(told.get("score"), missing="no headline counts"),
        "classes": list(_classes(told)),
        "fundamentals": _fundamentals(told),
    }


def plain_reason(reason: Any) -> str:
    """Return why an agent abstained, with the status word of its source put into plain words."""
    text = figures.clean(reason, 400)
    head, colon, words = text.rpartition(": ")
    known = [NEWS.get(word) for word in words.split(", ")]
    return f"{head} ({'; '.join(filter(None, known))})" if colon and all(known) else text


def link(address: Any) -> Row | None:
    """Return {"href", "host"} of an https address that names a public host plainly, else None.

    Refused are other schemes, names and passwords in the address, ports, IP numbers, names of a
    home network, and any character that a browser would have to mend.
    """
    text = str(address or "")
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
    return {"href": text, "host": host}


def _triage(record: Mapping[str, Any]) -> list[str]:
    for item in map(mapping, sequence(record.get("features"))):
        if item.get("id") == "market.triage" and isinstance(item.get("value"), str):
            return [figures.clean(word, 40) for word in item["value"].split()]
    return []


def _in_words(words: Mapping[str, str], status: str) -> str:
    return words.get(status, figures.clean(status, 80) or "no status is recorded")


def _event(item: Any, as_of: Any, at_once: str) -> Row:
    told = mapping(item)
    minutes = _minutes(told.get("time"), as_of)
    currency, name = figures.clean(told.get("currency"), 8), figures.clean(told.get("name"), 120)
    return {
        "minutes": minutes,
        "when": figures.moment(told.get("time")),
        "far": "" if minutes is None else _far(minutes, at_once),
        "currency": currency,
        "impact": figures.clean(told.get("impact"), 12),
        "name": name,
        "title": f"{currency} {name}".strip(),
    }


def _minutes(time: Any, as_of: Any) -> float | None:
    try:
        return (clock.parse(str(time)) - clock.parse(str(as_of))).total_seconds() / 60
    except (ValueError, OverflowError):
        return None


def _far(minutes: float, at_once: str) -> str:
    if abs(minutes) < AT_ONCE:
        return at_once
    told = figures.span(abs(minutes) * 60)
    return f"in {told}" if minutes >= 0 else f"{told} ago"


def _nearest(minutes: Any, rows: list[Row], form: str) -> str:
    """Return how far the nearest event is, with its name if it is among `rows`."""
    known = figures.number(minutes)
    if known is None:
        return "none within a day"
    told = CLOSE if known < AT_ONCE else form.format(figures.span(known * 60))
    named = [row["title"] for row in rows if abs(abs(row["minutes"]) - known) < 1]
    return ", ".join([told, *dict.fromkeys(named)])


def _headline(told: Row, known: Mapping[str, Row]) -> Row:
    item = known.get(str(told.get("id")), {})
    age = figures.number(told.get("age_hours"))
    return {
        "seen": figures.moment(item.get("first_seen")),
        "age": figures.span(None if age is None else age * 3600),
        "source": figures.clean(item.get("source"), 40) or figures.DASH,
        "event": figures.clean(item.get("event"), 20) or figures.DASH,
        "score": cell(item.get("score"), 2, "the headline is not stored"),
        "weight": figures.plain(told.get("weight"), 2),
        "headline": figures.clean(item.get("headline"), HEADLINE_CHARS),
        "link": link(item.get("url")),
    }


def _classes(told: Mapping[str, Any]) -> Iterable[Row]:
    for name, pair in mapping(told.get("events")).items():
        count, mean = [*sequence(pair), None, None][:2]
        yield {
            "name": figures.clean(name, 20),
            "count": f"{figures.plain(count, 0)} headline{'' if count == 1 else 's'}",
            "score": cell(mean, 2),
        }


def _fundamentals(told: Mapping[str, Any]) -> Row:
    status = str(told.get("fundamentals_status") or "off")
    rows = [
        {"name": FUNDAMENTALS.get(key, figures.title(str(key))), "value": figures.loose(value)}
        for key, value in mapping(told.get("fundamentals")).items()
    ]
    why = "" if status in ("off", "available") else _in_words(NEWS, status)
    return {"rows": rows, "trouble": why}
