"""The instances on which a desk works, each with everything that its ticks need.

`InstanceRuntime` is one instance with its feed, provider and profile. `InstanceRegistry` is all of
them. It takes other profiles while the desk runs, between two ticks: `adopt` first opens provider,
account and whatever else hangs on a profile. What cannot be opened, or cannot change while the desk
runs, raises ConfigError and the old profile stays. Then it swaps every instance of the profile
under the instance's own lock, which a tick holds from its first step to its last, so no tick sees
two profiles. All instances that are free within PATIENCE are swapped in one transaction, or none of
them. For an instance whose tick takes longer a thread waits; the newest wish wins, and a swap that
fails then raises an alarm.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from instance_database import Database
from torra.clock import real_sleep
from torra.config import Instance, Profile
from torra.errors import ConfigError, StoreUnavailable
from torra.evidence.news_digest import NewsView
from torra.evidence.outside_readings import ClosesOf, OutsideView
from torra.evidence.scheduled_events import EventView
from torra.feeds.companions import CompanionReader
from torra.feeds.protocol import Feed
from torra.providers.registry import Provider
from torra.services import in_background
from torra.tick.spending import SpendingAccount

PATIENCE: Final = 2.0
"""Real seconds that an adoption waits for running ticks, in all; then threads wait for the rest.

