"""Signals on their way: ids, rows, publishing, halting, expiry, and booking what came back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import signal_bridge
from torra.bridges.paper import PaperEvent
from torra.errors import BridgeUnavailable
from torra.risk_engine import Levels, SignalDraft
from torra.signal_states import TRANSITIONS, check_transition

BAR = datetime(2021, 12, 1, 11, 45, tzinfo=UTC)
T = BAR + timedelta(minutes=15)
LIFE = timedelta(seconds=180)
OPEN = SignalDraft("open", "BUY", 0.1, Levels(2000.0, 1990.0, 2020.0, 5.0))
CLOSE = SignalDraft("close", "SELL", 0.2, closes="TOLD")
FOLLOW = SignalDraft("open", "SELL", 0.1, Levels(2000.0, 2010.0, 1980.0, 5.0), closes="TOLD")


class Memory:
    """A store in memory that keeps the real one's promises: transitions checked, all or nothing."""

    def __init__(self) -> None:
        self.rows: dict[str, dict] = {}
        self.steps: list[tuple[str, str, str]] = []
        self.depth = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = deepcopy(self.rows), list(self.steps)
        self.depth += 1
        try:
            yield
        except BaseException:
            self.rows, self.steps = before
            raise
        finally:
            self.depth -= 1

    def enqueue_signal(self, row) -> bool:
        if row["sid"] in self.rows:
            return False
        self.rows[row["sid"]] = dict(row)
        return True

    def signal(self, sid):
        row = self.rows.get(sid)
        return dict(row) if row else None

    def signals(self, states=None, instance=None, limit=100):
        rows = [
            dict(row)
            for row in reversed(self.rows.values())
            if (states is None or row["state"] in states)
            and (instance is None or row["instance"] == instance)
        ]
        return rows[:limit]

    def move_signal(self, sid, state, *, detail="", fields=None) -> bool:
        assert self.depth, "a signal moves inside a transaction only"
        check_transition(self.rows[sid]["state"], state)
        self.rows[sid].update(state=state, detail=detail, **(fields or {}))
        self.steps.append((sid, state, detail))
        return True

    def close_position(self, sid, *, price, time, profit, r_multiple, reason) -> bool:
        fields = {"close_price": price, "closed_at": time, "profit": profit}
        fields["r_multiple"] = r_multiple
        return self.move_signal(sid, "CLOSED", detail=reason, fields=fields)

    def states(self) -> dict[str, str]:
        return {row["kind"] + " " + row["side"]: row["state"] for row in self.rows.values()}


class Wire:
    """A bridge that notes what it is asked, and is down when told."""

    def __init__(self, *, down: bool = False, executed: bool = False) -> None:
        self.down = down
        self.executed = executed
        self.sent: list[str] = []
        self.recalled: list[str] = []

    def submit(self, signal) -> None:
        if self.down:
            raise BridgeUnavailable("down")
        self.sent.append(signal["sid"])

    def recall(self, sid) -> bool:
        if self.down:
            raise BridgeUnavailable("down")
        self.recalled.append(sid)
        return not self.executed


def write(store: Memory, *drafts: SignalDraft, instance: str = "GOLD", at: datetime = T):
    return [
        signal_bridge.write_signal(
            store, draft, instance=instance, symbol="XAUUSD", timeframe="M15",
            bar_time=at - timedelta(minutes=15), created=at, expires=at + LIFE,
        )
        for draft in drafts
    ]  # fmt: skip


def test_the_id_of_a_decision_is_known_in_advance() -> None:
    """Golden: sha256 of GOLD|XAUUSD|M15|2021-12-01T11:45:00Z|open|BUY, 12 characters of base32."""
    sid = signal_bridge.signal_id("GOLD", "XAUUSD", "M15", BAR, kind="open", side="BUY")
    assert sid == "TFQB2GCPBAG4F"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("GOLD", "GOLD2")), st.sampled_from(("XAUUSD", "EURUSD")),
            st.sampled_from(("M15", "H1")), st.integers(0, 100),
            st.sampled_from(("open", "close")), st.sampled_from(("BUY", "SELL")),
        ),
        unique=True, max_size=30,
    )
)  # fmt: skip
def test_different_decisions_have_different_ids(decisions) -> None:
    ids = [
        signal_bridge.signal_id(
            instance, symbol, timeframe, BAR + bars * timedelta(minutes=15), kind=kind, side=side
        )
        for instance, symbol, timeframe, bars, kind, side in decisions
    ]
    assert len(set(ids)) == len(decisions)
    assert all(len(sid) == 13 and sid[0] == "T" and sid.isalnum() and sid.isupper() for sid in ids)


