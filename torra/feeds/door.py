"""The door: bars are checked here once, and everything behind it may rely on them.

Behind the door bars are float64, in UTC, sorted, unique, on the timeframe's grid, not those of a
longer timeframe, finite, positive, with a high and a low that fit, closed at `as_of`, not stale and
not too few. Nothing is repaired: a frame that is broken anywhere raises DataUnavailable with one of
the reasons below and a sentence that names the bar. Gaps are kept; where they matter is the
business of those who read the bars.

Bars of a longer timeframe, such as H1 for M15, look like bars with gaps. What tells them apart is
that nearly all of their steps are multiples of one step that is longer than the timeframe. A thin
market's steps are of any number of bars: even where a bar in a thousand traded, no more than half
of them are even and a third divisible by three. So steps are told by their share, never by the
commonest of them, and only where there are enough of them.

A spread beside the bars (torra.market.spreads) is the one thing that may be wrong: it comes through
as NaN, `attrs["spreads"]` says why, and no bar is refused for it.

Why so strict: one NaN makes an RSI read 0.0 for ever, unsorted rows compute garbage in silence, and
duplicate times make an indicator library raise in the middle of a tick.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from technical_calculator import WARM_UP
from torra.clock import EPOCH, duration
from torra.errors import DataUnavailable
from torra.feeds.protocol import COLUMNS
from torra.market import spreads

PRICES: Final = COLUMNS[:4]
MAX_AGE_BARS: Final = 2.0
"""The newest bar may have closed this many bars before `as_of`."""

LONGER: Final = (2, 3, 5, 7)
"""A longer step is a multiple of one of these: every timeframe is of every shorter one."""

LONGER_SHARE: Final = 0.75
"""From this share of multiples on bars are of a longer timeframe; a thin market comes to 0.5."""

MIN_STEPS: Final = 100
"""Fewer steps say nothing; of 100, 75 are even by chance in one of three million thin series."""

USUAL: Final = ([*COLUMNS], [*COLUMNS, spreads.SPREAD])
"""The columns of most frames; each column of another one is looked at by itself."""

FAULTY: Final = "spreads"
"""Name in the attributes of a checked frame of why spreads in it are none."""

TICKS_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Resolution of a pandas time index."""

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class BarsRefused(StrEnum):
    """Why the door refuses a frame."""

    MISSING_COLUMN = "missing_column"
    NOT_NUMBERS = "not_numbers"
    NO_TIME_ZONE = "no_time_zone"
    UNSORTED = "unsorted"
    DUPLICATE = "duplicate"
    OFF_GRID = "off_grid"
    WRONG_STEP = "wrong_step"
    FUTURE = "future"
    NAN = "nan"
    INFINITE = "infinite"
    NOT_POSITIVE = "not_positive"
    HIGH_LOW = "high_low"
    TOO_SHORT = "too_short"
    STALE = "stale"


SENTENCES: Final = {
    BarsRefused.UNSORTED: "comes before the bar above it",
    BarsRefused.DUPLICATE: "is there twice",
    BarsRefused.OFF_GRID: "is not on the timeframe's grid in UTC",
    BarsRefused.FUTURE: "is not closed yet",
}
"""What is wrong with the time of a bar; of a wrong number the number itself is told."""

Faults = tuple[tuple[BarsRefused, npt.NDArray[np.bool_]], ...]
"""Which bars, or which of their numbers, have each fault; the first that there is is told."""


def check(
    frame: pd.DataFrame,
    timeframe: str,
    *,
    as_of: datetime,
    minimum: int = WARM_UP,
    max_age_bars: float = MAX_AGE_BARS,
) -> pd.DataFrame:
    """Return the frame's five columns as float64 on a UTC index named "time", or refuse it.

    A column of spreads is a sixth; others are left out. Raises DataUnavailable (reason: a
    `Refusal`), and ValueError for a timeframe that Torra does not know.
    """
    step = duration(timeframe)
    values = _values(frame)
    index = _index(frame)
    _refuse(index, values, _time_faults(index, step, as_of))
    if longer := _longer(index.asi8, _length(step, index)):
        detail = f"most bars are {longer * step} apart: they are of a longer timeframe"
        raise _refusal(BarsRefused.WRONG_STEP, f"{detail} than {timeframe}")
    _refuse(index, values, _value_faults(values))
    _check_extent(index, step, as_of, minimum, max_age_bars)
    return _with_spreads(values, index, frame)


def _with_spreads(values: Values, index: pd.DatetimeIndex, raw: pd.DataFrame) -> pd.DataFrame:
    """Return bars with the spreads of the frame that they are of, and why some are none."""
    column, why = spreads.of_frame(raw)
    names = list(COLUMNS)
    if column is not None:
        values, names = np.column_stack([values, column]), [*names, spreads.SPREAD]
    checked = pd.DataFrame(values, index=index, columns=names)
    if why:
        checked.attrs[FAULTY] = why
    return checked


