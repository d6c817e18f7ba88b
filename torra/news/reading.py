"""Turns the replies of vendors and the lines of files into items: pure, and trusting nothing.

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
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, ValidationError

from torra.clock import EPOCH, parse
from torra.collecting.refusals import OK, refusal
from torra.errors import ConfigError, no_key_twice
from torra.evidence.news_digest import COMPANY, NewsAnswer, NewsItem, NewsStatus, in_time
from torra.news.watched_file import decoded
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


def of_finnhub(row: Mapping[str, Any], topic: str) -> NewsItem | None:
    """Read one item of Finnhub's; None when it cannot be read, or OverflowError."""
    seconds = finite(row.get("datetime"))
    if seconds is None:
        return None
    published = EPOCH + timedelta(seconds=int(seconds))
    ours = {**row, "tickers": row.get("related")}
    return item_of(ours, feed="finnhub", topic=topic, published=published)


def of_alpha_vantage(row: Mapping[str, Any], topic: str) -> NewsItem | None:
    """Read one item of Alpha Vantage's; None when it cannot be read, or ValueError.

    Its scores are not used.
    """
    stamp = str(row.get("time_published"))
    if not COMPACT.fullmatch(stamp):
        return None
    # The seconds may be missing.
    published = datetime.strptime(stamp.ljust(15, "0"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    tickers = [sentiment.get("ticker") for sentiment in objects(row.get("ticker_sentiment"))]
    ours = {**row, "headline": row.get("title"), "tickers": tickers}
    return item_of(ours, feed="alpha_vantage", topic=topic, published=published)


def listed(
    payload: object,
    rows: object,
    read: Callable[[Mapping[str, Any]], NewsItem | None],
    vendor: str = "",
) -> NewsAnswer:
    """Return the answer of a reply that should hold a list."""
    if not isinstance(rows, list):
        return of_another_shape(payload, vendor)
    some, items = rows[:MAX_ITEMS], list[NewsItem]()
    for row in objects(some):
        with suppress(ValueError, OverflowError):
            items += filter(None, [read(row)])
    # Of two alike the first, which is the newer, stays in its place.
    unique = {item.id: item for item in reversed(items)}
    dropped = len(some) - len(items)
    if some and not items:
        return NewsAnswer(NewsStatus.BROKEN, dropped=dropped, detail="no item could be read")
    status = NewsStatus.AVAILABLE if items else NewsStatus.EMPTY
    return NewsAnswer(status, tuple(reversed(unique.values())), dropped=dropped)


def objects(rows: object) -> list[dict[str, Any]]:
    """Return the objects of a list, without what else stands in it; nothing for no list."""
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def of_another_shape(payload: object, vendor: str) -> NewsAnswer:
    """Read an error that came as a good reply: both vendors send some with HTTP status 200."""
    if isinstance(payload, dict):
        for key in ERRORS:
            if payload.get(key) is not None:
                status, detail = refusal(vendor, OK, str(payload[key])[:SUMMARY])
                return NewsAnswer(status, detail=detail)
    return NewsAnswer(NewsStatus.BROKEN, detail="a reply of another shape")


# --- a file ---------------------------------------------------------------------------------------


def _moment(value: object) -> datetime:
    # A day alone is refused: it would be taken for its midnight.
    if isinstance(value, str) and ":" in value:
        with suppress(ValueError, OverflowError):
            moment = parse(value)
            if EARLIEST <= moment < LATEST:
                return moment
    raise ValueError("no time")


Moment = Annotated[datetime, BeforeValidator(_moment)]


def _split(value: object) -> object:
    return value.split(",") if isinstance(value, str) else value


Names = Annotated[list[str], FailFast(), BeforeValidator(_split)]
"""Refused at the first wrong entry: a fault of each could fill the memory."""


class HeadlineLine(BaseModel):
    """A line of a file of headlines; `symbols` is another name of `tickers`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    headline: str
    published: Moment
    first_seen: Moment
    summary: str = ""
    url: str = ""
    source: str = ""
    tickers: Names = []
    symbols: Names = []


FAULTS: Final = {
    "headline": "is missing or is not text",
    **dict.fromkeys(("published", "first_seen"), "is not a time; write it as 2026-02-13T12:00:00Z"),
    **dict.fromkeys(("tickers", "symbols"), "is no list of names"),
}
"""What is wrong with a value, by its key; any other is not text."""


def read_lines(raw: bytes, path: Path) -> list[NewsItem]:
    """Return the headlines of JSON lines; raises ConfigError naming file and line."""
    items = []
    for number, text in enumerate(decoded(path, raw).split("\n"), 1):
        if text.strip():
            try:
                items.append(_of_line(text, path.name))
            except ConfigError as error:
                raise ConfigError(f"{path}, line {number}: {error}") from None
    return items


def _of_line(text: str, name: str) -> NewsItem:
    """Return the headline of a line of a file; raises ConfigError with what is wrong."""
    try:
        row = json.loads(text, object_pairs_hook=no_key_twice)
    except (ValueError, RecursionError):
        raise ConfigError("not JSON; write one object a line") from None
    if not isinstance(row, dict):
        raise ConfigError("not an object; write {...} in every line")
    if unknown := [key for key in row if key not in HeadlineLine.model_fields]:
        known = ", ".join(sorted(HeadlineLine.model_fields))
        raise ConfigError(f"unknown key {unknown[0][:40]!r}; known: {known}")
    try:
        line = HeadlineLine.model_validate({"first_seen": row.get("published"), **row})
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise ConfigError(f"{key} {FAULTS.get(key, 'is not text')}") from None
    item = item_of(
        {"tickers": line.symbols, **row},
        feed="file",
        # A file's name may hold bytes that are no text, which no database takes.
        topic=name.encode("utf-8", "replace").decode(),
        published=line.published.replace(microsecond=0),
        source=line.source,
    )
    if item is None:
        raise ConfigError(f"headline {FAULTS['headline']}")
    item = item.with_arrival(line.first_seen)
    if not in_time(item):
        raise ConfigError("first_seen is before published; correct one of them")
    # By all that a line says: an edited line is another item.
    whole = (item.published.isoformat(), item.first_seen.isoformat(), item.source, item.headline,
             item.summary, item.url, *item.tickers)  # fmt: skip
    return replace(item, id=_name("file", *whole))


# --- an item --------------------------------------------------------------------------------------


def item_of(
    row: Mapping[str, Any], *, feed: str, topic: str, published: datetime, source: object = ""
) -> NewsItem | None:
    """Return an item without score, seen when it was published; None without headline or time.

    `row` has headline, summary, url and tickers, of whatever type. An item is known by its link and
    its words; without a link by its words and the day on which it was published, for some headlines
    come again: "Gold steady in thin trading".
    """
    title = cleaned(row.get("headline"), HEADLINE)
    if not any(sign.isalnum() for sign in title) or not EARLIEST <= published < LATEST:
        return None
    link = _url(row.get("url"))
    company = topic if topic.startswith(COMPANY) else ""
    words = " ".join(unicodedata.normalize("NFKC", title).casefold().split())
    place = link.partition("#")[0].lower() or published.date().isoformat()
    return NewsItem(
        id=_name(feed, company, place, words),
        source=cleaned(source, PUBLISHER) or feed,
        topic=f"{feed}:{topic}",
        headline=title,
        published=published,
        first_seen=published,
        summary=cleaned(row.get("summary"), SUMMARY),
        url=link,
        tickers=_tickers(row.get("tickers")),
    )


def _name(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def cleaned(value: object, limit: int) -> str:
    """Return a stranger's text on one line, without control signs, cut; "" for anything else."""
    if not isinstance(value, str):
        return ""
    # Cut before it is cleaned too: a stranger's text may be of any length.
    return " ".join(_visible(value[: 4 * limit]).split())[:limit].strip()


def _visible(text: str) -> str:
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
        plain = _visible(text)
        return key.sub("[key]", plain) if key.search(plain) else text
    if isinstance(payload, list):
        return [redacted(part, key) for part in payload]
    if isinstance(payload, dict):
        return {name: redacted(part, key) for name, part in payload.items()}
    return payload


def _url(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= URL or not value.isprintable():
        return ""
    with suppress(ValueError):
        parts = urlsplit(value)
        if parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc:
            return "" if " " in value else value
    return ""


def _tickers(value: object) -> tuple[str, ...]:
    names = _split(value)
    if not isinstance(names, list):
        return ()
    some = [name.strip().upper() for name in names[: 4 * MAX_TICKERS] if isinstance(name, str)]
    return tuple(dict.fromkeys(name for name in some if TICKER.fullmatch(name)))[:MAX_TICKERS]


def finite(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    # True is an int in Python.
    if isinstance(value, int | float) and not isinstance(value, bool):
        # A whole number may be too large for a float.
        with suppress(OverflowError):
            return float(value) if math.isfinite(value) else None
    return None
