"""A statement about real seconds is tried again when the machine was seen to stand still.

A deadline that is missed is a fault of the program, or of a machine that gave its process no
second to keep it in. A witness beside each try tells the two apart: a thread that asks for a moment
again and again, adds up what it got late while its own process did not use the time either, and
asks the kernel how long the threads of this process and of its children stood in the queue for a
processor. A try that failed is excused when that comes to LOST seconds and to a SHARE of the try; a
process that waits for what does not come is never excused. A full collection of garbage falls into
no try: it looks at all that the tests before have left, which no program of a user holds, for up to
0.7 s. So

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
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil
import pytest

COUNT: Final = 3

LOST: Final = 0.2
"""Seconds that a machine must have stood still in a try that it excuses."""

SHARE: Final = 0.1
"""Part of a try that must have been lost: one that takes for ever is not excused by little."""

QUEUE_EVERY: Final = 0.25
"""Seconds after which the kernel is asked who stood in the queue."""

MOST_PATIENT: Final = 10.0
"""How many times its seconds `until` waits at most on a busy machine."""

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


def until(check: Callable[[], object], seconds: float = 10.0, what: str = "it came about") -> float:
    """Wait until a check holds; return the seconds it took, AssertionError after `seconds` of them.

    A machine on which more wants to run than it has processors gets so many times the seconds, up
    to MOST_PATIENT: such a test is slower there and not red.
    """
    begun = time.monotonic()
    while not check():
        took = time.monotonic() - begun
        assert took < seconds * _patience(), f"not within {took:.1f} s: {what}"
        time.sleep(MOMENT)
    return time.monotonic() - begun


def _patience() -> float:
    if not hasattr(os, "getloadavg"):
        return MOST_PATIENT
    return min(MOST_PATIENT, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


class Queue:
    """How long this process and its children have stood in the queue for a processor.

    Linux tells it of every thread (proc(5), schedstat); elsewhere nothing is known of it.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[int, str], float] = {}
        self._last: dict[tuple[int, str], float] = {}
        self.look()

    def look(self) -> None:
        """Ask the kernel once more; threads that have ended keep what was told of them."""
        try:
            children = psutil.Process().children(recursive=True)
        except psutil.Error:
            children = []
        for pid in (os.getpid(), *(child.pid for child in children)):
            # a process or a thread may end between two looks
            with suppress(OSError):
                for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                    with suppress(OSError, IndexError):
                        stood = int(path.read_text(encoding="ascii").split()[1]) / 1e9
                        thread = (pid, path.parent.name)
                        self._first.setdefault(thread, stood)
                        self._last[thread] = stood

    def stood(self) -> float:
        """Return the seconds of the process that stood longest, all its threads together."""
        found: dict[int, float] = {}
        for thread, last in self._last.items():
            found[thread[0]] = found.get(thread[0], 0.0) + last - self._first[thread]
        return max(found.values(), default=0.0)


class Witness:
    """Adds up, as `lost`, the seconds that this process neither used nor was given."""

    def __init__(self) -> None:
        self.lost = 0.0
        self._queue = Queue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="witness", daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Look a last time; return what was lost."""
        self._over.set()
        self._thread.join()
        self._queue.look()
        return max(self.lost, self._queue.stood())

    def _look(self) -> None:
        over = False
        before, used = time.monotonic(), time.process_time()
        ask = before + QUEUE_EVERY
        while not over:
            if before > ask:
                self._queue.look()
                before, used = time.monotonic(), time.process_time()
                ask = before + QUEUE_EVERY
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
        self._begun = time.monotonic()
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
        least = max(LOST, SHARE * (time.monotonic() - self._begun))
        if lost >= least and isinstance(error, LATENESS):
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
