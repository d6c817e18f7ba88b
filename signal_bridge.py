"""Signals: their ids, their states, and the way from the database to a bridge and back.

`write_signal` puts a signal into the outbox, inside the tick's own transaction, and touches no
file. `publish_pending` (paper) and `send_pending` (a bridge) run afterwards, at any time and as
often as wanted. Both check halt, health and expiry at the moment of submission, hand over what
passes, and mark it as sent. A crash in between sends nothing twice: the same decision always has
the same id, and a bridge executes an id once. A signal whose bridge is not well stays pending, says
why, and ends at its expiry.

Whoever decides an order seals it (torra.verdict.order_seal). Right before it is handed over its row
is compared with its seal, and its state with its last step; a row that was altered is taken back,
and the desk halts with an alarm. A bridge, and the Expert Advisor, compare what they were given.

`take_reports` books what a bridge reports, one transaction for each report, and settles the report
at the bridge only after that. A crash in between books the report again, which changes nothing.

The store comes in as an argument (`Outbox`, torra.verdict.outbox), so no SQL is here.
`torra.verdict.risk_engine` decides and sizes, the bridges fill, and `torra.trading.settlement`
compares the books.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from torra.bridges.guards import DECISION
from torra.bridges.odd_rows import aside, isolate_row_errors, sending_fault
from torra.bridges.paper import PaperEvent
from torra.bridges.plausible import report_fault
from torra.bridges.protocol import Bridge, Health, Order, OrderReport, Recall
from torra.clock import iso, parse
from torra.errors import BridgeUnavailable
from torra.failpoints import failpoint
from torra.verdict.hand_orders import write_hand_close
from torra.verdict.order_levels import Levels
from torra.verdict.order_seal import Authority, altered, order_id
from torra.verdict.outbox import Outbox
from torra.verdict.risk_engine import DenyReason, SignalDraft, TradingState
from torra.verdict.signal_states import (
    EXECUTED,
    TRANSITIONS,
    UNDER_WAY,
    UNEXECUTED,
    signal_life,
)

LEVELS: Final = tuple(field.name for field in fields(Levels))
"""Columns of an opening's prices, which a close has none of."""

OVERTAKEN: Final = "overtaken by a newer opening"

TAKEN_BACK: Final = "by a person"
"""Detail of an opening that a person took back before it was executed."""

DOOMS: Final = (DenyReason.TRADING_HALTED, DenyReason.TRADING_REDUCING, DenyReason.CLOCK_SKEW)
"""A waiting signal whose detail is one of these is taken back, whatever happens next."""

ALTERED: Final = "side, lots, levels or times are not those that were decided"

UNDONE: Final = ("WAITING", "PENDING", "PUBLISHED")
"""On paper, the states of a signal that has not been executed."""

AHEAD: Final = timedelta(seconds=60)
"""A signal decided further ahead than this was decided while the clock was wrong."""

LIMIT: Final = 1000
"""How many waiting signals of an instance one call looks at; there are two at most."""


def signal_id(
    instance: str, symbol: str, timeframe: str, bar_time: datetime, *, kind: str, side: str
) -> str:
    """Return the id of a decision: the same decision always has the same one."""
    return order_id(instance, symbol, timeframe, iso(bar_time), kind, side)


def write_signal(
    store: Outbox,
    draft: SignalDraft,
    *,
    instance: str,
    symbol: str,
    timeframe: str,
    bar_time: datetime,
    created: datetime,
    expires: datetime,
    authority: Authority,
    bridge: str = "paper",
) -> dict[str, Any]:
    """Enqueue a draft and return its row, which is plain JSON.

    `created` is the close time of the deciding tick; `authority` is who decided. An opening that
    names a position to be closed first (`draft.closes`) is WAITING and names, in `after`, the close
    of the same decision.
    """

    def named(kind: str) -> str:
        return signal_id(instance, symbol, timeframe, bar_time, kind=kind, side=draft.side)

    waits = draft.kind == "open" and draft.closes is not None
    levels = asdict(draft.levels) if draft.levels else dict.fromkeys(LEVELS)
    row: dict[str, Any] = {
        "sid": named(draft.kind),
        "instance": instance,
        "symbol": symbol,
        "timeframe": timeframe,
        "bar_time": iso(bar_time),
        "kind": draft.kind,
        "side": draft.side,
        "lots": draft.lots,
        **levels,
        "closes": draft.closes,
        "after": named("close") if waits else None,
        "decided_at": iso(created.replace(microsecond=0)),  # compared as text, like any time
        "expires": iso(expires),
        "state": "WAITING" if waits else "PENDING",
        "bridge": bridge,
    }
    store.enqueue_signal({**row, "authority": authority})
    failpoint("enqueued")
    return row


