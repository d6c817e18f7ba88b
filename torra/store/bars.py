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

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ath_calculator import Records
from torra.clock import EPOCH, TIMEFRAMES, duration, parse
from torra.config import Instance
from torra.market import spreads
from torra.store.connection import AFTER_ALL, BEFORE_ALL, RowDict, Store, stamp

COLUMNS: Final = ("open", "high", "low", "close", "volume")

Stored = tuple[str, float, float, float, float, float]
"""A bar as a row: bar_time, open, high, low, close, volume."""

Matrix = NDArray[np.float64]
"""Bars as rows: open time in microseconds since 1970, which a float holds exactly, then COLUMNS."""

OF_STREAM: Final = "instance = ? AND timeframe = ?"
OF_RANGE: Final = f"{OF_STREAM} AND bar_time BETWEEN ? AND ?"
NEWEST_REVISIONS: Final = (
    "SELECT bar_time, max(revision) AS revision, open, high, low, close, volume FROM bars "  # noqa: S608 - names of ours
    f"WHERE {OF_RANGE} GROUP BY bar_time HAVING volume >= 0 "
)
"""Beside max(), SQLite gives the other columns of the very row that holds the maximum.

Withdrawn bars are left out: their newest revision has WITHDRAWN for its volume.
"""

IN_ORDER: Final = NEWEST_REVISIONS + "ORDER BY bar_time"

WITHDRAWN: Final = -1.0
"""The volume that says that a bar is none. The feeds' door lets no negative volume in."""

MOST_KNOWN: Final = 2_000
"""Bars of a stream that are remembered: 100 kB. A tick brings 750."""


class RecordTable(NamedTuple):
    """A table of the bars that set a new record, its price, and when another one beats it."""

    name: str
    price: str
    beats: Callable[[float, float], bool]


RECORDS: Final = (
    RecordTable("record_highs", "high", operator.gt),
    RecordTable("record_lows", "low", operator.lt),
)


