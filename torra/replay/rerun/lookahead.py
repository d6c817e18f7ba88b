"""The work behind `torra lookahead`: changes the future and reports every number that moved.

At each of several moments the bars that close later are replaced in several ways
(torra.replay.rerun.futures). Whatever a tick at that moment knows must stay what it was, bit for
bit:

    score     every row and column of the score frame up to the moment, of each timeframe
    window    the row of the newest 750 bars alone against that of the whole history: a live tick
              sees the one, a replayed tick the other
    bars      a timeframe that is put together from a shorter one, up to the moment
    tick      the record of run_tick at the moment and at the closes before it, with the rules
              provider, on the budget desk and on the full one: scores, ATH, features, memory,
              regime, reports, consensus, verdict, action, signal

Where a desk has outside numbers or bars of companions stored, those that became known after the
moment are replaced as well. Where the profile remembers, so are the lessons of the desk's trades,
and later ones are planted that are like each earlier one. News and scheduled events have times of
their own; docs/news.md has their guard. A number that moved is a finding, not an error; bars that
are too few raise ConfigError. Nothing is stored or published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator

import technical_calculator
from agent_config import MODES
from instance_database import open_home
from torra.clock import duration, iso
from torra.config import Instance, Profile
from torra.desk.models.embedders import open_embedder
from torra.desk.timers import running_order
from torra.errors import ConfigError
from torra.evaluation.exhibits import Cell, Exhibit
from torra.evaluation.wording import count
from torra.home import has_database
from torra.lessons.lesson import Fresh, Lesson
from torra.lessons.recall import LessonRetriever, Recall
from torra.market.longer_bars import aggregate
from torra.providers.rules.provider import RulesProvider
from torra.replay.outlook_then import NOTHING, PointInTimeData
from torra.replay.rerun import futures
from torra.replay.rerun.edges_then import FrozenClock
from torra.replay.rerun.futures import KINDS, Aggregate, closed
from torra.replay.shards.history import History
from torra.store.connection import TickKey
from torra.store.memory import MemoryStore
from torra.tick.bar_window import HistoryWindow
from torra.tick.edges import TickDeps
from torra_trader import run_tick

Score = Callable[[pd.DataFrame], pd.DataFrame]
"""Bars in, one row of columns for each bar out."""

POINTS: Final = 20
SEED: Final = 8
LEAD: Final = 8
"""Closes of the shortest timeframe that are run before the moment, so that there is a memory."""

NOT_COMPARED: Final = frozenset(("elapsed_ms", "versions", "provider", "profile", "execution"))
"""Fields of a record that say how it was run and not what it came to."""

LEAST: Final = 10
"""Moments without which a clean result shows nothing."""

CERTAIN: Final = 3.0
"""Rule of three: a leak at more than 3/n of all moments shows at one of n with 95 %."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A number that another future changed.

    `part` is score, window, bars or tick, `moment` the close at which it moved, `as_of` the moment
    after which the future was another one. `size` is None where the two are not both numbers.
    """

    part: str
    column: str
    kind: str
    moment: datetime
    as_of: datetime
    before: Any
    after: Any
    size: float | None


@dataclass(slots=True)
class Findings:
    """The findings of a probe: the `columns` it compared, by part, and every number that moved."""

    symbol: str
    points: int = 0
    comparisons: int = 0
    columns: dict[str, set[str]] = field(default_factory=dict)
    moved: list[Leak] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing moved."""
        return not self.moved


