"""The paper bridge reads a bar as a market would have: gaps, spread sides, stop before target."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from torra.bridges.guards import REASONS, GuardRequest
from torra.bridges.paper import (
    AT_ACCEPTANCE,
    AT_FILL,
    FREE,
    Advanced,
    Bar,
    PaperOrder,
    PaperPosition,
    acceptance,
    advance,
    advance_all,
)
from torra.config import SYMBOLS, SymbolSpec
from torra.verdict.order_levels import Side
from torra.verdict.risk_engine import PositionSide

GOLD = SYMBOLS["XAUUSD"]  # one dollar of price is 100 dollars a lot
SLIPPERY = GOLD.model_copy(update={"slippage": 0.3})
THIN = GOLD.model_copy(update={"fill_lots": 0.04})
SPREAD = 0.5
T = datetime(2021, 12, 3, 12, tzinfo=UTC)
STEP = timedelta(minutes=15)


def opening(
    side: Side = "BUY", *, sid: str = "TOPEN", at: datetime = T, after: str | None = None
) -> PaperOrder:
    """An opening decided at a price of 2000, stop 10 away, target 20."""
    towards = 1 if side == "BUY" else -1
    return PaperOrder(sid, "open", side, 0.1, 2000 - 10 * towards, 2000 + 20 * towards, at, after)


def closing(side: Side = "SELL", *, sid: str = "TCLOSE", at: datetime = T) -> PaperOrder:
    return PaperOrder(sid, "close", side, 0.1, None, None, at)


def holding(side: PositionSide = "LONG", entry: float = 2000.0) -> PaperPosition:
    towards = 1 if side == "LONG" else -1
    stop, target = 2000.0 - 10 * towards, 2000.0 + 20 * towards
    return PaperPosition("TOPEN", side, 0.1, entry, stop, target, T - STEP)


def bar(opened: float, high: float, low: float, close: float = 2000.0, at: datetime = T) -> Bar:
    return Bar(at, opened, high, low, close)


def live(orders, position, *bars: Bar, spec: SymbolSpec = GOLD) -> Advanced:
    return advance_all(orders, position, bars, cursor=None, spread=SPREAD, spec=spec)[0]


def told(advanced: Advanced) -> list[tuple[str, str, float]]:
    return [(event.kind, event.sid, event.price) for event in advanced.events]


QUIET = bar(2000.0, 2001.0, 1999.5)


FOLLOWER = opening("SELL", sid="TNEXT", after="TCLOSE")
LATE = T + STEP
LONG, SHORT = holding("LONG"), holding("SHORT")
CLOSED = [("FILLED", "TCLOSE", 2000.0), ("CLOSED", "TOPEN", 2000.0)]
REVERSED = [*CLOSED, ("FILLED", "TNEXT", 2000.0)]

Story = tuple[list[PaperOrder], PaperPosition | None, Bar, list[tuple[str, str, float]]]
STORIES: dict[str, Story] = {
    "a bar of before the decision": ([opening(at=LATE)], None, QUIET, []),
    "a BUY at the ask": ([opening()], None, QUIET, [("FILLED", "TOPEN", 2000.5)]),
    "a SELL at the bid": ([opening("SELL")], None, QUIET, [("FILLED", "TOPEN", 2000.0)]),
    "an opening after a gap": (
        [opening()], None, bar(2006.0, 2007.0, 2005.0), [("FILLED", "TOPEN", 2006.5)],
    ),
    "an opening beyond its stop": (
        [opening()], None, bar(1980.0, 1981.0, 1979.0), [("REJECTED", "TOPEN", 0.0)],
    ),
    "a fill and its stop": (
        [opening()], None, bar(2000.0, 2001.0, 1985.0),
        [("FILLED", "TOPEN", 2000.5), ("STOPPED", "TOPEN", 1990.0)],
    ),
    # Long: stop 1990 and target 2020 on the bid. Short: 2010 and 1980 on the ask, the bid + 0.5.
    "a long at its stop": ([], LONG, bar(2000.0, 2001.0, 1990.0), [("STOPPED", "TOPEN", 1990.0)]),
    "a long above its stop": ([], LONG, bar(2000.0, 2001.0, 1990.1), []),
    "a long at its target": ([], LONG, bar(2000.0, 2020.0, 1999.0), [("TARGET", "TOPEN", 2020.0)]),
    "a long below its target": ([], LONG, bar(2000.0, 2019.9, 1999.0), []),
    "a short at its stop": ([], SHORT, bar(2000.0, 2009.5, 1999.0), [("STOPPED", "TOPEN", 2010.0)]),
    "a short below its stop": ([], SHORT, bar(2000.0, 2009.4, 1999.0), []),
    "a short at its target": (
        [], SHORT, bar(2000.0, 2001.0, 1979.5), [("TARGET", "TOPEN", 1980.0)],
    ),
    "a short above its target": ([], SHORT, bar(2000.0, 2001.0, 1979.6), []),
    "a gap through a long's target": (
        [], LONG, bar(2025.0, 2030.0, 1970.0), [("TARGET", "TOPEN", 2025.0)],
    ),
    "a gap through a short's target": (
        [], SHORT, bar(1975.0, 2030.0, 1970.0), [("TARGET", "TOPEN", 1975.5)],
    ),
    "a long's stop comes first": (
        [], LONG, bar(2000.0, 2030.0, 1970.0), [("STOPPED", "TOPEN", 1990.0)],
    ),
    "a short's stop comes first": (
        [], SHORT, bar(2000.0, 2030.0, 1970.0), [("STOPPED", "TOPEN", 2010.0)],
    ),
    "a bar of before the position": ([], LONG, bar(2000.0, 2030.0, 1970.0, at=T - 2 * STEP), []),
    "a close of a long comes first": (
        [closing()], LONG, bar(2004.0, 2030.0, 1970.0),
        [("FILLED", "TCLOSE", 2004.0), ("CLOSED", "TOPEN", 2004.0)],
    ),
    "a close of a short comes first": (
        [closing("BUY")], SHORT, bar(2004.0, 2030.0, 1970.0),
        [("FILLED", "TCLOSE", 2004.5), ("CLOSED", "TOPEN", 2004.5)],
    ),
    "a close of another trade": (
        [replace(closing(), closes="TOTHER")], LONG, QUIET, [("REJECTED", "TCLOSE", 0.0)],
    ),
    "a close of this trade": ([replace(closing(), closes="TOPEN")], LONG, QUIET, CLOSED),
    "a reversal": ([closing(), FOLLOWER], LONG, QUIET, REVERSED),
    "an opening that waits for no close": (
        [replace(FOLLOWER, after=None), closing()], LONG, QUIET, REVERSED,
    ),
    "a close of later": ([FOLLOWER, closing(at=LATE)], LONG, QUIET, []),
    "a close that is gone": ([FOLLOWER], None, QUIET, [("FILLED", "TNEXT", 2000.0)]),
    "a close that is refused": (
        [closing(), FOLLOWER], None, QUIET,
        [("REJECTED", "TCLOSE", 0.0), ("CANCELLED", "TNEXT", 0.0)],
    ),
    # H1 opens and M15 closes at the same close time: both meet the same open.
    "an opening and its close": (
        [opening(), closing()], None, QUIET, [("FILLED", "TOPEN", 2000.5), *CLOSED],
    ),
}  # fmt: skip
"""What is there, the bar, and what happens: each opening's stop is 10 away, its target 20."""


