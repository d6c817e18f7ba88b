"""Both sides together: every order once, whatever dies, lies or is late in between."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.conftest import Scale
from tests.doubles.fake_broker import FakeBroker, Fault, Request
from tests.doubles.reference_ea import POINTS, ReferenceEa
from tests.worlds.channels import (
    ACCOUNT,
    ENVIRONMENT,
    INPUTS,
    KEY,
    MAGIC,
    NOW,
    Stage,
    closing,
    order,
)
from torra.bridges.guards import REASONS, SCOPES
from torra.bridges.protocol import Order, Recall, Report
from torra.bridges.torra.bridge import TorraFiles
from torra.bridges.torra.drop_folder import file_name
from torra.bridges.torra.messages import Ack, decode, encode, seal, signal_of
from torra.clock import System
from torra.config import Channel


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.wake()
    return made


def drop(stage: Stage, sent: Order, **changes: Any) -> str:
    """Put a signal into inbox/ as nobody asks: signed, whatever it says."""
    told = replace(signal_of(sent, channel="main", account=ACCOUNT), **changes)
    told = replace(told, seal=changes.get("seal", told.computed_seal))
    name = file_name(sent.seq, sent.sid)
    (stage.folder / "inbox" / name).write_bytes(encode(told, KEY))
    return name


def answer(stage: Stage, sent: Order, **changes: Any) -> Report:
    drop(stage, sent, **changes)
    return stage.final(sent.sid)


def now(stage: Stage, number: int = 1, **more: Any) -> Order:
    """Return an opening that is created now."""
    created = stage.clock.now()
    return order(number, created=created, expires=created + timedelta(seconds=180), **more)


def held(stage: Stage) -> int:
    return len(stage.broker.held)


def leftovers(stage: Stage) -> list[str]:
    return [n for where in ("inbox", "work", "ack") for n in stage.names(where)]


# --- what is done ---------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["BUY", "SELL"])
def test_an_opening_and_its_close(stage: Stage, side: str) -> None:
    levels = (1.09512, 1.11012) if side == "BUY" else (1.10512, 1.09012)
    opened = now(stage, side=side, entry=1.1, stop=levels[0], target=levels[1])
    stage.bridge.submit(opened)
    filled = stage.final(opened.sid)
    assert (filled.status, filled.retcode, filled.volume) == ("FILLED", 10009, 0.1)
    assert filled.price == (1.10012 if side == "BUY" else 1.1)
    (position,) = stage.broker.held.values()
    assert (position.side, position.sl, position.tp) == (side, *levels)
    assert (position.magic, position.comment) == (opened.magic, opened.sid)
    about = {"created": stage.clock.now(), "expires": stage.clock.now() + timedelta(minutes=3)}
    stage.bridge.submit(closing(opened, 2, ticket=filled.position, **about))
    assert stage.final(order(2).sid).status == "FILLED"
    assert held(stage) == 0
    assert stage.broker.sends[-1].position == int(filled.position)
    assert leftovers(stage) == []


def test_levels_are_rounded_to_the_tick(stage: Stage) -> None:
    stage.broker.market("EURUSD.m", tick_size=0.00025)
    assert answer(stage, now(stage)).status == "FILLED"
    (position,) = stage.broker.held.values()
    assert (position.sl, position.tp) == (1.095, 1.11)


def test_a_close_finds_its_position_by_comment_and_by_journal(stage: Stage) -> None:
    first = now(stage)
    answer(stage, first)
    assert answer(stage, closing(first, 2, created=stage.clock.now())).status == "FILLED"
    stage.broker.faults.append(Fault(comment="changed by the broker"))
    second = now(stage, 3)
    told = answer(stage, second)
    assert (told.status, told.adopted) == ("FILLED", False)
    assert [p.comment for p in stage.broker.held.values()] == ["changed by the broker"]
    assert answer(stage, closing(second, 4, created=stage.clock.now())).status == "FILLED"
    assert held(stage) == 0


def test_a_close_of_a_closed_position_opens_nothing(stage: Stage) -> None:
    opened = now(stage)
    ticket = int(answer(stage, opened).position)
    stage.broker.end(ticket, 1.09512, stage.clock.now().timestamp(), "sl")
    for number, known in ((2, str(ticket)), (3, "")):
        told = answer(stage, closing(opened, number, created=stage.clock.now(), ticket=known))
        assert (told.status, told.reason) == ("REJECTED", "no_position")
    assert held(stage) == 0
    assert len(stage.broker.executions) == 2


def test_a_close_that_names_another_position_closes_none(stage: Stage) -> None:
    opened = now(stage)
    answer(stage, opened)
    told = answer(stage, closing(opened, 2, created=stage.clock.now(), ticket="777"))
    assert (told.status, told.reason, held(stage)) == ("REJECTED", "no_position", 1)


def test_part_of_a_position_may_be_closed(stage: Stage) -> None:
    opened = now(stage, lots=0.3)
    answer(stage, opened)
    part = closing(opened, 2, created=stage.clock.now(), lots=0.1)
    assert answer(stage, part).volume == 0.1
    assert [p.volume for p in stage.broker.held.values()] == [0.2]
    more = closing(opened, 3, created=stage.clock.now(), lots=0.3)
    assert answer(stage, more).reason == "volume"


def test_modify_close_all_and_ping(stage: Stage) -> None:
    opened = now(stage)
    answer(stage, opened)
    asked = replace(opened, sid="T000000000007", seq=7, closes=opened.sid, stop=1.097, target=1.12)
    assert answer(stage, asked, kind="modify", side="").status == "FILLED"
    assert [(p.sl, p.tp) for p in stage.broker.held.values()] == [(1.097, 1.12)]
    stage.broker.by_hand("EURUSD.m", "SELL", 0.2, stage.clock.now().timestamp(), magic=opened.magic)
    stage.broker.by_hand("EURUSD.m", "SELL", 0.4, stage.clock.now().timestamp())
    every = replace(opened, sid="T000000000008", seq=8)
    told = answer(stage, every, kind="close_all", side="")
    assert told.status == "FILLED" and told.volume == pytest.approx(0.3)
    assert [(p.magic, p.volume) for p in stage.broker.held.values()] == [(0, 0.4)]
    ping = replace(opened, sid="T000000000009", seq=9)
    told = answer(stage, ping, kind="ping", side="", broker_symbol="NONE")
    assert (told.status, told.volume, told.deal) == ("FILLED", 0.0, "")


# --- the guards -----------------------------------------------------------------------------------


def market(**terms: Any) -> Callable[[Stage], object]:
    return lambda stage: stage.broker.market("EURUSD.m", **terms)


def account(**facts: Any) -> Callable[[Stage], object]:
    return lambda stage: [setattr(stage.broker, *fact) for fact in facts.items()]


def inputs(**more: Any) -> Callable[[Stage], object]:
    return lambda stage: setattr(stage.ea, "inputs", replace(INPUTS, **more))


def one_is_open(stage: Stage) -> None:
    stage.broker.by_hand("EURUSD.m", "SELL", 0.1, NOW.timestamp(), magic=MAGIC + 1)


def one_is_enough(**limit: int) -> Callable[[Stage], object]:
    def change(stage: Stage) -> None:
        one_is_open(stage)
        inputs(**limit)(stage)

    return change


def nothing(_: Stage) -> None:
    pass


PAST = int(NOW.timestamp()) - 1
REFUSALS: dict[str, list[tuple[Callable[[Stage], object], dict[str, Any]]]] = {
    "channel": [(nothing, {"channel": "other"})],
    "account": [
        (nothing, {"account": 7}),
        (inputs(account=0), {}),
        (inputs(account=0), {"account": 0}),
        (account(account=7), {}),
        (account(account=7), {"account": 7}),
    ],
    "decision": [(nothing, {"seal": "0" * 64}), (nothing, {"seal": ""})],
    "live": [(account(real=True), {})],
    "kill": [(lambda stage: stage.bridge.set_halt("x"), {})],
    "clock": [(nothing, {"created": PAST + 3600, "expires": PAST + 7200})],
    "stale": [(nothing, {"expires": PAST})],
    "not_connected": [(account(connected=False), {})],
    "autotrading_off": [
        (account(algo_allowed=False), {}),
        (account(trade_allowed=False), {}),
        (inputs(allow_trading=False), {}),
    ],
    "symbol": [
        (nothing, {"broker_symbol": "GBPUSD"}),
        (market(trade_mode="disabled"), {}),
        (market(trade_mode="short_only"), {}),
        (market(trade_mode="close_only"), {}),
    ],
    "session": [(market(session_open=False), {})],
    "quote": [(market(bid=0.0), {}), (market(ask=1.0), {})],
    "spread": [(market(ask=1.10041), {"max_dev_pts": 99})],
    "deviation": [(nothing, {"entry": Decimal("1.10043")})],
    "side": [(nothing, {"side": "SELL"})],
    "stops": [(market(stops_level=489), {})],
    "volume": [(market(lot_min=0.2), {}), (market(lot_step=0.03), {}), (market(lot_max=0.05), {})],
    "max_lots": [(inputs(max_lots=0.09), {})],
    "max_positions": [(one_is_enough(max_positions=1), {"magic": MAGIC})],
    "max_trades": [(one_is_enough(max_trades_per_day=1), {"magic": MAGIC})],
    "policy": [(one_is_open, {})],
}
CASES = [
    pytest.param(reason, *case, id=f"{reason}-{number}")
    for reason, cases in REFUSALS.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize(("reason", "change", "changes"), CASES)
def test_each_guard_refuses(
    stage: Stage, reason: str, change: Callable[[Stage], object], changes: dict[str, Any]
) -> None:
    change(stage)
    before = len(stage.broker.executions)
    told = answer(stage, order(), **changes)
    assert (told.reason, told.status) == (reason, "EXPIRED" if reason == "stale" else "REJECTED")
    assert len(stage.broker.executions) == before
    assert stage.broker.sends == []
    assert leftovers(stage) == []


def test_the_refusal_by_another_channel_says_nothing_about_ours(stage: Stage) -> None:
    """(F2) An order that is copied into another channel of the same key is refused there.

    Who may write into both folders could bring that refusal back, signed, while the order is being
    executed here.
    """
    stage.ea.inputs = replace(INPUTS, channel="second")
    name = drop(stage, order())
    stage.tick()
    raw = (stage.folder / "ack" / name).read_bytes()
    told = decode(raw, Ack, KEY)
    assert (told.channel, told.status, told.reason) == ("second", "REJECTED", "channel")
    assert stage.broker.executions == []
    assert stage.reports() == []
    assert [text.startswith(name) for text in stage.names("bad")] == [True]
    assert "signed as channel second's, and this is main" in str(
        stage.bridge.health().facts["last_alarm"]
    )


def test_every_guard_of_the_table_has_its_case() -> None:
    elsewhere = {"auth", "version", "schema", "no_position"}
    assert {*REFUSALS} | elsewhere == {*REASONS}
    assert {*SCOPES} == {"all", "trade", "open"}


@pytest.mark.parametrize("lots", [0.1, 0.11])
def test_the_advisors_limits_are_inclusive(stage: Stage, lots: float) -> None:
    stage.ea.inputs = replace(INPUTS, max_lots=0.1, max_positions=1, max_trades_per_day=1)
    assert answer(stage, now(stage, lots=lots)).status == ("FILLED" if lots == 0.1 else "REJECTED")


def test_trades_are_counted_by_the_utc_day(stage: Stage) -> None:
    stage.ea.inputs = replace(INPUTS, max_trades_per_day=1)
    assert answer(stage, now(stage)).status == "FILLED"
    assert answer(stage, now(stage, 2)).reason == "max_trades"
    stage.clock.pass_time(12 * 3600)
    assert answer(stage, now(stage, 3)).status == "FILLED"


def test_an_advisor_without_a_key_does_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.ea = stage.new_ea(inputs=replace(INPUTS, channel_key=""))
    name = drop(stage, order())
    stage.wake()
    assert stage.names("state") == []
    assert stage.names("inbox") == [name]
    assert "there is no heartbeat" in stage.bridge.health().detail


@pytest.mark.parametrize("hedging", [True, False])
def test_a_second_order_is_refused_on_both_kinds_of_account(tmp_path: Path, hedging: bool) -> None:
    stage = Stage(tmp_path)
    stage.broker.hedging = hedging
    stage.wake()
    answer(stage, now(stage))
    opposite = {"side": "SELL", "stop": 1.11, "target": 1.08, "entry": 1.1}
    same_magic = answer(stage, now(stage, 2, magic=MAGIC + 1, **opposite))
    assert (same_magic.status, same_magic.reason) == ("REJECTED", "policy")
    other_magic = answer(stage, now(stage, 3, **opposite))
    assert other_magic.status == ("FILLED" if hedging else "REJECTED")
    assert held(stage) == (2 if hedging else 1)


# --- forgeries, repetitions, half files -----------------------------------------------------------


@pytest.mark.parametrize("where", ["inbox", "work"])
@pytest.mark.parametrize("what", ["forged", "changed", "half", "empty", "zeros", "huge"])
def test_what_is_not_signed_is_not_executed(stage: Stage, what: str, where: str) -> None:
    good = encode(signal_of(order(), channel="main", account=ACCOUNT), KEY)
    raw = {
        "forged": encode(signal_of(order(), channel="main", account=ACCOUNT), "another"),
        "changed": good.replace(b'"lots":0.10', b'"lots":9.10'),
        "half": good[: len(good) // 2],
        "empty": b"",
        "zeros": bytes(700),
        "huge": good * 30,
    }[what]
    (stage.folder / where / file_name(1, order().sid)).write_bytes(raw)
    told = stage.final(order().sid)
    assert (told.status, told.reason) == ("REJECTED", "auth")
    assert stage.broker.sends == []


def test_a_signed_text_that_is_no_signal_is_not_executed(stage: Stage) -> None:
    good = encode(signal_of(order(), channel="main", account=ACCOUNT), KEY)
    text = good.decode()[:-84].replace('"policy":"reject_if_open"', '"policy":"add"')
    (stage.folder / "inbox" / file_name(1, order().sid)).write_bytes(seal(text, KEY))
    told = stage.final(order().sid)
    assert (told.status, told.reason) == ("REJECTED", "schema")
    assert stage.broker.sends == []


@pytest.mark.parametrize("where", ["inbox", "work"])
def test_a_signal_that_comes_twice_is_executed_once(stage: Stage, where: str) -> None:
    sent = now(stage)
    stage.bridge.submit(sent)
    name = file_name(sent.seq, sent.sid)
    raw = (stage.folder / "inbox" / name).read_bytes()
    first = stage.final(sent.sid)
    for _ in range(3):
        (stage.folder / where / name).write_bytes(raw)
        assert stage.final(sent.sid) == first
    assert len(stage.broker.sends) == 1


def test_the_same_id_under_a_new_number_is_executed_once(stage: Stage) -> None:
    first = answer(stage, now(stage))
    again = replace(now(stage), seq=99)
    drop(stage, again)
    assert stage.final(again.sid) == first
    assert len(stage.broker.sends) == 1
    assert stage.names("done") == [file_name(1, order().sid)]


def test_a_forged_copy_of_an_executed_signal_changes_nothing(stage: Stage) -> None:
    first = answer(stage, now(stage))
    name = file_name(1, order().sid)
    (stage.folder / "inbox" / name).write_bytes(b"forged")
    assert stage.final(order().sid) == first
    told = decode((stage.folder / "done" / name).read_bytes(), Ack, KEY)
    assert told.status == "FILLED"


def test_a_forgery_over_a_claimed_signal_does_not_hide_its_order(stage: Stage) -> None:
    stage.ea.reach = crash_at("after_send")
    drop(stage, now(stage))
    crashed(stage)
    name = file_name(1, order().sid)
    (stage.folder / "work" / name).write_bytes(b"forged")
    stage.ea = stage.new_ea()
    told = stage.final(order().sid)
    assert (told.status, told.adopted) == ("FILLED", True)
    assert len(stage.broker.sends) == 1


def test_a_replayed_signal_has_expired(stage: Stage) -> None:
    sent = now(stage)
    stage.bridge.submit(sent)
    raw = (stage.folder / "inbox" / file_name(1, sent.sid)).read_bytes()
    assert stage.bridge.recall(sent.sid, 1) is Recall.RECALLED
    stage.clock.pass_time(180)
    (stage.folder / "inbox" / file_name(1, sent.sid)).write_bytes(raw)
    told = stage.final(sent.sid)
    assert (told.status, told.reason) == ("EXPIRED", "stale")
    assert stage.broker.sends == []


def test_a_clock_that_steps_back_between_publishing_and_the_claim_refuses(stage: Stage) -> None:
    stage.bridge.submit(now(stage))
    stage.clock.jump(-3600)
    told = stage.final(order().sid)
    assert (told.status, told.reason) == ("REJECTED", "clock")
    assert stage.broker.sends == []


@pytest.mark.parametrize("offset", [7_200, 10_800, -18_000, 0])
def test_the_servers_clock_does_not_matter(tmp_path: Path, offset: int) -> None:
    """Expiry is told in UTC: the broker's summer time changes nothing."""
    stage = Stage(tmp_path)
    stage.ea = stage.new_ea(server_offset=offset)
    stage.wake()
    stage.bridge.submit(now(stage))
    assert stage.final(order().sid).status == "FILLED"
    assert stage.bridge.health().facts["server_offset_s"] == offset
    late = now(stage, 2)
    stage.bridge.submit(late)
    stage.clock.pass_time(180)
    assert stage.final(late.sid).status == "EXPIRED"


