"""From files to a desk: joins database, feeds, providers, ledger and clock as the settings say.

Everything that can be wrong with the settings is found here, before anything starts, and raised as
ConfigError with the remedy. Nothing here runs a tick.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from agent_config import TRADER_ID, AgentSettings
from agents.registry import AGENTS, UNSEATED, seated
from instance_database import Database, open_home
from torra import owner_only
from torra.chart import renderer, screenshot
from torra.clock import SAMPLE_RATE, Clock, Scaled, System, iso
from torra.config import (
    ROOT,
    Channel,
    DeskSettings,
    Instance,
    Profile,
    has_desk,
    load_desk,
    load_profile,
)
from torra.desk.models.access import Models, open_models
from torra.desk.models.embedders import open_embedder
from torra.desk.outlook import ContextFeeds, currencies_of
from torra.desk.roster import InstanceRuntime, ProfileReload
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.feeds.close_reader import WAIT
from torra.feeds.companions import CompanionReader
from torra.feeds.protocol import Feed
from torra.feeds.registry import open_feed
from torra.feeds.sample import SampleFeed
from torra.home import LIVED
from torra.imports import importing
from torra.notices.protocol import NoticePlace, NoticeService
from torra.notices.registry import open_services
from torra.plugins.loading import of_desk
from torra.services import Services
from torra.store import hosted as hosted_table
from torra.store.host_files import SymbolDatabases, files_of
from torra.store.trade import signals as signal_table
from torra.trading import channels
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch, halt_files
from torra.whole_files import write_whole

if TYPE_CHECKING:
    from torra.desk.schedule import Desk
    from torra.jobs.kinds import JobKind

log = logging.getLogger("torra")


def open_desk(
    folder: Path,
    kinds: Mapping[str, JobKind] = MappingProxyType({}),
    lock: DeskLock | None = None,
) -> tuple[Desk, DeskSettings]:
    """Return the desk of a home, not started; raises ConfigError.

    `kinds` are the jobs that it can do (torra.jobs.kinds), by their names. `lock` is the home's
    lock, where this process has taken it already. What a desk alone has is
    imported here: a trial tick is wired by this module, too, and has none of it.
    """
    with importing():
        from torra.desk.event_stream import EventStream  # noqa: PLC0415
        from torra.desk.memory.reviews import Reviewer  # noqa: PLC0415
        from torra.desk.schedule import Desk  # noqa: PLC0415
        from torra.jobs.worker import Worker  # noqa: PLC0415
        from torra.notices.desk_notices import DeskNotices  # noqa: PLC0415

    settings = load_desk(folder)
    profiles = {
        item.id: check_profile(load_profile(item.profile, folder), item)
        for item in settings.instances
    }
    database = open_home(folder)
    try:
        _refuse_a_demo(folder, database)
    except ConfigError:
        database.close()
        raise
    leave_sign(folder)

    desk: Desk | None = None

    def clock() -> Clock:
        # The desk's clock is another one after its start; a collector may ask before there is one.
        return System() if desk is None else desk.clock

    def watched() -> list[tuple[Instance, Profile]]:
        setups = {} if desk is None else desk.setups
        return [(item.instance, item.profile) for item in setups.values()]

    try:
        environment = dict(os.environ)
        outlook = ContextFeeds(
            folder, database, environment, profiles.values(), now=lambda: clock().now()
        )
        models = open_models(folder, database)
        setups = _setups(folder, settings, profiles, database, models, outlook)
        kill_switch = KillSwitch(halt_files(folder, settings), database)
        channels.check(settings, environment)
        check_routes(settings.instances, database)
        events = EventStream(database)
        desk = Desk(
            database,
            setups,
            clock_maker(setup.feed for setup in setups),
            lock=lock,
            events=events,
            kill_switch=kill_switch,
            keep_calls=timedelta(days=settings.keep_calls_days),
        )
        courier = Courier(
            database,
            addressees(settings.instances, profiles, settings.channels),
            partial(channels.open_bridges, folder, settings, environment),
            kill_switch,
            clock,
        )
        host_files = SymbolDatabases(
            files_of(settings.instances, settings.symbol_databases, folder),
            database,
            System().real_now,
        )
        host_files.check()
        notices = DeskNotices(
            database,
            settings.notices,
            watched,
            clock,
            partial(open_notices, folder, settings, environment),
            settings.paper_currency,
        )
        reviewer = Reviewer(database, models, watched, clock)
        worker = Worker(database, folder, kinds, tell=partial(events.changed, "jobs"))
    except BaseException:
        database.close()
        raise
    events.listen(host_files.on_change)
    events.listen(lambda _: reviewer.wake())
    readers = [item.companions for item in setups if item.companions]
    desk.route = courier
    desk.services = Services(
        events, host_files, models, *readers, outlook, courier, notices, reviewer, worker
    )
    desk.roster.refit = ProfileReload(
        partial(fit, models),
        lambda setup: courier.adopt(setup.instance.id, setup.profile),
    )
    return desk, settings


def open_notices(
    folder: Path, settings: DeskSettings, environment: Mapping[str, str]
) -> list[NoticeService]:
    """Return the services that bring a desk's notices to a person; raises ConfigError."""
    place = NoticePlace(environment, folder, settings.notices)
    return open_services(place, of_desk(settings, "notices"))