@cases("name", STORIES)
def test_a_bar_tells_this_story(name: str) -> None:
    orders, position, seen, events = STORIES[name]
    for given_orders in (orders, orders[::-1]):
        advanced = live(given_orders, position, seen)
        assert told(advanced) == events
        assert len(advanced.orders) == (len(orders) if not events else 0)
        held = advanced.position
        if held and held is not position:
            order = next(order for order in orders if order.sid == held.sid)
            assert (held.stop, held.target, held.opened_at) == (order.stop, order.target, T)


def test_every_exit_but_the_target_slips() -> None:
    """The bid and the stop 0.3 lower, the ask and the stop 0.3 higher; the target as it is."""
    for held, closes, prices in (
        (LONG, "SELL", (1999.7, 1989.7, 1984.7, 2020.0, 2025.0)),
        (SHORT, "BUY", (2000.8, 2010.3, 2015.8, 1980.0, 1975.5)),
    ):
        mirror = 1 if held is LONG else -1
        gap, far = 2000.0 - 15 * mirror, 2000.0 + 25 * mirror
        seen = [
            bar(2000.0, 2010.0, 1990.0), bar(gap, gap, gap),
            bar(2000.0, max(2000.0, far), min(2000.0, far)), bar(far, far, far),
        ]  # fmt: skip
        (_, closed) = live([closing(cast(Side, closes))], held, QUIET, spec=SLIPPERY).events
        ends = [live([], held, one, spec=SLIPPERY).events[0].price for one in seen]
        assert (closed.price, *ends) == prices


