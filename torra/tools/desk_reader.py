"""The desk as a tool may see it: files and database opened for reading only, at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from instance_database import Database, open_reader
from torra.config import DeskSettings, Instance, Profile, SymbolSpec
from torra.desk.looking_desk import RunningDesk, look_at
from torra.errors import ConfigError
from torra.home import DATABASE
from torra.money.book import MoneyBook
from torra.money.open_positions import spec_of
from torra.store import bars as bar_table
from torra.store import hosted as hosted_table
from torra.tick.tick_record import Damaged, TickRecord, load
from torra.verdict.risk_engine import Position


@dataclass(frozen=True)
class DeskReader:
    """A desk at `as_of`, UTC: nothing later is visible to what reads through it.

    `profiles` has the profile that was applied last, by instance. `now` is real time: the ledger of
    models is kept by it. `book` has added up the trades of the database so far, for who reads again
    and again; None: each look adds them up anew.
    """

    home: Path
    database: Database
    settings: DeskSettings
    profiles: Mapping[str, Profile]
    as_of: datetime
    now: datetime
    book: MoneyBook | None = None

    @classmethod
    def of_desk(
        cls,
        home: Path,
        settings: DeskSettings,
        desk: RunningDesk,
        database: Database,
        book: MoneyBook | None = None,
    ) -> DeskReader:
        """Return a desk as it stands now; `database` is one that cannot write."""
        profiles = {name: setup.profile for name, setup in desk.setups.items()}
        as_of, now = desk.clock.now(), desk.clock.real_now()
        as_of, now = (moment.replace(microsecond=0) for moment in (as_of, now))
        return cls(home, database, settings, profiles, as_of, now, book)

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances of the desk, without the hosted ones."""
        return self.settings.instances

    @property
    def setups(self) -> list[tuple[Instance, Profile]]:
        """The instances with the profiles that they run with."""
        return [(item, self.profiles[item.id]) for item in self.instances]

    def instance(self, name: str) -> Instance:
        """Return an instance by its name or symbol, of the desk or hosted; raises ConfigError."""
        every = [*self.instances, *hosted_table.hosted_instances(self.database)]
        for names in ({one.id: one for one in every}, {one.symbol: one for one in every[::-1]}):
            if name in names:
                return names[name]
        known = ", ".join(item.id for item in every)
        raise ConfigError(f"no symbol {name[:40]!r} at the desk; known symbols: {known or 'none'}")

    def tick(self, torra_key: str) -> TickRecord | Damaged | None:
        """Return the record of a stored tick; None without one."""
        stored = self.database.tick_without_calls(torra_key)
        return load(torra_key, stored) if stored else None

    def spec(self, position: Position) -> SymbolSpec | None:
        """Return the trading terms of a position's symbol; None where they are not known."""
        profile = self.profiles.get(position.instance)
        return spec_of(profile, position.symbol) if profile else None

    def bid(self, position: Position) -> float | None:
        """Return the newest close of a position's instance; None without a bar."""
        names = self.instance(position.instance).timeframes
        return bar_table.newest_close(self.database, position.instance, names, self.as_of)


@contextmanager
def reading(home: Path) -> Iterator[tuple[Callable[[], DeskReader], Database]]:
    """Open a home, whether or not its desk runs; raises ConfigError.

    The first value returns its desk as it stands then, read on a second connection that cannot
    write. The second one is the desk's own database, for the audit alone.
    """
    desk = look_at(home)
    with closing(desk.database), closing(open_reader(home / DATABASE)) as evidence:
        book = MoneyBook(evidence, desk.settings.paper_currency)
        yield partial(DeskReader.of_desk, home, desk.settings, desk, evidence, book), desk.database