# --- towards the market ---------------------------------------------------------------------------


def publish_pending(
    store: Outbox,
    *,
    now: datetime,
    state: TradingState,
    instance: str | None = None,
) -> list[dict[str, Any]]:
    """Publish on paper what may still be sent; return those rows, oldest decision first.

    Publishing is marking: the paper bridge reads the store. `now` is the desk's clock. HALTED
    cancels every signal that has not been executed, REDUCING every such opening (`refusal`). From
    its expiry on a pending signal is EXPIRED. Closes go first; an opening in WAITING follows its
    close.
    """
    with store.transaction():
        if set_aside(store, UNDONE, instance).halts:
            state = "HALTED"
        # Cancel before publishing: a halt must also stop what this very call would send.
        for row in _rows(store, UNDONE, instance):
            doomed = None if row["state"] == "PUBLISHED" else _doomed(row)
            if reason := refusal(state, row["kind"]) or doomed:
                _end(store, row, reason)
        sent = []
        for row in _rows(store, ("PENDING",), instance):
            if _over(row, now):
                _end(store, row, DenyReason.SIGNAL_EXPIRED)
                continue
            store.move_signal(row["sid"], "PUBLISHED")
            failpoint("published")
            sent.append({**row, "state": "PUBLISHED"})
        _follow_closes(store, instance)
    return sent


def waits(store: Outbox, instance: str | None = None) -> bool:
    """Return whether anything is there that `publish_pending` would look at."""
    return bool(store.signals(states=UNDONE, instance=instance, limit=1))


def refusal(state: TradingState, kind: str) -> DenyReason | None:
    """Return why no signal of a kind may go out in a trading state; None when it may."""
    if state == "HALTED":
        return DenyReason.TRADING_HALTED
    return DenyReason.TRADING_REDUCING if state != "ACTIVE" and kind == "open" else None


Stopped = Callable[[str], DenyReason | None]
"""Asked with a kind of signal, right before it goes out: why none of that kind may, or None."""


def send_pending(
    store: Outbox,
    bridge: Bridge,
    order_of: Callable[[Mapping[str, Any]], Order],
    *,
    now: Callable[[], datetime],
    stopped: Stopped,
    health: Callable[[], Health] | None = None,
    instance: str | None = None,
) -> list[dict[str, Any]]:
    """Hand what may still be sent to a bridge; return those rows, oldest decision first.

    Nothing that touches the bridge happens inside a transaction, and every answer is booked in one
    of its own. Two questions are asked again right before each submission: `stopped`, and whether
    this desk still has its lock; StoreUnavailable ends it when it has not. A signal that has
    expired or was stopped is taken back as far as the bridge can; once the other side has it, only
    its report decides. A signal that cannot be read, or of which no order can be made, stops no
    other. `health` stands for the bridge's own.
    """
    sent = []
    _make_ready(store, instance, now, stopped)
    # Sent signals are looked at too: a halt or an expiry still tries to recall them.
    rows = _rows(store, ("PENDING", "PUBLISHED", "CLAIMED"), instance)
    # Ask for health only when something waits: it reads files or calls the terminal.
    bridge_health = (
        (health or bridge.health)() if any(row["state"] == "PENDING" for row in rows) else None
    )
    for row in rows:
        store.require_desk()  # for each row: the lock may be lost between two of them
        with isolate_row_errors(store, row):
            # Before health: a bridge that is not well must not keep a stopped signal alive.
            reason: str | None = _altered_now(store, row) or _refused(row, stopped, now())
            # A person's word comes before the expiry.
            if _may_end_otherwise(reason) and _unwanted(
                store, row["kind"], row["instance"], row["sid"]
            ):
                reason = TAKEN_BACK
            if reason is not None:
                _take_back(store, bridge, row, reason)
            elif row["state"] == "PENDING" and bridge_health is not None and not bridge_health.ok:
                store.note_signal(row["sid"], f"{bridge_health.deny}: {bridge_health.detail}")
            elif row["state"] == "PENDING" and _submit(store, bridge, order_of(row), stopped):
                sent.append({**row, "state": "PUBLISHED"})
    with store.transaction():
        store.require_desk()
        _follow_closes(store, instance)
        _release_closes(store, instance, now(), stopped)
    return sent


