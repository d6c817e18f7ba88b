"""`torra import`: bars of a file into the desk's database, checked at the door first.

The import is one transaction: all of the file or none of it. Bars that are there already stay; a
bar that differs is kept as a new revision.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pandas as pd

from torra import wiring
from torra.clock import TIMEFRAMES, duration, iso
from torra.config import load_desk
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import door
from torra.feeds.csv_file import read_bars

PART: Final = 10_000
"""Bars stored between two steps of the progress bar."""


def run(
    home: Path, file: Path, symbol: str, timeframe: str, zone: str, *, progress: bool
) -> dict[str, Any]:
    """Import a file for an instance of the desk; raises ConfigError."""
    if timeframe not in TIMEFRAMES:
        raise ConfigError(f"unknown timeframe {timeframe}; known: {', '.join(TIMEFRAMES)}")
    instance = _instance_id(home, symbol)
    frame = read_bars(file, clock=zone)
    end = frame.index[-1].to_pydatetime() + duration(timeframe)
    try:
        checked = door.check(frame, timeframe, as_of=end, minimum=1)
    except DataUnavailable as error:
        raise ConfigError(f"{file}: {error}; nothing was imported") from error
    database = wiring.open_database(home)
    try:
        with database.transaction():
            new = sum(
                database.store_bars(instance, timeframe, part)
                for part in _parts(checked, progress=progress)
            )
    finally:
        database.close()
    return {
        "instance": instance,
        "timeframe": timeframe,
        "bars": len(checked),
        "new": new,
        "from": iso(checked.index[0].to_pydatetime()),
        "to": iso(checked.index[-1].to_pydatetime()),
    }


def _parts(frame: pd.DataFrame, *, progress: bool) -> Iterator[pd.DataFrame]:
    starts = range(0, len(frame), PART)
    hidden = not progress or len(starts) < 2
    with click.progressbar(starts, label="bars", hidden=hidden, file=sys.stderr) as bar:
        for start in bar:
            yield frame.iloc[start : start + PART]


def _instance_id(home: Path, symbol: str) -> str:
    for instance in load_desk(home).instances:
        if symbol in (instance.id.upper(), instance.symbol):
            return instance.id
    return symbol
