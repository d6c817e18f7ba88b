"""Tools give what the desk's own queries give, know nothing later, and can change nothing."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import open_reader
from tests import ROOT
from tests.conftest import Scale
from tests.house import test_floors as floors
from tests.tools.conftest import World, every_call
from tests.worlds.hostile_texts import TEXTS
from torra.clock import parse
from torra.desk import costs as cost_report
from torra.desk.looking_desk import look_at
from torra.errors import StoreBroken
from torra.money.book import MoneyBook
from torra.replay.changed import listing
from torra.store import radar_runs
from torra.store.tool_calls import prune_tool_calls, tool_calls
from torra.store.trade import notes as note_table
from torra.store.trade import signals as signal_table
from torra.tools.contract import CODES, FACTS, PREFIXES
from torra.tools.desk_reader import DeskReader, reading
from torra.tools.executor import Executor, ToolCall, hash_of, text_for_model
from torra.tools.mcp_server import DeskServer
from torra.tools.registry import TOOLS

NAMED = (
    "fetch_bars score_symbol detect_patterns run_backtest fetch_events fetch_outside "
    "fetch_headlines analyse_sentiment exposure money trades changed_by_agents find_ticks argument "
    "lessons costs latest_radar find_text"
)


def run(world: World, *calls: ToolCall, name: str = "run", **more: Any) -> list[Any]:
    one = Executor(name, world.audit, limits={}, **more)
    return [one.call(world.reader, call) for call in calls]


def facts(world: World, tool: str, **args: Any) -> dict[str, Any]:
    (result,) = run(world, ToolCall(tool, args))
    assert result.ok, result.error
    return {one.id: one.value for one in result.facts}


def rows_of(home: Path) -> str:
    """Return every row of a home's database, but those of the audit of tools."""
    with closing(sqlite3.connect(home / "torra.db")) as connection:
        return "\n".join(line for line in connection.iterdump() if '"tool_calls"' not in line)


def files_of(home: Path) -> dict[str, bytes]:
    files = (path for path in home.rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files if not path.match("torra.db*")}


def test_the_registry_has_the_tools_of_the_contract() -> None:
    assert list(TOOLS) == NAMED.split()
    assert all(spec.effect == "read" and spec.description for spec in TOOLS.values())
    assert all(row["meaning"] and row["word"] for row in CODES.values())
    used = {
        code
        for path in (ROOT / "torra/tools").glob("*.py")
        for code in re.findall(r'"([A-Z]+_?[A-Z]*)"', path.read_text("utf-8"))
    }
    limits = {"TURN_LIMIT", "AGENT_LIMIT", "RUN_LIMIT", "MINUTE_LIMIT"}
    assert {*CODES} - limits <= used and {row["table"] for row in FACTS}


def test_every_tool_answers_with_ids_of_its_own(world: World) -> None:
    calls = every_call()
    results = dict(zip(TOOLS, run(world, *calls), strict=True))
    refused = {name: result.error.code for name, result in results.items() if result.error}
    assert refused == {"run_backtest": "NO_STUDY", "latest_radar": "NO_RUN"}
    for name, result in results.items():
        ids = [one.id for one in result.facts]
        assert len({*ids}) == len(ids), name
        assert all(one.startswith(("BTCUSD|", *PREFIXES)) for one in ids), name
        assert all(one.sentence or one.value is None for one in result.facts), name
    empty = {name for name, result in results.items() if result.ok and not result.facts}
    assert empty <= {"detect_patterns", "fetch_headlines", "fetch_events"}


