"""`torra profile`: show, compare, check, set, try and undo a profile from the command line.

The commands use the same book as the pages (torra.profiles.book), without the pages' limits: a
person at the desk's own machine may loosen what guards the account. A terminal asks first, anything
else needs --yes, and the change goes on record with the actor "command line". A running desk takes
it at its next start, or when an administrator tells it to on the page of the profile. Every command
has --json; a mistake is one line and exit code 2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import SpelledGroup, on_terminal, print_json
from torra.commands.terminal import say
from torra.errors import ConfigError

if TYPE_CHECKING:
    from torra.profiles.book import ProfileBook, SaveResult
    from torra.profiles.guard import Change

ACTOR: Final = "command line"
LATER: Final = (
    "A desk that runs takes it at its next start, or by the button on the profile's page."
)


class Plain(SpelledGroup):
    """A group whose commands end in one line where something is wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command of the group."""
        return plainly(super().invoke)(ctx)


@click.group("profile", cls=Plain)
def profile() -> None:
    """Show and change the settings of an instance."""


as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask before loosening.")


@profile.command()
@click.argument("name", required=False)
@as_json_option
@click.pass_obj
def show(home: Path, /, name: str | None, as_json: bool) -> None:
    """Show every profile, or every setting of one."""
    with _book(home) as book:
        document = _one(book, name) if name else _every(book)
    _answer(document, as_json)


@profile.command()
@click.argument("name")
@click.argument("other", required=False)
@as_json_option
@click.pass_obj
def diff(home: Path, /, name: str, other: str | None, as_json: bool) -> None:
    """Show how a profile differs from the default, another one, or an entry of its history."""
    from torra.profiles.fields import DEFAULT  # noqa: PLC0415
    from torra.profiles.guard import compare  # noqa: PLC0415

    with _book(home) as book:
        values = _values(book, name)
        base: Mapping[str, Any] = DEFAULT
        if other is not None and other.isdigit():
            entry = book.entry(name, int(other))
            if entry is None:
                raise ConfigError(f"the history of {name} has no entry {other}")
            base = entry.values
        elif other is not None:
            base = _values(book, other)
    changes = compare(base, values)
    document = {
        "profile": name,
        "against": other or "the default",
        "changes": [item.told() for item in changes],
        "table": _change_lines(changes) or ["nothing differs"],
    }
    _answer(document, as_json)


# A value after its place may be negative, and -0.5 is no option.
@profile.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("pairs", nargs=-1, metavar="PLACE=VALUE...")
@click.option("--unset", multiple=True, metavar="PLACE", help="Take an entry out.")
@yes_option
@as_json_option
@click.pass_obj
def set_values(
    home: Path, /, name: str, pairs: tuple[str, ...], unset: tuple[str, ...], yes: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Change settings, such as risk.max_positions=2; a list or an object is JSON."""
    wanted = _pairs(pairs)
    if not (wanted or unset):
        raise ConfigError(WRITE)
    with _book(home) as book:
        propose = _proposal(wanted, unset)
        now = book.read(name)
        checked = book.check(name, propose(_values(book, name)))
        days = _ask(book, name, checked, yes=yes, as_json=as_json)
        saved = book.save(name, propose, digest=now.digest, may="loosen", actor=ACTOR, action="set")
    _finish(home, name, "profile.set", saved, as_json, days)


@profile.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@as_json_option
@click.pass_obj
def check(home: Path, /, name: str, file: Path | None, as_json: bool) -> None:
    """Check a profile, or a FILE that is to become it; exit 1 when it has faults."""
    from torra.config import Profile, read  # noqa: PLC0415
    from torra.profiles.fields import canonical  # noqa: PLC0415

    with _book(home) as book:
        values = canonical(read(Profile, file)) if file else _values(book, name)
        checked = book.check(name, values)
    _answer(_checked(name, checked), as_json)
    sys.exit(0 if checked.profile else 1)


