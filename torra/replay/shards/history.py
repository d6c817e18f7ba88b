"""Loads the bars of a replay, from files or from the desk's database, checked at the door.

The timeframe of a file is found from the steps between its bars. A longer timeframe that is wanted
and in no file is put together from the whole bars of a shorter one. A bar of the longer timeframe
exists only when every bar of its span is there and closed, so nothing of the future and no half bar
gets in. Two timeframes whose times are of different clocks are refused: one would know the other's
future. Bars that cannot be used raise ConfigError with the file and the remedy. Nothing is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import pandas as pd

from instance_database import open_home
from torra.clock import TIMEFRAMES, System, duration, iso, parse
from torra.config import check_symbol, load_desk
from torra.errors import ConfigError, TorraError
from torra.feeds.bar_file import BarFile, admit, of_stored
from torra.home import has_database
from torra.market.clock_shifts import shifted
from torra.market.longer_bars import aggregate
from torra.market.spreads import SPREAD
from torra.store import bars as bar_table

STORE: Final = "store"
"""In place of a file: the bars that the desk has stored."""

EACH: Final = (
    "--clock holds for all files: import each under its own, torra import FILE --symbol {} "
    "--timeframe T --clock CLOCK, then take --bars store"
)
AGAIN: Final = (
    "import the one whose clock was wrong again: torra import FILE --symbol {} --timeframe T "
    "--clock CLOCK --revise"
)
"""What to do about files, and about stored bars, whose times are of different clocks."""


def moment(option: str, text: str | None) -> datetime | None:
    """Return the UTC time that an option names, None where it is not given."""
    if text is None:
        return None
    try:
        return parse(text)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{option} {text}: write a UTC time as 2024-05-01T10:00Z") from error


@dataclass(frozen=True)
class History:
    """Checked bars of one symbol by timeframe: float64 columns on a UTC index of open times.

    `derived` names the timeframes that were put together from shorter ones, `sources` says where
    each came from. `notes` and `warnings` are what was found in the sources, in sentences, and
    `omissions` how many bars a user left out, "" for none. `digest` names the bars.
    """

    symbol: str
    frames: Mapping[str, pd.DataFrame]
    sources: Mapping[str, str]
    derived: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    omissions: str = ""

    @property
    def timeframes(self) -> tuple[str, ...]:
        """The timeframes, shortest first."""
        return tuple(sorted(self.frames, key=duration))

    @property
    def period(self) -> tuple[datetime, datetime]:
        """First open and last close of any timeframe, UTC."""
        starts = [frame.index[0].to_pydatetime() for frame in self.frames.values()]
        ends = [
            frame.index[-1].to_pydatetime() + duration(name) for name, frame in self.frames.items()
        ]
        return min(starts), max(ends)

    @cached_property
    def digest(self) -> str:
        """A hash of every time and price, 16 hexadecimal characters; spreads are not in it."""
        found = hashlib.sha256(self.symbol.encode())
        for name in self.timeframes:
            frame = self.frames[name]
            found.update(name.encode())
            # In one unit: the same times in another would have another digest.
            found.update(pd.DatetimeIndex(frame.index).as_unit("us").asi8.tobytes())
            bars = frame.drop(columns=SPREAD, errors="ignore")
            found.update(bars.to_numpy(dtype=float).tobytes())
        return found.hexdigest()[:16]


def spread_digest(history: History) -> str:
    """Return a hash of every spread of a history, "" where no bar has one."""
    found = hashlib.sha256()
    known = False
    for name in history.timeframes:
        frame = history.frames[name]
        if SPREAD in frame.columns:
            known = known or bool(frame[SPREAD].notna().any())
            found.update(name.encode() + frame[SPREAD].to_numpy(dtype=float).tobytes())
    return found.hexdigest()[:16] if known else ""


def load(
    home: Path,
    symbol: str,
    bars: Sequence[str],
    *,
    timeframes: Sequence[str] = (),
    clock: str | None = None,
    leave_out: str = "",
) -> History:
    """Return the history of a symbol; raises ConfigError naming what to mend.

    `bars` are files, or the single word "store". `timeframes` are the wanted ones, by default those
    of the files or, from the store, those that the desk watches. `clock` is that of the files and
    `leave_out` the kinds of bars that are not taken from them, as torra.feeds.bar_file has both.
    """
    check_symbol(symbol)
    for name in timeframes:
        if name not in TIMEFRAMES:
            raise ConfigError(f"unknown timeframe {name}; known: {', '.join(TIMEFRAMES)}")
    if not bars:
        raise ConfigError("name the bars with --bars FILE, or --bars store for the desk's own")
    if STORE in bars:
        if len(bars) > 1:
            raise ConfigError("--bars store stands alone; take the files or the store")
        if leave_out:
            raise ConfigError("--leave-out is for files: import them again with it, and --revise")
        files, sources = _stored(home, symbol, timeframes)
    else:
        files, sources = _of_files(home, symbol, bars, clock, leave_out)
    found = {name: one.frame for name, one in files.items()}
    for shift in shifted(found):
        which = f"{sources[shift.longer]} and {sources[shift.shorter]}"
        remedy = (AGAIN if STORE in bars else EACH).format(symbol)
        raise ConfigError(f"{symbol}: {shift.line} ({which}); {remedy}")
    reports = [(sources[name], one.report) for name, one in files.items()]
    return replace(
        _completed(symbol, found, sources, timeframes),
        notes=tuple(f"{source}: {line}" for source, one in reports for line in one.notes),
        warnings=tuple(f"{source}: {line}" for source, one in reports for line in one.warnings),
        omissions="; ".join(
            f"{source}: {count:,} {kind}"
            for source, one in reports
            for kind, count in one.omissions.items()
        ),
    )


Loaded = tuple[dict[str, BarFile], dict[str, str]]
"""Files and the names of their sources, by timeframe."""


def home_closes(home: Path, symbol: str) -> pd.DataFrame | None:
    """Return closes of a symbol that a home has stored, None where it has none."""
    if not has_database(home):
        return None
    # Nothing depends on them but a warning: a home that cannot be read has none.
    with suppress(TorraError):
        own = [one.id for one in load_desk(home).instances if symbol in (one.id, one.symbol)]
        with closing(open_home(home)) as database:
            return bar_table.any_closes(database, (own or [symbol])[0], as_of=System().now())
    return None


def _of_files(
    home: Path, symbol: str, bars: Sequence[str], clock: str | None, leave_out: str
) -> Loaded:
    found: dict[str, BarFile] = {}
    sources: dict[str, str] = {}
    known = home_closes(home, symbol)
    for file in bars:
        if bars.count(file) > 1:
            raise ConfigError(f"--bars {file} is given twice; once will do")
        taken = admit(Path(file), clock=clock, leave_out=leave_out, symbol=symbol, known=known)
        name = taken.timeframe
        known = taken.frame if known is None else known
        if name in found:
            raise ConfigError(f"two files hold {name} bars: {sources[name]} and {file}")
        found[name], sources[name] = taken, Path(file).name
    return found, sources


def _completed(
    symbol: str,
    found: dict[str, pd.DataFrame],
    sources: dict[str, str],
    wanted: Sequence[str],
) -> History:
    """Put together the longer timeframes that are wanted and not there."""
    names = sorted(wanted or found, key=duration)
    derived = []
    for name in names:
        if name in found:
            continue
        shorter = [have for have in found if duration(have) < duration(name)]
        if not shorter:
            known = ", ".join(sources.values())
            raise ConfigError(f"no {name} bars of {symbol} in {known}: add a file that holds them")
        base = max(shorter, key=duration)
        found[name] = aggregate(found[base], base, name)
        sources[name] = f"{sources[base]}, {name} from {base}"
        if not len(found[name]):
            raise ConfigError(f"{sources[name]}: no {name} bars")
        derived.append(name)
    frames = {name: found[name] for name in names}
    return History(symbol, frames, {name: sources[name] for name in names}, tuple(derived))


def _stored(home: Path, symbol: str, timeframes: Sequence[str]) -> Loaded:
    if not has_database(home):
        raise ConfigError(f"{home} holds no database yet; start the desk once or name a file")
    instance = load_desk(home).instance(symbol)
    names = tuple(timeframes) or instance.timeframes
    now = System().now()
    with closing(open_home(home)) as database:
        held = {name: database.load_bars(instance.id, name, as_of=now) for name in names}
    sources = {name: f"store, {instance.id} {name}" for name, frame in held.items() if len(frame)}
    if not sources:
        raise ConfigError(
            f"no bars of {instance.id} are stored: torra import FILE --symbol {instance.id} "
            "--timeframe M15"
        )
    return {name: of_stored(held[name], name, symbol, sources[name]) for name in sources}, sources


def cut(history: History, begin: datetime | None, end: datetime | None) -> History:
    """Return the history without the bars that close after `end`; those before `begin` stay.

    The first tick needs the bars before `begin`. Raises ConfigError when nothing is left.
    """
    frames = dict(history.frames)
    if end is not None:
        for name, frame in history.frames.items():
            frames[name] = frame[frame.index <= pd.Timestamp(end - duration(name))]
    first, last = history.period
    empty = any(not len(frame) for frame in frames.values())
    if empty or (begin is not None and begin >= last) or (end is not None and end <= first):
        raise ConfigError(
            f"no bars of {history.symbol} in that period; there are some from {iso(first)} "
            f"to {iso(last)}"
        )
    return replace(history, frames=frames)
