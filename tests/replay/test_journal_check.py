"""`torra replay --journal`: three days of a desk again, to the bit; what was altered is named."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import signal_bridge
import technical_calculator
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles import scripted
from tests.worlds import desks, journals, stored_days
from torra.bridges.protocol import OrderReport
from torra.chart import renderer
from torra.clock import iso, parse
from torra.commands.command_line import main
from torra.config import Instance
from torra.home import DESK_LOCK
from torra.replay.rerun import journal_check
from torra.replay.rerun.inputs_then import LEFT
from torra.tick import record as tick_record
from torra.tick.rules_version import RULES, RULES_VERSION

KNOWN_OUTSIDE = (
    *("macro.rate_gap_change_20", "macro.slope", "cot.net_pct", "derivs.funding"),
    *("companion.euro.correlation", "company.net_margin_pct", "company.pe", "flow.ticks"),
)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Path:
    """The home of a desk that lived through three days of much.

    What was known from beside the chart is deleted: the records alone must do.
    """
    home, drawn = tmp_path_factory.mktemp("days"), itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        if not scaled.whole:  # a chart takes a fifth of a second, and runs again as it is stored
            head = b"\x89PNG\r\n\x1a\n"
            patch.setattr(renderer, "render", lambda *_, **__: head + b"%d" % next(drawn))
        stored_days.live(home, scaled(stored_days.DAYS, 12))
    forget_outside(home)
    return home


@pytest.fixture(scope="module")
def whole(days: Path) -> dict[str, Any]:
    """What the command says of all of it."""
    return checked(days)


@pytest.fixture
def home(days: Path, tmp_path: Path) -> Path:
    """A copy of it, to be altered."""
    shutil.copytree(days, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a desk of few ticks whose models answered well."""
    home = tmp_path_factory.mktemp("small")
    journals.live(home, 8, scripted.Scripted(), plain=True).close()
    return home


def torra(home: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "replay", "--journal", *words])


