"""Apps whose every request comes from a person who is logged in, and tokens for those that do not.

`open_app` is `create_app` with known tokens; a request without a token of its own gets the
admin's, so that tests of figures need not log in.
"""

from __future__ import annotations

from torra.dashboard.app import create_app
from torra.dashboard.doors.access import SCOPES, Access

ACCESS = Access({scope: f"token-to-{scope}" for scope in SCOPES}, "a key that signs sessions")


class LoggedIn:
    """A WSGI app that adds a bearer token where the request brings neither token nor cookie."""

    def __init__(self, app, scope="admin") -> None:
        self.app = app
        self.token = ACCESS.tokens[scope]

    def __call__(self, environ, start):
        if "HTTP_COOKIE" not in environ:
            environ.setdefault("HTTP_AUTHORIZATION", f"Bearer {self.token}")
        return self.app(environ, start)


def open_app(view, scope="admin", **named):
    app = create_app(view, access=ACCESS, **named)
    app.wsgi_app = LoggedIn(app.wsgi_app, scope)
    return app


def bearer(scope):
    return {"Authorization": f"Bearer {ACCESS.tokens[scope]}"}
