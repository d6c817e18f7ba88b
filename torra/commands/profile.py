"""`torra profile`: show, compare, check, set, try and undo a profile from the command line.

The commands use the same book as the pages (torra.profiles.book), without the pages' limits: a
person at the desk's own machine may loosen what guards the account. A terminal asks first, anything
else needs --yes, and the change goes on record with the actor "command line". A running desk takes
it at its next start, or when an administrator tells it to on the page of the profile. A mistake is
one line and exit code 2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from instance_database import open_home
from torra.clock import System
from torra.commands.answer import CommandAnswer, answering, open_desk, wants_json
from torra.commands.options import ANY_PATH, SpelledGroup, flag, number, on_terminal
from torra.commands.terminal import say
from torra.config import Profile, load_desk
from torra.config import read as read_file
from torra.errors import ConfigError
from torra.profiles.book import ProfileBook, SaveResult
from torra.profiles.fields import (
    ABSENT,
    DEFAULT,
    along_with_mode,
    canonical,
    changed,
    flat,
    place_of,
    read,
    settings,
    shown,
    written,
)
from torra.profiles.guard import MORE_TRADES, Change, compare, loosening

ACTOR: Final = "command line"
LATER: Final = (
    "A desk that runs takes it at its next start, or by the button on the profile's page."
)
WRITE: Final = "write PLACE=VALUE, such as thresholds.buy=0.4"

name_argument = click.argument("name")
yes_option = flag("--yes", "Do not ask before loosening.")


@click.group("profile", cls=SpelledGroup)
def profile() -> None:
    """Show and change the settings of an instance."""


@profile.command()
@click.argument("name", required=False)
@answering
def show(home: Path, name: str | None) -> CommandAnswer:
    """Show every profile, or every setting of one."""
    from torra.dashboard.settings import profiles as page  # noqa: PLC0415

    with open_desk(home) as desk:
        if name is None:
            return CommandAnswer(page.every(desk), _overview)
        book = page.book_of(desk)
        values = _values(book, name)
        document = page.document(desk, book.read(name))
    here, lines = flat(values), []
    for setting in settings(values):
        value = here.get(setting.place, ABSENT)
        if value is not ABSENT:
            differs = "" if value == setting.default else f"   (default {shown(setting.default)})"
            lines.append(f"{setting.name:<40}{shown(value)}{differs}")
    return CommandAnswer(document, lines)


def _overview(document: Mapping[str, Any]) -> str:
    """Return every profile with what differs from the default and who uses it, for a terminal."""
    lines = [f"{'profile':<20}{'digest':<18}{'differs':>8}  used by"]
    for row in document["profiles"]:
        count = "broken" if row["broken"] else row["differences"]
        users = ", ".join(use["instance"] for use in row["users"]) or "nobody"
        lines.append(f"{row['profile']:<20}{row['digest']:<18}{count:>8}  {users}")
    return "\n".join(lines)


@profile.command()
@name_argument
@click.argument("other", required=False)
@answering
def diff(home: Path, name: str, other: str | None) -> CommandAnswer:
    """Show how a profile differs from the default, another one, or an entry of its history."""
    with _book(home) as book:
        values, base = _values(book, name), DEFAULT
        if other is not None and other.isdigit():
            entry = book.entry(name, int(other))
            if entry is None:
                raise ConfigError(f"the history of {name} has no entry {other}")
            base = entry.values
        elif other is not None:
            base = _values(book, other)
    changes = compare(base, values)
    document = {"profile": name, "against": other or "the default", "changes": _documents(changes)}
    return CommandAnswer(document, _change_lines(changes) or "nothing differs")


# A value after its place may be negative, and -0.5 is no option.
@profile.command("set", context_settings={"ignore_unknown_options": True})
@name_argument
@click.argument("pairs", nargs=-1, metavar="PLACE=VALUE...")
@click.option("--unset", multiple=True, metavar="PLACE", help="Take an entry out.")
@yes_option
@answering
def set_values(
    home: Path, name: str, pairs: Sequence[str], unset: Sequence[str], yes: bool
) -> CommandAnswer:
    """Change settings, such as risk.max_positions=2; a list or an object is JSON."""
    if not (pairs or unset):
        raise ConfigError(WRITE)

    def propose(values: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {**_wanted(values, pairs), **dict.fromkeys(unset, ABSENT)}
        changes = {place_of(values, name): value for name, value in wanted.items()}
        return along_with_mode(values, changed(values, changes), changes)

    with _book(home) as book:
        save = partial(book.save, name, propose, action="set")
        return _changed(book, name, "set", lambda: propose(_values(book, name)), save, yes=yes)


@profile.command()
@name_argument
@click.argument("number", type=click.IntRange(1))
@yes_option
@answering
def undo(home: Path, name: str, number: int, yes: bool) -> CommandAnswer:
    """Put an entry of the history back, as a new one."""
    with _book(home) as book:
        save = partial(book.undo, name, number)
        return _changed(book, name, "undo", lambda: book.state(name, number).values, save, yes=yes)


@profile.command()
@name_argument
@click.argument("file", type=ANY_PATH, required=False)
@answering
def check(home: Path, name: str, file: Path | None) -> CommandAnswer:
    """Check a profile, or a FILE that is to become it; exit 1 when it has faults."""
    with _book(home) as book:
        values = canonical(read_file(Profile, file)) if file else _values(book, name)
        checked = book.check(name, values)
    sound = checked.profile is not None
    document = {
        "profile": name,
        "ok": sound,
        "faults": [{"setting": item.name, "text": item.text} for item in checked.faults],
        "warnings": list(checked.warnings),
        "idle": [{"setting": place, "text": text} for place, text in checked.idle.items()],
        "changes": _documents(checked.changes),
    }
    lines = [item.text for item in checked.faults]
    lines += [f"note: {text}" for text in checked.warnings]
    lines += [f"{name} is in order"] if sound else []
    return CommandAnswer(document, lines, int(not sound))


@profile.command()
@name_argument
@answering
def history(home: Path, name: str) -> CommandAnswer:
    """Show the newest 50 states of a profile, the newest first."""
    with _book(home) as book:
        book.read(name)
        entries = book.history(name)
    lines = []
    for entry in entries:
        lines.append(
            f"{entry.number:>4}  {entry.at}  {entry.actor:<24} {entry.action:<14} {entry.digest}"
        )
        changes = [
            Change(tuple(row["place"].split(".")), row["before"], row["after"], None, row["way"])
            for row in entry.changes
        ]
        lines += [f"      {line}" for line in _change_lines(changes)]
    rows = [entry.as_json() for entry in entries]
    return CommandAnswer(
        {"profile": name, "entries": rows}, lines or f"{name} was never saved by Torra"
    )


@profile.command("try")
@name_argument
@click.argument("pairs", nargs=-1, metavar="[PLACE=VALUE]...")
@number("--days", 30, 1, 366, "How many days of stored bars are run.")
@answering
def try_settings(home: Path, name: str, pairs: Sequence[str], days: int) -> CommandAnswer:
    """Run settings over the desk's stored bars: trades, result, deepest fall. Nothing is saved."""
    from torra.replay.tried import kind, words  # noqa: PLC0415

    with _book(home) as book:
        trial = kind.tried_now(home, name, _wanted(_values(book, name), pairs), days)
    return CommandAnswer(trial.as_json(), words.table(trial))


