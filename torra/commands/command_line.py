"""The `torra` command: a readable table by default, one JSON document with --json.

A mistake of the user ends in one clear line on standard error and exit code 2, a broken database in
exit code 1; neither shows a traceback. commands.csv has the commands in the order and under the
heads of the help, each with the module that is imported when the command is used: so `torra --help`
answers at once.
"""

from __future__ import annotations

import csv
import sys
from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import click

from torra.commands import terminal
from torra.commands.answer import one_line, plainly
from torra.commands.options import SpelledGroup
from torra.commands.terminal import say
from torra.imports import importing
from torra.own_names import check_names
from torra.regular_files import lies

with Path(__file__).with_name("commands.csv").open(encoding="utf-8", newline="") as _lines:
    ROWS: Final = tuple(csv.DictReader(_lines))

CHAPTERS: Final = {
    head: tuple((row["command"], row["sentence"]) for row in rows)
    for head, rows in groupby(ROWS, itemgetter("chapter"))
}
"""The commands under the heads of the help, each with its sentence."""


class LazyCommands(UserDict[str, Any]):
    """Commands by their names. A module's name in place of one is imported when that is wanted."""

    def __getitem__(self, key: str) -> click.Command:
        """Return a command; raises KeyError where there is none, ConfigError where none can be."""
        command = self.data[key]
        if isinstance(command, click.Command):
            return command
        check_names()
        with importing():
            module = import_module(f"torra.commands.{command}")
        parts = (part for part in vars(module).values() if isinstance(part, click.Command))
        self.data[key] = next(part for part in parts if part.name == key)
        return self[key]


class ChapterGroup(SpelledGroup):
    """A group whose usage errors are one line, like every other mistake."""

    def chapters(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Return the commands of the table: none of them is imported."""
        return CHAPTERS

    @plainly
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run and end with the exit code; of a usage error it is 2."""
        # click's own standalone mode would print its usage errors in several lines.
        run: Callable[..., Any] = super().main
        try:
            run(*args, **kwargs, standalone_mode=False)
        except click.exceptions.NoArgsIsHelpError as error:
            say(error.format_message())  # nothing was asked for and nothing is wrong
        except click.ClickException as error:
            say(one_line(_usage_line(error)), err=True)
            sys.exit(2)
        except click.Abort:
            # 128 + SIGINT, as a shell reports Ctrl-C.
            sys.exit(130)
        sys.exit(0)


def _usage_line(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{text} (see {context.command_path} --help)" if context else text


def _place(path: Path) -> Path:
    """Return the home that was named; raises click.BadParameter for what can be no folder."""
    try:
        home = path.expanduser()
        lies(home)
    # ValueError: a name that no file can have.
    except (RuntimeError, ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        why = f"there is no user {path.parts[0]}" if isinstance(error, RuntimeError) else why
        raise click.BadParameter(
            f"{path} can be no home: {why}; set TORRA_HOME or --home to a folder"
        ) from error
    return home


@click.group(
    cls=ChapterGroup,
    commands=LazyCommands({row["command"]: row["module"] for row in ROWS}),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="torra", prog_name="torra")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="TORRA_HOME",
    default=Path("torra_home"),
    show_default=True,
    help="Where the desk keeps everything that it writes.",
)
@click.pass_context
def main(context: click.Context, home: Path) -> None:
    """Torra: a debated trading score for MetaTrader 5. Paper trading by default."""
    terminal.escape_warnings()
    context.obj = _place(home)


if __name__ == "__main__":
    main()