Instances that are free wait as long with their next tick.
"""

SPELLED: Final = ("asset", "currencies", "news_terms", "ticker")
"""Conditions of a symbol by which headlines and events are searched."""

ALARM: Final = "PROFILE"
"""Kind of the alarm that an instance does not run with the profile that it should."""

ALARM_TRIES: Final = 60
ALARM_SECONDS: Final = 5.0
"""How often an alarm is tried to be put on record, and real seconds between two tries."""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class InstanceRuntime:
    """One instance with everything that its ticks need."""

    instance: Instance
    profile: Profile
    feed: Feed
    provider: Provider
    lock: threading.Lock
    account: SpendingAccount | None = None
    news: Callable[[datetime], NewsView] | None = None
    events: Callable[[datetime, datetime], EventView] | None = None
    outside: Callable[[datetime, ClosesOf], OutsideView] | None = None
    companions: CompanionReader | None = None


@dataclass(frozen=True, slots=True)
class ProfileReload:
    """The functions with which a desk opens another profile for a setup and announces it.

    `fit` raises ConfigError when something cannot be opened; `tell` must not fail.
    """

    fit: Callable[[InstanceRuntime, Profile], InstanceRuntime]
    tell: Callable[[InstanceRuntime], None] = lambda _: None


@dataclass(slots=True)
class InstanceRegistry:
    """The setups of a desk by the names of their instances, and how they may change.

    `setups` is replaced as a whole, under `swapping`, and never changed in place, so a reader that
    holds the mapping keeps one moment of it. `wished` are setups that wait for a running tick to
    end. `adopting` lets one adoption through at a time. `monotonic` is the desk's clock, in
    seconds.
    """

    database: Database
    setups: Mapping[str, InstanceRuntime]
    monotonic: Callable[[], float]
    refit: ProfileReload | None = None
    wished: dict[str, InstanceRuntime] = field(default_factory=dict)
    adopting: threading.Lock = field(default_factory=threading.Lock)
    swapping: Any = field(default_factory=threading.RLock)
    """Re-entrant: putting a wish in its place commits like any other swap."""

    def adopt(self, profile_name: str, profile: Profile) -> None:
        """Let every instance of a profile go on with these settings; raises ConfigError.

        After that, and after StoreUnavailable, nothing has changed. On return a swap may still wait
        for a tick to end.
        """
        refit = self.refit
        if refit is None:
            raise ConfigError("this desk takes profiles at its start only")
        with self.adopting:
            with self.swapping:
                users = [
                    item for name, item in self.setups.items()
                    if item.instance.profile == profile_name
                    # A wish that still waits must be replaced, also by the profile that runs now.
                    and (name in self.wished or item.profile.digest() != profile.digest())
                ]  # fmt: skip
            for setup in users:
                if sentences := fixed(setup.profile, profile, [setup.instance]):
                    raise ConfigError("; ".join(sentences))
                self._refuse_under_a_position(setup, profile)
            # Opening a provider may take long: before any lock that a tick waits for.
            fitted = [
                setup if setup.profile.digest() == profile.digest() else refit.fit(setup, profile)
                for setup in users
            ]
            end, free = self.monotonic() + PATIENCE, dict[str, InstanceRuntime]()
            with ExitStack() as locks:
                for setup in fitted:
                    if setup.lock.acquire(timeout=max(0.0, end - self.monotonic())):
                        locks.callback(setup.lock.release)
                        free[setup.instance.id] = setup
                self._commit(free)
            for setup in fitted:
                name = setup.instance.id
                if name not in free:
                    with self.swapping:
                        self.wished[name] = setup
                    in_background(f"adopt {name}", partial(self._swap_later, name))

    def record_profile(self, setup: InstanceRuntime) -> None:
        """Store the profile with which an instance runs from now on, and end its alarm."""
        name, profile = setup.instance.id, setup.profile
        self.database.apply_profile(name, profile.model_dump_json(), profile.digest())
        self.database.end_alarm(alarm_key(name))

    def _refuse_under_a_position(self, setup: InstanceRuntime, profile: Profile) -> None:
        """Raise ConfigError for conditions of a symbol that change while a position is open."""
        instance = setup.instance
        old, new = (item.symbols.get(instance.symbol) for item in (setup.profile, profile))
        if old != new and self.database.position(instance.id) is not None:
            raise ConfigError(
                f"symbols.{instance.symbol} cannot change while {instance.id} holds a position: "
                "let the desk take it when that is closed, or at its next start"
            )

    def _commit(self, setups: Mapping[str, InstanceRuntime]) -> None:
        """Put setups in their places, all or none; the caller holds their locks."""
        with self.swapping:
            changed = [item for name, item in setups.items() if item is not self.setups[name]]
            if changed:
                with self.database.transaction():
                    self.database.require_desk()
                    for setup in changed:  # a tick may have opened a position meanwhile
                        before = self.setups[setup.instance.id]
                        self._refuse_under_a_position(before, setup.profile)
                        self.record_profile(setup)
            for name in setups:  # an older wish, also of an instance that did not change
                self.wished.pop(name, None)
            self.setups = {**self.setups, **setups}
        for setup in changed:
            if self.refit is not None:
                self.refit.tell(setup)

    def _swap(self, name: str) -> None:
        """Put the newest wish of an instance in its place; the caller holds the instance's lock."""
        with self.swapping:
            setup = self.wished.pop(name, None)
            # A later adoption may have taken this wish back, or put it in its place.
            if setup is not None:
                self._commit({name: setup})

    def _swap_later(self, name: str) -> None:
        with self.setups[name].lock:
            try:
                self._swap(name)
            except Exception as error:
                log.exception("%s goes on with its old profile", name)
                detail = f"{name} goes on with its old profile, its tick had to end first: {error}"
            else:
                return
        # Outside the lock: the database may be away for minutes, and ticks go on meanwhile.
        detail += ". Let the desk take the file on the page of the profile."
        for _ in range(ALARM_TRIES):
            try:
                self.database.raise_alarm(alarm_key(name), ALARM, detail)
            except StoreUnavailable as error:
                log.error("the alarm of %s: %s", name, error)
                real_sleep(ALARM_SECONDS)
            else:
                return


def alarm_key(instance: str) -> str:
    """Return the key of the alarm that an instance does not run with its profile."""
    return f"profile {instance}"


def fixed(before: Profile, after: Profile, users: Sequence[Instance]) -> list[str]:
    """Return which of a profile's changes wait for the next start of the desk, in sentences."""
    settings = []
    if before.news != after.news and (before.agents.include_news or after.agents.include_news):
        settings.append("news")
    if before.agents.include_news != after.agents.include_news:
        settings.append("agents.include_news")
    if before.outside != after.outside:
        settings.append("outside.sources")
    if before.events != after.events:
        settings.append("events.calendar")
    watched = (
        before.agents.include_news or bool(before.events.calendar) or bool(before.outside.sources)
    )
    for symbol in sorted({item.symbol for item in users}):
        old, new = before.symbols.get(symbol), after.symbols.get(symbol)
        if watched and any(getattr(old, at, None) != getattr(new, at, None) for at in SPELLED):
            settings.append(f"symbols.{symbol}.{'/'.join(SPELLED)}")
    return [f"{name} takes effect at the next start of the desk" for name in settings]
