"""The one place at which a command writes: what strangers wrote cannot steer a terminal there.

`say` writes a text or a document, `LogLine` a line of the log. Both show steering characters as
their escapes (torra.harmless_text), which in JSON are the same characters. `progress` tells on
standard error how far long work is: a bar for a person, a plain line now and then for a file or a
pipe. Standard output has the result alone.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from torra.clock import Clock, System
from torra.errors import bounded
from torra.harmless_text import escaped

REDRAWN: Final = 500
"""Most redraws of a progress bar: more nobody sees."""

LINE_SECONDS: Final = 10.0
"""Between two lines of progress where no person looks."""

MINUTE: Final = 60
HOUR: Final = 3600

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


@contextmanager
def progress(
    total: int, label: str, *, clock: Clock | None = None
) -> Iterator[Callable[[int], None]]:
    """Tell how far work is while its body runs; yield what moves it on by a number of steps."""
    if sys.stderr.isatty():
        yield from _bar(total, label)
    else:
        yield _lines(total, label, clock or System())


def _bar(total: int, label: str) -> Iterator[Callable[[int], None]]:
    with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True) as bar:
        waiting = 0

        def forward(number: int) -> None:
            nonlocal waiting
            waiting += number
            if waiting * REDRAWN >= total:
                bar.update(waiting)
                waiting = 0

        yield forward
        bar.update(waiting)


def _lines(total: int, label: str, clock: Clock) -> Callable[[int], None]:
    """Return what moves work on: where the last line is old enough, it writes the next.

    A line says what is done, of how much, and how long the rest will take.
    """
    began = newest = clock.monotonic()
    done = 0

    def forward(number: int) -> None:
        nonlocal newest, done
        done += number
        now = clock.monotonic()
        if now - newest < LINE_SECONDS or not 0 < done < total:
            return
        newest = now
        left = (now - began) / done * (total - done)
        say(
            f"{label}: {done:,} of {total:,} ({100 * done // total} %), about {_span(left)} left",
            err=True,
        )

    return forward


def _span(seconds: float) -> str:
    """Return a number of seconds as a person says it."""
    if seconds < 1.5 * MINUTE:
        return f"{max(1, math.ceil(seconds))} s"
    if seconds < 1.5 * HOUR:
        return f"{round(seconds / MINUTE)} min"
    return f"{seconds / HOUR:.1f} h"
