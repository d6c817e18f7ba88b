"""Executors of this machine for the parts of a run: this process, or several beside it.

Torra works with any `concurrent.futures` executor; these say how many parts they do at once
(`workers`). The module imports next to nothing: a worker reads it before it has set how many
threads the numerical libraries may start.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from torra.imports import freeze_gc
from torra.services import in_background

THREADS: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Variables that limit how many threads the numerical libraries start."""


class Inline(Executor):
    """Runs every job at once, in this process."""

    workers: Final = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it; an exception goes into the future, an interruption to the caller."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.set_exception(error)
        return future


class Processes(Executor):
    """Several processes, each a pool of its own: one that dies takes only its own job with it.

    Each begins afresh (spawn), so it inherits neither threads nor locks, lets the numerical
    libraries start one thread, leaves an interruption to its parent, and ends when its parent does.
    How far each of `parts` is (`note`) they hear whom `on_steps` names: all steps together.
    """

    def __init__(
        self, workers: int, parts: int = 0, on_steps: Callable[[int], None] = lambda _: None
    ) -> None:
        if workers < 1:
            raise ValueError("workers must be 1 or more")
        self.workers: Final = workers
        self._context = multiprocessing.get_context("spawn")
        # A place for each part, which one process alone writes: so there is nothing to lock, and
        # a part that begins again counts again from where it goes on.
        self._steps = self._context.RawArray("q", parts) if parts else ()
        self._on_steps = on_steps
        self._lock = threading.Lock()
        self._lanes = [self._lane() for _ in range(workers)]
        self._load = [0] * workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Give the job to the process that has least to do; a dead one is replaced."""
        with self._lock:
            at = min(range(self.workers), key=self._load.__getitem__)
            try:
                future = self._lanes[at].submit(fn, *args, **kwargs)
            except BrokenExecutor:
                self._lanes[at].shutdown(wait=False)
                self._lanes[at] = self._lane()
                future = self._lanes[at].submit(fn, *args, **kwargs)
            self._load[at] += 1
        # Outside the lock: a job that is done already calls back at once, and takes the lock.
        future.add_done_callback(lambda _: self._ended(at))
        return future

    def check(self) -> None:
        """Tell how far the parts are."""
        self._on_steps(sum(self._steps))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; without waiting, at once and in the middle of a job."""
        for lane in self._lanes:
            running = list((lane._processes or {}).values())  # noqa: SLF001 - public from 3.14 on
            lane.shutdown(wait=wait, cancel_futures=cancel_futures or not wait)
            if not wait:
                for process in running:
                    process.terminate()

    def _ended(self, at: int) -> None:
        with self._lock:
            self._load[at] -= 1

    def _lane(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_begin, initargs=(self._steps,)
        )


@contextmanager
def synchronous_executor() -> Iterator[Executor]:
    """Yield an executor that works in this process."""
    yield Inline()


@contextmanager
def processes(
    workers: int, parts: int = 0, on_steps: Callable[[int], None] = lambda _: None
) -> Iterator[Processes]:
    """Yield that many processes; an exception, an interruption too, ends them at once."""
    found = Processes(workers, parts, on_steps)
    try:
        yield found
    except BaseException:
        found.shutdown(wait=False)
        raise
    found.shutdown()


_NOTED: Any = ()
"""In a worker: the steps of every part, as whoever began the worker reads them."""


def note(part: int, steps: int) -> None:
    """Note in a worker how many steps of a part are done."""
    if _NOTED:
        _NOTED[part] = steps


def _begin(steps: Any) -> None:
    """Prepare a worker before it has read any of the numerical libraries."""
    global _NOTED
    _NOTED = steps
    # The libraries read it when they are loaded: one thread a process, or the processes fight.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    freeze_gc()
    # Ctrl-C reaches every process of the terminal; the parent ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        in_background("parent", partial(_end_with, parent))


def _end_with(parent: Any) -> None:
    parent.join()
    # This is a thread: an ordinary exit would end the thread alone, and not the job.
    os._exit(1)