# --- HALT -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["claimed", "intent", "before the second send"])
def test_a_halt_during_the_work_stops_it(stage: Stage, point: str) -> None:
    def halting(reached: str) -> None:
        if reached == point:
            (stage.folder / "control" / "HALT").write_text("now", encoding="ascii")

    stage.ea.reach = halting
    if point == "before the second send":
        stage.broker.faults.append(Fault(10004, executes=False))
        stage.broker.on_send = lambda _: halting(point)
    told = answer(stage, now(stage))
    assert (told.status, told.reason) == ("REJECTED", "kill")
    assert stage.broker.executions == []
    assert leftovers(stage) == []
    assert not list((stage.folder / "work").iterdir())


def test_a_halt_between_publishing_and_the_claim_stops_the_order(stage: Stage) -> None:
    stage.bridge.submit(now(stage))
    stage.bridge.set_halt("now")
    told = stage.final(order().sid)
    assert (told.status, told.reason) == ("REJECTED", "kill")


def test_a_halt_does_not_stop_a_ping(stage: Stage) -> None:
    stage.bridge.set_halt("now")
    assert answer(stage, now(stage), kind="ping", side="").status == "FILLED"


# --- the broker's answers -------------------------------------------------------------------------


def test_a_partial_fill_says_how_much(stage: Stage) -> None:
    stage.broker.faults.append(Fault(share=0.5))
    told = answer(stage, now(stage, lots=0.2))
    assert (told.status, told.volume, told.retcode) == ("PARTIAL", 0.1, 10010)


