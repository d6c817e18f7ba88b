"""Signals on their way: ids, rows, publishing, halting, expiry, and booking what came back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import signal_bridge
from tests.cases import cases
from tests.doubles.scripted_bridge import ScriptedBridge
from tests.worlds.orders import Decided
from torra.bridges.paper import PaperEvent
from torra.bridges.protocol import Order
from torra.errors import BridgeUnavailable, StoreUnavailable
from torra.store.memory import MemoryStore
from torra.store.trade.signals import WRITTEN
from torra.verdict import hand_orders, order_seal
from torra.verdict.risk_engine import Levels, SignalDraft
from torra.verdict.signal_states import TRANSITIONS, UNEXECUTED, check_transition

BAR = datetime(2021, 12, 1, 11, 45, tzinfo=UTC)
T = BAR + timedelta(minutes=15)
LIFE = timedelta(seconds=180)
OPEN = SignalDraft("open", "BUY", 0.1, Levels(2000.0, 1990.0, 2020.0, 5.0))
CLOSE = SignalDraft("close", "SELL", 0.2, closes="TOLD")
FOLLOW = SignalDraft("open", "SELL", 0.1, Levels(2000.0, 2010.0, 1980.0, 5.0), closes="TOLD")


class Memory(MemoryStore):
    """The store in memory, with its steps on record and a lock that can be lost."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, str]] = []
        self.fence: Callable[[], bool] = lambda: True
        self.rows: Any = {}
        self._signals = self.rows

    def require_desk(self, *_: object) -> None:
        if not self.fence():
            raise StoreUnavailable("lost")

    def move_signal(self, sid: str, state: str, **rest: Any) -> bool:
        moved = super().move_signal(sid, state, **rest)
        self.steps.append((sid, state))
        return moved

    def states(self) -> dict[str, str]:
        return {row["kind"] + " " + row["side"]: row["state"] for row in self.rows.values()}


def write(
    store: Memory, *drafts: SignalDraft, instance: str = "GOLD", at: datetime = T
) -> list[Any]:
    return [
        signal_bridge.write_signal(
            store, draft, instance=instance, symbol="XAUUSD", timeframe="M15",
            bar_time=at - timedelta(minutes=15), created=at, expires=at + LIFE, authority="tick",
        )
        for draft in drafts
    ]  # fmt: skip


def test_the_id_of_a_decision_is_known_in_advance() -> None:
    """Golden: sha256 of GOLD|XAUUSD|M15|2021-12-01T11:45:00Z|open|BUY, 12 characters of base32."""
    sid = signal_bridge.signal_id("GOLD", "XAUUSD", "M15", BAR, kind="open", side="BUY")
    assert sid == "TFQB2GCPBAG4F"


def test_an_opening_is_written_whole_and_as_plain_json() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    assert json.loads(json.dumps(row)) == row == {
        "sid": signal_bridge.signal_id("GOLD", "XAUUSD", "M15", BAR, kind="open", side="BUY"),
        "instance": "GOLD", "symbol": "XAUUSD", "timeframe": "M15",
        "bar_time": "2021-12-01T11:45:00Z", "kind": "open", "side": "BUY", "lots": 0.1,
        "entry": 2000.0, "stop": 1990.0, "target": 2020.0, "atr": 5.0, "closes": None,
        "after": None, "decided_at": "2021-12-01T12:00:00Z", "expires": "2021-12-01T12:03:00Z",
        "state": "PENDING", "bridge": "paper",
    }  # fmt: skip
    sealed = {**row, "authority": "tick", "detail": ""}
    assert sealed | {"seal": order_seal.of_row(sealed)} == {
        name: value
        for name, value in store.rows[row["sid"]].items()
        if name in WRITTEN or name == "seal"
    }


def test_the_opening_of_a_reversal_waits_for_the_close_of_the_same_decision() -> None:
    store = Memory()
    close, opening = write(store, CLOSE, FOLLOW)
    assert (close["state"], close["closes"], close["after"]) == ("PENDING", "TOLD", None)
    assert (opening["state"], opening["after"]) == ("WAITING", close["sid"])
    assert close["sid"] != opening["sid"]


