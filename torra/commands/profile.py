"""`torra profile`: show, compare, check, set, try and undo a profile from the command line.

The commands use the same book as the pages (torra.profiles.book), without the pages' limits: a
person at the desk's own machine may loosen what guards the account. A terminal asks first, anything
else needs --yes, and the change goes on record with the actor "command line". A running desk takes
it at its next start, or when an administrator tells it to on the page of the profile. A mistake is
one line and exit code 2. torra.commands.profile_answers has what they do.
"""

from __future__ import annotations

import click

from torra.commands.answer import answered_in
from torra.commands.options import ANY_PATH, SpelledGroup, flag, number


@click.group("profile", cls=SpelledGroup)
def profile() -> None:
    """Show and change the settings of an instance."""


answered = answered_in("torra.commands.profile_answers")
name_argument = click.argument("name")
yes_option = flag("--yes", "Do not ask before loosening.")


@profile.command()
@click.argument("name", required=False)
@answered
def show() -> None:
    """Show every profile, or every setting of one."""


@profile.command()
@name_argument
@click.argument("other", required=False)
@answered
def diff() -> None:
    """Show how a profile differs from the default, another one, or an entry of its history."""


# A value after its place may be negative, and -0.5 is no option.
@profile.command("set", context_settings={"ignore_unknown_options": True})
@name_argument
@click.argument("pairs", nargs=-1, metavar="PLACE=VALUE...")
@click.option("--unset", multiple=True, metavar="PLACE", help="Take an entry out.")
@yes_option
@answered
def set_values() -> None:
    """Change settings, such as risk.max_positions=2; a list or an object is JSON."""


@profile.command()
@name_argument
@click.argument("file", type=ANY_PATH, required=False)
@answered
def check() -> None:
    """Check a profile, or a FILE that is to become it; exit 1 when it has faults."""


@profile.command()
@name_argument
@answered
def history() -> None:
    """Show the newest 50 states of a profile, the newest first."""


@profile.command()
@name_argument
@click.argument("number", type=click.IntRange(1))
@yes_option
@answered
def undo() -> None:
    """Put an entry of the history back, as a new one."""


@profile.command("try")
@name_argument
@click.argument("pairs", nargs=-1, metavar="[PLACE=VALUE]...")
@number("--days", 30, 1, 366, "How many days of stored bars are run.")
@answered
def try_settings() -> None:
    """Run settings over the desk's stored bars: trades, result, deepest fall. Nothing is saved."""
