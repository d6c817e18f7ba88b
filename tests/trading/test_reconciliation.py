"""Whatever happened while nobody looked, the rows end up as the broker's books have it.

First what each finding needs, then random histories (tests.worlds.broker_histories): after every
comparison nothing in the rows may be wrong; at the end, with quiet books, nothing may be missing
either, and what cannot be known is said.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds.broker_histories import (
    FOREIGN,
    MAGICS,
    NOON,
    SID,
    History,
    Row,
    apply_to_rows,
    opening,
    seconds,
)
from torra.bridges.protocol import BrokerBooks, BrokerDeal, BrokerPosition
from torra.clock import iso, parse
from torra.trading.reconciliation import LOOKS, Finding, missing_key, reconcile
from torra.verdict.signal_states import EXECUTED, SENT, UNEXECUTED


def held(sid: str = SID, **more: Any) -> Row:
    fill = {"ticket": "501", "price": 2000.2, "opened_at": iso(NOON), "filled_lots": 0.5}
    return opening(sid, **{"state": "FILLED", **fill, **more})


def closing(sid: str = "TCLOSECLOSE22", closes: str = SID, **more: Any) -> Row:
    levels = dict.fromkeys(("entry", "stop", "target"))
    return opening(sid, kind="close", closes=closes, **{"side": "SELL", **levels, **more})


def position(ticket: str = "501", **more: Any) -> BrokerPosition:
    plain = BrokerPosition(
        ticket, "XAUUSD.m", "LONG", 0.5, 2000.2, 1990.0, 2020.0, MAGICS["GOLD"], SID, 1.0, NOON
    )
    return replace(plain, **more)


def deal_in(number: str = "9001", **more: Any) -> BrokerDeal:
    plain = BrokerDeal(
        *(number, "501", "XAUUSD.m", "in", "BUY", 0.5, 2000.2, -1.5, MAGICS["GOLD"], SID, NOON),
        "expert",
    )
    return replace(plain, **more)


def deal_out(number: str = "9002", **more: Any) -> BrokerDeal:
    closed = {"entry": "out", "side": "SELL", "price": 1990.0, "profit": -510.0, "reason": "sl"}
    return deal_in(number, **{**closed, "comment": "[sl]", "time": NOON + seconds(30), **more})


def books(
    *entries: BrokerPosition | BrokerDeal,
    after: float = 60.0,
    since: datetime = NOON - timedelta(days=7),
) -> BrokerBooks:
    return BrokerBooks(
        tuple(item for item in entries if isinstance(item, BrokerPosition)),
        tuple(item for item in entries if isinstance(item, BrokerDeal)),
        NOON + seconds(after),
        since,
    )


def compared(rows: Iterable[Row], told: BrokerBooks) -> tuple[Finding, ...]:
    return reconcile(tuple(rows), told, now=told.at, magics=MAGICS)


def looked_at(rows: Iterable[Row], *several: BrokerBooks) -> tuple[tuple[Row, ...], list[Finding]]:
    """Compare and book one set of books after the other."""
    every: list[Finding] = []
    rows = tuple(rows)
    for told in several:
        findings = compared(rows, told)
        every += findings
        rows = apply_to_rows(rows, findings, at=told.at)
    return rows, every


def misses_of(findings: Iterable[Finding]) -> list[int]:
    return [finding.values["misses"] for finding in findings if finding.kind == "UNSEEN"]


def kinds(findings: Iterable[Finding]) -> list[str]:
    return [finding.kind for finding in findings]


def is_told(
    finding: Finding, kind: str, sid: str = SID, ticket: str = "501", **values: Any
) -> bool:
    """Return whether a finding is of a kind, signal and position, with these columns and more."""
    whole = (finding.kind, finding.sid, finding.ticket) == (kind, sid, ticket)
    return whole and values.items() <= finding.columns.items()


CLOSE = "TCLOSECLOSE22"
PART = deal_out(lots=0.2, reason="expert", comment=CLOSE)


# --- openings -------------------------------------------------------------------------------------


@cases(
    ("comment", "kind"),
    [
        *((text, "FILLED") for text in (f" {SID.lower()} ", SID[:8], f"{SID}[tp]")),
        *((text, "EXTERNAL") for text in (SID[:7], "", "by hand")),
    ],
)
def test_a_comment_may_be_cut_or_changed_but_must_name_the_signal(comment: str, kind: str) -> None:
    assert kinds(compared([opening()], books(position(comment=comment)))) == [kind]


@cases(
    ("rows", "entries", "expected"),
    [
        # A mangled comment is no matter where the number is known, or the deal names the signal.
        ([held()], [position(comment="", magic=0)], []),
        (
            [opening(state="PLACED", ticket="501")], [position(comment="")],
            [("FILLED", SID, "501")],
        ),
        ([opening()], [position(comment="x"), deal_in()], [("FILLED", SID, "501")]),
        # A number that shows nowhere gives way to the name.
        ([held(ticket="d9001")], [position()], [("AMENDED", SID, "501")]),
        # What was acknowledged is the signal's, whatever else bears its name.
        (
            [held(ticket="502")],
            [position("502", comment="", opened_at=NOON + seconds(1)), position()],
            [("EXTERNAL", "", "501")],
        ),
        # Two ids of 8 equal characters: a whole name goes before its head.
        (
            [opening(f"{SID[:8]}AAAAA"), opening(f"{SID[:8]}BBBBB")],
            [position(comment=f"{SID[:8]}BBBBB")],
            [("FILLED", f"{SID[:8]}BBBBB", "501")],
        ),
        # Some bridges cannot tell which position a deal belongs to.
        (
            [opening()], [position(opened_at=NOON + seconds(1)), deal_in(position="")],
            [("FILLED", SID, "501")],
        ),
        # A netting account can turn a position round under its number.
        (
            [held()], [position(side="SHORT"), deal_in()],
            [("UNSEEN", SID, ""), ("EXTERNAL", "", "501")],
        ),
        # Another magic number is not ours, whatever it is called.
        ([opening()], [position(magic=FOREIGN), deal_in(magic=FOREIGN)], []),
        ([opening(instance="OTHER")], [position(magic=0), position("7", magic=0)], []),
        # A fill is known though the position does not show yet.
        ([opening()], [deal_in()], [("FILLED", SID, "501"), ("UNSEEN", SID, "")]),
        # Of two positions for one signal the first is its own.
        (
            [opening()], [position("502", opened_at=NOON + seconds(1)), position()],
            [("FILLED", SID, "501"), ("EXTERNAL", "", "502")],
        ),
        # A terminal lost the position that an order was meant to close.
        (
            [held(), closing(state="FILLED")],
            [position(), position("502", side="SHORT", comment=CLOSE)],
            [("EXTERNAL", "", "502")],
        ),
        # A crash between handing over and marking; the courier marks it on its next turn.
        ([opening(state="PENDING")], [position()], []),
        ([opening(state="WAITING")], [position()], []),
        ([], [position(comment="by hand")], [("EXTERNAL", "", "501")]),
        # An order that was executed after its end, and an open position of a closed signal.
        *(
            ([opening(state=state)], entries, [(kind, SID, "501")])
            for state in UNEXECUTED
            for kind, entries in (
                ("LATE", [position(), deal_in()]), ("LATE_ENDED", [deal_in(), deal_out()]),
            )
        ),
        ([held(state="CLOSED")], [position()], [("LATE", SID, "501")]),
        ([held(state="CLOSED")], [deal_in(), deal_out()], []),
    ],
)  # fmt: skip
def test_which_position_is_whose(rows: Any, entries: Any, expected: list[Any]) -> None:
    findings = compared(rows, books(*entries, after=120))
    assert [(one.kind, one.sid, one.ticket) for one in findings] == expected
    for one in findings:
        is_alarm = one.kind in ("EXTERNAL", "LATE", "LATE_ENDED")
        assert (one.alarm is not None and one.alarm.reduces, not one.values) == (is_alarm,) * 2


# --- the end of a position ------------------------------------------------------------------------


def test_the_later_of_two_deals_in_one_second_has_the_higher_number() -> None:
    deals = (deal_out("999", lots=0.2, reason="tp"), deal_out("1000", lots=0.3, reason="client"))
    (end,) = compared([held()], books(deal_in("1"), *deals))
    assert is_told(end, "CLOSED", close_reason="CLOSED")


@pytest.mark.parametrize("entries", [(), (deal_in(),), (deal_in(), deal_out(lots=0.49))])
def test_a_position_that_cannot_be_seen_is_not_flat(entries: tuple[Any, ...]) -> None:
    """Without closing deals for all of it, it is missing: counted once for each set of books."""
    twice = [books(*entries, after=60.0 * look) for look in range(1, 7) for _ in range(2)]
    rows, findings = looked_at([held()], *twice)
    assert misses_of(findings) == [1, 2, 3, 4, 5, 6] and len(findings) == 6
    assert [bool(finding.alarm) for finding in findings] == [False] * LOOKS + [True] * 3
    assert findings[-1].alarm is not None and findings[-1].alarm.key == missing_key(SID)
    assert rows[0]["state"] == "FILLED" and rows[0]["misses"] == 6
    rows, findings = looked_at(rows, books(position(), after=900))
    assert (kinds(findings), rows[0]["misses"]) == (["REAPPEARED"], 0)


def test_a_position_older_than_the_list_of_deals_is_measured_by_its_order() -> None:
    (end,) = compared([held()], books(deal_out()))
    assert is_told(end, "CLOSED", profit=-510.0)
    rest = deal_out(lots=0.3)
    several = [books(rest, after=60.0 * look) for look in range(1, 5) for _ in range(2)]
    rows, findings = looked_at([held(filled_lots=0.3)], *several[:6])
    assert kinds(findings) == ["UNSEEN"] * 3
    assert kinds(compared(rows, several[6])) == ["CLOSED"]
    assert kinds(compared([held(state="PARTIAL", filled_lots=0.3)], books(rest))) == ["CLOSED"]
    assert kinds(compared([held(state="PARTIAL", filled_lots=0.0)], books())) == ["UNSEEN"]


def test_a_position_that_grew_beyond_its_order_is_told() -> None:
    rows, (amended, external) = looked_at([held()], books(position(lots=0.7)))
    assert is_told(amended, "AMENDED", filled_lots=0.7)
    assert is_told(external, "EXTERNAL") and external.alarm is not None and external.alarm.reduces
    assert compared(rows, books(position(lots=0.7), after=90)) == (external,)


@pytest.mark.parametrize(("stop", "target"), [(1995.0, 2020.0), (1990.0, 2025.0), (0.0, 2020.0)])
def test_levels_moved_by_hand_are_told_and_the_plan_stays(stop: float, target: float) -> None:
    rows, (moved,) = looked_at([held()], books(position(stop=stop, target=target)))
    assert rows == (held(broker_stop=stop or None),)
    assert (moved.kind, bool(moved.alarm)) == ("LEVELS_MOVED", stop == 0.0)
    assert looked_at(list(rows), books(position(), after=90))[0][0]["broker_stop"] in (None, 1990.0)


# --- orders that cannot be seen -------------------------------------------------------------------


def unknown_looks(row: Row, *entries: Any, count: int = 6, step: float = 30.0, **more: Any):
    return looked_at([row], *(books(*entries, after=step * n, **more) for n in range(1, count + 1)))


@cases(("step", "unseen"), [(30.0, 2), (10.0, 5), (100.0, 2)])
def test_an_order_is_never_sent_after_three_looks_and_a_minute(step: float, unseen: int) -> None:
    rows, findings = unknown_looks(opening(state="UNKNOWN"), step=step)
    assert kinds(findings) == ["UNSEEN"] * unseen + ["NOT_SENT"]
    assert rows[0]["state"] == "NOT_SENT" and findings[-1].values["misses"] == unseen + 1
    for finding in findings[:-1]:
        assert (finding.values["misses"] <= LOOKS) == (finding.alarm is None)


@cases(
    ("entries", "more"),
    [
        ((), {"since": NOON}),
        ((position(comment="by hand"),), {}),
        ((position(comment="by hand", opened_at=NOON - seconds(4000)),), {}),
        ((deal_in(comment="", time=NOON + seconds(2)), deal_out()), {}),
        ((deal_in(position="", comment=SID),), {}),
    ],
)
def test_in_doubt_an_order_stays_unknown(entries: tuple[Any, ...], more: dict[Any, Any]) -> None:
    """The deals do not reach back far enough, or something of the same magic number is unclear."""
    rows, findings = unknown_looks(opening(state="UNKNOWN"), *entries, **more)
    assert rows[0]["state"] == "UNKNOWN" and rows[0]["misses"] == 6
    assert not {"NOT_SENT", "FILLED"} & set(kinds(findings))
    assert [one for one in findings if one.kind == "UNSEEN"][-1].alarm


@pytest.mark.parametrize(
    "entries",
    [
        (position(magic=FOREIGN),),
        (position(magic=MAGICS["EURUSD"], comment="x"),),
        (deal_in(comment="", time=NOON - seconds(600)), deal_out(time=NOON - seconds(500))),
    ],
)
def test_others_and_the_past_cast_no_doubt(entries: tuple[Any, ...]) -> None:
    rows, _ = unknown_looks(opening(state="UNKNOWN"), *entries)
    assert rows[0]["state"] == "NOT_SENT"


@pytest.mark.parametrize("state", ["PUBLISHED", "CLAIMED", "PLACED"])
def test_an_answer_that_is_overdue_is_looked_for_but_nothing_is_concluded(state: str) -> None:
    row = opening(state=state)
    assert compared([row], books(after=239)) == ()
    rows, findings = looked_at([row], *(books(after=240 + n) for n in range(8)))
    assert misses_of(findings) == list(range(1, 9))
    assert rows[0]["state"] == state and findings[-1].alarm


# --- which books may speak ------------------------------------------------------------------------


@cases("after", [-60.0, 0.0, 4.9])
@cases("state", ["PUBLISHED", "UNKNOWN", "FILLED", "EXPIRED"])
def test_books_that_are_not_clearly_younger_say_nothing_of_a_row(state: str, after: float) -> None:
    row = opening(state=state) if state != "FILLED" else held()
    for entries in ((), (position(),), (deal_in(), deal_out()), (position(lots=0.1, stop=1.0),)):
        assert compared([row], books(*entries, after=after)) == ()
    old = opening(state="EXPIRED", changed_at=iso(NOON - seconds(60)))
    assert compared([old, closing(state=state)], books(after=after)) == ()


def test_a_position_that_was_opened_a_moment_ago_is_no_stranger_yet() -> None:
    assert compared([], books(position(comment="x"), after=4)) == ()
    assert kinds(compared([], books(position(comment="x"), after=5))) == ["EXTERNAL"]


def test_books_from_the_future_prove_nothing() -> None:
    told = books(deal_in(), deal_out())
    for late, count in ((-6.0, 0), (-5.0, 1), (60.0, 1)):
        now = told.at + seconds(late)
        assert len(reconcile((held(),), told, now=now, magics=MAGICS)) == count


# --- closes ---------------------------------------------------------------------------------------


ENDS = {
    "PENDING": "CANCELLED", "PUBLISHED": "CANCELLED", "CLAIMED": "REJECTED", "PLACED": "REJECTED",
    "UNKNOWN": "NOT_SENT",
}  # fmt: skip
"""How a close ends that nothing is left of, by its state."""


@cases("state", ENDS)
@cases(
    "other",
    [
        {"reason": "sl"},
        {"reason": "client", "magic": 0},
        {"reason": "expert", "magic": FOREIGN},
        {"reason": "expert", "time": NOON - seconds(30)},
    ],
)
def test_a_close_that_something_else_forestalled_is_over(state: str, other: dict[str, Any]) -> None:
    told = books(deal_in(), deal_out(**other))
    rows, (_, done) = looked_at([held(), closing(state=state)], told)
    assert is_told(done, "CLOSE_DONE", CLOSE, "", price=None, closed_at=None)
    assert [row["state"] for row in rows] == ["CLOSED", ENDS[state]]


@cases(
    ("rows", "entries"),
    [
        # The deals are of another close, by its name or by its number.
        (
            [held(), closing("TANOTHERONE22", state="FILLED"), closing()],
            [deal_in(), deal_out(reason="expert", comment="TANOTHERONE2")],
        ),
        (
            [held(), closing("TANOTHERONE22", state="FILLED", deal="9002"), closing()],
            [deal_in(), deal_out(reason="expert", comment="")],
        ),
        # A close that was not sent has no deals.
        (
            [held(), closing(state="PENDING")],
            [deal_in(), deal_out(reason="expert", comment=CLOSE)],
        ),
        # Its position ended before, or never was.
        ([closing(), held(state="CLOSED")], []),
        ([closing(), opening(state="EXPIRED")], []),
        ([closing()], []),
    ],
)
def test_a_close_without_deals_of_its_own_is_over(rows: list[Row], entries: list[Any]) -> None:
    done = compared(rows, books(*entries))[-1]
    assert is_told(done, "CLOSE_DONE", CLOSE, "", state="CANCELLED", price=None)


def test_a_close_waits_while_its_position_is_open_or_cannot_be_seen() -> None:
    for entries in ((position(),), ()):
        assert "CLOSE_DONE" not in kinds(compared([held(), closing()], books(*entries)))
    rows, _ = looked_at(
        [held(), closing(state="UNKNOWN")], *(books(after=60 * n) for n in range(1, 9))
    )
    assert rows[1]["state"] == "UNKNOWN" and rows[1]["misses"] == 0


@pytest.mark.parametrize(
    ("opened", "state"), [(None, "NOT_SENT"), (-600.0, "NOT_SENT"), (10.0, "UNKNOWN")]
)
def test_a_close_that_never_reached_the_market_can_be_tried_again(
    opened: float | None, state: str
) -> None:
    """Only a stranger that is younger can be that close gone astray."""
    ages = [] if opened is None else [opened]
    strangers = [position("502", comment="", opened_at=NOON + seconds(age)) for age in ages]
    looks = [books(position(), *strangers, after=30 * n) for n in range(1, 9)]
    rows, findings = looked_at([held(), closing(state="UNKNOWN")], *looks)
    assert [row["state"] for row in rows] == ["FILLED", state]
    assert any(is_told(one, "NOT_SENT", CLOSE, "", misses=3) for one in findings) == (
        state == "NOT_SENT"
    )


def test_a_close_under_way_waits_for_its_report_while_a_part_is_open() -> None:
    told = books(position(lots=0.3), deal_in(), PART)
    assert kinds(compared([held(), closing(state="PLACED")], told)) == ["PARTLY_CLOSED"]
    rows, findings = looked_at([held(), closing(state="UNKNOWN")], told)
    assert kinds(findings) == ["PARTLY_CLOSED", "CLOSE_DONE"]
    assert rows[1]["state"] == "PARTIAL" and rows[1]["filled_lots"] == 0.2


# --- random histories -----------------------------------------------------------------------------
# What ought to be known at the end is worked out from the truth alone.


def named(comment: str, sid: str) -> bool:
    return comment[:8] == sid[:8]


def knowable(history: History, sid: str) -> bool:
    """Return whether the number of an order's position was said, or stands in the books by name."""
    ticket = history.truth[sid].ticket
    shown = history.look()
    item = history.positions.get(ticket)
    return history.truth[sid].said or any(
        named(comment, sid)
        for comment in (
            *([item.comment] if item else []),
            *(
                deal.comment
                for deal in shown.deals
                if (deal.position, deal.entry) == (ticket, "in")
            ),
        )
    )


