"""Arms with trades, for tests of the statistics of arms: one every so often, in account money."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from tests.worlds.observed import START, plain_tick
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.observations import ArmObservation, TradeObservation

RISK = 100.0
"""What 1 R is in these arms, in account currency."""


def trade(opened: datetime, r: float, hours: float = 2.0, **fields: Any) -> TradeObservation:
    """Return a long of one lot that risks RISK on one unit of the price."""
    given: dict[str, Any] = {
        "instance": "XAUUSD",
        "symbol": "XAUUSD",
        "timeframe": "M15",
        "side": "BUY",
        "decided": opened,
        "opened": opened,
        "closed": opened + timedelta(hours=hours),
        "entry": 100.0,
        "exit": 100.0 + r,
        "stop": 99.0,
        "target": 102.0,
        "lots": 1.0,
        "r": r,
        "profit": r * RISK,
        "reason": "STOPPED" if r < 0 else "TARGET",
    }
    return TradeObservation(**(given | fields))


def arm_of(
    results: Iterable[float], name: str = "l1", every: float = 6.0, **fields: Any
) -> ArmObservation:
    """Return an arm that at every so many hours has an H1 tick and opens a trade; a last tick."""
    values = [float(r) for r in results]
    starts = [START + timedelta(hours=every * n) for n in range(len(values))]
    trades = tuple(trade(start, r, timeframe="H1") for start, r in zip(starts, values, strict=True))
    cost = fields.pop("cost_usd", 0.0)
    ticks = tuple(plain_tick(start, "H1", cost_usd=cost) for start in starts)
    last = plain_tick(START + timedelta(hours=every * len(values)), "H1")
    return ArmObservation(name, (*ticks, last), trades, **fields)


def coin(seed: int, count: int, edge: float = 0.0) -> np.ndarray:
    """Return results of brackets that win 2 R one time in three."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(count) < (1 + edge) / 3, 2.0, -1.0)


def shows_no_gaps(exhibit: Exhibit) -> None:
    """Assert what holds of every exhibit: plain values, a sentence, as many cells as columns."""
    assert exhibit.says.strip().endswith(".")
    assert "nan" not in exhibit.says.lower().split()
    for row in exhibit.rows:
        assert len(row) == len(exhibit.columns)
        _plain(row)
    _plain(exhibit.figures.values())
    for plot in exhibit.plots:
        for line in plot.lines:
            _plain(y for _, y in line.points)


def _plain(values: Iterable[Any] | Sequence[Any]) -> None:
    for value in values:
        assert value is None or type(value) in (str, int, float, bool), repr(value)
        assert not isinstance(value, float) or np.isfinite(value)
