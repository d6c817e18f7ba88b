"""`torra profile`: show, compare, check, set, try and undo a profile from the command line.

The commands use the same book as the pages (torra.profiles.book), without the pages' limits: a
person at the desk's own machine may loosen what guards the account. A terminal asks first, anything
else needs --yes, and the change goes on record with the actor "command line". A running desk takes
it at its next start, or when an administrator tells it to on the page of the profile. A mistake is
one line and exit code 2. torra.commands.profile_answers has what they do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torra.commands.answer import CommandAnswer, answering
from torra.commands.options import ANY_PATH, SpelledGroup, flag


@click.group("profile", cls=SpelledGroup)
def profile() -> None:
    """Show and change the settings of an instance."""


yes_option = flag("--yes", "Do not ask before loosening.")


@profile.command()
@click.argument("name", required=False)
@answering
def show(home: Path, /, name: str | None) -> CommandAnswer:
    """Show every profile, or every setting of one."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.profile(home, name) if name else profile_answers.profiles(home)


@profile.command()
@click.argument("name")
@click.argument("other", required=False)
@answering
def diff(home: Path, /, name: str, other: str | None) -> CommandAnswer:
    """Show how a profile differs from the default, another one, or an entry of its history."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.diff(home, name, other)


# A value after its place may be negative, and -0.5 is no option.
@profile.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("pairs", nargs=-1, metavar="PLACE=VALUE...")
@click.option("--unset", multiple=True, metavar="PLACE", help="Take an entry out.")
@yes_option
@answering
def set_values(home: Path, /, **words: Any) -> CommandAnswer:
    """Change settings, such as risk.max_positions=2; a list or an object is JSON."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.set_values(home, **words)


@profile.command()
@click.argument("name")
@click.argument("file", type=ANY_PATH, required=False)
@answering
def check(home: Path, /, name: str, file: Path | None) -> CommandAnswer:
    """Check a profile, or a FILE that is to become it; exit 1 when it has faults."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.check(home, name, file)


@profile.command()
@click.argument("name")
@answering
def history(home: Path, /, name: str) -> CommandAnswer:
    """Show the newest 50 states of a profile, the newest first."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.history(home, name)


@profile.command()
@click.argument("name")
@click.argument("number", type=click.IntRange(1))
@yes_option
@answering
def undo(home: Path, /, name: str, number: int, yes: bool) -> CommandAnswer:
    """Put an entry of the history back, as a new one."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.undo(home, name, number, yes=yes)


@profile.command("try")
@click.argument("name")
@click.argument("pairs", nargs=-1, metavar="[PLACE=VALUE]...")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=30,
    show_default=True,
    help="How many days of stored bars are run.",
)
@answering
def try_settings(home: Path, /, name: str, pairs: tuple[str, ...], days: int) -> CommandAnswer:
    """Run settings over the desk's stored bars: trades, result, deepest fall. Nothing is saved."""
    from torra.commands import profile_answers  # noqa: PLC0415

    return profile_answers.try_settings(home, name, pairs, days)
