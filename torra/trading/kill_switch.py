"""The kill switch: one answer to "may anything go out now", asked right before it does.

Trading is halted in three cases: the database says so, a file named HALT lies in the control folder
of the desk's home or of a channel, or this process has met a fault that leaves it in doubt (a disk
that is full). Whichever comes first, the others follow. A file is noted in the database; a halt in
the database is written as files, which the other side obeys by itself. A halt works before it can
be written down anywhere, and in the desk's own process it holds even where nothing can be written.

Only `resume`, which a person calls, lets trading go on. Its part in the database and the files go
together or not at all, and a halt that comes after it stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from instance_database import Database
from torra.bridges.torra.place import folder_of
from torra.clock import real_sleep
from torra.config import DeskSettings
from torra.errors import ConfigError, StoreUnavailable, TorraError
from torra.home import HALT, STATE_FOLDER
from torra.regular_files import lies, put_new
from torra.store import ticks as claim_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.time_limit import of_folder
from torra.verdict.risk_engine import TradingState

T = TypeVar("T")

FILE_OF: Final = "the file HALT of"
"""How the reason of a halt begins that came from a file."""

LIES: Final = "is there"
"""Ends a reason that begins with FILE_OF."""

ACTIVE: Final[TradingState] = "ACTIVE"
REDUCING: Final[TradingState] = "REDUCING"

RESUME_TRIES: Final = 5
RESUME_SECONDS: Final = 0.5
"""How often, and after how many seconds each, resuming makes sure that it has held."""


log = logging.getLogger("torra")


def state_folder(home: Path, channel: str) -> Path:
    """Return the folder of this side's files of a channel."""
    return home / STATE_FOLDER / channel


def halt_files(home: Path, settings: DeskSettings) -> dict[str, Path]:
    """Return the kill switch of the desk and of every channel that it sends to, by name."""
    files = {"desk": home / HALT}
    for item in settings.instances:
        if item.bridge == "torra_files":
            files[item.channel] = folder_of(item.channel, settings.channels[item.channel]) / HALT
        elif item.bridge != "paper":
            files[item.channel] = state_folder(home, item.channel) / HALT
    return files


def files_to_halt(home: Path, settings: Callable[[], DeskSettings]) -> dict[str, Path]:
    """Return the HALT files; settings that are broken keep nobody from halting the desk."""
    try:
        return halt_files(home, settings())
    except ConfigError:
        return {"desk": home / HALT}


