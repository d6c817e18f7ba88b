"""How a running desk goes on with another profile: between two ticks, all of it or none of it.

Provider, account and whatever else hangs on a profile are opened first; what cannot be opened, or
cannot change while the desk runs, raises ConfigError and the old profile stays. Then every instance
of the profile is swapped under its own lock, which a tick holds from its first step to its last, so
that no tick sees two profiles; its record carries the digest of the one that it ran with. Where a
tick takes longer than PATIENCE a thread waits for its end. The newest wish wins.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from torra.config import Instance, Profile
from torra.errors import ConfigError, StoreUnavailable

if TYPE_CHECKING:
    from torra.schedule import Desk, Station
    from torra.wiring import Models

PATIENCE: Final = 2.0
"""Real seconds that an adoption waits for running ticks before it leaves them to a thread."""

SPELLED: Final = ("asset", "currencies", "news_terms", "ticker")
"""Of a symbol's conditions, what headlines and events are looked for by."""

log = logging.getLogger("torra")
_swapping = threading.Lock()


@dataclass(frozen=True, slots=True)
class Refit:
    """What a desk opens for a station with another profile, and whom it tells afterwards.

    `fit` raises ConfigError when something cannot be opened; `tell` must not fail.
    """

    fit: Callable[[Station, Profile], Station]
    tell: Callable[[Station], None] = lambda _: None


def with_models(models: Models) -> Callable[[Station, Profile], Station]:
    """Return what opens the provider and the account of a changed profile with a desk's models."""

    def fit(station: Station, profile: Profile) -> Station:
        account = models.account(profile.agents, station.instance.profile)
        if account and station.account:  # answers that came late are still to be booked
            account = replace(account, late=station.account.late)
        provider = models.provider(profile.agents)
        return replace(station, profile=profile, provider=provider, account=account)

    return fit


def adopt(desk: Desk, profile_name: str, profile: Profile) -> None:
    """Let every instance of a profile go on with these settings; raises ConfigError.

    After an error nothing has changed. On return a swap may still wait for a tick to end.
    """
    refit = desk.refit
    if refit is None:
        raise ConfigError("this desk takes profiles at its start only")
    stations = [
        item for item in desk.stations.values()
        if item.instance.profile == profile_name and item.profile.digest() != profile.digest()
    ]  # fmt: skip
    for station in stations:
        _refuse_what_is_fixed(desk, station, profile)
    for fitted in [refit.fit(station, profile) for station in stations]:
        name = fitted.instance.id
        desk.wished[name] = fitted
        if fitted.lock.acquire(timeout=PATIENCE):
            try:
                _swap(desk, refit, name)
            finally:
                fitted.lock.release()
        else:
            threading.Thread(
                target=_later, args=(desk, refit, name), name=f"adopt {name}", daemon=True
            ).start()


def fixed(before: Profile, after: Profile, users: Sequence[Instance]) -> list[str]:
    """Return which of a profile's changes wait for the next start of the desk, in sentences."""
    found = []
    if before.news != after.news and (before.agents.include_news or after.agents.include_news):
        found.append("news")
    if before.agents.include_news != after.agents.include_news:
        found.append("agents.include_news")
    if before.events != after.events:
        found.append("events.calendar")
    watched = before.agents.include_news or bool(before.events.calendar)
    for symbol in sorted({item.symbol for item in users}):
        old, new = before.symbols.get(symbol), after.symbols.get(symbol)
        if watched and any(getattr(old, at, None) != getattr(new, at, None) for at in SPELLED):
            found.append(f"symbols.{symbol}.{'/'.join(SPELLED)}")
    return [f"{name} takes effect at the next start of the desk" for name in found]


def _refuse_what_is_fixed(desk: Desk, station: Station, profile: Profile) -> None:
    """Raise ConfigError for what cannot change while the desk runs, or while a position is open."""
    instance = station.instance
    if found := fixed(station.profile, profile, [instance]):
        raise ConfigError("; ".join(found))
    old, new = (item.symbols.get(instance.symbol) for item in (station.profile, profile))
    if old != new and desk.database.position(instance.id) is not None:
        raise ConfigError(
            f"symbols.{instance.symbol} cannot change while {instance.id} holds a position: let "
            "the desk take it when that is closed, or at its next start"
        )


def _swap(desk: Desk, refit: Refit, name: str) -> None:
    """Put the newest wish of an instance in its place; the caller holds the instance's lock."""
    station = desk.wished.pop(name, None)
    if station is None:
        return
    profile = station.profile
    if desk.active:
        desk.database.apply_profile(name, profile.model_dump_json(), profile.digest())
    with _swapping:
        desk.stations = {**desk.stations, name: station}
    refit.tell(station)


def _later(desk: Desk, refit: Refit, name: str) -> None:
    with desk.stations[name].lock:
        try:
            _swap(desk, refit, name)
        except StoreUnavailable as error:
            log.error("%s goes on with its old profile: %s", name, error)
