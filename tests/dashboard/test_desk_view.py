"""The pages' view of a desk that ran: what the database holds is what the pages show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from flask.testing import FlaskClient

from instance_database import TickKey
from tests.doubles.visitors import open_app
from tests.worlds import desks
from tests.worlds.records import shown_tick
from torra.bridges.paper import Bar, PaperOrder, PaperPosition, advance
from torra.clock import Scaled, iso, parse
from torra.config import DeskSettings, Profile
from torra.dashboard.record import arithmetic, transcript
from torra.dashboard.view.desk_values import NoBars
from torra.dashboard.view.desk_view import DatabaseView
from torra.dashboard.view.stream_reading import brief
from torra.desk.schedule import Desk
from torra.exhibits import figures
from torra.store import tick_queries
from torra.store.brain import _profit
from torra.tick.tick_record import TickRecord
from torra.verdict.risk_engine import Position, PositionSide
from torra.verdict.trade_outcome import value_at_bid

SETTINGS = DeskSettings(instances=(desks.BTC, desks.EUR))
STEPS = 9
BOTH = ("M15", "H1")


def overview(view: DatabaseView) -> Sequence[Any]:
    """Return the instances that the pages are told of."""
    return view.overview().instances


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk after some closes, with one skipped tick at the end of BTCUSD M15."""
    made = desks.open_desk(tmp_path_factory.mktemp("desk"), SETTINGS.instances)
    desks.open_for_work(made)
    for _ in range(STEPS):
        moment = desks.step(made)
    key = TickKey("BTCUSD", "M15", moment)
    assert made.database.claim_tick(key)
    assert made.database.skip_tick(key, "stale", "the newest bar is old")
    yield made
    made.close()


@pytest.fixture
def view(desk: Desk) -> DatabaseView:
    return DatabaseView(desk.database, SETTINGS, desk)


@pytest.fixture
def client(view: DatabaseView) -> FlaskClient:
    return open_app(view).test_client()


def test_the_strip_tells_desk_time_role_and_cost(view: DatabaseView, desk: Desk) -> None:
    strip = view.desk()
    assert strip.now == iso(desk.clock.now())
    assert (strip.role, strip.trading_state) == ("ACTIVE", "ACTIVE")
    assert (strip.cost_hour, strip.ceiling) == (0.0, 2.0)
    desk.active = False
    try:
        assert view.desk().role == "STOPPED"
    finally:
        desk.active = True


def test_the_overview_has_every_stream_with_its_newest_tick(view: DatabaseView, desk: Desk) -> None:
    shown = overview(view)
    assert [one.instance for one in shown] == ["BTCUSD", "EURUSD"]
    for one in shown:
        for stream in one.streams:
            stored = desk.database.latest_tick(one.instance, stream.timeframe)
            assert stream.tick == brief(TickRecord.parse(stored))
            close = parse(stored["as_of"])
            assert stream.age_seconds == (desk.clock.now() - close).total_seconds()
            assert stream.next_in_seconds > 0.0
            assert stream.history[-1] == stored["consensus"]
    (btc, _) = shown
    assert btc.latest.timeframe == "M15"
    assert btc.digits == 2
    assert btc.streams[0].skipped.reason == "stale"


def test_a_stream_without_news_turns_stale(view: DatabaseView, desk: Desk) -> None:
    moment = desk.clock.now()
    try:
        desks.clock_of(desk).set(moment + timedelta(minutes=22))
        assert not overview(view)[0].streams[0].stale
        desks.clock_of(desk).set(moment + timedelta(minutes=23))
        assert overview(view)[0].streams[0].stale
    finally:
        desks.clock_of(desk).set(moment)


def test_a_symbol_has_its_bars_and_ticks_and_nothing_from_the_future(
    view: DatabaseView, desk: Desk
) -> None:
    data: Any = view.symbol("BTCUSD", "M15", 50)
    times = [bar.time for bar in data.bars]
    assert times == sorted(times)
    assert parse(times[-1]) + timedelta(minutes=15) <= desk.clock.now()
    ticks = [tick.bar_time for tick in data.ticks]
    assert ticks == sorted(ticks, reverse=True)
    assert set(ticks) <= set(times)
    assert (data.previous, data.next) == (None, "EURUSD")
    other: Any = view.symbol("EURUSD", "H1", 1)
    assert (other.previous, other.next) == ("BTCUSD", None)
    assert view.symbol("BTCUSD", "M5", 50) is None
    assert view.symbol("NOPE", "M15", 50) is None


