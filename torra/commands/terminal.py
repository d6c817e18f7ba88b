"""The one place at which a command writes: what strangers wrote cannot steer a terminal there.

`say` writes a text or a document, `LogLine` a line of the log. Both show steering characters as
their escapes (torra.harmless_text), which in JSON are the same characters.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

import click

from torra.errors import bounded
from torra.harmless_text import escaped

LOG: Final = "%(asctime)s %(levelname)s %(message)s"
"""A line of a desk's log."""


class LogLine(logging.Formatter):
    """A line of the log, its message and traceback escaped.

    A message may hold what a file, a feed or a vendor has said: it is one line of LONGEST_TEXT
    characters at most. A traceback follows whole.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the library's name
        """Return the line of a message."""
        return bounded(" ".join(escaped(super().formatMessage(record)).splitlines()))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return escaped(super().format(record))


def say(text: str, *, err: bool = False) -> None:
    """Write a text with a line end, to standard error with `err`."""
    click.echo(escaped(text), err=err)


def read_by_a_person() -> bool:
    """Return whether standard output is a terminal, and not a file or a pipe that is kept."""
    return sys.stdout.isatty()


def keep_a_log() -> None:
    """Write warnings of the program to standard error, with their time."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLine(LOG))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def escape_warnings() -> None:
    """Escape warnings where nothing else was told to write them."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogLine())