class BarCache:
    """The bars of a stream that are known to be stored, so that a tick need not read them again.

    A tick brings 750 bars of which one is new. Rows of bars are never changed, and taken away only
    in throw-away copies: where as many rows of a range are there as were, they are those that were.
    So the newest bars that were read stay in memory, and a count tells whether they are still all.

    Only what was committed may stand here: a row that its own transaction has written may be
    undone. Any thread may use it inside a transaction that writes; `turn` is the number of that.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Matrix] = {}
        self._written: dict[tuple[str, str], int] = {}

    def head(self, stream: tuple[str, str], bars: Matrix) -> int:
        """Return how many of the first bars are known as they are; whether all are is not said."""
        known = self._known.get(stream)
        if known is None:
            return 0
        start = int(np.searchsorted(known[:, 0], bars[0, 0]))
        count = min(len(known) - start, len(bars))
        return count if np.array_equal(known[start : start + count], bars[:count]) else 0

    def keep(self, stream: tuple[str, str], bars: Matrix, turn: int) -> None:
        """Remember bars that were read: all that are stored between the first and the last of them.

        Those of a stream to which this transaction has written are not remembered.
        """
        if self._written.get(stream) == turn or not (np.diff(bars[:, 0]) > 0).all():
            self._known.pop(stream, None)
        else:
            self._known[stream] = bars[-MOST_KNOWN:].copy()

    def wrote(self, stream: tuple[str, str], turn: int) -> None:
        """Note that a transaction has written bars of a stream, and may yet be undone."""
        self._written[stream] = turn

    def forget(self) -> None:
        """Forget all: rows were taken away."""
        self._known.clear()


class BarStore(Store):
    """Bars of every stream."""

    @cached_property
    def _bar_cache(self) -> BarCache:
        return BarCache()

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
        given = _as_matrix(frame)
        if not len(given):
            return 0
        stream = instance, timeframe
        with self.transaction():
            known = self._stored_head(stream, given)
            rest = given[known:]
            # Sorted as the stored ones are, so that the two lists can be compared as they are.
            numbers = rest[:, 1:].T.tolist()
            bars: list[Stored] = sorted(zip(_texts(rest), *numbers, strict=True))
            stored: list[Stored] = []
            if bars:
                stored = self.tuples(
                    "SELECT bar_time, open, high, low, close, volume FROM bars "  # noqa: S608
                    f"WHERE {OF_RANGE} ORDER BY bar_time, revision",
                    *stream, bars[0][0], bars[-1][0],
                )  # fmt: skip
            there = {bar[0] for bar in stored}
            if stored == bars[: len(stored)]:  # what every tick but the first finds
                fresh = bars[len(stored) :]
                self._bar_cache.keep(stream, given[: known + len(stored)], self._turns)
            else:
                # In the order of revisions: the newest revision of a bar overwrites the others.
                last = {bar[0]: bar for bar in stored}
                fresh = [bar for bar in bars if last.get(bar[0]) != bar]
            newest = BEFORE_ALL
            if fresh:  # the newest bar that ever was, withdrawn ones too
                sql = f"SELECT max(bar_time) FROM bars WHERE {OF_STREAM}"  # noqa: S608
                newest = self.value(sql, *stream) or BEFORE_ALL
            # Bars that only extend the stream keep revision 0, so the usual tick needs no search
            # for it.
            again = bool(fresh) and fresh[0][0] <= newest
            later = self._next_revision(stream) if again else 0
            # `add` would refuse what is not finite; `_as_matrix` has done so for all bars at once.
            self._insert(
                stream, [(bar[0], later if bar[0] <= newest else 0, *bar[1:]) for bar in fresh]
            )
            _store_spreads(self, stream, _spreads_by_time(frame, given))
            if again:
                self._settle_records(stream, fresh[0][0])
            elif fresh:  # what they only extend has no bar after them that would need a look
                self._add_records(stream, [bar for bar in fresh if bar[5] >= 0])
        return sum(bar[0] not in there for bar in fresh)

    def withdraw_others(self, instance: str, timeframe: str, frame: pd.DataFrame) -> int:
        """Withdraw the stored bars between the first and the last of a frame that it has not.

        Returns how many. The frame is that of `store_bars`.
        """
        times = sorted(_texts(_as_matrix(frame)))
        if not times:
            return 0
        there, stream = {*times}, (instance, timeframe)
        with self.transaction():
            rows = self.tuples(IN_ORDER, *stream, times[0], times[-1])
            revision = self._next_revision(stream)
            others = [
                (time, revision, *prices, WITHDRAWN)
                for time, _, *prices, _ in rows
                if time not in there
            ]
            self._insert(stream, others)
            if others:
                self._settle_records(stream, others[0][0])
        return len(others)

    def load_bars(
        self, instance: str, timeframe: str, *, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars (None: all) that were closed at `as_of`, oldest first.

        The frame has the feeds' shape, with a column of spreads where one of them is known; it is
        empty when there are none.
        """
        rows = self.tuples(*_newest(instance, timeframe, as_of, limit))[::-1]
        frame = _as_frame(rows)
        if not rows:
            return frame
        sql = f"SELECT bar_time, revision, spread FROM spreads WHERE {OF_RANGE}"  # noqa: S608
        of_range = self.tuples(sql, instance, timeframe, rows[0][0], rows[-1][0])
        if of_range:
            known = {(time, revision): spread for time, revision, spread in of_range}
            frame[spreads.SPREAD] = np.array(
                [known.get((time, revision), np.nan) for time, revision, *_ in rows]
            )
        return frame

    def records(self, instance: str, timeframe: str, *, as_of: datetime) -> Records | None:
        """Return the highest and the lowest price of the stream up to `as_of`, and since when.

        None without a bar.
        """
        stream, last = (instance, timeframe), stamp(as_of - duration(timeframe))
        high, low = (self._record(kind, stream, last) for kind in RECORDS)
        if high is None or low is None:
            return None
        # The first bar of all sets both records.
        sql = f"SELECT min(bar_time) FROM record_highs WHERE {OF_STREAM}"  # noqa: S608
        return Records(high, low, parse(self.value(sql, *stream)))

    def bar_revision(
        self, instance: str, timeframe: str, first: datetime, last: datetime
    ) -> int | None:
        """Return the highest revision among the bars from `first` to `last` (bar times)."""
        sql = f"SELECT max(revision) FROM bars WHERE {OF_RANGE}"  # noqa: S608
        revision: int | None = self.value(sql, instance, timeframe, first, last)
        return revision

    def _stored_head(self, stream: tuple[str, str], given: Matrix) -> int:
        """Return how many of the first bars are stored as they are, once each and nothing between.

        0 where that would have to be read.
        """
        known = self._bar_cache.head(stream, given)
        if not known:
            return 0
        sql = f"SELECT count(*) FROM bars WHERE {OF_RANGE}"  # noqa: S608
        return known if self.value(sql, *stream, *_texts(given[[0, known - 1]])) == known else 0

    def _insert(self, stream: tuple[str, str], rows: Sequence[tuple[object, ...]]) -> None:
        """Insert bars of a stream: bar time, revision, open to volume."""
        if not rows:
            return
        self._bar_cache.wrote(stream, self._turns)
        at = self.moment()
        self.connection().conn.executemany(
            "INSERT INTO bars VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*stream, *row, at) for row in rows],
        )

    def _next_revision(self, stream: tuple[str, str]) -> int:
        sql = f"SELECT coalesce(max(revision), -1) + 1 FROM bars WHERE {OF_STREAM}"  # noqa: S608
        return int(self.value(sql, *stream))

    def _record(self, kind: RecordTable, stream: tuple[str, str], last: str) -> float | None:
        """Return the record up to a bar time; None without a bar."""
        price: float | None = self.value(
            f"SELECT {kind.price} FROM {kind.name} WHERE {OF_STREAM} "  # noqa: S608
            "AND bar_time <= ? ORDER BY bar_time DESC LIMIT 1",
            *stream, last,
        )  # fmt: skip
        return price

    def _settle_records(self, stream: tuple[str, str], first: str) -> None:
        """Find the bars from `first` on that set a new high or a new low, and forget what did."""
        later = self.tuples(IN_ORDER, *stream, first, AFTER_ALL)
        for kind in RECORDS:
            sql = f"DELETE FROM {kind.name} WHERE {OF_STREAM} AND bar_time >= ?"  # noqa: S608
            self.change(sql, *stream, first)
        self._add_records(stream, [(bar_time, *prices) for bar_time, _, *prices in later])

    def _add_records(self, stream: tuple[str, str], bars: Sequence[Stored]) -> None:
        """Add those of a stream's last bars that set a new high or a new low."""
        for column, kind in enumerate(RECORDS, start=2):
            # What is in the table lies before the bars: the record that they must beat.
            record = self._record(kind, stream, AFTER_ALL)
            rows = []
            for bar in bars:
                price = float(bar[column])
                if record is None or kind.beats(price, record):
                    record = price
                    rows.append((*stream, bar[0], price))
            self.connection().conn.executemany(
                f"INSERT INTO {kind.name} VALUES (?, ?, ?, ?)",  # noqa: S608
                rows,
            )


