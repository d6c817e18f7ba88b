"""Programs without a token that hold connections to the pages open: a process of their own.

    python tests/doubles/strangers.py PORT SILENT SLOW

Silent ones say nothing. Of the slow ones a third each send the head of a request and the body of a
login byte by byte, and ask for the login page and do not read it. Each that is ended comes again at
once. It says "open" when all are open, and when its input ends how many were ended meanwhile.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Final

BYTE_SECONDS: Final = 1.0
"""Between two bytes of a slow one."""

HOST: Final = b"Host: 127.0.0.1\r\n"
LOGIN: Final = b"POST /login HTTP/1.1\r\n" + HOST + b"Content-Length: 200000\r\n\r\n"
PAGE: Final = b"GET /login HTTP/1.1\r\n" + HOST + b"\r\n"
HEAD: Final = b"GET / HTTP/1.1\r\nX-Slow: "
FIRST: Final = {"silent": b"", "head": HEAD, "body": LOGIN, "reader": PAGE}
NEXT: Final = {"head": b"x", "body": b"x", "reader": b"\r\n"}
SLOW: Final = tuple(NEXT)


@dataclass
class Siege:
    """What the strangers told at their end."""

    process: subprocess.Popen[str]
    ended: int = 0

    def holds(self) -> bool:
        """Return whether the strangers are still at it."""
        return self.process.poll() is None


@contextmanager
def besieged(port: int, silent: int, slow: int) -> Iterator[Siege]:
    """Yield while so many strangers hold their connections open."""
    words = [str(Path(__file__)), str(port), str(silent), str(slow)]
    with subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        siege = Siege(process)
        try:
            assert process.stdout.readline() == "open\n"
            yield siege
        finally:
            process.stdin.close()
            siege.ended = int(process.stdout.readline() or 0)


class Strangers:
    """The connections of one such process."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.selector = selectors.DefaultSelector()
        self.held: dict[socket.socket, str] = {}
        self.ended = 0

    def come(self, kind: str) -> None:
        """Open a connection."""
        made = socket.create_connection(("127.0.0.1", self.port))
        made.setblocking(False)
        made.send(FIRST[kind])
        self.held[made] = kind
        if kind != "reader":
            self.selector.register(made, selectors.EVENT_READ)

    def again(self, one: socket.socket) -> None:
        """Open another in the place of one that was ended."""
        kind = self.held.pop(one)
        if kind != "reader":
            self.selector.unregister(one)
        one.close()
        self.ended += 1
        self.come(kind)

    def stay(self) -> None:
        """Hold all of them open until the input ends."""
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        send_at = time.monotonic()
        while True:
            for key, _ in self.selector.select(0.05):
                if key.fileobj is sys.stdin:
                    return
                assert isinstance(key.fileobj, socket.socket)
                if over(key.fileobj):
                    self.again(key.fileobj)
            if time.monotonic() >= send_at:
                send_at += BYTE_SECONDS
                for one, kind in list(self.held.items()):
                    if kind != "silent" and not sent(one, NEXT[kind]):
                        self.again(one)


def over(one: socket.socket) -> bool:
    """Return whether the other end has closed a connection that has nothing to read."""
    try:
        return not one.recv(1000)
    except BlockingIOError:
        return False
    except OSError:
        return True


def sent(one: socket.socket, told: bytes) -> bool:
    """Return whether the other end still takes something."""
    try:
        one.send(told)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def main(port: int, silent: int, slow: int) -> None:
    """Hold so many connections open until the input ends."""
    strangers = Strangers(port)
    for kind in (*["silent"] * silent, *islice(cycle(SLOW), slow)):
        strangers.come(kind)
    print("open", flush=True)
    strangers.stay()
    print(strangers.ended, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