@pytest.mark.parametrize("code", [10004, 10020, 10021, 10024, 10028])
@pytest.mark.parametrize(("times", "status"), [(1, "FILLED"), (2, "FILLED"), (3, "REJECTED")])
def test_what_was_not_accepted_is_sent_three_times_at_most(
    stage: Stage, code: int, times: int, status: str
) -> None:
    stage.broker.faults.extend([Fault(code, executes=False)] * times)
    told = answer(stage, now(stage))
    assert told.status == status
    assert told.retcode == (10009 if status == "FILLED" else code)
    assert len(stage.broker.sends) == min(times + 1, 3)
    assert held(stage) == (status == "FILLED")


@pytest.mark.parametrize(
    ("quote", "reason"), [((1.1, 1.10041), "spread"), ((1.1005, 1.10062), "deviation")]
)
def test_a_new_quote_is_looked_at_before_the_second_send(
    stage: Stage, quote: tuple[float, float], reason: str
) -> None:
    stage.broker.faults.append(Fault(10004, executes=False, quote=quote))
    told = answer(stage, now(stage))
    assert (told.status, told.reason, len(stage.broker.sends)) == ("REJECTED", reason, 1)


def test_an_order_that_expires_between_two_sends_is_not_sent_again(stage: Stage) -> None:
    stage.broker.faults.append(Fault(10004, executes=False))

    def later(_: Request) -> None:
        stage.ea.now += 200

    stage.broker.on_send = later
    told = answer(stage, now(stage))
    assert (told.status, told.reason) == ("EXPIRED", "stale")
    assert len(stage.broker.sends) == 1


