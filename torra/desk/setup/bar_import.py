"""`torra import`: stores the bars of a file in the desk's database, checked at the door first.

The import is one transaction: all of the file or none of it. Bars that are there already stay; a
bar that differs is kept as a new revision; with `revise` the stored bars between the file's first
and last that it does not have are withdrawn. What does not fit raises ConfigError, and then nothing
was imported: a file whose times are of another clock than those of another timeframe that is stored
(torra.market.clock_shifts), too. The answer has the report of the file (torra.feeds.bar_file).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pandas as pd

from instance_database import Database, open_home
from torra.clock import TIMEFRAMES, System, duration, iso
from torra.config import check_symbol, load_desk
from torra.errors import ConfigError
from torra.feeds.bar_file import admit
from torra.feeds.csv_file import MOST_UNPACKED
from torra.market.clock_shifts import ClockShift, shifted
from torra.store import bars as bar_table

PART: Final = 10_000
"""Bars stored between two steps of progress."""

Progress = Callable[[int, str], AbstractContextManager[Callable[[int], None]]]
"""Shows how far work is: of so many things of a name; what it yields moves it on."""

ASIDE: Final = timedelta(days=2)
"""Bars of another timeframe that lie so far outside of a file are held against it too."""

REVISED_SHARE: Final = 0.05
"""A file that changes more of the stored bars that it has than this share is probably on another
clock.
"""

REVISED_FEW: Final = 3
"""So many changed bars are no sign of that: the last ones of an export may have gone on forming."""

FARTHEST_CLOCK: Final = timedelta(hours=14)
"""No clock is farther from UTC."""


def run(
    home: Path,
    file: Path,
    symbol: str,
    timeframe: str,
    clock: str | None,
    *,
    revise: bool = False,
    leave_out: str = "",
    progress: Progress | None = None,
    most: int = MOST_UNPACKED,
) -> dict[str, Any]:
    """Import a file for an instance of the desk; raises ConfigError.

    `clock` is that of the file's times, None where nobody said it. A file that would revise many
    stored bars, or is shifted against another timeframe, is refused unless `revise` says that it is
    right and what is stored is not. `leave_out` are kinds of bars that are not taken. A packed
    file may hold `most` bytes.
    """
    if timeframe not in TIMEFRAMES:
        raise ConfigError(f"unknown timeframe {timeframe}; known: {', '.join(TIMEFRAMES)}")
    instance, watched, learns = _instance(home, symbol, timeframe)
    database = open_home(home)
    try:
        try:
            taken = admit(
                file, timeframe, clock=clock, leave_out=leave_out, symbol=symbol,
                known=bar_table.any_closes(database, instance, as_of=System().now()), most=most,
            )  # fmt: skip
        except ConfigError as error:
            raise type(error)(f"{error}; nothing was imported") from error
        checked, zone = taken.frame, taken.report.clock
        warnings = [f"{file}: {line}" for line in taken.report.warnings]
        shifts = _shifts(database, instance, timeframe, checked)
        if shifts and not revise:
            raise ConfigError(
                f"{file}: {shifts[0].line}; nothing was imported. Give the clock of the file with "
                f"--clock; if it is {zone}, import {_other(shifts[0], timeframe)} again under its "
                "own, with --revise"
            )
        warnings += [
            f"{shift.line}; import {_other(shift, timeframe)} again under its own --clock, with "
            "--revise"
            for shift in shifts
        ]
        with database.transaction():
            rows = bar_table.bar_rows(database, instance, timeframe)
            new = sum(
                database.store_bars(instance, timeframe, part)
                for part in _parts(checked, progress=progress)
            )
            revised = bar_table.bar_rows(database, instance, timeframe) - rows - new
            overlap = len(checked) - new
            # Known only after the bars are in; raising here takes all of them back.
            if revised > max(REVISED_FEW, REVISED_SHARE * overlap) and not revise:
                raise ConfigError(
                    f"{file} differs from what is stored in {revised} of the {overlap} bars that "
                    "are in both; nothing was imported. Is it of the same source, and "
                    f"--clock {zone} right? If the file is, add --revise: it also withdraws the "
                    "stored bars that the file does not have"
                )
            if leave_out and rows and not revise:
                warnings.append(
                    "Bars that were stored before stay: --revise withdraws those that are left out."
                )
            withdrawn = database.withdraw_others(instance, timeframe, checked) if revise else 0
            beyond = _beyond(database, instance, timeframe, checked) if withdrawn else 0
            if beyond:
                warnings.append(
                    f"{beyond} bars within 14 hours before or after those of the file stay as they "
                    "were stored: if their clock was wrong too, import a longer file"
                )
            known = database.records(instance, timeframe, as_of=System().now())
    finally:
        database.close()
    return {
        "instance": instance,
        "timeframe": timeframe,
        "bars": len(checked),
        "new": new,
        "revised": revised,
        "withdrawn": withdrawn,
        "from": iso(checked.index[0].to_pydatetime()),
        "to": iso(checked.index[-1].to_pydatetime()),
        "clock": zone,
        "watched": watched,
        "report": asdict(taken.report),
        "warnings": warnings,
        "learns": learns,
        "record_high": known and known.high,
        "record_low": known and known.low,
        "records_since": known and known.since and iso(known.since),
    }


def table(result: Mapping[str, Any]) -> str:
    """Return what `run` did, for a terminal."""
    name = f"{result['instance']} {result['timeframe']}"
    withdrawn = f", {result['withdrawn']} withdrawn" if result["withdrawn"] else ""
    lines = [
        f"{result['bars']} bars of {name}, {result['from']} to {result['to']} (times read as "
        f"{result['clock']}): {result['new']} new, {result['revised']} revised{withdrawn}",
        *result["report"]["notes"],
        *(f"warning: {warning}" for warning in result["warnings"]),
    ]
    if result["learns"]:
        lines.append(
            f"Record high {result['record_high']:,.7g}, record low {result['record_low']:,.7g}, "
            f"of the bars since {result['records_since'][:10]}: the desk learns its records from "
            "these."
        )
    if not result["watched"]:
        lines.append(
            "Its bars for ticks still come from its own feed (docs/install.md)."
            if result["learns"]
            else f"No instance reads {name} from the store: add one on the page Add a symbol, or "
            "in desk.json (docs/install.md, Your own symbols)."
        )
    return "\n".join(lines)


def _shifts(
    database: Database, instance: str, timeframe: str, checked: pd.DataFrame
) -> list[ClockShift]:
    """Return how the bars are shifted against the other timeframes that are stored."""
    begin, end = checked.index[0].to_pydatetime(), checked.index[-1].to_pydatetime()
    shifts = []
    for other in TIMEFRAMES:
        if other != timeframe:
            closes = bar_table.closes(
                database, instance, other, since=begin - ASIDE, as_of=end + ASIDE
            )
            shifts += shifted({timeframe: checked, other: closes})
    return shifts


def _beyond(database: Database, instance: str, timeframe: str, checked: pd.DataFrame) -> int:
    """Return how many stored bars lie so near to a file that a clock may have moved them."""
    begin, end = checked.index[0].to_pydatetime(), checked.index[-1].to_pydatetime()
    near = bar_table.closes(
        database,
        instance,
        timeframe,
        since=begin - FARTHEST_CLOCK,
        as_of=end + FARTHEST_CLOCK + duration(timeframe),
    ).index
    return int(((near < begin) | (near > end)).sum())


def _other(shift: ClockShift, timeframe: str) -> str:
    return shift.shorter if timeframe == shift.longer else shift.longer


def _parts(frame: pd.DataFrame, *, progress: Progress | None) -> Iterator[pd.DataFrame]:
    starts = range(0, len(frame), PART)
    quiet = nullcontext(lambda _: None)
    shown = progress(len(frame), "bars") if progress and len(starts) > 1 else quiet
    with shown as forward:
        for start in starts:
            part = frame.iloc[start : start + PART]
            yield part
            forward(len(part))


def _instance(home: Path, symbol: str, timeframe: str) -> tuple[str, bool, bool]:
    """Return the name under which bars are stored, and whether the desk reads them.

    The last is whether it learns its records from them: those of a feed of its own too. Raises
    ConfigError for what is no symbol.
    """
    check_symbol(symbol)
    companion = False
    for instance in load_desk(home).instances:
        if symbol in (instance.id.upper(), instance.symbol):
            read = timeframe in instance.timeframes
            return (
                instance.id,
                read and instance.feed == "store",
                read and instance.feed != "sample",
            )
        if instance.feed == "store" and symbol in map(str.upper, instance.companions.values()):
            companion = companion or timeframe in instance.timeframes
    return symbol, companion, False
