"""A symbol is added to a desk: what would be written, and the writing of it.

A new symbol gets an instance in desk.json, as `torra init` writes one, and mostly a profile of its
own: no profile that is there is changed, for its limits hold for what it trades already. It trades
on paper, and at first only after a person's yes, or not at all. Where the desk is the demo, whose
clock lives in the past, the symbol gets a home of its own beside it, and the demo stays as it is.

The request is read by torra.desk.setup.wishes. `plan` returns what would be written, checked
by the models that will read it. `write` imports the bars, then writes both files or none, unless
desk.json has become another than the one that was planned with. The file as it was stays beside it
as DESK_BEFORE.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from torra.backup.restore import command
from torra.clock import System
from torra.config import (
    ROOT,
    DeskSettings,
    Profile,
    load_profile,
    validate,
)
from torra.desk import wiring
from torra.desk.setup import bar_import
from torra.desk.setup.desk_plan import (
    DeskPlan,
    advisor_inputs,
    as_text,
    instance_values,
    profile_values,
)
from torra.desk.setup.desk_plan import write as write_files
from torra.desk.setup.request import SetupRequest
from torra.desk.setup.wishes import EXECUTIONS, FieldError
from torra.errors import ConfigError, no_key_twice
from torra.feeds.csv_file import ClockMissing, read_bars
from torra.home import DESK, DESK_BEFORE, UPLOADS
from torra.market.broker_clock import USUAL
from torra.market.closed_hours import WEEK
from torra.regular_files import lies, read_regular
from torra.store import bars as bar_table
from torra.store.bars import BarStore
from torra.whole_files import write_whole

LARGEST_FILE: Final = 8_000_000
"""Bytes of a file, some 100,000 bars, whose import keeps the database no longer than a tick waits.

Of a packed one, what it holds counts.
"""

OWN: Final = "_own"
"""What the name of the home beside a demo's ends with."""

PORT: Final = 5001
"""A port for a second desk on the same machine."""

CHANGED: Final = (
    "{path} was changed since this was shown, and nothing was written: look at it once more"
)


OF_THE_PAST: Final = (
    "{name} ends {days} days ago, and a desk ticks on new bars alone: import newer ones as they "
    "come. What these bars would have come to, the page Replays says."
)

ASKS_CLOCK: Final = (
    f"does not say by which clock its times are: choose it here, at most brokers {USUAL[0]}"
)


@dataclass(frozen=True, slots=True)
class SymbolHome:
    """Where a symbol is added: a home with its desk as it is.

    `separate` says that it is another home than the one of the desk that was asked, which lives in
    the past. `values` is desk.json as it lies there, {} without one; `version` tells its states
    apart.
    """

    home: Path
    uploads: Path
    values: Mapping[str, Any]
    version: str
    separate: bool

    @property
    def settings(self) -> DeskSettings | None:
        """The desk there, None without one."""
        return validate(DeskSettings, self.values, DESK) if self.values else None


@dataclass(frozen=True, slots=True)
class Addition(DeskPlan):
    """What would be written, and after the writing what was imported."""

    place: SymbolHome
    imported: tuple[str, ...] = ()

    @property
    def before(self) -> str:
        """desk.json as it is, "" without one."""
        return as_text(self.place.values) if self.place.values else ""

    @property
    def after(self) -> str:
        """desk.json as it would be."""
        return as_text(self.desk)

    @property
    def profile_text(self) -> str:
        """The new profile, "" for none."""
        return "" if self.profile is None else as_text(self.profile)

    def document(self) -> dict[str, Any]:
        """Return it for JSON and for the audit log."""
        return {
            "home": str(self.home),
            "instance": self.desk["instances"][-1],
            "profile": self.request.profile_name,
            "profile_values": self.profile,
            "notes": list(self.notes),
            "next": list(self.steps),
            "imported": list(self.imported),
        }


