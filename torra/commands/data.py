"""`torra data`: which numbers from beside the chart are known, since when, and from where.

`torra data import FILE` reads a table of one's own into the store, whole or not at all; `torra
data check FILE` only says what stands in it. `torra calendar FILE` adds the events of a public
calendar to one of the home, where what was added before stays. A mistake is one line and exit code
2, and nothing is stored. torra.commands.data_answers has what they do.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from torra.commands.answer import CommandAnswer, answering
from torra.commands.options import ANY_PATH, SpelledGroup, flag

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
@answering
def data(home: Path, /) -> CommandAnswer:
    """Show the numbers from beside the chart, since when they are known; of a NAME its values.

    NAME is a series, such as DGS2, or a company's ticker, such as AAPL.
    """
    from torra.commands import data_answers  # noqa: PLC0415

    return data_answers.overview(home)


@click.command("show")
@click.argument("name")
@answering
def show(home: Path, /, name: str) -> CommandAnswer:
    """Show the newest values of a series, as they were known."""
    from torra.commands import data_answers  # noqa: PLC0415

    return data_answers.series(home, name)


@click.command("company")
@click.argument("ticker")
@answering
def company(home: Path, /, ticker: str) -> CommandAnswer:
    """Show what a company's newest report comes to, and the figures that it is made of."""
    from torra.commands import data_answers  # noqa: PLC0415

    return data_answers.company(home, ticker)


@data.command("check")
@click.argument("file", type=ANY_PATH)
@name_option
@answering
def check(_home: Path, /, file: Path, name: str) -> CommandAnswer:
    """Say what stands in a file of series or company figures; store nothing."""
    from torra.commands import data_answers  # noqa: PLC0415

    return data_answers.check(file, name)


@data.command("import")
@click.argument("file", type=ANY_PATH)
@flag("--skip-faults", "Leave out the lines that cannot be read.")
@name_option
@answering
def import_file(home: Path, /, file: Path, skip_faults: bool, name: str) -> CommandAnswer:
    """Store a file of series or company figures; a line with a fault stores nothing at all."""
    from torra.commands import data_answers  # noqa: PLC0415

    return data_answers.import_file(home, file, name, skip_faults=skip_faults)


@click.command("calendar")
@click.argument("file", type=ANY_PATH)
@click.option("--clock", default="", help="Clock of times without a zone, as torra import has it.")
@click.option(
    "--into", default="events.csv", show_default=True, help="Calendar of the home, in CSV."
)
@answering
def calendar(home: Path, /, file: Path, clock: str, into: str) -> CommandAnswer:
    """Add the events of a public calendar to a calendar of the home."""
    from torra.commands import data_answers  # noqa: PLC0415

    return data_answers.calendar(home, file, clock, into)