def publish(store: Memory, *, now: datetime = T, state: Any = "ACTIVE", **which):
    return signal_bridge.publish_pending(store, now=now, state=state, **which)


def order(row: Any) -> Order:
    return Decided(
        row["sid"], row["seq"], row["kind"], row["instance"], row["symbol"], row["symbol"],
        row["timeframe"], BAR, row["side"], row["lots"], row["entry"] or 0.0, row["stop"] or 0.0,
        row["target"] or 0.0, T, T + LIFE, 1, 40, 30, 2, row["closes"] or "",
    )  # fmt: skip


def stopped_by(halted: object, *, reducing: bool = False):
    otherwise: Any = "REDUCING" if reducing else "ACTIVE"
    return lambda kind: signal_bridge.refusal("HALTED" if halted else otherwise, kind)


def send(
    store: Memory, bridge, *, now: datetime = T, halted: str = "", reducing: bool = False, **which
):
    stopped = stopped_by(halted, reducing=reducing)
    return signal_bridge.send_pending(
        store, bridge, order, now=lambda: now, stopped=stopped, **which
    )


def test_closes_go_first_and_a_waiting_opening_stays_behind() -> None:
    store, wire = Memory(), ScriptedBridge()
    write(store, OPEN, instance="OTHER")
    close, _ = write(store, CLOSE, FOLLOW)
    assert [row["kind"] for row in send(store, wire)] == ["close", "open"]
    assert wire.sids[0] == close["sid"]
    assert store.states()["open SELL"] == "WAITING"


@pytest.mark.parametrize(
    ("late", "state"),
    [(LIFE - timedelta(microseconds=1), "PUBLISHED"), (LIFE, "EXPIRED"), (2 * LIFE, "EXPIRED")],
)
def test_a_signal_is_sent_until_its_expiry(late: timedelta, state: str) -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    send(store, wire, now=T + late)
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
    store, wire = Memory(), ScriptedBridge(down=True)
    (row,) = write(store, OPEN)
    assert send(store, wire) == []
    assert store.states() == {"open BUY": "PENDING"}
    assert store.rows[row["sid"]]["detail"] == "BRIDGE_DEAD: down"
    wire.down = False
    assert len(send(store, wire, now=T + timedelta(seconds=60))) == 1
    assert len(wire.sent) == 1


def test_one_failing_submission_does_not_stop_the_next() -> None:
    class Picky(ScriptedBridge):
        def submit(self, order) -> None:
            if order.instance == "GOLD":
                raise BridgeUnavailable("only this one")
            super().submit(order)

    store = Memory()
    write(store, OPEN)
    write(store, OPEN, instance="OTHER")
    assert [row["instance"] for row in send(store, Picky())] == ["OTHER"]


def test_a_halt_between_the_look_and_the_submission_stops_it() -> None:
    """Every row is preceded by the question, not only the first."""
    store, wire = Memory(), ScriptedBridge()
    write(store, OPEN, instance="A")
    write(store, OPEN, instance="B")
    signal_bridge.send_pending(
        store, wire, order, now=lambda: T, stopped=lambda _: stopped_by(wire.sent)("open")
    )
    assert len(wire.sent) == 1


@pytest.mark.parametrize("what", ["halt", "lock"])
def test_what_comes_while_an_order_is_made_ready_stops_it(what: str) -> None:
    """Halt and lock are asked after everything else that can take its time."""
    store, wire, ready = Memory(), ScriptedBridge(), []
    (row,) = write(store, OPEN)

    def made_ready(row):
        ready.append(row["sid"])
        return order(row)

    store.fence = lambda: what == "halt" or not ready
    with nullcontext() if what == "halt" else pytest.raises(StoreUnavailable):
        signal_bridge.send_pending(
            store, wire, made_ready, now=lambda: T,
            stopped=stopped_by(ready if what == "halt" else ""),
        )  # fmt: skip
    assert ready == [row["sid"]]
    assert wire.sent == []
    assert store.rows[row["sid"]]["state"] == "PENDING"