def test_the_newest_scan_says_what_is_held_back_why_and_what_was_not_read(world: World) -> None:
    row = {
        "stream": "BTCUSD|H1", "codes": ["HELD_BACK", "NEAR_STOP"], "deny_reason": "COOLDOWN",
        "distance": None, "as_of": "2026-01-01T00:00:00Z", "bucket": "act",
    }  # fmt: skip
    failed = {"stream": "XAUUSD|H1", "code": "NOT_READ", "message": "a stranger's text"}
    coverage = {"act": 1, "watch": 0, "exit_radar": 0, "quiet": 0, "failed": [failed]}
    document = {
        "act": [row], "watch": [], "exit_radar": [], "as_of": row["as_of"], "coverage": coverage,
    }  # fmt: skip
    radar_runs.add_run(world.audit, {
        "universe": "u", "as_of": row["as_of"], "mode": "rules", "trigger_code": "",
        "document": json.dumps(document),
    })  # fmt: skip
    assert dict([*facts(world, "latest_radar").items()][4:]) == {
        "radar.act.BTCUSD|H1": "HELD_BACK NEAR_STOP",
        "radar.act.BTCUSD|H1.deny_reason": "COOLDOWN",
        "radar.failed.XAUUSD|H1": "NOT_READ",
    }


def test_a_desk_that_cannot_be_read_is_a_refusal_for_a_client(world: World) -> None:
    def broken() -> DeskReader:
        raise StoreBroken("/home/someone/torra.db")

    server = DeskServer(broken, world.audit, lambda *_: {})
    assert "UNREADABLE" in server.radar() and "someone" not in server.radar()


def test_the_figures_are_those_of_the_record_and_the_pages(world: World) -> None:
    reader = world.reader
    record = world.audit.latest_tick("BTCUSD", "M15")
    assert record is not None
    place = f"BTCUSD|M15@{record['bar_time']}"
    scores = facts(world, "score_symbol", symbol="BTCUSD", timeframe="M15")
    assert scores[f"{place}/consensus"] == record["consensus"]
    assert scores[f"{place}/scores.momentum.score"] == record["scores"]["momentum"]["score"]
    limits, now = record["thresholds"], record["consensus"]
    gap = min(limits["buy"] - now, limits["sell"] + now)
    assert scores[f"{place}/distance"] == pytest.approx(gap)
    assert (
        facts(world, "fetch_bars", symbol="BTCUSD")[f"{place}/technical.close"] == record["close"]
    )

    setups = [(item, reader.profiles[item.id]) for item in reader.instances]
    book = MoneyBook(world.audit, "").money(setups, reader.as_of, tags=False)
    money, exposure = facts(world, "money"), facts(world, "exposure")
    whole = book.accounts[0].whole
    assert (money["money.0.whole.r"], money["money.0.whole.trades"]) == (whole.r, whole.trades)
    assert exposure["book.0.positions"] == book.accounts[0].open.positions
    assert exposure["book.lost_today"] == book.lost_today

    trades = signal_table.closed_trades(world.audit, limit=10, as_of=reader.as_of)
    assert trades and facts(world, "trades") == {
        f"money.trade.{row.sid}": row.r_multiple for row in trades
    }
    page = listing.listed(world.audit, world.settings, limit=10)
    changed = facts(world, "changed_by_agents")
    assert (changed["changed.verdicts"], changed["changed.ticks"]) == (page.verdicts, page.of)
    assert len(changed) == 2 + 6 * len(page.ticks)
    report = cost_report.report(world.home, world.audit, reader.setups, reader.now)
    assert facts(world, "costs")["cost.today"] == report["today"]["usd"]


def test_a_text_of_the_docs_shows_the_first_command_of_a_block(world: World) -> None:
    (result,) = run(world, ToolCall("find_text", {"words": "backups start"}))
    said = " ".join(one.sentence for one in result.facts)
    assert "```" not in said and "`torra backup`" in said


