"""A statement about real seconds is tried again when the machine was seen to stand still.

A deadline that is missed is a fault of the program, or of a machine that gave its process no
second to keep it in. A witness beside each try tells the two apart: a thread that asks for a moment
again and again, and adds up what it got late while its own process did not use the time either. A
try that failed is excused when that comes to LOST seconds; a process that is busy itself, or waits
for what does not come, is never excused. A full collection of garbage falls into no try: it looks
at all that the tests before have left, which no program of a user holds, for up to 0.7 s. So

    for attempt in tries():
        record, took = timed(seconds=1.0)
        with attempt:
            assert took <= 1.5

fails at once on a machine that runs. On one that does not it is tried COUNT times and then excused:
the test is skipped, with a line in the summary of the run, so that a busy machine is never red and
never silent. Each try makes anew what it changes. What holds however late everything comes, as that
nothing is doubled, is asserted in the loop, but outside of the `with`: then it is so in every try.
Each try that was excused is told with its reason as the property `again` of the test, and stands in
the record of a night or of an order. A skipped test proves nothing there.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

COUNT: Final = 3

LOST: Final = 0.2
"""Seconds that a machine must have stood still in a try that it excuses."""

MOMENT: Final = 0.01
"""Seconds after which a witness looks again."""

LATE: Final = 0.02
"""Seconds that it may come late without having lost any: less is the work of a scheduler."""

SYNC_EVERY: Final = 0.05
"""Seconds after which a disk is looked at again."""

SYNC_LONG: Final = 0.05
"""Seconds that a byte may take to the disk without any being lost."""

LATENESS: Final = (AssertionError, TimeoutError, pytest.fail.Exception)
"""What a late machine can make of a try."""

NEVER: Final = 2**31 - 1
"""Collections of the middle generation before a full one: as many as the collector can count."""


class Witness:
    """Adds up, as `lost`, the seconds that this process neither used nor was given."""

    def __init__(self) -> None:
        self.lost = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="witness", daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Look a last time; return what was lost."""
        self._over.set()
        self._thread.join()
        return self.lost

    def _look(self) -> None:
        over = False
        before, used = time.monotonic(), time.process_time()
        while not over:
            over = self._over.wait(MOMENT)
            now, using = time.monotonic(), time.process_time()
            late = now - before - MOMENT - (using - used)
            if late > LATE:
                self.lost += late
            before, used = now, using


class DiskWitness:
    """Adds up, as `lost`, the seconds that the disk under a folder took longer than it should.

    A program that waits for its disk uses no time and is given all that it could use, so that a
    `Witness` has nothing to say. This one puts a byte on the same disk again and again.
    """

    def __init__(self, folder: Path, sync: Callable[[int], None] = os.fsync) -> None:
        self.lost = 0.0
        self._sync = sync
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._look, args=[folder / "disk-witness"], name="disk witness", daemon=True
        )
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for a sync that is under way."""
        self._over.set()
        self._thread.join()

    def _look(self, path: Path) -> None:
        with path.open("wb", buffering=0) as file:
            while not self._over.wait(SYNC_EVERY):
                before = time.monotonic()
                file.write(b".")
                self._sync(file.fileno())
                self.lost += max(0.0, time.monotonic() - before - SYNC_LONG)


EXCUSED: Final = "excused: the machine was too busy"
"""How the reason of a skipped test begins that no try could be made for."""


class Attempt:
    """One try, the `number`-th from 0. `again`: why it did not hold, once it is excused.

    Who looks at what ran before the try, in other processes or on a disk, adds what a witness there
    says to `lost_before`.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.again = ""
        self.entered = False
        self.lost_before = 0.0
        self._witness = Witness()

    def folder(self, parent: Path) -> Path:
        """Return a new folder for this try alone."""
        made = parent / f"try-{self.number}"
        made.mkdir()
        return made

    def end(self) -> float:
        """Return the seconds that were lost since the try began."""
        return self._witness.end()

    def __enter__(self) -> None:
        self.entered = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        lost = self.lost_before + self.end()
        if lost >= LOST and isinstance(
            error, AssertionError | TimeoutError | pytest.fail.Exception
        ):
            self.again = f"held up for {lost:.1f} s: {_line(error)}"
        return bool(self.again)


class Tries:
    """See the module. `told` is called with the reason of each try that was excused."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told

    def __call__(self, count: int = COUNT) -> Iterator[Attempt]:
        """Yield tries until one holds; after `count` that were excused skip the test.

        RuntimeError for a try that is not used.
        """
        for number in range(count):
            attempt = Attempt(number)
            try:
                yield attempt
            finally:
                attempt.end()
            if not attempt.entered:
                raise RuntimeError("a try without its `with` says nothing")
            if not attempt.again:
                return
            self._told(attempt.again)
        pytest.skip(f"{EXCUSED} in {count} tries, last {attempt.again}")


@contextmanager
def without_full_collections() -> Iterator[None]:
    """Collect young garbage only."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)


def _line(error: BaseException) -> str:
    """Return what was not so, in a line of a record."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:100]
