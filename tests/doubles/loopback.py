"""A server on the loopback that lasts as long as its `with`; what it says is its handler's part."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from flask import Flask

from torra.dashboard.server import open_server

WAIT = 20.0


def open_warm(app: Flask, prefix: str = "") -> Any:
    """Return a waitress server of an app that has answered once.

    What a double's world takes to make, seconds on a busy machine, is time of no client then.
    """
    app.test_client().get("/healthz", base_url="http://127.0.0.1")
    return open_server(app, "127.0.0.1", 0, prefix=prefix)


def end(server: Any) -> None:
    """End a waitress server, by the thread that reads; another wake of it may close it first."""
    with contextlib.suppress(OSError):
        server.trigger.pull_trigger(server.close)


@contextlib.contextmanager
def served(app: Flask, prefix: str = "") -> Iterator[int]:
    """Serve an app as long as the `with` lasts; yields its port."""
    server = open_warm(app, prefix)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.effective_port
    finally:
        end(server)
        thread.join(WAIT)
        server.task_dispatcher.shutdown()


class Loopback(ThreadingHTTPServer):
    """`released` is set at the end: whoever hangs in a handler is to wait for it."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.released = threading.Event()
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here."""