def test_an_opening_is_written_whole_and_as_plain_json() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    assert json.loads(json.dumps(row)) == row == {
        "sid": signal_bridge.signal_id("GOLD", "XAUUSD", "M15", BAR, kind="open", side="BUY"),
        "instance": "GOLD", "symbol": "XAUUSD", "timeframe": "M15",
        "bar_time": "2021-12-01T11:45:00Z", "kind": "open", "side": "BUY", "lots": 0.1,
        "entry": 2000.0, "stop": 1990.0, "target": 2020.0, "atr": 5.0, "closes": None,
        "after": None, "decided_at": "2021-12-01T12:00:00Z", "expires": "2021-12-01T12:03:00Z",
        "state": "PENDING",
    }  # fmt: skip
    assert store.rows[row["sid"]] == row


def test_the_opening_of_a_reversal_waits_for_the_close_of_the_same_decision() -> None:
    store = Memory()
    close, opening = write(store, CLOSE, FOLLOW)
    assert (close["state"], close["closes"], close["after"]) == ("PENDING", "TOLD", None)
    assert (opening["state"], opening["after"]) == ("WAITING", close["sid"])
    assert close["sid"] != opening["sid"]


def test_the_same_decision_twice_is_one_signal() -> None:
    store = Memory()
    assert write(store, OPEN) == write(store, OPEN)
    assert len(store.rows) == 1


def publish(store: Memory, bridge=None, *, now: datetime = T, halted: bool = False, **which):
    return signal_bridge.publish_pending(store, bridge, now=now, halted=halted, **which)


def test_paper_publishes_by_marking() -> None:
    store = Memory()
    write(store, OPEN)
    (row,) = publish(store)
    assert (row["state"], store.states()) == ("PUBLISHED", {"open BUY": "PUBLISHED"})
    assert publish(store) == []


def test_closes_go_first_and_a_waiting_opening_stays_behind() -> None:
    store, wire = Memory(), Wire()
    write(store, OPEN, instance="OTHER")
    close, _ = write(store, CLOSE, FOLLOW)
    assert [row["kind"] for row in publish(store, wire)] == ["close", "open"]
    assert wire.sent[0] == close["sid"]
    assert store.states()["open SELL"] == "WAITING"


def test_only_the_named_instance_is_published() -> None:
    store = Memory()
    write(store, OPEN, instance="OTHER")
    assert publish(store, instance="GOLD") == []
    assert len(publish(store, instance="OTHER")) == 1


@pytest.mark.parametrize(
    ("late", "state"),
    [(LIFE - timedelta(microseconds=1), "PUBLISHED"), (LIFE, "EXPIRED"), (2 * LIFE, "EXPIRED")],
)
def test_a_signal_is_sent_until_its_expiry(late, state) -> None:
    store, wire = Memory(), Wire()
    (row,) = write(store, OPEN)
    publish(store, wire, now=T + late)
    assert store.rows[row["sid"]]["state"] == state
    assert bool(wire.sent) is (state == "PUBLISHED")
    if state == "EXPIRED":
        assert store.rows[row["sid"]]["detail"] == "SIGNAL_EXPIRED"


def test_what_is_published_does_not_expire_while_it_waits_for_its_bar() -> None:
    store = Memory()
    write(store, OPEN)
    publish(store)
    publish(store, now=T + 10 * LIFE)
    assert store.states() == {"open BUY": "PUBLISHED"}


def test_a_bridge_that_is_down_leaves_the_signal_pending_until_it_expires() -> None:
    store, wire = Memory(), Wire(down=True)
    write(store, OPEN)
    assert publish(store, wire) == []
    assert store.states() == {"open BUY": "PENDING"}
    wire.down = False
    assert len(publish(store, wire, now=T + timedelta(seconds=60))) == 1
    assert len(wire.sent) == 1


def test_one_failing_submission_does_not_stop_the_next() -> None:
    class Picky(Wire):
        def submit(self, signal) -> None:
            if signal["instance"] == "GOLD":
                raise BridgeUnavailable("only this one")
            super().submit(signal)

    store = Memory()
    write(store, OPEN)
    write(store, OPEN, instance="OTHER")
    assert [row["instance"] for row in publish(store, Picky())] == ["OTHER"]


def test_halt_cancels_whatever_has_not_been_executed() -> None:
    store, wire = Memory(), Wire()
    write(store, OPEN, instance="OTHER")
    publish(store, wire)
    write(store, CLOSE, FOLLOW)
    assert publish(store, wire, halted=True) == []
    assert set(store.states().values()) == {"CANCELLED"}
    assert {row["detail"] for row in store.rows.values()} == {"TRADING_HALTED"}
    assert len(wire.sent) == len(wire.recalled) == 1
    assert publish(store, wire) == []


@pytest.mark.parametrize("bridge", [Wire(executed=True), Wire(down=True)])
def test_halt_does_not_call_back_what_the_bridge_keeps(bridge) -> None:
    store = Memory()
    write(store, OPEN)
    publish(store, Wire())
    publish(store, bridge, halted=True)
    assert store.states() == {"open BUY": "PUBLISHED"}


