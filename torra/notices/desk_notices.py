"""The notices of a desk that runs: they begin and end with its work.

Services are opened at each start, so a changed environment counts after a restart. One that cannot
be opened keeps no desk from running: notices are then listed and shown on pages, the log has the
remedy, and `torra doctor` too. Nothing here is called by a tick, and nothing raises.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from instance_database import Database
from torra.clock import Clock
from torra.config import NoticeSettings
from torra.errors import StoreUnavailable, TorraError
from torra.notices.protocol import NoticeService
from torra.notices.sending import Sender
from torra.notices.watching import Watcher
from torra.store import notices as notice_table

if TYPE_CHECKING:
    from torra.money.book import Setups

LOOK_SECONDS: Final = 1.0
"""Real seconds between two looks."""

REST_SECONDS: Final = 2.0
"""Real seconds that `rest` waits for the look that is under way."""

log = logging.getLogger("torra")


class DeskNotices:
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
        self._database = database
        self._settings = settings
        self._clock = clock
        self._open = open_services
        self._senders: list[Sender] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = False
        self.watcher = Watcher(database, settings, setups, clock, self._names, paper_currency)

    def start(self) -> None:
        """Look and send from now on, in threads of their own."""
        self.rest()
        self._ended = threading.Event()
        self._complained = False
        self._thread = threading.Thread(
            target=self._walk, args=(self._ended,), name="notices", daemon=True
        )
        self._thread.start()

    def rest(self) -> None:
        """Stop: this desk closes."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=REST_SECONDS)
        senders, self._senders = self._senders, []
        for sender in senders:
            sender.end()

    def close(self) -> None:
        """End as `rest` does."""
        self.rest()

    def _names(self) -> list[str]:
        return [sender.name for sender in self._senders]

    def _walk(self, ended: threading.Event) -> None:
        if not self._begin(ended):
            return
        while not ended.wait(LOOK_SECONDS):
            self._try(self.watcher.look)

    def _begin(self, ended: threading.Event) -> bool:
        """Open the services, here and not where a start waits for it; False when ended."""
        services: Sequence[NoticeService] = ()
        try:
            services = self._open()
        except TorraError as error:
            log.error("notices are not sent: %s", error)
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            log.error("notices are not sent: %s", type(error).__name__)
        senders = [Sender(self._database, one, self._settings, self._real_now) for one in services]
        names = [sender.name for sender in senders]
        while not self._try(lambda: notice_table.keep_services(self._database, names)):
            if ended.wait(LOOK_SECONDS):
                return False
        if ended.is_set():
            return False
        self._senders = senders
        for sender in senders:
            sender.start()
        return True

    def _real_now(self) -> datetime:
        return self._clock().real_now()

    def _try(self, step: Callable[[], object]) -> bool:
        """Do a step; False, and one line in the log until it works again, when it fails."""
        try:
            step()
        except StoreUnavailable as error:
            if not self._complained:
                log.warning("notices wait: %s", error)
        except Exception:
            if not self._complained:
                log.exception("notices: the next look tries again")
        else:
            self._complained = False
            return True
        self._complained = True
        return False