@cases("start", ["PENDING", "PUBLISHED", "WAITING"])
@cases("paper", [True, False])
def test_reducing_takes_every_opening_back_and_lets_closes_go(start: str, paper: bool) -> None:
    store, wire = Memory(), ScriptedBridge()
    close, opening = write(store, CLOSE, FOLLOW)
    if start != "WAITING":
        with store.transaction():
            store.move_signal(opening["sid"], "PENDING")
        if start == "PUBLISHED":
            send(store, wire)
    if paper:
        publish(store, state="REDUCING")
    else:
        send(store, wire, reducing=True)
        assert opening["sid"] not in wire.sids or start == "PUBLISHED"
    assert store.rows[opening["sid"]]["state"] == "CANCELLED"
    assert store.rows[opening["sid"]]["detail"] == "TRADING_REDUCING"
    assert store.rows[close["sid"]]["state"] == "PUBLISHED"


def test_a_desk_without_its_lock_touches_nothing() -> None:
    store, wire = Memory(), ScriptedBridge()
    write(store, OPEN)
    store.fence = lambda: False
    for now, halted in ((T, ""), (T + LIFE, "x")):
        with pytest.raises(StoreUnavailable):
            send(store, wire, now=now, halted=halted)
    assert (wire.sent, wire.recalled) == ([], [])
    assert store.states() == {"open BUY": "PENDING"}


def test_a_waiting_opening_expires() -> None:
    store, wire = Memory(), ScriptedBridge()
    _, opening = write(store, CLOSE, FOLLOW)
    send(store, wire)
    send(store, wire, now=T + LIFE)
    assert store.rows[opening["sid"]]["state"] == "EXPIRED"


@pytest.mark.parametrize("keeps", ["taken", "down"])
def test_halt_does_not_call_back_what_the_bridge_keeps(keeps: str) -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    send(store, wire)
    wire.taken, wire.down = {row["sid"]}, keeps == "down"
    send(store, wire, halted="a person")
    assert store.states() == {"open BUY": "PUBLISHED"}


@pytest.mark.parametrize("how", ["expired", "halted"])
def test_what_was_handed_over_before_a_crash_is_not_written_off(how: str) -> None:
    """It is PENDING in the database, but the other side has it: its report decides."""
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    wire.taken = {row["sid"]}
    send(store, wire, now=T + 2 * LIFE, halted="x" if how == "halted" else "")
    assert store.states() == {"open BUY": "PUBLISHED"}
    wire.say(row["sid"], "FILLED", T, price=2000.5, volume=0.1, position="77")
    signal_bridge.take_reports(store, wire)
    assert store.states() == {"open BUY": "FILLED"}
    assert store.rows[row["sid"]]["ticket"] == "77"


@pytest.mark.parametrize("status", ["REJECTED", "EXPIRED", "UNKNOWN_NOT_SENT"])
def test_an_opening_follows_a_close_that_came_to_nothing(status: str) -> None:
    store, wire = Memory(), ScriptedBridge()
    close, opening = write(store, CLOSE, FOLLOW)
    send(store, wire)
    wire.say(close["sid"], status, T, reason="no_position")
    signal_bridge.take_reports(store, wire)
    send(store, wire)
    assert store.rows[opening["sid"]]["state"] == "CANCELLED"
    assert store.rows[opening["sid"]]["detail"] == f"close {status}"


REPORTS = ("CLAIMED", "PLACED", "FILLED", "PARTIAL", "REJECTED", "EXPIRED", "UNKNOWN",
           "UNKNOWN_NOT_SENT")  # fmt: skip


