"""A symbol's page warns where one side has been rare for long, counted over its timeframes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import desks
from torra.config import DeskSettings
from torra.dashboard.cells import symbol_cells
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


def told(desk: Desk, view: DatabaseView) -> tuple[Any, dict[str, Any]]:
    data: Any = view.symbol("BTCUSD", "M15", 20)
    return data, symbol_cells.symbol(data, lambda *_: "")["cells"]


def test_every_timeframe_s_newest_verdicts_are_counted_anew_with_each_tick(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = DatabaseView(desk.database, SETTINGS, desk)
    run = sum(len(desk.database.ticks("BTCUSD", name, 100)) for name in ("M15", "H1"))
    data, cells = told(desk, view)
    assert sum(data.sides.values()) == run
    assert cells["head.sided"]["hidden"]
    desks.step(desk)
    assert sum(told(desk, view)[0].sides.values()) > run
    with desk.database.transaction():
        desk.database.connection().execute("UPDATE chains SET verdict = 'SELL'")
    monkeypatch.setattr(one_sided, "TICKS", 5)
    monkeypatch.setattr(one_sided, "LEAST", 5)
    _, cells = told(desk, DatabaseView(desk.database, SETTINGS, desk))
    assert cells["head.sided"]["text"] == (
        "! One side is rare: of the newest 5 ticks 5 say SELL and none says BUY."
    )
    assert not cells["head.sided"]["hidden"]
