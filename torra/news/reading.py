"""Turns what vendors and files send into items: pure, and trusting nothing.

Every type is checked, every text cleaned and cut, every number finite. An item that cannot be read
is dropped and counted. A reply that cannot be read is `broken`. A line of a file that cannot be
read is a ConfigError with its number. torra.news.source decides what is asked, and how.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from torra.clock import EPOCH, parse
from torra.collecting.refusals import OK, refusal
from torra.errors import ConfigError, no_key_twice
from torra.evidence.news_digest import COMPANY, NewsAnswer, NewsItem, NewsStatus, in_time
from torra.trading_terms import TICKER

MAX_ITEMS: Final = 200
"""Items of a reply that are read; vendors send the newest first."""

HEADLINE: Final = 300
SUMMARY: Final = 500
URL: Final = 500
PUBLISHER: Final = 40
"""Characters that are kept; a longer URL is left out."""

ERRORS: Final = ("Note", "Information", "Error Message", "error")
"""Keys under which vendors tell of an error in a good reply."""

MAX_TICKERS: Final = 20
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""A time outside is none."""

COMPACT: Final = re.compile(r"\d{8}T\d{4}(\d{2})?", re.ASCII)
"""Alpha Vantage's times: 20260213T120000."""

UNWANTED: Final = frozenset(("Cf", "Cs", "Co", "Cn"))
BLANKS: Final = frozenset(("Cc", "Zl", "Zp", "Zs"))
"""Unicode's categories of signs that are left out, and of those that become a blank."""

READ_SIGNS: Final = 4 * SUMMARY
"""Characters of a stranger's text that are looked at; what is kept is shorter."""

FILE_KEYS: Final = frozenset(
    ("headline", "published", "first_seen", "summary", "url", "source", "tickers", "symbols")
)


def of_finnhub(row: Mapping[str, Any], topic: str) -> NewsItem | None:
    """Read one item of Finnhub's; None when it cannot be read."""
    seconds = finite(row.get("datetime"))
    if seconds is None or not EARLIEST.timestamp() <= seconds < LATEST.timestamp():
        return None
    return item_of(
        feed="finnhub",
        topic=topic,
        headline=row.get("headline"),
        published=EPOCH + timedelta(seconds=int(seconds)),
        summary=row.get("summary"),
        url=row.get("url"),
        tickers=row.get("related"),
    )


