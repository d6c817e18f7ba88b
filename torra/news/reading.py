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

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

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
    """Read one item of Finnhub's; None when it cannot be read."""
    seconds = finite(row.get("datetime"))
    if seconds is None or not EARLIEST.timestamp() <= seconds < LATEST.timestamp():
        return None
    published = EPOCH + timedelta(seconds=int(seconds))
    ours = {**row, "tickers": row.get("related")}
    return item_of(ours, feed="finnhub", topic=topic, published=published)


def of_alpha_vantage(row: Mapping[str, Any], topic: str) -> NewsItem | None:
    """Read one item of Alpha Vantage's; None when it cannot be read. Its scores are not used."""
    stamp = row.get("time_published")
    if not isinstance(stamp, str) or not COMPACT.fullmatch(stamp):
        return None
    # The seconds may be missing.
    published = datetime.strptime(stamp.ljust(15, "0"), "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    if not EARLIEST <= published < LATEST:
        return None
    tickers = [named.get("ticker") for named in _objects(row.get("ticker_sentiment"))]
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
    for row in _objects(some):
        with suppress(ValueError, OverflowError):
            items += filter(None, [read(row)])
    # Of two alike the first, which is the newer, stays in its place.
    unique = {item.id: item for item in reversed(items)}
    dropped = len(some) - len(items)
    if some and not items:
        return NewsAnswer(NewsStatus.BROKEN, dropped=dropped, detail="no item could be read")
    status = NewsStatus.AVAILABLE if items else NewsStatus.EMPTY
    return NewsAnswer(status, tuple(reversed(unique.values())), dropped=dropped)


def _objects(rows: object) -> list[dict[str, Any]]:
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


def _names(value: object) -> object:
    """Refuse at once what is no list of names: a check of each entry could fill the memory."""
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in listed):
        raise ValueError("no list of names")
    return value


Names = Annotated[str | list[str], BeforeValidator(_names)]


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


NO_TEXT: Final = "is missing or is not text"


def read_lines(raw: bytes, path: Path) -> list[NewsItem]:
    """Return the headlines of JSON lines; raises ConfigError naming file and line."""
    lines = enumerate(decoded(path, raw).split("\n"), 1)
    return [_of_line(line, f"{path}, line {n}", path.name) for n, line in lines if line.strip()]


def _of_line(text: str, place: str, name: str) -> NewsItem:
    try:
        row = json.loads(text, object_pairs_hook=no_key_twice)
    except (ValueError, RecursionError):
        raise ConfigError(f"{place}: not JSON; write one object a line") from None
    if not isinstance(row, dict):
        raise ConfigError(f"{place}: not an object; write {{...}} in every line")
    if unknown := [key for key in row if key not in HeadlineLine.model_fields]:
        known = ", ".join(sorted(HeadlineLine.model_fields))
        raise ConfigError(f"{place}: unknown key {unknown[0][:40]!r}; known: {known}")
    try:
        line = HeadlineLine.model_validate({"first_seen": row.get("published"), **row})
    except ValidationError as error:
        raise ConfigError(f"{place}: {_problem(error)}") from None
    item = item_of(
        {"tickers": line.symbols, **row},
        feed="file",
        # A file's name may hold bytes that are no text, which no database takes.
        topic=name.encode("utf-8", "replace").decode(),
        published=line.published.replace(microsecond=0),
        source=line.source,
    )
    if item is None:
        raise ConfigError(f"{place}: headline {NO_TEXT}")
    item = item.first_seen_at(line.first_seen)
    if not in_time(item):
        raise ConfigError(f"{place}: first_seen is before published; correct one of them")
    # By all that a line says: an edited line is another item.
    whole = (item.published.isoformat(), item.first_seen.isoformat(), item.source, item.headline,
             item.summary, item.url, *item.tickers)  # fmt: skip
    return replace(item, id=_name("file", *whole))


def _problem(error: ValidationError) -> str:
    """Return the first problem of a line, in our words."""
    first = error.errors()[0]
    key = str(first["loc"][0])
    if key == "headline":
        return f"headline {NO_TEXT}"
    if key in {"published", "first_seen"}:
        return f"{key} is not a time; write it as 2026-02-13T12:00:00Z"
    return f"{key} is no list of names" if key in {"tickers", "symbols"} else f"{key} is not text"


# --- an item --------------------------------------------------------------------------------------


def item_of(
    row: Mapping[str, Any], *, feed: str, topic: str, published: datetime, source: object = ""
) -> NewsItem | None:
    """Return an item without score, seen when it was published; None without a headline.

    `row` has headline, summary, url and tickers, of whatever type. An item is known by its link and
    its words; without a link by its words and the day on which it was published, for some headlines
    come again: "Gold steady in thin trading".
    """
    title = cleaned(row.get("headline"), HEADLINE)
    if not any(sign.isalnum() for sign in title):
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