@pytest.mark.parametrize("code", [10012, 10031, 10011])
@pytest.mark.parametrize("delay", [0, 3, 14, None])
def test_an_ambiguous_answer_is_looked_up_and_never_sent_again(
    stage: Stage, code: int, delay: float | None
) -> None:
    stage.broker.faults.append(Fault(code, executes=delay is not None, delay=delay or 0.0))
    told = answer(stage, now(stage))
    if delay is None:
        assert (told.status, told.reason, told.retcode) == ("UNKNOWN", "retcode", code)
    else:
        assert (told.status, told.adopted, told.volume) == ("FILLED", True, 0.1)
    assert len(stage.broker.sends) == 1
    assert leftovers(stage) == []


def test_the_wait_for_an_order_counts_connected_time_only(stage: Stage) -> None:
    stage.broker.faults.append(Fault(10012, delay=100.0))
    drop(stage, now(stage))
    stage.tick()
    stage.broker.connected = False
    for _ in range(120):
        stage.tick()
    assert [report.status for report in stage.reports()] == ["CLAIMED"]
    stage.broker.connected = True
    assert stage.final(order().sid).status == "FILLED"


@pytest.mark.parametrize("delay", [3.0, None])
def test_a_placed_order_is_followed(stage: Stage, delay: float | None) -> None:
    stage.broker.faults.append(Fault(10008, executes=delay is not None, delay=delay or 0.0))
    drop(stage, now(stage))
    stage.tick()
    (placed,) = stage.reports()
    assert (placed.status, placed.retcode) == ("PLACED", 10008)
    assert stage.final(order().sid).status == ("UNKNOWN" if delay is None else "FILLED")
    assert len(stage.broker.sends) == 1