def _make_ready(
    store: Outbox, instance: str | None, now: Callable[[], datetime], stopped: Stopped
) -> None:
    """Take what waits for another signal a step on."""
    with store.transaction():
        store.require_desk()
        set_aside(store, ("WAITING",), instance)
        _release_openings(store, instance, now(), stopped)
        _follow_closes(store, instance)
        _release_closes(store, instance, now(), stopped)


def doubt(store: Outbox, instance: str | None = None) -> None:
    """Mark all waiting signals so that none goes out: the clock was set back and hides their age.

    Raises StoreUnavailable when this desk has lost its lock: the signals may be another desk's.
    """
    with store.transaction():
        store.require_desk()
        for row in _rows(store, ("WAITING", "PENDING"), instance):
            store.note_signal(row["sid"], DenyReason.CLOCK_SKEW.value)


class SealCheck(NamedTuple):
    """What a look at orders found: the ids of those that are as decided, and whether it halts."""

    whole: frozenset[str]
    halts: bool


def set_aside(store: Outbox, states: Sequence[str], instance: str | None = None) -> SealCheck:
    """Cancel each order in these states that is not what was decided; return what is left.

    For orders that no bridge has yet. Joins the open transaction.
    """
    whole, halts = set(), False
    for row in _rows(store, states, instance):
        if reason := _not_as_decided(store, row):
            _end(store, row, reason)
            halts = True
        else:
            whole.add(row["sid"])
    return SealCheck(frozenset(whole), halts)


def _not_as_decided(store: Outbox, row: Mapping[str, Any]) -> DenyReason | None:
    """Return why an order may not be handed over: it is not what was decided. None when it is.

    An order that was altered halts the desk.
    """
    last = store.last_state(row["sid"])
    if not altered(row) and last == row["state"]:
        return None
    fault = ALTERED if last == row["state"] else f"it is {row['state']}, its last step is {last}"
    halt_for(store, row, fault)
    return DenyReason.ORDER_ALTERED


def _altered_now(store: Outbox, row: Mapping[str, Any]) -> DenyReason | None:
    """Judge a signal that waits for its bridge, in a transaction of the desk.

    One that a report or a person has moved since it was read is not judged.
    """
    if row["state"] != "PENDING":
        return None
    with store.transaction():
        store.require_desk()
        now = store.signal(row["sid"])
        if now is not None and now["state"] != "PENDING":
            return None
        return _not_as_decided(store, row)


def halt_for(store: Outbox, row: Mapping[str, Any], what: str) -> None:
    """Halt the desk, with an alarm, because an order is not the one that was decided."""
    with store.transaction():
        key = f"ORDER_ALTERED {row['sid']}"
        text = f"{row['sid']} {row['kind']} {row['side']} of {row['instance']} was not sent: {what}"
        if store.raise_alarm(key, "ORDER_ALTERED", text):
            store.halt(key)


def _doomed(row: Mapping[str, Any]) -> DenyReason | None:
    """Return why an earlier turn marked a signal to be taken back; None for no mark."""
    return next((reason for reason in DOOMS if row["detail"] == reason.value), None)