def test_a_thin_market_fills_a_part_and_the_rest_is_gone() -> None:
    """A close is no bigger than its opening's fill; a stop goes on until nothing is left."""
    second = bar(2000.0, 2001.0, 1985.0, at=LATE)
    whole, part = live([opening()], None, QUIET, second), live([opening()], None, QUIET, spec=THIN)
    assert (part.orders, part.position.lots) == ((), 0.04)
    (stopped,) = live([], part.position, second, spec=THIN).events
    assert stopped.volume == 0.04
    assert stopped.profit == pytest.approx(whole.events[-1].profit * 0.4)
    assert stopped.r_multiple == whole.events[-1].r_multiple
    for lots in (0.1, 0.05):
        (filled, ended) = live([replace(closing(), lots=lots)], LONG, QUIET, spec=THIN).events
        assert (filled.kind, filled.volume, ended.volume) == ("FILLED", 0.1, 0.1)


def test_a_part_is_of_whole_lot_steps() -> None:
    for fill_lots, events in (
        (0.045, [("PARTIAL", 0.04, "")]),
        (0.29, [("PARTIAL", 0.29, "")]),  # 0.29 / 0.01 is 28.999999999999996 in binary
        (0.5, [("FILLED", 0.5, "")]),
        (0.7, [("FILLED", 0.5, "")]),
        (0.009, [("REJECTED", 0.0, "retcode")]),
    ):
        spec = GOLD.model_copy(update={"fill_lots": fill_lots})
        advanced = live([replace(opening(), lots=0.5)], None, QUIET, spec=spec)
        assert [(e.kind, e.volume, e.reason) for e in advanced.events] == events


def test_an_opening_without_levels_is_an_error() -> None:
    naked = replace(opening(), stop=None, target=None)
    with pytest.raises(ValueError, match="no stop"):
        advance([naked], None, QUIET, SPREAD, GOLD)


# --- refusals: the edges of each guard are in test_guard_edges ----------------------------------


LIMITED = replace(opening(), lots=0.1, entry=2000.0, max_spread_pts=60, max_dev_pts=100)


def refusal(order: PaperOrder, opened: float = 2000.0, spread: float = SPREAD) -> str:
    """Return why an order is refused at an open; "" when it is filled."""
    (event, *_) = advance([order], None, bar(opened, opened, opened), spread, GOLD).events
    assert event.kind == ("REJECTED" if event.reason else "FILLED")
    return event.reason


@cases(
    ("side", "stop", "reason"),
    [
        # Bid 2000, ask 2000.5, and no stops level.
        ("BUY", 1999.99, ""), ("BUY", 2000.0, "retcode"), ("BUY", 2000.49, "retcode"),
        ("BUY", 2000.5, "side"), ("SELL", 2000.51, ""), ("SELL", 2000.5, "retcode"),
        ("SELL", 2000.01, "retcode"), ("SELL", 2000.0, "side"),
    ],
)  # fmt: skip
def test_a_stop_between_bid_and_ask_is_no_brokers(side: Side, stop: float, reason: str) -> None:
    assert refusal(replace(opening(side), stop=stop)) == reason


