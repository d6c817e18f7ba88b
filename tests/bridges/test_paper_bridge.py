"""The paper bridge reads a bar as a market would have: gaps, spread sides, stop before target.

What it refuses, and why, is in test_paper_guards.py.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.bridges.paper import Advanced, Bar, PaperOrder, PaperPosition, advance, advance_all
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


@pytest.mark.parametrize(
    ("side", "position_side", "entry"), [("BUY", "LONG", 2000.5), ("SELL", "SHORT", 2000.0)]
)
def test_an_opening_fills_at_the_open_of_the_bar_that_starts_at_its_decision(
    side: Side, position_side: str, entry: float
) -> None:
    order = opening(side)
    early = live([order], None, bar(1990.0, 1991.0, 1989.0, at=T - STEP))
    assert early == ((order,), None, ())
    orders, position, events = live([order], None, QUIET)
    assert (orders, position.side, position.entry) == ((), position_side, entry)
    assert (position.stop, position.target) == (order.stop, order.target)
    assert (position.sid, position.lots, position.opened_at) == ("TOPEN", 0.1, T)
    (event,) = events
    assert (event.kind, event.price, event.time, event.profit) == ("FILLED", entry, T, 0.0)


def test_after_a_weekend_the_next_bar_fills_wherever_it_opens() -> None:
    friday = datetime(2021, 12, 3, 22, tzinfo=UTC)
    sunday = datetime(2021, 12, 5, 23, tzinfo=UTC)
    order = opening("BUY", at=friday)
    before = bar(2000.0, 2000.0, 2000.0, at=friday - STEP)
    _, position, events = live([order], None, before, bar(2006.0, 2007.0, 2005.0, at=sunday))
    assert [(event.kind, event.price, event.time) for event in events] == [
        ("FILLED", 2006.5, sunday)
    ]
    # The stop keeps its distance from the decided entry, not from the fill.
    assert (position.stop, position.target) == (1990.0, 2020.0)


@pytest.mark.parametrize(
    ("kind", "side", "low", "high", "price", "profit"),
    [
        # Long: stop 1990 and target 2020 on the bid.
        ("STOPPED", "LONG", 1990.0, 2001.0, 1990.0, -105.0),
        ("", "LONG", 1990.1, 2001.0, None, None),
        ("TARGET", "LONG", 1999.0, 2020.0, 2020.0, 195.0),
        ("", "LONG", 1999.0, 2019.9, None, None),
        # Short: stop 2010 and target 1980 on the ask, which is the bid + 0.5.
        ("STOPPED", "SHORT", 1999.0, 2009.5, 2010.0, -100.0),
        ("", "SHORT", 1999.0, 2009.4, None, None),
        ("TARGET", "SHORT", 1979.5, 2001.0, 1980.0, 200.0),
        ("", "SHORT", 1979.6, 2001.0, None, None),
    ],
)
def test_stop_and_target_are_met_on_the_side_where_the_position_leaves(
    kind: str,
    side: PositionSide,
    low: float,
    high: float,
    price: float | None,
    profit: float | None,
) -> None:
    entry = 2000.5 if side == "LONG" else 2000.0
    advanced = live([], holding(side, entry), bar(2000.0, high, low))
    assert told(advanced) == ([(kind, "TOPEN", price)] if price else [])
    if price:
        (event,) = advanced.events
        assert event.profit == profit
        assert event.r_multiple == pytest.approx(profit / 100.0)  # one R: 10 x 100 x 0.1
        assert advanced.position is None


@pytest.mark.parametrize(
    ("side", "opened", "price"), [("LONG", 2025.0, 2025.0), ("SHORT", 1975.0, 1975.5)]
)
def test_a_gap_through_the_target_fills_at_the_open_whatever_comes_later(
    side: PositionSide, opened: float, price: float
) -> None:
    advanced = live([], holding(side), bar(opened, 2030.0, 1970.0))
    assert told(advanced) == [("TARGET", "TOPEN", price)]
    assert advanced.events[0].r_multiple > 2


@pytest.mark.parametrize(("side", "stop"), [("LONG", 1990.0), ("SHORT", 2010.0)])
def test_inside_a_bar_the_stop_comes_before_the_target(side: PositionSide, stop: float) -> None:
    advanced = live([], holding(side), bar(2000.0, 2030.0, 1970.0))
    assert told(advanced) == [("STOPPED", "TOPEN", stop)]


def test_a_fill_and_its_stop_on_the_same_bar() -> None:
    advanced = live([opening("BUY")], None, bar(2000.0, 2001.0, 1985.0))
    assert told(advanced) == [("FILLED", "TOPEN", 2000.5), ("STOPPED", "TOPEN", 1990.0)]
    assert advanced.position is None
    assert advanced.orders == ()


def test_an_opening_that_gaps_beyond_its_stop_is_refused() -> None:
    advanced = live([opening("BUY")], None, bar(1980.0, 1981.0, 1979.0))
    assert told(advanced) == [("REJECTED", "TOPEN", 0.0)]
    assert advanced.events[0].reason == "side"
    assert (advanced.orders, advanced.position) == ((), None)


@pytest.mark.parametrize(
    ("side", "order_side", "price", "profit"),
    [("LONG", "SELL", 2004.0, 40.0), ("SHORT", "BUY", 2004.5, -45.0)],
)
def test_a_close_fills_at_the_open_before_anything_else(
    side: PositionSide, order_side: Side, price: float, profit: float
) -> None:
    advanced = live([closing(order_side)], holding(side), bar(2004.0, 2030.0, 1970.0))
    assert told(advanced) == [("FILLED", "TCLOSE", price), ("CLOSED", "TOPEN", price)]
    assert advanced.events[1].profit == profit
    assert advanced.position is None


def test_a_reversal_fills_on_one_bar_the_close_first() -> None:
    follower = opening("SELL", sid="TNEXT", after="TCLOSE")
    for orders in ([closing(), follower], [follower, closing()]):
        advanced = live(orders, holding("LONG"), QUIET)
        assert told(advanced) == [
            ("FILLED", "TCLOSE", 2000.0), ("CLOSED", "TOPEN", 2000.0), ("FILLED", "TNEXT", 2000.0),
        ]  # fmt: skip
        assert (advanced.position.sid, advanced.position.side) == ("TNEXT", "SHORT")
        assert advanced.orders == ()


def test_a_close_comes_before_an_opening_that_does_not_wait_for_it() -> None:
    for orders in (
        [closing(), opening("SELL", sid="TNEXT")],
        [opening("SELL", sid="TNEXT"), closing()],
    ):
        assert [kind for kind, *_ in told(live(orders, holding("LONG"), QUIET))] == [
            "FILLED", "CLOSED", "FILLED",
        ]  # fmt: skip


def test_an_opening_waits_as_long_as_its_close_does() -> None:
    follower = opening("SELL", sid="TNEXT", after="TCLOSE")
    late = closing(at=T + STEP)
    orders, position, events = live([follower, late], holding("LONG"), QUIET)
    assert (set(orders), position, events) == ({follower, late}, holding("LONG"), ())
    after = bar(2001.0, 2001.0, 2000.0, at=T + STEP)
    assert [kind for kind, *_ in told(live(orders, position, after))] == [
        "FILLED", "CLOSED", "FILLED",
    ]  # fmt: skip


def test_an_opening_whose_close_is_gone_is_released() -> None:
    follower = opening("SELL", sid="TNEXT", after="TCLOSE")
    assert told(live([follower], None, QUIET)) == [("FILLED", "TNEXT", 2000.0)]


def test_an_opposite_verdict_in_the_same_moment_opens_and_closes() -> None:
    """H1 opens and M15 closes at the same close time: both meet the same open."""
    for orders in ([opening("BUY"), closing()], [closing(), opening("BUY")]):
        advanced = live(orders, None, QUIET)
        assert told(advanced) == [
            ("FILLED", "TOPEN", 2000.5), ("FILLED", "TCLOSE", 2000.0), ("CLOSED", "TOPEN", 2000.0),
        ]  # fmt: skip
        assert advanced.position is None


def test_an_opening_whose_close_is_refused_goes_with_it() -> None:
    follower = opening("SELL", sid="TNEXT", after="TCLOSE")
    for orders in ([closing(), follower], [follower, closing()]):
        advanced = live(orders, None, QUIET)
        assert told(advanced) == [("REJECTED", "TCLOSE", 0.0), ("CANCELLED", "TNEXT", 0.0)]
        assert [event.reason for event in advanced.events] == ["no_position", "close REJECTED"]
        assert (advanced.orders, advanced.position) == ((), None)


def test_a_close_of_another_trade_leaves_the_position_alone() -> None:
    for closes, kinds in (("TOTHER", ["REJECTED"]), ("TOPEN", ["FILLED", "CLOSED"])):
        order = replace(closing(), closes=closes)
        advanced = live([order], holding("LONG"), QUIET)
        assert [event.kind for event in advanced.events] == kinds
        assert (advanced.position is None) == (closes == "TOPEN")


@pytest.mark.parametrize(
    ("side", "closes", "left", "stopped", "gapped", "target"),
    [
        # The bid, the stop and the gap, 0.3 lower; the target as it is.
        ("LONG", "SELL", 1999.7, 1989.7, 1984.7, 2020.0),
        # The ask, the stop and the gap, 0.3 higher.
        ("SHORT", "BUY", 2000.8, 2010.3, 2015.8, 1980.0),
    ],
)
def test_every_exit_but_the_target_slips(
    side: PositionSide, closes: Side, left: float, stopped: float, gapped: float, target: float
) -> None:
    held, mirror = holding(side), (1 if side == "LONG" else -1)
    gap, far = 2000.0 - 15 * mirror, 2000.0 + 25 * mirror
    (_, closed) = live([closing(closes)], held, QUIET, spec=SLIPPERY).events
    assert (closed.kind, closed.price) == ("CLOSED", left)
    for seen, kind, price in (
        (bar(2000.0, 2010.0, 1990.0), "STOPPED", stopped),
        (bar(gap, gap, gap), "STOPPED", gapped),
        (bar(2000.0, 2000.0 + 25 * (mirror > 0), 2000.0 - 25 * (mirror < 0)), "TARGET", target),
        (bar(far, far, far), "TARGET", far if side == "LONG" else far + SPREAD),
    ):
        assert told(live([], held, seen, spec=SLIPPERY)) == [(kind, "TOPEN", price)]
    assert closed.profit == pytest.approx((left - 2000.0) * mirror * 100 * 0.1)


def test_a_thin_market_fills_a_part_and_the_rest_is_gone() -> None:
    first, second = bar(2000.0, 2001.0, 1999.5), bar(2000.0, 2001.0, 1985.0, at=T + STEP)
    whole, part = live([opening()], None, first, second), live([opening()], None, first, spec=THIN)
    (event,) = part.events
    assert (event.kind, event.price, event.volume, event.reason) == ("PARTIAL", 2000.5, 0.04, "")
    assert (part.orders, part.position.lots) == ((), 0.04)
    (stopped,) = live([], part.position, second, spec=THIN).events
    assert stopped.volume == 0.04
    assert stopped.profit == pytest.approx(whole.events[-1].profit * 0.4)
    assert stopped.r_multiple == whole.events[-1].r_multiple
    enough = GOLD.model_copy(update={"fill_lots": 0.1})
    (filled,) = live([opening()], None, first, spec=enough).events
    assert (filled.kind, filled.volume) == ("FILLED", 0.1)


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
        assert (advanced.position is None) == (events[0][0] == "REJECTED")


def test_what_ends_a_position_ends_all_of_it() -> None:
    """A close is no bigger than its opening's fill; a stop goes on until nothing is left."""
    for lots in (0.1, 0.05):
        close = replace(closing(), lots=lots)
        (filled, ended) = live([close], holding(), QUIET, spec=THIN).events
        assert (filled.kind, filled.volume, ended.volume) == ("FILLED", 0.1, 0.1)
    (stopped,) = live([], holding(), bar(2000.0, 2000.0, 1985.0), spec=THIN).events
    assert stopped.volume == 0.1