def checked(home: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Run the command; return what it says of each instance."""
    told = torra(home, *words, "--json")
    assert told.exit_code == code, told.output
    return {one["instance"]: one for one in json.loads(told.stdout)["instances"]}


def sql(home: Path, text: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(home / "torra.db")) as db, db:
        return db.execute(text, values).fetchall()


def forget_outside(home: Path) -> None:
    """Delete all that is stored from beside the chart, and leave the tables as Torra made them."""
    with closing(sqlite3.connect(home / "torra.db")) as db, db:
        for table in ("series", "facts", "flow"):
            guards = db.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?",
                (table,),
            ).fetchall()
            for name, _ in guards:
                db.execute(f"DROP TRIGGER {name}")
            db.execute(f"DELETE FROM {table}")
            for _, made in guards:
                db.execute(made)


def change(home: Path, text: str, *values: object) -> None:
    with closing(sqlite3.connect(home / "torra.db")) as db, db:
        assert db.execute(text, values).rowcount > 0, text


# --- all the same ---------------------------------------------------------------------------------


def test_the_desk_lived_through_much(days: Path) -> None:
    """Without this the rest would prove little."""

    def some(text: str) -> bool:
        return bool(sql(days, text))

    def words(text: str) -> set[str]:
        return {row[0] for row in sql(days, text)}

    assert words("SELECT DISTINCT json_extract(record, '$.source_type') FROM journal") >= {
        "AGENT_FULL", "AGENT_BUDGET",
    }  # fmt: skip
    assert words("SELECT DISTINCT status FROM calls") >= {"ok", "garbage", "timeout"}
    assert some("SELECT 1 FROM calls WHERE attempt > 1"), "a retry"
    assert some("SELECT 1 FROM signals WHERE kind = 'open' AND opened_at IS NOT NULL"), "a fill"
    assert some("SELECT 1 FROM proposals WHERE state = 'APPROVED'"), "an approval"
    assert some("SELECT 1 FROM ticks WHERE reason = 'missed'"), "a desk that was off"
    assert some("SELECT 1 FROM bars WHERE revision > 0"), "a bar that was corrected"
    assert some("SELECT 1 FROM pictures"), "a chart"
    assert some("SELECT 1 FROM desk_run"), "a second start"
    assert some("SELECT 1 FROM trading_config GROUP BY instance HAVING count(*) > 1")
    for what in (
        "$.news.items[0]", "$.events.to_next", "$.before.path[0]",
        *(f'$.outside.numbers."{name}"' for name in KNOWN_OUTSIDE),
    ):  # fmt: skip
        assert some(f"SELECT 1 FROM journal WHERE json_extract(record, '{what}') IS NOT NULL"), what
    for table in ("series", "facts", "flow"):
        assert not some(f"SELECT 1 FROM {table}"), "the numbers stand in the records alone"
    shadow = "json_extract(agent_deliberation, '$.flags') LIKE '%shadow%'"
    assert some(f"SELECT 1 FROM sentiment WHERE {shadow}")
    assert some("SELECT 1 FROM journal WHERE json_extract(record, '$.execution') = 'off'")


def test_every_stored_tick_is_the_same_to_the_bit(
    days: Path, whole: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    found = whole
    assert set(found) == {"BTCUSD", "FULL", "LOOKS_ON", "ASKS"}
    for one in found.values():
        assert one["different"] == 0, one["first_difference"]
        assert set(one["not_run_again"]) <= {"skipped"}
        assert one["ticks"] == one["same"] + sum(one["not_run_again"].values())
    stored = sql(days, "SELECT count(*) FROM ticks")[0][0]
    assert sum(one["ticks"] for one in found.values()) == stored, "every tick is accounted for"
    record_property("seen", f"{sum(one['same'] for one in found.values())} ticks the same")


def test_the_table_says_it_too(small: Path) -> None:
    told = torra(small)
    assert told.exit_code == 0
    assert "the same to the bit, 0 different" in told.stdout
    assert told.stdout.endswith("ticks ran again, every one the same to the bit.\n")


@pytest.mark.journey
def test_instance_timeframe_and_closes_are_chosen(small: Path) -> None:
    whole = checked(small)
    assert set(whole) == {"BTCUSD", "EURUSD"}
    closes = sorted(row[0] for row in sql(small, "SELECT close_time FROM chains"))
    hour = checked(small, "btcusd", "--timeframes", "h1")
    assert set(hour) == {"BTCUSD"} and hour["BTCUSD"]["timeframes"] == ["H1"]
    late = checked(small, "--from", closes[3], "--to", closes[-1])
    assert 0 < sum(one["ticks"] for one in late.values()) < len(closes)


def test_nothing_of_the_home_changes(small: Path) -> None:
    def held() -> dict[str, tuple[bytes, int]]:
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in small.iterdir()}

    before = held()
    assert torra(small).exit_code == 0
    assert held() == before


def test_a_home_that_cannot_be_written_is_checked(small: Path, tmp_path: Path) -> None:
    home = tmp_path / "locked"
    shutil.copytree(small, home)
    (home / "torra.db").chmod(0o444)
    home.chmod(0o555)
    try:
        assert torra(home).exit_code == 0
    finally:
        home.chmod(0o755)
    assert {path.name for path in home.iterdir()} == {"torra.db", DESK_LOCK}


def test_a_desk_may_be_at_work_beside_it(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path / "home")
    database = desks.open_database(tmp_path / "home")
    with database.transaction():
        database.set_trading_state("HALTED", "a test")
        assert torra(tmp_path / "home").exit_code == 0
    assert database.trading_state() == "HALTED"
    database.close()


# --- what was altered is named --------------------------------------------------------------------


def the_one(found: dict[str, Any], cause: str) -> dict[str, Any]:
    """Return the first difference of the one instance that differs, for one cause alone."""
    (one,) = [each for each in found.values() if each["different"]]
    assert set(one["causes"]) == {cause}, one["causes"]
    first: dict[str, Any] = one["first_difference"]
    return first


@pytest.mark.journey
def test_an_altered_reply_shows_where_it_was_heard(home: Path, scaled: Scale) -> None:
    ((key, reply),) = sql(
        home,
        "SELECT torra_key, reply FROM calls WHERE role = 'technical' AND status = 'ok' "
        "AND torra_key LIKE 'BTCUSD|%' AND json_extract(reply, '$.abstained') = 0 "
        "ORDER BY rowid DESC LIMIT 1",
    )
    words = {**json.loads(reply), "confidence": "low", "claim": "What it never said in 1 tick."}
    text = "UPDATE calls SET reply = ? WHERE torra_key = ? AND role = 'technical' AND status = 'ok'"
    change(home, text, json.dumps(words), key)
    ((close,),) = sql(home, "SELECT close_time FROM chains WHERE torra_key = ?", key)
    since = () if scaled.whole else ("--from", close)
    found = checked(home, "BTCUSD", *since, code=1)
    first = the_one(found, "unknown")
    assert (first["key"], found["BTCUSD"]["different"]) == (key, 1), "no later tick differs for it"
    told = torra(home, "BTCUSD", "--from", close)
    assert told.exit_code == 1 and "1 no digest fails\n" in told.stdout
    assert f"first difference: {key}, {first['field']}: " in told.stdout


@pytest.mark.journey
def test_an_altered_bar_is_told_from_the_tick_that_saw_it_first(home: Path, scaled: Scale) -> None:
    ((time,),) = sql(
        home,
        "SELECT bar_time FROM bars b WHERE instance = 'BTCUSD' AND timeframe = 'M15' "
        "AND revision = 0 AND bar_time IN (SELECT bar_time FROM chains WHERE instance = 'BTCUSD' "
        "AND timeframe = 'M15') AND NOT EXISTS (SELECT 1 FROM bars o WHERE o.instance = b.instance "
        "AND o.timeframe = b.timeframe AND o.bar_time = b.bar_time AND o.revision > 0) "
        "ORDER BY bar_time DESC LIMIT 1 OFFSET 3",
    )
    stream = "instance = 'BTCUSD' AND timeframe = 'M15' AND bar_time = ?"
    change(home, f"UPDATE bars SET volume = volume + 1 WHERE {stream}", time)
    since = () if scaled.whole else ("--from", iso(parse(time) - desks.QUARTER))
    first = the_one(checked(home, "BTCUSD", *since, code=1), "bar")
    assert (first["key"], first["field"]) == (f"BTCUSD|M15|{time}", "bars")
    assert first["detail"].endswith(f" bars up to {time} at least one was altered")


@pytest.mark.journey
def test_an_altered_setting_is_named(home: Path) -> None:
    ((number,),) = sql(home, "SELECT min(id) FROM trading_config WHERE instance = 'BTCUSD'")
    text = """UPDATE trading_config SET profile = replace(profile, '"buy":0.1', '"buy":0.9')"""
    change(home, f"{text} WHERE id = ?", number)
    found = checked(home, "BTCUSD", code=1)
    first = the_one(found, "setting")
    assert (first["field"], first["then"], first["now"]) == ("thresholds.buy", 0.1, 0.9)
    assert found["BTCUSD"]["same"] > 0, "the ticks of the other profile"


def test_an_altered_chart_is_named(home: Path) -> None:
    ((name,),) = sql(home, "SELECT hash FROM pictures LIMIT 1")
    change(home, "UPDATE pictures SET data = x'00' WHERE hash = ?", name)
    the_one(checked(home, "LOOKS_ON", code=1), "chart")


def test_an_altered_headline_shows(home: Path, scaled: Scale) -> None:
    change(home, "UPDATE news SET headline = 'Bitcoin is no more' WHERE headline LIKE '%hour 0'")
    upto = () if scaled.whole else ("--to", iso(desks.START + 4 * desks.QUARTER))
    first = the_one(checked(home, "FULL", *upto, code=1), "unknown")
    assert first["field"].startswith("features.news.") and first["now"] == "Bitcoin is no more"


@pytest.mark.parametrize(
    ("text", "cause", "place"),
    [
        pytest.param(
            "UPDATE journal SET record = json_set(record, '$.consensus', 0.5) WHERE torra_key = ?",
            "unknown", "consensus", marks=pytest.mark.journey,
        ),
        pytest.param(
            "UPDATE chains SET composite = 0.5, consensus = 0.5 WHERE torra_key = ?",
            "unknown", "chains.composite", marks=pytest.mark.journey,
        ),
        pytest.param(
            "UPDATE sentiment SET verdict = 'SELL', momentum = 0.9 WHERE torra_key = ?",
            "unknown", "sentiment.momentum", marks=pytest.mark.journey,
        ),
        (
            "UPDATE journal SET record = json_set(record, '$.ath_price', 1e6) WHERE torra_key = ?",
            "unknown", "ath",
        ),
        (
            "UPDATE journal SET record = json_set(record, '$.bars.hash', 'x') WHERE torra_key = ?",
            "bar", "bars",
        ),
        (
            "DELETE FROM calls WHERE torra_key = ? AND role = 'bull_researcher'",
            "unknown", "agents.price_action",
        ),
        *(
            pytest.param(
                f"UPDATE journal SET record = '{record}' WHERE torra_key = ?", "record", "record",
                marks=marks,
            )
            for record, marks in (
                ("", ()), ("null", pytest.mark.nightly), ("[]", ()), ("{", pytest.mark.nightly),
                (json.dumps({"versions": {"rules": str(RULES_VERSION)}, "now": 1}), ()),
            )
        ),
    ],
)  # fmt: skip
def test_what_was_altered_is_named_and_no_later_tick_differs(
    small: Path, tmp_path: Path, text: str, cause: str, place: str
) -> None:
    """A record that is none is one difference and no traceback."""
    shutil.copytree(small, tmp_path / "home")
    ((key,),) = sql(small, "SELECT torra_key FROM chains ORDER BY sentiment_id LIMIT 1 OFFSET 2")
    change(tmp_path / "home", text, key)
    found = checked(tmp_path / "home", code=1)
    first = the_one(found, cause)
    assert (first["key"], first["field"]) == (key, place)
    assert sum(one["different"] for one in found.values()) == 1


@pytest.mark.journey
def test_an_altered_trade_is_named(home: Path) -> None:
    ((sid,),) = sql(
        home, "SELECT sid FROM signals WHERE instance = 'BTCUSD' AND price IS NOT NULL LIMIT 1"
    )
    change(home, "UPDATE signals SET price = price + 1 WHERE sid = ?", sid)
    first = the_one(checked(home, "BTCUSD", code=1), "unknown")
    assert first["field"] == f"fills.{sid}.price"


def test_a_setting_that_cannot_be_read_is_named(small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path / "home")
    change(tmp_path / "home", "UPDATE trading_config SET profile = 'x' WHERE instance = 'EURUSD'")
    assert the_one(checked(tmp_path / "home", code=1), "setting")["field"] == "profile"


@pytest.mark.journey
def test_a_program_that_computes_otherwise_shows(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side: without an altered byte; and libraries of another version are named."""
    whole = technical_calculator.score_frame

    def other(frame: Any) -> Any:
        scored = whole(frame)
        scored["momentum"] += 1e-12
        return scored

    monkeypatch.setattr(technical_calculator, "score_frame", other)
    found = checked(small, code=1)
    assert {one["same"] for one in found.values()} == {0}
    assert found["EURUSD"]["first_difference"]["field"] == "l1.momentum"
    monkeypatch.setattr(
        "torra.replay.rerun.differences.versions",
        lambda: {**tick_record.versions(), "numpy": "0.1"},
    )
    assert "library" in checked(small, "EURUSD", code=1)["EURUSD"]["causes"]


# --- what is not run again ------------------------------------------------------------------------


@pytest.mark.journey
def test_ticks_of_other_rules_are_told_and_counted(small: Path, tmp_path: Path) -> None:
    """And those after them go on from what the desk had stored."""
    home = tmp_path / "home"
    shutil.copytree(small, home)
    (first,) = sql(home, "SELECT torra_key FROM chains ORDER BY sentiment_id LIMIT 1")
    change(
        home, "UPDATE journal SET record = json_set(record, '$.versions.rules', '0') "
        "WHERE torra_key = ?", *first,
    )  # fmt: skip
    found = checked(home)
    left = [pair for one in found.values() for pair in one["not_run_again"].items()]
    assert left == [("other_rules", 1)]
    assert {"0": 1} in [one["versions"] for one in found.values()]
    told = torra(home).stdout
    assert f"(version 0 1; this is {RULES_VERSION}: {RULES[RULES_VERSION]})" in told


def test_pruned_replies_and_headlines_are_counted(home: Path) -> None:
    ((key,),) = sql(home, "SELECT torra_key FROM calls WHERE torra_key LIKE 'FULL|%' LIMIT 1")
    change(home, "DELETE FROM calls WHERE torra_key = ?", key)
    change(home, "DELETE FROM news WHERE headline LIKE '%hour 0'")
    left = checked(home, "FULL")["FULL"]["not_run_again"]
    assert left["no_replies"] == 1 and left["no_news"] > 0


@pytest.mark.journey
def test_skipped_ticks_are_counted_by_their_reason(days: Path, whole: dict[str, Any]) -> None:
    stored = dict(
        sql(days, "SELECT reason, count(*) FROM ticks WHERE state = 'skipped' GROUP BY reason")
    )
    assert stored["missed"] > 0
    told: dict[str, int] = {}
    for one in whole.values():
        for reason, number in one["skipped"].items():
            told[reason] = told.get(reason, 0) + number
    assert told == stored


# --- bad input ------------------------------------------------------------------------------------


@cases(
    ("words", "said"),
    [
        (("XAUUSD",), "the desk has no tick of XAUUSD; it has ticks of BTCUSD, EURUSD"),
        (("--timeframes", "D1"), "no stored tick is of that timeframe and time"),
        (("--from", "2030-01-01"), "no stored tick is of that timeframe and time"),
        (("--from", "soon"), "--from soon: write a UTC time"),
        (("--bars", "store"), "--timeframes, --from, --to and --json, not --bars"),
        (("--arms", "l1"), "--journal takes SYMBOL, --timeframes, --from, --to and --json"),
    ],
)
def test_bad_input_is_one_line(small: Path, words: tuple[str, ...], said: str) -> None:
    told = torra(small, *words)
    assert told.exit_code == 2 and said in told.stderr and told.stdout == ""


def test_an_empty_desk_is_said(tmp_path: Path) -> None:
    told = torra(tmp_path / "nowhere")
    assert told.exit_code == 2 and "no desk has run in " in told.stderr
    assert not (tmp_path / "nowhere").exists()
    desks.open_database(tmp_path / "new").close()
    told = torra(tmp_path / "new")
    assert told.exit_code == 2 and "has run no tick yet" in told.stderr
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "torra.db").write_bytes(b"no database, but a text of some length" * 99)
    assert torra(tmp_path / "bad").exit_code == 2