def place_of(home: Path, settings: DeskSettings) -> SymbolHome:
    """Return where a symbol is added to a desk; raises ConfigError for a broken desk.json."""
    # A desk lives in one time: on the sample's bars of the past, or in the present.
    past = any(item.feed == "sample" for item in settings.instances)
    target = home.absolute()
    if past:
        target = target.with_name(f"{target.name}{OWN}")
    content, values = read_desk(target / DESK)
    version = hashlib.sha256(content).hexdigest()[:16]
    return SymbolHome(target, home / UPLOADS, values, version, past)


def read_desk(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return a desk.json as it lies there, checked, and its values; b"" and {} without one.

    Raises ConfigError for one that cannot be read, or is broken.
    """
    if not lies(path):
        return b"", {}
    try:
        content = read_regular(path)
        values = json.loads(content.decode("utf-8-sig"), object_pairs_hook=no_key_twice)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    validate(DeskSettings, values, str(path))
    return content, values


def offered(place: SymbolHome) -> list[str]:
    """Return the profiles that a symbol may be added with: none that sends orders by itself."""
    folders = (place.home / "profiles", ROOT / "profiles")
    names = []
    for name in sorted({path.stem for one in folders for path in one.glob("*.json")}):
        with suppress(ConfigError):
            if load_profile(name, place.home).execution in EXECUTIONS:
                names.append(name)
    return names


# --- what would be written ------------------------------------------------------------------------


def plan(place: SymbolHome, request: SetupRequest, stored: BarStore | None) -> Addition:
    """Return what would be written; raises Wrong, and ConfigError without a field to blame.

    `stored` are the bars of the home that is added to, None where it has no database yet.
    """
    symbol = request.symbol
    if place.settings and symbol in [item.id for item in place.settings.instances]:
        raise FieldError("symbol", f"the desk watches {symbol} already")
    if request.feed == "store" and not request.files:
        missing = [
            name for name in request.timeframes
            if stored is None or not bar_table.bar_rows(stored, symbol, name)
        ]  # fmt: skip
        if missing:
            raise FieldError(
                "timeframes",
                f"no bars of {symbol} {', '.join(missing)} are stored: take a file, or torra "
                "import first",
            )
    notes: list[str] = []
    _refuse_files(place, request, notes)
    profile = None
    if request.new_profile:
        if lies(place.home / "profiles" / f"{request.profile_name}.json"):
            there = f"there is a profile {request.profile_name} already: give another name"
            raise FieldError("profile_name", there)
        if request.spec is None:
            raise FieldError("digits", "say how the symbol is traded")
        profile = profile_values(request, {symbol: request.spec.model_dump(mode="json")}, notes)
    instance = instance_values(request, *request.symbols[0])
    desk = {**place.values, "instances": [*place.values.get("instances", []), instance]}
    try:
        checked = validate(DeskSettings, desk, DESK)
    except ConfigError as error:
        raise FieldError("", str(error)) from error
    _check_profile(place, request, profile, checked)
    steps = _steps(place, request, checked)
    return Addition(place.home, request, desk, profile, tuple(notes), steps, place)


def _refuse_files(place: SymbolHome, request: SetupRequest, notes: list[str]) -> None:
    """Refuse a file that is too large, or on nobody knows whose clock; note one of the past."""
    for name in request.files.values():
        path = place.uploads / name
        with suppress(OSError):
            if path.stat().st_size > LARGEST_FILE:
                raise FieldError(
                    "files",
                    f"{name} is larger than {LARGEST_FILE // 1_000_000} MB: import it with torra "
                    "import, then take bars that were imported already",
                )
        try:
            bars = read_bars(path, clock=request.clock or None, most=LARGEST_FILE)
        except ClockMissing as error:
            raise FieldError("clock", f"{name} {ASKS_CLOCK}") from error
        except ConfigError as error:
            raise FieldError("files", _of_file(str(error), place.uploads)) from error
        if (old := System().now() - bars.index[-1]) > WEEK:
            notes.append(OF_THE_PAST.format(name=name, days=old.days))


def _check_profile(
    place: SymbolHome, request: SetupRequest, profile: Mapping[str, Any] | None, desk: DeskSettings
) -> None:
    try:
        if profile is None:
            loaded = load_profile(request.profile_name, place.home)
        else:
            loaded = validate(Profile, profile, f"profile {request.profile_name}")
    except ConfigError as error:
        raise FieldError("profile", str(error)) from error
    if loaded.execution not in EXECUTIONS:
        raise FieldError(
            "profile",
            f"profile {request.profile_name} sends orders by itself (execution: "
            f"{loaded.execution}): take a new profile",
        )
    try:
        wiring.check_profile(loaded, desk.instance(request.symbol))
    except ConfigError as error:
        text = str(error)
        if "no trading conditions" in text:
            text = (
                f"the profile {request.profile_name} does not know how {request.symbol} is traded: "
                "take a new profile, or add it there on the command line"
            )
        raise FieldError("profile", text) from error


def _steps(place: SymbolHome, request: SetupRequest, desk: DeskSettings) -> tuple[str, ...]:
    steps = []
    if request.feed == "mt5_files":
        inputs = advisor_inputs(desk, request.channel)
        steps.append(f"In the Expert Advisor of channel {request.channel}: {inputs}.")
    if place.separate:
        run = command(place.home, "run", "--port", str(PORT))
        steps.append(f"Start the desk of your own beside the demo: {run}")
    else:
        steps.append(
            f"Stop the desk (Ctrl-C) and start it again, for it takes a symbol at its start: "
            f"{command(place.home, 'run')}"
        )
    if request.feed == "store":
        steps.append(
            "It ticks when a bar closes: import new bars as they come, or let MetaTrader 5 bring "
            "them (torra init, docs/mt5.md)."
        )
    return tuple(steps)


# --- the writing ----------------------------------------------------------------------------------


def write(
    addition: Addition, version: str, exclusive: Callable[[], AbstractContextManager[None]]
) -> Addition:
    """Import the bars, then write the files; raises ConfigError, and then no file was changed.

    `version` is of the desk file that a person was shown. `exclusive` keeps other pages of this
    desk out. Returns what was written, with what was imported.
    """
    place, request = addition.place, addition.request
    if version != place.version:
        raise ConfigError(CHANGED.format(path=addition.desk_path))
    imported = []
    for timeframe, name in request.files.items():
        try:
            done = bar_import.run(
                place.home, place.uploads / name, request.symbol, timeframe, request.clock or None,
                most=LARGEST_FILE,
            )  # fmt: skip
        except ConfigError as error:
            # what a clock would mend is asked where the clock is asked
            field = "clock" if "--clock" in str(error) else "files"
            raise FieldError(field, _of_file(str(error), place.uploads)) from error
        imported.append(
            f"{done['bars']:,} bars of {request.symbol} {timeframe}, {done['from']} to {done['to']}"
        )
    with exclusive():
        path = addition.desk_path
        content = read_regular(path) if lies(path) else b""
        if hashlib.sha256(content).hexdigest()[:16] != place.version:
            raise ConfigError(CHANGED.format(path=path))
        if addition.profile is not None and lies(addition.profile_path):
            raise FieldError("profile_name", f"a profile {request.profile_name} has come meanwhile")
        if place.values:
            try:
                write_whole(path.with_name(DESK_BEFORE), content)
            except OSError as error:
                raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
        write_files(addition, force=True)
    return replace(addition, imported=tuple(imported))


def _of_file(text: str, uploads: Path) -> str:
    """Return an import's mistake without the folder, and with the form's word for its option."""
    plain = text.replace(f"{uploads}{os.sep}", "")
    return plain.replace("with --clock", "in Clock of the files").replace("--clock", "Clock")
