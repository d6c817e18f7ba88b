"""Apps whose visitors log in as people and programs do: known tokens, a clock that a test moves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.wrappers import Response

from tests.worlds import desks
from tests.worlds.demo_view import ScriptedView
from torra.clock import Clock, System, iso
from torra.config import DeskSettings
from torra.dashboard import app as dashboard_app
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import SCOPES, Access
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.schedule import Desk

TOKENS = {scope: f"{scope}-token".ljust(64, "0") for scope in SCOPES}
KEY = "k" * 64
OURS = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
"""What a browser says of a request from our own page."""


class Moved(System):
    """A clock whose real time stands until a test moves it."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 2, 13, 12, tzinfo=UTC)
        self.passed = 0.0

    def real_now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.passed

    def pass_by(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.passed += seconds


def make_access(clock: Clock | None = None) -> Access:
    return Access(TOKENS, KEY, clock=clock or Moved())


def scripted_app(access: Access | None = None, **named: Any) -> Flask:
    return create_app(ScriptedView(), access=access or make_access(), **named)


def desk_app(desk: Desk, home: Path, access: Access | None = None) -> Flask:
    """Return an app over a real desk, as `torra run` makes it."""
    settings = DeskSettings(instances=(desks.BTC,))
    return create_app(
        DatabaseView(desk.database, settings, desk),
        access=access or make_access(),
        backing=PageContext(home, desk.database, settings, desk, {}),
    )


def bearer(scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[scope]}"}


def log_in(client: FlaskClient, scope: str, **more: Any) -> Response:
    """Log a browser in with the form; return the answer."""
    return client.post("/login", data={"token": TOKENS[scope]}, headers=OURS, **more)


def csrf_of(client: FlaskClient, address: str = "/help") -> str:
    """Return the token that a session's pages carry."""
    found = re.search(r'data-csrf="(\w+)"', client.get(address).get_data(as_text=True))
    assert found, "a page of a session carries its token"
    return found[1]


class Place:
    """A small real desk after one close, and the pages over it, as `torra run` makes them.

    Who was let through is seen by `reached`: the names of the views that were called. Where `real`
    is False these answer nothing; error pages never say anything here, which saves their making.
    """

    def __init__(self, home: Path) -> None:
        self.clock = Moved()
        self.access = make_access(self.clock)
        self.desk = desks.open_desk(home)
        desks.open_for_work(self.desk)
        close = desks.step(self.desk)
        self.app = desk_app(self.desk, home, self.access)
        self.reached: list[str] = []
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

    def _watched(self, name: str, view: Callable[..., Any]) -> Callable[..., Any]:
        def run(**named: Any) -> Any:
            self.reached.append(name.rpartition(".")[2])
            return view(**named) if self.real else ""

        return run

    def address(self, rule: str) -> str:
        """Return an address of a rule; what a desk names by itself is one that it has."""
        return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: self.known.get(found[1], "unknown"), rule)

    def ask(
        self, method: str, rule: str, client: FlaskClient | None = None, **named: Any
    ) -> Response:
        """Ask as somebody who was not here for a while; return the answer, closed."""
        self.clock.passed += 600
        self.reached.clear()
        client = client or self.app.test_client()
        with client.open(self.address(rule), method=method, **named) as answer:
            if answer.mimetype != "text/event-stream":
                answer.get_data()
            return answer

    def changes(self) -> int:
        """Return how many rows of the database were written so far."""
        return self.desk.database.connection().conn.total_changes


def ids_of(routes: Iterable[Any]) -> list[str]:
    return [f"{route.name} {'/'.join(route.methods)}" for route in routes]
