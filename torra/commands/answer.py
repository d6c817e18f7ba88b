"""The one way in which commands answer: a text by default, one JSON document with --json.

A command returns its `CommandAnswer`; `answering` gives it the home and --json, prints what was
asked for and ends with the exit code. --json before a subcommand counts for the subcommand too.
Errors end as torra.commands.cli_errors says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torra.commands.cli_errors import plainly
from torra.commands.terminal import say
from torra.home import DATABASE

if TYPE_CHECKING:
    from instance_database import Database


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The result of a command. `text` is for a terminal, or makes that of the document."""

    document: Any
    text: str | Callable[[Any], str]
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
                say(answer.text if isinstance(answer.text, str) else answer.text(answer.document))
            if answer.exit_code:
                sys.exit(answer.exit_code)

        return run

    return decorate


answering = answering_with("Print one JSON document.")


def answered_in(module: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return `answering` for commands whose answers are the functions of their names in a module.

    The module is imported when one of them runs, for its imports may cost time.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def answer(home: Path, /, **options: Any) -> CommandAnswer:
            reply: CommandAnswer = getattr(import_module(module), command.__name__)(home, **options)
            return reply

        return answering(answer)

    return decorate


def wants_json() -> bool:
    """Return whether the command that runs, or a group that it belongs to, was given --json."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.params.get("as_json"):
            return True
        context = context.parent
    return False


@contextmanager
def stored(home: Path) -> Iterator[Database | None]:
    """Lend the database of a home; None where there is none: such a home stays without one.

    Raises ConfigError for a broken desk.json.
    """
    if not (home / DATABASE).is_file():
        from torra.config import load_desk  # noqa: PLC0415  pydantic costs a tenth of a second

        load_desk(home)
        yield None
        return
    from instance_database import open_home  # noqa: PLC0415

    with closing(open_home(home)) as database:
        yield database
