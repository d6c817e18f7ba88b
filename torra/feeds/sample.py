"""The shipped bars as a feed for the demo: real prices, moved in time by whole weeks.

Every symbol is moved so that its sample ends in December 2021, which keeps weekends where they
were. After the end of a symbol's sample its last whole weeks come again, each pass as many weeks
later. So a demo may run for ever, no bar time repeats, and weekdays and hours stay true; at the
seam the price jumps, as over any gap. The bars are handed over as shipped: nothing is filled,
smoothed or re-based.

The files are read once, when the feed is made. A feed never changes afterwards, so threads may
share it. A stream that is not shipped, or a folder without readable files, is a ConfigError.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from technical_calculator import HISTORY
from torra.clock import EPOCH, duration
from torra.errors import ConfigError
from torra.feeds.protocol import COLUMNS

TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S%z"
WEEK: Final = timedelta(weeks=1)
SHIFT: Final = {"EURUSD": 208 * WEEK}
"""How far a symbol's bars are moved so that all samples end in December 2021."""

TRUE_YEARS: Final = {"EURUSD": "2017"}
"""The years of the bars of a symbol that is moved, as a page tells them beside its price."""

SHOWN_AS: Final = "2021"
"""... and the year that they are moved to."""

MICROSECOND: Final = timedelta(microseconds=1)
Ticks = npt.NDArray[np.int64]


class SampleFeed:
    """Bars of the CSV files in a folder, named SYMBOL_TIMEFRAME.csv."""

    def __init__(self, folder: Path, *, invents: bool = False) -> None:
        """Read the files; `invents` is for the demo (torra.outside.invented)."""
        self.invents = invents
        loaded = {_name(path): _load(path) for path in sorted(folder.glob("*_*.csv"))}
        if not loaded:
            raise ConfigError(f"no sample bars in {folder}: expected files like BTCUSD_M15.csv")
        self._series = {
            (symbol, timeframe): _series(symbol, timeframe, loaded) for symbol, timeframe in loaded
        }

    @property
    def streams(self) -> tuple[tuple[str, str], ...]:
        """The symbols and timeframes that are shipped."""
        return tuple(self._series)

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None."""
        try:
            series = self._series[symbol, timeframe]
        except KeyError:
            shipped = ", ".join(" ".join(stream) for stream in self._series)
            raise ConfigError(
                f"the sample has no bars of {symbol} {timeframe}; it has {shipped}"
            ) from None
        return series.bars(_ticks(as_of), limit)

    def lap(self, as_of: datetime) -> int:
        """Return a number that grows when any symbol begins a further pass."""
        moment = _ticks(as_of)
        return sum(series.passes(moment) for series in self._series.values())

    def period(self) -> tuple[datetime, datetime]:
        """Return where a demo may start, and the earliest end of a symbol's first pass.

        At the start every stream has the 750 bars that its indicators want behind it.
        """
        every = self._series.values()
        for (symbol, timeframe), series in self._series.items():
            if len(series.closes) < HISTORY:
                raise ConfigError(f"the sample of {symbol} {timeframe} has under {HISTORY} bars")
        first = max(int(series.closes[HISTORY - 1]) for series in every)
        return _moment(first), _moment(min(series.end for series in every))


@dataclass(frozen=True, slots=True)
class _Series:
    """One stream: the first pass, and the weeks of it that come again.

    Times are microseconds since 1970. Bar number i of the endless series is bar i of the first
    pass, or, past its end, one of its last `repeated` bars moved on by a multiple of `weeks`.
    """

    closes: Ticks
    values: npt.NDArray[np.float64]
    step: int
    end: int
    weeks: int
    repeated: int

    def bars(self, as_of: int, limit: int | None) -> pd.DataFrame:
        # How many bars of the endless series are closed then.
        ended = self.passes(as_of)
        stop = ended * self.repeated + int(
            np.searchsorted(self.closes, as_of - ended * self.weeks, side="right")
        )
        start = 0 if limit is None else max(0, stop - max(0, limit))
        numbers = np.arange(start, stop)
        passes = np.maximum(0, (numbers - len(self.closes)) // self.repeated + 1)
        rows = numbers - passes * self.repeated
        opened = self.closes[rows] - self.step + passes * self.weeks
        index = pd.DatetimeIndex(opened.view("M8[us]"), name="time").tz_localize(UTC)
        return pd.DataFrame(self.values[rows], index=index, columns=list(COLUMNS))

    def passes(self, as_of: int) -> int:
        """Return how many passes have ended before `as_of`."""
        # Division that rounds up: a moment after the end belongs to the next pass.
        return max(0, -(-(as_of - self.end) // self.weeks))


def _series(symbol: str, timeframe: str, loaded: dict[tuple[str, str], pd.DataFrame]) -> _Series:
    """Build a stream; all streams of a symbol end together and repeat the same weeks."""
    shift = SHIFT.get(symbol, timedelta(0)) // MICROSECOND
    family = {name: frame for (of, name), frame in loaded.items() if of == symbol}
    closes = {name: _closes(frame, name) + shift for name, frame in family.items()}
    # Both timeframes of a symbol must tell the same story in every pass.
    end = int(min(times[-1] for times in closes.values()))
    first = max(times[0] - duration(name) // MICROSECOND for name, times in closes.items())
    week = WEEK // MICROSECOND
    weeks = int((end - first) // week * week)
    if weeks <= 0:
        raise ConfigError(f"the sample of {symbol} is shorter than a week")
    kept = closes[timeframe] <= end
    own = closes[timeframe][kept]
    return _Series(
        closes=own,
        values=family[timeframe].to_numpy(dtype=np.float64)[kept],
        step=duration(timeframe) // MICROSECOND,
        end=end,
        weeks=weeks,
        repeated=int(np.count_nonzero(own > end - weeks)),
    )


def _closes(frame: pd.DataFrame, timeframe: str) -> Ticks:
    index = pd.DatetimeIndex(frame.index).as_unit("us")
    return np.asarray(index.asi8 + duration(timeframe) // MICROSECOND, dtype=np.int64)


def _name(path: Path) -> tuple[str, str]:
    symbol, _, timeframe = path.stem.rpartition("_")
    return symbol, timeframe


def _load(path: Path) -> pd.DataFrame:
    symbol, timeframe = _name(path)
    try:
        duration(timeframe)
        frame = pd.read_csv(path)
        index = pd.DatetimeIndex(pd.to_datetime(frame["time"], format=TIME_FORMAT, utc=True))
        frame = frame[list(COLUMNS)].astype(np.float64).set_axis(index)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"cannot read the sample of {symbol} from {path}: {error}") from error
    if index.empty or not index.is_monotonic_increasing:
        raise ConfigError(f"the sample of {symbol} in {path} holds no bars in the order of time")
    return frame


def _ticks(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def _moment(ticks: int) -> datetime:
    return EPOCH + ticks * MICROSECOND
