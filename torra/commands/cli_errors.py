"""The error ending of every command: one line on standard error and an exit code.

Exit code 2: a mistake that a person can mend, or data that is not there. Exit code 1: every other
TorraError. Any other exception is a defect of the program and passes through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from torra.errors import ConfigError, DataUnavailable, TorraError

P = ParamSpec("P")
R = TypeVar("R")


def plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn Torra's exceptions into one line and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TorraError as error:
            click.echo(f"torra: {error}", err=True)
            sys.exit(2 if isinstance(error, (ConfigError, DataUnavailable)) else 1)

    return run