def test_nothing_later_than_its_moment_is_visible(world: World) -> None:
    early = replace(world.reader, as_of=world.reader.as_of - timedelta(hours=3))
    past = world._replace(reader=early)
    for tool in ("fetch_bars", "score_symbol", "find_ticks", "argument", "trades", "lessons"):
        args = {} if tool in ("find_ticks", "trades", "lessons") else {"symbol": "BTCUSD"}
        (now,), (then,) = run(world, ToolCall(tool, args)), run(past, ToolCall(tool, args))
        assert then.ok and now.facts != then.facts, tool
        assert all(parse(one.as_of) <= early.as_of for one in then.facts), tool


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO latches VALUES ('BTCUSD', 'BUY', 'x')",
        "UPDATE signals SET state = 'CLOSED'",
        "DELETE FROM journal",
        "DROP TABLE ticks",
        "CREATE TABLE other (a)",
        "PRAGMA user_version = 7",
        "VACUUM",
    ],
)
def test_writing_through_a_reader_fails(world: World, sql: str) -> None:
    before = rows_of(world.home)
    with pytest.raises(StoreBroken, match="readonly"):
        world.reader.database.rows(sql)
    with pytest.raises(StoreBroken, match="readonly"):
        world.reader.database.change(sql)
    assert rows_of(world.home) == before


def test_a_reader_makes_no_database(tmp_path: Path) -> None:
    with closing(open_reader(tmp_path / "torra.db")) as database, pytest.raises(StoreBroken):
        database.value("SELECT 1")
    assert not [*tmp_path.iterdir()]


def test_a_home_gives_its_desk_as_it_stands(world: World) -> None:
    with reading(world.home) as (read, audit):
        desk = look_at(world.home)
        other = DeskReader.of_desk(world.home, desk.settings, desk, desk.database)
        assert read().profiles == other.profiles and read().instance("BTCUSD").id == "BTCUSD"
        with pytest.raises(StoreBroken, match="readonly"):
            read().database.change("DELETE FROM ticks")
        assert audit.change("DELETE FROM veto_stretches") == 0
        desk.database.close()


