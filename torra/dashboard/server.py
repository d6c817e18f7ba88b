"""The web server of the pages: waitress, one process with threads, on this machine only.

Other machines are served only if a person allows it, and then the names that the pages answer to
must be given too (`trusted_names`). An address that may not be served, or a port that is taken, is
a ConfigError with the remedy. `serve` blocks until it is interrupted; `open_server` returns the
server to a caller that runs it in a thread of its own. A proxy on 127.0.0.1 that adds encryption
says so in X-Forwarded-Proto; no other header of a proxy is believed, and no other proxy.
waitress limits the connections: CONNECTIONS of them at once, and none that is silent for long. A
connection whose request is being answered, as each open stream of events, is never ended by this.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from flask import Flask
from waitress.server import TcpWSGIServer  # type: ignore[import-untyped]

from torra.errors import ConfigError

try:
    import resource
except ImportError:  # Windows, where a process may have any number of files open
    resource = None  # type: ignore[assignment]

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 5000
REFUSED_PORTS: Final = frozenset(
    (
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
        102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389,
        427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636,
        989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665,
        6666, 6667, 6668, 6669, 6679, 6697, 10080,
    )
)  # fmt: skip
"""Ports that browsers refuse for http (Fetch standard, section 2.9, "bad port")."""

LAST_PORT: Final = 65535
THREADS: Final = 16
MOST_BYTES: Final = 320 << 10
"""Most bytes of a body that the server reads at all; the limit of the pages is lower. It holds a
body in memory until it is whole, and each of its connections may have one."""

MOST_HEAD: Final = 64 << 10
"""Most bytes of a request's first line and headers: a browser sends the cookies of every port."""

CONNECTIONS: Final = 1500
"""Connections at once: a browser opens six."""

CONNECTIONS_OF_SELECT: Final = 400
"""... where there is no poll(), on Windows: select() ends the server at the 513th connection."""

FILES: Final = 4096
"""Open files that the process asks for where it may have fewer (RLIMIT_NOFILE); 1,024 are usual."""

SILENT_SECONDS: Final = 20
"""A connection on which no byte comes or goes is closed after so long."""

CLEANUP_SECONDS: Final = 5
"""Between two looks for silent connections."""

BODY_IN_MEMORY: Final = 32 << 10
"""Bytes of a body that stand in memory; waitress puts a larger one into a temporary file."""

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\]", re.IGNORECASE)
"""A host name, an address, or an IPv6 address in brackets; no port, no wildcard."""

PREFIX: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]{1,64}){0,8}")
"""Unreserved characters (RFC 3986, section 2.3), and no segment that climbs."""


class WebServer(Protocol):
    """A waitress server that holds its port."""

    effective_port: int

    def run(self) -> None:
        """Answer requests until `close` is called or the thread is interrupted."""
        ...

    def close(self) -> None:
        """Give the port back."""
        ...


def serve(
    app: Flask, host: str = DEFAULT_HOST, port: int = DEFAULT_PORT, *, allow_remote: bool = False
) -> None:
    """Answer requests until interrupted; raises ConfigError when it cannot start."""
    server = open_server(app, host, port, allow_remote=allow_remote)
    try:
        server.run()
    finally:
        server.close()


def open_server(
    app: Flask,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    *,
    allow_remote: bool = False,
    prefix: str = "",
) -> WebServer:
    """Return a waitress server that already holds its port.

    With a `prefix` every link of the pages begins with it, whether a proxy passes it on or cuts it.
    """
    # "Task queue depth is 2" is no fault, and strangers could fill a log with it
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    holder = _bound(host, port, allow_remote=allow_remote)
    server: WebServer = TcpWSGIServer(
        app,
        _sock=holder,
        bind_socket=False,
        sockinfo=(holder.family, holder.type, holder.proto, holder.getsockname()),
        threads=THREADS,
        ident=None,
        asyncore_use_poll=True,  # select() ends the server at the 1,024th open file
        channel_request_lookahead=1,  # so that a stream learns when its reader has left
        max_request_body_size=MOST_BYTES,
        max_request_header_size=MOST_HEAD,
        trusted_proxy=DEFAULT_HOST,
        trusted_proxy_headers={"x-forwarded-proto"},
        url_prefix=prefix,
        connection_limit=connection_limit(),
        channel_timeout=SILENT_SECONDS,
        cleanup_interval=CLEANUP_SECONDS,
        inbuf_overflow=BODY_IN_MEMORY,
    )
    return server


