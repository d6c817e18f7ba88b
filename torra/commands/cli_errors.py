"""The error ending of every command: one line on standard error and an exit code.

The line has at most LONGEST_TEXT characters: what a person wrote, or a file holds, may be without
end.

Exit code 2: a mistake that a person can mend, or data that is not there. Exit code 1: every other
TorraError. Any other exception is a defect of the program and passes through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from torra.errors import ConfigError, DataUnavailable, TorraError, bounded

P = ParamSpec("P")
R = TypeVar("R")


def one_line(text: str) -> str:
    """Return an error's text as the line that is shown: of a longer one beginning and end."""
    return bounded("torra: " + " ".join(part for part in map(str.strip, text.splitlines()) if part))


def plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn Torra's exceptions into one line and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TorraError as error:
            click.echo(one_line(str(error)), err=True)
            sys.exit(2 if isinstance(error, (ConfigError, DataUnavailable)) else 1)

    return run
