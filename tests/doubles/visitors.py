"""Apps whose every request comes from a person who is logged in, and tokens for those that do not.

`open_app` is `create_app` with known tokens; a request without a token of its own gets the
admin's, so that tests of figures need not log in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask

from torra.dashboard.app import create_app
from torra.dashboard.doors.access import SCOPES, Access
from torra.dashboard.view.desk_view import DeskView

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def new_access() -> Access:
    """Return the known tokens, with no session ended yet."""
    return Access({scope: f"token-to-{scope}" for scope in SCOPES}, "a key that signs sessions")


ACCESS = new_access()


class LoggedIn:
    """A WSGI app that adds a bearer token where the request brings neither token nor cookie."""

    def __init__(self, app: WSGIApplication, scope: str = "admin") -> None:
        self.app = app
        self.token = ACCESS.tokens[scope]

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if "HTTP_COOKIE" not in environ:
            environ.setdefault("HTTP_AUTHORIZATION", f"Bearer {self.token}")
        return self.app(environ, start)


def open_app(view: DeskView, scope: str = "admin", **named: Any) -> Flask:
    app = create_app(view, access=ACCESS, **named)
    wrap(app, LoggedIn(app.wsgi_app, scope))
    return app


def wrap(app: Flask, outside: WSGIApplication) -> None:
    """Let every request of an app go through `outside`."""
    vars(app)["wsgi_app"] = outside  # Flask's own way, app.wsgi_app = outside, is a typing error


def bearer(scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {ACCESS.tokens[scope]}"}
