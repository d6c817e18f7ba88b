"""A time limit for calls that may never return, such as a folder on a share whose server is gone.

`TimeLimit.run` makes a call in a thread of its own and waits a limited time. A call that takes
longer is left behind and its result is dropped. Until it returns, every other call under the same
limit is refused at once, so neither threads nor waits pile up. The caller sees TimeoutError, which
is an OSError, whatever the call was. A folder has one limit per process: after the first caller has
waited in vain, no other has to.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cache, partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

from torra.services import in_background

T = TypeVar("T")

SHARE_SECONDS: Final = 3.0
"""Real seconds that one step in a folder may take."""


class Run(Protocol):
    """A way to make a call, such as `TimeLimit.run`: returns and raises what the call does."""

    def __call__(self, work: Callable[[], T], /) -> T:
        """Make the call."""
        ...


def at_once(work: Callable[[], T]) -> T:
    """Make a call without a limit: for what always answers."""
    return work()


class TimeLimit:
    """The limit of one thing that may not answer; `what` names it in errors. Thread-safe."""

    def __init__(self, what: str, seconds: float) -> None:
        self._what = what
        self._seconds = seconds
        self._lock = threading.Lock()
        self._late: list[Future[object]] = []

    def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns and raise what it raises; TimeoutError when that takes long.

        After a TimeoutError the work may still be done, now or later.
        """
        if self.silent:
            raise self._silence()
        answer: Future[T] = Future()
        # A thread and no pool: a pool joins its workers at exit, and one that hangs would keep the
        # process.
        in_background("limited", partial(settle, answer, work))
        if not wait([answer], self._seconds).done:
            with self._lock:
                self._late.append(answer)  # type: ignore[arg-type]
            raise self._silence()
        return answer.result()

    @property
    def silent(self) -> bool:
        """Whether a call that took too long has not come back yet."""
        with self._lock:
            # A call that came back in the meantime frees the limit again.
            self._late = [answer for answer in self._late if not answer.done()]
            return bool(self._late)

    def _silence(self) -> TimeoutError:
        return TimeoutError(errno.ETIMEDOUT, f"no answer within {self._seconds:g} s", self._what)


@cache
def of_folder(folder: Path) -> TimeLimit:
    """Return the limit of a folder, the same one for every caller."""
    return TimeLimit(str(folder), SHARE_SECONDS)


def settle(answer: Future[T], work: Callable[[], T]) -> None:
    """Do the work of a future: it ends with what that returns or raises."""
    try:
        answer.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is the caller's
        answer.set_exception(error)
