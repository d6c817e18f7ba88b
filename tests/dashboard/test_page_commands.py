"""The commands from pages: one winner, the plain reason for every loser, all of it on record."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from instance_database import Database
from tests.doubles.visitors import ACCESS, bearer
from tests.worlds import demo_orders, desks
from tests.worlds.demo_orders import visit, waiting
from tests.worlds.stores import opening
from torra.commands import run as running
from torra.config import DeskSettings, Profile
from torra.dashboard import server
from torra.dashboard.trade.orders import ROUTES
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import given
from torra.dashboard.view.rendering import EXTENSION
from torra.errors import ConfigError, StoreUnavailable
from torra.home import HALT
from torra.store import audit as audit_chain
from torra.store import ticks as claim_table
from torra.store.audit import seal
from torra.store.trade import proposals_and_alarms as execution_table
from torra.trading import by_hand, kill_switch
from torra.trading.kill_switch import KillSwitch

JSON = {"Accept": "application/json"}


@pytest.fixture
def client(backing: PageContext) -> FlaskClient:
    return visit(backing)


def post(client: FlaskClient, address: str, **words: str) -> tuple[int, dict[str, Any]]:
    answer = client.post(f"/api/v1/{address}", json=words, headers=JSON)
    return answer.status_code, answer.json


def audited(backing: PageContext) -> list[dict[str, Any]]:
    rows = audit_chain.audit_entries(backing.database)[::-1]
    for row in rows:
        assert seal(row) == row["hash"]
    return rows


def test_a_yes_sends_once_and_the_second_click_hears_why(
    backing: PageContext, client: FlaskClient
) -> None:
    sid = waiting(backing)
    code, told = post(client, f"proposals/{sid}/approve")
    assert (code, told["status"]) == (200, "done")
    assert re.fullmatch(r"approved: open BUY [\d.]+ BTCUSD", told["reason"])
    signal = backing.database.signal(sid)
    assert signal is not None
    assert (signal["state"], signal["bridge"]) == ("PENDING", "paper")
    assert [row["sid"] for row in told["signals"]] == [sid]
    for action in ("approve", "reject"):
        code, told = post(client, f"proposals/{sid}/{action}")
        assert (code, told["status"]) == (409, "failed")
        assert f"{sid} is APPROVED since" in told["reason"]
    first, *others = audited(backing)
    assert (first["action"], first["target"], first["outcome"].split(":")[0]) == (
        "approve", sid, "done",
    )  # fmt: skip
    assert (first["actor"], first["address"]) == ("token:admin", "127.0.0.1")
    assert json.loads(first["before"]) == {"state": "WAITING"}
    assert json.loads(first["after"])["state"] == "APPROVED"
    assert [row["outcome"].split(":")[0] for row in others] == ["failed", "failed"]


def test_a_check_that_objects_is_told_with_its_meaning(
    backing: PageContext, client: FlaskClient
) -> None:
    sid = waiting(backing)
    backing.database.set_latch("BTCUSD", "BUY")
    code, told = post(client, f"proposals/{sid}/approve")
    assert (code, told["state"]) == (409, "DENIED")
    assert "GATE_VETO (the gate vetoes the opening" in told["reason"]
    assert backing.database.signal(sid) is None


def too_late(backing: PageContext) -> None:
    end = backing.now() + timedelta(minutes=15)
    backing.desk.clock.set(end)  # type: ignore[attr-defined]


def halted(backing: PageContext) -> None:
    (backing.home / "control").mkdir()
    (backing.home / HALT).touch()


def moved(backing: PageContext) -> None:
    frame = backing.database.load_bars("BTCUSD", "M15", as_of=backing.now(), limit=1)
    frame.loc[:, ["open", "high", "low", "close"]] *= 1.2
    backing.database.store_bars("BTCUSD", "M15", frame)


@pytest.mark.parametrize(
    ("meanwhile", "end"),
    [
        (too_late, ("EXPIRED", "SIGNAL_EXPIRED")),
        (halted, ("DENIED", "TRADING_HALTED")),
        (moved, ("DENIED", "PRICE_COLLAR")),
    ],
)
def test_a_yes_that_waited_for_the_database_is_judged_as_late_as_it_is(
    meanwhile: Callable[[PageContext], None],
    end: tuple[str, str],
    backing: PageContext,
    client: FlaskClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sid, whole, waits = waiting(backing), backing.database.transaction, [True]

    @contextmanager
    def behind_another(*wait: float) -> Iterator[None]:
        if waits:
            waits.pop()
            meanwhile(backing)
        with whole(*wait):
            yield

    monkeypatch.setattr(backing.database, "transaction", behind_another)
    code, told = post(client, f"proposals/{sid}/approve")
    assert (code, told["state"], told["reason"].split()[7]) == (409, end[0], end[1])
    assert backing.database.signal(sid) is None


def race(backing: PageContext) -> list[bool]:
    """Let two pages say yes, one say no, the command line say no and the time run out at once."""
    app, sid = demo_orders.open_pages(backing), waiting(backing)
    gate, ends = threading.Barrier(5), list[bool]()

    def click(action: str) -> bool:
        code, told = post(app.test_client(), f"proposals/{sid}/{action}")
        assert code in (200, 409), told
        return code == 200

    def type_it() -> bool:
        try:
            by_hand.reject.at_home(backing.home, sid, reason="no")
        except ConfigError:
            return False
        return True

    def expire() -> bool:
        past = backing.now() + timedelta(minutes=15)
        execution_table.expire_proposals(backing.database, past, "SIGNAL_EXPIRED")
        row = backing.database.proposal(sid)
        return row is not None and row.state == "EXPIRED"

    def run(act: Any) -> None:
        gate.wait()
        ends.append(act())

    acts = (partial(click, "approve"), partial(click, "approve"), partial(click, "reject"))
    threads = [threading.Thread(target=run, args=(act,)) for act in (*acts, type_it, expire)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == len(threads), "each had its turn"
    return ends


def test_clicks_from_pages_and_the_command_line_have_one_winner(
    tmp_path: Path, scaled: Any
) -> None:
    for number in range(scaled(300, least=3)):
        backing = demo_orders.build(tmp_path / str(number))
        sid = waiting(backing)
        assert sum(race(backing)) == 1
        row = backing.database.proposal(sid)
        assert row is not None
        assert (backing.database.signal(sid) is not None) == (row.state == "APPROVED")
        backing.database.close()


def test_the_size_is_typed_where_real_money_is_traded(
    backing: PageContext, client: FlaskClient
) -> None:
    sid = waiting(backing, "XAUUSD")
    lots = json.loads(backing.database.proposal(sid).drafts)[0]["lots"]
    for words in ({}, {"lots": "yes"}, {"lots": "nan"}, {"lots": str(lots * 2)}):
        code, told = post(client, f"proposals/{sid}/approve", **words)
        assert (code, told["status"]) == (409, "failed")
        assert "lots" in told["reason"]
        assert backing.database.proposal(sid).state == "WAITING"
    code, told = post(client, f"proposals/{sid}/approve", lots=f"{lots:.2f}")
    assert (code, told["status"]) == (200, "done")


def test_the_running_desks_profile_counts(backing: PageContext, client: FlaskClient) -> None:
    sid = waiting(backing)
    setup: Any = backing.desk.setups["BTCUSD"]
    tight = Profile(execution="approve").model_copy(
        update={"risk": setup.profile.risk.model_copy(update={"max_positions": 0})}
    )
    setups = {**backing.desk.setups, "BTCUSD": replace(setup, profile=tight)}
    backing.desk.roster.setups = setups  # type: ignore[attr-defined]
    _, told = post(client, f"proposals/{sid}/approve")
    assert "MAX_POSITIONS" in told["reason"]


def test_a_rejection_keeps_the_words(backing: PageContext, client: FlaskClient) -> None:
    sid = waiting(backing)
    code, _ = post(client, f"proposals/{sid}/reject", reason="news ahead", words="the \u202eFed\n")
    row = backing.database.proposal(sid)
    assert row is not None
    assert (code, row.state, row.reason) == (200, "REJECTED", "news ahead: the Fed")


# --- close, flatten -------------------------------------------------------------------------------


def held(backing: PageContext) -> str:
    """Let gold hold a position with real money; return its opening."""
    row = opening(
        "TGOLD0000000", instance="XAUUSD", symbol="XAUUSD", bridge="torra_files main", lots=0.5,
        expires=backing.now() + timedelta(minutes=3),
    )  # fmt: skip
    backing.database.enqueue_signal(row)
    for state in ("PUBLISHED", "FILLED"):
        backing.database.move_signal("TGOLD0000000", state)
    return "TGOLD0000000"


def test_real_money_is_closed_by_a_typed_word_and_once(
    backing: PageContext, client: FlaskClient
) -> None:
    sid = held(backing)
    code, told = post(client, f"positions/{sid}/close")
    assert code == 409
    assert told["reason"] == "XAUUSD: real money, so nothing was done; type close"
    assert post(client, f"positions/{sid}/close", word="flatten")[0] == 409
    code, told = post(client, "positions/XAUUSD/close")
    assert (code, told["reason"]) == (409, "there is no position XAUUSD"), "ids only: no way round"
    code, told = post(client, f"positions/{sid}/close", word=" Close ")
    assert code == 200
    way = r"XAUUSD long 0.5 lots: a close is on its way to the broker \(T\w{12}\)\. .+"
    assert re.fullmatch(way, told["reason"])
    code, told = post(client, f"positions/{sid}/close", word="close")
    assert (code, told["reason"]) == (409, f"the position of {sid} is being closed already")
    (close,) = backing.database.closes_of("XAUUSD", sid)
    assert (close["authority"], close["state"]) == ("person", "PENDING")
    told_of = [(row["actor"], row["action"], row["outcome"][:6]) for row in audited(backing)]
    assert [row[1:] for row in told_of if row[1] == "close"] == [
        *[("close", "failed")] * 3, ("close", "done"), ("close", "failed"),
    ]  # fmt: skip


def test_halted_nothing_is_closed_until_closes_may_go(
    backing: PageContext, client: FlaskClient
) -> None:
    sid = held(backing)
    post(client, "halt")
    code, told = post(client, f"positions/{sid}/close", word="close")
    assert code == 409
    assert "`torra resume --reduce` lets closes go out" in told["reason"]
    code, told = post(client, "resume", reason="only out", reduce="yes")
    assert (code, told["reason"]) == (200, "trading is REDUCING: closes go out, nothing opens")
    assert backing.database.alarms(), "they stand"
    assert post(client, f"positions/{sid}/close", word="close")[0] == 200


# --- halt, reduce, resume -------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, backing: PageContext) -> PageContext:
    """The channel's folder is there, and resuming waits for nobody."""
    monkeypatch.setattr(kill_switch, "RESUME_SECONDS", 0.0)
    folder = backing.home.parent / "channel"
    folder.mkdir()
    way = backing.settings.channels["main"].model_copy(update={"folder": str(folder)})
    settings = backing.settings.model_copy(update={"channels": {"main": way}})
    object.__setattr__(backing, "settings", settings)
    return backing


