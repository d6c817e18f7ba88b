"""From files to a desk: joins database, feeds, providers and clock as the settings say.

Everything that can be wrong with the settings is found here, before anything starts, and raised as
ConfigError with the remedy. Nothing here runs a tick.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
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
    feeds = open_feeds(settings.instances, database)
    stations = []
    for instance in settings.instances:
        profile = profiles[instance.id]
        database.apply_profile(instance.id, profile.model_dump_json(), profile.digest())
        stations.append(
            Station(
                instance=instance,
                profile=profile,
                feed=feeds[instance.id],
                provider=open_provider(profile.agents),
                lock=threading.Lock(),
            )
        )
    make_clock = clock_maker(feeds.values())
    return Desk(database, stations, make_clock, notify=notify), settings


def check_profile(profile: Profile, instance: Instance) -> Profile:
    """Hold a profile against the instance that uses it; raises ConfigError naming the remedy."""
    profile.symbol(instance.symbol)
    for timeframe in instance.timeframes:
        if timeframe not in profile.timeframe_weights:
            raise ConfigError(
                f"instance {instance.id} watches {timeframe}, but its profile {instance.profile} "
                f"gives it no weight: add timeframe_weights.{timeframe}"
            )
    try:
        seated(profile.agents)
    except ValueError as error:
        raise ConfigError(f"profile {instance.profile}: {error}") from error
    return profile


def open_feeds(instances: Iterable[Instance], database: Database) -> dict[str, Feed]:
    """Return the feed of every instance by its name; sample instances share one."""
    sample = SampleFeed(ROOT / "sample_data")
    return {
        item.id: sample
        if item.feed == "sample"
        else StoredFeed(partial(database.load_bars, item.id))
        for item in instances
    }


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
