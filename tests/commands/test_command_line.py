"""The `torra` command as a user meets it: tables, JSON, one clear line for a mistake."""

from __future__ import annotations

import importlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import torra_trader
from instance_database import Database, open_home
from tests.doubles.vendor_server import Status, VendorServer
from tests.worlds import desks, legacy_database
from tests.worlds.channels import KEY, new_advisor
from tests.worlds.hands import doctor_rows, torra
from tests.worlds.homes import desk_file, profile_file
from torra.bridges.torra.messages import Heartbeat, decode, encode
from torra.clock import System, iso
from torra.commands.command_line import main
from torra.config import ROOT
from torra.errors import LONGEST_TEXT
from torra.providers.vendors.clients import VendorClients
from torra.replay.rerun import trial_tick
from torra.store import ledger as ledger_table
from torra.tick.bar_window import LiveWindow


def test_tick_changes_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path)
    desks.open_for_work(desk)
    setup = desk.setups["BTCUSD"]
    LiveWindow(setup.instance, setup.feed, desk.database).fill(desk.clock.now())
    desk.wake("BTCUSD")
    desks.step(desk)
    stored = desk.database.latest_tick("BTCUSD", "M15")
    desk.database.close()
    before = (tmp_path / "torra.db").read_bytes()
    again = torra(tmp_path, "tick", "BTCUSD", "M15", "--json")
    assert again.exit_code == 0, again.output
    record = json.loads(again.stdout)
    assert stored is not None
    assert record["reports"] == stored["deliberation"]["reports"] != []
    same = {"bar_time", "l1", "agents", "scores", "composite", "consensus", "verdict", "action"}
    assert {key: record[key] for key in same} == {key: stored[key] for key in same}
    assert (tmp_path / "torra.db").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["import", "x.csv", "--symbol", "A|B", "--timeframe", "M15"], "'A|B' is no symbol"),
        (["import", "x.csv", "--symbol", "A" * 40, "--timeframe", "M15"], "32 at most"),
        (["tick", "X" * 10_000, "M15"], "it has BTCUSD, EURUSD"),
        (["tick", "BTCUSD", "M15", "--mode", "x" * 10_000], " [...] "),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_2(
    words: list[str], said: str, tmp_path: Path
) -> None:
    result = torra(tmp_path, *words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert said in result.stderr and result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert len(result.stderr) <= LONGEST_TEXT + 1


@pytest.mark.parametrize("command", ["doctor", "run --port 5999", "tick BTCUSD M15", "halt"])
def test_what_can_be_no_home_is_told(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--home", "x" * 300, *command.split()]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 2, result.output
    assert "File name too long" in result.stderr and result.stderr.count("\n") == 1
    assert "set TORRA_HOME or --home to a folder" in result.stderr
    assert list(tmp_path.iterdir()) == [], "no folder of that name is made"


def test_a_file_of_one_endless_line_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("time,open,high,low,close,volume\n" + "9" * 1_000_000 + "\n")
    words = ("import", str(file), "--symbol", "BTCUSD", "--timeframe", "M15")
    result = torra(tmp_path / "home", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("torra: ") and len(result.stderr) <= LONGEST_TEXT + 1


def test_signs_that_a_terminal_obeys_are_escapes(tmp_path: Path) -> None:
    result = torra(tmp_path, "tick", "a\u202eb\x9bc", "M15")
    assert result.exit_code == 2
    assert "no instance A\\u202eB\\u009bC" in result.stderr and result.stderr.strip().isprintable()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("desk.json", '{"keep_calls_days": 9, "keep_calls_days": 8}', ("tick", "BTCUSD", "M15")),
        ("access.json", '{"tokens": 1, "tokens": {}, "key": ""}', ("token",)),
    ],
)
def test_a_key_that_stands_twice_is_refused(
    name: str, text: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / name).chmod(0o600)
    result = torra(tmp_path, *words)
    assert result.exit_code == 2 and name in result.stderr, result.stderr


@pytest.mark.parametrize(
    "name", ["desk.json", "access.json", "prices.json", "profiles/default.json"]
)
def test_a_link_to_nothing_is_no_file_that_is_missing(name: str, tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "nothing")
    words = ("token",) if name == "access.json" else ("tick", "BTCUSD", "M15")
    result = torra(tmp_path, *words)
    assert result.exit_code == 2 and Path(name).name in result.stderr, result.stderr
    assert not (tmp_path / "nothing").exists()


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from torra.commands.command_line import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pandas', 'numpy', 'flask', 'pydantic', 'apscheduler') "
        "if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_a_home_can_be_moved(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path / "one")
    desks.open_for_work(desk)
    desk.wake("BTCUSD")
    desk.database.close()
    shutil.move(tmp_path / "one", tmp_path / "two")
    assert torra(tmp_path / "two", "doctor").exit_code == 0


@pytest.mark.journey
def test_tick_says_why_agents_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("TORRA_OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    words: tuple[str, ...] = ("tick", "EURUSD", "H1", "--as-of", "2021-11-10T10:00Z")
    words = (*words, "--provider", "openai_compatible")
    told = json.loads(torra(tmp_path, *words, "--json").stdout)
    assert told["source_type"] == "L1_ONLY"
    assert told["failures"]["technical"] == "error (no connection)"
    assert "technical: error (no connection)" in torra(tmp_path, *words).stdout


# A trial that costs money

TRIAL = ("tick", "EURUSD", "H1", "--as-of", "2021-11-10T10:00Z", "--provider", "anthropic")


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorServer]:
    """A vendor that refuses the key, its client imported already: that alone may take a stage."""
    importlib.import_module("anthropic")
    with VendorServer({"*": Status(401)}) as server:
        monkeypatch.setenv("TORRA_ANTHROPIC_BASE_URL", server.base("anthropic"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
        yield server


def test_a_trial_that_is_refused_blocks_nobody_but_itself(
    tmp_path: Path, refusing: VendorServer
) -> None:
    for _ in range(2):
        told = json.loads(torra(tmp_path, *TRIAL, "--json").stdout)
        assert told["source_type"] == "L1_ONLY"
    assert len(refusing.exchanges) == 2
    database = open_home(tmp_path)
    assert ledger_table.provider_blocks(database) == []
    rows = ledger_table.ledger_rows(database, System().real_now() - timedelta(hours=1))
    assert rows and all(row["usd"] == 0 for row in rows), "the desk's ledger knows of the trial"
    database.close()


def test_a_trial_asks_no_vendor_that_the_desk_does_not_ask(
    tmp_path: Path, refusing: VendorServer
) -> None:
    database = open_home(tmp_path)
    until = System().real_now() + timedelta(minutes=5)
    ledger_table.block_provider(database, "anthropic", "402: the account has no credit", until)
    told = json.loads(torra(tmp_path, *TRIAL, "--json").stdout)
    assert told["failures"]["technical"] == "blocked (402: the account has no credit)"
    assert refusing.exchanges == []
    assert len(ledger_table.provider_blocks(database)) == 1
    database.close()


@pytest.mark.journey
def test_a_vendor_s_client_is_there_before_a_trial_is_due(
    tmp_path: Path, refusing: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import of an SDK takes about a second, which the tick's agents would lack."""
    # A desk of an earlier test may still build its own clients, which is no build of this trial.
    for thread in threading.enumerate():
        if thread.name == "torra-vendors":
            thread.join(30)
    build, run_tick = VendorClients._open, torra_trader.run_tick
    built: list[str] = []
    known: list[list[str]] = []

    def slow(board: VendorClients, vendor: str) -> Any:
        time.sleep(0.3)
        found = build(board, vendor)
        built.append(vendor)
        return found

    def run(*words: Any, **more: Any) -> Any:
        known.append(list(built))
        return run_tick(*words, **more)

    monkeypatch.setattr(VendorClients, "_open", slow)
    monkeypatch.setattr(trial_tick, "run_tick", run)
    assert torra(tmp_path, *TRIAL).exit_code == 0
    assert known[-1] == ["anthropic"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (TRIAL, "set ANTHROPIC_API_KEY"),
        ((*TRIAL[:-1], "recorded"), "it is for replays"),
        ((*TRIAL[:4], "2021-11-10T10:07Z", *TRIAL[5:]), "ANTHROPIC_API_KEY"),
    ],
)
def test_a_trial_that_cannot_be_asked_makes_no_database(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(Database, "open", lambda path, **_: opened.append(path))
    result = torra(tmp_path, *words)
    assert result.exit_code == 2 and said in result.stderr
    assert result.stderr.count("\n") == 1
    assert opened == [] and not (tmp_path / "torra.db").exists()


@pytest.mark.journey
def test_a_trial_does_not_migrate_the_desk_s_database(
    tmp_path: Path, refusing: VendorServer
) -> None:
    path = tmp_path / "torra.db"
    legacy_database.build(path)
    before = path.read_bytes()
    result = torra(tmp_path, *TRIAL)
    assert result.exit_code == 2 and "start the desk once" in result.stderr
    assert path.read_bytes() == before and refusing.exchanges == []
    assert not (tmp_path / "backups").exists()
    assert torra(tmp_path, *TRIAL[:-2]).exit_code == 0, "one that costs nothing is fine"
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["**", "My profile", "-x", "a" * 33])
def test_a_profile_s_file_needs_a_plain_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.json"
    file.write_text("{}")
    result = torra(tmp_path, "tick", "EURUSD", "H1", f"--profile={file}")
    assert result.exit_code == 2 and "rename the file" in result.stderr
    assert result.stderr.count("\n") == 1


# What doctor finds of the models


def found_in(home: Path, name: str, profile: object, *rows: dict[str, Any]) -> list[dict[str, str]]:
    """Return what doctor finds under a name, with a profile that the desk of the home has."""
    row = {"symbol": "BTCUSD", "timeframes": ["M15"], "profile": "mine"}
    desk_file(profile_file(home, profile, "mine"), *({**row, **more} for more in rows))
    return doctor_rows(home, name)


EXAMPLE = str(ROOT / "examples" / "events.csv")
WINDOW = {"events": {"calendar": EXAMPLE}, "gate": {"event_before_minutes": 30.0}}
READ = {"include_news": True, "mode": "full"}
UNREAD = "no seated agent reads them"


@pytest.mark.parametrize(
    ("name", "profile", "row", "findings"),
    [
        ("provider", {"agents": {"provider": "anthropic", "fallback_models": ["google"]}}, {},
         ["alert ANTHROPIC_API_KEY", "alert GOOGLE_API_KEY"]),
        ("provider", {"agents": {"provider": "recorded"}}, {}, ["alert replays"]),
        ("settings", {**WINDOW, "symbols": {"BTCUSD": {"currencies": []}}}, {},
         ["alert write symbols.BTCUSD.currencies"]),
        ("events", WINDOW | {"gate": {}}, {}, ["ok in the sample's time"]),
        ("events", {"events": {"calendar": "today.csv"}}, {},
         ["warn none in the sample's time"]),
        ("events", {"events": {"calendar": "today.csv"}}, {"feed": "store"}, ["ok the last on"]),
        ("events", {"events": {"calendar": EXAMPLE}}, {"feed": "store"}, ["warn none to come"]),
        ("events", WINDOW, {"timeframes": ["M15", "H1"]},
         ["ok in the sample's time", "warn event_before_minutes of profile mine to 60"]),
        ("events", {**WINDOW, "gate": {"event_before_minutes": 60.0}},
         {"timeframes": ["M15", "H1"]}, ["ok in the sample's time"]),
        *(("news", {"agents": {"include_news": True, **agents},
                    "news": {"sources": ["file"], "file": "h.jsonl"}}, {}, findings)
          for agents, findings in (({}, [f"warn {UNREAD}"]), ({"mode": "full"}, []),
                                   ({"active_agents": ["sentiment", "technical"]}, []))),
        ("news", {"agents": READ}, {}, ["warn finnhub"]),
        ("news", {"agents": READ}, {"feed": "store"}, []),
    ],
)  # fmt: skip
def test_what_doctor_finds(
    name: str, profile: dict[str, Any], row: dict[str, Any], findings: list[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("FINNHUB_API_KEY", "k" * 20)
    (tmp_path / "h.jsonl").write_text("")
    (tmp_path / "today.csv").write_text(
        f"time,currency,impact,name\n{iso(System().now() + timedelta(days=3))},USD,high,x\n"
    )
    found = [
        one
        for one in found_in(tmp_path, name, profile, row)
        if name != "news" or any(words in one["detail"] for words in (UNREAD, "sample"))
    ]
    for one, finding in zip(found, findings, strict=True):
        level, _, words = finding.partition(" ")
        assert one["level"] == level and words in f"{one['detail']} {one['remedy']}"


@pytest.mark.parametrize(
    ("ceiling", "more", "said"),
    [
        (0.01, 0, "no tick can ask all its agents"),
        (0.4, 0, "2 that close together"),
        (0.6, 1, "3 that close together"),
        (1.0, 1, ""),
    ],
)
def test_doctor_warns_of_a_ceiling_under_which_ticks_cannot_ask(
    ceiling: float, more: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    rows: list[Any] = [{"timeframes": ["M15", "H1"]}]
    rows += [{"symbol": "EURUSD", "timeframes": ["H1"]}] * more

    def found(usd: float) -> list[dict[str, str]]:
        agents = {"provider": "anthropic", "max_api_cost_per_hour": usd}
        return found_in(tmp_path, "ceiling", {"agents": agents}, *rows)

    warnings = found(ceiling)
    assert [row["level"] for row in warnings] == ["warn"] * bool(said)
    if said:
        assert said in warnings[0]["detail"] and f"is {ceiling:.4f}" in warnings[0]["detail"]
        assert found(float(warnings[0]["remedy"].split()[3])) == []


def test_doctor_tells_a_mistake_once(tmp_path: Path) -> None:
    found_in(tmp_path, "settings", {"agents": {"modes": "full"}}, {})
    result = torra(tmp_path, "doctor")
    assert result.exit_code == 1
    assert result.stdout.count("unknown key agents.modes") == 1


@pytest.mark.journey
def test_tick_names_the_nearest_events(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps({"events": {"calendar": EXAMPLE}}))
    words = ("tick", "EURUSD", "H1", "--as-of", "2021-11-10T13:00:00Z")
    profile = ("--profile", str(tmp_path / "mine.json"))
    shown = torra(tmp_path, *words, *profile)
    assert shown.exit_code == 0, shown.output
    assert "next in 30 min: US consumer prices (USD)" in shown.stdout
    told = json.loads(torra(tmp_path, *words, *profile, "--json").stdout)
    assert told["gate"]["veto"] and "SCHEDULED_EVENT" in told["gate"]["reasons"]
    assert told["reason"] and isinstance(told["denied"], list)
    assert -1.0 <= told["l1_consensus"] <= 1.0


def test_doctor_looks_at_the_channels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = {"symbol": "XAUUSD", "feed": "store", "bridge": "torra_files"}
    channel = {"folder": str(tmp_path / "shared"), "account": 1001}
    desk_file(tmp_path, gold, channels={"main": channel})

    def told() -> dict[str, str]:
        (found,) = doctor_rows(tmp_path, "channel")
        return found

    assert "TORRA_CHANNEL_KEY is not set" in told()["detail"]
    assert told()["level"] == "alert"
    monkeypatch.setenv("TORRA_CHANNEL_KEY", KEY)
    assert "is not there yet" in told()["detail"]
    state = tmp_path / "shared" / "state"
    for folder in ("state", "tmp", "inbox", "work", "ack", "done", "bars", "control"):
        (tmp_path / "shared" / folder).mkdir(parents=True)
    assert "no sign of life" in told()["detail"]
    (state / "ea.json").write_text("{}")
    assert "same channel key" in told()["detail"]
    advisor, real = new_advisor(tmp_path / "shared"), System()
    for account, ago, words in ((1001, 60, "last sign of life"), (7, 0, "logged in to 7")):
        advisor.set(account=account)
        advisor.step(real.real_now().timestamp() - ago, 0.0)
        assert words in told()["detail"]
        advisor.restart()
    beat = decode((state / "ea.json").read_bytes(), Heartbeat, KEY)
    beat = replace(beat, account=1001, gmt=int(real.real_now().timestamp()))
    (state / "ea.json").write_bytes(encode(beat, KEY, version=1))
    assert (
        "the Expert Advisor on channel main speaks protocol 1, this Torra 2: compile and "
        "attach mql5/TorraBridge.mq5 anew"
    ) in told()["detail"]
    advisor.set(account=1001)
    for name, words in (("second", "serves channel second: set its input"), ("main", "")):
        advisor.inputs["channel"] = name
        advisor.restart()
        advisor.step(real.real_now(), 0.0)
        assert words in told()["detail"]
    assert told()["level"] == "ok"
