"""`torra data`: which numbers from beside the chart are known, since when, and from where.

`torra data import FILE` reads a table of one's own into the store, whole or not at all; `torra
data check FILE` only says what stands in it. `torra calendar FILE` adds the events of a public
calendar to one of the home, where what was added before stays. A mistake is one line and exit code
2, and nothing is stored. torra.commands.data_answers has what they do.
"""

from __future__ import annotations

import difflib

import click

from torra.commands.answer import answered_in
from torra.commands.options import ANY_PATH, SpelledGroup, flag

answered = answered_in("torra.commands.data_answers")
file_argument = click.argument("file", type=ANY_PATH)
name_option = click.option("--name", default="", help="Which series a publisher's file is.")


class SeriesGroup(SpelledGroup):
    """A group whose word that is no command is the name of a series, or a company's ticker."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word; of a series or a company the one that shows it."""
        from torra.evidence.outside_numbers import SERIES, series_of  # noqa: PLC0415
        from torra.trading_terms import TICKER  # noqa: PLC0415

        if args and args[0] not in self.commands:
            like = {name.lower(): name for name in SERIES}
            name = like.get(args[0].lower(), args[0])
            if series_of(name) is not None:
                return "show", show, [name, *args[1:]]
            ticker = args[0].upper()
            # A word that is nearly a command is a slip of the hand.
            slip = difflib.get_close_matches(args[0], self.commands, 1)
            if TICKER.fullmatch(ticker) and (ticker == args[0] or not slip):
                return "company", company, [ticker, *args[1:]]
        return super().resolve_command(ctx, args)


@click.group(cls=SeriesGroup, invoke_without_command=True, subcommand_metavar="[NAME | COMMAND]")
@answered
def data() -> None:
    """Show the numbers from beside the chart, since when they are known; of a NAME its values.

    NAME is a series, such as DGS2, or a company's ticker, such as AAPL.
    """


@click.command("show")
@click.argument("name")
@answered
def show() -> None:
    """Show the newest values of a series, as they were known."""


@click.command("company")
@click.argument("ticker")
@answered
def company() -> None:
    """Show what a company's newest report comes to, and the figures that it is made of."""


@data.command("check")
@file_argument
@name_option
@answered
def check() -> None:
    """Say what stands in a file of series or company figures; store nothing."""


@data.command("import")
@file_argument
@flag("--skip-faults", "Leave out the lines that cannot be read.")
@name_option
@answered
def import_file() -> None:
    """Store a file of series or company figures; a line with a fault stores nothing at all."""


@click.command("calendar")
@file_argument
@click.option("--clock", default="", help="Clock of times without a zone, as torra import has it.")
@click.option(
    "--into", default="events.csv", show_default=True, help="Calendar of the home, in CSV."
)
@answered
def calendar() -> None:
    """Add the events of a public calendar to a calendar of the home."""