def count_times(
    store: Store, instance: str, timeframe: str, first: datetime, last: datetime
) -> int:
    """Return how many bar times from `first` to `last` were ever stored."""
    sql = f"SELECT count(DISTINCT bar_time) FROM bars WHERE {OF_RANGE}"  # noqa: S608
    return int(store.value(sql, instance, timeframe, first, last))


def newest_bars(
    store: Store, instance: str, timeframe: str, *, as_of: datetime, limit: int | None = None
) -> list[RowDict]:
    """Return what `load_bars` does as rows: bar_time, revision, open to volume."""
    return store.rows(*_newest(instance, timeframe, as_of, limit))[::-1]


def closes(
    store: Store, instance: str, timeframe: str, *, since: datetime, as_of: datetime
) -> pd.DataFrame:
    """Return the closes of the bars that open from `since` on and were closed at `as_of`.

    A frame of one column, `close`, on the index of `load_bars`; far faster than the whole bars.
    """
    rows = store.tuples(IN_ORDER, instance, timeframe, since, as_of - duration(timeframe))
    values = np.array([row[5] for row in rows], dtype=float)
    return pd.DataFrame({"close": values}, index=_index(row[0] for row in rows))


def any_closes(store: Store, instance: str, *, as_of: datetime) -> pd.DataFrame | None:
    """Return the closes of the shortest timeframe that is stored, None where none is."""
    frames = (closes(store, instance, name, since=EPOCH, as_of=as_of) for name in TIMEFRAMES)
    return next((frame for frame in frames if len(frame)), None)


def bars_then(
    store: Store, instance: str, timeframe: str, first: datetime, last: datetime, revision: int
) -> pd.DataFrame:
    """Return the bars from `first` to `last` as they were while `revision` was their highest.

    That is what `bar_revision` gave for the same range. The frame has the feeds' shape.
    """
    sql = IN_ORDER.replace(" GROUP BY", " AND revision <= ? GROUP BY")
    return _as_frame(store.tuples(sql, instance, timeframe, first, last, revision))


def bar_rows(store: Store, instance: str, timeframe: str) -> int:
    """Return how many bars of a stream are stored, every revision counted."""
    sql = f"SELECT count(*) FROM bars WHERE {OF_STREAM}"  # noqa: S608
    return int(store.value(sql, instance, timeframe))


def newest_bar(store: Store, instance: str, timeframe: str) -> datetime | None:
    """Return the open time of the newest stored bar; None without one."""
    row = store.row(*_newest(instance, timeframe, None, 1))
    return parse(row["bar_time"]) if row else None


def newest_companion(
    store: Store, instance: Instance, symbol: str, timeframe: str
) -> datetime | None:
    """Return the open time of the newest stored bar of a companion; None without one."""
    streams = instance.companion_streams(symbol)
    every = (newest_bar(store, name, timeframe) for name in streams)
    return max(filter(None, every), default=None)


def bar_span(store: Store, instance: str, timeframe: str) -> tuple[str, str] | None:
    """Return the first and the last stored bar time, ISO; None without a bar."""
    first = store.row(IN_ORDER + " LIMIT 1", instance, timeframe, BEFORE_ALL, AFTER_ALL)
    last = store.row(*_newest(instance, timeframe, None, 1))
    return (first["bar_time"], last["bar_time"]) if first and last else None


