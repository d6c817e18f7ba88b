"""Headlines, outside numbers and scheduled events of a desk: collected and read beside its ticks.

There is one Outlook per process. A tick is handed three functions, `news`, `outside` and `events`.
They read only what is in memory or in the database, and return what was known at the moment that is
asked for. news_collector collects headlines, torra.outside.collector series and
torra.outside.company_collector filings, each on threads of its own, from `start` to `rest` or
`close`; what no profile wants is not even imported. Calendars are read strictly when they are
opened. From `start` to `close` one thread reads changed calendars again, so that a tick never waits
for a disk. Settings that are wrong raise ConfigError before anything starts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents.registry import seated
from instance_database import Database
from torra.clock import System, duration, floor
from torra.config import Instance, Profile
from torra.desk.roster import InstanceRuntime
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsSubject, NewsView
from torra.evidence.outside_numbers import EDGAR, PUBLISHERS, series_of
from torra.evidence.outside_readings import ClosesOf, OutsideView, reads_company, series_for
from torra.evidence.scheduled_events import EventView, ScheduledEvent, around
from torra.feeds.protocol import Feed
from torra.news.event_file import read_events
from torra.news.watched_file import WatchedFile
from torra.outside.invented import InventedSample
from torra.outside.shelf import OutsideShelf, trouble_of
from torra.services import CLOSE_SECONDS, Service, Services
from torra.tick.bar_window import LiveWindow
from torra.trading_terms import CURRENCY

if TYPE_CHECKING:
    from news_collector import Collector
    from torra.outside.collector import SeriesCollector
    from torra.outside.company_collector import FactsCollector
    from torra.tick.edges import TickDeps

INVENTED_FOR: Final = {"news", "fundamental", "macro", "microstructure"}
"""Seats to which the demo's bars alone give nothing to speak of."""

News = Callable[[datetime], NewsView]
Outside = Callable[[datetime, ClosesOf], OutsideView]
Events = Callable[[datetime, datetime], EventView]

REFRESH_SECONDS: Final = 5.0
"""Pause between two looks at whether a calendar has changed."""

log = logging.getLogger("torra")


class ContextFeeds:
    """The collector and the calendars of a desk whose instances have these profiles.

    `now` is the desk's clock: it gives the time at which a headline was first seen. Raises
    ConfigError for a bad address or key of a news vendor, and for a file of headlines that cannot
    be read.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        environment: Mapping[str, str],
        profiles: Iterable[Profile],
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._folder = folder
        self._calendars: dict[Path, WatchedFile[tuple[ScheduledEvent, ...]]] = {}
        used = [*profiles]
        wanted = [profile for profile in used if profile.agents.include_news]
        self.collector = _collector(folder, database, environment, wanted, now) if wanted else None
        named = {name for one in used for name in one.outside.sources}
        publishers = named & {*PUBLISHERS}
        self.series = _series(database, environment, publishers, now) if publishers else None
        self.filings = _filings(database, environment, now) if EDGAR in named else None
        self._database = database
        self._shelves: dict[tuple[bool, frozenset[str]], OutsideShelf] = {}
        self._look = Service("calendars", REFRESH_SECONDS, self.refresh, at_once=True)

    def news(self, instance: Instance, profile: Profile) -> News | None:
        """Return the function that gives an instance's news; None when its profile wants none."""
        collector = self.collector
        if collector is None or not profile.agents.include_news:
            return None
        settings, subject = profile.news, replace(subject_of(instance, profile), broad=False)
        collector.watch(subject, settings)
        return lambda as_of: collector.latest(subject, as_of, settings)

    def events(self, instance: Instance, profile: Profile) -> Events | None:
        """Return the function that gives the events around a close and the moment of its tick.

        None without a calendar. Raises ConfigError for a calendar that cannot be read, and for a
        symbol whose currencies are not known.
        """
        if not profile.events.calendar:
            return None
        path = self._folder / profile.events.calendar
        calendar = self._calendars.setdefault(path, WatchedFile(path, read_events))
        # Read here, so that a calendar with a fault stops the start and not a tick.
        calendar.latest()
        currencies = currencies_of(instance, profile)

        def around_moment(as_of: datetime, now: datetime) -> EventView:
            events, trouble = calendar.latest()
            return around(events, currencies, as_of, now, broken=trouble is not None)

        return around_moment

    def outside(self, instance: Instance, profile: Profile) -> Outside | None:
        """Return the function that gives an instance's outside numbers; None where none are read.

        It reads what is stored, from memory: no tick asks a source. The days of the shipped sample
        lie before anything was seen here, so on it a number counts from its release.
        """
        sources = profile.outside.sources
        if not sources:
            return None
        subject, live = subject_of(instance, profile), instance.feed != "sample"
        shelf = self._shelves.setdefault(
            (live, frozenset(sources)), OutsideShelf(self._database, live=live, sources=sources)
        )
        shelf.fill(subject)
        series = self.series
        if series is not None:
            series.watch(name for name in series_for(subject) if _published(name, sources))
        if self.filings is not None and EDGAR in sources and reads_company(subject):
            self.filings.watch(subject.ticker)
        trouble = trouble_of(sources, self._trouble)
        return lambda as_of, closes: shelf.latest(
            subject, as_of, closes=closes, trouble=trouble, who=instance.id
        )

    def _trouble(self, source: str) -> str:
        """Return why a publisher brings nothing; "" when it answers, and when it is not asked."""
        collector = self.filings if source == EDGAR else self.series
        return "" if collector is None else collector.trouble(source)

    def start(self) -> None:
        """Begin to collect headlines and numbers and to look after the calendars."""
        self._services().start()

    def close(self, within: float = CLOSE_SECONDS) -> None:
        """Stop collectors and calendars for good; one that hangs is left behind."""
        self._services().close(within)

    def _services(self) -> Services:
        collectors = (self.collector, self.series, self.filings)
        looks = [self._look] if self._calendars else []
        return Services(*looks, *(item for item in collectors if item is not None))

    def refresh(self) -> None:
        """Read the calendars that have changed; never raises."""
        # A copy: an instance may bring another calendar meanwhile.
        for calendar in tuple(self._calendars.values()):
            try:
                calendar.refresh()
            except Exception:
                log.exception("the calendar %s stands as it was read last", calendar.path)