def check_opening(history: History, row: Row, findings: tuple[Finding, ...]) -> str:
    sid, ticket = row["sid"], history.truth[row["sid"]].ticket
    deals = [deal for deal in history.deals if deal.position == ticket and ticket]
    ins = [deal for deal in deals if deal.entry == "in"]
    outs = [deal for deal in deals if deal.entry == "out"]
    late = [one.ticket for one in findings if one.kind.startswith("LATE") and one.sid == sid]
    if not ticket:
        assert row["state"] not in (*EXECUTED, "CLOSED") and not late
        return "never executed"
    if row["state"] in UNEXECUTED:
        assert late == ([ticket] if knowable(history, sid) else [])
        return "late"
    if row["state"] in SENT:
        assert not knowable(history, sid)
        return "not knowable"
    assert row["ticket"] == ticket
    filled = sum(deal.lots for deal in ins)
    assert row["price"] == pytest.approx(sum(d.lots * d.price for d in ins) / filled, abs=1e-7)
    if item := history.positions.get(ticket):
        assert row["state"] == ("FILLED" if filled > 0.499 else "PARTIAL")
        assert row["filled_lots"] == item.lots
        moved = (item.stop, item.target) != (row["stop"], row["target"])
        moved = moved or row.get("broker_stop") not in (None, item.stop)
        levels = {"broker_stop": item.stop or None}
        assert moved == any(is_told(one, "LEVELS_MOVED", sid, ticket, **levels) for one in findings)
        return "open"
    assert row["state"] == "CLOSED"
    volume = sum(deal.lots for deal in outs)
    mean = sum(deal.lots * deal.price for deal in outs) / volume
    assert row["close_price"] == pytest.approx(mean, abs=1e-7)
    assert row["profit"] == pytest.approx(sum(deal.profit for deal in deals), abs=1e-7)
    assert row["closed_at"] == iso(outs[-1].time)
    words = {"sl": "STOPPED", "tp": "TARGET"}
    assert row["close_reason"] == words.get(outs[-1].reason, "CLOSED")
    assert row["opened_at"] and ins
    return "closed"


