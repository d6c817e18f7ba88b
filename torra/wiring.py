"""From files to a desk: joins database, feeds, providers and clock as the settings say.

Everything that can be wrong with the settings is found here, before anything starts, and raised as
ConfigError with the remedy. Nothing here runs a tick.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from agents.registry import seated
from instance_database import Database
from torra.clock import SAMPLE_RATE, Clock, Scaled, System
from torra.config import ROOT, DeskSettings, Instance, Profile, load_desk, load_profile
from torra.errors import ConfigError
from torra.feeds.protocol import Feed
from torra.feeds.sample import SampleFeed
from torra.feeds.stored import StoredFeed
from torra.providers.registry import open_provider
from torra.schedule import Desk, Station

DATABASE: Final = "torra.db"


def open_database(folder: Path) -> Database:
    """Open, and make or migrate if need be, the desk's database in a home."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}; set TORRA_HOME") from error
    return Database.open(folder / DATABASE, now=System().real_now)


def open_desk(
    folder: Path, *, notify: Callable[[str, dict[str, Any]], None] | None = None
) -> tuple[Desk, DeskSettings]:
    """Return the desk of a home, not started; raises ConfigError."""
    settings = load_desk(folder)
    profiles = {
        item.id: check_profile(load_profile(item.profile, folder), item)
        for item in settings.instances
    }
    database = open_database(folder)
    try:
        stations = _stations(settings, profiles, database)
        make_clock = clock_maker(station.feed for station in stations)
        return Desk(database, stations, make_clock, notify=notify), settings
    except BaseException:
        database.close()
        raise


def _stations(
    settings: DeskSettings, profiles: Mapping[str, Profile], database: Database
) -> list[Station]:
    feeds = open_feeds(settings.instances, database)
    return [
        Station(
            instance=instance,
            profile=profiles[instance.id],
            feed=feeds[instance.id],
            provider=open_provider(profiles[instance.id].agents),
            lock=threading.Lock(),
        )
        for instance in settings.instances
    ]


def check_profile(profile: Profile, instance: Instance, name: str = "") -> Profile:
    """Hold a profile against the instance that uses it; raises ConfigError naming the remedy.

    `name` is what the messages call the profile, by default the instance's name for it.
    """
    name = name or instance.profile
    profile.symbol(instance.symbol)
    for timeframe in instance.timeframes:
        if timeframe not in profile.timeframe_weights:
            raise ConfigError(
                f"instance {instance.id} watches {timeframe}, but its profile {name} "
                f"gives it no weight: add timeframe_weights.{timeframe}"
            )
    _refuse_what_is_not_built(profile, name)
    try:
        seated(profile.agents)
    except ValueError as error:
        raise ConfigError(f"profile {name}: {error}") from error
    return profile


def _refuse_what_is_not_built(profile: Profile, name: str) -> None:
    """Refuse settings that this version would silently ignore."""
    agents = profile.agents
    asked = {
        "agents.call_policy pivotal": agents.call_policy != "always",
        "agents.include_news": agents.include_news,
        f"agents.picture {agents.picture}": agents.picture != "off",
        "execution approve": profile.execution == "approve",
    }
    for setting, wanted in asked.items():
        if wanted:
            raise ConfigError(f"profile {name}: {setting} is not in this version; take it out")


def open_feeds(instances: Iterable[Instance], database: Database) -> dict[str, Feed]:
    """Return the feed of every instance by its name; sample instances share one."""
    sample = SampleFeed(ROOT / "sample_data")
    feeds: dict[str, Feed] = {}
    for item in instances:
        if item.feed == "store":
            feeds[item.id] = StoredFeed(partial(database.load_bars, item.id))
            continue
        feeds[item.id] = sample
        for timeframe in item.timeframes:  # ConfigError for a stream that is not shipped
            sample.bars(item.symbol, timeframe, sample.period()[0], 1)
    return feeds


def clock_maker(feeds: Iterable[Feed]) -> Callable[[datetime | None], Clock]:
    """Return what makes the desk's clock from the moment at which the desk stood last, if any.

    Feeds that replay a period of the past set the pace; all of a desk's feeds do, or none does.
    """
    periods = {feed.period() for feed in feeds}
    if len(periods) > 1:
        raise ConfigError(
            "the desk mixes sample instances with real ones; give each kind a TORRA_HOME of its own"
        )
    period = periods.pop()
    if period is None:
        return lambda _: System()
    return lambda stood: Scaled(stood or period[0], SAMPLE_RATE)