def test_a_replay_without_a_symbol_is_refused(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["--home", str(tmp_path), "replay"])
    assert told.exit_code == 2 and "name a symbol" in told.stderr


# --- the way to a broker --------------------------------------------------------------------------


class Broker:
    """A route whose broker fills at once, and stops every position out two bars later."""

    def __init__(self, database: Any, clock: Any) -> None:
        self.database = database
        self.clock = clock

    def settle(self, instance: str) -> None:
        for row in self.database.signals(("PUBLISHED", "FILLED"), instance):
            now = self.clock.now()
            if row["state"] == "PUBLISHED":
                priced = row if row["kind"] == "open" else self.database.signal(row["closes"])
                fill = {"price": priced["entry"], "volume": row["lots"], "deal": "7"}
                report = OrderReport(row["sid"], "FILLED", at=now, **fill)
                signal_bridge.apply_report(self.database, report)
            elif row["kind"] == "open" and now >= parse(row["opened_at"]) + timedelta(minutes=45):
                self.database.close_position(
                    row["sid"], price=90.0, time=now, profit=-10.0, r_multiple=-1.0,
                    reason="STOPPED",
                )  # fmt: skip

    def send(self, instance: str) -> None:
        for row in self.database.signals(("PENDING",), instance):
            self.database.move_signal(row["sid"], "PUBLISHED")

    def figures(self, instance: str) -> dict[str, Any]:
        del instance
        return {"clock_ok": True, "free_margin": 1e6, "leverage": 100.0, "market_open": True}


