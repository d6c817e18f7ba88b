"""A statement about real seconds is tried up to three times: a machine may give it none of them.

A deadline that is kept only in some runs of a test is a flake of the machine or a fault of the
program, and one run cannot tell which. A fault that ignores a deadline ignores it each time; a
machine that stands still, or a disk that is slow to sync, does not do so three times at the same
place. So a statement that holds on real seconds alone is made under `tries`, and no other:

    for attempt in tries():
        with attempt:
            record, took = timed(seconds=1.0)
            assert took <= 1.5

Everything that the statement needs is made within. How many tries did not hold is told as the
property `again` of the test, and so stands in the record of a night or of an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

COUNT: Final = 3


class Attempt:
    """One try, the `number`-th from 0: swallows what did not hold unless it is the `last`."""

    def __init__(self, number: int, *, last: bool) -> None:
        self.number = number
        self.held = False
        self._last = last

    def folder(self, parent: Path) -> Path:
        """Return a new folder for this try alone."""
        made = parent / f"try-{self.number}"
        made.mkdir()
        return made

    def __enter__(self) -> None:
        """Nothing is made ready here."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.held = error is None
        return not self._last and isinstance(error, Exception | pytest.fail.Exception)


class Tries:
    """See the module. `again` counts the tries that did not hold."""

    def __init__(self) -> None:
        self.again = 0

    def __call__(self, count: int = COUNT) -> Iterator[Attempt]:
        """Yield tries until one holds; the last one of `count` fails as any test."""
        for number in range(count):
            attempt = Attempt(number, last=number == count - 1)
            yield attempt
            if attempt.held:
                return
            self.again += 1