@cases("status", REPORTS)
def test_a_report_is_booked_once_however_often_it_comes(status: str) -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    for _ in range(3):
        wire.say(row["sid"], status, T, price=2000.5, volume=0.1, position="77", retcode=10009)
        signal_bridge.take_reports(store, wire)
    assert store.rows[row["sid"]]["state"] == status
    assert [step for _, step in store.steps] == ["PUBLISHED", status]
    assert len(wire.settled) == 3


@given(st.lists(st.sampled_from(REPORTS), max_size=6))
def test_no_order_of_reports_takes_a_signal_back(statuses: list[Any]) -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    send(store, wire)
    for status in statuses:
        wire.say(row["sid"], status, T, price=2000.5, volume=0.1)
    signal_bridge.take_reports(store, wire)
    walked = ["PUBLISHED", *(state for _, state in store.steps[1:])]
    for before, after in pairwise(walked):
        check_transition(before, after)
    if "FILLED" in statuses and store.rows[row["sid"]]["state"] != "FILLED":
        first = next(state for state in statuses if state not in ("CLAIMED", "PLACED", "UNKNOWN"))
        assert first != "FILLED"
    if any(s in ("FILLED", "PARTIAL") for s in statuses) and walked[-1] in UNEXECUTED:
        noticed = store.trading_state() == "REDUCING"
        assert noticed, "an execution of a signal that had ended went unnoticed"


def test_a_report_of_an_unknown_signal_is_an_alarm() -> None:
    store, wire = Memory(), ScriptedBridge()
    wire.say("TSTRANGE", "FILLED", T, price=1.0, volume=0.1)
    signal_bridge.take_reports(store, wire)
    assert store._alarms["report TSTRANGE"] and store.trading_state() == "REDUCING"
    assert wire.settled


def test_a_report_that_cannot_be_booked_is_not_settled() -> None:
    class Broken(Memory):
        def move_signal(self, sid: str, state: str, **rest: Any) -> bool:
            if state == "FILLED":
                raise ValueError("no")
            return super().move_signal(sid, state, **rest)

    store, wire = Broken(), ScriptedBridge()
    (row,) = write(store, OPEN)
    send(store, wire)
    wire.say(row["sid"], "FILLED", T, price=2000.5, volume=0.1)
    assert signal_bridge.take_reports(store, wire) == []
    assert len(wire.reports) == 1
    assert [row["kind"] for row in store._alarms.values()] == ["ODD_SIGNAL"]


def test_an_event_is_booked_whole_or_not_at_all() -> None:
    """The last step fails: the signal is still WAITING, not half released."""

    class Broken(Memory):
        def move_signal(self, sid: str, state: str, **rest: Any) -> bool:
            if state == "FILLED":
                raise ValueError("no")
            return super().move_signal(sid, state, **rest)

    store = Broken()
    _, opening = write(store, CLOSE, FOLLOW)
    with pytest.raises(ValueError, match="no"):
        signal_bridge.apply_event(store, PaperEvent("FILLED", opening["sid"], 2000.0, T))
    assert store.states()["open SELL"] == "WAITING"


def test_the_table_of_transitions() -> None:
    ends = {"REJECTED", "EXPIRED", "CANCELLED"}
    executed = {"FILLED", "PARTIAL"}
    answered = {*executed, "REJECTED", "EXPIRED", "UNKNOWN"}
    after = {
        "WAITING": {"PENDING", "EXPIRED", "CANCELLED"},
        "PENDING": {"PUBLISHED", *ends},
        "PUBLISHED": {*answered, "CANCELLED", "CLAIMED", "PLACED", "UNKNOWN_NOT_SENT"},
        "CLAIMED": {*answered, "PLACED", "UNKNOWN_NOT_SENT"},
        "PLACED": answered,
        "UNKNOWN": {*executed, "NOT_SENT"},
        "FILLED": {"CLOSED"},
        "PARTIAL": {"CLOSED"},
    }
    allowed = {(before, state) for before, states in after.items() for state in states}
    for before in TRANSITIONS:
        for following in TRANSITIONS:
            if (before, following) in allowed:
                check_transition(before, following)
            else:
                with pytest.raises(ValueError, match="cannot"):
                    check_transition(before, following)


