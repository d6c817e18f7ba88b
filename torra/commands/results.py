"""`torra results`: what the desk's own trades came to, in money and in R."""

from __future__ import annotations

from pathlib import Path

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import print_json
from torra.commands.terminal import say
from torra.home import DATABASE


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
@plainly
def results(home: Path, /, as_json: bool) -> None:
    """Show what the desk's trades won and lost: today, by symbol, side, reason and day."""
    from torra.clock import System  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.dashboard.view.looking_desk import look_at  # noqa: PLC0415
    from torra.exhibits import money as words  # noqa: PLC0415
    from torra.money import book  # noqa: PLC0415

    if not (home / DATABASE).is_file():
        # A home without a database stays without one.
        load_desk(home)
        found = book.Money(System().real_now(), (), 0.0, ())
        told = "No desk has run here yet, so there is no trade: start one with `torra run`."
    else:
        settings, database, desk = look_at(home)
        try:
            setups = [(one.instance, one.profile) for one in desk.setups.values()]
            found = book.MoneyBook(database, settings.paper_currency).money(
                setups, desk.clock.now()
            )
        finally:
            database.close()
        told = words.table(found)
    if as_json:
        print_json(found.as_json())
    else:
        say(told)
