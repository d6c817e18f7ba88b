"""Adoption of profiles while the desk runs, between two ticks.

`adopt` first opens provider, account and whatever else hangs on a profile.
What cannot be opened, or cannot change while the desk runs, raises ConfigError and the old profile
stays. Then it swaps every instance of the profile under the instance's own lock, which a tick holds
from its first step to its last, so no tick sees two profiles. All instances that are free within
PATIENCE are swapped in one transaction, or none of them. For an instance whose tick takes longer a
thread waits; the newest wish wins, and a swap that fails then raises an alarm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from instance_database import Database
from torra.clock import real_sleep
from torra.config import Instance, Profile
from torra.desk.roster import InstanceRegistry, InstanceRuntime, ProfileReload
from torra.errors import ConfigError, StoreUnavailable
from torra.services import in_background

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


def adopt(roster: InstanceRegistry, profile_name: str, profile: Profile) -> None:
    """Let every instance of a profile go on with these settings; raises ConfigError.

    After that, and after StoreUnavailable, nothing has changed. On return a swap may still wait for
    a tick to end.
    """
    refit = roster.refit
    if refit is None:
        raise ConfigError("this desk takes profiles at its start only")
    with roster.adopting:
        with roster.swapping:
            users = [
                item for name, item in roster.setups.items()
                if item.instance.profile == profile_name
                # A wish that still waits must be replaced, also by the profile that runs now.
                and (name in roster.wished or item.profile.digest() != profile.digest())
            ]  # fmt: skip
        for setup in users:
            _refuse_what_is_fixed(setup, profile)
            _refuse_under_a_position(roster, setup, profile)
        # Opening a provider may take long: before any lock that a tick waits for.
        fitted = [_fitted(refit, setup, profile) for setup in users]
        with _locked(roster, fitted) as free:
            _commit(roster, refit, free)
        held = {setup.instance.id for setup in free}
        for setup in fitted:
            if setup.instance.id not in held:
                _wait_for(roster, refit, setup)


def fixed(before: Profile, after: Profile, users: Sequence[Instance]) -> list[str]:
    """Return which of a profile's changes wait for the next start of the desk, in sentences."""
    found = []
    if before.news != after.news and (before.agents.include_news or after.agents.include_news):
        found.append("news")
    if before.agents.include_news != after.agents.include_news:
        found.append("agents.include_news")
    if before.outside != after.outside:
        found.append("outside.sources")
    if before.events != after.events:
        found.append("events.calendar")
    watched = (
        before.agents.include_news or bool(before.events.calendar) or bool(before.outside.sources)
    )
    for symbol in sorted({item.symbol for item in users}):
        old, new = before.symbols.get(symbol), after.symbols.get(symbol)
        if watched and any(getattr(old, at, None) != getattr(new, at, None) for at in SPELLED):
            found.append(f"symbols.{symbol}.{'/'.join(SPELLED)}")
    return [f"{name} takes effect at the next start of the desk" for name in found]


def _refuse_what_is_fixed(setup: InstanceRuntime, profile: Profile) -> None:
    if found := fixed(setup.profile, profile, [setup.instance]):
        raise ConfigError("; ".join(found))


def _refuse_under_a_position(
    roster: InstanceRegistry, setup: InstanceRuntime, profile: Profile
) -> None:
    """Raise ConfigError for conditions of a symbol that change while a position is open."""
    instance = setup.instance
    old, new = (item.symbols.get(instance.symbol) for item in (setup.profile, profile))
    if old != new and roster.database.position(instance.id) is not None:
        raise ConfigError(
            f"symbols.{instance.symbol} cannot change while {instance.id} holds a position: let "
            "the desk take it when that is closed, or at its next start"
        )


def _fitted(refit: ProfileReload, setup: InstanceRuntime, profile: Profile) -> InstanceRuntime:
    """Return a setup with a profile; the very one where it has it already."""
    same = setup.profile.digest() == profile.digest()
    return setup if same else refit.fit(setup, profile)


@contextmanager
def _locked(
    roster: InstanceRegistry, setups: Sequence[InstanceRuntime]
) -> Iterator[list[InstanceRuntime]]:
    """Hold the locks of those setups that are free within PATIENCE; yields them."""
    end = roster.monotonic() + PATIENCE
    free: list[InstanceRuntime] = []
    try:
        for setup in setups:
            if setup.lock.acquire(timeout=max(0.0, end - roster.monotonic())):
                free.append(setup)  # noqa: PERF401 - what was locked is let go, whatever comes
        yield free
    finally:
        for setup in free:
            setup.lock.release()


def _commit(
    roster: InstanceRegistry, refit: ProfileReload, setups: Sequence[InstanceRuntime]
) -> None:
    """Put setups in their places, all or none; the caller holds their locks."""
    # Instances that did not change count too: an older wish of theirs must go.
    names = [setup.instance.id for setup in setups]
    with roster.swapping:
        changed = [item for item in setups if item is not roster.setups[item.instance.id]]
        if changed:
            with roster.database.transaction():
                roster.database.require_desk()
                for setup in changed:  # a tick may have opened a position meanwhile
                    before = roster.setups[setup.instance.id]
                    _refuse_under_a_position(roster, before, setup.profile)
                    put_on_record(roster.database, setup)
        for name in names:  # an older wish
            roster.wished.pop(name, None)
        roster.setups = {**roster.setups, **dict(zip(names, setups, strict=True))}
    for setup in changed:
        refit.tell(setup)


def put_on_record(database: Database, setup: InstanceRuntime) -> None:
    """Store the profile with which an instance runs from now on, and end its alarm."""
    name, profile = setup.instance.id, setup.profile
    database.apply_profile(name, profile.model_dump_json(), profile.digest())
    database.end_alarm(alarm_key(name))


def alarm_key(instance: str) -> str:
    """Return the key of the alarm that an instance does not run with its profile."""
    return f"profile {instance}"


def _wait_for(roster: InstanceRegistry, refit: ProfileReload, setup: InstanceRuntime) -> None:
    """Start a thread that swaps a setup in when the running tick has ended."""
    name = setup.instance.id
    with roster.swapping:
        roster.wished[name] = setup
    in_background(f"adopt {name}", partial(_later, roster, refit, name))


def _swap(roster: InstanceRegistry, refit: ProfileReload, name: str) -> None:
    """Put the newest wish of an instance in its place; the caller holds the instance's lock."""
    with roster.swapping:
        setup = roster.wished.pop(name, None)
        # A later adoption may have taken this wish back, or put it in its place.
        if setup is not None:
            _commit(roster, refit, [setup])


def _later(roster: InstanceRegistry, refit: ProfileReload, name: str) -> None:
    with roster.setups[name].lock:
        try:
            _swap(roster, refit, name)
        except Exception as error:
            log.exception("%s goes on with its old profile", name)
            told = f"{name} goes on with its old profile, its tick had to end first: {error}"
        else:
            return
    # Outside the lock: the database may be away for minutes, and ticks go on meanwhile.
    _raise_alarm(roster, name, f"{told}. Let the desk take the file on the page of the profile.")


def _raise_alarm(roster: InstanceRegistry, name: str, told: str) -> None:
    """Put an alarm on record, as soon as the database can take it."""
    for _ in range(ALARM_TRIES):
        try:
            roster.database.raise_alarm(alarm_key(name), ALARM, told)
        except StoreUnavailable as error:
            log.error("the alarm of %s: %s", name, error)
            real_sleep(ALARM_SECONDS)
        else:
            return
