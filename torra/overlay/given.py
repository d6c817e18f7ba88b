"""What a host hands over with a bar, read: bars, scores, extra numbers, headlines, a picture.

`read` takes anything and never raises for it. Bars that cannot be used are a refusal with its
reason; of the rest, what cannot be used is left out and told. Of bars the columns that are used are
read, and no other one. Times without a zone need the clock that they were written by. Bars that
were not closed at the moment of the question are left out: MT5 hands the forming one over with the
others.
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
from typing import Any, Final, TypeVar

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
    """Why bars or a moment cannot be used."""


@dataclass(frozen=True, slots=True)
class OverlayRequest:
    """A question, read.

    `refusal` is "" or why nothing can be debated; then `bars` is None. `bars` are closed bars as
    the door lets them in, at most MOST_BARS. `scores` are the host's own, None when it gave none.
    `told` says what was left out.
    """

    symbol: str
    timeframe: str
    moment: datetime
    bars: pd.DataFrame | None = None
    scores: Mapping[str, float] | None = None
    extra: Mapping[str, float] = field(default_factory=dict)
    headlines: tuple[NewsItem, ...] = ()
    picture: bytes | None = None
    told: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def bar_time(self) -> datetime:
        """The open time of the newest closed bar."""
        if self.bars is None:
            raise ValueError(self.refusal)
        return pd.DatetimeIndex(self.bars.index)[-1].to_pydatetime()

    def hash(self, profile: str, *, stale: bool = False) -> str:
        """Return a hash of everything that decides the answer; `profile` is a profile's digest.

        `stale`: the newest bar is too old for an opening. A feed that stands still must not be
        answered with what was said while its bar was fresh.
        """
        if self.bars is None:
            raise ValueError(self.refusal)
        return hash_of(
            self.bars,
            scores=self.scores,
            extra=self.extra,
            headlines=[item.id for item in self.headlines],
            picture=hashlib.sha256(self.picture).hexdigest() if self.picture else None,
            profile=profile,
            stale=stale,
        )


def hash_of(
    bars: pd.DataFrame,
    *,
    scores: Mapping[str, float] | None,
    extra: Mapping[str, float],
    headlines: Sequence[str],
    picture: str | None,
    profile: str,
    stale: bool,
) -> str:
    """Return the hash of a question by its parts: headlines by id, picture and profile by hash."""
    whole = hashlib.sha256(pd.DatetimeIndex(bars.index).as_unit("us").asi8.tobytes())
    whole.update(np.ascontiguousarray(bars.to_numpy(dtype=np.float64)).tobytes())
    told = {
        "bars": whole.hexdigest(),
        "scores": None if scores is None else dict(scores),
        "extra": dict(sorted(extra.items())),
        "headlines": sorted(headlines),
        "picture": picture,
        "profile": profile,
        "stale": stale,
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


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

    Raises NoScores for scores that are none: there is nothing to fall back on.
    """
    told: list[str] = []
    own = scores_of(scores)
    moment, refusal, frame = now, "", None
    try:
        name, step = names_of(symbol, timeframe)
        if as_of is not None:
            moment = moment_of(as_of, clock)
        if moment > now + AHEAD:
            raise InvalidRequest(  # noqa: TRY301 - it is told with the others
                f"as_of: {iso(moment)} lies ahead of now, {iso(now.replace(microsecond=0))}"
            )
        frame = _frame(bars, clock)
        frame = _closed(frame, step, moment, told, live=as_of is None)
        frame = _checked(frame, step)
    except InvalidRequest as error:
        refusal = str(error)
    except Exception as error:  # noqa: BLE001 - a host's objects may raise anything
        refusal = f"bars: {type(error).__name__}"
    if refusal:
        return refused(symbol, timeframe, moment, own, refusal)
    return OverlayRequest(
        name,
        step,
        moment,
        bars=frame,
        scores=own,
        extra=_whole("extra", told, {}, lambda: _extra(extra, told)),
        headlines=_whole(
            "headlines", told, (), lambda: _headlines(headlines, name, moment, clock, told)
        ),
        picture=_whole("picture", told, None, lambda: _picture(picture, told)),
        told=tuple(told),
    )


def refused(
    symbol: Any, timeframe: Any, moment: datetime, scores: Mapping[str, float] | None, reason: str
) -> OverlayRequest:
    """Return a question that cannot be debated; a name that cannot be one is `?`."""
    name, step = (
        name if isinstance(name, str) and NAME.fullmatch(name) else "?"
        for name in (symbol, timeframe)
    )
    return OverlayRequest(name, step, moment, scores=scores, refusal=reason)