def unexplained_since(history: History, row: Row) -> bool:
    """Return whether something of the same magic number was opened since that nobody explains."""
    explained = {history.truth[sid].ticket for sid in history.rows if knowable(history, sid)}
    return any(
        deal.entry == "in"
        and deal.magic == MAGICS[row["instance"]]
        and deal.time + seconds(5) >= parse(row["decided_at"])
        and deal.position not in explained
        for deal in history.deals
    )


def check_close(history: History, row: Row) -> str:
    opening = history.rows[row["closes"]]
    if opening["state"] in EXECUTED:
        assert row["state"] != "UNKNOWN" or unexplained_since(history, row)
        return "close of an open position"
    assert opening["state"] == "CLOSED"
    assert row["state"] not in (*SENT, "PENDING")
    if history.truth[row["sid"]].ticket:
        assert row["state"] in EXECUTED
        (deal,) = (deal for deal in history.deals if deal.deal == row["deal"])
        told = (row["price"], row["filled_lots"], row["closed_at"])
        assert told == (deal.price, deal.lots, iso(deal.time))
        return "close executed"
    assert row["state"] in UNEXECUTED
    return "close forestalled"


def check_strangers(history: History, findings: tuple[Finding, ...]) -> int:
    explained = {
        history.truth[sid].ticket
        for sid, row in history.rows.items()
        if row["kind"] == "open" and knowable(history, sid)
    }
    ours = {
        ticket
        for ticket, item in history.positions.items()
        if item.magic in MAGICS.values() and ticket not in explained
    }
    assert {item.ticket for item in findings if item.kind == "EXTERNAL"} == ours
    return len(ours)


