"""Serving the pages on this machine only, with waitress: one process, threads, Windows included.

An address that is not the loopback and a port that is taken are a ConfigError with the remedy;
nothing else is promised. `serve` blocks until it is interrupted, `open_server` hands the server to
a caller that runs it on a thread of its own.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Any, Final

from flask import Flask
from waitress.server import create_server  # type: ignore[import-untyped]

from torra.errors import ConfigError

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 5000
LAST_PORT: Final = 65535
THREADS: Final = 16


def serve(app: Flask, host: str = DEFAULT_HOST, port: int = DEFAULT_PORT) -> None:
    """Answer requests until interrupted; raises ConfigError when it cannot start."""
    server = open_server(app, host, port)
    try:
        server.run()
    finally:
        server.close()


def open_server(app: Flask, host: str = DEFAULT_HOST, port: int = DEFAULT_PORT) -> Any:
    """Return a waitress server that already holds its port; `run()` serves, `close()` ends it."""
    return create_server(app, sockets=[_bound(host, port)], threads=THREADS, ident=None)


def check_port(host: str, port: int) -> None:
    """Raise ConfigError now if `serve` could not have this address; nothing stays open."""
    _bound(host, port).close()


def _bound(host: str, port: int) -> socket.socket:
    _loopback_only(host)
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
    said = getattr(error, "strerror", None) or error
    return ConfigError(
        f"port {port} on {host} cannot be opened ({said}): another program may hold it; "
        f"choose another, such as PORT={other}"
    )


def _loopback_only(host: str) -> None:
    try:
        local = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        local = False
    if not local:
        raise ConfigError(
            f"the pages have no password and are served on this machine only: {host} is not "
            f"127.0.0.1; reach them from elsewhere through an SSH tunnel"
        )
