"""`torra results`: what the desk's own trades came to, in money and in R."""

from __future__ import annotations

from pathlib import Path

import click

from torra.clock import System
from torra.commands.answer import Answer, answering
from torra.home import DATABASE


@click.command()
@answering
def results(home: Path, /) -> Answer:
    """Show what the desk's trades won and lost: today, by symbol, side, reason and day."""
    from torra.config import load_desk  # noqa: PLC0415
    from torra.dashboard.view.looking_desk import look_at  # noqa: PLC0415
    from torra.exhibits import money as words  # noqa: PLC0415
    from torra.money import book  # noqa: PLC0415

    if not (home / DATABASE).is_file():
        # A home without a database stays without one.
        load_desk(home)
        nothing = book.Money(System().real_now(), (), 0.0, ())
        return Answer(
            nothing.as_json(),
            "No desk has run here yet, so there is no trade: start one with `torra run`.",
        )
    settings, database, desk = look_at(home)
    try:
        setups = [(one.instance, one.profile) for one in desk.setups.values()]
        money = book.MoneyBook(database, settings.paper_currency).money(setups, desk.clock.now())
    finally:
        database.close()
    return Answer(money.as_json(), words.table(money))
