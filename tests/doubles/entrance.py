"""Apps whose visitors log in as people and programs do: known tokens, a clock that a test moves."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.doubles.page_reader import COMPILED
from tests.worlds import desks
from tests.worlds.demo_view import ScriptedView
from torra.clock import System, iso
from torra.config import DeskSettings
from torra.dashboard import app as dashboard_app
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import SCOPES, Access
from torra.dashboard.view.backing import Backing
from torra.dashboard.view.desk_view import DatabaseView

TOKENS = {scope: f"{scope}-token".ljust(64, "0") for scope in SCOPES}
KEY = "k" * 64
OURS = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
"""What a browser says of a request from our own page."""


class Moved(System):
    """A clock whose real time stands until a test moves it."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 2, 13, 12, tzinfo=UTC)
        self.passed = 0.0

    def real_now(self):
        return self.moment

    def monotonic(self):
        return self.passed

    def pass_by(self, seconds) -> None:
        self.moment += timedelta(seconds=seconds)
        self.passed += seconds


def make_access(clock=None):
    return Access(TOKENS, KEY, clock=clock or Moved())


def scripted_app(access=None, **named):
    return compiled(create_app(ScriptedView(), access=access or make_access(), **named))


def compiled(app):
    """Return an app that does not compile its templates anew."""
    app.jinja_env.bytecode_cache = COMPILED
    return app


def desk_app(desk, home, access=None):
    """Return an app over a real desk, as `torra run` makes it."""
    settings = DeskSettings(instances=(desks.BTC,))
    made = create_app(
        DatabaseView(desk.database, settings, desk),
        access=access or make_access(),
        backing=Backing(home, desk.database, settings, desk, {}),
    )
    return compiled(made)


def bearer(scope):
    return {"Authorization": f"Bearer {TOKENS[scope]}"}


def log_in(client, scope, **more):
    """Log a browser in with the form; return the answer."""
    return client.post("/login", data={"token": TOKENS[scope]}, headers=OURS, **more)


def csrf_of(client, address="/help"):
    """Return the token that a session's pages carry."""
    found = re.search(r'data-csrf="(\w+)"', client.get(address).get_data(as_text=True))
    assert found, "a page of a session carries its token"
    return found[1]


class Place:
    """A small real desk after one close, and the pages over it, as `torra run` makes them.

    Who was let through is seen by `reached`: the names of the views that were called. Where `real`
    is False these answer nothing; error pages never say anything here, which saves their making.
    """

    def __init__(self, home) -> None:
        self.clock = Moved()
        self.access = make_access(self.clock)
        self.desk = desks.open_desk(home)
        desks.take_lease(self.desk)
        close = desks.step(self.desk)
        self.app = desk_app(self.desk, home, self.access)
        self.reached = []
        self.real = True
        for name, view in list(self.app.view_functions.items()):
            self.app.view_functions[name] = self._watched(name, view)
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(dashboard_app, "page", lambda *_, **__: "an error")
        self.known = {
            "instance": "BTCUSD",
            "timeframe": "M15",
            "bar_time": iso(close - desks.QUARTER),
            "name": "default",
            "missing": "nothing",
        }

    def close(self) -> None:
        self._patch.undo()
        self.desk.close()

    def _watched(self, name, view):
        def run(**named):
            self.reached.append(name.rpartition(".")[2])
            return view(**named) if self.real else ""

        return run

    def address(self, rule):
        """Return an address of a rule; what a desk names by itself is one that it has."""
        return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: self.known.get(found[1], "unknown"), rule)

    def ask(self, method, rule, client=None, **named):
        """Ask as somebody who was not here for a while; return the answer, closed."""
        self.clock.passed += 600
        self.reached.clear()
        client = client or self.app.test_client()
        with client.open(self.address(rule), method=method, **named) as answer:
            if answer.mimetype != "text/event-stream":
                answer.get_data()
            return answer

    def changes(self):
        """Return how many rows of the database were written so far."""
        return self.desk.database.connection().conn.total_changes


def ids_of(routes):
    return [f"{route.name} {'/'.join(route.methods)}" for route in routes]