def wait(database: Database, seconds: float) -> float:
    """Set for how long this thread waits for a lock; return for how long it did."""
    before, database._busy_seconds = database._busy_seconds, seconds
    database.connection().execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
    return before


def halts(backing: PageContext) -> list[bool]:
    folders = (backing.home, backing.home.parent / "channel")
    return [(folder / "control" / "HALT").exists() for folder in folders]


def test_a_halt_reaches_the_files_and_a_resume_takes_them_away(
    quick: PageContext, client: FlaskClient
) -> None:
    assert post(client, "halt", reason="the news")[1]["status"] == "done"
    assert halts(quick) == [True, True]
    newest = claim_table.trading_states(quick.database, 1)[0]
    assert (newest.state, newest.reason) == ("HALTED", "by a person: the news")
    code, told = post(client, "reduce")
    assert (code, told["status"]) == (409, "failed")
    code, told = post(client, "resume")
    assert (code, halts(quick)) == (409, [True, True])
    assert "say why" in told["reason"]
    code, told = post(client, "resume", reason="it is over")
    assert (code, halts(quick), quick.database.trading_state()) == (200, [False, False], "ACTIVE")
    assert quick.database.alarms() == []
    done = [(row["action"], row["outcome"].partition(":")[0]) for row in audited(quick)]
    assert done == [
        ("halt", "done"),
        ("reduce", "failed"),
        ("resume", "failed"),
        ("resume", "done"),
    ]