def connection_limit() -> int:
    """Return how many connections may be open at once in this process.

    A process that may have fewer than FILES open files asks for more first. Half of its files are
    for the desk, whose database and channels must never lack one.
    """
    most = CONNECTIONS if hasattr(select, "poll") else CONNECTIONS_OF_SELECT
    if resource is None:
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    if soft < FILES:
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        with suppress(ValueError, OSError):  # a system may allow fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return min(most, max(1, soft // 2))


def check_port(host: str, port: int, *, allow_remote: bool = False) -> None:
    """Raise ConfigError now if `serve` could not have this address; nothing stays open."""
    _bound(host, port, allow_remote=allow_remote).close()


def refused_by_browsers(port: int) -> str:
    """Return what to say of a port that no browser opens, and which to take; "" for all others."""
    if port not in REFUSED_PORTS:
        return ""
    other = next(one for one in range(port, LAST_PORT) if one not in REFUSED_PORTS)
    return (
        f"no browser opens port {port}: it belongs to another service (ERR_UNSAFE_PORT). Start "
        f"with another, such as --port {max(other, DEFAULT_PORT)}"
    )


def trusted_names(named: Sequence[str], *, allow_remote: bool) -> tuple[str, ...]:
    """Return the names that the pages answer to besides this machine's own; raises ConfigError.

    Only the given names are answered, so that no page elsewhere can point a name of its own at
    the desk. Names need the leave to serve other machines, and that leave needs names.
    """
    if named and not allow_remote:
        raise ConfigError("--trusted-host is for pages that others may reach: add --allow-remote")
    if allow_remote and not named:
        raise ConfigError(
            "--allow-remote needs the names that people will open the pages with: add "
            "--trusted-host NAME, once for each"
        )
    for name in named:
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"--trusted-host {name!r} is no host name: give it without http://, port, path or *"
            )
    return tuple(name.lower() for name in named)


def path_prefix(text: str) -> str:
    """Return a path below which a proxy shows the pages, without a slash at its end.

    Raises ConfigError for what is no such path.
    """
    prefix = text.rstrip("/")
    if (text and not prefix) or not PREFIX.fullmatch(prefix):
        raise ConfigError(
            f"--prefix {text!r} is no path: it begins with a slash and names a folder, such as "
            "/torra"
        )
    return prefix


def _bound(host: str, port: int, *, allow_remote: bool) -> socket.socket:
    _check_reach(host, allow_remote=allow_remote)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere the option would share a port that is in use
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host.strip("[]"), port))
    except (OSError, OverflowError) as error:
        holder.close()
        raise _taken(host, port, error) from error
    return holder


def _taken(host: str, port: int, error: Exception) -> ConfigError:
    other = port + 1 if 0 < port < LAST_PORT else DEFAULT_PORT
    reason = getattr(error, "strerror", None) or error
    return ConfigError(
        f"port {port} on {host} cannot be opened ({reason}): another program may hold it; "
        f"choose another, such as PORT={other}"
    )


def _check_reach(host: str, *, allow_remote: bool) -> None:
    """Refuse an address that other machines reach, unless they may."""
    if is_local(host) or (allow_remote and host):
        return
    raise ConfigError(
        f"the pages are served on this machine only: {host or 'no address'} is not 127.0.0.1; "
        "reach them from elsewhere through an SSH tunnel, or see docs/security.md for "
        "--allow-remote"
    )


def is_local(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