@given(
    st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.booleans()), min_size=1, max_size=8)
)
def test_no_history_of_calls_sends_a_signal_twice_or_after_a_halt(
    calls: list[tuple[int, bool, bool]],
) -> None:
    store, wire = Memory(), ScriptedBridge()
    write(store, OPEN)
    halted_once = False
    for seconds, halted, down in sorted(calls):
        wire.down = down
        sent = len(wire.sent)
        send(store, wire, now=T + timedelta(seconds=seconds), halted="x" if halted else "")
        if halted_once or halted or seconds >= 180:
            assert len(wire.sent) == sent
        halted_once = halted_once or halted
    assert len(wire.sent) <= 1


def test_a_close_by_hand_that_comes_while_an_order_is_made_ready_stops_it() -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)

    def made_ready(opening):
        with store.transaction():
            hand_orders.write_hand_close(store, store.rows[row["sid"]], now=T, life=LIFE)
        return order(opening)

    signal_bridge.send_pending(store, wire, made_ready, now=lambda: T, stopped=lambda _: None)
    assert wire.sent == []


@pytest.mark.parametrize("life", [timedelta(0), LIFE])
def test_a_person_takes_an_opening_back_before_its_time_does(life: timedelta) -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    send(store, wire)
    with store.transaction():
        hand_orders.write_hand_close(store, store.rows[row["sid"]], now=T, life=LIFE)
    send(store, wire, now=T + life)
    opening = store.rows[row["sid"]]
    assert (opening["state"], opening["detail"]) == ("CANCELLED", signal_bridge.TAKEN_BACK)


@cases(
    ("stop", "detail"),
    [({"halted": "x"}, "TRADING_HALTED"), ({"reducing": True}, "TRADING_REDUCING")],
)
def test_a_halt_says_so_of_what_a_person_takes_back_too(stop: Any, detail: str) -> None:
    store, wire = Memory(), ScriptedBridge()
    (row,) = write(store, OPEN)
    send(store, wire)
    with store.transaction():
        hand_orders.write_hand_close(store, store.rows[row["sid"]], now=T, life=LIFE)
    send(store, wire, now=T + LIFE, **stop)
    assert store.rows[row["sid"]]["detail"] == detail


def test_only_the_named_instance_is_published() -> None:
    store = Memory()
    (one,), (other,) = (write(store, OPEN, instance=name) for name in ("GOLD", "OTHER"))
    assert [row["sid"] for row in publish(store, instance="GOLD")] == [one["sid"]]
    assert store.rows[other["sid"]]["state"] == "PENDING"


def test_an_altered_order_on_paper_stops_the_others_of_the_very_same_look() -> None:
    store = Memory()
    (good,) = write(store, OPEN, instance="OTHER")
    (bad,) = write(store, OPEN, at=T + timedelta(seconds=1))
    store.rows[bad["sid"]] = {**store.rows[bad["sid"]], "lots": 9.0}
    assert publish(store, now=T + timedelta(seconds=2)) == []
    details = [store.rows[row["sid"]]["detail"] for row in (good, bad)]
    assert details == ["TRADING_HALTED", "ORDER_ALTERED"]


def test_a_mark_takes_nothing_back_that_is_on_paper_already() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    publish(store)
    store.note_signal(row["sid"], "CLOCK_SKEW")
    publish(store)
    assert store.rows[row["sid"]]["state"] == "PUBLISHED"


def test_a_position_that_is_being_closed_gets_no_second_close() -> None:
    store = Memory()
    (row,) = write(store, OPEN)
    with store.transaction():
        opening = store.rows[row["sid"]]
        hand_orders.write_hand_close(store, opening, now=T, life=LIFE)
        with pytest.raises(ValueError, match="is being closed already"):
            hand_orders.write_hand_close(store, opening, now=T, life=LIFE)
