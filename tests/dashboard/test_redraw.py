"""What of a stream changes its chart also changes the page's word of what is drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.worlds import demo_orders
from torra.clock import Simulated
from torra.dashboard.screens import views
from torra.dashboard.view.desk_view import DatabaseView


@pytest.mark.parametrize("what", ["stop", "target", "gone", "trade", "tick", "bar"])
def test_the_chart_is_drawn_again_for(what: str, tmp_path: Path) -> None:
    start = demo_orders.START + demo_orders.STEPS * demo_orders.QUARTER
    backing = demo_orders.build(tmp_path, clock=Simulated(start + timedelta(seconds=30)))
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    data = view.symbol("EURUSD", "H1", 30)
    assert data is not None
    held = data.holding
    assert held is not None and data.trades and data.ticks and data.bars
    position = held.position
    other = {
        "stop": lambda: replace(data, holding=held._replace(position=replace(position, stop=1.0))),
        "target": lambda: replace(
            data, holding=held._replace(position=replace(position, target=2.0))
        ),
        "gone": lambda: replace(data, holding=None),
        "trade": lambda: replace(data, trades=data.trades[1:]),
        "tick": lambda: replace(data, ticks=data.ticks[1:]),
        "bar": lambda: replace(data, bars=data.bars[:-1]),
    }[what]()
    backing.database.close()
    assert views._chart_version(data) != views._chart_version(other)