@pytest.mark.journey
def test_ticks_of_a_bridge_to_a_broker_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the broker did between the ticks is taken from the books."""
    instance = Instance(
        symbol="BTCUSD", timeframes=("M15", "H1"), feed="store", bridge="torra_files"
    )
    profile = journals.a_profile(on_opposite="close")
    desk = desks.open_desk(
        tmp_path, (instance,), profile=profile, provider=scripted.Scripted()
    )  # fmt: skip
    desks.open_for_work(desk)
    desk.database.apply_profile("BTCUSD", profile.model_dump_json(), profile.digest())
    edges = desk._edges
    broker = Broker(desk.database, desk.clock)
    monkeypatch.setattr(
        desk, "_edges", lambda *told, **more: replace(edges(*told, **more), route=broker)
    )
    for _ in range(14):
        desks.step(desk)
    desk.database.close()
    assert sql(tmp_path, "SELECT 1 FROM signals WHERE state = 'CLOSED'")
    held = "json_extract(record, '$.reason') = 'POSITION_HELD'"
    assert sql(tmp_path, f"SELECT 1 FROM journal WHERE {held}")
    found = checked(tmp_path)
    assert found["BTCUSD"]["different"] == 0, found["BTCUSD"]["first_difference"]
    assert found["BTCUSD"]["same"] > 14


def test_every_reason_has_its_words() -> None:
    assert set(journal_check.WHY_LEFT) >= set(LEFT)