@pytest.mark.parametrize("code", [10006, 10013, 10016, 10019, 10027, 10034, 99999])
def test_every_other_code_is_a_refusal_with_its_number(stage: Stage, code: int) -> None:
    stage.broker.faults.append(Fault(code, executes=False))
    told = answer(stage, now(stage))
    assert (told.status, told.reason, told.retcode) == ("REJECTED", "retcode", code)
    assert len(stage.broker.sends) == 1


def test_an_order_that_the_terminal_refuses_is_not_sent(stage: Stage) -> None:
    stage.broker.check_codes.append(10019)
    told = answer(stage, now(stage))
    assert (told.status, told.reason, told.retcode) == ("REJECTED", "retcode", 10019)
    assert stage.broker.sends == []


@pytest.mark.parametrize(("mask", "filling"), [(1, "FOK"), (2, "IOC"), (3, "FOK"), (0, "RETURN")])
def test_the_filling_is_one_that_the_symbol_takes(stage: Stage, mask: int, filling: str) -> None:
    stage.broker.market("EURUSD.m", filling=mask)
    assert answer(stage, now(stage)).status == "FILLED"
    assert stage.broker.sends[0].filling == filling


# --- crashes --------------------------------------------------------------------------------------


class Crash(BaseException):
    """Stands for a kill: nothing between here and the test catches it."""


