"""`torra symbols`, `ticks`, `results`, `jobs`, `models`, `notices`: what a desk watches and knows.

All but the tests of `models` and `notices` change nothing; a home without a database stays without
one. Addresses of notices are in no output: a way out is called by its number and its scheme.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from torra.clock import System
from torra.commands.answer import CommandAnswer, answering, open_database, open_desk
from torra.commands.options import MOST_ROWS, SpelledGroup, number
from torra.config import load_desk
from torra.exhibits.numbers import aligned
from torra.home import has_database
from torra.notices import listing
from torra.store import bars as bar_table
from torra.store import tick_queries

NONE_SET: Final = (
    "No service is set: put addresses into TORRA_NOTICE_URLS, as docs/notices.md shows. Pages show "
    "notices without any."
)

TICK: Final = ("close_time", "verdict", "consensus", "action", "reason")


@click.command()
@answering
def symbols(home: Path, /) -> CommandAnswer:
    """List the streams that the desk watches, with their newest stored bar."""
    with open_database(home) as database:
        rows = [
            {
                "symbol": instance.id,
                "timeframe": name,
                "feed": instance.feed,
                "profile": instance.profile,
                "newest_bar": (bar_table.bar_span(database, instance.id, name) or [None])[-1],
            }
            for instance in load_desk(home).instances
            for name in instance.timeframes
        ]
    return CommandAnswer(rows, _table)


@click.command()
@click.argument("symbol", required=False)
@number("--limit", 20, 1, MOST_ROWS)
@answering
def ticks(home: Path, /, symbol: str | None, limit: int) -> CommandAnswer:
    """List the newest ticks of the desk, or of a SYMBOL, newest first."""
    desk = load_desk(home)
    instances = desk.instances
    if symbol is not None:
        is_named = any(symbol in (instance.id, instance.symbol) for instance in instances)
        instances = (desk.instance(symbol if is_named else symbol.upper()),)
    with open_database(home) as database:
        rows = [
            {"symbol": instance.id, "timeframe": name} | {part: row[part] for part in TICK}
            for instance in instances
            for name in instance.timeframes
            for row in tick_queries.tick_summaries(database, instance.id, name, limit)
        ]
    rows.sort(key=lambda row: str(row["close_time"]), reverse=True)
    return CommandAnswer(rows[:limit], _table)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [["-" if value in (None, "") else str(value) for value in row.values()] for row in rows]
    return (
        "\n".join(aligned([*map(list, rows[:1]), *cells]))
        or "No tick is stored: `torra run` runs them."
    )


@click.command()
@click.option("--cancel", "job", type=click.IntRange(1), metavar="ID", help="Cancel this job.")
@answering
def jobs(home: Path, /, job: int | None) -> CommandAnswer:
    """Show the jobs of the desk, newest first, or cancel one."""
    from torra.jobs import asking  # noqa: PLC0415

    if job is None:
        with open_database(home) as database:
            return CommandAnswer(asking.document(database), asking.table)
    return CommandAnswer(asking.cancelled(home, job), asking.cancelled_line)


@click.command()
@answering
def results(home: Path, /) -> CommandAnswer:
    """Show what the desk's trades won and lost: today, by symbol, side, reason and day."""
    from torra.exhibits import money as words  # noqa: PLC0415
    from torra.money.book import Money  # noqa: PLC0415

    with open_desk(home) as desk:
        if has_database(home):
            money = desk.money()
            return CommandAnswer(money.as_json(), words.table(money))
        nothing = Money(desk.now(), (), 0.0, ())
    text = "No desk has run here yet, so there is no trade: start one with `torra run`."
    return CommandAnswer(nothing.as_json(), text)


@click.command()
@click.option(
    "--test", "vendor", metavar="VENDOR", help="Ask this vendor, or VENDOR:MODEL, one question."
)
@answering
def models(home: Path, /, vendor: str | None) -> CommandAnswer:
    """Show keys, models, prices and cost by vendor; --test asks one question, exit 1 if in vain."""
    from torra.dashboard.settings import models as page  # noqa: PLC0415
    from torra.desk.models import question as model_question  # noqa: PLC0415
    from torra.desk.models import report as model_report  # noqa: PLC0415

    if vendor is None:
        with open_desk(home, profiles=True) as desk:
            return CommandAnswer(page.document(desk), model_report.table)
    reply = model_question.run(home, vendor, dict(os.environ))
    return CommandAnswer(reply.document(), reply.line(), int(not reply.ok))


@click.command()
@click.option("--profile", help="Only this profile.")
@answering
def cost(home: Path, profile: str | None) -> CommandAnswer:
    """Show what models have cost, and what is left of each profile's hour."""
    from torra.dashboard.screens import costs as page  # noqa: PLC0415
    from torra.desk import costs  # noqa: PLC0415

    with open_desk(home, profiles=True) as desk:
        return CommandAnswer(page.document(desk, profile), costs.table)


@click.command()
@answering
def doctor(home: Path) -> CommandAnswer:
    """Check the machine, the settings and the database; exit 1 when something must be mended."""
    from torra.desk.checks import table  # noqa: PLC0415

    document = table.document(table.doctor(home))
    return CommandAnswer(document, table.table, int(document["status"] == "alert"))


@click.group(cls=SpelledGroup, invoke_without_command=True)
@number("--limit", listing.ROWS, 1, 2000)
@answering
def notices(home: Path, /, limit: int) -> CommandAnswer:
    """Show what was told to you, newest first, and whether it arrived."""
    with open_database(home) as database:
        return CommandAnswer(listing.document(database, limit=limit), listing.table)


@notices.command("test")
@answering
def test(home: Path, /) -> CommandAnswer:
    """Send a test to every service; exit 1 when one did not take it."""
    from torra.desk.wiring import open_notices  # noqa: PLC0415
    from torra.notices.protocol import Notice  # noqa: PLC0415
    from torra.notices.sending import LIMIT_SECONDS  # noqa: PLC0415
    from torra.notices.words import NoticeFormatter  # noqa: PLC0415

    services = open_notices(home, load_desk(home), dict(os.environ))
    now = System().real_now()
    notice = Notice("test", "test", "note", *NoticeFormatter().say("test", "Torra"), "", now, now)
    rows = listing.try_all(services, notice, LIMIT_SECONDS)
    lines = [
        f"{row['service']}: {'failed: ' + row['failed'] if row['failed'] else 'taken'}"
        for row in rows
    ]
    failed = any(row["failed"] for row in rows)
    return CommandAnswer({"services": rows}, lines or NONE_SET, int(failed))
