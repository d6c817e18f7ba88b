"""A symbol's page warns where one side has been rare for long, counted over its timeframes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.page_reader import page_of
from tests.worlds import desks
from torra.config import DeskSettings
from torra.dashboard.view.desk_values import Symbol
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.schedule import Desk
from torra.verdict import one_sided

SETTINGS = DeskSettings(instances=(desks.BTC,))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = desks.open_desk(tmp_path, SETTINGS.instances)
    desks.open_for_work(made)
    for _ in range(6):
        desks.step(made)
    yield made
    made.close()


def shown(desk: Desk) -> tuple[Symbol, str]:
    """Return what the page of a stream is made of, and its words."""
    data = DatabaseView(desk.database, SETTINGS, desk).symbol("BTCUSD", "M15", 20)
    assert data is not None
    return data, page_of("/symbol/BTCUSD/M15", symbol=data).text


def test_every_timeframe_s_newest_verdicts_are_counted_anew_with_each_tick(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sum(len(desk.database.ticks("BTCUSD", name, 100)) for name in ("M15", "H1"))
    data, text = shown(desk)
    assert sum(data.sides.values()) == run
    assert "One side is rare" not in text
    desks.step(desk)
    assert sum(shown(desk)[0].sides.values()) > run
    with desk.database.transaction():
        desk.database.connection().execute("UPDATE chains SET verdict = 'SELL'")
    monkeypatch.setattr(one_sided, "TICKS", 5)
    monkeypatch.setattr(one_sided, "LEAST", 5)
    warning = "! One side is rare: of the newest 5 ticks 5 say SELL and none says BUY."
    assert warning in shown(desk)[1]
