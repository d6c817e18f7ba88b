"""The MetaTrader5 package behind one thread and a time limit.

The package talks to one terminal of this computer, is not made for threads, and may block for as
long as the terminal does. So one worker makes every call, and a caller waits for it a limited time.
While a call takes longer, every other call raises BridgeUnavailable at once, until it returns. No
second thread is ever started. The late answer is dropped: its caller has long gone to look at the
account instead. The package answers None to everything that went wrong; None comes back with the
words of last_error(), asked at once and by the same thread.

The package exists for Windows only, and `load_package` alone imports it. One process reaches one
terminal: a bridge and a feed share one `Terminal`.
"""

from __future__ import annotations

import importlib
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLong
from functools import partial
from typing import Any, Final, NamedTuple

from torra.errors import BridgeUnavailable, ConfigError
from torra.services import in_background
from torra.time_limit import settle

CALL_SECONDS: Final = 10.0
"""Real seconds after which a caller does not wait any longer."""

GOODBYE_SECONDS: Final = 2.0

LOST: Final = frozenset({-10000, -10001, -10002, -10003, -10004, -10005})
"""Errors after which the connection to the terminal is made anew: RES_E_INTERNAL_*."""

NO_ANSWER: Final = -1
"""Stands for an exception of the package: RES_E_FAIL."""


log = logging.getLogger("torra")


class TerminalAnswer(NamedTuple):
    """The result of a call; `code` and `words` give the reason where `value` is None."""

    value: Any
    code: int = 1
    words: str = ""

    @property
    def fault(self) -> str:
        """The package's words for what went wrong."""
        return f"{self.words} ({self.code})"


def load_package() -> Any:
    """Return the MetaTrader5 package; raises ConfigError where there is none."""
    try:
        return importlib.import_module("MetaTrader5")
    except ImportError as error:
        raise ConfigError(
            "mt5_direct needs the MetaTrader5 package, which exists for Windows only: install "
            "torra[mt5] there, beside the terminal, or use the bridge torra_files"
        ) from error


class Terminal:
    """One terminal; `path` is its terminal64.exe, empty for the one that the package finds."""

    def __init__(self, package: Any, *, path: str = "", seconds: float = CALL_SECONDS) -> None:
        self._package = package
        self._path = path
        self._seconds = seconds
        self._connected = False
        self._late: tuple[str, Future[TerminalAnswer]] | None = None
        self._jobs = queue.SimpleQueue[Callable[[], object] | None]()
        self._worker: threading.Thread | None = None
        self._lock = threading.Lock()

    def ask(self, name: str, *args: Any, **kwargs: Any) -> TerminalAnswer:
        """Call a function of the package; raises BridgeUnavailable when it does not return."""
        with self._lock:
            self._demand_worker()
            future: Future[TerminalAnswer] = Future()
            self._jobs.put(partial(settle, future, partial(self._call, name, args, kwargs)))
            try:
                return future.result(self._seconds)
            except TooLong:
                # Remembered instead of waited for: until it returns nobody else is let in.
                self._late = (name, future)
                raise BridgeUnavailable(self._blocked(name)) from None

    def demand(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function and return its value; raises BridgeUnavailable when that is None."""
        answer = self.ask(name, *args, **kwargs)
        if answer.value is None:
            raise BridgeUnavailable(f"MetaTrader 5 does not answer {name}: {answer.fault}")
        return answer.value

    def number(self, name: str) -> int:
        """Return a constant of the package; raises ConfigError when it has none of that name."""
        try:
            return int(getattr(self._package, name))
        except AttributeError:
            raise ConfigError(
                f"the MetaTrader5 package has no {name}: install a newer one"
            ) from None

    def close(self) -> None:
        """Let the terminal go and end the thread, unless a call blocks it. Never raises."""
        with self._lock:
            worker, self._worker = self._worker, None
            if worker is None:
                return
            self._jobs.put(partial(settle, Future(), self._shut_down))
            self._jobs.put(None)
            self._jobs = queue.SimpleQueue()
            # A blocked worker keeps its own queue, and ends when it comes back.
            worker.join(GOODBYE_SECONDS)

    def _demand_worker(self) -> None:
        """Start the thread before the first call; raises BridgeUnavailable while one blocks it."""
        if self._late is not None:
            name, future = self._late
            if not future.done():
                raise BridgeUnavailable(self._blocked(name))
            self._late = None
        if self._worker is None:
            # A daemon: a terminal that blocks for ever must not keep the process alive.
            self._worker = in_background("mt5", partial(_work, self._jobs))

    def _blocked(self, name: str) -> str:
        return f"MetaTrader 5 has not returned from {name}: is a window of it waiting for somebody?"

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TerminalAnswer:
        try:
            if not self._connected:
                # The package takes no empty path: without one it finds the terminal itself.
                self._connected = bool(self._package.initialize(*filter(None, [self._path])))
            value = getattr(self._package, name)(*args, **kwargs) if self._connected else None
            if value is not None:
                return TerminalAnswer(value)
            # At once and by this thread: the next call would overwrite it.
            code, words = self._package.last_error()
        except Exception as error:
            log.exception("MetaTrader5.%s", name)
            return TerminalAnswer(None, NO_ANSWER, f"{type(error).__name__}: {error}")
        if code in LOST:
            self._connected = False
        return TerminalAnswer(None, int(code), str(words))

    def _shut_down(self) -> None:
        self._connected = False
        self._package.shutdown()


def _work(jobs: queue.SimpleQueue[Callable[[], object] | None]) -> None:
    """Do the jobs one after the other, until None comes."""
    while job := jobs.get():
        job()
