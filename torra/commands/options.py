"""What several commands share, and what costs no import until it is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def several(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command several options, which help shows in this order."""

    def decorate(command: Command) -> Command:
        # A decorator that is applied last is shown first.
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def flag(name: str, meaning: str) -> Callable[[Command], Command]:
    """Return an option that is given or not; `meaning` is its line of the help."""
    return click.option(name, is_flag=True, help=meaning)


def number(
    name: str, usual: int, least: int, most: int | None, meaning: str = "", **more: Any
) -> Callable[[Command], Command]:
    """Return an option that takes a whole number between two, and shows the usual one."""
    kind = click.IntRange(least, most)
    return click.option(
        name, type=kind, default=usual, show_default=True, help=meaning or None, **more
    )


MOST_ROWS: Final = 1_000
"""Of a list that is shown."""

ANY_PATH: Final = click.Path(path_type=Path)
ANY_FILE: Final = click.Path(dir_okay=False, path_type=Path)
"""A path of whatever is there or is to be; a file, which need not be there."""

clock_option = click.option(
    "--clock",
    help="Clock of the file's times: utc, new_york+7 (most MT5 brokers), an offset such as +03:00 "
    "or a zone such as Europe/Athens. It is asked for where a file does not say it.",
)
"""The words of torra.market.broker_clock, which reads the name; the command gets it or None."""

leave_out_option = click.option(
    "--leave-out",
    default="",
    help="Bars of the files that are not taken: flat (filler without a trade), negative (a price "
    "of 0 or below), or both with a comma. The result says how many.",
)
"""torra.feeds.bar_file reads the kinds."""


class ModeName(click.ParamType[str]):
    """The name of a desk: a row of agent_config.MODES."""

    name = "mode"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; a click error that lists the modes for one that is none."""
        from agent_config import MODES  # noqa: PLC0415  pydantic costs a tenth of a second

        if value not in MODES:
            self.fail(f"{value!r} is no desk of agents; there are {', '.join(MODES)}", param, ctx)
        return str(value)


ONE_TICK: Final = (
    click.option("--bars", type=ANY_PATH, help="Take the bars from this file."),
    clock_option,
    click.option("--profile", help="Use this profile: a name or a file."),
    click.option("--mode", type=ModeName(), help="Which desk of agents (docs/agents.md)."),
    click.option("--provider", help="Who answers for the agents."),
)
"""Options of a command that runs a tick: whose bars, which profile, which agents."""

LONGEST_HELP: Final = 400
"""Characters of a command's sentence in a list of commands: none is cut short."""


class SpelledGroup(click.Group):
    """A group whose help has the whole first sentence of each command."""

    def chapters(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the commands under each head, each with its sentence."""
        rows = sorted(self.commands.items())
        return {"Commands": [(name, part.get_short_help_str(LONGEST_HELP)) for name, part in rows]}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, all names in columns of one width."""
        del ctx
        width = max(map(len, self.commands), default=0)
        for head, rows in self.chapters().items():
            with formatter.section(head):
                formatter.write_dl([(name.ljust(width), sentence) for name, sentence in rows])


def on_terminal() -> bool:
    """Return whether somebody sits at a terminal and can answer."""
    return sys.stdin is not None and sys.stdin.isatty()
