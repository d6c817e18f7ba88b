"""The error ending of every command: one line on standard error and an exit code.

The line has at most LONGEST_TEXT characters: what a person wrote, or a file holds, may be without
end.

Exit code 2: a mistake that a person can mend, or data that is not there. Exit code 1: every other
TorraError. Any other exception is a defect of the program and passes through.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from torra.commands.terminal import say
from torra.errors import ConfigError, DataUnavailable, TorraError, bounded
from torra.harmless_text import escaped

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