class KillSwitch:
    """The halt of one desk. Any thread may ask."""

    def __init__(self, files: Mapping[str, Path], database: Database) -> None:
        self._files = files
        self._database = database
        self._fault = ""

    def engaged(self) -> str:
        """Return why nothing may go out, "" when it may. A database that fails is a reason."""
        # Memory, then files, then the database: what may fail comes last.
        if reason := self._fault or self._stop_file():
            return reason
        try:
            halted = self._database.trading_state() == "HALTED"
        except StoreUnavailable as error:
            return f"store: {error}"
        return "halted" if halted else ""

    def fault(self, reason: str) -> None:
        """Halt at once, in this process first; the database and the files follow as they can."""
        if not self._fault:
            log.error("trading is halted: %s", reason)
        # The first fault is the cause; the later ones mostly follow from it.
        self._fault = self._fault or reason
        self.keep()

    def hold(self, reason: str) -> None:
        """Halt this process, whatever disk and database do; `keep` writes it down as it can."""
        self._fault = reason

    def halt(self, reason: str) -> list[str]:
        """Halt as a person wants it, wherever that can be written; return what could not be."""
        self.hold(reason)
        failed = put_down(self._files, reason)
        try:
            self._database.halt(reason)
            self._fault = ""
        except TorraError as error:
            failed.append(str(error))
        return failed

    def standing(self) -> list[str]:
        """Return in words what halts trading outside of this process's memory."""
        reasons = files_down(self._files)
        with suppress(TorraError):
            if self._database.trading_state() == "HALTED":
                reasons.append("the database says HALTED")
        return reasons

    def keep(self) -> None:
        """Bring database and files into line: one that is halted halts the others. Never raises."""
        reason = self._fault or self._stop_file()
        try:
            if reason:
                self._database.halt(reason)
                self._fault = ""  # the database has it now, and it outlives this process
            elif self._database.trading_state() == "HALTED":
                reason = claim_table.trading_states(self._database, 1)[0].reason
        except StoreUnavailable as error:
            log.error("kill switch: %s", error)
        if reason:
            for name, failure in _put_down_all(self._files, reason).items():
                log.error("kill switch of %s: %s", name, failure)

    def resume(
        self,
        reason: str,
        sleep: Callable[[float], None] = real_sleep,
        record: Callable[[], object] = lambda: None,
        *,
        reduce: bool = False,
    ) -> None:
        """Let trading go on, as a person wants it; raises OSError when a file cannot go.

        With `reduce` closes alone: the state is REDUCING, and the alarms stand.

        A desk at work may just then put a file down for the halt that ends here, so this looks
        again for as long as such a desk takes for two turns. Another halt that comes meanwhile
        stands and is an OSError too. `record` is called in each transaction that lets trading go
        on, after its changes.
        """
        for turn in range(RESUME_TRIES):
            try:
                if turn and (anew := self._anew()):
                    raise OSError(0, f"halted anew: {anew}", "HALT")
                self._go_on(reason, record, first=not turn, reduce=reduce)
            except StoreUnavailable as error:
                if not turn:
                    # In the first turn nothing has changed yet; later the halt may be half over.
                    raise
                raise OSError(0, f"whether it holds is not known: {error}", "HALT") from error
            # A desk may be in the middle of writing the file that has just been removed.
            sleep(RESUME_SECONDS)
            if not self.engaged():
                return
        raise OSError(0, "something halts the desk again at once", "HALT")

    def _go_on(
        self, reason: str, record: Callable[[], object], *, first: bool, reduce: bool
    ) -> None:
        """End the halt everywhere, or nowhere when a part of it cannot end."""
        fault, state = self._fault, REDUCING if reduce else ACTIVE
        with self._database.transaction():
            if first or self._database.trading_state() == "HALTED":
                self._database.set_trading_state(state, reason)
                if not reduce:
                    execution_table.end_alarms(self._database)
                record()
            for path in self._files.values():  # last: who waits for the lock takes none away
                _reach(self._files, path, partial(path.unlink, missing_ok=True))
        # A fault that came during the transaction is another one, and stands.
        if self._fault == fault:
            self._fault = ""

    def _anew(self) -> str:
        """Return the reason of a halt since the resume that is no echo of the one before it."""
        if self._fault or self._database.trading_state() != "HALTED":
            return self._fault
        reason = claim_table.trading_states(self._database, 1)[0].reason
        return "" if reason.startswith(FILE_OF) else reason

    def _stop_file(self) -> str:
        return next((f"{FILE_OF} {name} {how}" for name, how in _lying(self._files)), "")


def files_down(files: Mapping[str, Path]) -> list[str]:
    """Return in words which HALT files are there, or cannot be looked for; nothing when none."""
    names = ", ".join(name if how == LIES else f"{name} {how}" for name, how in _lying(files))
    return [f"the HALT files are down ({names})"] if names else []


def _lying(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield the names of the HALT files that are there, and how that is known.

    A file in the home that cannot be looked for counts: somebody may have put it there. A share
    that is gone stops its own channel only, and the bridge of that channel says so.
    """
    for name, path in files.items():
        try:
            if _reach(files, path, partial(lies, path)):
                yield name, LIES
        except OSError as error:
            if _ours(files, path):
                yield name, f"cannot be looked for: {error.strerror or error}"


def put_down(files: Mapping[str, Path], reason: str) -> list[str]:
    """Write every HALT file, which needs no database; return what could not be written."""
    return [
        f"{name}: {files[name]}: {error.strerror or error}; mend the folder, or put the file "
        "there by hand"
        for name, error in _put_down_all(files, reason).items()
    ]


def _put_down_all(files: Mapping[str, Path], reason: str) -> dict[str, OSError]:
    failed = {}
    for name, path in files.items():
        try:
            _reach(files, path, partial(_put_down, path, reason, ours=_ours(files, path)))
        except OSError as error:
            failed[name] = error
    return failed


def _put_down(path: Path, reason: str, *, ours: bool) -> None:
    """Write a HALT file; a folder that is not ours must be there, or it is an unmounted share."""
    if lies(path):
        return
    # A HALT on the empty mount point of a share would never reach the other side.
    path.parent.mkdir(parents=ours, exist_ok=True)
    with suppress(FileExistsError):  # somebody else halts too
        put_new(path, reason + "\n")


def _reach(files: Mapping[str, Path], path: Path, step: Callable[[], T]) -> T:
    """Take a step on a HALT file, within the limit of its folder where that may be a share.

    A file in the desk's home is waited for: a disk that is slow must not let trading go on.
    """
    return step() if _ours(files, path) else of_folder(path.parent.parent).run(step)


def _ours(files: Mapping[str, Path], path: Path) -> bool:
    """Return whether a file lies in the desk's home."""
    return "desk" in files and path.is_relative_to(files["desk"].parent.parent)
