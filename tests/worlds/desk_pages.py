"""The pages of a desk with everything behind them: its home, its database, its settings.

`open_pages` runs a few closes of the sample through a desk whose clock stands still and returns the
app, logged in, with what stands behind it. The clock of the ledger is the desk's real time, which
stands still too. A desk of the same closes is lived through once, and its database copied.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from instance_database import Database
from tests.doubles.visitors import open_app
from tests.worlds import desks
from torra import clock
from torra.config import DeskSettings, Instance, Profile, validate
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.providers.registry import open_provider

RULES = Profile()
PAYING = {"agents": {"provider": "anthropic", "mode": "full", "max_api_cost_per_hour": 0.5}}


@dataclass
class Pages:
    """An app and what stands behind it."""

    app: Any
    desk: Any
    backing: PageContext

    @property
    def database(self) -> Database:
        return self.backing.database

    def client(self) -> FlaskClient:
        return self.app.test_client()

    def text(self, address: str, status: int = 200) -> str:
        answer = self.client().get(address)
        assert answer.status_code == status, answer.text[:300]
        return answer.text

    def json(self, address: str, status: int = 200) -> Any:
        answer = self.client().get(address)
        assert answer.status_code == status, answer.text[:300]
        return answer.json


def open_pages(
    home: Path,
    instances: tuple[Instance, ...] = (desks.BTC,),
    *,
    profile: dict[str, Any] | None = None,
    steps: int = 2,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> Pages:
    home.mkdir(exist_ok=True, parents=True)
    settings = DeskSettings(instances=tuple(instances))
    lived = None
    if steps and not more:
        # By its clock, too: a golden's stands still, and what is stored has its time.
        lived, moment = _lived(
            tuple(instances), json.dumps(profile or {}), steps, vars(clock)["datetime"]
        )
        (home / "torra.db").write_bytes(lived)
    desk = _open_desk(home, instances, profile, **more)
    if lived is None:
        for _ in range(steps):
            desks.step(desk)
    else:
        desks.clock_of(desk).set(moment)
    backing = PageContext(home, desk.database, settings, desk, environment or {})
    return behind_a_new_app(desk, backing)


def _open_desk(
    home: Path, instances: tuple[Instance, ...], profile: dict[str, Any] | None, **more: Any
) -> Any:
    found = validate(Profile, profile or {}, "a test")
    provider = more.pop("provider", None) or open_provider(RULES.agents)
    desk = desks.open_desk(home, instances, profile=found, provider=provider, **more)
    stopped = desk.clock.real_now()
    vars(desk.clock)["real_now"] = lambda: stopped
    desks.open_for_work(desk)
    return desk


@cache
def _lived(
    instances: tuple[Instance, ...], profile: str, steps: int, _clock: type[datetime]
) -> tuple[bytes, datetime]:
    """Return the database after some closes, of no run, and where the clock stood."""
    with tempfile.TemporaryDirectory() as folder:
        desk = _open_desk(Path(folder), instances, json.loads(profile))
        for _ in range(steps):
            moment = desks.step(desk)
        with desk.database.transaction():
            desk.database.connection().execute("DELETE FROM desk_run")
        path = Path(folder) / "copy.db"
        desk.database.copy(Path(folder) / "torra.db", path)
        desk.close()
        return path.read_bytes(), moment


def behind_a_new_app(desk: Any, backing: PageContext) -> Pages:
    """Return the pages of a desk that is open: nobody has asked the app for anything yet."""
    view = DatabaseView(desk.database, backing.settings, desk)
    return Pages(open_app(view, backing=backing), desk, backing)