def _rows(store: Outbox, states: Sequence[str], instance: str | None) -> list[dict[str, Any]]:
    """Return the signals of some states that can be read; an odd one is told and left alone."""
    rows = []
    for row in store.signals(states=states, instance=instance, limit=LIMIT):
        if fault := sending_fault(row):
            aside(store, row, fault)
        else:
            rows.append(row)
    # Of one decision the close goes first: its opening waits for it.
    # As text: a row that was altered may hold anything.
    return sorted(
        rows, key=lambda row: (f"{row['decided_at']}", row["kind"] != "close", row["sid"])
    )


def _submit(store: Outbox, bridge: Bridge, order: Order, stopped: Stopped) -> bool:
    unwanted = _unwanted(store, order.kind, order.instance, order.sid)
    if stopped(order.kind) is not None or unwanted:
        return False  # since the look at its row; the next turn takes it back
    store.require_desk()
    try:
        bridge.submit(order)
    except BridgeUnavailable as error:
        # Stay PENDING: whether the order went out or not, the next turn submits the same id again.
        store.note_signal(order.sid, f"{DenyReason.BRIDGE_DEAD}: {error}")
        return False
    with store.transaction():
        # A kill before this mark leaves PENDING: the same id goes out again, and is executed once.
        store.move_signal(order.sid, "PUBLISHED")
    failpoint("marked")
    return True


def _unwanted(store: Outbox, kind: str, instance: str, sid: str) -> bool:
    """Return whether a person's close waits for an opening: then it is not to be executed."""
    return kind == "open" and any(
        row["kind"] == "close" and row["closes"] == sid
        for row in store.signals(("WAITING",), instance, LIMIT)
    )


def _take_back(store: Outbox, bridge: Bridge, row: Mapping[str, Any], reason: str) -> None:
    try:
        recall = bridge.recall(row["sid"], row["seq"])
    except BridgeUnavailable:
        store.note_signal(row["sid"], str(reason))  # it is not sent later: this is tried again
        return
    with store.transaction():
        # RECALLED and NEVER_SENT both prove that it cannot be executed any more.
        if recall is not Recall.TAKEN:
            _end(store, row, reason)
        elif row["state"] == "PENDING":  # a crash came between handing it over and marking it
            store.move_signal(row["sid"], "PUBLISHED")


def _end(store: Outbox, row: Mapping[str, Any], reason: str) -> None:
    """End a signal that was not executed: by its expiry, or for another reason."""
    end = "EXPIRED" if reason == DenyReason.SIGNAL_EXPIRED else "CANCELLED"
    store.move_signal(row["sid"], end, detail=str(reason))


def _refused(row: Mapping[str, Any], stopped: Stopped, now: datetime) -> DenyReason | None:
    """Return why a signal may not go out; None when it may."""
    over = DenyReason.SIGNAL_EXPIRED if _over(row, now) else None
    return stopped(row["kind"]) or _doomed(row) or over


def _may_end_otherwise(reason: str | None) -> bool:
    """Return whether a signal has no reason to end but its expiry."""
    return reason in (None, DenyReason.SIGNAL_EXPIRED)


def _over(row: Mapping[str, Any], now: datetime) -> bool:
    """Return whether a signal may not go out any more.

    That is so from its expiry on. It is so too when its decision lies in the future: the clock was
    set back since, and nobody knows how old the signal is.
    """
    return now >= parse(row["expires"]) or parse(row["decided_at"]) > now + AHEAD


def _waiting(store: Outbox, kind: str, instance: str | None) -> list[dict[str, Any]]:
    return [row for row in _rows(store, ("WAITING",), instance) if row["kind"] == kind]


def _follow_closes(store: Outbox, instance: str | None) -> None:
    """Cancel each opening in WAITING whose close ended without being executed."""
    for row in _waiting(store, "open", instance):
        close = store.signal(row["after"])
        if close is None or close["state"] in UNEXECUTED:
            _end(store, row, f"close {close['state'] if close else 'missing'}")