def test_an_opening_without_levels_is_an_error() -> None:
    naked = PaperOrder("TOPEN", "open", "BUY", 0.1, None, None, T)
    with pytest.raises(ValueError, match="no stop"):
        advance([naked], None, QUIET, SPREAD, GOLD)


def test_a_bar_from_before_the_position_does_not_touch_it() -> None:
    position = holding("LONG")
    old = bar(2000.0, 2030.0, 1970.0, at=position.opened_at - STEP)
    assert live([], position, old) == ((), position, ())


def test_each_bar_is_lived_through_once() -> None:
    bars = [bar(2000.0, 2001.0, 1999.0, at=T + n * STEP) for n in range(4)]
    first, cursor = advance_all(
        [opening("BUY")], None, bars[:3], cursor=T - STEP, spread=SPREAD, spec=GOLD
    )
    assert cursor == bars[2].time
    again, unmoved = advance_all(
        first.orders, first.position, bars[:3], cursor=cursor, spread=SPREAD, spec=GOLD
    )
    assert (again, unmoved) == (first._replace(events=()), cursor)
    more, cursor = advance_all(
        first.orders, first.position, bars, cursor=cursor, spread=SPREAD, spec=GOLD
    )
    assert (more, cursor) == (again, bars[3].time)
    late = [opening("BUY", at=bars[3].time)]
    left, _ = advance_all(late, None, bars, cursor=cursor, spread=SPREAD, spec=GOLD)
    assert left == (tuple(late), None, ())


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