def _refuse_a_demo(folder: Path, database: Database) -> None:
    """Raise ConfigError for the demo in the home of another program's scorer."""
    if not has_desk(folder) and hosted_table.hosted_streams(database):
        raise ConfigError(
            f"{folder} is the home of another program's scorer (docs/overlay.md), and without a "
            "desk.json this would be the demo: write one with torra init, or name another home"
        )


def leave_sign(home: Path) -> None:
    """Note that a home is in use: a database that is lost from now on is not made anew."""
    if (home / LIVED).exists():
        return
    since = {"since": iso(System().real_now().replace(microsecond=0))}
    try:
        write_whole(home / LIVED, (json.dumps(since) + "\n").encode(), mode=owner_only.FILE)
    except OSError as error:
        log.warning("%s cannot be written: a lost database would be made anew: %s", LIVED, error)


def fit(models: Models, setup: InstanceRuntime, profile: Profile) -> InstanceRuntime:
    """Return a setup with a changed profile, its provider and its account; raises ConfigError."""
    check_profile(profile, setup.instance)
    account = models.account(profile.agents, setup.instance.profile)
    if account and setup.account:  # answers that came late are still to be booked
        account = replace(account, late=setup.account.late)
    provider = models.provider(profile.agents)
    return replace(setup, profile=profile, provider=provider, account=account)


def check_routes(instances: Sequence[Instance], database: Database) -> None:
    """Raise ConfigError when an instance has signals under way, or a position, on another way.

    Its bridge of now would know nothing of them, or take them for its own.
    """
    routes = {item.id: item.route for item in instances}
    for row in signal_table.foreign_signals(database, routes):
        now = routes.get(row["instance"])
        way = f"it goes to {now} now" if now else "the desk does not name it any more"
        raise ConfigError(
            f"{row['instance']} has the {row['kind']} {row['sid']} ({row['state']}) on "
            f"{row['bridge']}, but {way}: put desk.json back until it is closed, or, if the order "
            f"never was, `torra settle {row['sid']}`"
        )


def addressees(
    instances: Iterable[Instance],
    profiles: Mapping[str, Profile],
    venues: Mapping[str, Channel],
) -> list[RoutedInstance]:
    """Return the instances as the courier knows them."""
    routed = []
    for item in instances:
        channel = None if item.bridge == "paper" else item.channel
        routed.append(RoutedInstance(item, profiles[item.id], channel, venues.get(channel or "")))
    return routed