def check_doubt(history: History, findings: tuple[Finding, ...]) -> None:
    """What cannot be settled does not stay so in silence."""
    alarmed = {item.sid for item in findings if item.alarm}
    for sid, row in history.rows.items():
        gone = history.truth[sid].ticket not in history.positions
        if row["state"] == "UNKNOWN":
            missing = row["closes"] in alarmed  # a close waits for its position to be seen
            assert sid in alarmed or missing or unexplained_since(history, row)
        elif row["kind"] == "open" and row["state"] in EXECUTED and gone:
            assert sid in alarmed


def test_random_histories_end_as_the_broker_has_it(
    scaled: Callable[..., int], record_property: Any
) -> None:
    ends: Counter[str] = Counter()
    for seed in range(scaled(5000)):
        history = History(random.Random(seed))
        try:
            history.live_through()
            findings = history.settle()
            check_doubt(history, findings)
            if history.window > timedelta(days=1):
                ends.update(check_opening(history, row, findings) for row in history.of("open"))
                ends.update(check_close(history, row) for row in history.of("close"))
                ends["stranger"] += check_strangers(history, findings)
            else:
                ends["deals forgotten"] += 1
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"history {seed}") from error
    told = ", ".join(f"{number:,} {end}" for end, number in sorted(ends.items()))
    record_property("seen", told)
    assert len(ends) == 10, "every kind of end is met"


def test_the_deals_that_closed_a_position_are_not_those_of_its_stops_move() -> None:
    told = closing("TMOVEMOVEMO22", side="BUY", stop=1995.0, state="PUBLISHED")
    move = {**told, "kind": "modify"}
    by_advisor = deal_out(reason="expert", comment="")
    findings = compared([held(), move], books(deal_in(), by_advisor))
    assert kinds(findings) == ["CLOSED", "CLOSE_DONE"]
    assert findings[1].columns["state"] in UNEXECUTED
    assert findings[1].columns["price"] is None
