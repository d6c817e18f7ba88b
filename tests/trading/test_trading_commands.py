"""`torra halt`, `resume`, `signals`, `approve` and `reject`, as a person types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, open_home
from tests.worlds.hands import torra
from tests.worlds.homes import desk_file, profile_file
from tests.worlds.stores import opening
from torra.clock import System, floor
from torra.config import Profile
from torra.errors import StoreUnavailable
from torra.store import audit as audit_chain
from torra.store import ticks as claim_table
from torra.store.connection import TickKey
from torra.store.trade import proposals_and_alarms as execution_table
from torra.tick import approval
from torra.trading import by_hand
from torra.verdict import risk_engine
from torra.verdict.risk_engine import Account, Decision

MINUTE = timedelta(minutes=1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose gold is traded through a channel, after a person's yes."""
    (tmp_path / "shared").mkdir()
    gold = {"symbol": "XAUUSD", "profile": "mine", "feed": "store", "bridge": "torra_files"}
    main_ = {"folder": str(tmp_path / "shared"), "account": 1001}
    profile_file(tmp_path, {"execution": "approve"}, "mine")
    return desk_file(tmp_path, gold, channels={"main": main_})


def document(home: Path, *words: str) -> Any:
    result = torra(home, *words, "--json")
    return json.loads(result.stdout)


def files(home: Path) -> list[bool]:
    return [
        (home / "control" / "HALT").exists(),
        (home / "shared" / "control" / "HALT").exists(),
    ]


def propose(database: Database, price: float = 2000.0) -> str:
    now = System().now()
    bar_time = floor(now, "M15") - 15 * MINUTE
    profile = Profile(execution="approve")
    decision = Decision(
        verdict="BUY", price=price, atr=5.0, multiplier=1.0, veto=False, opening_stands=True
    )
    account = Account(**database.exposure("XAUUSD", "M15", as_of=now))
    action = risk_engine.review(decision, None, account, profile.symbol("XAUUSD"), profile)
    return approval.propose(
        database, action, decision, key=TickKey("XAUUSD", "M15", bar_time), symbol="XAUUSD",
        created=now, expires=now + 15 * MINUTE,
    )  # fmt: skip


DAMAGE: dict[str, Callable[[Path], object]] = {
    "torra.db": lambda path: path.write_bytes(b"no database, and longer than a header" * 40),
    "desk.json": lambda path: path.write_text("{"),
    "shared": lambda path: (path.rmdir(), path.write_text("a file in the place of the folder")),
    "control": lambda path: path.write_text("a file in the place of the folder"),
}


@pytest.mark.parametrize(
    ("damaged", "code", "words", "down"),
    [
        ((), 0, ["Trading is HALTED", "by a person: the news"], [True, True]),
        (("desk.json",), 0, ["Trading is HALTED"], [True, False]),
        (("shared",), 1, ["halted, but not everywhere: main: "], [True, False]),
        (("torra.db",), 1, ["halted, but not everywhere", "torra.db"], [True, True]),
        (
            ("torra.db", "control", "shared"),
            1, ["NOT halted, nothing could be written: desk: ", "torra.db"], [False, False],
        ),
    ],
)  # fmt: skip
def test_halting_does_as_much_as_it_can_and_says_what_it_could_not_reach(
    home: Path, damaged: tuple[str, ...], code: int, words: list[str], down: list[bool]
) -> None:
    for name in damaged:
        DAMAGE[name](home / name)
    result = torra(home, "halt", "--reason", "the news")
    assert (result.exit_code, files(home)) == (code, down)
    assert all(word in result.output for word in words), result.output
    if "torra.db" not in damaged and "desk.json" not in damaged:
        assert document(home, "signals")["trading_state"] == "HALTED"


def test_resuming_takes_the_files_away_and_ends_the_alarms(home: Path) -> None:
    torra(home, "halt")
    database = open_home(home)
    database.raise_alarm("k", "EXTERNAL", "position 7")
    database.close()
    result = torra(home, "resume", "--reason", "looked at it")
    assert result.exit_code == 0
    assert "alarm ended: EXTERNAL position 7" in result.stdout
    assert "Trading is ACTIVE" in result.stdout
    assert files(home) == [False, False]
    assert document(home, "signals")["alarms"] == []


def test_resuming_what_is_not_halted_is_a_mistake(home: Path) -> None:
    result = torra(home, "resume")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nothing to resume" in result.stderr


def test_reducing_stops_openings_only(home: Path) -> None:
    assert "Trading is REDUCING" in torra(home, "halt", "--reduce").stdout
    assert files(home) == [False, False]
    torra(home, "halt")
    assert torra(home, "halt", "--reduce").exit_code == 2
    torra(home, "resume")
    assert document(home, "signals")["trading_state"] == "ACTIVE"


def test_before_the_first_signal_there_is_something_to_read(home: Path) -> None:
    result = torra(home, "signals")
    assert "No signal has been written yet." in result.stdout
    assert not (home / "torra.db").exists(), "looking makes no database"
    assert torra(home, "signals", "--instance", "DOGE").exit_code == 2


def test_signals_tell_what_waits_and_why(home: Path) -> None:
    database = open_home(home)
    gold = {"instance": "XAUUSD", "symbol": "XAUUSD"}
    database.enqueue_signal(opening("T1", **gold))
    database.note_signal("T1", "BRIDGE_DEAD: no heartbeat")
    execution_table.note_bridge(
        database, "torra_files main", deny="BRIDGE_DEAD", detail="no heartbeat", facts={}
    )
    database.raise_alarm("k", "EXTERNAL", "position 7")
    sid = propose(database)
    database.close()
    text = torra(home, "signals").stdout
    for words in (
        "bridge torra_files main: BRIDGE_DEAD: no heartbeat (books compared never)",
        "EXTERNAL: position 7",
        f"PROPOSAL {sid} OPEN_BUY XAUUSD M15 at 2000.0",
        f"torra approve {sid}",
        "PENDING",
        "BRIDGE_DEAD: no heartbeat",
    ):
        assert words in text
    told = document(home, "signals", "--instance", "XAUUSD")
    assert [row["sid"] for row in told["signals"]] == ["T1"]
    assert [row["sid"] for row in told["proposals"]] == [sid]