@dataclass(frozen=True, slots=True)
class LookaheadSubject:
    """The subject of a probe: bars by timeframe, settings of its ticks, the code that scores."""

    instance: Instance
    profile: Profile
    frames: Mapping[str, pd.DataFrame]
    derived: Mapping[str, str] = field(default_factory=dict)
    score: Score | None = None
    aggregate: Aggregate = aggregate
    outlook: PointInTimeData = NOTHING
    lessons: tuple[Lesson, ...] = ()

    @classmethod
    def of(
        cls,
        bars: History,
        profile: Profile,
        outlook: PointInTimeData = NOTHING,
        lessons: Sequence[Lesson] = (),
    ) -> LookaheadSubject:
        """Return a history as a subject; raises ConfigError when it is too short to be probed."""
        long = {
            name: frame
            for name, frame in bars.frames.items()
            if len(frame) > technical_calculator.WARM_UP + 1
        }
        if not long:
            raise ConfigError(
                f"{bars.symbol}: more than {technical_calculator.WARM_UP + 1} bars are needed"
            )
        names = tuple(sorted(long, key=duration))
        instance = Instance(symbol=bars.symbol, timeframes=names, feed="store", bridge="paper")
        shorter = {name: _base(names, name) for name in bars.derived if name in long}
        derived = {name: base for name, base in shorter.items() if base}
        return cls(instance, profile, long, derived, outlook=outlook, lessons=tuple(lessons))

    def scored(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the score frame of some bars."""
        return (self.score or technical_calculator.score_frame)(frame)


def probe(
    subject: LookaheadSubject,
    *,
    points: int = POINTS,
    seed: int = SEED,
    kinds: Sequence[str] = tuple(KINDS),
    modes: Sequence[str] = tuple(MODES),
    on_point: Callable[[int], None] = lambda _: None,
) -> Findings:
    """Return what moved at `points` moments drawn by `seed`; `on_point` is called after each."""
    found = Findings(subject.instance.symbol)
    rng = Generator(PCG64(seed))
    whole = _World(subject, subject.frames, subject.outlook, subject.lessons)
    for as_of in _moments(subject, points, rng):
        _windows(subject, whole, as_of, found)
        true = {mode: whole.ticks(as_of, mode) for mode in modes}
        for kind in kinds:
            frames = futures.world(
                subject.frames, subject.derived, as_of, kind, rng, aggregate=subject.aggregate
            )
            beside = subject.outlook.with_other_future(as_of, rng)
            lessons: Sequence[Lesson] = subject.lessons
            if subject.profile.agents.remembers():
                asset = subject.profile.symbol(subject.instance.symbol).asset
                lessons = futures.lessons(lessons, as_of, subject.instance, asset, rng)
            other = _World(subject, frames, beside, lessons)
            _bars(subject, whole, other, as_of, kind, found)
            _scores(whole, other, as_of, kind, found)
            for mode in modes:
                _ticks(true[mode], other.ticks(as_of, mode), as_of, f"{kind}, {mode}", found)
        found.points += 1
        on_point(1)
    return found


def lessons_of(home: Path, profile: Profile) -> list[Lesson]:
    """Return the lessons that a desk has stored; none where the profile does not remember."""
    if not profile.agents.remembers() or not has_database(home):
        return []
    with closing(open_home(home)) as database:
        return database.lessons_since(0, 0).lessons


# --- one future -----------------------------------------------------------------------------------


class _World:
    """One future: its bars, scored once, and the ticks that are run on it."""

    def __init__(
        self,
        subject: LookaheadSubject,
        frames: Mapping[str, pd.DataFrame],
        outlook: PointInTimeData,
        lessons: Sequence[Lesson],
    ) -> None:
        self.subject = subject
        self.frames = frames
        self.outlook = outlook
        self.lessons = lessons
        self.scores = {name: self._scored(name) for name, frame in frames.items() if len(frame)}

    @cached_property
    def window(self) -> _Window:
        """The window of the ticks, made when the first one is run."""
        return _Window(self.frames, self.subject.score)

    @cached_property
    def recall(self) -> Recall | None:
        """What tells its ticks of lessons; None where the profile does not remember."""
        agents = self.subject.profile.agents
        if not agents.remembers():
            return None
        newest = len(self.lessons)
        shelf = LessonRetriever(
            lambda facts, words: Fresh([] if facts else [*self.lessons], [], newest, words),
            open_embedder(agents.memory.embedder),
        )
        return shelf.recall

    def _scored(self, name: str) -> pd.DataFrame:
        # The window has scored these bars already.
        own = None if self.subject.score else self.window.whole(name)
        return self.subject.scored(self.frames[name]) if own is None else own

    def ticks(self, as_of: datetime, mode: str) -> list[tuple[datetime, dict[str, Any]]]:
        """Return the close and the flat record of the ticks that end at a moment."""
        instance, profile = self.subject.instance, _for(self.subject.profile, mode)
        clock, rules = FrozenClock(as_of), RulesProvider()
        edges = TickDeps(
            database=MemoryStore({instance.id: profile}),
            window=self.window,
            submit=rules.submit,
            provider=rules.name,
            clock=clock,
            outside=self.outlook.outside_of(instance, profile),
            lessons=self.recall,
            companions=self.outlook.companions_of(),
            flow=self.outlook.flow_of(profile),
        )
        found = []
        for key in self._keys(as_of):
            close = key.close_time
            clock.set(close)
            outcome = run_tick(
                instance, key.timeframe, key.bar_time, 0.0, profile=profile, edges=edges
            )
            record = outcome.record or {"state": outcome.state, "reason": outcome.reason}
            found.append((close, _flat(record)))
        return found

    def _keys(self, as_of: datetime) -> list[TickKey]:
        """Return the ticks of the last closes up to a moment, in running order."""
        begin = as_of - LEAD * duration(self.subject.instance.shortest)
        keys = [
            TickKey(self.subject.instance.id, name, time.to_pydatetime())
            for name, frame in self.frames.items()
            if closed(frame, name, begin) >= technical_calculator.WARM_UP
            for time in frame.index[closed(frame, name, begin) : closed(frame, name, as_of)]
        ]
        return sorted(keys, key=running_order)


class _Window(HistoryWindow):
    """The window of a replay, with the rows of a score that was handed in."""

    def __init__(self, frames: Mapping[str, pd.DataFrame], score: Score | None) -> None:
        super().__init__(frames)
        self._own = {name: score(frame) for name, frame in frames.items()} if score else {}

    def whole(self, timeframe: str) -> pd.DataFrame | None:
        """Return the score frame of a timeframe as ticks look it up; None for one without."""
        stream = self._streams.get(timeframe)
        if stream is None:
            return None
        return pd.DataFrame(stream.scores, index=self.times[timeframe], columns=stream.columns)

    def l1_row(self, timeframe: str, as_of: datetime, bars: Any) -> Mapping[str, float]:
        """Look the row up."""
        row = super().l1_row(timeframe, as_of, bars)
        if timeframe not in self._own:
            return row
        own = self._own[timeframe].loc[pd.Timestamp(as_of - duration(timeframe))]
        return {**row, **dict(zip(own.index, own.to_numpy(dtype=float).tolist(), strict=True))}


def _for(profile: Profile, mode: str) -> Profile:
    """Return the profile with every agent of a desk asked on every tick, and counted."""
    return profile.with_agents(
        mode=mode, provider="rules", call_policy="always", influence="full",
        active_agents=(), picture="off",
    )  # fmt: skip


def _base(names: Sequence[str], name: str) -> str:
    """Return the timeframe from which a longer one is put together, "" where there is none."""
    return max((n for n in names if duration(n) < duration(name)), key=duration, default="")


def _moments(subject: LookaheadSubject, points: int, rng: Generator) -> list[datetime]:
    """Draw closes of the shortest timeframe that have scores before and bars after them."""
    shortest = subject.instance.shortest
    frame = subject.frames[shortest]
    first = min(technical_calculator.WARM_UP + LEAD, len(frame) - 2)
    possible = np.arange(first, len(frame) - 1)
    drawn = rng.choice(possible, min(points, len(possible)), replace=False)
    return [frame.index[at].to_pydatetime() + duration(shortest) for at in sorted(drawn)]


# --- what is compared -----------------------------------------------------------------------------


def _windows(subject: LookaheadSubject, whole: _World, as_of: datetime, found: Findings) -> None:
    """Compare the row of the newest bars alone with that of the whole history."""
    length = technical_calculator.HISTORY
    for name, frame in subject.frames.items():
        end = closed(frame, name, as_of)
        # With fewer bars a live tick sees the whole history as well.
        if end < length:
            continue
        live = subject.scored(frame.iloc[end - length : end]).iloc[[-1]]
        _frames("window", whole.scores[name].iloc[[end - 1]], live, name, as_of, "live", found)


def _bars(
    subject: LookaheadSubject,
    whole: _World,
    other: _World,
    as_of: datetime,
    kind: str,
    found: Findings,
) -> None:
    for name in subject.derived:
        ends = [closed(world.frames[name], name, as_of) for world in (whole, other)]
        parts = [world.frames[name].iloc[: min(ends)] for world in (whole, other)]
        if ends[0] != ends[1]:
            found.moved.append(
                Leak("bars", f"{name}.count", kind, as_of, as_of, ends[0], ends[1], None)
            )
        _frames("bars", parts[0], parts[1], name, as_of, kind, found)


def _scores(whole: _World, other: _World, as_of: datetime, kind: str, found: Findings) -> None:
    for name, frame in other.frames.items():
        end = min(closed(frame, name, as_of), closed(whole.frames[name], name, as_of))
        if end:
            before, after = (world.scores[name].iloc[:end] for world in (whole, other))
            _frames("score", before, after, name, as_of, kind, found)


def _frames(
    part: str,
    before: pd.DataFrame,
    after: pd.DataFrame,
    timeframe: str,
    as_of: datetime,
    kind: str,
    found: Findings,
) -> None:
    """Compare two frames of the same rows by column; a finding names the newest row that moved."""
    step = duration(timeframe)
    for column in before.columns:
        name = f"{timeframe}.{column}"
        found.columns.setdefault(part, set()).add(name)
        found.comparisons += len(before)
        one, other = (frame[column].to_numpy(dtype=float) for frame in (before, after))
        # NaN is unequal to itself, and is no move where both have it.
        differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
        if not differs.any():
            continue
        sizes = np.abs(other - one)
        at = int(np.flatnonzero(differs)[-1])
        moment = before.index[at].to_pydatetime() + step
        size = float(np.nanmax(sizes[differs])) if not np.isnan(sizes[differs]).all() else None
        found.moved.append(
            Leak(part, name, kind, moment, as_of, _number(one[at]), _number(other[at]), size)
        )


def _ticks(
    before: Sequence[tuple[datetime, dict[str, Any]]],
    after: Sequence[tuple[datetime, dict[str, Any]]],
    as_of: datetime,
    kind: str,
    found: Findings,
) -> None:
    """Compare the records of the same ticks in two futures."""
    if [close for close, _ in before] != [close for close, _ in after]:
        found.moved.append(
            Leak("tick", "ticks.count", kind, as_of, as_of, len(before), len(after), None)
        )
    seen = found.columns.setdefault("tick", set())
    for (close, one), (_, other) in zip(before, after, strict=False):
        for name in sorted(one.keys() | other.keys()):
            seen.add(name)
            found.comparisons += 1
            pair = one.get(name), other.get(name)
            if not _same(*pair):
                found.moved.append(Leak("tick", name, kind, close, as_of, *pair, _size(*pair)))


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as flat names with values; items of a list go by their id or name."""
    kept = {name: value for name, value in record.items() if name not in NOT_COMPARED}
    return dict(_leaves("", kept))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            known = item if isinstance(item, Mapping) else {}
            # By name where there is one: an item that comes or goes then moves itself alone.
            label = known.get("id") or known.get("name") or at
            yield from _leaves(f"{name}.{label}", item)
    else:
        yield name, value


def _same(one: Any, other: Any) -> bool:
    # The type too: 1 and True and 1.0 are equal in Python.
    return type(one) is type(other) and (one == other or (one != one and other != other))  # noqa: PLR0124


def _size(one: Any, other: Any) -> float | None:
    numbers = [value for value in (one, other) if isinstance(value, (int, float))]
    return abs(float(numbers[1]) - float(numbers[0])) if len(numbers) == 2 else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# --- what it shows --------------------------------------------------------------------------------


def exhibit(found: Findings) -> Exhibit:
    """Return what moved, one row for each number and kind of future, the largest moves first."""
    groups: dict[tuple[str, str, str], list[Leak]] = {}
    for one in found.moved:
        groups.setdefault((one.part, one.column, one.kind), []).append(one)
    rows = sorted((_row(key, group) for key, group in groups.items()), key=_order)
    columns = sum(len(names) for names in found.columns.values())
    leaking = len({(one.part, one.column) for one in found.moved})
    return Exhibit(
        name=f"look-ahead-{found.symbol.lower()}",
        title=f"{found.symbol}: what knew the future",
        columns=(
            "part",
            "number",
            "future",
            "moments",
            "largest move",
            "moved at",
            "before",
            "after",
        ),
        rows=tuple(rows),
        says=_says(found, columns, leaking),
        enough=found.points >= LEAST,
        figures={
            "points": float(found.points),
            "comparisons": float(found.comparisons),
            "columns": float(columns),
            "moved": float(leaking),
        },
    )


def _row(key: tuple[str, str, str], group: Sequence[Leak]) -> tuple[Cell, ...]:
    sizes = [one.size for one in group if one.size is not None]
    worst = max(group, key=lambda one: -1.0 if one.size is None else one.size)
    moments = len({one.as_of for one in group})
    largest = max(sizes) if sizes else None
    return (*key, moments, largest, iso(worst.moment), _cell(worst.before), _cell(worst.after))


def _order(row: tuple[Cell, ...]) -> tuple[Any, ...]:
    parts = ("score", "window", "bars", "tick")
    return parts.index(str(row[0])), -float(row[3] or 0), -float(row[4] or 0), row[1], row[2]


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _says(found: Findings, columns: int, leaking: int) -> str:
    moments = count(found.points, "moment")
    if leaking:
        worst = ", ".join(sorted({one.column for one in found.moved})[:5])
        more = f" and {leaking - 5} more" if leaking > 5 else ""
        return (
            f"{count(leaking, 'number')} of {columns:,} moved when only the future changed, at one "
            f"or more of {moments}: {worst}{more}. A result that uses them is not to be believed."
        )
    if found.points < LEAST:
        return f"Nothing moved, but {moments} are too few to show anything: ask for {POINTS}."
    rare = found.points / CERTAIN
    return (
        f"Nothing moved: {columns:,} numbers, {count(found.comparisons, 'comparison')} at "
        f"{moments} in {len(KINDS)} other futures. A leak that shows at one moment in {rare:.0f} "
        "or oftener would have been seen with 95 % confidence."
    )
