"""Reads what a host hands over with a bar: bars, scores, extra numbers, headlines, a picture.

`read` takes anything. Bars that cannot be used are an InvalidRequest with its reason; of the rest,
what cannot be used is left out and noted. Of bars only the columns that are used are read. Times
without a zone need the clock that they were written by. Bars that were not closed at the moment of
the question are left out: MT5 hands the forming one over with the others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from numbers import Real
from typing import Any, Final, Self, TypeVar

import numpy as np
import pandas as pd

from agents.contracts import VECTORS
from torra.chart import screenshot
from torra.clock import TIMEFRAMES, duration, iso
from torra.config import NAME, NAME_RULE
from torra.errors import DataUnavailable, TorraError
from torra.evidence.news_digest import NewsItem, in_time, rated
from torra.feeds import door
from torra.market.broker_clock import ServerClock
from torra.news import lexicon, reading
from torra.verdict import sentiment_rules

Value = TypeVar("Value")

MOST_BARS: Final = 6_000
"""Bars of a question that are read, the newest."""

MOST_EXTRA: Final = 64
EXTRA_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""How many numbers of a host become evidence, and what each may be called."""

READ_EXTRA: Final = 256
"""Of more numbers the rest is not even looked at: a call has a deadline."""

MOST_HEADLINES: Final = 50

AHEAD: Final = timedelta(seconds=2)
"""How far a moment may lie ahead of now: clocks differ."""

OWN_FACTS: Final[Mapping[str, Callable[[float], bool]]] = {
    "spread": lambda value: value >= 0,
    "position": lambda value: value in (-1.0, 0.0, 1.0),
    "losing_streak": lambda value: value >= 0 and value.is_integer(),
}
"""Extra numbers that the desk's own evidence has a place for, each with whether it can be: the
spread in price units, the position as its side (1 long, -1 short, 0 flat), trades lost in a row."""

TIME: Final = ("time", "timestamp", "datetime", "date")
VOLUME: Final = ("volume", "tick_volume", "real_volume")
"""Names under which hosts have the open time of a bar, and its volume."""

TIMES: Final = (
    "bars: times must be datetimes, ISO texts with a zone, or seconds of the server's clock; other "
    'texts become datetimes by pandas.to_datetime, of a CSV by parse_dates=["time"]'
)

PRICES: Final = ("open", "high", "low", "close")
USED: Final = frozenset((*TIME, *PRICES, *VOLUME))


class NoScores(TorraError):
    """There are no scores to return: none were handed over, and none can be computed."""


class InvalidRequest(ValueError):
    """Why bars or a moment cannot be used; `notes` say what else was left out."""

    notes: tuple[str, ...] = ()

    def noting(self, notes: tuple[str, ...]) -> Self:
        """Return this with notes."""
        self.notes = notes
        return self


@dataclass(frozen=True, slots=True)
class OverlayRequest:
    """A question that can be debated.

    `bars` are closed bars as the door lets them in, at most MOST_BARS. `scores` are the host's own,
    None when it gave none. `notes` say what was left out.
    """

    symbol: str
    timeframe: str
    moment: datetime
    bars: pd.DataFrame
    scores: Mapping[str, float] | None = None
    extra: Mapping[str, float] = field(default_factory=dict)
    headlines: tuple[NewsItem, ...] = ()
    picture: bytes | None = None
    notes: tuple[str, ...] = ()

    @property
    def picture_hash(self) -> str | None:
        """The hash of the picture that was handed over."""
        return hashlib.sha256(self.picture).hexdigest() if self.picture else None


