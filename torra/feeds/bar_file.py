"""The one door of files of bars: read by shape, asked for their clock, looked at, and reported.

Import, replay, sweep, lookahead, upload, trial tick and wizard take a file through `admit`, so that
all of them say the same of it. What cannot be used is a ConfigError with the remedy. What is odd
but may be right (torra.market.plausibility, torra.market.week_starts) is told in the report and
never repaired. Only `leave_out` leaves bars out, by the user's word, and the report counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pandas as pd

from torra.clock import TIMEFRAMES, System, duration, iso
from torra.errors import ConfigError, DataUnavailable
from torra.evaluation.wording import count
from torra.feeds import door
from torra.feeds.csv_file import (
    ASSUMED,
    GIVEN,
    MOST_UNPACKED,
    NO_SPREADS,
    PRICES,
    ClockMissing,
    read_bars,
)
from torra.feeds.door import BarsRefused
from torra.market import plausibility, week_starts
from torra.market.broker_clock import UTC_CLOCK
from torra.market.longer_bars import aggregate

FLAT, NEGATIVE = "flat", "negative"
LEAVE_OUT: Final = (FLAT, NEGATIVE)
"""What a user may have left out: bars that only fill, and bars with a price of 0 or below."""

WITHOUT_NEGATIVE: Final = (
    "; mend the bars, or leave those with such a price out with --leave-out negative"
)


@dataclass(frozen=True, slots=True)
class BarReport:
    """What was found in a file of bars: its shape, its clock and why, and what is odd in it.

    `omissions` is how many bars were left out by the user's word, by kind. `notes` are sentences of
    information, `warnings` those of what wants care.
    """

    shape: str = "stored bars"
    clock: str = UTC_CLOCK
    clock_reason: str = "bars are stored in UTC"
    omissions: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BarFile:
    """Bars that came through the door, their timeframe, and the report of their file."""

    frame: pd.DataFrame
    timeframe: str
    report: BarReport


def admit(
    file: Path,
    timeframe: str | None = None,
    *,
    clock: str | None,
    leave_out: str = "",
    symbol: str = "",
    known: pd.DataFrame | None = None,
    most: int = MOST_UNPACKED,
    clock_optional: bool = False,
) -> BarFile:
    """Return the bars of a file with its report; raises ConfigError naming what to mend.

    `timeframe` is the wanted one, None: that of the file. Bars of a shorter one are put together.
    `clock` names that of the times, None where nobody said it. `leave_out` are the kinds of bars
    that are not taken, with commas. `known` are other bars of the symbol, against which the scale
    of the prices is held. A packed file may hold `most` bytes. With `clock_optional` a file without
    a clock is read as it stands, and the clock of its report is "".
    """
    raw = _read(file, clock, most, clock_optional=clock_optional)
    kept, omissions = _without(raw, leave_out)
    if not len(kept):
        raise ConfigError(f"{file}: all of its {len(raw):,} bars are {leave_out}, so none is left")
    own = _timeframe(kept, file, timeframe)
    shape, zone, reason = (str(raw.attrs[name]) for name in ("shape", "clock", "clock_reason"))
    if zone:
        _refuse_forming(kept, file, own)
    checked = _checked(kept, str(file), own)
    longer = timeframe or own
    frame = checked if longer == own else aggregate(checked, own, longer)
    if not len(frame):
        raise ConfigError(f"{file}: its {len(checked)} bars of {own} make no whole bar of {longer}")
    notes = [f"Read as {shape}."]
    if zone:
        notes.append(f"Clock {zone}: {reason}.")
    if longer != own:
        notes.append(f"Bars of {longer} were put together from those of {own}.")
    left = (count(bars, f"{kind} bar") for kind, bars in omissions.items() if bars)
    notes += [f"Left out: {bars}." for bars in left]
    warnings = []
    if weeks := zone and week_starts.look(frame, longer, zone):
        if weeks.fits and reason not in (GIVEN, ASSUMED):
            weeks = replace(weeks, others=())
        notes.append(weeks.note)
        warnings.append(weeks.warning)
    look = plausibility.look(frame, longer, symbol, known)
    warnings += look.faults
    if fault := raw.attrs.get(NO_SPREADS):
        warnings.append(f"Spreads are left out: {fault}.")
    texts = (tuple(filter(None, some)) for some in ((*notes, *look.notes), warnings))
    return BarFile(frame, longer, BarReport(shape, zone, reason, omissions, *texts))


def _read(file: Path, clock: str | None, most: int, *, clock_optional: bool) -> pd.DataFrame:
    try:
        return read_bars(file, clock=clock, most=most)
    except ClockMissing:
        if not clock_optional:
            raise
    bars = read_bars(file, clock=UTC_CLOCK, most=most)
    bars.attrs["clock"] = ""
    return bars


def of_stored(frame: pd.DataFrame, timeframe: str, symbol: str, source: str) -> BarFile:
    """Return bars that are stored as `admit` does those of a file; raises ConfigError."""
    checked = _checked(frame, source, timeframe)
    look = plausibility.look(checked, timeframe, symbol)
    return BarFile(checked, timeframe, BarReport(notes=look.notes, warnings=look.faults))


def _timeframe(frame: pd.DataFrame, file: Path, wanted: str | None) -> str:
    """Return the timeframe of a file's bars, by the commonest step between two of them.

    Raises ConfigError for bars of no timeframe, or of a longer one than is wanted.
    """
    if len(frame) < 2:
        if wanted is not None:
            return wanted
        raise ConfigError(
            f"{file}: it holds 1 bar, and its timeframe is read off the steps between bars: two at "
            "least, and some hundreds to score them"
        )
    # Over weekends and holes the step is longer, and any mean wrong.
    step = pd.Series(frame.index).diff().mode().iloc[0]
    timeframe = next((name for name, own in TIMEFRAMES.items() if pd.Timedelta(own) == step), None)
    if timeframe is None or (wanted is not None and duration(timeframe) > duration(wanted)):
        detail = f"which is not {wanted}" if wanted else f"known are {', '.join(TIMEFRAMES)}"
        raise ConfigError(f"{file}: its bars are mostly {step} apart, {detail}")
    return timeframe


def _without(frame: pd.DataFrame, leave_out: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the bars without those of the kinds that a user leaves out, and how many they were."""
    kinds = [part.strip().lower() for part in leave_out.split(",") if part.strip()]
    if unknown := sorted({*kinds} - {*LEAVE_OUT}):
        raise ConfigError(f"--leave-out {unknown[0][:40]}: there are {', '.join(LEAVE_OUT)}")
    omissions = {}
    for kind in sorted(kinds, reverse=True):  # a negative bar is no filler
        negative = (frame[list(PRICES)] <= 0.0).any(axis=1).to_numpy()
        gone = negative if kind == NEGATIVE else plausibility.flat_rows(frame)
        omissions[kind] = int(gone.sum())
        frame = frame[~gone]
    return frame, omissions


def _refuse_forming(frame: pd.DataFrame, file: Path, timeframe: str) -> None:
    newest = frame.index[-1].to_pydatetime() + duration(timeframe)
    if newest > System().now():
        raise ConfigError(
            f"{file}: its newest bar closes {iso(newest)}, which is not yet: give the clock of the "
            "file with --clock, or take the forming bar out"
        )


def _checked(frame: pd.DataFrame, source: str, timeframe: str) -> pd.DataFrame:
    """Return the bars through the door of all feeds, as of their own end: a history is old."""
    end = frame.index[-1].to_pydatetime() + duration(timeframe)
    try:
        # A short file is no fault here: it may be one part of a longer history.
        return door.check(frame, timeframe, as_of=end, minimum=1)
    except DataUnavailable as error:
        negative = error.reason == BarsRefused.NOT_POSITIVE
        remedy = WITHOUT_NEGATIVE if negative else "; mend the bars"
        raise ConfigError(f"{source}: {error}{remedy}") from error