@cases(
    ("missing", "opened", "spread", "reason"),
    [
        ("entry", 2006.0, 0.5, "deviation"),
        ("max_dev_pts", 2006.0, 0.5, "deviation"),
        ("max_spread_pts", 2000.0, 0.9, "spread"),
    ],
)
def test_no_limit_means_no_question(
    missing: str, opened: float, spread: float, reason: str
) -> None:
    """Signals that were stored without limits are filled as they always were."""
    assert refusal(replace(LIMITED, **{missing: None}), opened, spread) == ""
    assert refusal(LIMITED, opened, spread) == reason
    zero = replace(LIMITED, max_spread_pts=0, max_dev_pts=0)
    assert [refusal(zero), refusal(zero, 2000.01, 0.0)] == ["spread", "deviation"]


@cases(("most", "last"), [(0, "FILLED"), (1, "REJECTED")])
def test_the_second_opening_of_a_bar_meets_the_first(most: int, last: str) -> None:
    """The trades of a bar count for the orders after them."""
    again = opening(sid="TAGAIN", after="TCLOSE")
    close = replace(closing(), closes="TOPEN")
    conditions = replace(FREE, max_trades_per_day=most)
    advanced = advance([opening(), close, again], None, QUIET, SPREAD, GOLD, conditions)
    assert [event.kind for event in advanced.events] == ["FILLED", "FILLED", "CLOSED", last]


def test_every_guard_is_asked_at_acceptance_or_at_the_fill() -> None:
    """What publishing asks needs no quote: halt, clock and expiry."""
    assert AT_ACCEPTANCE + AT_FILL == REASONS
    seconds = int(T.timestamp())
    ask = GuardRequest("close", "SELL", 0.1, created=seconds, expires=seconds + 180)
    assert acceptance(ask, T) == ""
    assert acceptance(ask, T + timedelta(minutes=3)) == "stale"
    assert acceptance(ask, T - timedelta(seconds=6)) == "clock"
    assert acceptance(ask, T, replace(FREE, halted=True)) == "kill"


prices = st.integers(19_500, 20_500).map(lambda tenths: tenths / 10)
bars = st.lists(st.tuples(prices, prices, prices, prices), min_size=1, max_size=12).map(
    lambda rows: [
        Bar(T + n * STEP, row[0], max(row), min(row), row[3]) for n, row in enumerate(rows)
    ]
)
SIDES: st.SearchStrategy[Side] = st.sampled_from(("BUY", "SELL"))
orders = st.lists(st.tuples(SIDES, st.booleans(), st.integers(0, 12)), max_size=5).map(
    lambda rows: [
        opening(side, sid=f"T{n}", at=T + at * STEP)
        if opens
        else closing(side, sid=f"T{n}", at=T + at * STEP)
        for n, (side, opens, at) in enumerate(rows)
    ]
)


specs = st.builds(
    lambda slippage, fill_lots, stops_level: GOLD.model_copy(
        update={"slippage": slippage, "fill_lots": fill_lots, "stops_level": stops_level}
    ),
    st.sampled_from((0.0, 0.3, 5.0)),
    st.sampled_from((0.0, 0.001, 0.04, 0.1)),
    st.sampled_from((0, 400)),
)


@given(orders, bars, st.integers(0, 12), specs)
def test_any_way_of_cutting_the_bars_tells_the_same_story(
    orders: list[Any], bars: list[Bar], cut: int, spec: SymbolSpec
) -> None:
    whole, _ = advance_all(orders, None, bars, cursor=None, spread=SPREAD, spec=spec)
    half, cursor = advance_all(orders, None, bars[:cut], cursor=None, spread=SPREAD, spec=spec)
    rest, _ = advance_all(half.orders, half.position, bars, cursor=cursor, spread=SPREAD, spec=spec)
    assert (*half.events, *rest.events) == whole.events
    assert (rest.orders, rest.position) == (whole.orders, whole.position)
    _every_order_ends_once(whole, orders)


