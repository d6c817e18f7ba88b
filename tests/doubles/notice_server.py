"""A web hook on the loopback that takes notices, refuses them, never answers, or lies."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from tests.doubles.loopback import Loopback

How = Literal["takes", "refuses", "hangs", "drips", "floods", "garbles", "leads on"]
FLOOD = b"x" * 65_536


class WebHook(Loopback):
    """What it was sent is in `got`; `how` says what it does with the next."""

    def __init__(self, how: How = "takes") -> None:
        super().__init__(_Handler)
        self.how: How = how
        self.got: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def address(self, rest: str = "hook") -> str:
        """Where it is, as Apprise writes it."""
        return f"json://127.0.0.1:{self.server_address[1]}/{rest}"


class _Handler(BaseHTTPRequestHandler):
    server: WebHook

    def do_POST(self) -> None:
        how, hook = self.server.how, self.server
        hook.paths.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if how == "hangs":
            hook.released.wait(60)
            return
        if how == "garbles":
            self.wfile.write(b"\x00\xff no protocol at all\r\n\r\n")
            self.close_connection = True
            return
        if how == "takes":
            hook.got.append(json.loads(body))
        self.send_response({"refuses": 500, "leads on": 307}.get(how, 200))
        if how == "leads on":
            self.send_header("Location", f"{hook.url}/elsewhere")
        if how in ("drips", "floods"):
            self.end_headers()
            self._never_end(b"." if how == "drips" else FLOOD, 0.1 if how == "drips" else 0.0)
            return
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _never_end(self, piece: bytes, pause: float) -> None:
        for _ in range(100_000):
            if self.server.released.wait(pause):
                return
            self.wfile.write(piece)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""