@pytest.mark.journey
@pytest.mark.parametrize(
    ("name", "timeframe"), [("BTCUSD", "M15"), ("BTCUSD", "H1"), ("EURUSD", "H1")]
)
def test_every_tick_of_the_real_overlay_recomputes(
    view: DatabaseView, desk: Desk, client: FlaskClient, name: str, timeframe: str
) -> None:
    rows = desk.database.ticks(name, timeframe, 50)
    assert rows
    for row in rows:
        record = view.tick(name, timeframe, row["bar_time"])
        shown = shown_tick(record)
        assert arithmetic.failed_checks(shown) == []
        assert [agent.state for agent in transcript.people(shown)] == ["answered"] * 4
        page = client.get(f"/symbol/{name}/{timeframe}/{row['bar_time']}")
        assert page.status_code == 200
        assert figures.format_signed(row["consensus"], 5) in page.text


def test_ticks_are_linked_in_order_and_a_skipped_one_has_its_page(
    view: DatabaseView, desk: Desk, client: FlaskClient
) -> None:
    skipped = tick_queries.tick_states(desk.database, "BTCUSD", "M15", 1)[0]["bar_time"]
    newest = desk.database.ticks("BTCUSD", "M15", 2)
    record = view.tick("BTCUSD", "M15", newest[0]["bar_time"])
    assert (record["previous"], record["next"]) == (newest[1]["bar_time"], skipped)
    page = client.get(f"/symbol/BTCUSD/M15/{skipped}")
    assert "the newest bar is old" in page.text
    assert view.tick("BTCUSD", "M15", "2001-01-01T00:00:00Z") is None


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Desk]:
    """A desk of its own with a few ticks, to be changed by the test."""
    made = desks.open_desk(tmp_path, SETTINGS.instances)
    desks.open_for_work(made)
    for _ in range(4):
        desks.step(made)
    yield made
    made.close()


def open_position(desk, side, price=None):
    """Write an opening of BTCUSD and, with a price, its fill; return its id."""
    now = desk.clock.now()
    row = {"sid": f"T{side}", "kind": "open", "side": side, "lots": 0.5, "entry": 60_000.0}
    where = {"instance": "BTCUSD", "symbol": "BTCUSD", "timeframe": "M15", "authority": "tick"}
    sign = 1 if side == "BUY" else -1
    levels = {"stop": 60_000.0 - sign * 900, "target": 60_000.0 + sign * 1800}
    times = {"bar_time": now - timedelta(minutes=15), "decided_at": now}
    assert desk.database.enqueue_signal({**row, **where, **levels, **times})
    desk.database.move_signal(row["sid"], "PUBLISHED")
    if price is not None:
        desk.database.move_signal(row["sid"], "FILLED", fields={"price": price, "opened_at": now})
    return row["sid"]


@pytest.mark.journey
@pytest.mark.parametrize("side", ["BUY", "SELL"])
def test_an_open_position_counts_what_a_close_now_would_pay(quick: Desk, side: str) -> None:
    sid = open_position(quick, side, 60_020.0)
    view = DatabaseView(quick.database, SETTINGS, quick)
    spec = quick.setups["BTCUSD"].profile.symbol("BTCUSD")
    bid = view.symbol("BTCUSD", "M15", 5).bars[-1].close
    (one, _) = overview(view)
    for held in (one.holding, *(view.symbol("BTCUSD", t, 5).holding for t in BOTH)):
        assert held.now.price == (bid if side == "BUY" else bid + spec.spread)
        assert held.now.profit == _profit(quick.database.position("BTCUSD"), bid, spec)
        gain = (held.now.price - 60_020.0) * (1 if side == "BUY" else -1)
        assert held.now.r == pytest.approx(gain / 900)
    record = view.tick("BTCUSD", "M15", one.streams[0].tick.bar_time)
    assert record["outcomes"] == {}
    shown = open_app(view).test_client().get("/").text
    profit, r = figures.format_signed(held.now.profit, 2), figures.format_signed(held.now.r, 2)
    assert f"{profit}\u00a0USD, {r}\u00a0R" in shown
    told: Any = view._outcomes(shown_tick({"signals": [{"sid": sid}]}))
    assert told[sid]["state"] == "FILLED"


