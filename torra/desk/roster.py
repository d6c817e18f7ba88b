"""The instances on which a desk works, each with everything that its ticks need.

`InstanceSetup` is one instance with its feed, provider and profile. `Roster` is all of them, with
what an adoption of other profiles may change and the locks that it holds meanwhile. The desk owns
its roster; torra.desk.adoption changes it. Nothing here opens, runs or decides anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from instance_database import Database
from torra.config import Instance, Profile
from torra.evidence.news_digest import NewsView
from torra.evidence.outside_readings import ClosesOf, OutsideView
from torra.evidence.scheduled_events import EventView
from torra.feeds.companions import CompanionReader
from torra.feeds.protocol import Feed
from torra.providers.registry import Provider
from torra.tick.spending import SpendingAccount


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
