"""What a replay knows of calendar and headlines at each of its moments: what a desk knew then.

`read_outlook` reads them once, before the first tick: the calendar that the profile names, its file
of headlines, and what the desk of the home has stored of vendors' headlines and figures, each from
the moment at which it was first seen. An OutlookThen holds them as values, so that a worker without
the home, and the same replay next year, know just as much. Its functions are those that a live desk
hands to its ticks (torra.desk.outlook): the same collector reads, and asks nobody.

What cannot be known is refused with the remedy (ConfigError), never left out in silence: a calendar
or a file that cannot be read, and a vendor of whose headlines nothing is stored for the period.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from numpy.random import Generator
from pydantic import TypeAdapter

from instance_database import Database, open_home
from torra.clock import System, duration, iso
from torra.config import Instance, Profile, load_desk
from torra.desk.outlook import Events, News, Outside, currencies_of, subject_of
from torra.errors import ConfigError
from torra.evidence import flow_readings
from torra.evidence.companion_readings import CompanionsThen
from torra.evidence.flow_readings import Flow, FlowRows
from torra.evidence.news_digest import EARLY, READ_ITEMS, NewsItem, NewsStatus, NewsView
from torra.evidence.news_shelf import StoredNews
from torra.evidence.outside_numbers import StoredFact, StoredRow, kind_of_source
from torra.evidence.outside_readings import THREE_YEARS, reads_company, series_for
from torra.evidence.scheduled_events import (
    EVERY_CURRENCY,
    REACH,
    EventView,
    ScheduledEvent,
    around,
)
from torra.evidence.vendor_figures import peers_of
from torra.home import has_database
from torra.news.event_file import read_events
from torra.outside.shelf import OutsideShelf, trouble_of
from torra.replay.shards import companion_tracks
from torra.replay.shards.companion_tracks import CompanionTrack
from torra.store import flow as flow_table
from torra.store import news as news_table

FILE: Final = "file"
"""The source of headlines that is a file."""

GOES_ON: Final = "the calendar goes on"
"""Name of the event that stands for all that come long after a replay."""

LATEST: Final = datetime.max.replace(tzinfo=UTC)
SHIFT: Final = timedelta(weeks=36)
"""How much older the series of the placebo are: at least 250 days, and on the same weekday."""

REACHES_BACK: Final = THREE_YEARS + timedelta(days=200) + SHIFT
"""How long before a replay the days of series reach that a tick may read: a rank goes back three
years, a change sixty days.
"""

FLOW_BACK: Final = SHIFT + timedelta(days=60)
"""How long before a replay the order flow reaches that a tick, or its placebo, may read."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A company's figures by name, from the moment at which they were first seen."""

    first_seen: datetime
    values: Mapping[str, float]
    ticker: str = ""


