"""`torra symbols`, `torra ticks` and `torra jobs`: what a desk watches, has decided and works at.

The first two change nothing; a home without a database stays without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from torra.commands.cli_errors import plainly
from torra.commands.lessons import MOST, as_json_option, stored
from torra.commands.options import print_json
from torra.commands.terminal import say

TICK: Final = ("close_time", "verdict", "consensus", "action", "reason")


@click.command()
@as_json_option
@click.pass_obj
@plainly
def symbols(home: Path, /, as_json: bool) -> None:
    """List the streams that the desk watches, with their newest stored bar."""
    from torra.config import load_desk  # noqa: PLC0415
    from torra.store import bars as bar_table  # noqa: PLC0415

    with stored(home) as database:
        found = [
            {
                "symbol": one.id,
                "timeframe": name,
                "feed": one.feed,
                "profile": one.profile,
                "newest_bar": ((database and bar_table.bar_span(database, one.id, name)) or [None])[
                    -1
                ],
            }
            for one in load_desk(home).instances
            for name in one.timeframes
        ]
    _list(found, as_json)


@click.command()
@click.argument("symbol", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, MOST))
@as_json_option
@click.pass_obj
@plainly
def ticks(home: Path, /, symbol: str | None, limit: int, as_json: bool) -> None:
    """List the newest ticks of the desk, or of a SYMBOL, newest first."""
    from torra.config import load_desk  # noqa: PLC0415
    from torra.store import tick_queries  # noqa: PLC0415

    desk = load_desk(home)
    instances = desk.instances
    if symbol is not None:
        known = any(symbol in (one.id, one.symbol) for one in instances)
        instances = (desk.instance(symbol if known else symbol.upper()),)
    with stored(home) as database:
        found = [
            {"symbol": one.id, "timeframe": name} | {part: row[part] for part in TICK}
            for one in instances
            for name in one.timeframes
            for row in (tick_queries.told_ticks(database, one.id, name, limit) if database else ())
        ]
    found.sort(key=lambda row: str(row["close_time"]), reverse=True)
    _list(found[:limit], as_json)


def _list(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    lines = [*rows[:1], *([_text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    say("\n".join(table) or "No tick is stored: `torra run` runs them.")


def _text(value: object) -> str:
    return "-" if value in (None, "") else str(value)


@click.command()
@click.option("--cancel", "number", type=click.IntRange(1), metavar="ID", help="Cancel this job.")
@as_json_option
@click.pass_obj
@plainly
def jobs(home: Path, /, number: int | None, as_json: bool) -> None:
    """Show the jobs of the desk, newest first, or cancel one."""
    from torra.jobs import asking  # noqa: PLC0415

    found = asking.listed(home) if number is None else asking.cancelled(home, number)
    if as_json:
        print_json(found)
    else:
        say(asking.table(found) if number is None else asking.cancelled_line(found))