def has_bar(store: Store, instance: str, timeframe: str, first: datetime, last: datetime) -> bool:
    """Return whether a bar from `first` to `last` (bar times) is stored."""
    return bool(store.row(NEWEST_REVISIONS + "LIMIT 1", instance, timeframe, first, last))


def last_close(
    store: Store, instance: str, timeframe: str, as_of: datetime
) -> tuple[str, float] | None:
    """Return bar time and close of the newest bar that was closed at `as_of`.

    None for a close that is no number: then no price is known.
    """
    row = store.row(*_newest(instance, timeframe, as_of, 1))
    if row is None or not isinstance(row["close"], float):
        return None
    return row["bar_time"], row["close"]


def newest_close(
    store: Store, instance: str, timeframes: Sequence[str], as_of: datetime
) -> float | None:
    """Return the close of the bar that ended last at `as_of`, of several timeframes."""
    ends = [
        (parse(bar[0]) + duration(timeframe), bar[1])
        for timeframe in timeframes
        if (bar := last_close(store, instance, timeframe, as_of)) is not None
    ]
    return max(ends)[1] if ends else None


def _newest(
    instance: str, timeframe: str, as_of: datetime | None, limit: int | None
) -> tuple[str, str, str, str, str, int]:
    """Return the query of the newest bars that were closed at `as_of` (None: all), newest first."""
    return (
        IN_ORDER + " DESC LIMIT ?",
        instance,
        timeframe,
        BEFORE_ALL,
        AFTER_ALL if as_of is None else stamp(as_of - duration(timeframe)),
        -1 if limit is None else limit,
    )


def _as_matrix(frame: pd.DataFrame) -> Matrix:
    """Return the bars of a frame; raises ValueError on a number that is not finite."""
    # Columns picked from a frame are copied one by one; most frames have these and no others.
    picked = frame if frame.columns.tolist() == [*COLUMNS] else frame[list(COLUMNS)]
    numbers = picked.to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        raise ValueError("a bar with a number that is not finite may not be stored")
    times = pd.DatetimeIndex(frame.index).tz_convert("UTC").as_unit("us").asi8
    return np.column_stack([times, numbers])


def _texts(bars: Matrix) -> list[str]:
    """Return the open times of bars as they are stored."""
    seconds = bars[:, 0].astype("M8[us]").astype("M8[s]")
    texts: list[str] = np.datetime_as_string(seconds, timezone="UTC").tolist()
    return texts


def _index(times: Iterable[str]) -> pd.DatetimeIndex:
    """Return stored times as an index of open times."""
    # numpy takes no Z at the end of a time.
    stamps = np.array([time[:-1] for time in times], dtype="datetime64[s]")
    return pd.DatetimeIndex(stamps, name="time").tz_localize("UTC")


def _as_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Return rows of bar_time, revision, open to volume as a frame of the feeds' shape."""
    times, _, *values = zip(*rows, strict=True) if rows else ((),) * (2 + len(COLUMNS))
    bars = np.ascontiguousarray(np.array(values, dtype=float).T)
    return pd.DataFrame(bars, index=_index(times), columns=list(COLUMNS))


def _spreads_by_time(frame: pd.DataFrame, bars: Matrix) -> dict[str, float]:
    """Return the spreads of a frame that are known, by bar time."""
    values, _ = spreads.of_frame(frame)
    if values is None:
        return {}
    there = ~np.isnan(values)
    return dict(zip(_texts(bars[there]), values[there].tolist(), strict=True))


def _store_spreads(store: Store, stream: tuple[str, str], known: Mapping[str, float]) -> None:
    """Store what is new of spreads by bar time; their bars are stored."""
    if not known:
        return
    span = *stream, min(known), max(known)
    of_range = f"FROM spreads WHERE {OF_RANGE}"
    # As one text: a row for each of 750 bars takes ten times as long.
    times = store.value(f"SELECT group_concat(bar_time) {of_range} AND revision = 0", *span)
    first = set((times or "").split(","))
    # The newest revision of each bar that has another than 0.
    revised = dict(
        store.tuples(
            f"SELECT bar_time, max(revision) FROM bars WHERE {OF_RANGE} "  # noqa: S608
            "AND revision > 0 GROUP BY bar_time",
            *span,
        )
    )
    later = set(store.tuples(f"SELECT bar_time, revision {of_range}", *span)) if revised else ()
    store.connection().conn.executemany(
        "INSERT INTO spreads VALUES (?, ?, ?, ?, ?)",
        [
            (*stream, time, revised.get(time, 0), spread)
            for time, spread in known.items()
            if ((time, revised[time]) not in later if time in revised else time not in first)
        ],
    )