def hash_of(bars: pd.DataFrame, **parts: Any) -> str:
    """Return the hash of everything that decides an answer.

    `parts`: scores, extra, headlines (sorted ids), picture (its hash), profile (its digest), and
    stale: the newest bar is too old for an opening. A feed that stands still must not be answered
    with what was said while its bar was fresh.
    """
    digest = hashlib.sha256(pd.DatetimeIndex(bars.index).as_unit("us").asi8.tobytes())
    digest.update(np.ascontiguousarray(bars.to_numpy(dtype=np.float64)).tobytes())
    text = json.dumps({"bars": digest.hexdigest(), **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read(
    symbol: Any,
    timeframe: Any,
    bars: Any,
    *,
    scores: Any = None,
    extra: Any = None,
    headlines: Any = None,
    picture: Any = None,
    as_of: Any = None,
    now: datetime,
    clock: ServerClock | None = None,
) -> OverlayRequest:
    """Read a question; `now` is real time, `clock` that of naive times.

    Raises InvalidRequest for what cannot be debated, and NoScores for scores that are none: there
    is nothing to fall back on.
    """
    notes: list[str] = []
    own = scores_of(scores)
    try:
        name, step = names_of(symbol, timeframe)
        moment = now if as_of is None else moment_of(as_of, clock)
        if moment > now + AHEAD:
            raise InvalidRequest(  # noqa: TRY301 - it is a reason as the others
                f"as_of: {iso(moment)} lies ahead of now, {iso(now.replace(microsecond=0))}"
            )
        frame = _closed(_frame(bars, clock), step, moment, notes, live=as_of is None)
        last = pd.DatetimeIndex(frame.index).max().to_pydatetime()
        frame = door.check(frame, step, as_of=last + duration(step))
    except InvalidRequest:
        raise
    except DataUnavailable as error:
        raise InvalidRequest(f"bars: {error.reason}: {error.detail}") from None
    except Exception as error:
        raise InvalidRequest(f"bars: {type(error).__name__}") from error

    def part(called: str, nothing: Value, work: Callable[[], Value]) -> Value:
        """Return a part as it is read; nothing of it where a host's object raises."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a host's objects may raise anything
            notes.append(f"{called}:{type(error).__name__}")
            return nothing

    return OverlayRequest(
        name,
        step,
        moment,
        frame,
        own,
        part("extra", {}, lambda: _extra(extra, notes)),
        part("headlines", (), lambda: _headlines(headlines, name, moment, clock, notes)),
        part("picture", None, lambda: _picture(picture, notes)),
        tuple(notes),
    )


# --- names and moments ----------------------------------------------------------------------------


def names_of(symbol: Any, timeframe: Any) -> tuple[str, str]:
    """Return a symbol and a timeframe that can be a stream; raises InvalidRequest."""
    if not isinstance(symbol, str) or not NAME.fullmatch(symbol):
        raise InvalidRequest(f"symbol: {NAME_RULE}")
    if not isinstance(timeframe, str) or timeframe not in TIMEFRAMES:
        raise InvalidRequest(f"timeframe: use one of {', '.join(TIMEFRAMES)}")
    return symbol, timeframe


def moment_of(value: Any, clock: ServerClock | None) -> datetime:
    """Return a moment in UTC; a naive one is read by the clock. Raises ValueError."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime):
        raise InvalidRequest("as_of: hand over a datetime")
    if value.tzinfo is not None:
        return pd.Timestamp(value).tz_convert("UTC").to_pydatetime()
    if clock is None:
        raise InvalidRequest("as_of: it has no time zone; name the clock of the overlay")
    return clock.to_utc(int(pd.Timestamp(value).timestamp()))


# --- bars -----------------------------------------------------------------------------------------


def _frame(bars: Any, clock: ServerClock | None) -> pd.DataFrame:
    """Return the newest bars with float columns on an index in UTC, as they come."""
    table = _table(bars)
    if table.empty:
        raise InvalidRequest("bars: there is none; hand over 210 or more")
    if len(set(table.columns)) != len(table.columns):
        raise InvalidRequest("bars: a column appears more than once")
    columns = {name: _numbers(table, name) for name in PRICES}
    volume = next((name for name in VOLUME if name in table.columns), None)
    # + 0.0: no negative zero, which the database would not give back.
    columns["volume"] = np.zeros(len(table)) if volume is None else _numbers(table, volume) + 0.0
    return pd.DataFrame(columns, index=_index(table, clock))


def _table(bars: Any) -> pd.DataFrame:
    """Return the used columns of the newest bars under their plain names."""
    if isinstance(bars, pd.DataFrame | np.ndarray):
        table = _used(pd.DataFrame(bars[-MOST_BARS:], copy=False))
        timed = isinstance(table.index, pd.DatetimeIndex) or _plain(table.index.name) in TIME
        if timed and not _time_of(table):
            table = table.rename_axis("time").reset_index()
        return table
    if not isinstance(bars, Sequence) or isinstance(bars, str | bytes):
        raise InvalidRequest("bars: hand over a DataFrame or a list of rows")
    rows = list(bars[-MOST_BARS:])
    if rows and not isinstance(rows[0], Mapping):
        names = ["time", *PRICES, "volume"][: max(map(len, rows))]
        return pd.DataFrame([tuple(row) for row in rows], columns=names)
    return _used(
        pd.DataFrame([{name: row[name] for name in row if _plain(name) in USED} for row in rows])
    )


def _used(table: pd.DataFrame) -> pd.DataFrame:
    names = [_plain(name) for name in table.columns]
    used = [place for place, name in enumerate(names) if name in USED]
    return table.iloc[:, used].set_axis([names[place] for place in used], axis=1)


def _plain(name: object) -> str:
    return str(name).strip().lower()


def _time_of(table: pd.DataFrame) -> str | None:
    return next((name for name in TIME if name in table.columns), None)


def _numbers(table: pd.DataFrame, name: str) -> Any:
    if name not in table.columns:
        raise InvalidRequest(f"bars: column {name} is missing")
    column = table[name]
    if getattr(column.dtype, "kind", "O") not in "fiu":
        raise InvalidRequest(f"bars: column {name} holds {column.dtype}, not numbers")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _index(table: pd.DataFrame, clock: ServerClock | None) -> pd.DatetimeIndex:
    name = _time_of(table)
    if name is None:
        raise InvalidRequest("bars: column time is missing")
    column = table[name]
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iu":
        # MT5 writes the wall clock of the server as seconds since 1970.
        return _by_clock(column.to_numpy(dtype=np.int64), clock)
    if kind not in "OM":
        raise InvalidRequest(TIMES)
    if kind == "O":
        times = [_zoned(value) if isinstance(value, str) else value for value in column]
        if not all(isinstance(value, datetime) for value in times):
            raise InvalidRequest(TIMES)
        aware = {value.tzinfo is not None for value in times}
        if len(aware) != 1:
            raise InvalidRequest("bars: some times have a time zone and some have none")
        column = pd.Series(pd.to_datetime(times, utc=aware.pop()))
    index = pd.DatetimeIndex(column)
    if index.hasnans:
        raise InvalidRequest("bars: a time is missing")
    if index.tz is not None:
        return index.tz_convert("UTC").as_unit("us")
    return _by_clock(index.as_unit("s").asi8, clock)


def _zoned(text: str) -> datetime:
    """Return the moment of an ISO text with a zone; one without may be of any order or clock."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequest(TIMES) from None
    if moment.tzinfo is None:
        raise InvalidRequest(TIMES)
    return moment


def _by_clock(wall: Any, clock: ServerClock | None) -> pd.DatetimeIndex:
    if clock is None:
        raise InvalidRequest(
            "bars: their times have no time zone; give the overlay the clock that they are "
            'written by, such as clock="new_york+7" or clock="utc"'
        )
    index = clock.to_utc_index(wall)
    if index.hasnans:
        raise InvalidRequest(f"bars: a time does not exist on a clock of {clock.name}")
    return index


def _closed(
    frame: pd.DataFrame, timeframe: str, moment: datetime, notes: list[str], *, live: bool
) -> pd.DataFrame:
    """Return the bars that are closed at a moment; `live`: it is now."""
    closed = np.asarray(pd.DatetimeIndex(frame.index) + duration(timeframe) <= pd.Timestamp(moment))
    later = int((~closed).sum())
    at = iso(moment.replace(microsecond=0))
    # One forming bar is usual; a clock that is hours ahead would leave a question of yesterday.
    if live and later > 1:
        raise InvalidRequest(
            f"bars: {later} close later than now, {at}: name the "
            "clock of the overlay that they are written by; whole numbers are seconds"
        )
    if later:
        notes.append(f"later_bars:{later}")
    if later == len(frame):
        raise InvalidRequest(f"bars: none of them is closed at {at}")
    return frame[closed]


# --- the rest -------------------------------------------------------------------------------------


def are_plain(scores: Any) -> bool:
    """Return whether scores are a dict of numbers, of which none can answer slowly."""
    return type(scores) is dict and all(isinstance(score, float | int) for score in scores.values())


def scores_of(scores: Any) -> Mapping[str, float] | None:
    """Return a host's own four scores, None where it gave none; raises NoScores."""
    if scores is None:
        return None
    try:
        values = {vector: scores[vector] for vector in VECTORS}
        # Those of numpy as plain numbers.
        values = {
            name: float(value) if isinstance(value, np.floating | np.integer) else value
            for name, value in values.items()
        }
        return sentiment_rules.numbers(values)
    except Exception as error:  # noqa: BLE001 - a host's objects may raise anything
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise NoScores(
            f"scores: {why}; hand over a number in [-1, +1] for each of {', '.join(VECTORS)}"
        ) from None


def _extra(extra: Any, notes: list[str]) -> Mapping[str, float]:
    """Return a host's numbers: finite, by a plain name, MOST_EXTRA at most."""
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        notes.append("extra:no_mapping")
        return {}
    numbers: dict[str, float] = {}
    dropped: list[str] = []
    for name, value in islice(extra.items(), READ_EXTRA):
        number = finite(value)
        named = isinstance(name, str) and EXTRA_NAME.fullmatch(name)
        if (
            named
            and number is not None
            and len(numbers) < MOST_EXTRA
            and OWN_FACTS.get(name, math.isfinite)(number)
        ):
            numbers[name] = number
        else:
            dropped.append(name if named else "?")
    if count := len(dropped) + max(0, len(extra) - READ_EXTRA):
        notes.append(f"extra_dropped:{count}:{','.join(dropped[:3])}")
    return numbers


def finite(value: Any) -> float | None:
    """Return a finite number; None for anything else, truth values among it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _headlines(
    headlines: Any, symbol: str, moment: datetime, clock: ServerClock | None, notes: list[str]
) -> tuple[NewsItem, ...]:
    """Return headlines as items, first seen at the moment of the question."""
    if headlines is None:
        return ()
    if isinstance(headlines, str | bytes) or not isinstance(headlines, Sequence):
        notes.append("headlines:no_list")
        return ()
    items: dict[str, NewsItem] = {}
    for row in islice(headlines, MOST_HEADLINES):
        item = _headline(row, symbol, moment, clock)
        if item is not None:
            items.setdefault(item.id, item)
    if len(items) < len(headlines):
        notes.append(f"headlines_dropped:{len(headlines) - len(items)}")
    return tuple(items.values())


def _headline(
    row: Any, symbol: str, moment: datetime, clock: ServerClock | None
) -> NewsItem | None:
    """Return one headline, a text or a mapping with headline, published, summary, url, source."""
    words = {"headline": row} if isinstance(row, str) else row
    if not isinstance(words, Mapping):
        return None
    try:
        published = moment_of(words.get("published", moment), clock)
    except ValueError:
        return None
    item = reading.item_of(
        # The host says that it is about the symbol.
        {**words, "tickers": [symbol]},
        feed="host",
        topic="scorer",
        published=published,
        source=words.get("source"),
    )
    # What says that it was published long after now was read by nobody.
    if item is None or not in_time(item.with_arrival(moment)):
        return None
    # It is known by all its words, and by whom they are about: an edited one is another headline.
    parts = [symbol, item.headline, item.summary, item.url, item.source]
    parts += [iso(published)] if "published" in words else []
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    return rated(replace(item, id=name), lexicon.score).with_arrival(moment)


def _picture(picture: Any, notes: list[str]) -> bytes | None:
    if picture is None:
        return None
    check = screenshot.check_picture(picture)
    if check.data is None:
        notes.append(check.flag)
    return check.data
