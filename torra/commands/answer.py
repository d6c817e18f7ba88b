"""The one way in which commands answer: a text by default, one JSON document with --json.

A command returns its `CommandAnswer`; `answering` gives it the home and --json, prints what was
asked for and ends with the exit code. --json before a subcommand counts for the subcommand too.
Errors end as torra.commands.cli_errors says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
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


def answering(command: Callable[..., CommandAnswer]) -> Callable[..., None]:
    """Give a command its home and --json, and print its answer.

    The command of a group is not run where a subcommand is.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.pass_context
    @plainly
    @wraps(command)
    def run(context: click.Context, /, as_json: bool, **options: Any) -> None:
        del as_json
        if context.invoked_subcommand is not None:
            return
        answer = command(context.obj, **options)
        if wants_json():
            print_json(answer.document)
        else:
            say(answer.text if isinstance(answer.text, str) else answer.text(answer.document))
        if answer.exit_code:
            sys.exit(answer.exit_code)

    return run


def wants_json() -> bool:
    """Return whether the command that runs, or a group that it belongs to, was given --json."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.params.get("as_json"):
            return True
        context = context.parent
    return False


def print_json(document: object) -> None:
    """Write one JSON document to standard output."""
    say(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2))


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

    database = open_home(home)
    try:
        yield database
    finally:
        database.close()