def of_alpha_vantage(row: Mapping[str, Any], topic: str) -> NewsItem | None:
    """Read one item of Alpha Vantage's; None when it cannot be read. Its scores are not used."""
    stamp = row.get("time_published")
    if not isinstance(stamp, str) or not COMPACT.fullmatch(stamp):
        return None
    # The seconds may be missing.
    published = datetime.strptime(stamp.ljust(15, "0"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    named = row.get("ticker_sentiment")
    tickers = [one.get("ticker") for one in _rows(named)]
    if not EARLIEST <= published < LATEST:
        return None
    return item_of(
        feed="alpha_vantage",
        topic=topic,
        headline=row.get("title"),
        published=published,
        summary=row.get("summary"),
        url=row.get("url"),
        tickers=tickers,
    )


def listed(
    payload: object,
    rows: object,
    read: Callable[[Mapping[str, Any]], NewsItem | None],
    vendor: str = "",
) -> NewsAnswer:
    """Return the answer of a reply that should hold a list."""
    if not isinstance(rows, list):
        return error_in(payload, vendor) or NewsAnswer(
            NewsStatus.BROKEN, detail="a reply of another shape"
        )
    some = rows[:MAX_ITEMS]
    found = [item for row in _rows(some) if (item := _read(row, read)) is not None]
    # Twice reversed, so that of two alike the first, which is the newer, stays in its place.
    unique = {item.id: item for item in reversed(found)}
    dropped = len(some) - len(found)
    if some and not found:
        return NewsAnswer(NewsStatus.BROKEN, dropped=dropped, detail="no item could be read")
    status = NewsStatus.AVAILABLE if found else NewsStatus.EMPTY
    return NewsAnswer(status, tuple(reversed(unique.values())), dropped=dropped)


def _read(
    row: Mapping[str, Any], read: Callable[[Mapping[str, Any]], NewsItem | None]
) -> NewsItem | None:
    try:
        return read(row)
    except (ValueError, OverflowError):
        return None


def _rows(found: object) -> list[dict[str, Any]]:
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def error_in(payload: object, vendor: str) -> NewsAnswer | None:
    """Read an error that came as a good reply: both vendors send some with HTTP status 200."""
    if not isinstance(payload, dict):
        return None
    said = next((payload[key] for key in ERRORS if payload.get(key) is not None), None)
    if said is None:
        return None
    status, detail = refusal(vendor, OK, str(said)[:SUMMARY])
    return NewsAnswer(status, detail=detail)


def read_lines(raw: bytes, path: Path) -> list[NewsItem]:
    """Return the headlines of JSON lines; raises ConfigError naming file and line."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8") from error
    lines = enumerate(text.split("\n"), 1)
    return [_of_line(line, f"{path}, line {n}", path.name) for n, line in lines if line.strip()]


def _of_line(line: str, place: str, name: str) -> NewsItem:
    try:
        row = json.loads(line, object_pairs_hook=no_key_twice)
    except (ValueError, RecursionError):
        raise ConfigError(f"{place}: not JSON; write one object a line") from None
    if not isinstance(row, dict):
        raise ConfigError(f"{place}: not an object; write {{...}} in every line")
    if odd := sorted(set(row) - FILE_KEYS):
        raise ConfigError(
            f"{place}: unknown key {odd[0][:40]!r}; known: {', '.join(sorted(FILE_KEYS))}"
        )
    for key in ("summary", "url", "source"):
        if not isinstance(row.get(key, ""), str):
            raise ConfigError(f"{place}: {key} is not text")
    for key in ("tickers", "symbols"):
        names = row.get(key, [])
        if not isinstance(names, str) and not _texts(names):
            raise ConfigError(f"{place}: {key} is no list of names")
    published = _time(row.get("published"), "published", place)
    first_seen = _time(row.get("first_seen", row["published"]), "first_seen", place)
    item = item_of(
        feed="file",
        # A file's name may hold bytes that are no text, which no database takes.
        topic=name.encode("utf-8", "replace").decode(),
        headline=row.get("headline"),
        published=published.replace(microsecond=0),
        summary=row.get("summary"),
        url=row.get("url"),
        tickers=row.get("tickers", row.get("symbols")),
        source=cleaned(row.get("source"), PUBLISHER),
    )
    if item is None:
        raise ConfigError(f"{place}: headline is missing or is not text")
    return _told(_seen(item, first_seen, place))


def _texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _seen(item: NewsItem, first_seen: datetime, place: str) -> NewsItem:
    found = item.seen(first_seen)
    if not in_time(found):
        raise ConfigError(f"{place}: first_seen is before published; correct one of them")
    return found


def _told(item: NewsItem) -> NewsItem:
    """Name a line by all that it says: an edited line is another item."""
    whole = (item.published.isoformat(), item.first_seen.isoformat(), item.source, item.headline,
             item.summary, item.url, *item.tickers)  # fmt: skip
    return replace(item, id=_name("file", *whole))


def _time(value: object, key: str, place: str) -> datetime:
    try:
        # A day alone is refused: it would be taken for its midnight.
        if isinstance(value, str) and ":" in value:
            moment = parse(value)
            if EARLIEST <= moment < LATEST:
                return moment
    except (ValueError, OverflowError):
        pass
    raise ConfigError(f"{place}: {key} is not a time; write it as 2026-02-13T12:00:00Z")


def item_of(
    *,
    feed: str,
    topic: str,
    headline: object,
    published: datetime,
    summary: object,
    url: object,
    tickers: object,
    source: str = "",
) -> NewsItem | None:
    """Return an item without score, seen when it was published; None without a headline.

    It is known by its link and its words; without a link by its words and the day on which it was
    published, for some headlines come again: "Gold steady in thin trading".
    """
    title = cleaned(headline, HEADLINE)
    if not any(sign.isalnum() for sign in title):
        return None
    link = _url(url)
    company = topic if topic.startswith(COMPANY) else ""
    words = " ".join(unicodedata.normalize("NFKC", title).casefold().split())
    place = link.partition("#")[0].lower() or published.date().isoformat()
    return NewsItem(
        id=_name(feed, company, place, words),
        source=source or feed,
        topic=f"{feed}:{topic}",
        headline=title,
        published=published,
        first_seen=published,
        summary=cleaned(summary, SUMMARY),
        url=link,
        tickers=_tickers(tickers),
    )


def _name(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def cleaned(value: object, limit: int) -> str:
    """Return a stranger's text on one line, without control signs, cut; "" for anything else."""
    if not isinstance(value, str):
        return ""
    # Cut before it is cleaned too: a stranger's text may be of any length.
    return " ".join(_seen_signs(value[: 4 * limit]).split())[:limit].strip()


def _seen_signs(text: str) -> str:
    """Return a text without the signs that nobody sees; a line's end becomes a blank."""
    if text.isascii() and text.isprintable():
        return text
    signs = [(sign, unicodedata.category(sign)) for sign in text]
    return "".join(" " if kind in BLANKS else sign for sign, kind in signs if kind not in UNWANTED)


def spellings(key: str) -> re.Pattern[str]:
    """Return a pattern that finds a key however a reply spells it.

    Any sign of it may be escaped as in a URL, once or more, in JSON or in HTML; small and capital
    letters are alike.
    """
    return re.compile("".join(map(_spelt, key)), re.IGNORECASE)


def _spelt(sign: str) -> str:
    code = ord(sign)
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in sign.encode())
    named = html.escape(sign)
    ways = [
        rf"\\*{re.escape(sign)}", percent, rf"\\+u0*{code:04x}", rf"&(?:amp;)*\#0*{code};",
        rf"&(?:amp;)*\#x0*{code:x};", *([re.escape(named)] if named != sign else ()),
    ]  # fmt: skip
    return f"(?:{'|'.join(ways)})"


def redacted(payload: Any, key: re.Pattern[str]) -> Any:
    """Return a parsed reply without the key: its texts may quote it, and headlines are stored."""
    if isinstance(payload, str):
        text = key.sub("[key]", payload[:READ_SIGNS])
        # Signs that nobody sees may stand between the letters of the key.
        plain = _seen_signs(text)
        return key.sub("[key]", plain) if key.search(plain) else text
    if isinstance(payload, list):
        return [redacted(one, key) for one in payload]
    if isinstance(payload, dict):
        return {name: redacted(one, key) for name, one in payload.items()}
    return payload


def _url(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= URL or not value.isprintable():
        return ""
    try:
        parts = urlsplit(value)
        fits = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
        )
    except ValueError:
        return ""
    return value if fits and " " not in value else ""


def _tickers(value: object) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list):
        return ()
    some = [name.strip().upper() for name in names[: 4 * MAX_TICKERS] if isinstance(name, str)]
    return tuple(dict.fromkeys(name for name in some if TICKER.fullmatch(name)))[:MAX_TICKERS]


def finite(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    # True is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
