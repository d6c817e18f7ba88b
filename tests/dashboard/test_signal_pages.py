"""Signals and positions: every state told, what came of each decision, and nothing a sheet runs."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from tests import ROOT
from tests.doubles.page_reader import Page
from tests.worlds import demo_orders, stores
from tests.worlds.demo_orders import read, text_of, visit, waiting
from tests.worlds.stores import closing
from torra.bridges import odd_rows
from torra.dashboard.trade import signals, trade_rows
from torra.dashboard.view.backing import PageContext
from torra.desk import roster, timeframe_clocks
from torra.exhibits import figures
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import SignalRow
from torra.trading import courier
from torra.verdict import hand_orders
from torra.verdict.risk_engine import DenyReason
from torra.verdict.signal_states import SENT
from torra.words.orders import ALARMS


def test_every_code_and_every_alarm_is_explained() -> None:
    for reason in DenyReason:
        assert trade_rows.explain(f"{reason}: more")
    assert trade_rows.explain("spread 10004") == "the spread is wider than the signal allows"
    assert trade_rows.explain("by a person: looked") == ""
    of_the_desk = {"UNKNOWN", "UNKNOWN_NOT_SENT", roster.ALARM, timeframe_clocks.ALARM}
    of_the_desk.add(courier.HAND_CLOSE)
    raised = r'(?:raise_alarm|Alarm)\([^,]+, "([A-Z_]+)"'
    files = (ROOT / "signal_bridge.py", *(ROOT / "torra").rglob("*.py"))
    told = {kind for file in files for kind in re.findall(raised, file.read_text("utf-8"))}
    assert {
        "EXTERNAL",
        "LATE_EXECUTION",
        "MISSING",
        "UNPROTECTED",
        "ODD_REPORT",
        "ODD_BOOKS",
        "BRIDGE",
        "ORDER_ALTERED",
    } <= told
    assert set(ALARMS) == of_the_desk | told | {odd_rows.KIND}


def test_a_whole_fill_without_a_size_of_its_own_filled_all(backing: PageContext) -> None:
    row = backing.database.order("TWON0000000") or SignalRow()
    whole = {"filled_lots": None, "lots": 0.02}
    filled = [
        row.model_copy(update={**whole, **change}).filled
        for change in ({"state": "FILLED"}, {"state": "PENDING"}, {"filled_lots": 0.01})
    ]
    assert filled == [0.02, None, 0.01]


def test_a_trade_that_a_person_closed_has_an_undecided_thesis(backing: PageContext) -> None:
    stored = backing.database.order("TWON0000000") or SignalRow()
    lost = {"state": "CLOSED", "outcome": "loss", "evolution": "Falsified"}
    for reason, word in (("STOPPED", "went wrong"), ("BY_HAND", "undecided")):
        plan = trade_rows.plan_of(stored.model_copy(update={**lost, "close_reason": reason}))
        assert plan is not None and plan.word == word


def test_what_was_lost_at_a_fill_is_no_gain(backing: PageContext) -> None:
    for lost, text, tone in (
        (0.05, "0.05", "down"),
        (0.0, "0.00", "flat"),
        (-0.1, "−0.10", "flat"),
    ):
        plan = json.dumps({"slipped_r": lost})
        backing.database.change("UPDATE signals SET thesis = ? WHERE sid = 'TWON0000000'", plan)
        shown = text_of(backing, "/orders/TWON0000000")
        assert f'Slippage, R</dt><dd><span class="num" data-tone="{tone}">{text}</span>' in shown


@pytest.mark.parametrize(
    ("ways", "says"),
    [
        (["paper"], "On paper Torra goes on watching stops and targets."),
        ([], "On paper Torra goes on watching stops and targets."),
        (["mt5_files main"], "Stops and targets stay at the broker."),
        (["paper", "mt5_files main"], "At a broker stops and targets stay there; on paper"),
    ],
)
def test_who_watches_the_stops_is_told_as_it_is(ways: list[str], says: str) -> None:
    assert trade_rows.protected(ways).startswith(says)


def test_a_halt_that_only_memory_knows_is_shown(backing: PageContext) -> None:
    class Memory:
        def engaged(self) -> str:
            return "the disk is full"

    object.__setattr__(backing, "kill_switch", Memory())
    page = read(backing, "/orders")
    assert "the disk is full" in page.text


def test_resuming_without_alarms_speaks_of_none(backing: PageContext) -> None:
    def asked() -> list[str]:
        forms = read(backing, "/orders").all("form")
        return [one["data-confirm"] for one in forms if "go on" in one.get("data-confirm", "")]

    (text,) = asked()
    assert re.search(r"go on, and end \d+ alarms?\?", text)
    with backing.database.transaction():
        backing.database.connection().execute("UPDATE alarms SET ended_at = at")
    backing.database.set_trading_state("REDUCING", "a look")
    assert asked() == ["Let trading go on?"]


# --- the page -------------------------------------------------------------------------------------


def test_a_short_position_pays_the_spread(backing: PageContext) -> None:
    profile = demo_orders.PROFILE
    spec = profile.symbol("XAUUSD")
    sold: dict[str, Any] = {"instance": "XAUUSD", "symbol": "XAUUSD", "side": "SELL", "lots": 0.5}
    levels: dict[str, Any] = {"entry": 1850.0, "stop": 1860.0, "target": 1830.0}
    row = stores.opening("TSHORT", **sold, **levels)
    backing.database.enqueue_signal(row)
    demo_orders._lead(backing.database, "TSHORT", ("PENDING", "PUBLISHED", "FILLED"), backing.now())
    leave = 1860.0 + spec.spread
    money = (1850.0 - leave) / spec.tick_size * spec.tick_value * 0.5
    rows = read(backing, "/orders").rows
    (shown,) = [cells for cells in rows if cells[0] == "XAUUSD" and len(cells) > 12]
    assert shown[6:8] == [figures.plain(leave, 2), figures.format_signed(money, 2)]
    assert shown[9] == "↘ weakened"


@pytest.mark.parametrize(
    ("state", "words", "forms"),
    [
        (
            "ACTIVE",
            "The desk may open and close positions.",
            {"halt", "reduce", "resume", "close", "flatten", "stop"},
        ),
        (
            "REDUCING",
            "Positions are closed, none is opened.",
            {"halt", "resume", "close", "flatten", "stop"},
        ),
        ("HALTED", "Nothing opens and nothing closes", {"resume"}),
    ],
)
def test_reducing_is_shown_apart_from_halted(
    state: str, words: str, forms: set[str], backing: PageContext
) -> None:
    backing.database.set_trading_state(state, "why not")
    page = read(backing, "/orders")
    assert f"{figures.mark(state).text} {words}" in page.text

    def offered(page: Page) -> set[str]:
        actions = [
            one.get("action", "") for one in page.all("form") if "halt" not in one.get("class", "")
        ]
        actions += [one["formaction"] for one in page.all("button") if "formaction" in one]
        return {name.rpartition("/")[2] for name in actions if name.startswith("/api/v1/")}

    assert offered(page) == forms
    assert offered(read(backing, "/orders", "approve")) == forms - {"resume"}
    assert offered(read(backing, "/orders", "read")) == set()


def test_what_a_person_decided_is_marked_and_leads_to_no_tick(backing: PageContext) -> None:
    held = next(row for row in backing.database.openings() if row["state"] == "FILLED")
    with backing.database.transaction():
        row = hand_orders.write_hand_close(
            backing.database, held, now=backing.now(), life=timedelta(minutes=3)
        )
    page = read(backing, "/orders")
    assert "☞ by hand" in page.text
    assert "↩ closing" in page.text
    assert "By a person" in read(backing, f"/orders/{row['sid']}").text


# --- filter, pages, file --------------------------------------------------------------------------


def sids(page: Page) -> list[str]:
    links = [one.get("href", "") for one in page.all("a") if "data-row" not in one]
    return list(dict.fromkeys(re.findall(r"/orders/(T\w+)", " ".join(links))))


def test_pages_follow_each_other_without_gap(
    backing: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "SHOWN", 7)
    execution_table.end_alarms(backing.database)
    every = [row["sid"] for row in backing.database.signals(limit=500)]
    seen: list[str] = []
    address: str | None = "/api/v1/signals"
    while address:
        told = visit(backing).get(address).json
        seen += [row["sid"] for row in told["signals"]]
        address = f"/api/v1/signals?before={told['before']}" if told["before"] else None
    assert seen == every
    page = read(backing, "/orders")
    assert [one["href"] for one in page.all("a") if one.get("rel") == "next"] == [
        f"/orders?before={backing.database.signals(limit=500)[6]['seq']}"
    ]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("instance=gold-h1", 2),
        ("state=CLOSED", 3),
        ("instance=EURUSD&state=PENDING", 1),
        ("instance=NOBODY&state=NONE&before=-1", 17),
        ("before=1", 0),
    ],
)
def test_the_filter(query: str, count: int, backing: PageContext) -> None:
    told = visit(backing).get(f"/api/v1/signals?{query}").json
    assert len(told["signals"]) == count
    page = read(backing, f"/orders?{query}")
    told_of = backing.database.positions()
    assert ("No signal is like that." in page.text) == (not count)
    rows = [row for row in page.rows if row[0] != "Decided" and len(row) == 12]
    assert len(rows) == count
    assert len([row for row in page.rows if len(row) == 13]) == len(told_of) + 1  # a heading
    fields = [one for one in page.all("select") if "data-filter" in one]
    assert len(fields) == 1


# --- one signal -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["UNKNOWN", "PUBLISHED", "FILLED"])
def test_settling_is_offered_where_it_applies(state: str, backing: PageContext) -> None:
    row = next(row for row in backing.database.signals(limit=500) if row["state"] == state)
    page = read(backing, f"/orders/{row['sid']}")
    forms = [one for one in page.all("form") if one.get("action", "").endswith("/settle")]
    at_a_broker = (row["bridge"] or "paper") != "paper"  # on paper nothing is unknown
    assert bool(forms) == (state in SENT and at_a_broker)
    if forms:
        assert "nobody watches" in page.text
        assert "data-confirm" in forms[0]
        assert "scope admin" in read(backing, f"/orders/{row['sid']}", "approve").text


def test_a_signal_names_the_orders_that_belong_to_it(backing: PageContext) -> None:
    held = next(item for item in backing.database.positions() if item.instance == "EURUSD")
    backing.database.enqueue_signal(closing("TBYE", held.signal_id, instance="EURUSD"))
    assert "TBYE" in sids(read(backing, f"/orders/{held.signal_id}"))
    assert f"/orders/{held.signal_id}" in [
        one.get("href") for one in read(backing, "/orders/TBYE").all("a")
    ]
    assert "The approval" in read(backing, f"/orders/{held.signal_id}").text
    assert visit(backing).get("/orders/TNOBODY").status_code == 404


def test_a_proposal_and_a_reason_change_the_version_of_the_list(backing: PageContext) -> None:
    def version() -> Any:
        return visit(backing).get("/api/v1/signals").json["version"]

    found = [version()]
    execution_table.decide_proposal(backing.database, waiting(backing), "REJECTED", "TOO_BIG")
    found.append(version())
    for reason in ("lunch", "a storm"):
        backing.database.set_trading_state("REDUCING", reason)
        found.append(version())
    assert len({*found}) == len(found)


def test_a_step_changes_the_version(backing: PageContext) -> None:
    def version(address: str) -> Any:
        return visit(backing).get(f"/api/v1{address}").json["version"]

    before = [version("/signals"), version("/signals/TPLACED00000")]
    backing.desk.clock.set(backing.now() + timedelta(seconds=9))  # type: ignore[attr-defined]
    assert [version("/signals"), version("/signals/TPLACED00000")] == before
    backing.database.move_signal("TPLACED00000", "EXPIRED", detail="stale")
    after = [version("/signals"), version("/signals/TPLACED00000")]
    assert after[0] != before[0]
    assert after[1] != before[1]
