"""Runs the agents of a stage: at once on threads that can be left behind, or in turn on none.

A call that hangs cannot be cancelled, and a thread that waits for it cannot be killed. So
`run_together` gives each agent a daemon thread: it never blocks the end of the process, and when
the stage's time is up the desk goes on without it. Threads left behind are counted until they
finish; while there are more than `MAX_ABANDONED`, `crowded` returns True and no further agent is
started.

`run_in_turn` is for jobs that can neither hang nor wait: the desk's own agents with a provider that
answers while it is asked. It needs no thread and looks at the time between the jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any, Final, Generic, NoReturn, ParamSpec, Protocol, TypeVar

MAX_ABANDONED: Final = 32
"""Threads left behind, in the whole process, above which no agent is asked: four ticks of eight."""

GRACE_SECONDS: Final = 0.05
"""How long past the end of a stage its threads may take to notice it."""

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_left_behind: set[Future[Any]] = set()


class FinishedJob(Protocol[T_co]):
    """A job that has ended, with the interface of a future."""

    def exception(self) -> BaseException | None:
        """Return what it raised, None when it did not."""
        ...

    def result(self) -> T_co:
        """Return what it returned."""
        ...


class DaemonExecutor(Executor):
    """An executor of one daemon thread per job, so that nothing waits for a job at exit."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start the job at once; its future carries whatever it returns or raises."""
        future: Future[T] = Future()
        # From here on cancel() fails: a thread that runs cannot be taken back.
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - a thread has nobody else to tell
                future.set_exception(error)
            else:
                future.set_result(result)

        try:
            threading.Thread(target=run, name="torra-agent", daemon=True).start()
        # The system has no more threads: the agent failed, not the tick.
        except RuntimeError as error:
            future.set_exception(error)
        return future


def run_parallel(
    jobs: Mapping[str, Callable[[], T]],
    until: float,
    monotonic: Callable[[], float],
    finished: Callable[[str, FinishedJob[T]], None],
) -> tuple[str, ...]:
    """Run the jobs at once and report each as it finishes; return when all have or the time is up.

    `until` is a moment of `monotonic`, in seconds. Returns the names of the jobs that were still
    running then: they are left behind and never reported.
    """
    executor = DaemonExecutor()
    names = {executor.submit(job): name for name, job in jobs.items()}
    running = set(names)
    while running:
        left = max(0.0, until + GRACE_SECONDS - monotonic())
        done, running = wait(running, timeout=left, return_when=FIRST_COMPLETED)
        if not done:
            break
        # In the order of the jobs: two that finish at once are recorded alike on every run.
        for future in sorted(done, key=lambda one: list(names).index(one)):
            finished(names[future], future)
    _leave_behind(running)
    return tuple(name for future, name in names.items() if future in running)


def run_serial(
    jobs: Mapping[str, Callable[[], T]],
    until: float,
    monotonic: Callable[[], float],
    finished: Callable[[str, FinishedJob[T]], None],
) -> tuple[str, ...]:
    """Run the jobs one after the other on this thread, and report each, until the time is up.

    Returns, as `run_together`, the names of the jobs that were not finished then; one that finishes
    too late is among them. What a job raises costs only itself; an interrupt of the program goes
    through.
    """
    unfinished = dict.fromkeys(jobs)
    for name, job in jobs.items():
        if monotonic() >= until:
            break
        try:
            ended: FinishedJob[T] = _Returned(job())
        except Exception as error:  # noqa: BLE001 - as on a thread, it is for who is told
            ended = _Raised(error)
        if monotonic() > until + GRACE_SECONDS:
            break
        del unfinished[name]
        finished(name, ended)
    return tuple(unfinished)


def abandoned() -> int:
    """Return how many threads that were left behind are still running."""
    return len(_left_behind)


def too_many_abandoned() -> bool:
    """Return whether so many threads were left behind that no agent should be asked."""
    return abandoned() > MAX_ABANDONED


def _leave_behind(running: set[Future[Any]]) -> None:
    for future in running:
        # Added first: a future that has ended meanwhile calls back at once, and goes again.
        _left_behind.add(future)
        future.add_done_callback(_left_behind.discard)


class _Returned(Generic[T]):
    def __init__(self, value: T) -> None:
        self._value = value

    def exception(self) -> None:
        return None

    def result(self) -> T:
        return self._value


class _Raised:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def exception(self) -> Exception:
        return self._error

    def result(self) -> NoReturn:
        raise self._error
