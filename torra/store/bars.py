"""Stores the bars that Torra has seen, each once; a changed bar becomes a new revision of it.

Revisions count through a whole stream: a bar that is changed, or put in between, gets a number
above all that its stream has. So a range of bars and its highest revision name for ever the very
bars that a tick saw (`bars_then`).

A bar that turns out never to have been is withdrawn: a revision with WITHDRAWN for its volume,
which every read leaves out. The revisions before it stay, for the ticks that saw them.

Reads are causal: they return nothing that closed after `as_of`. The records, the highest and the
lowest price so far, are looked up in two small tables of the bars that set a new one; the tables
are kept right when bars arrive late or change.

A spread that a frame has beside its bars is kept with them, and comes back as a column of what is
loaded. It belongs to a revision of a bar: a bar that changes has that of its new self, or none. The
first spread of a revision stays; one that comes later than its bar, as from an import, is added. So
bars, their revisions and their hashes are what they were without spreads.

A number that is not finite raises ValueError, a database that fails StoreUnavailable. The feed's
door (torra.feeds) decides whether bars may be used at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ath_calculator import Records
from torra.clock import EPOCH, TIMEFRAMES, duration, parse
from torra.config import Instance
from torra.market import spreads
from torra.market.known_bars import BarMatrix, KnownBars, Stream
from torra.store.connection import BUSY_SECONDS, RowDict, Store, stamp

COLUMNS: Final = ("open", "high", "low", "close", "volume")

Stored = tuple[str, float, float, float, float, float]
"""A bar as a row: bar_time, open, high, low, close, volume."""

NEWEST_REVISIONS: Final = (
    "SELECT bar_time, max(revision) AS revision, open, high, low, close, volume FROM bars "
    "WHERE instance = ? AND timeframe = ? AND bar_time BETWEEN ? AND ? "
    "GROUP BY bar_time HAVING volume >= 0 "
)
"""Beside max(), SQLite gives the other columns of the very row that holds the maximum.

Withdrawn bars are left out: their newest revision has WITHDRAWN for its volume.
"""

WITHDRAWN: Final = -1.0
"""The volume that says that a bar is none. The feeds' door lets no negative volume in."""

AFTER_ALL: Final = "~"
"""Text that sorts after every time."""


OF_RANGE: Final = "FROM spreads WHERE instance = ? AND timeframe = ? AND bar_time BETWEEN ? AND ?"
REVISED: Final = (
    "SELECT bar_time, max(revision) FROM bars WHERE instance = ? AND timeframe = ? "
    "AND bar_time BETWEEN ? AND ? AND revision > 0 GROUP BY bar_time"
)
"""The newest revision of each bar that has another than 0."""


class RecordTable(NamedTuple):
    """A table of the bars that set a new record, and its column of prices."""

    name: str
    price: str


HIGHS: Final = RecordTable("record_highs", "high")
LOWS: Final = RecordTable("record_lows", "low")

BEFORE_ALL: Final = ""
"""Text that sorts before every time."""


