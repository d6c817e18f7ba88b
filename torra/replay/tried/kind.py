"""Trying settings as a job, and what it found: checked, run beside the desk, kept, read again.

A request names a profile and what would be changed in it. It is checked as a save is, before
anything is queued, and the newest stored bar is fixed then: bars that come while the job waits
change nothing. Any change may be tried, one that only the command line may save too, for nothing is
saved, sent or paid; but no path, which could name a file of somebody else.

What was found is one JSON document in the folder `tried` of the home, the newest KEPT of them.
`read` returns None for one that is not there or cannot be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from instance_database import Database, open_home
from torra.clock import System, iso, parse
from torra.config import Instance, Profile, load_desk
from torra.errors import MALFORMED, ConfigError
from torra.home import DATABASE, TRIED, has_database, lost
from torra.jobs.kinds import JobRequest, JobResult, Parameters, Tell
from torra.profiles.book import ProfileBook, as_json
from torra.profiles.fields import canonical, changed, place_of, shown
from torra.profiles.guard import Change, compare, leads_out
from torra.regular_files import read_regular
from torra.replay.tried.estimate import Tried, WhatIf, newest_close, tried
from torra.replay.tried.words import table
from torra.whole_files import write_whole

DAYS: Final = 30
MOST_DAYS: Final = 366
KEPT: Final = 200
"""Documents that are kept: as many as jobs."""

LARGEST: Final = 1 << 20
"""Bytes of a document that are read."""

NAMED: Final = 3
"""Changes that a title names."""

NO_SYMBOL: Final = "no symbol of this desk uses it, so there is nothing to try it on"


class _Asked(BaseModel):
    """What a request says: the profile, new values by place (null takes an entry out), the days."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    profile: str
    settings: dict[str, JsonValue] = {}
    days: int = DAYS


def check(home: Path, asked: Parameters) -> JobRequest:
    """Return a request, checked and fixed; raises ConfigError naming what to mend."""
    try:
        told = _Asked.model_validate(dict(asked))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"][:2])
        raise ConfigError(f"{place}: {first['msg']}") from error
    if not 1 <= told.days <= MOST_DAYS:
        raise ConfigError(f"days: {told.days} is not between 1 and {MOST_DAYS}")
    saved, wanted = both(_book(home), told.profile, told.settings)
    users = _users(home, told.profile)
    # A question makes no database where no desk has run yet.
    if not has_database(home) and not lost(home / DATABASE):
        raise _no_bars(users)
    with closing(open_home(home)) as database:
        end = _end(database, users)
    changes = compare(canonical(saved), canonical(wanted))
    fixed: dict[str, JsonValue] = {
        "profile": told.profile,
        "changes": title_of(changes),
        "days": told.days,
        "end": end,
        "saved": saved.model_dump_json(),
        "wanted": wanted.model_dump_json(),
    }
    same: dict[str, JsonValue] = {
        "profile": told.profile,
        "days": told.days,
        "saved": saved.digest(),
        "wanted": wanted.digest(),
    }
    return JobRequest(same, fixed, f"{told.profile}: {title_of(changes)}, last {told.days} days")


def run(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    """Run what was asked; raises ConfigError and StoreUnavailable."""
    told: Any = parameters
    question = WhatIf(
        told["profile"],
        Profile.model_validate_json(told["saved"]),
        Profile.model_validate_json(told["wanted"]),
        told["days"],
        parse(told["end"]),
    )
    tell("reads the bars")
    with closing(open_home(home)) as database:
        found = tried(
            home, database, _users(home, question.name), question,
            load_desk(home).paper_currency, tell,
        )  # fmt: skip
    return JobResult(found.says, keep(home, found))


def tried_now(home: Path, name: str, settings: Mapping[str, Any], days: int) -> Tried:
    """Run a try in this process and return what it found; raises ConfigError."""
    request = check(home, {"profile": name, "settings": dict(settings), "days": days})
    made = run(home, request.parameters, lambda _stage, _done=0, _total=0: None).made
    found = read(home, made)
    if found is None:
        raise ConfigError(f"{home / TRIED / made}.json cannot be read")
    return found


def both(shelf: ProfileBook, name: str, settings: Mapping[str, Any]) -> tuple[Profile, Profile]:
    """Return the saved profile and the changed one; raises ConfigError for what does not fit."""
    now = shelf.read(name)
    if now.profile is None:
        raise ConfigError(f"{name} is broken, mend the file first: {now.trouble}")
    values = canonical(now.profile)
    places = {place_of(values, place): value for place, value in settings.items()}
    checked = shelf.check(name, changed(values, places))
    if checked.profile is None:
        raise ConfigError("; ".join(fault.text for fault in checked.faults))
    if paths := leads_out(checked.changes):
        raise ConfigError(f"{', '.join(paths)}: a path can be tried only on the command line")
    return now.profile, checked.profile


def title_of(changes: Iterable[Change]) -> str:
    """Return changes in a few words: as saved, or what each becomes."""
    told = [f"{change.name} {shown(change.after)}" for change in changes]
    more = f" and {len(told) - NAMED} more" if len(told) > NAMED else ""
    return f"{', '.join(told[:NAMED])}{more}" if told else "as saved"


# --- documents ------------------------------------------------------------------------------------


def keep(home: Path, found: Tried) -> str:
    """Keep what was found; return its name. Raises ConfigError where it cannot be written."""
    told = as_json(found.as_json()).encode()
    name = hashlib.sha256(told).hexdigest()[:16]
    folder = home / TRIED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{name}.json", told)
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in files[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error
    return name


def read(home: Path, name: str) -> Tried | None:
    """Return what was found under a name; None where nothing is there, or nothing of this form."""
    if not (len(name) == 16 and name.isascii() and name.isalnum()):
        return None
    with suppress(OSError, LookupError, *MALFORMED):
        found = DOCUMENT.validate_json(read_regular(home / TRIED / f"{name}.json", LARGEST))
        # As it will be shown: an edited one may be of this form and make no sense.
        table(found)
        return found
    return None


DOCUMENT: Final = TypeAdapter(Tried)
"""Reads a document: it may have been edited."""


# --- the desk -------------------------------------------------------------------------------------


def _book(home: Path) -> ProfileBook:
    return ProfileBook(home, load_desk(home), now=System().real_now)


def _users(home: Path, name: str) -> tuple[Instance, ...]:
    found = tuple(item for item in load_desk(home).instances if item.profile == name)
    if not found:
        raise ConfigError(f"{name}: {NO_SYMBOL}")
    return found


def _end(database: Database, users: Iterable[Instance]) -> str:
    names = list(users)
    newest = newest_close(database, names)
    if newest is None:
        raise _no_bars(names)
    return iso(newest)


def _no_bars(users: Iterable[Instance]) -> ConfigError:
    told = ", ".join(one.id for one in users)
    return ConfigError(
        f"No bar of {told} is stored yet, so nothing can be tried: let the desk run, or bring bars "
        "with torra import"
    )