@profile.command()
@click.argument("name")
@as_json_option
@click.pass_obj
def history(home: Path, /, name: str, as_json: bool) -> None:
    """Show the newest 50 states of a profile, the newest first."""
    from torra.profiles.guard import Change  # noqa: PLC0415

    with _book(home) as book:
        book.read(name)
        entries = book.history(name)
    lines = []
    for entry in entries:
        lines.append(
            f"{entry.number:>4}  {entry.at}  {entry.actor:<24} {entry.action:<14} {entry.digest}"
        )
        known = [
            Change(tuple(row["place"].split(".")), row["before"], row["after"], None, row["way"])
            for row in entry.changes
        ]
        lines += [f"      {line}" for line in _change_lines(known)]
    document = {
        "profile": name,
        "entries": [
            {name: value for name, value in asdict(entry).items() if name != "values"}
            for entry in entries
        ],
        "table": lines or [f"{name} was never saved by Torra"],
    }
    _answer(document, as_json)


@profile.command()
@click.argument("name")
@click.argument("number", type=click.IntRange(1))
@yes_option
@as_json_option
@click.pass_obj
def undo(home: Path, /, name: str, number: int, yes: bool, as_json: bool) -> None:
    """Put an entry of the history back, as a new one."""
    with _book(home) as book:
        now = book.read(name)
        entry = next((item for item in book.history(name) if item.number == number), None)
        checked = book.check(name, entry.values) if entry else None
        days = _ask(book, name, checked, yes=yes, as_json=as_json) if checked else ()
        saved = book.undo(name, number, digest=now.digest, may="loosen", actor=ACTOR)
    _finish(home, name, "profile.undo", saved, as_json, days)


@profile.command("try")
@click.argument("name")
@click.argument("pairs", nargs=-1, metavar="[PLACE=VALUE]...")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=30,
    show_default=True,
    help="How many days of stored bars are run.",
)
@as_json_option
@click.pass_obj
def try_settings(
    home: Path, /, name: str, pairs: tuple[str, ...], days: int, as_json: bool
) -> None:  # fmt: skip
    """Run settings over the desk's stored bars: trades, result, deepest fall. Nothing is saved."""
    from torra.replay.tried import kind, words  # noqa: PLC0415

    with _book(home) as book:
        values = _values(book, name)
        found = kind.tried_now(home, name, _wanted(values, pairs), days)
    _answer({**found.as_json(), "table": words.table(found).split("\n")}, as_json)


def _wanted(values: Mapping[str, Any], pairs: Sequence[str]) -> dict[str, Any]:
    """Return new values by place, of PLACE=VALUE; raises ConfigError for what is none."""
    from torra.profiles.fields import settings  # noqa: PLC0415

    known = {setting.name: setting for setting in settings(values)}
    return {place: _read(known.get(place), text) for place, text in _pairs(pairs)}


WRITE: Final = "write PLACE=VALUE, such as thresholds.buy=0.4"


def _pairs(told: Sequence[str]) -> list[tuple[str, str]]:
    """Return places with their values, of PLACE=VALUE or of each value after its place."""
    found, left = [], iter(told)
    for pair in left:
        place, sign, value = pair.partition("=")
        text = value if sign else next(left, None)
        if text is None or not place:
            raise ConfigError(f"{pair}: {WRITE}")
        found.append((place, text))
    return found


# --- details --------------------------------------------------------------------------------------


@contextmanager
def _book(home: Path) -> Iterator[ProfileBook]:
    """Open the profiles of a home; only a save touches its database."""
    from instance_database import open_home  # noqa: PLC0415
    from torra.clock import System  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.profiles.book import ProfileBook  # noqa: PLC0415

    desk = load_desk(home)

    @contextmanager
    def exclusive() -> Iterator[None]:
        database = open_home(home)
        try:
            with database.transaction():
                yield
        finally:
            database.close()

    yield ProfileBook(home, desk, now=System().real_now, exclusive=exclusive)


