"""The error ending of every command: one line on standard error and an exit code.

The line has at most LONGEST characters: what a person wrote, or a file holds, may be without end.

Exit code 2: a mistake that a person can mend, or data that is not there. Exit code 1: every other
TorraError. Any other exception is a defect of the program and passes through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from torra.commands.terminal import say
from torra.errors import ConfigError, DataUnavailable, TorraError
from torra.harmless_text import escaped

P = ParamSpec("P")
R = TypeVar("R")


LONGEST: Final = 500
"""Characters of an error's line."""

BEGINNING: Final = 300
"""Characters of a longer one that are kept of its beginning; its end has the remedy."""

CUT: Final = " [...] "


def one_line(text: str) -> str:
    """Return an error's text as the line that is shown: of a longer one beginning and end."""
    told = " ".join(part for part in map(str.strip, text.splitlines()) if part)
    line = f"torra: {escaped(told)}"  # here: an escape is longer than what it stands for
    if len(line) <= LONGEST:
        return line
    return line[:BEGINNING] + CUT + line[BEGINNING + len(CUT) - LONGEST :]


def plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn Torra's exceptions into one line and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TorraError as error:
            say(one_line(str(error)), err=True)
            sys.exit(2 if isinstance(error, (ConfigError, DataUnavailable)) else 1)

    return run