def crash_at(*points: str) -> Callable[[str], None]:
    """Return a `reach` that crashes at the first of the points and leaves the rest for later."""
    left = list(points)

    def reach(point: str) -> None:
        if left and point == left[0]:
            left.pop(0)
            raise Crash

    return reach


def crashed(stage: Stage) -> None:
    with pytest.raises(Crash):
        stage.tick()


def lived(stage: Stage, sid: str) -> Report:
    """Let a signal come to its end; an Advisor that crashes is started again."""
    reach = stage.ea.reach
    for _ in range(100):
        try:
            stage.tick()
        except Crash:
            stage.broker = stage.new_broker()
            stage.ea = stage.new_ea(reach=reach)
        for report in stage.reports():
            if report.sid == sid and report.status not in ("CLAIMED", "PLACED"):
                return report
    raise AssertionError(f"{sid} came to no end")


def unanswered_then(stage: Stage) -> list[str]:
    """Return what is left after both sides have had time to tidy up."""
    for _ in range(3):
        try:
            stage.tick()
        except Crash:
            stage.ea = stage.new_ea()
        stage.reports()
    return [*leftovers(stage), *stage.names("work"), *stage.names("tmp")]


PAIRS = [(a,) for a in POINTS] + [(a, b) for a in POINTS for b in POINTS]
UNSENT = {"intent", "before_send"}


@pytest.mark.parametrize("kind", ["open", "close"])
def test_a_crash_at_any_two_points_makes_one_order(
    tmp_path: Path, kind: str, scaled: Callable[..., int], record_property: Any
) -> None:
    """Promise D4 for the Advisor: all points and all ordered pairs of them."""
    ends: Counter[str] = Counter()
    chosen = random.Random(len(kind)).sample(PAIRS, scaled(len(PAIRS), 7))
    for number, points in enumerate(chosen):
        (tmp_path / str(number)).mkdir()
        stage = Stage(tmp_path / str(number))
        stage.wake()
        sent = now(stage)
        if kind == "close":
            answer(stage, sent)
            sent = closing(sent, 2, created=stage.clock.now())
        stage.ea.reach = crash_at(*points)
        drop(stage, sent)
        told = lived(stage, sent.sid)
        assert unanswered_then(stage) == [], points
        sends = stage.orders_of(sent.sid)
        assert sends == (told.status == "FILLED"), points
        if told.status != "FILLED":
            assert told.status == "UNKNOWN_NOT_SENT"
            assert UNSENT & {*points}, points
        assert len(stage.names("done")) == (1 if kind == "open" else 2)
        ends[told.status] += 1
        shutil.rmtree(stage.root)
    assert ends["FILLED"]
    shown = ", ".join(f"{number:,} {end}" for end, number in sorted(ends.items()))
    record_property("seen", f"{kind}: {len(chosen):,} crash pairs: {shown}, never two orders")


