"""The desk as a tool may see it: files and database opened for reading only, at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from instance_database import Database, open_reader
from torra.clock import Clock
from torra.config import DeskSettings, Instance, Profile
from torra.desk.looking_desk import look_at
from torra.errors import ConfigError
from torra.home import DATABASE
from torra.store import hosted as hosted_table
from torra.tick.tick_record import Damaged, TickRecord, load


class DeskSetup(Protocol):
    """An instance with the profile that runs it."""

    @property
    def instance(self) -> Instance: ...  # noqa: D102
    @property
    def profile(self) -> Profile: ...  # noqa: D102


class DeskSource(Protocol):
    """A desk that runs, or one that only looks (torra.desk.looking_desk)."""

    @property
    def clock(self) -> Clock: ...  # noqa: D102
    @property
    def setups(self) -> Mapping[str, DeskSetup]: ...  # noqa: D102


@dataclass(frozen=True)
class DeskReader:
    """A desk at `as_of`, UTC: nothing later is visible to what reads through it.

    `profiles` has the profile that was applied last, by instance. `now` is real time: the ledger of
    models is kept by it.
    """

    home: Path
    database: Database
    settings: DeskSettings
    profiles: Mapping[str, Profile]
    as_of: datetime
    now: datetime

    @classmethod
    def of_desk(
        cls, home: Path, settings: DeskSettings, desk: DeskSource, database: Database
    ) -> DeskReader:
        """Return a desk as it stands now; `database` is one that cannot write."""
        profiles = {name: setup.profile for name, setup in desk.setups.items()}
        as_of, now = desk.clock.now(), desk.clock.real_now()
        moments = (moment.replace(microsecond=0) for moment in (as_of, now))
        return cls(home, database, settings, profiles, *moments)

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances of the desk, without the hosted ones."""
        return self.settings.instances

    def instance(self, name: str) -> Instance:
        """Return an instance by its name or symbol, of the desk or hosted; raises ConfigError."""
        every = [*self.instances, *hosted_table.hosted_instances(self.database)]
        for item in every:
            if name in (item.id, item.symbol):
                return item
        known = ", ".join(item.id for item in every)
        raise ConfigError(f"known symbols: {known or 'none'}")

    def tick(self, torra_key: str) -> TickRecord | None:
        """Return the record of a stored tick; None without one, or where it cannot be read."""
        stored = self.database.tick_without_calls(torra_key)
        record = None if stored is None else load(torra_key, stored)
        return None if isinstance(record, Damaged) else record


@contextmanager
def reading(home: Path, settings: DeskSettings, desk: DeskSource) -> Iterator[DeskReader]:
    """Read a desk on a second connection, which cannot write and is closed at the end."""
    with closing(open_reader(home / DATABASE)) as database:
        yield DeskReader.of_desk(home, settings, desk, database)


@contextmanager
def reading_home(home: Path) -> Iterator[DeskReader]:
    """Read the desk of a home, whether or not one runs there; raises ConfigError."""
    settings, database, desk = look_at(home)
    with closing(database), reading(home, settings, desk) as reader:
        yield reader