def test_runs_again_from_audit_and_evidence_give_equal_hashes(world: World, scaled: Scale) -> None:
    names = list(TOOLS)
    for number in range(scaled(500, least=len(names))):
        call = every_call()[number % len(names)]
        args = (
            {"back": number // len(names)} if "back" in TOOLS[call.tool].args.model_fields else {}
        )
        run(world, replace(call, args={**call.args, **args}))
    rows = tool_calls(world.audit, "run")
    for row in rows:
        reader = replace(world.reader, as_of=parse(row["as_of"]))
        again = ToolCall(row["tool"], json.loads(row["args"]))
        run(world._replace(reader=reader), again, name="again")
    pairs = zip(rows, tool_calls(world.audit, "again"), strict=True)
    assert all(
        (one["result_hash"], one["args_hash"], one["facts"])
        == (other["result_hash"], other["args_hash"], other["facts"])
        for one, other in pairs
    )
    assert all(row["args_hash"] == hash_of(row["args"]) for row in rows)


def hostile_args(count: int) -> Iterator[ToolCall]:
    texts = [
        *TEXTS.values(),
        "../../torra.db",
        "'; DROP TABLE ticks; --",
        "\x00",
        "\ud800",
        "A" * 9**5,
    ]
    values = [*texts, -1, 10**30, float("nan"), None, [], {"a": 1}, True]
    names = list(TOOLS)
    for number in range(count):
        tool = names[number % len(names)]
        keys = [*TOOLS[tool].args.model_fields, "path"]
        key = keys[number // len(names) % len(keys)]
        usual = every_call()[number % len(names)].args
        yield ToolCall(tool, {**usual, key: values[number * 7 % len(values)]})


def test_hostile_arguments_change_nothing(world: World, scaled: Scale) -> None:
    before = rows_of(world.home), files_of(world.home)
    calls = list(hostile_args(scaled(500, least=60)))
    results = run(world, *calls)
    assert (rows_of(world.home), files_of(world.home)) == before
    failed = [one.error.code for one in results if one.error]
    assert "FAILED" not in failed and len(failed) > len(calls) // 3
    assert len(tool_calls(world.audit, "run")) == len(calls)


def test_the_audit_never_changes_and_loses_its_oldest_rows_alone(world: World) -> None:
    run(world, *every_call()[:4])
    for sql in (
        "UPDATE tool_calls SET code = ''",
        "DELETE FROM tool_calls WHERE seq = 3",
        "INSERT OR REPLACE INTO tool_calls SELECT * FROM tool_calls WHERE seq = 2",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="audit of tools"):
            world.audit.change(sql)
    later = world.audit.now() + timedelta(days=1)
    assert prune_tool_calls(world.audit, later, limit=3) == 3
    assert [row["seq"] for row in tool_calls(world.audit, "run")] == [4]


FORBIDDEN = (
    "torra/bridges", "signal_bridge", "torra/trading", "torra/commands", "torra/overlay",
    "torra/dashboard", "torra/notices", "torra/providers/registry", "torra/profiles",
    "torra/desk/schedule", "torra/desk/setup", "torra/jobs",
)  # fmt: skip


def test_tools_import_nothing_that_acts() -> None:
    """Nor does what they call: the modules of torra/tools name no other room that could."""
    for name, path in floors.MODULES.items():
        if name.startswith("torra/tools"):
            for imported in floors.imports(path, name):
                place = imported.replace(".", "/")
                assert not place.startswith(FORBIDDEN), f"{name} imports {imported}"
            text = path.read_text(encoding="utf-8")
            assert "import_module" not in text and "subprocess" not in text


def test_no_text_of_a_stranger_comes_back(world: World, scaled: Scale) -> None:
    """Headlines, notes, lessons, agents' and brokers' words: a hundred each."""
    count = scaled(100, least=12)
    hostile = [text.encode("utf-8", "replace").decode() for text in TEXTS.values()][:count]
    texts = [f"zq{number} {text} zq" for number, text in enumerate(hostile)]
    audit = world.audit
    (key,) = audit.column("SELECT torra_key FROM chains ORDER BY close_time DESC LIMIT 1")
    sids = audit.column("SELECT sid FROM signals WHERE state = 'CLOSED' AND kind = 'open'")
    with audit.transaction():
        news = []
        for number, text in enumerate(texts):
            audit.change(
                "INSERT INTO news VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0.5, ?, ?)",
                f"h{number}", text, text, text, text, text, text, "2021-01-01T00:00:00Z",
                "2021-01-01T00:00:00Z", text, "2021-01-01T00:00:00Z",
            )  # fmt: skip
            news.append({"id": f"h{number}", "age_hours": 1.0, "weight": 0.5})
        record = audit.record(key) | {
            "news": {
                "status": "available", "unique": 3, "score": 0.5, "events": {},
                "items": news, "fundamentals": {}, "fundamentals_status": "off",
            },
            "notes": dict.fromkeys(("momentum",), texts[0]),
        }  # fmt: skip
        audit.change("UPDATE journal SET record = ? WHERE torra_key = ?", json.dumps(record), key)
        sql = "SELECT agent_deliberation FROM sentiment WHERE torra_key = ?"
        debate = json.loads(audit.value(sql, key))
        for report in debate["reports"]:
            report |= {"claim": texts[1], "reasoning": texts[2], "key_points": texts[:3]}
            for point in (*report["points_for"], *report["points_against"]):
                point |= {"says": texts[4], "why": texts[5]}
        sql = "UPDATE sentiment SET agent_deliberation = ? WHERE torra_key = ?"
        audit.change(sql, json.dumps(debate), key)
        audit.change("UPDATE signals SET close_reason = ?, detail = ?", texts[6], texts[7])
        for sid, text in zip(sids, texts * len(sids), strict=False):
            note_table.write_trade_note(audit, sid, text, ["tag"], revision=0, actor="a person")
    results = run(world, *every_call(), *every_call(timeframe="M15"))
    said = json.dumps([result.model_dump() for result in results]) + "".join(
        text_for_model(result) for result in results
    )
    assert "zq" not in said
    headlines = facts(world, "fetch_headlines", symbol="BTCUSD")
    assert len(headlines) == len(texts) or audit.value("SELECT ? NOT LIKE '%|M15|%'", key)
