"""`torra lessons` and `torra lessons show SID`: what closed trades taught, and one of the lessons.

Both read the database and change nothing; a home without one stays without one. `--ask` of `torra
lessons show` alone asks a model, and books it under the ceiling of the trade's profile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from instance_database import Database
from torra.commands.answer import CommandAnswer, answering, open_database
from torra.commands.options import ANY_FILE, MOST_ROWS, SpelledGroup, flag, number
from torra.config import DeskSettings, load_desk
from torra.dashboard.trade import lessons as page
from torra.errors import ConfigError, TorraError
from torra.exhibits import lesson_words, report
from torra.home import has_database
from torra.lessons.lesson import Lesson
from torra.money.book import known_currencies
from torra.money.open_positions import PAPER
from torra.store import lessons as lesson_table

AT_ONCE: Final = 500
"""Lessons that an export reads at once."""


@click.group("lessons", cls=SpelledGroup, invoke_without_command=True)
@click.option("--search", default="", help="Words, or their beginnings, that must all stand in it.")
@click.option("--symbol", help="Only this symbol.")
@click.option(
    "--side", type=click.Choice(("LONG", "SHORT"), case_sensitive=False), help="Only of this one."
)
@click.option("--outcome", type=click.Choice(("win", "loss", "scratch")), help="Only of this one.")
@click.option("--kind", type=click.Choice(("trade", "vetoed")), help="Trades, or vetoed openings.")
@click.option("--author", help="Only those of which this author wrote: rules, or a model.")
@number("--limit", 20, 1, MOST_ROWS)
@click.option(
    "--export",
    type=ANY_FILE,
    help="Write all of them to this file, one JSON object a line.",
)
@answering
def lessons(
    home: Path, /, search: str, limit: int, export: Path | None, **options: str | None
) -> CommandAnswer:
    """List what closed trades and vetoed openings taught, newest first."""
    only = {name: value for name, value in options.items() if value}
    with open_database(home) as database:
        if export is not None:
            count = _exported(database, only, search, export)
            lines = "1 lesson" if count == 1 else f"{count:,} lessons"
            return CommandAnswer({"file": str(export), "lessons": count}, f"{lines} in {export}.")
        rows = lesson_table.lesson_list(database, only, search=search, limit=limit + 1)
        older, rows = len(rows) > limit, rows[:limit]
        document = page.document(database, rows, rows[-1].number if older else None)
    count = document["stored"]
    text = lesson_words.table(
        rows, [row["number"] for row in document["lessons"] if row["warm_up"]]
    )
    if not rows and count and (only or search):
        text = f"No lesson is like that; {count:,} are stored."
    elif len(rows) == limit and count > limit:
        text += f"\n\n{limit} are shown; {count:,} are stored: --limit shows more."
    return CommandAnswer(document, text)


@lessons.command("show")
@click.argument("sid")
@flag("--ask", "Ask a model now what it says of the trade; it costs.")
@answering
def show(home: Path, /, sid: str, ask: bool) -> CommandAnswer:
    """Show the lesson of a closed trade: its facts, and what each author wrote of it."""
    settings = load_desk(home)
    if not has_database(home):
        raise ConfigError("no desk has run here yet, so no trade has closed: `torra run`")
    with open_database(home) as database:
        lesson = lesson_of(database, sid)
        if ask:
            lesson = ask_model(home, settings, database, lesson)
        row = database.signal(lesson.facts.sid)
        accounts = known_currencies(database, settings.paper_currency)
        currency = accounts.get(row["bridge"] or PAPER, "") if row else ""
        ticks = lesson_table.lesson_ticks(database, lesson.number, lesson_words.MOST_TICKS + 1)
        (document,) = page.document(database, [lesson], None)["lessons"]
    return CommandAnswer(
        {**document, "ticks": ticks},
        lesson_words.whole(lesson, currency, ticks, warm_up=document["warm_up"]),
    )


def lesson_of(database: Database, sid: str) -> Lesson:
    """Return the lesson of a trade or of a vetoed opening; raises ConfigError that says why not."""
    lesson = database.lesson(sid) or database.lesson(sid, "vetoed")
    if lesson is not None:
        return lesson
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
    from torra.desk.memory.reviews import ask_now  # noqa: PLC0415  models cost half a second

    review = ask_now(home, database, settings.instances, lesson, dict(os.environ))
    if review.words is None:
        error = TorraError if review.status else ConfigError
        raise error(f"no model wrote of {lesson.facts.sid}: {review.why}")
    return lesson_of(database, lesson.facts.sid)


# --- details --------------------------------------------------------------------------------------


def _exported(database: Database, only: Mapping[str, str], search: str, path: Path) -> int:
    """Write every lesson of a filter to a file, newest first, and return how many."""
    rows: list[dict[str, Any]] = []
    before: int | None = None
    while part := lesson_table.lesson_list(
        database, only, search=search, before=before, limit=AT_ONCE
    ):
        rows += page.document(database, part, None)["lessons"]
        before = part[-1].number
    report.put(path, "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows))
    return len(rows)
