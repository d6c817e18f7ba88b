"""Takes notices out of the outbox and hands them to a service: one thread for each service.

A service that hangs holds its own thread and nothing else: each call has a time limit
(torra.time_limit). What it does not take is tried again after growing pauses, an alarm for ever,
anything else for an hour; then one line in the log says so. In the quiet hours only alarms go out.
A notice is marked before it is handed over, so a desk that dies meanwhile tells no trade twice; an
alarm is told again, because twice is better than never.

Only the desk that has its home's lock sends. The log and the database hear a service's name and
words of ours, never an address, and of an unexpected exception only its type.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from instance_database import Database
from torra.clock import parse
from torra.config import NoticeSettings
from torra.notices.protocol import Notice, NoticeRefused, NoticeService
from torra.services import Service
from torra.store import notices as notice_table
from torra.store.notices import PATIENCE_SECONDS, SENDING, WAITING
from torra.time_limit import TimeLimit

LIMIT_SECONDS: Final = 25.0
"""Real seconds that any service has for one notice: more than Apprise's own limit."""

FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 900.0
"""Real seconds before a notice is tried again, doubled at each try up to the longest."""

LONGEST_REST: Final = 60.0
"""Real seconds for which a service that failed is left alone at most, whatever waits.

A rest begins at half the pause of a notice: what was refused does not hold up what comes next.
"""

GIVE_UP: Final = timedelta(hours=1)
"""Age at which a notice that is no alarm is not sent any more."""

IDLE_SECONDS: Final = 1.0

TEXTS: Final = ("key", "kind", "level", "title", "text", "instance")
"""The texts of a notice: fields, and columns of its row."""

log = logging.getLogger("torra")


class Sender(Service):
    """What takes notices to one service."""

    def __init__(
        self,
        database: Database,
        service: NoticeService,
        settings: NoticeSettings,
        now: Callable[[], datetime],
        *,
        seconds: float = LIMIT_SECONDS,
        idle: float = IDLE_SECONDS,
    ) -> None:
        """Send over `service`; `now` is real time."""
        super().__init__(f"notices {service.name}", idle, self._turn, private=True)
        self.service = service.name
        self._database = database
        self._service = service
        self._settings = settings
        self._now = now
        self._limit = TimeLimit(self.service, seconds)
        self._failures = 0
        self._rest_until: datetime | None = None
        self._owed: Callable[[], None] | None = None

    def _turn(self) -> None:
        while not self.ending and self.send_due():
            pass

    def send_due(self) -> bool:
        """Hand over one notice that is due; return whether another may be tried at once."""
        if self._owed is not None:
            self._owe(self._owed)
        now = self._now()
        if (self._rest_until is not None and now < self._rest_until) or not self._database.fence():
            return False
        row = notice_table.due_notice(self._database, self.service, now)
        if row is None:
            return False
        if row["level"] != "alarm":
            if now - parse(row["at"]) > GIVE_UP:
                self._mark(row, "failed", row["tries"], "not taken within an hour")
                which = f"the {row['kind']} of {row['at']}"
                log.warning("notices: %s did not take %s within an hour", self.service, which)
                return True
            if self._settings.quiet_at(now):
                self._mark(row, "dropped", row["tries"], "quiet hours")
                return True
        return self._hand_over(row)

    def _hand_over(self, row: Mapping[str, Any]) -> bool:
        tries, why = int(row["tries"]) + 1, ""
        self._mark(row, SENDING, tries)
        notice = Notice(
            **{name: row[name] for name in TEXTS},
            desk_time=parse(row["desk_time"]),
            at=parse(row["at"]),
        )
        try:
            self._limit.run(lambda: self._service.send(notice))
        except NoticeRefused as error:
            why = str(error)
        except TimeoutError:
            why = "no answer in time"
        except BaseException as error:  # noqa: BLE001 - a service may raise anything
            why = f"it failed ({type(error).__name__})"
        else:
            self._failures, self._rest_until = 0, None
            self._owe(partial(self._mark, row, "sent", tries, noted=True))
            return True
        self._failures += 1
        again = self._now()
        rest = min(LONGEST_REST, pause(self._failures, LONGEST_PAUSE) / 2)
        self._rest_until = again + timedelta(seconds=rest)
        later = again + timedelta(seconds=pause(tries, LONGEST_PAUSE))
        self._owe(partial(self._mark, row, WAITING, tries, why, later, noted=True))
        return False

    def _owe(self, entry: Callable[[], None]) -> None:
        """Book what became of a notice; while the database is away it is owed, not lost."""
        self._owed = entry
        entry()
        self._owed = None

    def _mark(
        self,
        row: Mapping[str, Any],
        state: str,
        tries: int,
        detail: str = "",
        next_try: datetime | None = None,
        *,
        noted: bool = False,
    ) -> None:
        """Store the state of a notice; `noted`: it is also how the service does."""
        with self._database.transaction(PATIENCE_SECONDS):
            self._database.require_desk()  # it may have been lost while a service hung
            notice_table.mark_notice(
                self._database, row["id"], self.service, state,
                tries=tries, detail=detail, next_try=next_try,
            )  # fmt: skip
            if noted:
                notice_table.note_service(self._database, self.service, detail)


def pause(tries: int, longest: float) -> float:
    """Return the seconds to wait after so many tries."""
    return float(min(longest, FIRST_PAUSE * 2.0 ** min(tries - 1, 20)))