def _values(book: ProfileBook, name: str) -> Mapping[str, Any]:
    from torra.profiles.fields import canonical  # noqa: PLC0415

    loaded = book.read(name)
    if loaded.profile is None:
        remedies = [
            f"; `torra profile undo {name} {entry.number}` puts back what was saved last"
            for entry in book.history(name, 1)
        ]
        raise ConfigError("".join([loaded.trouble, *remedies]))
    return canonical(loaded.profile)


def _proposal(wanted: Sequence[tuple[str, str]], unset: Sequence[str]) -> Any:
    from torra.profiles.fields import (  # noqa: PLC0415
        ABSENT,
        along_with_mode,
        changed,
        place_of,
        settings,
    )

    def propose(values: Mapping[str, Any]) -> dict[str, Any]:
        known = {setting.name: setting for setting in settings(values)}
        found: dict[tuple[str, ...], Any] = {}
        for name, text in wanted:
            setting = known.get(name)
            place = setting.place if setting else place_of(values, name)
            found[place] = _read(setting, text)
        found |= {place_of(values, name): ABSENT for name in unset}
        return along_with_mode(values, changed(values, found), found)

    return propose


def _read(setting: Any, text: str) -> Any:
    """Read a value as the form does; for an unknown setting it is JSON, or else text."""
    from torra.profiles.fields import read  # noqa: PLC0415

    # On a command line a list is typed as JSON; a form has one entry a line.
    if setting is not None and not text.startswith(("[", "{")):
        return read(setting, text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _ask(
    book: ProfileBook, name: str, checked: SaveResult, *, yes: bool, as_json: bool
) -> tuple[str, ...]:
    """Ask a person to agree to what loosens; raises ConfigError where nobody does.

    On a terminal a note is a question too: what a model costs is paid from the next tick on.

    What is to be known of the change is said first: what it is expected to cost, a key that is not
    there. The comparison of the last days stands beside the question, and is returned.
    """
    from torra.profiles.guard import loosening  # noqa: PLC0415

    for text in checked.warnings:
        say(f"note: {text}", err=as_json)
    if not (loose := loosening(checked.changes)):
        if checked.warnings and not (yes or as_json) and on_terminal():
            _go_on()
        return ()
    days: tuple[str, ...] = ()
    if any(item.place[0] == "agents" for item in loose):
        from torra.replay.changed.last_days import last_days  # noqa: PLC0415

        days = last_days(book, name, loose)
    if yes:
        return days
    if as_json or not on_terminal():
        names = ", ".join(item.name for item in loose)
        for line in days:  # an error is cut at its length, figures may not be
            say(line, err=True)
        words = [f"this loosens {names}: add --yes if you mean it", *_try_first(name, loose)]
        raise ConfigError("; ".join(words))
    lines = "\n".join([*_change_lines(loose), *_try_first(name, loose), *days])
    say(f"This loosens what guards the account:\n{lines}")
    _go_on()
    return days


def _go_on() -> None:
    if not click.confirm("Go on?"):
        raise ConfigError("nothing was changed")


def _try_first(name: str, loose: Sequence[Change]) -> list[str]:
    """Return what shows how many more trades come through; [] where none do."""
    from torra.profiles.fields import written  # noqa: PLC0415
    from torra.profiles.guard import MORE_TRADES  # noqa: PLC0415

    more = [item for item in loose if item.name in MORE_TRADES]
    pairs = "".join(f" {item.name}={written(item.after)}" for item in more)
    if not pairs:
        return []
    return [
        f"torra profile try {name}{pairs} says what more trades the last 30 days would have had"
    ]


def _finish(
    home: Path, name: str, action: str, saved: SaveResult, as_json: bool, days: tuple[str, ...]
) -> None:
    """Record a change and print it; raises ConfigError for one that was not made."""
    from instance_database import open_home  # noqa: PLC0415

    done = saved.outcome in ("saved", "unchanged")
    outcome = "done" if done else "failed"
    database = open_home(home)
    try:
        # What was refused goes on record too, so before the error is raised.
        database.audit(
            actor=ACTOR,
            action=action,
            target=name,
            outcome=outcome if saved.outcome == "saved" else f"{outcome}: {saved.reason}"[:300],
            before={"digest": saved.before, **{item.name: item.before for item in saved.changes}},
            after={"digest": saved.digest, **{item.name: item.after for item in saved.changes}},
        )
    finally:
        database.close()
    if not done:
        raise ConfigError(saved.reason)
    told = [f"{name} is saved as entry {saved.number}, digest {saved.digest}.", LATER]
    document = {
        "profile": name,
        "outcome": saved.outcome,
        "digest": saved.digest,
        "before": saved.before,
        "entry": saved.number or None,
        "changes": [item.told() for item in saved.changes],
        "warnings": list(saved.warnings),
        "last_days": days,
        "table": [
            *_change_lines(saved.changes),
            *(f"note: {text}" for text in days),
            *(told if saved.outcome == "saved" else [saved.reason]),
        ],
    }
    _answer(document, as_json)


def _every(book: ProfileBook) -> dict[str, Any]:
    from torra.profiles.fields import DEFAULT, canonical  # noqa: PLC0415
    from torra.profiles.guard import compare  # noqa: PLC0415

    rows, lines = [], [f"{'profile':<20}{'digest':<18}{'differs':>8}  used by"]
    for name in book.names():
        loaded = book.read(name)
        users = [item.id for item in book.users(name)]
        differs = len(compare(DEFAULT, canonical(loaded.profile))) if loaded.profile else None
        rows.append(
            {
                "profile": name,
                "digest": loaded.digest,
                "differences": differs,
                "users": users,
                "path": str(loaded.path.absolute()),
                "shipped": loaded.shipped,
                "trouble": loaded.trouble,
            }
        )
        count = "broken" if differs is None else str(differs)
        lines.append(f"{name:<20}{loaded.digest:<18}{count:>8}  {', '.join(users) or 'nobody'}")
    return {"profiles": rows, "table": lines}


def _one(book: ProfileBook, name: str) -> dict[str, Any]:
    from torra.profiles.fields import ABSENT, flat, settings, shown  # noqa: PLC0415

    values = _values(book, name)
    here = flat(values)
    lines = []
    for setting in settings(values):
        value = here.get(setting.place, ABSENT)
        if value is ABSENT:
            continue
        differs = "" if value == setting.default else f"   (default {shown(setting.default)})"
        lines.append(f"{setting.name:<40}{shown(value)}{differs}")
    digest = book.read(name).digest
    return {"profile": name, "digest": digest, "values": values, "table": lines}


def _checked(name: str, checked: SaveResult) -> dict[str, Any]:
    good = f"{name} is in order"
    return {
        "profile": name,
        "ok": checked.profile is not None,
        "faults": [{"setting": item.name, "text": item.text} for item in checked.faults],
        "warnings": list(checked.warnings),
        "idle": [{"setting": place, "text": text} for place, text in checked.idle.items()],
        "changes": [item.told() for item in checked.changes],
        "table": [
            *(item.text for item in checked.faults),
            *(f"note: {text}" for text in checked.warnings),
            *([good] if checked.profile else []),
        ],
    }


def _change_lines(changes: Sequence[Change]) -> list[str]:
    from torra.profiles.fields import shown  # noqa: PLC0415

    return [
        f"{item.name}: {shown(item.before)} -> {shown(item.after)}"
        + (f"   ({item.way})" if item.way in ("loosens", "tightens") else "")
        for item in changes
    ]


def _answer(document: dict[str, Any], as_json: bool) -> None:
    lines = document.pop("table")
    if as_json:
        print_json(document)
    else:
        say("\n".join(lines))