def _setups(
    home: Path,
    settings: DeskSettings,
    profiles: Mapping[str, Profile],
    database: Database,
    models: Models,
    outlook: ContextFeeds,
) -> list[InstanceRuntime]:
    feeds = open_feeds(settings.instances, settings, home, database)
    companions = open_companions(settings.instances, settings, home, database)
    return [
        InstanceRuntime(
            instance=instance,
            profile=profiles[instance.id],
            feed=feeds[instance.id],
            provider=models.provider(profiles[instance.id].agents),
            lock=threading.Lock(),
            account=models.account(profiles[instance.id].agents, instance.profile),
            news=outlook.news(instance, profiles[instance.id]),
            events=outlook.events(instance, profiles[instance.id]),
            outside=outlook.outside(instance, profiles[instance.id]),
            companions=companions.get(instance.id),
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
    if profile.events.calendar:
        currencies_of(instance, profile)
    _check_roles(profile.agents, name)
    memory = profile.agents.memory
    if strangers := sorted(set(memory.roles) - {*AGENTS, TRADER_ID}):
        raise ConfigError(
            f"profile {name}: agents.memory.roles names {', '.join(strangers)}, who are no agents; "
            f"known are {', '.join(AGENTS)}"
        )
    if profile.agents.remembers():
        open_embedder(memory.embedder)
    if profile.agents.picture == "rendered":
        renderer.check_available()
    elif profile.agents.picture == "file":
        screenshot.check_template(profile.agents.picture_file)
    return profile


def _check_roles(agents: AgentSettings, name: str) -> None:
    """Raise ConfigError for a desk that cannot be seated, or a setting for a role not at it."""
    try:
        desk = seated(agents)
    except ValueError as error:
        raise ConfigError(f"profile {name}: {error}") from error
    seats = {*(seat.role.id for seat in desk), *(role.id for role in UNSEATED)}
    for setting in ("role_models", "role_caps"):
        if strangers := sorted(set(getattr(agents, setting)) - seats):
            raise ConfigError(
                f"profile {name}: agents.{setting} names {', '.join(strangers)}, who does not sit "
                f"at this desk; those who do are {', '.join(sorted(seats))}"
            )


def open_feeds(
    instances: Sequence[Instance], settings: DeskSettings, home: Path, database: Database | None
) -> dict[str, Feed]:
    """Return the feed of each of a desk's instances by its name; sample instances share one.

    Without a database no bars are stored: a feed that reads them raises ConfigError.
    """
    return _opened(instances, settings, home, database, companion=False)


def open_companions(
    instances: Sequence[Instance],
    settings: DeskSettings,
    home: Path,
    database: Database | None,
    *,
    keep: bool = True,
    wait: float = WAIT,
) -> dict[str, CompanionReader]:
    """Return the readers of the companions of those instances that have some; ConfigError.

    Each reads through a feed of its own, which is opened as the instance's. What a live one has
    read is stored, unless `keep` is False: imported bars are stored already.
    """
    chosen = [item for item in instances if item.companions]
    feeds = _opened(chosen, settings, home, database, companion=True)
    return {
        item.id: CompanionReader(
            item,
            feeds[item.id],
            partial(_keep, item, database) if keep and database and item.feed != "store" else None,
            wait=wait,
        )
        for item in chosen
    }


def _keep(
    instance: Instance, database: Database, symbol: str, timeframe: str, frame: pd.DataFrame
) -> None:
    database.store_bars(instance.companion_stream(symbol), timeframe, frame)


def _opened(
    instances: Sequence[Instance],
    settings: DeskSettings,
    home: Path,
    database: Database | None,
    *,
    companion: bool,
) -> dict[str, Feed]:
    sample = cache(lambda: SampleFeed(ROOT / "sample_data", invents=not has_desk(home)))
    plug_in = of_desk(settings, "feeds")
    load_bars = _none if database is None else database.load_bars
    places = (
        channels.feed_place(
            item, settings, home, dict(os.environ), load_bars=load_bars, sample=sample
        )
        for item in instances
    )
    return {
        place.instance.id: open_feed(replace(place, related=companion), plug_in) for place in places
    }


def _none(*_: object, **__: object) -> Any:
    raise ConfigError("there is no database yet to read bars from: torra import brings some")


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