class BarStore(Store):
    """Bars of every stream."""

    def __init__(
        self, path: Path, *, now: Callable[[], datetime], busy_seconds: float = BUSY_SECONDS
    ) -> None:
        super().__init__(path, now=now, busy_seconds=busy_seconds)
        self._known_bars = KnownBars()

    def daily_closes(
        self, instance: str, timeframe: str, first: date, last: date
    ) -> list[tuple[date, float]]:
        """Return the close of each day's last bar, from `first` to `last`; days are of UTC."""
        rows = self.tuples(
            "SELECT substr(bar_time, 1, 10) AS day, close, max(bar_time) FROM "  # noqa: S608
            f"({NEWEST_REVISIONS}) GROUP BY day ORDER BY day",
            instance, timeframe, first.isoformat(), last.isoformat() + AFTER_ALL,
        )  # fmt: skip
        return [(date.fromisoformat(day), close) for day, close, _ in rows]

    def store_bars(self, instance: str, timeframe: str, frame: pd.DataFrame) -> int:
        """Store the bars of a frame that are new or changed; return how many bars were new.

        The frame is that of the feeds: UTC index of open times, columns open to volume, and spreads
        where they are known.
        """
        given = _as_arrays(frame)
        if not len(given.times):
            return 0
        stream = instance, timeframe
        with self.transaction():
            known = self._known_head(stream, given)
            bars = _as_rows(given.part(known, len(given.times)))
            stored = self._stored(instance, timeframe, bars[0][0], bars[-1][0]) if bars else []
            there = {bar[0] for bar in stored}
            if stored == bars[: len(stored)]:  # what every tick but the first finds
                fresh = bars[len(stored) :]
                self._known_bars.keep(stream, given.part(0, known + len(stored)), self._turns)
            else:
                # In the order of revisions: the newest revision of a bar overwrites the others.
                last = {bar[0]: bar for bar in stored}
                fresh = [bar for bar in bars if last.get(bar[0]) != bar]
            newest = self._newest_row(instance, timeframe) if fresh else BEFORE_ALL
            # Bars that only extend the stream keep revision 0, so the usual tick needs no search
            # for it.
            again = bool(fresh) and fresh[0][0] <= newest
            later = self._next_revision(instance, timeframe) if again else 0
            at = self.moment()
            # `_add` would refuse what is not finite; `_as_arrays` has done so for all bars at once.
            self._insert(
                stream,
                [
                    (instance, timeframe, bar[0], later if bar[0] <= newest else 0, *bar[1:], at)
                    for bar in fresh
                ],
            )
            _store_spreads(self, instance, timeframe, _known_spreads(frame, given.times))
            if again:
                self._settle_records(instance, timeframe, fresh[0][0])
            elif fresh:  # what they only extend has no bar after them that would need a look
                self._add_records(instance, timeframe, [bar for bar in fresh if bar[5] >= 0])
        return sum(bar[0] not in there for bar in fresh)

    def withdraw_others(self, instance: str, timeframe: str, frame: pd.DataFrame) -> int:
        """Withdraw the stored bars between the first and the last of a frame that it has not.

        Returns how many. The frame is that of `store_bars`.
        """
        bars = _as_rows(_as_arrays(frame))
        if not bars:
            return 0
        there = {bar[0] for bar in bars}
        with self.transaction():
            rows = self.rows(
                NEWEST_REVISIONS + "ORDER BY bar_time",
                instance, timeframe, bars[0][0], bars[-1][0],
            )  # fmt: skip
            others = [row for row in rows if row["bar_time"] not in there]
            revision, at = self._next_revision(instance, timeframe), self.moment()
            self._insert(
                (instance, timeframe),
                [
                    (instance, timeframe, row["bar_time"], revision, row["open"], row["high"],
                     row["low"], row["close"], WITHDRAWN, at)
                    for row in others
                ],
            )  # fmt: skip
            if others:
                self._settle_records(instance, timeframe, others[0]["bar_time"])
        return len(others)

    def load_bars(
        self, instance: str, timeframe: str, *, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars (None: all) that were closed at `as_of`, oldest first.

        The frame has the feeds' shape, with a column of spreads where one of them is known; it is
        empty when there are none.
        """
        rows = self.tuples(*_newest_bars(instance, timeframe, as_of, limit))[::-1]
        frame = _as_frame(rows)
        if not rows:
            return frame
        known = _spreads_of(self, instance, timeframe, rows[0][0], rows[-1][0])
        if known:
            found = [known.get((bar_time, revision), np.nan) for bar_time, revision, *_ in rows]
            frame[spreads.SPREAD] = np.array(found)
        return frame

    def records(self, instance: str, timeframe: str, *, as_of: datetime) -> Records | None:
        """Return the highest and the lowest price of the stream up to `as_of`, and since when.

        None without a bar.
        """
        last = stamp(as_of - duration(timeframe))
        high = self._record(HIGHS, instance, timeframe, last)
        low = self._record(LOWS, instance, timeframe, last)
        # The first bar of all sets both records.
        first = self.value(
            "SELECT min(bar_time) FROM record_highs WHERE instance = ? AND timeframe = ?",
            instance, timeframe,
        )  # fmt: skip
        if high is None or low is None:
            return None
        return Records(high, low, parse(first))

    def bar_revision(
        self, instance: str, timeframe: str, first: datetime, last: datetime
    ) -> int | None:
        """Return the highest revision among the bars from `first` to `last` (bar times)."""
        revision = self.value(
            "SELECT max(revision) FROM bars WHERE instance = ? AND timeframe = ? "
            "AND bar_time BETWEEN ? AND ?",
            instance, timeframe, first, last,
        )  # fmt: skip
        return None if revision is None else int(revision)

    def _known_head(self, stream: Stream, given: BarMatrix) -> int:
        """Return how many of the first bars are stored as they are, once each and nothing between.

        0 where that would have to be read.
        """
        known = self._known_bars.head(stream, given)
        if not known:
            return 0
        first, last = _texts(given.times[[0, known - 1]])
        found = self.connection().conn.execute(
            "SELECT count(*) FROM bars WHERE instance = ? AND timeframe = ? "
            "AND bar_time BETWEEN ? AND ?",
            (*stream, first, last),
        )
        return known if found.fetchone()[0] == known else 0

    def _insert(self, stream: Stream, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            self._known_bars.wrote(stream, self._turns)
        self.connection().conn.executemany(
            "INSERT INTO bars VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
        )

    def _stored(self, instance: str, timeframe: str, first: str, last: str) -> list[Stored]:
        """Return the bars of a range in the order of their times and revisions."""
        found = self.connection().conn.execute(
            "SELECT bar_time, open, high, low, close, volume FROM bars WHERE instance = ? "
            "AND timeframe = ? AND bar_time BETWEEN ? AND ? ORDER BY bar_time, revision",
            (instance, timeframe, first, last),
        )
        return list(found)

    def _newest_row(self, instance: str, timeframe: str) -> str:
        """Return the time of the newest bar that ever was, withdrawn ones too."""
        sql = "SELECT max(bar_time) FROM bars WHERE instance = ? AND timeframe = ?"
        return str(self.value(sql, instance, timeframe) or BEFORE_ALL)

    def _next_revision(self, instance: str, timeframe: str) -> int:
        sql = (
            "SELECT coalesce(max(revision), -1) + 1 FROM bars WHERE instance = ? AND timeframe = ?"
        )
        return int(self.value(sql, instance, timeframe))

    def _record(self, kind: RecordTable, instance: str, timeframe: str, last: str) -> float | None:
        """Return the record up to a bar time; None without a bar."""
        price = self.value(
            f"SELECT {kind.price} FROM {kind.name} WHERE instance = ? AND timeframe = ? "  # noqa: S608
            "AND bar_time <= ? ORDER BY bar_time DESC LIMIT 1",
            instance, timeframe, last,
        )  # fmt: skip
        return None if price is None else float(price)

    def _settle_records(self, instance: str, timeframe: str, first: str) -> None:
        """Find the bars from `first` on that set a new high or a new low, and forget what did."""
        later = self.connection().conn.execute(
            NEWEST_REVISIONS + "ORDER BY bar_time",
            (instance, timeframe, first, AFTER_ALL),
        )
        bars = [(bar_time, *prices) for bar_time, _, *prices in later]
        for kind in (HIGHS, LOWS):
            self.change(
                f"DELETE FROM {kind.name} "  # noqa: S608
                "WHERE instance = ? AND timeframe = ? AND bar_time >= ?",
                instance, timeframe, first,
            )  # fmt: skip
        self._add_records(instance, timeframe, bars)

    def _add_records(self, instance: str, timeframe: str, bars: Sequence[Stored]) -> None:
        """Add those of a stream's last bars that set a new high or a new low."""
        for kind in (HIGHS, LOWS):
            # What is in the table lies before the bars: the record that they must beat.
            record = self._record(kind, instance, timeframe, AFTER_ALL)
            found = []
            for bar_time, _, high, low, *_ in bars:
                price = high if kind is HIGHS else low
                if record is None or (price > record if kind is HIGHS else price < record):
                    record = price
                    found.append((instance, timeframe, bar_time, price))
            self.connection().conn.executemany(
                f"INSERT INTO {kind.name} VALUES (?, ?, ?, ?)",  # noqa: S608
                found,
            )


def times_held(store: Store, instance: str, timeframe: str, first: datetime, last: datetime) -> int:
    """Return how many bar times from `first` to `last` were ever stored."""
    return int(
        store.value(
            "SELECT count(DISTINCT bar_time) FROM bars WHERE instance = ? "
            "AND timeframe = ? AND bar_time BETWEEN ? AND ?",
            instance, timeframe, first, last,
        )
    )  # fmt: skip


def newest_bars(
    store: Store, instance: str, timeframe: str, *, as_of: datetime, limit: int | None = None
) -> list[RowDict]:
    """Return what `load_bars` does as rows: bar_time, revision, open to volume."""
    return store.rows(*_newest_bars(instance, timeframe, as_of, limit))[::-1]


def closes(
    store: Store, instance: str, timeframe: str, *, since: datetime, as_of: datetime
) -> pd.DataFrame:
    """Return the closes of the bars that open from `since` on and were closed at `as_of`.

    A frame of one column, `close`, on the index of `load_bars`; far faster than the whole bars.
    """
    found = store.tuples(
        NEWEST_REVISIONS + "ORDER BY bar_time",
        instance, timeframe, since, as_of - duration(timeframe),
    )  # fmt: skip
    # numpy takes no Z at the end of a time.
    times, values = [row[0][:-1] for row in found], [row[5] for row in found]
    return pd.DataFrame({"close": np.array(values, dtype=float)}, index=_index(times))


def any_closes(store: Store, instance: str, *, as_of: datetime) -> pd.DataFrame | None:
    """Return the closes of the shortest timeframe that is stored, None where none is."""
    held = (closes(store, instance, name, since=EPOCH, as_of=as_of) for name in TIMEFRAMES)
    return next((frame for frame in held if len(frame)), None)


def bars_then(
    store: Store, instance: str, timeframe: str, first: datetime, last: datetime, revision: int
) -> pd.DataFrame:
    """Return the bars from `first` to `last` as they were while `revision` was their highest.

    That is what `bar_revision` gave for the same range. The frame has the feeds' shape.
    """
    rows = store.tuples(
        "SELECT bar_time, max(revision) AS revision, open, high, low, close, volume FROM bars "
        "WHERE instance = ? AND timeframe = ? AND bar_time BETWEEN ? AND ? AND revision <= ? "
        "GROUP BY bar_time HAVING volume >= 0 ORDER BY bar_time",
        instance, timeframe, first, last, revision,
    )  # fmt: skip
    return _as_frame(rows)


def bar_rows(store: Store, instance: str, timeframe: str) -> int:
    """Return how many bars of a stream are stored, every revision counted."""
    sql = "SELECT count(*) FROM bars WHERE instance = ? AND timeframe = ?"
    return int(store.value(sql, instance, timeframe))


def newest_bar(store: Store, instance: str, timeframe: str) -> datetime | None:
    """Return the open time of the newest stored bar; None without one."""
    row = _newest(store, instance, timeframe)
    return parse(row["bar_time"]) if row else None


def newest_companion(
    store: Store, instance: Instance, symbol: str, timeframe: str
) -> datetime | None:
    """Return the open time of the newest stored bar of a companion; None without one."""
    streams = instance.companion_streams(symbol)
    found = (newest_bar(store, name, timeframe) for name in streams)
    return max(filter(None, found), default=None)


def bar_span(store: Store, instance: str, timeframe: str) -> tuple[str, str] | None:
    """Return the first and the last stored bar time, ISO; None without a bar."""
    stream = instance, timeframe, BEFORE_ALL, AFTER_ALL
    first = store.row(NEWEST_REVISIONS + "ORDER BY bar_time LIMIT 1", *stream)
    last = _newest(store, instance, timeframe)
    return (str(first["bar_time"]), str(last["bar_time"])) if first and last else None


def has_bar(store: Store, instance: str, timeframe: str, first: datetime, last: datetime) -> bool:
    """Return whether a bar from `first` to `last` (bar times) is stored."""
    sql = NEWEST_REVISIONS + "LIMIT 1"
    return store.row(sql, instance, timeframe, first, last) is not None


def _as_arrays(frame: pd.DataFrame) -> BarMatrix:
    """Return the bars of a frame; raises ValueError on a number that is not finite."""
    # Columns picked from a frame are copied one by one; most frames have these and no others.
    picked = frame if frame.columns.tolist() == [*COLUMNS] else frame[list(COLUMNS)]
    numbers = picked.to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        raise ValueError("a bar with a number that is not finite may not be stored")
    return BarMatrix(_times(frame.index), numbers)


def _times(index: pd.Index) -> NDArray[np.int64]:
    """Return open times in microseconds since 1970."""
    times: NDArray[np.int64] = pd.DatetimeIndex(index).tz_convert("UTC").as_unit("us").asi8
    return times


def _texts(times: NDArray[np.int64]) -> list[str]:
    """Return open times as they are stored."""
    seconds = times.view("M8[us]").astype("M8[s]")
    found: list[str] = np.datetime_as_string(seconds, timezone="UTC").tolist()
    return found


def _known_spreads(frame: pd.DataFrame, times: NDArray[np.int64]) -> dict[str, float]:
    """Return the spreads of a frame that are known, by bar time."""
    found, _ = spreads.of_frame(frame)
    if found is None:
        return {}
    there = ~np.isnan(found)
    return dict(zip(_texts(times[there]), found[there].tolist(), strict=True))


def _as_rows(bars: BarMatrix) -> list[Stored]:
    # Sorted as `_stored` is, so that the two lists can be compared as they are.
    return sorted(zip(_texts(bars.times), *bars.numbers.T.tolist(), strict=True))


def _index(times: Sequence[str]) -> pd.DatetimeIndex:
    """Return times without their Z as an index of open times."""
    stamps = np.array(times, dtype="datetime64[s]")
    return pd.DatetimeIndex(stamps, name="time").tz_localize("UTC")


def _newest_bars(
    instance: str, timeframe: str, as_of: datetime, limit: int | None
) -> tuple[str, str, str, str, str, int]:
    """Return the query of the newest bars that were closed at `as_of`, newest first."""
    return (
        NEWEST_REVISIONS + "ORDER BY bar_time DESC LIMIT ?",
        instance,
        timeframe,
        BEFORE_ALL,
        stamp(as_of - duration(timeframe)),
        -1 if limit is None else limit,
    )


def _as_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Return rows of bar_time, revision, open to volume as a frame of the feeds' shape."""
    times, _, *values = zip(*rows, strict=True) if rows else ((),) * (2 + len(COLUMNS))
    # numpy takes no Z at the end of a time.
    index = _index([time[:-1] for time in times])
    bars = np.ascontiguousarray(np.array(values, dtype=float).T)
    return pd.DataFrame(bars, index=index, columns=list(COLUMNS))


def last_close(
    store: Store, instance: str, timeframe: str, as_of: datetime
) -> tuple[str, float] | None:
    """Return bar time and close of the newest bar that was closed at `as_of`.

    None for a close that is no number: then no price is known.
    """
    row = store.row(
        NEWEST_REVISIONS + "ORDER BY bar_time DESC LIMIT 1",
        instance, timeframe, BEFORE_ALL, as_of - duration(timeframe),
    )  # fmt: skip
    known = row is not None and isinstance(row["close"], float)
    return (str(row["bar_time"]), row["close"]) if row is not None and known else None


def newest_close(
    store: Store, instance: str, timeframes: Sequence[str], as_of: datetime
) -> float | None:
    """Return the close of the bar that ended last at `as_of`, of several timeframes."""
    found = [
        (parse(told[0]) + duration(timeframe), told[1])
        for timeframe in timeframes
        if (told := last_close(store, instance, timeframe, as_of)) is not None
    ]
    return max(found)[1] if found else None


def _newest(store: Store, instance: str, timeframe: str) -> RowDict | None:
    """Return the newest bar; None without one."""
    sql = NEWEST_REVISIONS + "ORDER BY bar_time DESC LIMIT 1"
    return store.row(sql, instance, timeframe, BEFORE_ALL, AFTER_ALL)


def _store_spreads(store: Store, instance: str, timeframe: str, known: Mapping[str, float]) -> None:
    """Store what is new of spreads by bar time; their bars are stored."""
    if not known:
        return
    stream = instance, timeframe, min(known), max(known)
    ask = store.connection().conn.execute
    # As one text: a row for each of 750 bars takes ten times as long.
    (held,) = ask(f"SELECT group_concat(bar_time) {OF_RANGE} AND revision = 0", stream).fetchone()
    first = set((held or "").split(","))
    revised = dict(ask(REVISED, stream))
    later = set(ask(f"SELECT bar_time, revision {OF_RANGE}", stream)) if revised else ()
    store.connection().conn.executemany(
        "INSERT INTO spreads VALUES (?, ?, ?, ?, ?)",
        [
            (instance, timeframe, time, revised.get(time, 0), spread)
            for time, spread in known.items()
            if ((time, revised[time]) not in later if time in revised else time not in first)
        ],
    )


def _spreads_of(
    store: Store, instance: str, timeframe: str, first: str, last: str
) -> dict[tuple[str, int], float]:
    """Return the spreads of a range by bar time and revision."""
    found = store.connection().conn.execute(
        f"SELECT bar_time, revision, spread {OF_RANGE}",
        (instance, timeframe, first, last),
    )
    return {(time, revision): spread for time, revision, spread in found}
