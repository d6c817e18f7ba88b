"""`torra jobs`: the work that was asked for from the pages, and how to cancel it."""

from __future__ import annotations

from pathlib import Path

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import print_json
from torra.commands.terminal import say


@click.command()
@click.option("--cancel", "number", type=click.IntRange(1), metavar="ID", help="Cancel this job.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
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
