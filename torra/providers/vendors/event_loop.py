"""The one event loop of the process, on a thread of its own.

`submit` hands it a job and returns a future, which ends with a value or with ModelUnavailable and
nothing else. A job keeps to its limit by `within`, which leaves behind what does not stop. The
thread does not keep the process alive; `close` ends what runs and waits briefly. Names are looked
up on threads that do not keep it alive either: a resolver that hangs must not hold up the end of
the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from agents.contracts import ModelUnavailable
from torra.services import in_background
from torra.time_limit import settle

CLOSE_S: Final = 2.0
"""How long `close` waits for connections to end in good order."""

SPARE_S: Final = 0.02
"""Seconds by which a job ends before its limit (2 % of it at most): time to give the reason."""

T = TypeVar("T")
Job = Callable[[float], Coroutine[Any, Any, T]]
"""A job for the loop; its argument is until when, in the loop's time, its answer is waited for."""


class DaemonThreads(ThreadPoolExecutor):
    """Runs each job on a daemon thread of its own; the threads of a pool are joined at exit.

    asyncio takes a ThreadPoolExecutor alone, and uses `submit` and `shutdown` of it.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """Return the future of a job that has begun."""
        future: Future[T] = Future()
        # A thread that runs cannot be taken back.
        future.set_running_or_notify_cancel()

        in_background("torra-vendors", partial(settle, future, partial(fn, *args, **named)))
        return future


class EventLoop:
    """A loop that starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        # A thread of its own: it ends with the last job after `close`, and nothing else runs on it.
        self._thread = threading.Thread(target=self._run, name="torra-models", daemon=True)
        self._closed = False

    def submit(self, job: Job[T], limit_s: float) -> Future[T]:
        """Run a job; it is to end within `limit_s` from now. Never raises."""
        with self._lock:
            if self._closed:
                return failed("closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(DaemonThreads())
                try:
                    self._thread.start()
                except RuntimeError as error:  # no thread is to be had; the next request tries
                    self._loop.close()
                    self._loop = None
                    return failed(type(error).__name__)
            limit_s = max(0.0, limit_s)
            until = self._loop.time() + limit_s - min(SPARE_S, 0.02 * limit_s)
            return asyncio.run_coroutine_threadsafe(self._ended(job, until), self._loop)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel every job, run `last` on the loop and end it; a second time does nothing."""
        with self._lock:
            loop, ended = self._loop, self._closed
            self._closed = True
        if loop is None or ended:
            return
        # Referenced here: asyncio itself keeps only a weak reference to a task.
        self._ending = asyncio.run_coroutine_threadsafe(_end(loop, last), loop)
        # A thread cannot join itself.
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S + 1.0)

    async def _ended(self, job: Job[T], until: float) -> T:
        """Run a job to its end; whatever it raises is a ModelUnavailable."""
        try:
            return await job(until)
        except ModelUnavailable:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling() and not self._closed:
                raise  # the caller left
            raise ModelUnavailable("error", "closed", again=None) from None
        except Exception as error:  # noqa: BLE001 - whatever a job raises
            raise ModelUnavailable("error", type(error).__name__, again=None) from None

    def _run(self) -> None:
        if self._loop is not None:
            self._loop.run_forever()
            self._loop.close()


def failed(detail: str, *, billed: bool = False) -> Future[Any]:
    """Return the future of a request that ended before it began: trying again would not help."""
    future: Future[Any] = Future()
    future.set_exception(ModelUnavailable("error", detail, again=None, billed=billed))
    return future


async def within(until: float, job: Coroutine[Any, Any, T]) -> T:
    """Return what a job returns; raises TimeoutError at `until` without waiting for its end."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(job)
    # A failure that nobody waits for any more would be written to a log.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await asyncio.wait({task}, timeout=max(0.0, until - loop.time()))
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        task.cancel()


async def _end(
    loop: asyncio.AbstractEventLoop, last: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    running = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in running:
        task.cancel()
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await asyncio.gather(*running, return_exceptions=True)
            await last()
    loop.stop()