def _release_openings(store: Outbox, instance: str | None, now: datetime, stopped: Stopped) -> None:
    """Release each waiting opening whose old position is closed in the books.

    A close that the bridge only reported as filled is not enough. Of several openings that wait for
    one instance the newest goes. One that is too old, or that may not go out any more, ends here.
    """
    released: set[str] = set()
    for row in reversed(_waiting(store, "open", instance)):
        before = store.signal(row["closes"])
        if reason := _refused(row, stopped, now):
            _end(store, row, reason)
        elif row["instance"] in released or any(
            other["kind"] == "open" for other in store.signals(UNDER_WAY, row["instance"], LIMIT)
        ):
            _end(store, row, OVERTAKEN)
        elif before is not None and before["state"] == "CLOSED":
            store.move_signal(row["sid"], "PENDING", detail="close filled")
            released.add(row["instance"])


def _release_closes(store: Outbox, instance: str | None, now: datetime, stopped: Stopped) -> None:
    """Take each person's close in WAITING on, once its opening's end is known.

    Where there is a position, a close of it goes out in its place.
    """
    for row in _waiting(store, "close", instance):
        opening = store.signal(row["closes"])
        state = opening["state"] if opening else "missing"
        reason: str | None = _refused(row, stopped, now)
        if state in ("missing", "CLOSED", *UNEXECUTED) and _may_end_otherwise(reason):
            reason = f"opening {state}"
        if reason is not None:
            _end(store, row, reason)
        elif opening and state in EXECUTED:
            # Another one: over the lots that were filled, and with a life that begins now.
            _end(store, row, f"opening {state}")
            life = signal_life(opening["timeframe"])
            write_hand_close(store, opening, now=now, life=life)


# --- back from the market -------------------------------------------------------------------------


def take_reports(
    store: Outbox, bridge: Bridge, *, now: datetime | None = None
) -> list[OrderReport]:
    """Book every report of a bridge, each in its own transaction, then settle it at the bridge.

    Raises StoreUnavailable when this desk has lost its lock: what is left is another's to book.
    `now` is real time, where it is known: a report from beyond it is odd.
    """
    taken: list[OrderReport] = []
    for report in bridge.poll():
        failpoint("ack_read")
        booked = False
        with store.transaction():
            store.require_desk()
            with isolate_row_errors(store, store.signal(report.sid) or {"sid": report.sid}):
                apply_report(store, report, now=now)
                booked = True
        if not booked:
            continue  # not settled either: it comes again, for whoever has mended the row
        failpoint("ack_committed")
        # Settled only now: a report that is settled before it is committed would be lost by a kill.
        bridge.settle(report)
        taken.append(report)
    return taken


def apply_report(store: Outbox, report: OrderReport, *, now: datetime | None = None) -> None:
    """Book what a bridge reports of a signal; booking it again changes nothing.

    Two reports raise an alarm and stop every further opening: an execution of a signal that has
    ended without one, and a report of a signal that the database does not know. Of an execution
    that cannot be (torra.bridges.plausible) nothing is booked: the signal is UNKNOWN, with an
    alarm, until the books or a person say what became of it.
    """
    with store.transaction():
        row = store.signal(report.sid)
        if row is None:
            _alarm(store, report, "a report of a signal that the database does not know")
        elif row["state"] in UNEXECUTED and report.status in (*EXECUTED, "PLACED"):
            _alarm(store, report, f"executed after it had ended {row['state']}")
        elif fault := report_fault(report, row, store.signal(row["closes"] or ""), now):
            _put_aside(store, row, report, fault)
        else:
            _step(store, row, report)


def _alarm(store: Outbox, report: OrderReport, what: str) -> None:
    text = f"{what}: {report.status} {report.volume} lots at {report.price}"
    # raise_alarm is true for a new alarm only: the same report again reduces nothing anew.
    if store.raise_alarm(f"report {report.sid}", "LATE_EXECUTION", f"{report.sid} {text}"):
        store.reduce(f"LATE_EXECUTION {report.sid}")


def _put_aside(store: Outbox, row: Mapping[str, Any], report: OrderReport, fault: str) -> None:
    """Book nothing of a report, and let the books decide what became of its signal."""
    state = _caught_up(store, row)
    if "UNKNOWN" in TRANSITIONS[state]:
        store.move_signal(row["sid"], "UNKNOWN", detail=f"odd report: {fault}")
    if state not in EXECUTED:
        text = f"{row['sid']}: the bridge reports {report.status}, and {fault}: nothing was booked"
        store.raise_alarm(f"UNKNOWN {row['sid']}", "ODD_REPORT", text)