def _values(frame: pd.DataFrame) -> Values:
    names = frame.columns.tolist()
    if (values := _whole(frame, names)) is not None:
        return values
    for name in COLUMNS:
        # pandas allows a name twice, and then gives a table where a column is meant.
        if names.count(name) != 1:
            problem = "is missing" if name not in names else "appears more than once"
            raise _refusal(BarsRefused.MISSING_COLUMN, f"column {name} {problem}")
    for name in COLUMNS:
        # Neither truth values nor text that looks like a number.
        if getattr(frame[name].dtype, "kind", "O") not in "fiu":
            raise _refusal(
                BarsRefused.NOT_NUMBERS, f"column {name} holds {frame[name].dtype}, not numbers"
            )
    columns = [frame[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in COLUMNS]
    return np.column_stack(columns)


def _whole(frame: pd.DataFrame, names: list[str]) -> Values | None:
    """Return the values of a frame of floats that has the five columns first; None for another."""
    if names not in USUAL:
        return None
    table = frame.to_numpy()
    return np.ascontiguousarray(table[:, : len(COLUMNS)]) if table.dtype == np.float64 else None


def drop_invalid_bars(frame: pd.DataFrame, timeframe: str, *, as_of: datetime) -> pd.DataFrame:
    """Return only the sound bars of a history, whatever stands between them, with their spreads.

    None where the bars are of a longer timeframe: each of them then holds what others should.

    For readers that may look past a bad bar (the stored history, the path of a paper position),
    never for scores: those come through `check`, which refuses the frame.
    """
    index = frame.index
    if not len(frame) or not isinstance(index, pd.DatetimeIndex) or index.tz is None:
        return frame.iloc[:0]
    names = frame.columns.tolist()
    values = _whole(frame, names)
    if values is None:
        values = np.column_stack([frame[name].to_numpy(dtype=np.float64) for name in COLUMNS])
    step = duration(timeframe)
    faults = (*_time_faults(index, step, as_of), *_value_faults(values))
    sound = ~np.asarray(np.column_stack([broken for _, broken in faults]).any(axis=1))
    of_those = frame[sound] if spreads.SPREAD in names else frame
    sifted = _with_spreads(values[sound], index[sound], of_those)
    return sifted.iloc[:0] if _longer(index.asi8[sound], _length(step, index)) else sifted


def _index(frame: pd.DataFrame) -> pd.DatetimeIndex:
    index = frame.index
    if not isinstance(index, pd.DatetimeIndex) or index.tz is None:
        raise _refusal(
            BarsRefused.NO_TIME_ZONE, "the index must be bar open times with a time zone"
        )
    if index.hasnans:
        raise _refusal(BarsRefused.NAN, "a bar has no time")
    return index.tz_convert(UTC).rename("time")


def _time_faults(index: pd.DatetimeIndex, step: timedelta, as_of: datetime) -> Faults:
    times: Times = index.asi8
    ticks, length = TICKS_PER_SECOND[index.unit], _length(step, index)
    # Whole numbers throughout: no float holds nanoseconds since 1970.
    latest = (as_of - EPOCH) // timedelta(microseconds=1) * ticks // 1_000_000 - length
    # The latest time above each: one that does not pass it is out of order or there twice.
    above = np.concatenate((times[:1] - 1, np.maximum.accumulate(times)[:-1]))
    return (
        (BarsRefused.UNSORTED, times < above),
        (BarsRefused.DUPLICATE, times == above),
        (BarsRefused.OFF_GRID, times % length != 0),
        (BarsRefused.FUTURE, times > latest),
    )


def _value_faults(values: Values) -> Faults:
    opens, highs, lows, closes, volumes = values.T
    low = values <= 0
    # A price of 0 is broken, a volume of 0 is not.
    low[:, -1] = volumes < 0
    unfit = (lows > np.minimum(opens, closes)) | (highs < np.maximum(opens, closes))
    prices = np.array([name in PRICES for name in COLUMNS])
    return (
        (BarsRefused.NAN, np.isnan(values)),
        (BarsRefused.INFINITE, np.isinf(values)),
        (BarsRefused.NOT_POSITIVE, low),
        (BarsRefused.HIGH_LOW, unfit[:, None] & prices),
    )


def _refuse(index: pd.DatetimeIndex, values: Values, faults: Faults) -> None:
    """Raise DataUnavailable for the first fault that a bar has."""
    for reason, broken in faults:
        if broken.any():
            row = int(broken.reshape(len(index), -1).any(axis=1).argmax())
            sentence = SENTENCES.get(reason)
            if sentence is None:
                columns = np.flatnonzero(broken[row])
                if reason != BarsRefused.HIGH_LOW:
                    columns = columns[:1]
                cells = (f"{COLUMNS[at]} {float(values[row, at])!r}" for at in columns)
                sentence = f"has {', '.join(cells)}"
            raise _refusal(reason, f"the bar of {_when(index, row)} {sentence}")


def _length(step: timedelta, index: pd.DatetimeIndex) -> int:
    return int(step.total_seconds()) * TICKS_PER_SECOND[index.unit]


def _longer(times: Times, length: int) -> int:
    """Return how many bars the usual step is where it is longer than one, 0 where it is not.

    The times are sorted and on the grid of `length`.
    """
    steps = np.diff(times) // length
    if len(steps) < MIN_STEPS:
        return 0
    if max(float((steps % many == 0).mean()) for many in LONGER) < LONGER_SHARE:
        return 0
    distinct, counts = np.unique(steps, return_counts=True)
    return int(distinct[counts.argmax()])


def _check_extent(
    index: pd.DatetimeIndex, step: timedelta, as_of: datetime, minimum: int, max_age_bars: float
) -> None:
    needed = max(1, minimum)
    if len(index) < needed:
        raise _refusal(BarsRefused.TOO_SHORT, f"{len(index)} bars where {needed} are needed")
    age = (as_of - index[-1].to_pydatetime() - step) / step
    if age > max_age_bars:
        raise _refusal(
            BarsRefused.STALE, f"the newest bar, {_when(index, -1)}, closed {age:.1f} bars ago"
        )


def _when(index: pd.DatetimeIndex, place: int) -> str:
    return str(index[place].isoformat()).replace("+00:00", "Z")


def _refusal(reason: BarsRefused, detail: str) -> DataUnavailable:
    return DataUnavailable(reason.value, detail)
