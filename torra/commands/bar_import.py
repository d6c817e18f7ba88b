"""`torra import`: stores the bars of a file in the desk's database, checked at the door first.

The import is one transaction: all of the file or none of it. Bars that are there already stay; a
bar that differs is kept as a new revision. What does not fit raises ConfigError, and then nothing
was imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pandas as pd

from instance_database import open_home
from torra.clock import TIMEFRAMES, System, duration, iso
from torra.config import load_desk
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import door
from torra.feeds.csv_file import read_bars

PART: Final = 10_000
"""Bars stored between two steps of the progress bar."""

REVISED_SHARE: Final = 0.05
"""A file that changes more of its bars than this share is probably on another clock."""


def run(
    home: Path,
    file: Path,
    symbol: str,
    timeframe: str,
    zone: str,
    *,
    revise: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Import a file for an instance of the desk; raises ConfigError.

    `zone` is the clock of the file's times. A file that would revise many stored bars is refused
    unless `revise` says that it should.
    """
    if timeframe not in TIMEFRAMES:
        raise ConfigError(f"unknown timeframe {timeframe}; known: {', '.join(TIMEFRAMES)}")
    instance, watched = _instance(home, symbol, timeframe)
    frame = read_bars(file, clock=zone)
    checked = _checked(frame, file, timeframe)
    database = open_home(home)
    try:
        with database.transaction():
            rows = database.bar_rows(instance, timeframe)
            new = sum(
                database.store_bars(instance, timeframe, part)
                for part in _parts(checked, progress=progress)
            )
            revised = database.bar_rows(instance, timeframe) - rows - new
            # Known only after the bars are in; raising here takes all of them back.
            if revised > REVISED_SHARE * len(checked) and not revise:
                raise ConfigError(
                    f"{file} differs from what is stored in {revised} of {len(checked)} bars; "
                    f"nothing was imported. Is --clock {zone} right? If the file is, add --revise"
                )
    finally:
        database.close()
    return {
        "instance": instance,
        "timeframe": timeframe,
        "bars": len(checked),
        "new": new,
        "revised": revised,
        "from": iso(checked.index[0].to_pydatetime()),
        "to": iso(checked.index[-1].to_pydatetime()),
        "clock": zone,
        "watched": watched,
    }


def _checked(frame: pd.DataFrame, file: Path, timeframe: str) -> pd.DataFrame:
    """Return the bars through the door; they must be closed by now and as far apart as they say."""
    step = duration(timeframe)
    gaps = pd.Series(frame.index).diff().dropna()
    # The commonest gap: weekends and holes make others, and any mean wrong.
    usual = gaps.mode()
    if len(usual) and usual.iloc[0] != pd.Timedelta(step):
        raise ConfigError(
            f"{file}: its bars are mostly {usual.iloc[0]} apart, which is not {timeframe}; "
            "nothing was imported"
        )
    newest = frame.index[-1].to_pydatetime() + step
    now = System().now()
    if newest > now:
        raise ConfigError(
            f"{file}: its newest bar closes {iso(newest)}, which is not yet: give the clock of the "
            "file with --clock, or take the forming bar out; nothing was imported"
        )
    try:
        # A short file is no fault here: it may be one part of a longer history.
        return door.check(frame, timeframe, as_of=newest, minimum=1)
    except DataUnavailable as error:
        raise ConfigError(f"{file}: {error}; nothing was imported") from error


def _parts(frame: pd.DataFrame, *, progress: bool) -> Iterator[pd.DataFrame]:
    starts = range(0, len(frame), PART)
    hidden = not progress or len(starts) < 2
    with click.progressbar(starts, label="bars", hidden=hidden, file=sys.stderr) as bar:
        for start in bar:
            yield frame.iloc[start : start + PART]


def _instance(home: Path, symbol: str, timeframe: str) -> tuple[str, bool]:
    """Return the name under which bars are stored, and whether the desk reads them."""
    for instance in load_desk(home).instances:
        if symbol in (instance.id.upper(), instance.symbol):
            return instance.id, timeframe in instance.timeframes and instance.feed == "store"
    return symbol, False
