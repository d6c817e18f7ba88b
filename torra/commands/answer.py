"""The one way in which commands answer: a text by default, one JSON document with --json.

A command returns its `CommandAnswer`; `answering` gives it the home and --json, prints what was
asked for and ends with the exit code. --json before a subcommand counts for the subcommand too.

An error ends in one line on standard error, of at most LONGEST_TEXT characters: what a person
wrote, or a file holds, may be without end. Exit code 2: a mistake that a person can mend, or data
that is not there. Exit code 1: every other TorraError. Any other exception is a defect of the
program and passes through.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click

from torra.commands.terminal import say
from torra.errors import ConfigError, DataUnavailable, TorraError, bounded
from torra.harmless_text import escaped
from torra.home import has_database

if TYPE_CHECKING:
    from instance_database import Database
    from torra.dashboard.view.backing import PageContext


P = ParamSpec("P")
R = TypeVar("R")

SHOWN: Final = 40
"""Characters of a word that can name nothing which are shown."""


def one_line(text: str) -> str:
    """Return an error's text as the line that is shown: of a longer one beginning and end."""
    line = " ".join(part for part in map(str.strip, text.splitlines()) if part)
    return bounded(f"torra: {escaped(line)}")  # here: an escape is longer than what it stands for


def no_name(error: Exception) -> str:
    """Say that a word of the command can name nothing; "" for every other error."""
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object[:SHOWN]!r} holds half a character: write it anew"
    if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        return f"{error.filename or 'a word of the command'}: {error.strerror}: give another name"
    return ""


def plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn Torra's exceptions into one line and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TorraError as error:
            say(one_line(str(error)), err=True)
            sys.exit(2 if isinstance(error, (ConfigError, DataUnavailable)) else 1)
        except (ValueError, OSError) as error:
            if not (why := no_name(error)):
                raise
            say(one_line(why), err=True)
            sys.exit(2)

    return run


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The result of a command. `text` is for a terminal, whole or in lines, or makes it."""

    document: Any
    text: str | Iterable[str] | Callable[[Any], str]
    exit_code: int = 0


def answering_with(
    meaning: str,
) -> Callable[[Callable[..., CommandAnswer]], Callable[..., None]]:
    """Return what gives a command its home and --json, and prints its answer.

    `meaning` is the help of --json. The command of a group is not run where a subcommand is.
    """

    def decorate(command: Callable[..., CommandAnswer]) -> Callable[..., None]:
        @click.option("--json", "as_json", is_flag=True, help=meaning)
        @click.pass_context
        @plainly
        @wraps(command)
        def run(context: click.Context, /, as_json: bool, **options: Any) -> None:
            del as_json
            if context.invoked_subcommand is not None:
                return
            answer = command(context.obj, **options)
            if wants_json():
                say(json.dumps(answer.document, ensure_ascii=False, allow_nan=False, indent=2))
            else:
                text = answer.text(answer.document) if callable(answer.text) else answer.text
                say(text if isinstance(text, str) else "\n".join(text))
            if answer.exit_code:
                sys.exit(answer.exit_code)

        return run

    return decorate


answering = answering_with("Print one JSON document.")


def wants_json() -> bool:
    """Return whether the command that runs, or a group that it belongs to, was given --json."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.params.get("as_json"):
            return True
        context = context.parent
    return False


@contextmanager
def open_database(home: Path) -> Iterator[Database]:
    """Lend the database of a home. One without any stays so: it is read as if it were empty.

    Raises ConfigError for a broken desk.json.
    """
    from instance_database import open_home  # noqa: PLC0415  pydantic costs a tenth of a second
    from torra.config import load_desk  # noqa: PLC0415

    with ExitStack() as stack:
        if not has_database(home):
            load_desk(home)
            home = Path(stack.enter_context(TemporaryDirectory()))
        yield stack.enter_context(closing(open_home(home)))


@contextmanager
def open_desk(home: Path, *, profiles: bool = False) -> Iterator[PageContext]:
    """Lend a home as its pages see it.

    Raises ConfigError for a broken desk.json, and with `profiles` for a broken profile file of a
    desk that has run.
    """
    from torra.dashboard.view.backing import context_of  # noqa: PLC0415
    from torra.desk.looking_desk import check_profiles, looking_desk  # noqa: PLC0415

    with open_database(home) as database:
        desk = looking_desk(home, database)
        if profiles and has_database(home):
            check_profiles(desk)
        yield context_of(desk)