ANSWERS = ("FILLED", "PARTIAL", "REJECTED", "CANCELLED")
ENDS = ("STOPPED", "TARGET", "CLOSED")


def _every_order_ends_once(advanced: Advanced, orders) -> None:
    answered = [event.sid for event in advanced.events if event.kind in ANSWERS]
    assert sorted([*answered, *(order.sid for order in advanced.orders)]) == sorted(
        order.sid for order in orders
    )
    opens = {order.sid for order in orders if order.kind == "open"}
    filled = [e.sid for e in advanced.events if e.kind in ("FILLED", "PARTIAL") and e.sid in opens]
    ended = [e.sid for e in advanced.events if e.kind in ENDS]
    holding_now = [advanced.position.sid] if advanced.position else []
    assert sorted([*ended, *holding_now]) == sorted(filled)


@given(orders, bars, specs)
def test_there_is_one_position_and_its_end_is_its_own_arithmetic(
    orders: list[Any], bars: list[Bar], spec: SymbolSpec
) -> None:
    """Told once more from the events alone: entry, side and lots of each trade give its profit."""
    advanced, _ = advance_all(orders, None, bars, cursor=None, spread=SPREAD, spec=spec)
    by_sid = {order.sid: order for order in orders}
    held = None
    for event in advanced.events:
        order = by_sid[event.sid]
        if event.kind in ("FILLED", "PARTIAL") and order.kind == "open":
            assert held is None
            assert 0 < event.volume <= order.lots
            assert (event.kind == "PARTIAL") == (event.volume < order.lots)
            held = event
        elif event.kind in ENDS:
            assert held is not None and held.sid == event.sid
            towards = 1 if order.side == "BUY" else -1
            gain = (event.price - held.price) * towards
            assert event.volume == held.volume
            assert event.profit == pytest.approx(gain * 100 * held.volume, abs=1e-6)
            assert event.r_multiple == pytest.approx(gain / 10, abs=1e-6)
            assert (event.profit > 0) == (event.r_multiple > 0)
            if event.kind == "STOPPED":
                assert event.r_multiple < 0
            held = None
        elif event.kind in ("REJECTED", "CANCELLED"):
            assert (event.price, event.volume, event.profit) == (0.0, 0.0, 0.0)
            assert event.reason
    assert (advanced.position is None) == (held is None)


@given(bars, st.sampled_from(("BUY", "SELL")))
def test_a_fill_is_inside_its_bar(bars: list[Bar], side: Side) -> None:
    advanced, _ = advance_all([opening(side)], None, bars, cursor=None, spread=SPREAD, spec=GOLD)
    by_time = {bar.time: bar for bar in bars}
    for event in advanced.events:
        if event.kind == "REJECTED":
            continue
        seen = by_time[event.time]
        ask = SPREAD if (side == "BUY") == (event.kind == "FILLED") else 0.0
        assert seen.low + ask <= event.price + 1e-9
        assert event.price <= seen.high + ask + 1e-9


@given(orders, bars, specs)
def test_slippage_never_helps(orders: list[Any], bars: list[Bar], spec: SymbolSpec) -> None:
    """The same orders on the same bars, with and without it: no trade is better for it."""
    smooth = spec.model_copy(update={"slippage": 0.0})
    pair = [
        advance_all(orders, None, bars, cursor=None, spread=SPREAD, spec=one)[0].events
        for one in (smooth, spec)
    ]
    assert [(e.kind, e.sid, e.time, e.volume) for e in pair[0]] == [
        (e.kind, e.sid, e.time, e.volume) for e in pair[1]
    ]
    for without, slipped in zip(*pair, strict=True):
        assert slipped.profit <= without.profit
