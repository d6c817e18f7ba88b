"""`torra symbols`, `torra ticks` and `torra jobs`: what a desk watches, has decided and works at.

The first two change nothing; a home without a database stays without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from torra.commands.answer import Answer, answering, stored
from torra.commands.lessons import MOST
from torra.commands.terminal import columns

TICK: Final = ("close_time", "verdict", "consensus", "action", "reason")


@click.command()
@answering
def symbols(home: Path, /) -> Answer:
    """List the streams that the desk watches, with their newest stored bar."""
    from torra.config import load_desk  # noqa: PLC0415

    with stored(home) as database:
        rows = [
            {
                "symbol": instance.id,
                "timeframe": name,
                "feed": instance.feed,
                "profile": instance.profile,
                "newest_bar": ((database and database.bar_span(instance.id, name)) or [None])[-1],
            }
            for instance in load_desk(home).instances
            for name in instance.timeframes
        ]
    return Answer(rows, _table)


@click.command()
@click.argument("symbol", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, MOST))
@answering
def ticks(home: Path, /, symbol: str | None, limit: int) -> Answer:
    """List the newest ticks of the desk, or of a SYMBOL, newest first."""
    from torra.config import load_desk  # noqa: PLC0415

    desk = load_desk(home)
    instances = desk.instances
    if symbol is not None:
        known = any(symbol in (instance.id, instance.symbol) for instance in instances)
        instances = (desk.instance(symbol if known else symbol.upper()),)
    with stored(home) as database:
        rows = [
            {"symbol": instance.id, "timeframe": name} | {part: row[part] for part in TICK}
            for instance in instances
            for name in instance.timeframes
            for row in (database.told_ticks(instance.id, name, limit) if database else ())
        ]
    rows.sort(key=lambda row: str(row["close_time"]), reverse=True)
    return Answer(rows[:limit], _table)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [["-" if value in (None, "") else str(value) for value in row.values()] for row in rows]
    return "\n".join(columns([*rows[:1], *cells])) or "No tick is stored: `torra run` runs them."


@click.command()
@click.option("--cancel", "number", type=click.IntRange(1), metavar="ID", help="Cancel this job.")
@answering
def jobs(home: Path, /, number: int | None) -> Answer:
    """Show the jobs of the desk, newest first, or cancel one."""
    from torra.jobs import asking  # noqa: PLC0415

    if number is None:
        return Answer(asking.listed(home), asking.table)
    return Answer(asking.cancelled(home, number), asking.cancelled_line)