def test_reducing_is_less_than_halting(quick: PageContext, client: FlaskClient) -> None:
    assert post(client, "reduce", reason="enough")[0] == 200
    assert quick.database.trading_state() == "REDUCING"
    assert halts(quick) == [False, False]
    assert post(client, "halt")[0] == 200
    assert quick.database.trading_state() == "HALTED"


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[1]", b"null", b'{"reason": 5}', b'{"reason": {"a": 1}}', b'{"reason": "\\ud800"}',
        pytest.param(b"[" * 200_000, id="nested"),
        pytest.param(b'{"reason": ' + b"9" * 5000 + b"}", id="long number"),
    ],
)  # fmt: skip
def test_a_halt_is_a_halt_whatever_comes_with_it(
    body: bytes, quick: PageContext, client: FlaskClient
) -> None:
    answer = client.post("/api/v1/halt", data=body, content_type="application/json")
    assert answer.status_code == 200
    assert halts(quick) == [True, True]


def test_a_halt_works_without_the_database(quick: PageContext, client: FlaskClient) -> None:
    quick.database.close()
    code, told = post(client, "halt")
    assert halts(quick) == [True, True]
    assert (code, told["status"]) == (409, "failed")
    assert "the HALT files are down (desk, main)" in told["reason"]
    assert "is closed" in told["reason"]
    assert "the database says" not in told["reason"]
    assert "this process" not in told["reason"], "no desk runs here"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("application/x-www-form-urlencoded", b"a=" + b"x" * 600_000, id="long form"),
        pytest.param("application/json", b"[" * 200_000, id="nested"),
        pytest.param("application/json", b'{"a": ' * 200_000, id="nested objects"),
        pytest.param("application/json", b"\xff\xfe{", id="no text"),
        pytest.param("application/json", b"[{}]", id="a list"),
    ],
)
def test_a_body_that_cannot_be_read_is_an_error_for_a_person(
    kind: str, body: bytes, backing: PageContext
) -> None:
    app = demo_orders.open_pages(backing)
    with app.test_request_context("/", method="POST", data=body, content_type=kind) as context:
        context.request.max_content_length = 500_000
        with pytest.raises(ConfigError, match="the body"):
            given()