def test_a_person_approves_and_rejects(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_hand, "market_now", lambda *_: (2001.0, {}))
    database = open_home(home)
    sid = propose(database)
    result = torra(home, "approve", sid)
    assert result.exit_code == 0
    assert f"{sid} is APPROVED" in result.stdout
    assert "open BUY" in result.stdout
    assert database.signal(sid)["entry"] == 2001.0
    again = torra(home, "approve", sid)
    assert again.exit_code == 2
    assert "is APPROVED since" in again.stderr
    assert torra(home, "reject", sid).exit_code == 2
    unknown = torra(home, "approve", "TNOBODY")
    assert (unknown.exit_code, "torra signals" in unknown.stderr) == (2, True)


def test_a_denied_approval_is_told_and_ends_with_one(home: Path) -> None:
    database = open_home(home)
    sid = propose(database)
    assert torra(home, "approve", sid).exit_code == 2, "no price is known yet"
    assert database.proposal(sid).state == "WAITING"
    torra(home, "halt")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(by_hand, "market_now", lambda *_: (2000.0, {}))
        result = torra(home, "approve", sid)
    assert result.exit_code == 1
    assert f"{sid} is DENIED: TRADING_HALTED" in result.stdout


@pytest.mark.parametrize("state", ["PUBLISHED", "CLAIMED", "UNKNOWN"])
def test_a_person_settles_what_nobody_can_tell(state: str, home: Path) -> None:
    database = open_home(home)
    database.enqueue_signal(opening("T1", instance="XAUUSD", symbol="XAUUSD"))
    assert torra(home, "settle", "T1").exit_code == 2, "it is not even sent"
    database.move_signal("T1", "PUBLISHED")
    if state != "PUBLISHED":
        database.move_signal("T1", state)
    database.raise_alarm("UNKNOWN T1", "UNKNOWN", "T1")
    result = torra(home, "settle", "T1", "--reason", "looked in the terminal")
    assert result.exit_code == 0
    assert "T1 is NOT_SENT (by a person: looked in the terminal)" in result.stdout
    assert database.alarms() == []
    assert database.position("XAUUSD") is None
    assert torra(home, "settle", "TNOBODY").exit_code == 2


def audited(database: Database) -> list[tuple[str, str, str]]:
    rows = audit_chain.audit_entries(database)[::-1]
    assert {row["actor"] for row in rows} <= {"command line"}
    return [(row["action"], row["target"], row["outcome"].partition(":")[0]) for row in rows]


def test_every_command_is_in_the_audit_log_and_a_refused_one_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_hand, "market_now", lambda *_: (2000.0, {}))
    database = open_home(home)
    sid = propose(database)
    torra(home, "halt", "--reduce")
    torra(home, "halt", "--reason", "the news")
    torra(home, "approve", sid)
    torra(home, "reject", sid)
    torra(home, "resume", "--reason", "looked")
    torra(home, "settle", "TNOBODY")
    assert audited(database) == [
        ("reduce", "", "done"),
        ("halt", "", "done"),
        ("approve", sid, "failed"),
        ("reject", sid, "failed"),
        ("resume", "", "done"),
        ("settle", "TNOBODY", "failed"),
    ]
    halted = audit_chain.audit_entries(database)[-2]
    assert json.loads(halted["before"]) == {"trading_state": "REDUCING"}
    after = {"trading_state": "HALTED", "reason": "by a person: the news"}
    assert json.loads(halted["after"]) == after
    assert "DENIED: TRADING_HALTED" in audit_chain.audit_entries(database)[-3]["outcome"]


def test_what_cannot_be_put_on_record_is_not_done_but_a_halt_is(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(by_hand, "market_now", lambda *_: (2000.0, {}))
    database = open_home(home)
    sid = propose(database)
    database.enqueue_signal(opening("T1", instance="XAUUSD", symbol="XAUUSD"))
    database.move_signal("T1", "PUBLISHED")
    database.raise_alarm("k", "EXTERNAL", "position 7")

    def locked(*_: object, **__: object) -> int:
        raise StoreUnavailable("database is locked")

    monkeypatch.setattr(Database, "audit", locked)
    for words in (("approve", sid), ("reject", sid), ("settle", "T1"), ("halt", "--reduce"),
                  ("resume", "--reason", "looked")):  # fmt: skip
        result = torra(home, *words)
        assert (result.exit_code, "database is locked" in result.stderr) == (1, True), words
    assert database.proposal(sid).state == "WAITING"
    assert [row["state"] for row in database.signals()] == ["PUBLISHED"]
    assert (claim_table.trading_states(database), len(database.alarms())) == ([], 1)
    assert caplog.records == []
    assert torra(home, "halt").exit_code == 0
    assert (database.trading_state(), files(home)) == ("HALTED", [True, True])
    assert "halt  (done): this is not on record: database is locked" in caplog.text


def test_a_command_that_needs_the_desk_makes_no_database_where_the_settings_are_broken(
    tmp_path: Path,
) -> None:
    (tmp_path / "desk.json").write_text("{")
    for words in (("approve", "T1"), ("close", "EURUSD"), ("flatten", "--yes")):
        result = torra(tmp_path, *words)
        assert result.exit_code == 2
        assert not (tmp_path / "torra.db").exists()
