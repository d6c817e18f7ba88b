"""`torra lessons` and `torra lessons show SID`: what closed trades taught, and one of the lessons.

Both read the database and change nothing; a home without one stays without one. `--ask` of `torra
lessons show` alone asks a model, and books it under the ceiling of the trade's profile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import SpelledGroup, print_json
from torra.commands.terminal import say
from torra.errors import ConfigError, TorraError
from torra.home import DATABASE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instance_database import Database
    from torra.config import DeskSettings
    from torra.lessons.lesson import Lesson

AT_ONCE: Final = 500
"""Lessons that an export reads at once."""

MOST: Final = 1_000

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group("lessons", cls=SpelledGroup, invoke_without_command=True)
@click.option("--search", default="", help="Words, or their beginnings, that must all stand in it.")
@click.option("--symbol", help="Only this symbol.")
@click.option(
    "--side", type=click.Choice(("LONG", "SHORT"), case_sensitive=False), help="Only of this one."
)
@click.option("--outcome", type=click.Choice(("win", "loss", "scratch")), help="Only of this one.")
@click.option("--kind", type=click.Choice(("trade", "vetoed")), help="Trades, or vetoed openings.")
@click.option("--author", help="Only those of which this author wrote: rules, or a model.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, MOST))
@click.option(
    "--export",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write all of them to this file, one JSON object a line.",
)
@as_json_option
@click.pass_context
@plainly
def lessons(
    context: click.Context, /, search: str, limit: int, export: Path | None, as_json: bool,
    **only: str | None,
) -> None:  # fmt: skip
    """List what closed trades and vetoed openings taught, newest first."""
    from torra.store import lessons as lesson_table  # noqa: PLC0415

    if context.invoked_subcommand is not None:
        return
    home: Path = context.obj
    from torra.exhibits import lesson_words  # noqa: PLC0415

    narrowed = {name: value for name, value in only.items() if value}
    asked = bool(narrowed or search)
    with stored(home) as database:
        if export is not None:
            _say_exported(_exported(database, narrowed, search, export), export, as_json=as_json)
            return
        found = [] if database is None else _listed(database, narrowed, search, limit)
        count = 0 if database is None else lesson_table.lesson_count(database)
        warmed = set() if database is None else _warmed(database, found)
    if as_json:
        told = [lesson_words.as_json(one, warm_up=one.number in warmed) for one in found]
        print_json({"lessons": told, "stored": count})
    elif asked and count and not found:
        say(f"No lesson is like that; {count:,} are stored.")
    else:
        say(lesson_words.table(found, warmed))
        if len(found) == limit and count > limit:
            say(f"\n{limit} are shown; {count:,} are stored: --limit shows more.")


@lessons.command("show")
@click.argument("sid")
@click.option("--ask", is_flag=True, help="Ask a model now what it says of the trade; it costs.")
@as_json_option
@click.pass_obj
@plainly
def show(home: Path, /, sid: str, ask: bool, as_json: bool) -> None:
    """Show the lesson of a closed trade: its facts, and what each author wrote of it."""
    from torra.config import load_desk  # noqa: PLC0415
    from torra.exhibits import lesson_words  # noqa: PLC0415
    from torra.store import lessons as lesson_table  # noqa: PLC0415

    settings = load_desk(home)
    with stored(home) as database:
        if database is None:
            raise ConfigError("no desk has run here yet, so no trade has closed: `torra run`")
        lesson = lesson_of(database, sid)
        if ask:
            lesson = ask_model(home, settings, database, lesson)
        currency = _currency(database, settings, lesson)
        ticks = lesson_table.lesson_ticks(database, lesson.number, lesson_words.MOST_TICKS + 1)
        warm_up = lesson.number in _warmed(database, [lesson])
    if as_json:
        print_json({**lesson_words.as_json(lesson, warm_up=warm_up), "ticks": ticks})
    else:
        say(lesson_words.whole(lesson, currency, ticks, warm_up=warm_up))


def lesson_of(database: Database, sid: str) -> Lesson:
    """Return the lesson of a trade or of a vetoed opening; raises ConfigError that says why not."""
    known = database.lesson(sid) or database.lesson(sid, "vetoed")
    if known is not None:
        return known
    row = database.signal(sid)
    if row is None:
        raise ConfigError(
            f"there is no trade {sid}: `torra lessons` lists those with a lesson, `torra signals` "
            "the newest orders"
        )
    if row["kind"] != "open":
        of = row["closes"] or "an opening"
        raise ConfigError(f"{sid} is no opening: a lesson belongs to its opening, {of}")
    if row["state"] == "CLOSED":
        raise ConfigError(f"{sid} has no lesson: its evidence was invented")
    raise ConfigError(
        f"{sid} has no lesson yet: it is {row['state']}, and a lesson is written when a trade ends"
    )


def ask_model(home: Path, settings: DeskSettings, database: Database, lesson: Lesson) -> Lesson:
    """Ask a model about a closed trade now; return the lesson with what it said.

    Raises ConfigError where none may be asked, TorraError where none brought words.
    """
    from torra.desk.memory.now import ask_now  # noqa: PLC0415

    found = ask_now(home, database, settings.instances, lesson, dict(os.environ))
    if found.words is None:
        error = TorraError if found.status else ConfigError
        raise error(f"no model wrote of {lesson.facts.sid}: {found.why}")
    return lesson_of(database, lesson.facts.sid)


# --- details --------------------------------------------------------------------------------------


@contextmanager
def stored(home: Path) -> Iterator[Database | None]:
    """Lend the database of a home; None where there is none."""
    if not (home / DATABASE).is_file():
        yield None
        return
    from instance_database import open_home  # noqa: PLC0415

    database = open_home(home)
    try:
        yield database
    finally:
        database.close()


def _listed(
    database: Database, only: Mapping[str, str], search: str, limit: int, before: int | None = None
) -> list[Lesson]:
    from torra.store import lessons as lesson_table  # noqa: PLC0415

    return lesson_table.lesson_list(database, only, search=search, before=before, limit=limit)


def _exported(database: Database | None, only: Mapping[str, str], search: str, path: Path) -> int:
    """Write every lesson of a filter to a file, newest first, and return how many."""
    from torra.exhibits import lesson_words, report  # noqa: PLC0415

    lines: list[str] = []
    before: int | None = None
    while database is not None:
        found = _listed(database, only, search, AT_ONCE, before)
        warmed = _warmed(database, found)
        told = [lesson_words.as_json(one, warm_up=one.number in warmed) for one in found]
        lines += [json.dumps(one, allow_nan=False) for one in told]
        if len(found) < AT_ONCE:
            break
        before = found[-1].number
    report.put(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def _say_exported(count: int, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(path), "lessons": count})
    else:
        say(f"{'1 lesson' if count == 1 else f'{count:,} lessons'} in {path}.")


def _warmed(database: Database, found: Sequence[Lesson]) -> set[int]:
    """Return the numbers of those whose opening was decided in warm-up."""
    from torra.clock import duration  # noqa: PLC0415
    from torra.store.standings import WarmUps  # noqa: PLC0415

    warm_ups = WarmUps(database)
    return {
        one.number
        for one in found
        for facts in (one.facts,)
        if warm_ups.has(facts.instance, facts.timeframe, facts.bar_time + duration(facts.timeframe))
    }


def _currency(database: Database, settings: DeskSettings, lesson: Lesson) -> str:
    """Return the currency of the account of a trade; "" where it is not known."""
    from torra.money.book import known_currencies  # noqa: PLC0415
    from torra.money.open_positions import PAPER  # noqa: PLC0415

    row = database.signal(lesson.facts.sid)
    if row is None:
        return ""
    known = known_currencies(database, settings.paper_currency)
    return known.get(row["bridge"] or PAPER, "")
