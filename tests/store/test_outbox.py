"""Signals move one way; positions are openings that are not over; an instance has one at most."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instance_database import Database
from tests.examples import examples
from tests.worlds.stores import NOON, PROFILE, closing, count, open_database, opening
from torra.errors import ConfigError
from torra.store.trade import signals as signal_table
from torra.verdict.risk_engine import notional
from torra.verdict.signal_states import POSITION_STATES, TRANSITIONS

STEP = timedelta(minutes=15)


def walk(database: Database, sid: str, *states: str, **fields: object) -> None:
    for state in states:
        database.move_signal(sid, state, fields=fields if state == states[-1] else None)


def hold(database: Database, sid: str = "T1", **more: Any) -> None:
    database.enqueue_signal(opening(sid, **more))
    walk(database, sid, "PUBLISHED", "FILLED", price=101.0, opened_at=NOON + STEP)


def test_a_signal_is_written_once(database: Database) -> None:
    assert database.enqueue_signal(opening()) is True
    assert database.enqueue_signal(opening(lots=9.0)) is False
    (row,) = database.signals()
    assert (row["sid"], row["lots"], row["state"]) == ("T1", 0.5, "PENDING")
    assert (row["decided_at"], row["expires"]) == ("2026-02-13T12:00:00Z", "2026-02-13T12:03:00Z")
    assert [step.to_state for step in signal_table.signal_events(database, "T1")] == ["PENDING"]


@pytest.mark.parametrize("wrong", [{"colour": "red"}, {"state": "FILLED"}])
def test_a_signal_that_is_no_signal_is_refused(database: Database, wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"colour|born PENDING or WAITING"):
        database.enqueue_signal(opening(**wrong))
    assert count(database, "signals") == 0


@pytest.mark.parametrize("wrong", [{"stop": None}, {"lots": 0.0}, {"side": "LONG"}])
def test_the_schema_refuses_what_cannot_be_traded(
    database: Database, wrong: dict[str, Any]
) -> None:
    with pytest.raises(Exception, match="CHECK constraint"):
        database.enqueue_signal(opening(**wrong))
    assert count(database, "signal_events") == 0


@pytest.mark.parametrize("state", ["PENDING", "PUBLISHED", "FILLED"])
def test_a_second_opening_is_refused(database: Database, state: str) -> None:
    database.enqueue_signal(opening())
    for step in ("PUBLISHED", "FILLED")[: ("PENDING", "PUBLISHED", "FILLED").index(state)]:
        database.move_signal("T1", step)
    with pytest.raises(ValueError, match="BTCUSD has an opening"):
        database.enqueue_signal(opening("T2"))
    assert [row["sid"] for row in database.signals()] == ["T1"]
    assert signal_table.signal_events(database, "T2") == []
    assert database.enqueue_signal(opening("T3", instance="EURUSD")) is True
    assert database.enqueue_signal(closing("C1", "T1")) is True


def test_a_reversal_waits_for_its_close(database: Database) -> None:
    hold(database)
    database.enqueue_signal(closing("C1", "T1"))
    turned: dict[str, Any] = {
        "side": "SELL",
        "stop": 110.0,
        "target": 80.0,
        "state": "WAITING",
        "after": "C1",
    }
    database.enqueue_signal(opening("T2", **turned))
    held = database.position("BTCUSD")
    assert held is not None
    assert (held.signal_id, held.side, held.state) == ("T1", "LONG", "CLOSING")
    assert len(database.positions()) == 1
    with pytest.raises(ValueError, match="has an opening"):
        database.move_signal("T2", "PENDING")
    assert database.signal("T2")["state"] == "WAITING"
    walk(database, "C1", "PUBLISHED", "FILLED")
    end(database, "T1")
    assert database.position("BTCUSD").state == "WAITING"
    walk(database, "T2", "PENDING", "PUBLISHED", "FILLED", price=99.0, opened_at=NOON + STEP)
    held = database.position("BTCUSD")
    assert held is not None
    assert (held.signal_id, held.side, held.state, held.entry) == ("T2", "SHORT", "FILLED", 99.0)


def end(database: Database, sid: str, profit: float = -5.0, time=NOON + 2 * STEP) -> bool:
    return database.close_position(
        sid, price=90.0, time=time, profit=profit, r_multiple=profit / 5, reason="STOPPED"
    )


def test_a_position_is_closed_once(database: Database) -> None:
    hold(database)
    held = database.position("BTCUSD")
    assert held is not None
    assert (held.entry, held.opened_at, held.lots) == (101.0, NOON + STEP, 0.5)
    assert (held.stop, held.target, held.symbol) == (90.0, 120.0, "BTCUSD")
    assert end(database, "T1") is True
    assert end(database, "T1", profit=99.0) is False
    assert database.position("BTCUSD") is None
    (trade,) = signal_table.closed_trades(database, "BTCUSD")
    assert (trade.profit, trade.r_multiple, trade.close_reason) == (-5.0, -1.0, "STOPPED")
    assert (trade.close_price, trade.closed_at) == (90.0, "2026-02-13T12:30:00Z")
    assert signal_table.closed_trades(database, "EURUSD") == []
    assert len(signal_table.closed_trades(database)) == 1
    assert signal_table.closed_trades(database, as_of=NOON + 2 * STEP) == []


@pytest.mark.parametrize("state", sorted(TRANSITIONS))
def test_only_steps_of_the_table_are_taken(database: Database, state: str) -> None:
    for following in sorted(TRANSITIONS):
        sid = f"to {following}"
        database.enqueue_signal(opening(sid, instance=following, state="WAITING"))
        for step in way_to(state):
            database.move_signal(sid, step)
        if following in TRANSITIONS[state]:
            assert database.move_signal(sid, following) is True, following
        elif following == state:
            assert database.move_signal(sid, following) is False, following
        else:
            with pytest.raises(ValueError, match=f"is {state} cannot become {following}"):
                database.move_signal(sid, following)
            assert database.signal(sid)["state"] == state, following


def way_to(state: str) -> tuple[str, ...]:
    ways: dict[str, tuple[str, ...]] = {"WAITING": ()}
    while state not in ways:
        ways |= {
            after: (*way, after)
            for before, way in list(ways.items())
            for after in TRANSITIONS[before]
            if after not in ways
        }
    return ways[state]


def test_unknown_signals_and_columns_are_named(database: Database) -> None:
    with pytest.raises(ValueError, match="no signal T9"):
        database.move_signal("T9", "PUBLISHED")
    database.enqueue_signal(opening())
    with pytest.raises(ValueError, match="no column sid"):
        database.move_signal("T1", "PUBLISHED", fields={"sid": "T2"})


def test_the_exposure_is_the_whole_desks(database: Database) -> None:
    euro: dict[str, Any] = {
        "instance": "EUR",
        "symbol": "EURUSD",
        "entry": 1.1,
        "stop": 1.0,
        "target": 1.3,
    }
    hold(database)
    database.enqueue_signal(opening("E1", **euro))
    told = database.exposure("BTCUSD", "M15", as_of=NOON + STEP)
    gross = notional(0.5, 101.0, PROFILE.symbol("BTCUSD")) + notional(
        0.5, 1.1, PROFILE.symbol("EURUSD")
    )
    assert told == {
        "signals_last_hour": 1,
        "same_side_last_hour": {"BUY": 1},
        "bars_since_loss": {},
        "win_rates": {},
        "positions_open": 2,
        "gross_notional": pytest.approx(gross),
        "day_loss": 0.0,
    }
    end(database, "T1", profit=-7.5)
    told = database.exposure("EUR", "H1", as_of=NOON + 3 * STEP)
    assert (told["positions_open"], told["day_loss"]) == (1, 7.5)
    tomorrow = NOON.replace(day=14, hour=0)
    assert database.exposure("EUR", "H1", as_of=tomorrow)["day_loss"] == 0.0


def test_what_other_instances_hold_at_an_account_is_told_by_timeframe(database: Database) -> None:
    euro: dict[str, Any] = {"symbol": "EURUSD", "entry": 1.1, "stop": 1.0, "target": 1.3}
    hold(database)
    database.enqueue_signal(opening("E1", instance="EUR", timeframe="H4", **euro))
    database.enqueue_signal(opening("F1", instance="FAR", bridge="torra_files main", **euro))
    held = notional(0.5, 101.0, PROFILE.symbol("BTCUSD"))
    euros = notional(0.5, 1.1, PROFILE.symbol("EURUSD"))
    far = "torra_files main"
    assert database.levered("NEW", "M15", "paper") == {"M15": held, "account": held + euros}
    assert database.levered("NEW", "H4", "paper") == {"H4": euros, "account": held + euros}
    assert database.levered("NEW", "H1", "paper") == {"H1": 0.0, "account": held + euros}
    assert database.levered("BTCUSD", "M15", "paper") == {"M15": 0.0, "account": euros}
    assert database.levered("NEW", "M15", far) == {"M15": euros, "account": euros}
    assert database.levered("FAR", "M15", far) == {"M15": 0.0, "account": 0.0}
    end(database, "T1", profit=0.0)
    assert database.levered("NEW", "M15", "paper") == {"M15": 0.0, "account": euros}


def test_the_exposure_uses_the_applied_profile(database: Database) -> None:
    spec = PROFILE.symbol("BTCUSD").model_copy(update={"tick_value": 0.07})
    profile = PROFILE.model_copy(update={"symbols": {"GOLD": spec}})
    hold(database, symbol="GOLD")
    with pytest.raises(ConfigError, match="GOLD"):
        database.exposure("BTCUSD", "M15", as_of=NOON)
    database.apply_profile("BTCUSD", profile.model_dump_json(), profile.digest())
    told = database.exposure("BTCUSD", "M15", as_of=NOON)
    assert told["gross_notional"] == notional(0.5, 101.0, spec)


def test_what_the_paper_bridge_reads(database: Database) -> None:
    assert database.paper_cursor("BTCUSD") is None
    database.set_paper_cursor("BTCUSD", NOON)
    database.set_paper_cursor("BTCUSD", NOON + STEP)
    assert database.paper_cursor("BTCUSD") == NOON + STEP
    database.enqueue_signal(opening())
    assert database.paper_orders("BTCUSD", {"T1"}) == [], "not published yet"
    database.move_signal("T1", "PUBLISHED")
    (order,) = database.paper_orders("BTCUSD", {"T1"})
    assert order == {
        "sid": "T1", "kind": "open", "side": "BUY", "lots": 0.5, "stop": 90.0, "target": 120.0,
        "decided_at": NOON, "after": None, "entry": 100.0, "closes": None, "atr": 5.0,
    }  # fmt: skip
    assert database.paper_position("BTCUSD") is None
    database.move_signal("T1", "FILLED", fields={"price": 101.0, "opened_at": NOON})
    database.enqueue_signal(closing("C1", "T1"))
    held = database.paper_position("BTCUSD")
    assert held is not None
    assert (held.signal_id, held.state, held.entry) == ("T1", "CLOSING", 101.0)


acts = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([*["open"] * 8, "wait", *sorted(TRANSITIONS)])),
    max_size=30,
)


@settings(max_examples=examples(50, 15), deadline=None)
@given(acts=acts)
def test_an_instance_never_holds_two(
    tmp_path_factory: pytest.TempPathFactory, acts: list[Any]
) -> None:
    """Whatever is tried, in any order, the books stay right."""
    database = open_database(tmp_path_factory.mktemp("outbox"))
    for number, act in acts:
        sid = f"T{number}"
        try:
            if act in ("open", "wait"):
                state = "PENDING" if act == "open" else "WAITING"
                database.enqueue_signal(opening(sid, state=state))
            else:
                database.move_signal(sid, act)
        except ValueError:
            pass
        rows = database.signals()
        live = [row["sid"] for row in rows if row["state"] in ("PENDING", "PUBLISHED", "FILLED")]
        assert len(live) <= 1
        waiting = any(row["state"] in POSITION_STATES for row in rows)
        held = database.position("BTCUSD")
        assert (held is not None) == waiting
        if live:
            assert held is not None
            assert held.signal_id == live[0]
        for row in rows:
            assert signal_table.signal_events(database, row["sid"])[-1].to_state == row["state"]
