"""The resources behind the pages besides the view: the desk's home, its database and its settings.

Pages that show more than the view returns (signals, cost, profiles, health), and commands that
change something, take them from here. `desk` is the desk that runs in this process, or in a host
without one a desk that only looks (torra.desk.looking_desk). `adopt` hands a changed
profile to the running desk. It is None if no desk runs here; then the desk's own process sees the
change at its next start. `kill_switch` is the one that a desk in this process asks before anything
goes out, so that a halt from a page holds in its memory too. A dashboard over a scripted view has
no backing, and its pages say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torra.config import DeskSettings, Instance, Profile
from torra.dashboard.view.kept import LruCache
from torra.dashboard.view.stream_slots import SseLimit
from torra.money.book import Money, MoneyBook, known_currencies
from torra.money.open_positions import LinePoint
from torra.store.trade import signals as signal_table

if TYPE_CHECKING:
    from instance_database import Database
    from torra.desk.event_stream import EventStream
    from torra.desk.looking_desk import LookingDesk, RunningDesk
    from torra.trading.kill_switch import KillSwitch


LINES_KEPT: Final = 8
"""Lines of money that are kept: one for each period, of now and a minute ago."""


@dataclass(frozen=True)
class PageContext:
    """A desk's files and database, as the pages of one app use them."""

    home: Path
    database: Database
    settings: DeskSettings
    desk: RunningDesk
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    adopt: Callable[[str, Profile], None] | None = None
    """Give the running desk a profile by its name; raises ConfigError when it cannot take it."""
    events: EventStream | None = None
    """The events of the desk that runs here; None without one: then readers poll the database."""
    slots: SseLimit = field(default_factory=SseLimit)
    """The limit on open streams."""
    kill_switch: KillSwitch | None = None
    """The kill switch of the desk that runs here; None without one."""

    def now(self) -> datetime:
        """Return the desk's time."""
        return self.desk.clock.now()

    @property
    def setups(self) -> list[tuple[Instance, Profile]]:
        """The desk's instances, each with the profile that it runs with."""
        return [(one.instance, one.profile) for one in self.desk.setups.values()]

    def money(self, *, tags: bool = True) -> Money:
        """Return what the desk's trades came to so far; by a person's tags only with `tags`."""
        return self.book.money(self.setups, self.now(), tags=tags)

    def currency(self, route: str) -> str:
        """Return the currency of an account by its bridge and channel, "" where it is not known."""
        return known_currencies(self.database, self.settings.paper_currency).get(route, "")

    def currency_of(self, instances: Iterable[Instance]) -> str:
        """Return the currency of all accounts of instances; "" where they differ or are unknown."""
        currencies = {self.currency(one.route) for one in instances}
        return currencies.pop() if len(currencies) == 1 else ""

    def money_lines(self, period: str) -> dict[str, tuple[LinePoint, ...]]:
        """Return the line of each account's results over a period (open_positions.PERIODS).

        At most a minute old: a large desk reads thousands of prices for one.
        """
        now = self.now()
        key = (
            period,
            signal_table.newest_step(self.database),
            now.replace(second=0, microsecond=0),
        )
        return self._lines.get(key, lambda: self.book.lines(self.setups, now, period))

    @cached_property
    def _lines(self) -> LruCache[dict[str, tuple[LinePoint, ...]]]:
        return LruCache(LINES_KEPT)

    @cached_property
    def book(self) -> MoneyBook:
        """The closed trades, added up."""
        return MoneyBook(self.database, self.settings.paper_currency)


def context_of(desk: LookingDesk) -> PageContext:
    """Return a desk that only looks as pages and commands read it."""
    return PageContext(desk.home, desk.database, desk.settings, desk)