def _caught_up(store: Outbox, row: Mapping[str, Any]) -> str:
    """Take a signal that went out as far as its mark, and return its state."""
    # The report shows that the order went out before the mark was written: catch up the steps.
    for waiting, following in (("WAITING", "PENDING"), ("PENDING", "PUBLISHED")):
        if (store.signal(row["sid"]) or row)["state"] == waiting:
            store.move_signal(row["sid"], following)
    return str((store.signal(row["sid"]) or row)["state"])


def _step(store: Outbox, row: Mapping[str, Any], report: OrderReport) -> None:
    status: str = report.status
    # An UNKNOWN signal has one end without an execution: NOT_SENT. The detail keeps the reason.
    if row["state"] == "UNKNOWN" and status in ("REJECTED", "EXPIRED", "UNKNOWN_NOT_SENT"):
        status = "NOT_SENT"
    state = _caught_up(store, row)
    # A bridge repeats its reports until they are settled, so an old one is no error.
    if status not in TRANSITIONS[state]:
        return  # said before, or overtaken by a later report
    store.move_signal(row["sid"], status, detail=report.detail, fields=_learned(row, report))
    if row["kind"] == "modify" and status == "FILLED":
        store.learn(row["closes"], broker_stop=None)  # it stands where it was moved to
    if report.reason == DECISION:
        halt_for(store, row, f"{ALTERED} when it reached {row['bridge']}")
    if state == "UNKNOWN":
        store.end_alarm(f"UNKNOWN {row['sid']}")
    if status in ("UNKNOWN", "UNKNOWN_NOT_SENT"):
        words = f"{row['kind']} {row['side']} {row['lots']} {row['symbol']} of {row['instance']}"
        store.raise_alarm(f"{status} {row['sid']}", status, f"{row['sid']} {words}")


def _learned(row: Mapping[str, Any], report: OrderReport) -> dict[str, Any]:
    if report.status not in EXECUTED:
        return {}
    if row["kind"] == "modify":  # it makes no deal: its stop stands in its row
        return {"closed_at": report.at}
    moment = "opened_at" if row["kind"] == "open" else "closed_at"
    known: dict[str, Any] = {moment: report.at, "deal": report.deal}
    # 0 means that the other side does not know it: the decided price and the ordered lots stand.
    if report.price:
        known["price"] = report.price
    if report.volume:
        known["filled_lots"] = report.volume
    if report.position:
        known["ticket"] = report.position
    return known


def apply_event(store: Outbox, event: PaperEvent, known_at: datetime | None = None) -> None:
    """Book what the paper bridge reports, in one transaction.

    `known_at` is when the end of a trade is known, None for the event's own time.
    """
    with store.transaction():
        if event.kind in EXECUTED:
            row = _release(store, event.sid)
            moment = "opened_at" if row and row["kind"] == "open" else "closed_at"
            part = {"filled_lots": event.volume} if event.kind == "PARTIAL" else {}
            fields = {"price": event.price, moment: event.time, **part}
            store.move_signal(event.sid, event.kind, fields=fields)
        elif event.kind == "REJECTED":
            _release(store, event.sid)
            store.move_signal(event.sid, "REJECTED", detail=event.reason)
        elif event.kind == "CANCELLED":
            store.move_signal(event.sid, "CANCELLED", detail=event.reason)
        else:
            store.close_position(
                event.sid,
                price=event.price,
                time=event.time,
                profit=event.profit,
                r_multiple=event.r_multiple,
                reason=event.kind,
                known_at=known_at,
            )
        failpoint("moved")


def _release(store: Outbox, sid: str) -> dict[str, Any] | None:
    """Let an opening go that waited for its close; return its row."""
    row = store.signal(sid)
    if row and row["state"] == "WAITING":
        store.move_signal(sid, "PENDING", detail="close filled")
        # Both steps, as TRANSITIONS wants them.
        store.move_signal(sid, "PUBLISHED")
    return row
