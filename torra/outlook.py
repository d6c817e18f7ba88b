"""What a desk knows besides the bars: headlines that were collected, events that are scheduled.

One per process. A tick is handed two functions of a moment, `news` and `events`; both only read,
and what they tell was known at that moment. Collecting is news_collector's part, on a thread of its
own, from `start` to `close`; where no profile wants headlines it is not even imported. Whatever is
wrong with the settings raises ConfigError before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from instance_database import Database
from torra.clock import System
from torra.config import Instance, Profile
from torra.event_file import CalendarFile
from torra.news_digest import NewsView, Subject
from torra.scheduled_events import EventView, around

if TYPE_CHECKING:
    from news_collector import Collector

News = Callable[[datetime], NewsView]
Events = Callable[[datetime], EventView]


class Outlook:
    """The collector and the calendars of a desk whose instances have these profiles.

    `now` is the desk's clock: a headline is first seen when it is seen there. Raises ConfigError
    for a bad address or key of a news vendor, and for a file of headlines that cannot be read.
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
        self._calendars: dict[Path, CalendarFile] = {}
        wanted = [profile for profile in profiles if profile.agents.include_news]
        self.collector = _collector(folder, database, environment, wanted, now) if wanted else None

    def news(self, instance: Instance, profile: Profile) -> News | None:
        """Return what tells an instance's news; None when its profile wants none."""
        collector = self.collector
        if collector is None or not profile.agents.include_news:
            return None
        settings, subject = profile.news, subject_of(instance, profile)
        collector.watch(subject, settings)
        return lambda as_of: collector.latest(subject, as_of, settings)

    def events(self, instance: Instance, profile: Profile) -> Events | None:
        """Return what tells the events around a moment; None without a calendar.

        Raises ConfigError for a calendar that cannot be read.
        """
        if not profile.events.calendar:
            return None
        path = self._folder / profile.events.calendar
        calendar = self._calendars.setdefault(path, CalendarFile(path))
        calendar.events()
        currencies = profile.symbol(instance.symbol).currencies

        def around_moment(as_of: datetime) -> EventView:
            events, broken = calendar.events()
            return around(events, currencies, as_of, broken=broken)

        return around_moment

    def start(self) -> None:
        """Begin to collect headlines, if any are wanted."""
        if self.collector is not None:
            self.collector.start()

    def close(self) -> None:
        """Stop collecting."""
        if self.collector is not None:
            self.collector.close()


def subject_of(instance: Instance, profile: Profile) -> Subject:
    """Return what headlines about an instance are looked for by."""
    spec = profile.symbol(instance.symbol)
    return Subject(
        symbol=instance.symbol,
        asset=spec.asset,
        ticker=spec.ticker,
        currencies=spec.currencies,
        terms=spec.news_terms,
    )


def _collector(
    folder: Path,
    database: Database,
    environment: Mapping[str, str],
    profiles: Iterable[Profile],
    now: Callable[[], datetime],
) -> Collector:
    # Here, because the vendors' clients and the dictionary take a while to import.
    from news_collector import Collector  # noqa: PLC0415
    from torra.news_lexicon import score  # noqa: PLC0415
    from torra.news_source import Sources, open_sources  # noqa: PLC0415

    found = [open_sources(profile.news, environment, folder) for profile in profiles]
    merged = Sources(
        vendors={name: vendor for one in found for name, vendor in one.vendors.items()},
        files={name: file for one in found for name, file in one.files.items()},
        keyless={name: variable for one in found for name, variable in one.keyless.items()},
    )
    return Collector(merged, database, now=now, monotonic=System().monotonic, score=score)