@pytest.mark.parametrize("delay", [0.0, 5.0])
def test_an_order_that_shows_late_is_adopted_after_a_crash(stage: Stage, delay: float) -> None:
    stage.broker.faults.append(Fault(delay=delay))
    stage.ea.reach = crash_at("after_send")
    drop(stage, now(stage))
    told = lived(stage, order().sid)
    assert (told.status, told.adopted, stage.orders_of(order().sid)) == ("FILLED", True, 1)


def test_an_ambiguous_answer_stays_ambiguous_after_a_crash(stage: Stage) -> None:
    stage.broker.faults.append(Fault(10012, executes=False))
    drop(stage, now(stage))
    stage.tick()
    stage.ea = stage.new_ea()
    told = stage.final(order().sid)
    assert (told.status, told.retcode) == ("UNKNOWN", 10012)


def test_an_advisor_that_dies_after_the_claim_answers_when_it_is_back(stage: Stage) -> None:
    """Issue 6.6, 5 and 6: what expired meanwhile is not executed."""
    stage.ea.reach = crash_at("claimed")
    sent = now(stage)
    stage.bridge.submit(sent)
    crashed(stage)
    stage.clock.pass_time(300)
    assert stage.bridge.recall(sent.sid, 1) is Recall.TAKEN
    assert [report.status for report in stage.reports()] == ["CLAIMED"]
    stage.ea = stage.new_ea()
    told = stage.final(sent.sid)
    assert (told.status, told.reason) == ("EXPIRED", "stale")
    assert stage.broker.sends == []


def test_a_full_disk_on_the_advisors_side_is_waited_out(stage: Stage) -> None:
    """The journal cannot be written after the send: the order is adopted later, not repeated."""
    put = ReferenceEa._put

    def full(self: ReferenceEa, place: str, text: bytes) -> None:
        if place.startswith("done"):
            raise OSError(28, "No space left on device")
        put(self, place, text)

    stage.ea._put = full.__get__(stage.ea)  # type: ignore[method-assign]
    drop(stage, now(stage))
    for _ in range(30):
        stage.tick()
    assert [report.status for report in stage.reports()] == ["CLAIMED"]
    del stage.ea._put
    told = stage.final(order().sid)
    assert (told.status, told.adopted, len(stage.broker.sends)) == ("FILLED", True, 1)


# --- two Advisors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before it sets its marker", "before it asks the guards"])
def test_an_advisor_that_comes_second_neither_sends_nor_refuses(stage: Stage, moment: str) -> None:
    """The other one does all of its work between two lines of this one's."""
    first, second = stage.ea, stage.new_ea()
    slow = "_put_new" if moment == "before it sets its marker" else "_view"
    step = getattr(second, slow)
    met: list[bool] = []

    def meanwhile(*words: Any) -> Any:
        if not met:
            met.append(True)
            stage.tick(ea=first)
        return step(*words)

    setattr(second, slow, meanwhile)
    drop(stage, now(stage))
    stage.tick(ea=second)
    assert met
    setattr(second, slow, step)
    for ea in (first, second, first):
        stage.tick(ea=ea)
    assert len(stage.broker.sends) == 1
    assert {report.status for report in stage.reports()} == {"FILLED"}
    told = decode((stage.folder / "done" / file_name(1, order().sid)).read_bytes(), Ack, KEY)
    assert told.status == "FILLED"
    assert list((stage.folder / "work").iterdir()) == []