def _whole(name: str, told: list[str], nothing: Value, work: Callable[[], Value]) -> Value:
    """Return what a part reads as; nothing of it where a host's object raises."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - a host's objects may raise anything
        told.append(f"{name}:{type(error).__name__}")
        return nothing


# --- names and moments ----------------------------------------------------------------------------


def names_of(symbol: Any, timeframe: Any) -> tuple[str, str]:
    """Return a symbol and a timeframe that can be a stream; raises Refused, a ValueError."""
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
    found = {name: _numbers(table, name) for name in PRICES}
    volume = next((name for name in VOLUME if name in table.columns), None)
    # + 0.0: no negative zero, which the database would not give back.
    found["volume"] = np.zeros(len(table)) if volume is None else _numbers(table, volume) + 0.0
    return pd.DataFrame(found, index=_index(table, clock))


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
    if getattr(column.dtype, "kind", "O") in "iu":
        # MT5 writes the wall clock of the server as seconds since 1970.
        return _by_clock(column.to_numpy(dtype=np.int64), clock)
    if getattr(column.dtype, "kind", "O") == "O":
        times = [_zoned(value) if isinstance(value, str) else value for value in column]
        if not all(isinstance(value, datetime) for value in times):
            raise InvalidRequest(TIMES)
        aware = {value.tzinfo is not None for value in times}
        if len(aware) != 1:
            raise InvalidRequest("bars: some times have a time zone and some have none")
        index = pd.DatetimeIndex(pd.to_datetime(times, utc=aware.pop()))
    elif isinstance(column.dtype, pd.DatetimeTZDtype) or column.dtype.kind == "M":
        index = pd.DatetimeIndex(column)
    else:
        raise InvalidRequest(TIMES)
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
    frame: pd.DataFrame, timeframe: str, moment: datetime, told: list[str], *, live: bool
) -> pd.DataFrame:
    """Return the bars that are closed at a moment."""
    ends = pd.DatetimeIndex(frame.index) + duration(timeframe)
    closed = np.asarray(ends <= pd.Timestamp(moment))
    later = int((~closed).sum())
    if not later:
        return frame
    # One forming bar is usual; a clock that is hours ahead would leave a question of yesterday.
    if live and later > 1:
        raise InvalidRequest(
            f"bars: {later} close later than now, {iso(moment.replace(microsecond=0))}: name the "
            "clock of the overlay that they are written by; whole numbers are seconds"
        )
    told.append(f"later_bars:{later}")
    if not closed.any():
        raise InvalidRequest(
            f"bars: none of them is closed at {iso(moment.replace(microsecond=0))}"
        )
    return frame[closed]


def _checked(frame: pd.DataFrame, timeframe: str) -> pd.DataFrame:
    """Return the bars as the door lets them in."""
    last: datetime = pd.DatetimeIndex(frame.index).max().to_pydatetime()
    try:
        return door.check(frame, timeframe, as_of=last + duration(timeframe))
    except DataUnavailable as error:
        raise InvalidRequest(f"bars: {error.reason}: {error.detail}") from None


# --- the rest -------------------------------------------------------------------------------------


def are_plain(scores: Any) -> bool:
    """Return whether scores are a dict of numbers, of which none can answer slowly."""
    return type(scores) is dict and all(isinstance(one, float | int) for one in scores.values())


def scores_of(scores: Any) -> Mapping[str, float] | None:
    """Return a host's own four scores, None where it gave none; raises NoScores."""
    if scores is None:
        return None
    try:
        return sentiment_rules.numbers({vector: _score(scores, vector) for vector in VECTORS})
    except Exception as error:  # noqa: BLE001 - a host's objects may raise anything
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise NoScores(
            f"scores: {said}; hand over a number in [-1, +1] for each of {', '.join(VECTORS)}"
        ) from None


def _score(scores: Any, vector: str) -> Any:
    """Return a score as it is, one of numpy as a plain number."""
    value = scores[vector]
    return float(value) if isinstance(value, np.floating | np.integer) else value


def _extra(extra: Any, told: list[str]) -> Mapping[str, float]:
    """Return a host's numbers: finite, by a plain name, MOST_EXTRA at most."""
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        told.append("extra:no_mapping")
        return {}
    found: dict[str, float] = {}
    dropped: list[str] = []
    for name, value in islice(extra.items(), READ_EXTRA):
        known = finite(value)
        named = isinstance(name, str) and EXTRA_NAME.fullmatch(name)
        can_be = OWN_FACTS.get(name, math.isfinite) if named else None
        if known is not None and can_be and len(found) < MOST_EXTRA and can_be(known):
            found[name] = known
        else:
            dropped.append(name if named else "?")
    number = len(dropped) + max(0, len(extra) - READ_EXTRA)
    if number:
        told.append(f"extra_dropped:{number}:{','.join(dropped[:3])}")
    return found


def finite(value: Any) -> float | None:
    """Return a finite number; None for anything else, truth values among it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        known = float(value)
    except (OverflowError, ValueError):
        return None
    return known if math.isfinite(known) else None


def _headlines(
    headlines: Any, symbol: str, moment: datetime, clock: ServerClock | None, told: list[str]
) -> tuple[NewsItem, ...]:
    """Return headlines as items, first seen at the moment of the question."""
    if headlines is None:
        return ()
    if isinstance(headlines, str | bytes) or not isinstance(headlines, Sequence):
        told.append("headlines:no_list")
        return ()
    found: dict[str, NewsItem] = {}
    for row in islice(headlines, MOST_HEADLINES):
        item = _headline(row, symbol, moment, clock)
        if item is not None:
            found.setdefault(item.id, item)
    if len(found) < len(headlines):
        told.append(f"headlines_dropped:{len(headlines) - len(found)}")
    return tuple(found.values())


def _headline(
    row: Any, symbol: str, moment: datetime, clock: ServerClock | None
) -> NewsItem | None:
    """Return one headline, a text or a mapping with headline, published, summary, url, source."""
    words = {"headline": row} if isinstance(row, str) else row
    if not isinstance(words, Mapping):
        return None
    published = words.get("published", moment)
    try:
        if isinstance(published, str):
            published = datetime.fromisoformat(published.strip())
        published = moment_of(published, clock)
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
    # What says that it was published long after now is told by nobody who has read it.
    if item is None or not in_time(item.first_seen_at(moment)):
        return None
    # It is known by all that was said, and about whom: an edited one is another headline.
    said = [symbol, item.headline, item.summary, item.url, item.source]
    said += [iso(published)] if "published" in words else []
    name = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:24]
    return rated(replace(item, id=name), lexicon.score).first_seen_at(moment)


def _picture(picture: Any, told: list[str]) -> bytes | None:
    if picture is None:
        return None
    found = screenshot.check_picture(picture)
    if found.data is None:
        told.append(found.flag)
    return found.data
