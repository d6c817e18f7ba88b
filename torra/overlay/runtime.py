"""What an overlay has open in one process: the database, the way to the models, calendars.

Opened by the first question that needs it, on that question's thread. What cannot be opened is
tried again by a later question, not by each: a vendor's key that is missing costs one look every
few seconds. The database of a desk that runs is never brought to another schema from here.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents.contracts import Completion, ModelUnavailable, Request, Submit
from torra.clock import System
from torra.config import OutsideSettings, Profile, has_desk
from torra.desk_lock import is_locked
from torra.errors import ConfigError, StoreUnavailable
from torra.evidence.scheduled_events import EventView
from torra.home import DATABASE
from torra.overlay.hosted_tick import ScorerQuestion
from torra.store import migrations
from torra.store import ticks as claim_table
from torra.store.connection import connect_reader

if TYPE_CHECKING:
    from instance_database import Database
    from torra.desk.models.access import Models
    from torra.desk.outlook import ContextFeeds
    from torra.desk.promotion import Promotions
    from torra.providers.registry import Provider
    from torra.tick.spending import SpendingAccount

TRY_AGAIN: Final = 5.0
"""Seconds before a provider that could not be opened is tried again."""

DEMO: Final = "is the home of the demo, whose clock runs faster than real time: name another folder"

_ABANDONED: Final[list[Any]] = []
"""What a parent process had open: to close a connection in a child would end the parent's locks."""


class OverlayRuntime:
    """The open things of one overlay in one process."""

    def __init__(self, home: Path, profile: Profile, profile_name: str) -> None:
        self._path = home / DATABASE
        self._profile = profile
        self.profile_name = profile_name
        self._lock = threading.Lock()
        self._open: tuple[ContextFeeds, Models, Database] | None = None
        self._provider: Provider | None = None
        self._promotions: Promotions | None = None
        self._refused: tuple[float, str] | None = None
        self.account: SpendingAccount | None = None

    @property
    def is_open(self) -> bool:
        """Whether the database is open."""
        return self._open is not None

    @property
    def _parts(self) -> tuple[ContextFeeds, Models, Database]:
        if self._open is None:
            raise StoreUnavailable(f"{self._path} is not open")
        return self._open

    @property
    def database(self) -> Database:
        """The database of the home."""
        return self._parts[2]

    def at(self, deadline: float) -> OverlayRuntime:
        """Return this, with everything open; raises ConfigError and StoreUnavailable.

        Waits for another thread that opens it until the deadline.
        """
        if self.is_open:
            return self
        if not self._lock.acquire(timeout=max(0.0, deadline - System().monotonic())):
            raise StoreUnavailable(f"{self._path} cannot be opened in time")
        try:
            if not self.is_open:
                self._begin(self._path.parent)
        finally:
            self._lock.release()
        return self

    def _begin(self, home: Path) -> None:
        # Here: a host that only imports the overlay needs none of it.
        from instance_database import open_home  # noqa: PLC0415
        from torra.desk.models.access import open_models  # noqa: PLC0415
        from torra.desk.outlook import ContextFeeds  # noqa: PLC0415
        from torra.desk.promotion import Promotions  # noqa: PLC0415
        from torra.desk.wiring import leave_sign  # noqa: PLC0415

        _refuse_to_migrate(self._path)
        database = open_home(home)
        try:
            if not has_desk(home) and claim_table.desk_run(database) is not None:
                raise ConfigError(f"{home} {DEMO}")  # noqa: TRY301 - it is closed below
            leave_sign(home)
            models = open_models(home, database)
            models.apply_blocks()
            self.account = models.account(self._profile.agents, self.profile_name)
            # Headlines are the host's; of the desk's outlook only the calendar is read.
            agents = self._profile.agents.model_copy(update={"include_news": False})
            quiet = self._profile.model_copy(
                update={"agents": agents, "outside": OutsideSettings(sources=())}
            )
            outlook = ContextFeeds(home, database, dict(os.environ), [quiet], now=System().real_now)
        except BaseException:
            database.close()
            raise
        self._promotions = Promotions(database, lambda: ())
        self._open = outlook, models, database

    def answering(self) -> tuple[str, Submit, str]:
        """Return who answers the agents, how it is asked, and "" or why nobody can be."""
        try:
            provider = self.provider()
        except ConfigError as error:
            return self._profile.agents.provider, refuse, str(error)
        return provider.name, provider.submit, ""

    def provider(self) -> Provider:
        """Return who answers the agents; raises ConfigError naming the remedy."""
        with self._lock:
            if self._provider is not None:
                return self._provider
            now = System().monotonic()
            if self._refused is not None and now - self._refused[0] < TRY_AGAIN:
                raise ConfigError(self._refused[1])
            try:
                self._provider = self._parts[1].provider(self._profile.agents)
            except ConfigError as error:
                self._refused = (now, str(error))
                raise
            return self._provider

    def promoted(self) -> bool:
        """Return whether agents with influence to earn have earned it on this home's desk."""
        promotions = self._promotions
        return promotions is not None and promotions.promoted(self.profile_name, self._profile)

    def events(self, question: ScorerQuestion) -> EventView | None:
        """Return the scheduled events around the bar; None without a calendar.

        A calendar that cannot be read, or a symbol whose currencies are not known, is ConfigError.
        """
        if not question.profile.events.calendar:
            return None
        outlook = self._parts[0]
        around = outlook.events(question.instance, question.profile)
        outlook.refresh()
        return around and around(question.key.close_time, question.request.moment)

    def close(self) -> None:
        """Close everything."""
        with self._lock:
            parts = self._open or ()
            self._open = self._provider = self._promotions = self.account = None
            for part in parts:
                part.close()

    def abandon(self) -> None:
        """Leave what another process had opened as it is, for as long as this one lives."""
        _ABANDONED.append((self._open, self._provider))


def refuse(_request: Request) -> Future[Completion]:
    """Raise ModelUnavailable: without a provider no request leaves the process."""
    raise ModelUnavailable("no_provider", billed=False)


def _refuse_to_migrate(path: Path) -> None:
    """Raise ConfigError when a desk works on a database of an older schema."""
    if not path.exists() or not path.stat().st_size:
        return
    try:
        with closing(connect_reader(path)) as db:
            older = 0 < migrations.schema(db) < migrations.NEWEST
    except (sqlite3.Error, ConfigError):
        return  # what is wrong with it is told by opening it
    if older and is_locked(path.parent):
        raise ConfigError(
            f"a desk of an older version works on {path}: restart it with this version first"
        )
