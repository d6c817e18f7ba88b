"""The bars file of the Expert Advisor, written here from its description alone."""

from __future__ import annotations

import calendar
import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from torra.feeds.mt5_files import BarFileOwner, Mt5FilesFeed
from torra.market.broker_clock import ServerClock

KEY = "correct horse battery staple"
HEADER = "time,open,high,low,close,tick_volume,spread"

ACCOUNT = 1001

GOLD = BarFileOwner("main", ACCOUNT, "XAUUSD.m", "M15")
"""Whose bars a file holds where a test does not care."""

Row = tuple[int, float, float, float, float, int, int]
Wall = Callable[[datetime], int]


def new_york_plus_7(moment: datetime) -> int:
    """The server's wall seconds, by New York's clock."""
    local = moment.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None)
    return calendar.timegm((local + timedelta(hours=7)).timetuple())


def athens(moment: datetime) -> int:
    return calendar.timegm(moment.astimezone(ZoneInfo("Europe/Athens")).timetuple())


def plus_3(moment: datetime) -> int:
    return calendar.timegm((moment + timedelta(hours=3)).timetuple())


WALLS: dict[str, Wall] = {
    "new_york+7": new_york_plus_7,
    "Europe/Athens": athens,
    "+03:00": plus_3,
}


def offset(wall: Wall, moment: datetime) -> int:
    return wall(moment) - calendar.timegm(moment.timetuple())


def row(wall: int, close: float = 2000.5, volume: int = 412) -> Row:
    return (wall, 2000.0, 2001.25, 1999.75, close, volume, 28)


def rows(opens: Iterable[datetime], wall: Wall = new_york_plus_7) -> list[Row]:
    return [row(wall(time), 2000.0 + at % 100 / 100) for at, time in enumerate(opens)]


def quarters(first: datetime, count: int, minutes: int = 15) -> list[datetime]:
    return [first + at * timedelta(minutes=minutes) for at in range(count)]


def text(
    bars: Sequence[Row],
    server_offset: int,
    source: BarFileOwner = GOLD,
    *,
    key: str = KEY,
    count: int | None = None,
    header: str = HEADER,
    newline: str = "\n",
    version: int = 2,
) -> str:
    said = len(bars) if count is None else count
    first = (
        f'{{"v":{version},"msg":"bars","channel":"{source.channel}","account":{source.account},'
        f'"broker_symbol":"{source.broker_symbol}","tf":"{source.timeframe}","count":{said},'
        f'"server_offset_s":{server_offset}}}'
    )
    return signed([first, header, *lines(bars)], key, newline)


def lines(bars: Sequence[Row]) -> list[str]:
    return [",".join(map(str, bar)) for bar in bars]


def signed(content: Sequence[str], key: str = KEY, newline: str = "\n") -> str:
    body = "".join(line + newline for line in content)
    mac = hmac.new(key.encode(), body.encode(), hashlib.sha256).hexdigest()
    return f"{body}end,{mac}{newline}"


def put(path: Path, content: str | bytes, written: datetime | None = None) -> None:
    """Put a file in place as the Expert Advisor does, by renaming; `written` is when."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name("draft")
    draft.write_bytes(content if isinstance(content, bytes) else content.encode())
    if written is not None:
        os.utime(draft, (written.timestamp(), written.timestamp()))
    draft.replace(path)


def feed(
    folder: Path, symbols: Mapping[str, str], clock: ServerClock, channel: str = "main"
) -> Mt5FilesFeed:
    """The feed of a channel's folder."""
    return Mt5FilesFeed(folder, symbols, clock, KEY, channel=channel, account=ACCOUNT)


NOON = datetime(2026, 2, 11, 12, tzinfo=UTC)