def test_halt_leaves_an_open_position_alone() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    publish(store)
    signal_bridge.apply_event(store, PaperEvent("FILLED", row["sid"], 2000.5, T))
    publish(store, halted=True)
    assert store.states() == {"open BUY": "FILLED"}


def test_an_opening_whose_close_expired_is_cancelled() -> None:
    store = Memory()
    write(store, CLOSE, FOLLOW)
    publish(store, now=T + LIFE)
    assert store.states() == {"close SELL": "EXPIRED", "open SELL": "CANCELLED"}
    assert store.steps[-1][2] == "close EXPIRED"


def test_a_fill_is_booked_with_price_and_time() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    publish(store)
    signal_bridge.apply_event(store, PaperEvent("FILLED", row["sid"], 2000.5, T))
    booked = store.rows[row["sid"]]
    assert (booked["state"], booked["price"], booked["opened_at"]) == ("FILLED", 2000.5, T)
    assert booked["entry"] == 2000.0  # the decided one


@pytest.mark.parametrize("kind", ["STOPPED", "TARGET", "CLOSED"])
def test_the_end_of_a_position_is_booked_with_its_outcome(kind) -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    publish(store)
    signal_bridge.apply_event(store, PaperEvent("FILLED", row["sid"], 2000.5, T))
    end = PaperEvent(kind, row["sid"], 1990.0, T + timedelta(hours=1), -105.0, -1.05)
    signal_bridge.apply_event(store, end)
    booked = store.rows[row["sid"]]
    assert (booked["state"], booked["detail"], booked["profit"]) == ("CLOSED", kind, -105.0)
    assert (booked["close_price"], booked["r_multiple"]) == (1990.0, -1.05)


def test_a_reversal_is_booked_on_one_bar() -> None:
    store = Memory()
    close, opening = write(store, CLOSE, FOLLOW)
    publish(store)
    signal_bridge.apply_event(store, PaperEvent("FILLED", close["sid"], 2000.0, T))
    signal_bridge.apply_event(store, PaperEvent("FILLED", opening["sid"], 2000.0, T))
    assert store.states() == {"close SELL": "FILLED", "open SELL": "FILLED"}
    assert [state for sid, state, _ in store.steps if sid == opening["sid"]] == [
        "PENDING", "PUBLISHED", "FILLED",
    ]  # fmt: skip


def test_a_cancelled_order_ends() -> None:
    store = Memory()
    (row,) = write(store, CLOSE)
    publish(store)
    signal_bridge.apply_event(store, PaperEvent("CANCELLED", row["sid"], 0.0, T))
    assert store.states() == {"close SELL": "CANCELLED"}


def test_an_unknown_event_changes_nothing() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    with pytest.raises(ValueError, match="unknown event"):
        signal_bridge.apply_event(store, PaperEvent("MOVED", row["sid"], 1.0, T))
    assert store.states() == {"open BUY": "PENDING"}


def test_an_event_is_booked_whole_or_not_at_all() -> None:
    """The last step fails: the signal is still WAITING, not half released."""

    class Broken(Memory):
        def move_signal(self, sid, state, **rest) -> bool:
            if state == "FILLED":
                raise ValueError("no")
            return super().move_signal(sid, state, **rest)

    store = Broken()
    _, opening = write(store, CLOSE, FOLLOW)
    with pytest.raises(ValueError, match="no"):
        signal_bridge.apply_event(store, PaperEvent("FILLED", opening["sid"], 2000.0, T))
    assert store.states()["open SELL"] == "WAITING"


def test_the_table_of_transitions() -> None:
    allowed = {
        ("WAITING", "PENDING"), ("WAITING", "EXPIRED"), ("WAITING", "CANCELLED"),
        ("PENDING", "PUBLISHED"), ("PENDING", "REJECTED"), ("PENDING", "EXPIRED"),
        ("PENDING", "CANCELLED"), ("PUBLISHED", "FILLED"), ("PUBLISHED", "REJECTED"),
        ("PUBLISHED", "EXPIRED"), ("PUBLISHED", "CANCELLED"), ("FILLED", "CLOSED"),
    }  # fmt: skip
    for before in TRANSITIONS:
        for after in TRANSITIONS:
            if (before, after) in allowed:
                check_transition(before, after)
            else:
                with pytest.raises(ValueError, match="cannot"):
                    check_transition(before, after)


@given(
    st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.booleans()), min_size=1, max_size=8)
)
def test_no_history_of_calls_sends_a_signal_twice_or_after_a_halt(calls) -> None:
    store, wire = Memory(), Wire()
    write(store, OPEN)
    halted_once = False
    for seconds, halted, down in sorted(calls):
        wire.down = down
        sent = len(wire.sent)
        publish(store, wire, now=T + timedelta(seconds=seconds), halted=halted)
        if halted_once or halted or seconds >= 180:
            assert len(wire.sent) == sent
        halted_once = halted_once or halted
    assert len(wire.sent) <= 1