def running_here(backing: PageContext) -> tuple[KillSwitch, FlaskClient]:
    """Return the switch of the desk that runs in this process, and its pages."""
    switch = KillSwitch(kill_switch.halt_files(backing.home, backing.settings), backing.database)
    backing.desk.kill_switch = switch  # type: ignore[attr-defined]
    known = replace(backing, kill_switch=switch)
    return switch, demo_orders.open_pages(known).test_client()


@contextmanager
def nothing_can_be_written(backing: PageContext) -> Iterator[None]:
    """The folder of the HALT file is a file, the channel is gone, another program writes."""
    (backing.home / "control").write_text("a file where the folder should be")
    (backing.home.parent / "channel").rmdir()
    other = desks.open_database(backing.home)
    seconds = wait(backing.database, 0.0)
    with other.transaction():
        yield
    other.close()
    wait(backing.database, seconds)
    (backing.home / "control").unlink()
    (backing.home.parent / "channel").mkdir()


def test_a_halt_from_a_page_holds_in_the_desks_memory(quick: PageContext) -> None:
    sid = waiting(quick)
    switch, client = running_here(quick)
    with nothing_can_be_written(quick):
        code, told = post(client, "halt", reason="the news")
        assert switch.engaged() == "by a person: the news"
    assert code == 409
    for words in (
        "halted, but not everywhere: desk: ",
        "; main: ",
        "database is locked",
        ". What holds: this process sends nothing more until a person resumes",
        "; this is not on record: ",
    ):
        assert words in told["reason"]
    assert (quick.database.trading_state(), halts(quick)) == ("ACTIVE", [False, False])
    assert "TRADING_HALTED" in post(client, f"proposals/{sid}/approve")[1]["reason"]
    assert post(client, "resume", reason="it is over")[0] == 200
    assert switch.engaged() == ""


def test_a_resume_that_the_database_does_not_take_changes_nothing(quick: PageContext) -> None:
    switch, client = running_here(quick)
    switch.halt("a fault")
    switch.hold("a fault")
    other = desks.open_database(quick.home)
    wait(quick.database, 0.0)
    with other.transaction():
        assert post(client, "resume", reason="it is over")[0] == 503
    other.close()
    assert (switch.engaged(), halts(quick)) == ("a fault", [True, True])


def test_the_pages_of_a_running_desk_have_its_kill_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, apps = desks.open_desk(tmp_path), list[Any]()
    monkeypatch.setattr(server, "open_server", lambda app, *_, **__: apps.append(app))
    address = running.PagesAddress("127.0.0.1", 0)
    running._listen(desk, DeskSettings(instances=(desks.BTC,)), tmp_path, address)
    assert apps[0].extensions[EXTENSION].backing.kill_switch is desk.kill_switch
    desk.database.close()