def test_two_advisors_on_one_inbox_execute_each_signal_once(
    tmp_path: Path, scaled: Callable[..., int], record_property: Any
) -> None:
    count = scaled(1_000, 24)
    stage = Stage(tmp_path)
    stage.wake()
    orders = [now(stage, number) for number in range(1, count + 1)]
    moment = stage.clock.now().timestamp() + 2
    stop = threading.Event()
    problems: list[BaseException] = []
    claims: Counter[int] = Counter()

    def run(which: int) -> None:
        def reach(point: str) -> None:
            claims[which] += point == "claimed"

        ea = stage.new_ea(reach=reach)
        ticks = 0.0
        try:
            while not stop.is_set() or stage.names("inbox") or stage.names("work"):
                ticks += 0.01
                ea._claim()
                ea.now, ea.ticks = moment, ticks
                for name in ea._names("work"):
                    try:
                        ea._handle(name)
                    except OSError:
                        continue
        except BaseException as error:  # noqa: BLE001
            problems.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=(which,)) for which in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        for sent in orders:
            stage.bridge._folder.publish(
                file_name(sent.seq, sent.sid),
                encode(signal_of(sent, channel="main", account=ACCOUNT), KEY),
            )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert problems == []
    assert Counter(e.comment for e in stage.broker.executions) == {o.sid: 1 for o in orders}
    reports = {report.sid: report.status for report in stage.bridge.poll()}
    assert reports == {o.sid: "FILLED" for o in orders}
    assert stage.names("work") == stage.names("inbox") == []
    record_property("seen", f"two Advisors: {count:,} signals, each executed once")


# --- a process of its own -------------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_an_advisor_in_a_process_of_its_own_is_killed_and_comes_back(
    tmp_path: Path, scaled: Scale, record_property: Any
) -> None:
    """The real thing, in real time: separate process, SIGKILL, restart."""
    points = [*POINTS][: scaled(len(POINTS) * 2, 1)] if scaled.whole else ["after_send"]
    clock = System()
    channel = Channel(folder=str(tmp_path / "main"), account=ACCOUNT)
    bridge = TorraFiles("main", channel, clock, environment=ENVIRONMENT)
    broker = tmp_path / "broker.jsonl"
    for number, point in enumerate(points, 1):
        first = start(tmp_path, broker, TORRA_EA_CRASH_AT=point)
        until(lambda: bridge.health().ok, first)
        at = clock.now()
        sent = order(number, created=at, expires=at + timedelta(seconds=60))
        bridge.submit(sent)
        assert first.wait(20) == -signal.SIGKILL
        second = start(tmp_path, broker)
        try:
            told = until(lambda sid=sent.sid: last(bridge, sid), second)  # type: ignore[misc]
        finally:
            second.kill()
            second.wait()
        sends = sum(e.comment == sent.sid for e in FakeBroker(broker, ACCOUNT).executions)
        assert sends == (told.status == "FILLED")
        assert told.status == ("UNKNOWN_NOT_SENT" if point in UNSENT else "FILLED")
    record_property("seen", f"{len(points)} killed processes of an Advisor")


def start(root: Path, broker: Path, **environment: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.doubles.reference_ea",
        str(root / "main"),
        "--broker",
        str(broker),
    ]
    command += ["--market", "EURUSD.m=1.1,1.10012,5", "--timer", "0.02", "--patience", "0.5"]
    return subprocess.Popen(
        command,
        env={**os.environ, **ENVIRONMENT, **environment},
        cwd=ROOT,
    )


def until(ready: Callable[[], Any], process: subprocess.Popen[bytes]) -> Any:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = ready()
        if found:
            return found
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise AssertionError("it took too long")


def last(bridge: TorraFiles, sid: str) -> Report | None:
    for report in bridge.poll():
        bridge.settle(report)
        if report.sid == sid and report.status not in ("CLAIMED", "PLACED"):
            return report
    return None


def test_bars_are_signed(stage: Stage) -> None:
    stage.ea.write_bars("EURUSD.m", "M15", [(1770990300, 1.1, 1.2, 1.0, 1.15, 12, 3)])
    lines = (stage.folder / "bars" / "EURUSD%2Em_M15.csv").read_text(encoding="ascii").splitlines()
    assert lines[0] == (
        '{"v":2,"msg":"bars","channel":"main","account":1001,"broker_symbol":"EURUSD.m",'
        '"tf":"M15","count":1,"server_offset_s":10800}'
    )
    assert lines[1] == "time,open,high,low,close,tick_volume,spread"
    assert lines[2] == "1770990300,1.1,1.2,1.0,1.15,12,3"
    assert re.fullmatch("end,[0-9a-f]{64}", lines[3])