# --- details --------------------------------------------------------------------------------------


@contextmanager
def _book(home: Path) -> Iterator[ProfileBook]:
    """Open the profiles of a home; only a save touches its database."""

    @contextmanager
    def exclusive() -> Iterator[None]:
        with closing(open_home(home)) as database, database.transaction():
            yield

    yield ProfileBook(home, load_desk(home), now=System().real_now, exclusive=exclusive)


def _values(book: ProfileBook, name: str) -> Mapping[str, Any]:
    loaded = book.read(name)
    if loaded.profile is None:
        remedies = [
            f"; `torra profile undo {name} {entry.number}` puts back what was saved last"
            for entry in book.history(name, 1)
        ]
        raise ConfigError("".join([loaded.trouble, *remedies]))
    return canonical(loaded.profile)


def _wanted(values: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Return values by their places, of PLACE=VALUE or of each value after its place."""
    by_name = {setting.name: setting for setting in settings(values)}
    wanted, rest = {}, iter(words)
    for word in rest:
        place, sign, value = word.partition("=")
        text = value if sign else next(rest, None)
        if text is None or not place:
            raise ConfigError(f"{word}: {WRITE}")
        wanted[place] = _read(by_name.get(place), text)
    return wanted


def _read(setting: Any, text: str) -> Any:
    """Read a value as the form does; for an unknown setting it is JSON, or else text."""
    # On a command line a list is typed as JSON; a form has one entry a line.
    if setting is not None and not text.startswith(("[", "{")):
        return read(setting, text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _ask(book: ProfileBook, name: str, checked: SaveResult, *, yes: bool) -> tuple[str, ...]:
    """Ask a person to agree to what loosens; raises ConfigError where nobody does.

    On a terminal a note is a question too: what a model costs is paid from the next tick on.

    What is to be known of the change is said first: what it is expected to cost, a key that is not
    there. The comparison of the last days stands beside the question, and is returned.
    """
    asks = on_terminal() and not wants_json()
    for text in checked.warnings:
        say(f"note: {text}", err=wants_json())
    if not (loose := loosening(checked.changes)):
        if checked.warnings and asks and not yes:
            _go_on()
        return ()
    days: tuple[str, ...] = ()
    if any(item.place[0] == "agents" for item in loose):
        from torra.replay.changed.last_days import last_days  # noqa: PLC0415

        days = last_days(book, name, loose)
    if yes:
        return days
    more = "".join(
        f" {item.name}={written(item.after)}" for item in loose if item.name in MORE_TRADES
    )
    trial = f"torra profile try {name}{more} says what more trades the last 30 days would have had"
    advice = [trial] if more else []
    if not asks:
        names = ", ".join(item.name for item in loose)
        for line in days:  # an error is cut at its length, figures may not be
            say(line, err=True)
        raise ConfigError("; ".join([f"this loosens {names}: add --yes if you mean it", *advice]))
    lines = "\n".join([*_change_lines(loose), *advice, *days])
    say(f"This loosens what guards the account:\n{lines}")
    _go_on()
    return days


def _go_on() -> None:
    if not click.confirm("Go on?"):
        raise ConfigError("nothing was changed")


def _changed(
    book: ProfileBook,
    name: str,
    verb: str,
    values: Callable[[], Mapping[str, Any]],
    save: Callable[..., SaveResult],
    *,
    yes: bool,
) -> CommandAnswer:
    """Ask, save and put on record; raises ConfigError for a change that was not made.

    `values` are what the profile would have.
    """
    digest = book.read(name).digest
    days = _ask(book, name, book.check(name, values()), yes=yes)
    result = save(digest=digest, may="loosen", actor=ACTOR)
    changes, saved = result.changes, result.outcome == "saved"
    done = saved or result.outcome == "unchanged"
    outcome = "done" if done else "failed"
    with closing(open_home(book.home)) as database:
        # What was refused goes on record too, so before the error is raised.
        database.audit(
            actor=ACTOR,
            action=f"profile.{verb}",
            target=name,
            outcome=outcome if saved else f"{outcome}: {result.reason}"[:300],
            before={"digest": result.before, **{item.name: item.before for item in changes}},
            after={"digest": result.digest, **{item.name: item.after for item in changes}},
        )
    if not done:
        raise ConfigError(result.reason)
    document = {
        "profile": name,
        "outcome": result.outcome,
        "digest": result.digest,
        "before": result.before,
        "entry": result.number or None,
        "changes": _documents(changes),
        "warnings": list(result.warnings),
        "last_days": days,
    }
    lines = [*_change_lines(changes), *(f"note: {text}" for text in days)]
    if saved:
        lines += [f"{name} is saved as entry {result.number}, digest {result.digest}.", LATER]
    else:
        lines.append(result.reason)
    return CommandAnswer(document, lines)


def _documents(changes: Sequence[Change]) -> list[dict[str, Any]]:
    return [item.as_dict() for item in changes]


def _change_lines(changes: Sequence[Change]) -> list[str]:
    return [
        f"{item.name}: {shown(item.before)} -> {shown(item.after)}"
        + (f"   ({item.way})" if item.way in ("loosens", "tightens") else "")
        for item in changes
    ]