def with_invented(
    edges: TickDeps, instance: Instance, profile: Profile, feed: Feed, database: Database
) -> TickDeps:
    """Return the edges of a demo's tick with the invented sample; any other desk's as they are.

    Nothing is invented beside sources that a person named or numbers that a person imported, nor
    where every seat has the bars to speak of.
    """
    if not getattr(feed, "invents", False):
        return edges
    wanted = INVENTED_FOR & {seat.role.id for seat in seated(profile.agents)}
    named = profile.agents.include_news or profile.outside.sources != ("file",)
    if named or not wanted or database.newest_series():
        return edges
    made = InventedSample(feed.bars, subject_of(instance, profile), instance.shortest)
    return replace(
        edges,
        news=made.news,
        outside=made.outside,
        companions=made,
        flow=made.flow,
        spreads=made.spreads,
        invented=True,
    )


def begin_flow(setups: Iterable[InstanceRuntime], database: Database, now: datetime) -> None:
    """Let feeds begin to read order flow: a terminal's first answer may take long."""
    for setup in setups:
        if setup.profile.outside.sources:
            window = LiveWindow(setup.instance, setup.feed, database)
            longest = max(setup.instance.timeframes, key=duration)
            window.begin_flow(longest, [floor(now, longest) - duration(longest)])


def currencies_of(instance: Instance, profile: Profile) -> tuple[str, ...]:
    """Return the currencies whose events concern an instance; raises ConfigError for none."""
    currencies = _currencies(instance.symbol, profile)
    if not currencies:
        raise ConfigError(
            f"the profile names a calendar, and nothing says which currencies concern "
            f"{instance.symbol}: write symbols.{instance.symbol}.currencies, such as "
            '["USD"]; ["ALL"] heeds only events that concern every symbol'
        )
    return currencies


def _currencies(symbol: str, profile: Profile) -> tuple[str, ...]:
    """Return a symbol's currencies; those of a pair without any stand in its name."""
    spec = profile.symbol(symbol)
    halves = (symbol[:3], symbol[3:])
    if spec.currencies or spec.asset != "fx" or not all(map(CURRENCY.fullmatch, halves)):
        return spec.currencies
    return halves


def subject_of(instance: Instance, profile: Profile) -> NewsSubject:
    """Return what headlines and outside numbers of an instance are searched by."""
    spec = profile.symbol(instance.symbol)
    return NewsSubject(
        symbol=instance.symbol,
        asset=spec.asset,
        ticker=spec.ticker,
        currencies=_currencies(instance.symbol, profile),
        terms=spec.news_terms,
        broad=profile.agents.row().broad,
    )


def _published(name: str, sources: Collection[str]) -> bool:
    """Tell whether a series is that of a publisher whom the settings name."""
    series = series_of(name)
    return series is not None and series.source in sources


def _series(
    database: Database,
    environment: Mapping[str, str],
    names: Collection[str],
    now: Callable[[], datetime],
) -> SeriesCollector:
    # Here, because the line to a publisher takes a while to import.
    from torra.outside.collector import SeriesCollector  # noqa: PLC0415
    from torra.outside.publisher import open_publishers  # noqa: PLC0415

    publishers = {name: one for name, one in open_publishers(environment).items() if name in names}
    return SeriesCollector(publishers, database.store_series, now=now, monotonic=System().monotonic)


def _filings(
    database: Database, environment: Mapping[str, str], now: Callable[[], datetime]
) -> FactsCollector:
    # Here, because the line to a publisher takes a while to import.
    from torra.outside.company_collector import FactsCollector  # noqa: PLC0415
    from torra.outside.edgar import open_edgar  # noqa: PLC0415

    return FactsCollector(open_edgar(environment), database, now=now, monotonic=System().monotonic)


def _collector(
    folder: Path,
    database: Database,
    environment: Mapping[str, str],
    profiles: Iterable[Profile],
    now: Callable[[], datetime],
) -> Collector:
    # Here, because the vendors' clients take a while to import.
    from news_collector import Collector  # noqa: PLC0415
    from torra.news.lexicon import score  # noqa: PLC0415
    from torra.news.source import open_sources  # noqa: PLC0415

    vendors, files = dict[str, Any](), dict[str, Any]()
    for profile in profiles:
        sources = open_sources(profile.news, environment, folder)
        vendors |= sources.vendors
        files |= sources.files
    now_s = System().monotonic
    return Collector(vendors, files, database, now=now, monotonic=now_s, score=score)
