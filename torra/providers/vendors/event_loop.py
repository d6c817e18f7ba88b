"""The one event loop of the process, on a thread of its own.

`submit` hands it a job and returns a future. The future ends at the job's limit, or shortly after
it whatever the job does; a job that does not stop is left behind. A future ends with a value or
with ModelUnavailable and nothing else. The thread does not keep the process alive; `close` ends
what runs and waits briefly. Names are looked up on threads that do not keep it alive either: a
resolver that hangs must not hold up the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from agents.contracts import ModelUnavailable

CLOSE_S: Final = 2.0
"""How long `close` waits for connections to end in good order."""

SPARE_S: Final = 0.02
"""Seconds by which a job ends before its limit (2 % of it at most): time to give the reason."""

OVERDUE_S: Final = 0.25
"""Seconds after its limit for which a job's own end is waited for."""

T = TypeVar("T")
Job = Callable[[float], Coroutine[Any, Any, T]]
"""A job for the loop; its argument is until when, in the loop's time, its answer is waited for."""


class _Daemons(ThreadPoolExecutor):
    """Runs each job on a daemon thread of its own; the threads of a pool are joined at exit.

    asyncio takes a ThreadPoolExecutor alone, and uses `submit` and `shutdown` of it.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                found = fn(*args, **named)
            except BaseException as error:  # noqa: BLE001 - told to whoever waits for it
                future.set_exception(error)
            else:
                future.set_result(found)

        threading.Thread(target=run, name="torra-look-up", daemon=True).start()
        return future


class EventLoop:
    """A loop that starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._ending: asyncio.Task[None] | None = None

    def submit(self, job: Job[T], limit_s: float) -> Future[T]:
        """Run a job; it is to end within `limit_s` from now. Never raises."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(closed())
                return future
            loop = self._started()
            limit_s = max(0.0, limit_s)
            until = loop.time() + limit_s - min(SPARE_S, 0.02 * limit_s)
            loop.call_soon_threadsafe(_begin, job, until, future)
        return future

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel every job, run `last` on the loop and end it; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(self._end, loop, last)
        # A thread cannot join itself.
        if thread is not threading.current_thread():
            thread.join(CLOSE_S + 1.0)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(_Daemons(1))
            self._thread = threading.Thread(
                target=_run, args=(self._loop,), name="torra-models", daemon=True
            )
            self._thread.start()
        return self._loop

    def _end(
        self, loop: asyncio.AbstractEventLoop, last: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        async def end() -> None:
            running = asyncio.all_tasks(loop) - {asyncio.current_task()}
            for task in running:
                task.cancel()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await asyncio.gather(*running, return_exceptions=True)
                    await last()
            loop.stop()

        # Held here: asyncio itself keeps only a weak reference to a task.
        self._ending = loop.create_task(end())


def closed() -> ModelUnavailable:
    """Return the error of a request that comes after the end."""
    return ModelUnavailable("error", "closed", again=None, billed=False)


async def within(until: float, job: Coroutine[Any, Any, T]) -> T:
    """Return what a job returns; raises TimeoutError at `until` without waiting for its end."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(job)
    task.add_done_callback(_looked_at)
    try:
        await asyncio.wait({task}, timeout=max(0.0, until - loop.time()))
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        task.cancel()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _begin(job: Job[T], until: float, future: Future[T]) -> None:
    """Start a job's task and join it to its future, both ways."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(job(until))
    overdue = ModelUnavailable("timeout", "no answer in time")
    # The task may ignore its own end; the caller must not wait for it.
    timer = loop.call_at(until + OVERDUE_S, _fail, future, overdue)
    task.add_done_callback(lambda done: _settle(done, future))
    task.add_done_callback(lambda _: timer.cancel())

    def caller_left(ended: Future[T]) -> None:
        if ended.cancelled():
            with contextlib.suppress(RuntimeError):
                # suppress: the loop may be closed by now.
                loop.call_soon_threadsafe(task.cancel)

    future.add_done_callback(caller_left)


def _settle(task: asyncio.Task[T], future: Future[T]) -> None:
    if task.cancelled():
        _fail(future, ModelUnavailable("error", "closed", again=None))
        return
    error = task.exception()
    if error is None:
        with contextlib.suppress(InvalidStateError):
            # The timer or the caller may have ended the future first.
            future.set_result(task.result())
    elif isinstance(error, ModelUnavailable):
        _fail(future, error)
    else:
        _fail(future, ModelUnavailable("error", type(error).__name__, again=None))


def _fail(future: Future[T], error: ModelUnavailable) -> None:
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)


def _looked_at(task: asyncio.Task[T]) -> None:
    """Take note of a task's failure, so that the loop does not write it to a log."""
    if not task.cancelled():
        task.exception()
