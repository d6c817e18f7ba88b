"""`torra run`: warm the database, start the desk, serve its pages until a person ends it.

torra.desk.checks.table comes first: it refuses the start, or halts the desk, where that must not
trade. Before that the home's lock is taken: a second desk is refused before it changes anything, or
waits for the lock where it was told to. The port is opened before anything long, so that a taken
one ends in a single line. SIGTERM and Ctrl-C end the same way: the timers stop, a running tick has
a second to finish, the lock is released. A crash needs no other path: the next start picks up where
the database stands.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from torra.backup.restore import command
from torra.clock import System, duration, floor
from torra.commands import access as access_commands
from torra.commands import terminal
from torra.commands.answer import plainly
from torra.commands.options import flag, number
from torra.committee.job import KINDS
from torra.config import DeskSettings
from torra.dashboard import server
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import Access
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk import wiring
from torra.desk.checks import table as checks
from torra.desk.schedule import Desk
from torra.desk.watches import refusal
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.feeds.protocol import stream_state
from torra.home import has_database
from torra.imports import settle
from torra.one_heap import limit_malloc_arenas
from torra.replay import uploads
from torra.services import in_background

ENDING: Final = "Ctrl-C ends it."

WAIT_EVERY: Final = 0.5
"""Seconds between two tries for the lock of another desk."""

LOST: Final = 2
"""Exit code of a desk that lost its lock, as of every refusal."""

LOOK_EVERY: Final = 0.2
"""Seconds between two looks of the main thread at whether it was told to end."""


class Stop:
    """Whether a person, or the system, has told the program to end.

    The main thread must not block on this without a time limit: Python runs a signal handler only
    when the main thread executes code again. A signal that the system delivers to another thread
    (as after SIGSTOP and SIGCONT), and any signal on Windows, does not wake it. Nor may handler and
    main thread share a lock: a handler that interrupts the main thread while that holds the lock
    would wait for ever. So this is a flag, and no Event.
    """

    def __init__(self) -> None:
        self.requested = False

    def tell(self, *_: object) -> None:
        """Note the request to end; usable as a signal handler."""
        self.requested = True

    def wait(self, also: Callable[[], object] = lambda: False) -> None:
        """Return when the program was told to end, or when `also` is true."""
        clock = System()
        while not (self.requested or also()):
            clock.sleep(LOOK_EVERY)


@dataclass(frozen=True, slots=True)
class PagesAddress:
    """The address at which pages are served, and the names that other machines may use."""

    host: str
    port: int
    allow_remote: bool = False
    names: Sequence[str] = ()
    prefix: str = ""
    """Path below which a proxy shows the pages, such as /torra."""


@click.command("run")
@number("--port", 5000, 1, 65535)
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@flag("--no-pages", "Run the desk without the dashboard.")
@flag("--allow-remote", "Serve other machines too: docs/security.md.")
@click.option("--trusted-host", "names", multiple=True, help="A name that the pages are opened by.")
@click.option("--prefix", default="", help="Path below which a proxy shows the pages: /torra.")
@flag("--wait", "Wait for the end of another desk on the home.")
@click.pass_obj
@plainly
def command_line(home: Path, /, no_pages: bool, wait: bool, **address: Any) -> None:
    """Start the desk: schedule, bridge and dashboard."""
    run(home, PagesAddress(**address), pages=not no_pages, say=terminal.say, wait=wait)


def run(
    home: Path,
    address: PagesAddress,
    *,
    pages: bool,
    say: Callable[[str], None],
    wait: bool = False,
) -> None:
    """Run the desk of a home until it is told to stop; raises ConfigError.

    `wait`: while another desk works there, wait for its end instead of a refusal.
    """
    terminal.keep_a_log()
    limit_malloc_arenas()
    stop = Stop()
    # Before anything long: a start, too, must end in order.
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, stop.tell)
    lock = DeskLock(home)
    try:
        if _locked(lock, home, say, stop, wait=wait):
            _run(home, address, lock, stop, pages=pages, say=say)
    finally:
        lock.release()


def _locked(
    lock: DeskLock, home: Path, say: Callable[[str], None], stop: Stop, *, wait: bool
) -> bool:
    """Take the lock of a home before anything is read or changed there; False where told to end.

    A home that is not there yet is made by what follows, and its lock taken when the desk opens.
    """
    if not home.is_dir() or lock.acquire():
        return True
    if not wait:
        raise ConfigError(refusal(home))
    say(f"Another desk works on {home.absolute()}: this one waits for its end. {ENDING}")
    while not stop.requested:
        if lock.acquire(0.0):
            return True
        System().sleep(WAIT_EVERY)
    return False


def _run(
    home: Path,
    address: PagesAddress,
    lock: DeskLock,
    stop: Stop,
    *,
    pages: bool,
    say: Callable[[str], None],
) -> None:
    lines: list[str] = []
    if pages:
        _begin(home, address, say)
    halted = checks.start(home, lines.append)
    desk, settings = wiring.open_desk(home, KINDS, lock)
    # A folder that was there before the first start is a desk's home only since the line above.
    checks.take_rights(home, lines.append)
    with suppress(ConfigError):  # without the folder a desk runs all the same; its page says so
        uploads.folder_of(home)
    try:
        listener, shown = _listen(desk, settings, home, address) if pages else (None, "")
        desk.open()
        if halted:
            desk.kill_switch.fault(halted)
            say(f"Trading is HALTED: {halted}")
        warm_up(desk, say, stop)
        if stop.requested:
            return
        desk.start()
        settle()
        for note in (*lines, *notes(desk)):
            say(note)
        if not halted and (why := _halted(desk)):
            say(f"Trading is HALTED: {why}. It goes on after: {command(home, 'resume')}")
        if listener:
            in_background("pages", listener.run)
            say(f"The pages: {shown}")
        say(f"The desk is running on {home.absolute()}. {ENDING}")
        stop.wait(lambda: desk.lost)
        say("Stopping.")
    finally:
        if not desk.close():
            # A tick still waits for somebody: the next start releases its claim.
            os._exit(LOST if desk.lost else 0)
    if desk.lost:
        raise ConfigError(desk.lost)


def _begin(home: Path, address: PagesAddress, say: Callable[[str], None]) -> None:
    """Say of a port that browsers refuse it; note it for `torra token` where a desk ran before.

    At a first start it is noted with the database: a note alone would look like a lost one.
    """
    # A start that is refused leaves no note.
    server.trusted_names(address.names, allow_remote=address.allow_remote)
    prefix = server.path_prefix(address.prefix)
    if why := server.refused_by_browsers(address.port):
        say(f"warning: {why}")
    if address.port and server.is_local(address.host) and has_database(home):
        server.check_port(address.host, address.port)
        _note(home, address.host, address.port, prefix)


def _halted(desk: Desk) -> str:
    """Return why nothing goes out, as it was said when that began; "" when trading goes on."""
    from torra.store import ticks as claim_table  # noqa: PLC0415

    why = desk.kill_switch.engaged()
    newest = claim_table.trading_states(desk.database, 1) if why else []
    reason = next((row.reason for row in newest if row.state == "HALTED"), "")
    return reason or why


def notes(desk: Desk) -> Iterator[str]:
    """Yield which streams have no bars, or none that are fresh enough for a tick."""
    for name, setup in desk.setups.items():
        for timeframe in setup.instance.timeframes:
            symbol, now = setup.instance.symbol, desk.clock.now()
            state = stream_state(setup.feed, symbol, timeframe, now, setup.profile)
            if state:
                yield f"{name} {timeframe}: {state}"


def warm_up(desk: Desk, say: Callable[[str], None], stop: Stop) -> None:
    """Bring the history of every stream that has no tick yet to life, with a progress bar."""
    shortest = min(
        (name for item in desk.setups.values() for name in item.instance.timeframes),
        key=duration,
    )
    steps = desk.warm_up(floor(desk.clock.now(), shortest))
    # The first tick is run to learn how many there are; without any no bar is drawn.
    first = next(steps, None)
    if first is None:
        return
    say("Warming up on the bars before the start of the desk:")
    with terminal.progress(first[1], "ticks") as forward:
        forward(1)
        for _ in steps:
            forward(1)
            if stop.requested:
                return


def _listen(
    desk: Desk, settings: DeskSettings, home: Path, address: PagesAddress
) -> tuple[Any, str]:
    """Open the port before anything long begins, so that a taken one is known at once.

    Returns the server and the address to open: at the first start the link that logs in where a
    person reads it, otherwise the command that shows it.
    """
    names = server.trusted_names(address.names, allow_remote=address.allow_remote)
    prefix = server.path_prefix(address.prefix)
    access, new = Access.of_home(home)
    app = create_app(
        DatabaseView(desk.database, settings, desk),
        access=access,
        backing=PageContext(
            home,
            desk.database,
            settings,
            desk,
            adopt=desk.adopt,
            events=desk.events,
            kill_switch=desk.kill_switch,
        ),
        trusted_hosts=names,
        remote=bool(names),
    )
    listener = server.open_server(
        app,
        address.host,
        address.port,
        allow_remote=address.allow_remote,
        prefix=prefix,
    )
    named = address.host if server.is_local(address.host) else names[0]
    shown = _note(home, named, getattr(listener, "effective_port", address.port), prefix)
    # Only to a person: what goes to a file or a service's journal stays there, for others to read.
    if new and terminal.read_by_a_person():
        return listener, f"{shown}/login#token={access.tokens['admin']}"
    return listener, f"{shown}; this shows the link to log in: {command(home, 'token')}"


def _note(home: Path, named: str, port: int, prefix: str) -> str:
    """Return the address of the pages, and note it for `torra token`.

    A home that cannot be written keeps no desk from running.
    """
    shown = f"http://{f'[{named}]' if ':' in named else named}:{port}{prefix}"
    try:
        access_commands.tell_address(home, shown)
    except OSError as error:
        logging.getLogger(__name__).warning("torra token will not know the pages' port: %s", error)
    return shown