# --- on record ------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["approve", "reject", "settle", "reduce", "resume"])
def test_what_cannot_be_put_on_record_does_not_happen(
    action: str, quick: PageContext, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, sid = quick.database, waiting(quick)
    targets = {"approve": f"proposals/{sid}/", "reject": f"proposals/{sid}/",
               "settle": "signals/TUNKNOWN000/"}  # fmt: skip
    if action == "resume":
        assert post(client, "halt")[0] == 200

    def known() -> tuple[Any, ...]:
        found = (
            database.proposal(sid),
            database.signals(limit=99),
            claim_table.trading_states(database),
        )
        return (*found, database.alarms(), halts(quick), audit_chain.audit_entries(database))

    def locked(**_: object) -> int:
        raise StoreUnavailable("database is locked")

    before = known()
    with monkeypatch.context() as patch:
        patch.setattr(database, "audit", locked)
        code, _ = post(client, f"{targets.get(action, '')}{action}", reason="looked")
    assert code == 503
    assert known() == before
    assert post(client, f"{targets.get(action, '')}{action}", reason="looked")[0] == 200
    assert [row["outcome"] for row in audited(quick)][len(before[-1]) :] == ["done"]


def test_a_halt_waits_for_no_record_and_says_that_there_is_none(
    quick: PageContext, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(**_: object) -> int:
        raise StoreUnavailable("database is locked")

    monkeypatch.setattr(quick.database, "audit", locked)
    code, told = post(client, "halt")
    assert (code, told["status"]) == (200, "done")
    assert told["reason"].startswith("trading is HALTED; ")
    assert told["reason"].endswith("; this is not on record: database is locked")
    assert halts(quick) == [True, True]
    code, told = post(client, "reduce")
    assert (code, told["reason"].partition(" already")[0]) == (409, "trading is HALTED")
    assert "this is not on record" in told["reason"]


@pytest.mark.parametrize("body", [{"reason": 5}, {"words": ["a"]}, {"reason": "a", "words": None}])
def test_a_reason_that_is_no_text_is_refused(
    body: dict[str, Any], backing: PageContext, client: FlaskClient
) -> None:
    sid = waiting(backing)
    answer = client.post(f"/api/v1/proposals/{sid}/reject", json=body, headers=JSON)
    assert (answer.status_code, "must be text" in answer.json["reason"]) == (409, True)
    assert backing.database.proposal(sid).state == "WAITING"
    assert audited(backing)[0]["outcome"].startswith("failed: ")


# --- settle, scopes, forms ------------------------------------------------------------------------


NEEDS = {route.name: route.scope for route in ROUTES}


def test_each_command_has_its_scope() -> None:
    assert NEEDS == {
        "approve": "approve", "reject": "approve", "halt": "approve", "reduce": "approve",
        "resume": "admin", "settle": "admin", "close": "approve", "flatten": "approve",
        "stop": "approve",
    }  # fmt: skip


@pytest.mark.parametrize("scope", [None, "read", "approve"])
def test_a_visitor_without_the_scope_changes_nothing(
    scope: str | None, backing: PageContext
) -> None:
    client, order = demo_orders.open_pages(backing).test_client(), ("read", "approve", "admin")
    for route in ROUTES:
        if scope and order.index(scope) >= order.index(str(route.scope)):
            continue
        address = route.rule.replace("<sid>", waiting(backing))
        headers = {**JSON, **(bearer(scope) if scope else {"Authorization": "none"})}
        answer = client.post(address, json={"reason": "x"}, headers=headers)
        assert answer.status_code == (403 if scope else 401), address
    assert backing.database.trading_state() == "ACTIVE"
    assert audit_chain.audit_entries(backing.database) == []


def test_a_form_without_scripts_gets_a_page_and_needs_its_token(backing: PageContext) -> None:
    app = demo_orders.open_pages(backing)
    client, sid = app.test_client(), waiting(backing)
    own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    client.post("/login", data={"token": ACCESS.tokens["approve"]}, headers=own)
    page = client.get(f"/orders/{sid}").text
    csrf = re.findall(r'name="csrf" value="([0-9a-f]{64})"', page)[0]
    address = f"/api/v1/proposals/{sid}/reject"
    assert client.post(address, data={"reason": "no"}, headers=own).status_code == 403
    answer = client.post(address, data={"reason": "weak case", "csrf": csrf}, headers=own)
    assert answer.status_code == 200
    assert "is rejected; nothing was sent" in answer.text
    assert 'href="/approvals"' in answer.text
    row = backing.database.proposal(sid)
    assert row is not None
    assert (row.state, row.reason) == ("REJECTED", "weak case")
    assert audited(backing)[0]["actor"].startswith("session:")
