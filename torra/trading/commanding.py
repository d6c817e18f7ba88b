"""What a person commands: one form for the pages, their API and the command line.

A command is a function with the mark `command`. It gets a CommandContext, the desk that it works
on, and returns a CommandResult. It is one transaction with its entry in the audit log: neither is
there without the other. A command that is refused raises ConfigError and has changed nothing. The
pages of a running desk call it with the desk's own database; `at_home` opens a home for one command
and puts a refusal on record. The front puts on record what a page was refused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Concatenate, Final, Generic, ParamSpec

from instance_database import Database, open_home
from torra.clock import System
from torra.config import DeskSettings, Instance, Profile, load_desk, load_profile
from torra.errors import StoreUnavailable, TorraError
from torra.trading.kill_switch import KillSwitch, files_to_halt

P = ParamSpec("P")

BY_A_PERSON: Final = "by a person"

LONGEST_OUTCOME: Final = 300
"""Characters of an outcome in the audit log."""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class Actor:
    """The giver of a command, as the audit log names them, and their address."""

    actor: str
    address: str = ""


COMMAND_LINE: Final = Actor("command line")


@dataclass(frozen=True)
class CommandContext:
    """The desk that a command works on; `now` is the desk's time.

    `kill_switch` is the one of the desk that runs in this process, None where none does.
    """

    home: Path
    database: Database
    read_settings: Callable[[], DeskSettings]
    profile: Callable[[Instance], Profile]
    now: Callable[[], datetime]
    environment: Mapping[str, str]
    kill_switch: KillSwitch | None = None

    @property
    def settings(self) -> DeskSettings:
        """The desk's settings, read when a command needs them; raises ConfigError."""
        return self.read_settings()

    @property
    def switch(self) -> KillSwitch:
        """The kill switch to ask: the running desk's own knows most."""
        files = files_to_halt(self.home, self.read_settings)
        return self.kill_switch or KillSwitch(files, self.database)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: the document that is printed, and the state before and after.

    `refused` is why it did not do what it was asked for, "" when it did.
    """

    document: dict[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""

    @property
    def outcome(self) -> str:
        """The outcome in a word, and why it is a failure."""
        return f"failed: {self.refused}" if self.refused else "done"


@dataclass(frozen=True)
class Command(Generic[P]):
    """A command under its name in the audit log; its one positional argument is its target."""

    action: str
    act: Callable[Concatenate[CommandContext, P], CommandResult]
    needs_desk: bool

    def __call__(
        self, desk: CommandContext, person: Actor, /, *target: P.args, **words: P.kwargs
    ) -> CommandResult:
        """Do it for a person, and write it into the audit log, in one transaction."""
        act = partial(self.act, desk, *target, **words)
        return with_record(desk.database, person, self.action, _name_of(target), act)

    def at_home(self, home: Path, /, *target: P.args, **words: P.kwargs) -> dict[str, Any]:
        """Do it on a home, from the command line; return its document."""
        with at_home(home, self.action, _name_of(target), needs_desk=self.needs_desk) as desk:
            return self(desk, COMMAND_LINE, *target, **words).document


def command(
    action: str, *, needs_desk: bool = False
) -> Callable[[Callable[Concatenate[CommandContext, P], CommandResult]], Command[P]]:
    """Mark a function as a command; one that `needs_desk` touches no home without settings."""
    return lambda act: Command(action, act, needs_desk)


@contextmanager
def at_home(
    home: Path, action: str, target: str = "", *, needs_desk: bool = False
) -> Iterator[CommandContext]:
    """Open a home for one command; put what it was refused into the audit log.

    Raises ConfigError and StoreUnavailable when the home cannot be opened.
    """
    if needs_desk:
        load_desk(home)  # first: opening a home makes its database
    with closing(open_home(home)) as database, refusals(database, action, target):
        yield context_of(home, database)


def context_of(home: Path, database: Database) -> CommandContext:
    """Return what a command from the command line works on."""
    settings = cache(partial(load_desk, home))
    return CommandContext(
        home,
        database,
        read_settings=settings,
        profile=lambda instance: load_profile(instance.profile, home),
        now=lambda: _desk_now(settings(), database),
        environment=dict(os.environ),
    )


@contextmanager
def refusals(database: Database, action: str, target: str = "") -> Iterator[None]:
    """Put what the command line was refused into the audit log too."""
    try:
        yield
    except StoreUnavailable:
        # The audit log lies in the same store.
        raise
    except TorraError as error:
        refused = CommandResult({}, refused=str(error))
        record_late(database, COMMAND_LINE, action, target, refused)
        raise


def with_record(
    database: Database, person: Actor, action: str, target: str, act: Callable[[], CommandResult]
) -> CommandResult:
    """Do something and write it into the audit log, in one transaction: both or neither."""
    with database.transaction():
        done = act()
        record(database, person, action, target, done)
    return done


def record(
    database: Database, person: Actor, action: str, target: str, done: CommandResult
) -> None:
    """Write a command into the audit log."""
    database.audit(
        actor=person.actor,
        address=person.address,
        action=action,
        target=target,
        outcome=done.outcome[:LONGEST_OUTCOME],
        before=done.before,
        after=done.after,
    )


def record_late(
    database: Database, person: Actor, action: str, target: str, done: CommandResult
) -> None:
    """Write a finished command into the audit log; where that fails, the program's log says so."""
    try:
        record(database, person, action, target, done)
    except StoreUnavailable as error:
        log.error("%s %s (%s): this is not on record: %s", action, target, done.outcome, error)


def by_a_person(reason: str) -> str:
    """Return a person's reason as it goes on record."""
    return f"{BY_A_PERSON}: {reason}" if reason else BY_A_PERSON


def _name_of(target: tuple[object, ...]) -> str:
    return str(target[0]) if target else ""


def _desk_now(settings: DeskSettings, database: Database) -> datetime:
    """Return the desk's time: the clock's, or where a desk that replays the past stands."""
    replayed = database.desk_time()
    # A desk that replays the past has a time of its own, which its proposals live by.
    if replayed is not None and any(item.feed == "sample" for item in settings.instances):
        return replayed
    return System().now()
