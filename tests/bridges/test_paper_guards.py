"""The paper bridge refuses what the Expert Advisor would, with the same reason.

The table of guards is one (torra.bridges.guards), and its edges are in test_guard_edges. Here: that
paper asks what the table asks, of closes too; that the first objection is the one that is told; and
that an order without limits is filled as before.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.bridges.guards import GuardRequest, View, first_objection
from torra.bridges.paper import (
    FREE,
    Advanced,
    Bar,
    PaperOrder,
    PaperPosition,
    acceptance,
    advance,
)
from torra.config import SYMBOLS, SymbolSpec
from torra.verdict.order_levels import Side
from torra.verdict.risk_engine import Kind

SPREAD = 0.5
T = datetime(2021, 12, 3, 12, tzinfo=UTC)
STEP = timedelta(minutes=15)
GOLD = SYMBOLS["XAUUSD"].model_copy(update={"lot_max": 5.0, "stops_level": 300})
OPEN = PaperOrder(
    "TOPEN", "open", "BUY", 0.1, 1990.0, 2020.0, T,
    entry=2000.0, max_spread_pts=60, max_dev_pts=100,
)  # fmt: skip
CLOSE = PaperOrder("TCLOSE", "close", "SELL", 0.1, None, None, T, closes="THELD")
HELD = PaperPosition("THELD", "LONG", 0.1, 2000.0, 1990.0, 2020.0, T - STEP)


def selling(order: PaperOrder) -> PaperOrder:
    return replace(order, side="SELL", stop=2010.0, target=1980.0)


def meet(
    order: PaperOrder,
    opened: float = 2000.0,
    *,
    spread: float = SPREAD,
    position: PaperPosition | None = None,
    conditions: View = FREE,
    spec: SymbolSpec = GOLD,
) -> Advanced:
    bar = Bar(T, opened, opened, opened, opened)
    return advance([order], position, bar, spread, spec, conditions)


def answer(*args: Any, **rest: Any) -> str:
    """Return the reason that an order was refused, "" when it was executed."""
    (first, *_) = meet(*args, **rest).events
    assert first.kind == ("REJECTED" if first.reason else "FILLED")
    return first.reason


@pytest.mark.parametrize(
    ("order", "stop", "reason"),
    [
        # Bid 2000, ask 2000.5, and no stops level.
        (OPEN, 1999.99, ""),
        (OPEN, 2000.0, "retcode"),
        (OPEN, 2000.49, "retcode"),
        (OPEN, 2000.5, "side"),
        (selling(OPEN), 2000.51, ""),
        (selling(OPEN), 2000.5, "retcode"),
        (selling(OPEN), 2000.01, "retcode"),
        (selling(OPEN), 2000.0, "side"),
    ],
)
def test_a_stop_between_bid_and_ask_is_no_brokers(
    order: PaperOrder, stop: float, reason: str
) -> None:
    free = GOLD.model_copy(update={"stops_level": 0})
    bar = Bar(T, 2000.0, 2000.0, 2000.0, 2000.0)
    (event,) = advance([replace(order, stop=stop)], None, bar, SPREAD, free).events
    assert event.reason == reason


def test_the_second_opening_of_a_bar_meets_the_first() -> None:
    """The trades of a bar count for the orders after them."""
    one = replace(FREE, max_trades_per_day=1)
    again = replace(OPEN, sid="TAGAIN", after="TCLOSE")
    bar = Bar(T, 2000.0, 2000.0, 2000.0, 2000.0)
    closing = replace(CLOSE, closes="TOPEN")
    for conditions, last in ((FREE, ("FILLED", "")), (one, ("REJECTED", "max_trades"))):
        advanced = advance([OPEN, closing, again], None, bar, SPREAD, GOLD, conditions)
        assert [event.kind for event in advanced.events[:3]] == ["FILLED", "FILLED", "CLOSED"]
        assert (advanced.events[3].kind, advanced.events[3].reason) == last


@pytest.mark.parametrize("missing", ["entry", "max_dev_pts", "max_spread_pts"])
def test_no_limit_means_no_question(missing: str) -> None:
    """Signals that were stored without limits are filled as they always were."""
    order = replace(OPEN, **{missing: None})
    wide = missing == "max_spread_pts"
    met = {"opened": 2000.0, "spread": 0.9} if wide else {"opened": 2006.0, "spread": 0.5}
    assert answer(order, met["opened"], spread=met["spread"]) == ""
    assert answer(OPEN, met["opened"], spread=met["spread"]) == ("spread" if wide else "deviation")
    zero = replace(OPEN, max_spread_pts=0, max_dev_pts=0)
    assert answer(zero) == "spread"
    assert answer(zero, spread=0.0) == ""
    assert answer(zero, 2000.01, spread=0.0) == "deviation"


NOW = T + timedelta(seconds=10)
MESSAGE = GuardRequest(
    "open", "BUY", 0.1, created=int(T.timestamp()), expires=int(T.timestamp()) + 180,
    channel="main", account=7,
)  # fmt: skip
HERE = replace(FREE, channel="main", account=7)


def test_acceptance_needs_no_conditions() -> None:
    """What publishing on paper asks: halt, clock and expiry."""
    plain = GuardRequest("close", "SELL", 0.1, created=MESSAGE.created, expires=MESSAGE.expires)
    assert acceptance(plain, NOW) == ""
    assert acceptance(plain, NOW + timedelta(minutes=3)) == "stale"
    assert acceptance(plain, T - timedelta(seconds=6)) == "clock"
    assert acceptance(plain, NOW, replace(FREE, halted=True)) == "kill"


ASKS = st.builds(
    GuardRequest,
    kind=st.sampled_from(("open", "close")),
    side=st.sampled_from(("BUY", "SELL")),
    lots=st.sampled_from((0.0, 0.05, 0.1, 0.105, 6.0)),
    entry=st.sampled_from((2000.0, 2002.0)),
    stop=st.sampled_from((1990.0, 1999.5, 2010.0)),
    target=st.sampled_from((1980.0, 2001.0, 2020.0)),
    created=st.just(MESSAGE.created),
    expires=st.just(MESSAGE.expires),
    max_spread_pts=st.sampled_from((40, 60)),
    max_dev_pts=st.sampled_from((50, 300)),
    authentic=st.booleans(),
    channel=st.sampled_from(("main", "main", "other")),
    account=st.just(7),
)
AROUND = st.fixed_dictionaries(
    {
        "halted": st.booleans(),
        "connected": st.booleans(),
        "trade_mode": st.sampled_from(("full", "full", "long_only", "disabled")),
        "session_open": st.booleans(),
        "max_lots": st.sampled_from((0.0, 0.09)),
        "positions": st.integers(0, 2),
        "max_positions": st.sampled_from((0, 2)),
        "trades_today": st.integers(0, 2),
        "max_trades_per_day": st.sampled_from((0, 2)),
    }
)


@given(ASKS, AROUND, st.sampled_from((None, HELD)))
def test_acceptance_and_fill_together_ask_what_the_table_asks(
    order: GuardRequest, around: dict[str, Any], position: PaperPosition | None
) -> None:
    """One look at everything, as the Expert Advisor takes it, and paper's two looks agree."""
    conditions = replace(HERE, **around)
    spread = 0.5
    view = replace(
        conditions, now=int(NOW.timestamp()), bid=2000.0, ask=2000.0 + spread, digits=2,
        stops_level=300, lot_max=5.0, positions=conditions.positions + (position is not None),
        held=position is not None, found=position is not None,
        found_lots=position.lots if position else 0.0,
    )  # fmt: skip
    waiting = PaperOrder(
        "TNEW", cast(Kind, order.kind), cast(Side, order.side), order.lots, order.stop,
        order.target, T, entry=order.entry, max_spread_pts=order.max_spread_pts,
        max_dev_pts=order.max_dev_pts,
    )  # fmt: skip
    told = acceptance(order, NOW, conditions) or answer(
        waiting, spread=spread, position=position, conditions=conditions
    )
    assert told == first_objection(order, view)
