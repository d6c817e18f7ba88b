"""The notices of a desk that runs: they begin and end with its work.

Services are opened at each start, so a changed environment counts after a restart. One that cannot
be opened keeps no desk from running: notices are then listed and shown on pages, the log has the
remedy, and `torra doctor` too. Nothing here is called by a tick, and nothing raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from instance_database import Database
from torra.clock import Clock
from torra.config import NoticeSettings
from torra.errors import TorraError
from torra.notices.protocol import NoticeService
from torra.notices.sending import Sender
from torra.notices.watching import Watcher
from torra.services import Service
from torra.store import notices as notice_table

if TYPE_CHECKING:
    from torra.money.book import Setups

LOOK_SECONDS: Final = 1.0
"""Real seconds between two looks."""

log = logging.getLogger("torra")


class DeskNotices(Service):
    """What tells a person of a desk."""

    def __init__(
        self,
        database: Database,
        settings: NoticeSettings,
        setups: Callable[[], Setups],
        clock: Callable[[], Clock],
        open_services: Callable[[], Sequence[NoticeService]],
        paper_currency: str = "",
    ) -> None:
        """Tell of a desk; `setups` and `clock` are those of now."""
        super().__init__("notices", LOOK_SECONDS, self._turn, at_once=True)
        self._database = database
        self._settings = settings
        self._clock = clock
        self._open = open_services
        self._begun = False
        self._services: Sequence[NoticeService] | None = None
        self._senders: list[Sender] = []
        self.watcher = Watcher(
            database, settings, setups, clock,
            lambda: [sender.service for sender in self._senders], paper_currency,
        )  # fmt: skip

    def shut(self) -> None:
        """Let every service go; a call that is under way is left to its limit."""
        for sender in self._senders:
            sender.close(0.0)

    def _turn(self) -> None:
        if self._begun:
            self.watcher.look()
        else:
            # Here and not in `open`: a service may take long to open, and a start waits for that.
            self._begin()

    def _begin(self) -> None:
        """Open the services and let each send on a thread of its own."""
        services = self._services = self._opened() if self._services is None else self._services
        senders = [
            Sender(self._database, one, self._settings, lambda: self._clock().real_now())
            for one in services
        ]
        notice_table.keep_services(self._database, [sender.service for sender in senders])
        self._senders, self._begun = senders, True
        for sender in senders:
            if self.ending:
                return
            sender.start()

    def _opened(self) -> Sequence[NoticeService]:
        try:
            return self._open()
        except TorraError as error:
            log.error("notices are not sent: %s", error)
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            log.error("notices are not sent: %s", type(error).__name__)
        return ()