def test_the_gain_at_the_exit_is_the_one_that_was_shown() -> None:
    """The books of the paper bridge, for a close at the price that the page told."""
    spec = Profile().symbol("BTCUSD")
    bar = Bar(desks.START, 60_500.0, 60_500.0, 60_500.0, 60_500.0)
    for side, stop, target in (("LONG", 59_000.0, 63_000.0), ("SHORT", 61_000.0, 57_000.0)):
        held = PaperPosition(
            "T1", cast(PositionSide, side), 0.5, 60_000.0, stop, target, desks.START
        )
        close = PaperOrder("C1", "close", "SELL", 0.5, None, None, desks.START)
        (_, ended) = advance([close], held, bar, spec.spread, spec).events
        named = {name: getattr(held, name) for name in ("side", "lots", "entry", "stop", "target")}
        position = Position(
            instance="BTCUSD", symbol="BTCUSD", opened_at=desks.START, signal_id="T1",
            state="FILLED", **named,
        )  # fmt: skip
        told = value_at_bid(position, bar.close, spec)
        assert told.price == ended.price
        assert told.profit == pytest.approx(ended.profit)
        assert told.r == pytest.approx(ended.r_multiple)


def test_an_opening_that_is_not_filled_has_no_gain(quick: Desk) -> None:
    open_position(quick, "SELL")
    view = DatabaseView(quick.database, SETTINGS, quick)
    assert overview(view)[0].holding.now is None


def test_a_close_leads_to_the_trade_that_it_ended(quick: Desk) -> None:
    sid = open_position(quick, "BUY", 60_020.0)
    now = quick.clock.now()
    row = {"sid": "C1", "kind": "close", "side": "SELL", "lots": 0.5, "closes": sid}
    where = {"instance": "BTCUSD", "symbol": "BTCUSD", "timeframe": "M15", "authority": "tick"}
    quick.database.enqueue_signal({**row, **where, "bar_time": now, "decided_at": now})
    how: dict[str, Any] = {
        "price": 60_120.0,
        "time": now,
        "profit": 50.0,
        "r_multiple": 0.1,
        "reason": "CLOSED",
    }
    quick.database.close_position(sid, **how)
    view = DatabaseView(quick.database, SETTINGS, quick)
    told: Any = view._outcomes(shown_tick({"signals": [{"sid": "C1"}, {"sid": "gone"}]}))
    assert list(told) == ["C1"]
    assert told["C1"]["closed"]["profit"] == 50.0


def skip(desk, bar_time, reason="no_bar") -> None:
    key = TickKey("BTCUSD", "M15", bar_time)
    assert desk.database.skip_tick(key, reason, "told")


def test_a_stream_without_bars_is_quiet_until_something_else_happens(quick: Desk) -> None:
    def stream():
        view = DatabaseView(quick.database, SETTINGS, quick)
        return overview(view)[0].streams[0]

    step = timedelta(minutes=15)
    newest = parse(stream().tick.bar_time)
    desks.clock_of(quick).set(newest + 4 * step)
    assert (stream().stale, stream().quiet) == (True, None)
    for number in range(1, 6):
        skip(quick, newest + number * step)
    desks.clock_of(quick).set(newest + 9 * step - timedelta(seconds=1))
    closes = NoBars(5, iso(newest + 2 * step), iso(newest + 6 * step))
    assert (stream().stale, stream().quiet) == (False, closes)
    data = DatabaseView(quick.database, SETTINGS, quick).symbol("BTCUSD", "M15", 50).stream
    assert (data.stale, data.quiet) == (False, closes)
    desks.clock_of(quick).set(newest + 9 * step)
    assert (stream().stale, stream().quiet) == (True, closes)  # a coin rests for 2 h at most
    desks.clock_of(quick).set(newest + 10 * step + timedelta(seconds=1))
    assert (stream().stale, stream().quiet) == (True, None)  # nobody looks any more
    skip(quick, newest + 6 * step, "stale")
    assert (stream().stale, stream().quiet) == (True, None)
    assert stream().skipped.reason == "stale"


def test_the_agents_changes_are_counted_from_the_chains(quick: Desk) -> None:
    view = DatabaseView(quick.database, SETTINGS, quick)
    (one, _) = overview(view)
    rows = {name: quick.database.ticks("BTCUSD", name, 100) for name in BOTH}
    assert one.changes.every == sum(map(len, rows.values()))
    assert view.symbol("BTCUSD", "H1", 5).changes.every == len(rows["H1"])


def test_an_accelerated_desk_tells_its_rate(quick: Desk) -> None:
    view = DatabaseView(quick.database, SETTINGS, quick)
    assert view.desk().rate is None
    quick.clock = Scaled(desks.START, 90.0)
    assert view.desk().rate == 90.0
    page = open_app(view).test_client().get("/help").text
    assert "replayed 90 times faster than they happened" in page