@dataclass(frozen=True, slots=True)
class PointInTimeData:
    """Events and headlines of a replay; None where its profile asks for none.

    `events` are those of a calendar, oldest first, that a tick may see, and where more come after
    them one of no impact that says so (GOES_ON). `filed` are the headlines of the profile's file,
    `stored` those of vendors that the desk has stored, both oldest sight first and of no other days
    than the replay's. `series` and `facts` are the outside numbers that the desk has stored and the
    symbol reads; they count from the moment at which the public could know them. `flow` is the
    order flow of bars that it has stored, by timeframe and oldest first: the row of a bar counts
    from its close. `companions` are the bars of the symbol's companions that it has stored. `begin`
    is where the replay begins, where there are any of these.
    """

    events: tuple[ScheduledEvent, ...] | None = None
    filed: tuple[NewsItem, ...] | None = None
    stored: tuple[NewsItem, ...] | None = None
    figures: tuple[Figures, ...] = ()
    series: tuple[StoredRow, ...] = ()
    facts: tuple[StoredFact, ...] = ()
    flow: FlowRows = field(default_factory=dict)
    begin: datetime | None = None
    companions: tuple[CompanionTrack, ...] = ()

    @property
    def digest(self) -> str:
        """What tells two of them apart; "" where there is nothing."""
        told = self.as_json()
        if not any(told.values()):
            return ""
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    def news_of(self, instance: Instance, profile: Profile) -> News | None:
        """Return the function that gives the news at a moment; None where none are wanted."""
        if not profile.agents.include_news or (self.filed is None and self.stored is None):
            return None
        # Here, because most replays want no news.
        from news_collector import Collector  # noqa: PLC0415
        from torra.news.lexicon import score  # noqa: PLC0415

        files = {} if self.filed is None else {profile.news.file: _Filed(self.filed)}
        collector = Collector(
            {},
            files,
            _Tables(self.stored or (), self.figures),
            now=System().now,
            monotonic=System().monotonic,
            score=score,
        )
        settings, subject = profile.news, replace(subject_of(instance, profile), broad=False)

        def known(as_of: datetime) -> NewsView:
            found = collector.latest(subject, as_of, settings)
            # A vendor of whom something is stored answered: it had nothing that counts.
            empty = found.status is NewsStatus.NO_KEY and self.stored is not None
            return replace(found, status=NewsStatus.EMPTY) if empty else found

        return known

    def events_of(self, instance: Instance, profile: Profile) -> Events | None:
        """Return the function that gives the events around a close; None without a calendar."""
        events = self.events
        if events is None:
            return None
        currencies = currencies_of(instance, profile)

        def around_moment(as_of: datetime, now: datetime) -> EventView:
            return around(events, currencies, as_of, now)

        return around_moment

    def outside_of(self, instance: Instance, profile: Profile) -> Outside | None:
        """Return the function that gives the outside numbers; None where none are read."""
        sources = profile.outside.sources
        if not sources:
            return None
        shelf = OutsideShelf(_Stored(self.series, self.facts), live=False, sources=sources)
        subject, trouble = subject_of(instance, profile), trouble_of(sources)
        latest = partial(shelf.latest, subject, trouble=trouble)
        if self.series or self.facts:
            return lambda as_of, closes: latest(as_of, closes=closes)
        nothing = latest(LATEST)
        return lambda _as_of, _closes: nothing  # of what nothing is stored nothing changes

    def companions_of(self) -> CompanionsThen | None:
        """Return the companions as a tick asks for them; None where there are none."""
        return companion_tracks.known(self.companions)

    def without_companions(self) -> PointInTimeData:
        """Return it without them: the outside sources of a profile do not name them."""
        return replace(self, companions=())

    def flow_of(self, profile: Profile) -> Flow | None:
        """Return the function that gives the order flow of bars; None where none is read."""
        if not self.flow or not profile.outside.sources:
            return None
        return flow_readings.flow_by_time(self.flow)

    def with_older_series(self) -> PointInTimeData:
        """Return it with every series as it was SHIFT before: a placebo that reads no less.

        So are reports, companions and order flow. What is shorter than that is left out.
        """
        rows = (one for one in self.series if one.row.name not in self.short_series)
        facts = (one for one in self.facts if one.row.ticker not in self.short_series)
        tracks = (one.older(SHIFT) for one in self.companions if not self._short(one))
        return replace(
            self,
            series=tuple(map(_shifted, rows)),
            facts=tuple(map(_shifted_fact, facts)),
            companions=tuple(tracks),
            flow=flow_readings.older(self.flow, SHIFT, self.short_series),
        )

    def _short(self, track: CompanionTrack) -> bool:
        # One without bars stays: it is missing with the shift as without it.
        return bool(self.begin and track.times and not track.reaches(self.begin - SHIFT))

    def with_other_future(self, as_of: datetime, rng: Generator) -> PointInTimeData:
        """Return it with other values for all outside numbers that were not known at a moment."""
        rows = (
            one
            if one.row.known_at <= as_of
            else one._replace(row=one.row._replace(value=float(rng.uniform(1.0, 1e6))))
            for one in self.series
        )
        facts = (
            one
            if one.row.known_at <= as_of
            else one._replace(row=one.row._replace(value=float(rng.uniform(1.0, 1e9))))
            for one in self.facts
        )
        return replace(
            self,
            series=tuple(rows),
            facts=tuple(facts),
            companions=tuple(one.other_future(as_of, rng) for one in self.companions),
            flow=flow_readings.with_other_future(self.flow, as_of, rng),
        )

    @property
    def short_series(self) -> tuple[str, ...]:
        """Names of what does not reach back far enough to be shifted."""
        told = [
            *((one.row.name, one.row.known_at) for one in self.series),
            *((one.row.ticker, one.row.known_at) for one in self.facts),
        ]
        first: dict[str, datetime] = {}
        for name, known in told:
            first[name] = min(known, first.get(name, known))
        first |= {flow_readings.name_of(name): rows[0].bar_time for name, rows in self.flow.items()}
        begin = self.begin or max((known for _, known in told), default=LATEST)
        tracks = (one.label for one in self.companions if self._short(one))
        short = (name for name, at in first.items() if at + SHIFT > begin)
        return tuple(sorted({*short, *tracks}))

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, without what is as in NOTHING."""
        told: dict[str, Any] = OUTLOOK.dump_python(self, mode="json", exclude_defaults=True)
        return told

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> PointInTimeData:
        """Return what `as_json` told; raises ValueError for anything else."""
        return OUTLOOK.validate_python(told)


OUTLOOK: Final = TypeAdapter(PointInTimeData)
"""Reads and writes an outlook as JSON values."""

NOTHING: Final = PointInTimeData()
"""The outlook of a replay whose profile asks for neither events nor headlines."""


# --- reading --------------------------------------------------------------------------------------


def read_outlook(
    home: Path, instance: Instance, profile: Profile, begin: datetime, end: datetime
) -> PointInTimeData:
    """Return what a desk of these settings knew from `begin` to `end`; raises ConfigError."""
    events = None
    if profile.events.calendar:
        currencies_of(instance, profile)
        events = _around_replay(read_events(home / profile.events.calendar), begin, end)
    beside = _beside_bars(home, instance, profile, begin, end)
    if not profile.agents.include_news:
        return PointInTimeData(events, **beside)
    # No tick looks farther back (news_collector.Collector.latest).
    since = begin - timedelta(hours=profile.news.max_age_hours) - 2 * EARLY
    filed = _of_file(home, profile, since, end) if FILE in profile.news.sources else None
    vendors = _vendors(profile)
    if not vendors:
        return PointInTimeData(events, filed, **beside)
    stored, figures = _of_desk(home, instance, profile, since, end)
    missing = [name for name in vendors if not any(_source(item) == name for item in stored)]
    if missing:
        raise ConfigError(
            f"nobody knows any more what {' and '.join(missing)} said from {iso(begin)} to "
            f"{iso(end)}: this desk has stored no headline of it. Write headlines of then into a "
            "file (news.sources file, docs/news.md), or set agents.include_news false"
        )
    return PointInTimeData(events, filed, stored, figures, **beside)


def _around_replay(
    events: Sequence[ScheduledEvent], begin: datetime, end: datetime
) -> tuple[ScheduledEvent, ...]:
    """Return the events that a tick may see: a line for other days makes no other replay.

    Where all later ones are left out, one of no impact says that the calendar goes on.
    """
    since, until = begin - 2 * REACH, end + 2 * REACH
    near = tuple(event for event in events if since <= event.time <= until)
    goes_on = any(event.time > until for event in events)
    return (*near, ScheduledEvent(until, EVERY_CURRENCY, "low", GOES_ON)) if goes_on else near


def _vendors(profile: Profile) -> list[str]:
    return [name for name in profile.news.sources if name != FILE]


def _source(item: NewsItem) -> str:
    return item.topic.partition(":")[0]


def _of_file(home: Path, profile: Profile, since: datetime, end: datetime) -> tuple[NewsItem, ...]:
    """Return the headlines that may count; lines added for later days make no other replay."""
    from torra.news.source import HeadlineFile  # noqa: PLC0415

    items = HeadlineFile(home / profile.news.file).reading.items
    return tuple(item for item in items if since < item.first_seen <= end)


def _of_desk(
    home: Path, instance: Instance, profile: Profile, since: datetime, end: datetime
) -> tuple[tuple[NewsItem, ...], tuple[Figures, ...]]:
    """Return what the desk has stored; nothing where there is no desk."""
    if not has_database(home):
        return (), ()
    with closing(open_home(home)) as database:
        items = tuple(database.news(since=since, as_of=end, limit=None))
        ticker = subject_of(instance, profile).ticker
        figures = _figures(database, (ticker,), end) if ticker else []
        peers = {peer for one in figures for peer in peers_of(one.values)} - {ticker}
        figures += _figures(database, sorted(peers), end)
    return items, tuple(figures)


def _figures(database: Database, tickers: Iterable[str], end: datetime) -> list[Figures]:
    return [
        Figures(moment, values, ticker)
        for ticker in tickers
        for moment, values in news_table.figures_of(database, ticker)
        if moment <= end
    ]


def only_series(
    home: Path, instance: Instance, profile: Profile, begin: datetime, end: datetime
) -> PointInTimeData:
    """Return the outside numbers of a desk alone, without news and events."""
    return PointInTimeData(**_beside_bars(home, instance, profile, begin, end))


def _beside_bars(
    home: Path, instance: Instance, profile: Profile, begin: datetime, end: datetime
) -> dict[str, Any]:
    """Return all that a desk has stored beside its bars, and where the replay of it begins."""
    series, facts = _outside_of_desk(home, instance, profile, begin, end)
    tracks = _companions_of_desk(home, instance, begin, end)
    flow = _flow_of_desk(home, instance, begin, end) if profile.outside.sources else {}
    begins = begin if series or facts or tracks or flow else None
    return {
        "series": series, "facts": facts, "companions": tracks, "flow": flow, "begin": begins,
    }  # fmt: skip


def _companions_of_desk(
    home: Path, instance: Instance, begin: datetime, end: datetime
) -> tuple[CompanionTrack, ...]:
    """Return what the desk has stored of the companions of its instance of a symbol."""
    if not has_database(home):
        return ()
    own = companion_tracks.instance_with(load_desk(home).instances, instance.symbol)
    if own is None:
        return ()
    with closing(open_home(home)) as database:
        return companion_tracks.of_desk(database, own, instance.timeframes, begin, end, SHIFT)


def _outside_of_desk(
    home: Path, instance: Instance, profile: Profile, begin: datetime, end: datetime
) -> tuple[tuple[StoredRow, ...], tuple[StoredFact, ...]]:
    """Return the outside numbers that the desk has stored and a tick may read."""
    if not profile.outside.sources or not has_database(home):
        return (), ()
    subject = subject_of(instance, profile)
    names = series_for(subject)
    with closing(open_home(home)) as database:
        rows = database.series_rows(names) if names else []
        facts = database.fact_rows(subject.ticker) if reads_company(subject) else []
    since, named = begin - REACHES_BACK, profile.outside.sources
    return (
        tuple(one for one in rows if one.row.at >= since and _counts(one, end, named)),
        tuple(one for one in facts if _counts(one, end, named)),
    )


def _counts(one: StoredRow | StoredFact, end: datetime, sources: Collection[str]) -> bool:
    return one.row.known_at <= end and kind_of_source(one.row.source) in sources


def _flow_of_desk(home: Path, instance: Instance, begin: datetime, end: datetime) -> FlowRows:
    """Return the order flow that the desk has stored, also of the bars that its placebo reads."""
    if not has_database(home):
        return {}
    whose = [one.id for one in load_desk(home).instances if instance.id in (one.id, one.symbol)]
    with closing(open_home(home)) as database:
        for name in whose or [instance.id]:
            found = {
                timeframe: tuple(
                    row
                    for row in flow_table.flow_rows(
                        database, name, timeframe, begin - FLOW_BACK, end
                    )
                    if row.bar_time + duration(timeframe) <= end
                )
                for timeframe in instance.timeframes
            }
            if any(found.values()):
                return {timeframe: rows for timeframe, rows in found.items() if rows}
    return {}


# --- what the collector is handed -----------------------------------------------------------------


class _Filed:
    """The headlines of a file, as they stood when the replay began."""

    topic = FILE

    def __init__(self, items: tuple[NewsItem, ...]) -> None:
        self.reading = StoredNews(items)

    def look(self) -> None:
        """See nothing new."""


class _Tables:
    """What was stored, in memory (news_collector.NewsTables)."""

    def __init__(self, items: Sequence[NewsItem], figures: Sequence[Figures]) -> None:
        self._items = items
        self._seen = [item.first_seen for item in items]
        self._figures = figures

    def store_news(self, items: Iterable[NewsItem]) -> int:
        """Store nothing."""
        del items
        return 0

    def news(self, *, since: datetime, as_of: datetime) -> list[NewsItem]:
        """Return what was first seen in (since, as_of], of more than READ_ITEMS the newest."""
        first, last = bisect_right(self._seen, since), bisect_right(self._seen, as_of)
        return list(self._items[max(first, last - READ_ITEMS) : last])

    def store_fundamentals(
        self, ticker: str, figures: Mapping[str, float], first_seen: datetime, part: str = ""
    ) -> bool:
        """Store nothing."""
        del ticker, figures, first_seen, part
        return False

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        """Return the newest figures of a company that were known."""
        known = [
            one.values for one in self._figures if one.ticker == ticker and one.first_seen <= as_of
        ]
        return dict(known[-1]) if known else {}


class _Stored:
    """The stored outside numbers, in memory (torra.outside.shelf.OutsideTables)."""

    def __init__(self, rows: Sequence[StoredRow], facts: Sequence[StoredFact]) -> None:
        self._rows = rows
        self._facts = facts

    def newest_series(self) -> int:
        """Return how many rows there are: no more will come."""
        return len(self._rows)

    def series_rows(self, names: Sequence[str], after: int = 0) -> list[StoredRow]:
        """Return the rows of some series."""
        del after
        return [one for one in self._rows if one.row.name in names]

    def newest_fact(self) -> int:
        """Return how many figures there are: no more will come."""
        return len(self._facts)

    def fact_rows(self, ticker: str, after: int = 0) -> list[StoredFact]:
        """Return the figures of a company."""
        del after
        return [one for one in self._facts if one.row.ticker == ticker]


# --- the placebo ----------------------------------------------------------------------------------


def _shifted(one: StoredRow) -> StoredRow:
    row = one.row._replace(at=one.row.at + SHIFT, known_at=one.row.known_at + SHIFT)
    return one._replace(row=row, first_seen=one.first_seen + SHIFT)


def _shifted_fact(one: StoredFact) -> StoredFact:
    """Return a figure as one of SHIFT later: the company as it was then, dated as it is now."""
    row = one.row._replace(
        begins=one.row.begins + SHIFT, ends=one.row.ends + SHIFT, known_at=one.row.known_at + SHIFT
    )
    return one._replace(row=row, first_seen=one.first_seen + SHIFT)
