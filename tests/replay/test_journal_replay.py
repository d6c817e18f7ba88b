"""A journalled tick runs again exactly; what its journal cannot answer is a counted miss."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import scoring_rubric
from agent_config import AgentSettings
from agents import registry
from agents.contracts import AgentReport, ModelUnavailable, Role
from agents.registry import AGENTS, Agent
from instance_database import Database
from tests.doubles import scripted
from tests.worlds import busy_desk, desks, journals
from tests.worlds.hands import SOMEBODY, hand_on
from tests.worlds.journals import change
from torra.chart import renderer as chart_renderer
from torra.clock import Simulated
from torra.config import ROOT, Profile, validate
from torra.errors import ConfigError
from torra.replay.rerun.inputs_then import EXECUTION, digest_of, profile_then
from torra.replay.rerun.journal_replay import Comparison, replay
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store import bars as bar_table
from torra.store import replay_queries
from torra.store.replay_queries import StoredDebate
from torra.tick import debate as tick_debate
from torra.tick.debate import Payer
from torra.tick.degradation import DegradationLevel
from torra.tick.tick_record import JournalRecord
from torra.trading import hand_close

PROCESSES = 3
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]) -> Path:
    """The file of a desk that lived through much."""
    folder = tmp_path_factory.mktemp("lived")
    journals.live(folder, scaled(1000, 40)).close()
    return folder / "torra.db"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a desk whose models always answered well."""
    folder = tmp_path_factory.mktemp("plain")
    journals.live(folder, 8, scripted.Scripted(), plain=True).close()
    return folder / "torra.db"


@pytest.fixture
def plain(answered: Path, tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "plain").mkdir()
    shutil.copy(answered, tmp_path / "plain" / "torra.db")
    database = desks.open_database(tmp_path / "plain")
    yield database
    database.close()


def again(
    source: Database, folder: Path, limit: int | None = None, **how: object
) -> list[Comparison]:
    into = desks.open_database(folder)
    found = list(replay(source, into, desks.BTC.id, limit=limit, **how))  # type: ignore[arg-type]
    into.close()
    return found


def misses(found: list[Comparison]) -> Counter[str]:
    return sum((Counter(item.misses) for item in found), Counter())


def rows(database: Database, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in database.connection().query(sql)]


# --- the same again -------------------------------------------------------------------------------


def test_the_source_is_a_desk_that_lived_through_much(lived: Path) -> None:
    """Without this the replays below would prove little."""
    database = desks.open_database(lived.parent)
    statuses = {row[0] for row in rows(database, "SELECT DISTINCT status FROM calls")}
    assert statuses >= {"ok", "error", "garbage", "timeout"}
    assert len(rows(database, "SELECT DISTINCT instance || timeframe FROM chains")) == 3
    actions = {row[0] for row in rows(database, "SELECT DISTINCT action FROM journal")}
    assert actions >= {"HOLD", "OPEN_BUY"} and actions & {"REVERSE", "CLOSE", "OPEN_SELL"}
    assert rows(database, "SELECT 1 FROM signals WHERE state = 'CLOSED'")
    assert rows(database, "SELECT 1 FROM bars WHERE revision > 0")
    ages = (
        "SELECT json_extract(f.value, '$.value') AS age FROM journal j, "
        "json_each(j.record, '$.features') f WHERE json_extract(f.value, '$.id') = 'market.bar_age'"
    )
    assert len({age for (age,) in rows(database, ages)}) > 2
    assert len(rows(database, "SELECT DISTINCT json_extract(record, '$.profile') FROM journal")) > 2
    halted = "json_extract(record, '$.desk.trading_state') = 'HALTED'"
    overtaken = "json_extract(record, '$.execution') = 'off'"
    debated = "json_extract(record, '$.now') < json_extract(record, '$.desk.decided')"
    for what in (halted, overtaken, debated):
        assert rows(database, f"SELECT 1 FROM journal WHERE {what}"), what
    database.close()


@pytest.mark.journey
def test_every_tick_is_the_same_in_every_process(
    lived: Path, tmp_path: Path, scaled: Callable[..., int]
) -> None:
    """In this one and in others, whose sets and dictionaries of hashes have another order."""

    def start(number: int) -> subprocess.Popen[bytes]:
        into = tmp_path / f"into {number}"
        into.mkdir()
        return subprocess.Popen(
            [sys.executable, "-m", "tests.worlds.journals", str(lived), str(into)],
            cwd=ROOT, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": str(number * 1009)},
        )  # fmt: skip

    processes = [start(number) for number in range(scaled(PROCESSES))]
    (tmp_path / "here").mkdir()
    database = desks.open_database(lived.parent)
    here = [json.dumps(asdict(one)) for one in journals.lines(database, tmp_path / "here")]
    for process in processes:
        there = process.communicate()[0].decode().splitlines()
        assert there == here, "the processes differ"
    found = [json.loads(line) for line in here]
    journalled = {key for (key,) in rows(database, "SELECT torra_key FROM journal")}
    made = rows(database, "SELECT count(*) FROM calls")[0][0]
    paid = rows(database, "SELECT sum(cost_usd) FROM journal")[0][0]
    database.close()
    assert {item["key"] for item in found} == journalled
    wrong = [item for item in found if item["state"] != "same" or item["misses"]]
    assert not wrong, wrong[0]
    assert sum(item["answered"] for item in found) == made
    assert sum(item["cost_usd"] for item in found) == pytest.approx(paid)


@pytest.mark.journey
def test_a_replay_may_start_in_the_middle(source: Database, tmp_path: Path) -> None:
    """With the chains, positions, latches and the paper cursor of that moment."""
    keys = replay_queries.journalled(source, "BTCUSD")
    records = [replay_queries.journal_row(source, key)[0] for key in keys]
    held = [len(keys) - at for at, told in enumerate(records) if told["reason"] == "POSITION_HELD"]
    opened = [len(keys) - at - 1 for at, told in enumerate(records) if told["signals"]]
    starts = sorted({*held[:: len(held) // 2 or 1], *opened[:3], *opened[-1:]} - {0})
    assert len(starts) >= 4
    for limit in starts:
        event = records[-limit]["before"]["signal_event"]
        for row in replay_queries.state_before(source, "BTCUSD", keys[-limit], event, 1)["signals"]:
            assert (row["price"] is not None) == (row["state"] in {"FILLED", "CLOSED"})
            assert (row["profit"] is not None) == (row["state"] == "CLOSED")
        into = desks.open_database(tmp_path / str(limit))
        for found in itertools.islice(replay(source, into, desks.BTC.id, limit=limit), 3):
            assert (found.state, found.misses) == ("same", {}), found
        into.close()


def test_a_replay_leaves_its_source_alone(source: Database, tmp_path: Path) -> None:
    before = list(source.connection().conn.iterdump())
    again(source, tmp_path / "into", limit=4)
    assert list(source.connection().conn.iterdump()) == before


def test_a_database_that_knows_the_instance_is_refused(source: Database, tmp_path: Path) -> None:
    again(source, tmp_path / "into", limit=1)
    with pytest.raises(ValueError, match="holds ticks of BTCUSD"):
        again(source, tmp_path / "into", limit=1)


def test_a_profile_that_is_not_stored_is_told(source: Database, tmp_path: Path) -> None:
    key = replay_queries.journalled(source, "BTCUSD")[-1]
    used = replay_queries.journal_row(source, key)[0]["profile"]
    assert change(source, "DELETE FROM trading_config WHERE digest = ?", used)
    (found,) = again(source, tmp_path / "into", limit=1)
    assert (found.state, found.detail) == ("no_profile", f"its profile {used} is not stored")


def test_a_setting_that_has_come_since_changes_nothing(source: Database, tmp_path: Path) -> None:
    """The digest is that of the text of then: a profile of today has other bytes."""
    for row in replay_queries.profiles_of(source, "BTCUSD"):
        told = json.loads(row["profile"])
        told["gate"].pop("max_spread_atr")
        text = json.dumps(told, separators=(",", ":"))
        change(source, "UPDATE trading_config SET profile = ?, digest = ? WHERE digest = ?",
               text, digest_of(text), row["digest"])  # fmt: skip
        # An overtaken tick ran with execution off, and names the profile so changed.
        for switch in ('"execution":"auto"', '"execution":"off"'):
            then, now = (EXECUTION.sub(switch, one) for one in (row["profile"], text))
            change(
                source,
                "UPDATE journal SET record = json_set(record, '$.profile', ?) "
                "WHERE json_extract(record, '$.profile') = ?",
                digest_of(now), digest_of(then),
            )  # fmt: skip
    found = again(source, tmp_path / "into", limit=4)
    assert [(item.state, dict(item.differences)) for item in found] == [("same", {})] * 4
    rows = [
        replay_queries.journal_row(source, key)
        for key in replay_queries.journalled(source, "BTCUSD")
    ]
    silent = [(record, at) for record, at in rows if record["execution"] == "off"]
    assert silent
    for record, at in silent:
        ran = profile_then(source, "BTCUSD", record["profile"], "off", at)
        assert (ran.profile.execution, ran.altered) == ("off", "")


def test_a_tick_on_which_nobody_was_asked_asks_nobody(tmp_path: Path, plain: Database) -> None:
    key = replay_queries.journalled(plain, "BTCUSD")[-1]
    told = json.dumps({"stages": [], "calls": [], "flags": ["not_asked"]})
    change(plain, "UPDATE sentiment SET agent_deliberation = ? WHERE torra_key = ?", told, key)
    record, _ = replay_queries.journal_row(plain, key)
    told = json.dumps({**record, "source_type": "L1_ONLY"})
    change(plain, "UPDATE journal SET record = ? WHERE torra_key = ?", told, key)
    (found,) = again(plain, tmp_path / "into", limit=1)
    assert (found.answered, found.misses) == (0, {})
    assert found.record is not None and found.record["source_type"] == "L1_ONLY"


def test_a_tick_that_nobody_could_pay_is_the_same(tmp_path: Path) -> None:
    class Unpaid:
        def degradation_level(
            self, settings: AgentSettings, *_: object, **__: object
        ) -> DegradationLevel:
            return DegradationLevel(settings, "L1_ONLY", calls_models=False)

    desk = busy_desk.run(
        tmp_path / "desk", scripted.Scripted(), "full", 4, account=Unpaid()
    )  # fmt: skip
    flags = "json_extract(agent_deliberation, '$.flags[0]')"
    assert rows(desk.database, f"SELECT DISTINCT {flags} FROM sentiment") == [("budget",)]
    found = again(desk.database, tmp_path / "into")
    assert {(one.state, one.answered) for one in found} == {("same", 0)} and not misses(found)
    desk.database.close()


# --- a miss is a miss -----------------------------------------------------------------------------


@pytest.mark.journey
def test_a_changed_prompt_is_a_miss_wherever_it_is_shown(
    plain: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What everybody is told has changed: no answer counts, L1 stands alone."""
    monkeypatch.setattr(scoring_rubric, "SHARED_PREFIX", scoring_rubric.SHARED_PREFIX + "Hello.\n")
    found = again(plain, tmp_path / "into")
    assert found and all(item.answered == 0 for item in found)
    for item in found:
        assert item.state == "different"
        assert item.misses == {"other request": 3, "no row": 1}, "analyst, both sides, the scorer"
        assert item.record is not None and item.record["source_type"] == "L1_ONLY"
        assert item.record["agents"] == item.record["l1"]


def test_a_role_whose_prompt_changed_misses_and_so_does_who_reads_it(
    plain: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = registry.seat(replace(AGENTS["bull_researcher"].role, task="Say nothing."))
    monkeypatch.setitem(cast(dict[str, Agent], AGENTS), "bull_researcher", changed)
    (found,) = again(plain, tmp_path / "into", limit=1)
    assert found.misses == {"other request": 2}, "the bull, and the gate that does not hear it"
    assert found.answered == 2


@pytest.mark.journey
def test_an_answer_of_another_tick_is_never_used(source: Database, tmp_path: Path) -> None:
    """All that other ticks were answered is changed: this one does not notice."""
    key = replay_queries.journalled(source, "BTCUSD")[-1]
    reply = json.dumps(scripted.report(value=0.3, symbol="BTCUSD"))
    sql = "UPDATE calls SET reply = ?, status = 'ok', stop_reason = 'end' WHERE torra_key <> ?"
    assert change(source, sql, reply, key)
    (found,) = again(source, tmp_path / "into", limit=1)
    assert (found.state, found.misses) == ("same", {})


def test_pruned_ticks_are_left_out_and_later_ones_are_the_same(
    source: Database, tmp_path: Path
) -> None:
    keys = replay_queries.journalled(source, "BTCUSD")
    old = keys[:-8]
    for key in old:
        change(source, "UPDATE calls SET at = '2020-01-01T00:00:00Z' WHERE torra_key = ?", key)
    gone = source.prune(datetime(2021, 1, 1, tzinfo=UTC), limit=10_000)
    assert gone
    rest = len(keys) - len(old)
    found = again(source, tmp_path / "whole", limit=rest + 3)
    before, after = found[:3], found[3:]
    assert {item.state for item in before} - {"same"} == {"no_replies"}, "one asked nobody"
    assert all("too old" in item.detail for item in before if item.state != "same")
    assert {item.state for item in after} == {"same"} and not misses(after), (
        "from the store's state"
    )


# --- what cannot run again ------------------------------------------------------------------------


def test_bars_that_are_gone_are_told(source: Database, tmp_path: Path) -> None:
    record, _ = replay_queries.journal_row(source, replay_queries.journalled(source, "BTCUSD")[-1])
    sql = "DELETE FROM bars WHERE instance = ? AND timeframe = ? AND bar_time = ?"
    assert change(source, sql, "BTCUSD", record["timeframe"], record["bars"]["from"])
    (found,) = again(source, tmp_path / "into", limit=1)
    held = record["bars"]["count"]
    assert (found.state, found.detail) == ("no_bars", f"{held - 1} of its {held} bars are stored")


def test_bars_are_found_as_they_were(tmp_path: Path) -> None:
    """Whatever is changed or put in between afterwards has a higher revision than any seen."""
    database = desks.open_database(tmp_path)
    bars = desks.sample().bars("BTCUSD", "M15", desks.START, 30)
    quarter = timedelta(minutes=15)

    def stored(frame, first=0, last=29):
        database.store_bars("X", "M15", frame)
        ends = [bars.index[at].to_pydatetime() for at in (first, last)]
        revision = database.bar_revision("X", "M15", *ends)
        return (*ends, revision), frame

    holed = bars.drop(bars.index[11])
    seen = [stored(holed)]
    seen.append(stored(bars))
    for number, at in enumerate((4, 20, 4, 4, 29)):
        changed = seen[-1][1].copy()
        changed.iloc[at, 3] += 0.25 * (number + 1)
        seen.append(stored(changed))
    for place, frame in seen:
        found = bar_table.bars_then(database, "X", "M15", *place)
        assert found.to_numpy().tolist() == frame.to_numpy().tolist()
        assert list(found.index) == list(frame.index)
    revisions = [place[2] for place, _ in seen]
    assert revisions == sorted(set(revisions)), "every state has a number of its own"
    assert len(database.load_bars("X", "M15", as_of=bars.index[-1] + quarter)) == 30
    database.close()


@pytest.mark.journey
def test_what_the_paper_bridge_lived_through_on_a_failed_tick_comes_first(
    source: Database, tmp_path: Path
) -> None:
    keys = replay_queries.journalled(source, "BTCUSD")
    records = [replay_queries.journal_row(source, key)[0] for key in keys]

    def filled(before: dict[str, Any], following: dict[str, Any]) -> list[int]:
        steps = replay_queries.signal_steps(
            source, "BTCUSD", before["signal_event"], following["signal_event"]
        )
        # The tick's own signal, filled at the next look, cannot have been filled before it.
        own = {step["sid"] for step in steps if step["from_state"] is None}
        return [
            step["id"]
            for step in steps
            if step["to_state"] in {"FILLED", "CLOSED"} and step["sid"] not in own
        ]

    at = next(
        at
        for at, (record, after) in enumerate(itertools.pairwise(records))
        if record["before"]["path"] and filled(record["before"], after["before"])
    )
    record, before = records[at], records[at]["before"]
    lived = max(filled(before, records[at + 1]["before"]))
    moved = {"path": [], "paper_cursor": before["path"][-1][0], "signal_event": lived}
    changed = json.dumps({**record, "before": {**before, **moved}})
    change(source, "UPDATE journal SET record = ? WHERE torra_key = ?", changed, keys[at])
    into = desks.open_database(tmp_path / "into")
    rest = replay(source, into, desks.BTC.id, limit=len(keys) - at + 1)
    assert [found.state for found in itertools.islice(rest, 3)] == ["same"] * 3
    into.close()


def test_a_tick_looks_under_the_state_that_took_a_signal_back_then(
    source: Database, tmp_path: Path
) -> None:
    """A halt that came while it was debated, or after it was stored, left its look alone."""
    key = replay_queries.journalled(source, "BTCUSD")[-1]
    record, _ = replay_queries.journal_row(source, key)
    past = JournalDatabase.at(tmp_path / "torra.db")
    past.begin(source, "BTCUSD", key)
    sid = past.signals(instance="BTCUSD")[0]["sid"]
    early, moment, late = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))

    def look(at: str, decided: str, detail: str = "TRADING_HALTED", sid: str = sid) -> str:
        told = {**record, "desk": {**record["desk"], "trading_state": decided}}
        step = {"sid": sid, "detail": detail, "at": at}
        past.enter(source, JournalRecord.parse(told), Simulated(FUTURE), [step], moment)
        return past.trading_state()

    assert look(early, "ACTIVE") == "HALTED", "it ended while the tick was debated"
    assert look(early, "ACTIVE", "TRADING_REDUCING") == "REDUCING"
    assert look(late, "HALTED") == "ACTIVE", "it came later"
    assert (look(moment, "HALTED"), look(moment, "ACTIVE")) == ("HALTED", "ACTIVE")
    assert look(early, "ACTIVE", sid="of this very tick") == "ACTIVE"
    past.close()


class Leaving(scripted.Scripted):
    """Agents in the middle of whose debates a person leaves whatever there is."""

    leave: Callable[[], object] = lambda: None

    def submit(self, request: Any) -> Any:
        with suppress(ConfigError):  # nothing is held, or it is being closed
            self.leave()
        return super().submit(request)


def test_what_a_hand_did_in_the_middle_of_a_tick_is_done_again(tmp_path: Path) -> None:
    """The tick looked before it and decided after it.

    Thresholds are so near that verdicts turn often: some ticks would close what a hand is closing.
    """
    agents = Leaving()
    near = journals.a_profile(thresholds={"buy": 0.02, "sell": 0.02})
    desk = desks.open_desk(tmp_path / "lived", profile=near, provider=agents)
    desks.open_for_work(desk)
    reach = hand_on(desk.database, [desks.BTC], desk.clock.now)
    agents.leave = lambda: hand_close.close(reach, SOMEBODY, "BTCUSD")
    rows: list[dict[str, Any]] = []
    # A debate that a busy machine makes late ends otherwise, and trades otherwise from there on.
    for step in range(120):
        desks.step(desk)
        rows = desk.database.signals(limit=1000)
        if step >= 20 and any(row["detail"] == "by a person" for row in rows):
            break
    assert any(row["kind"] == "close" and row["authority"] == "person" for row in rows)
    assert any(row["detail"] == "by a person" for row in rows), "an opening was taken back"
    found = again(desk.database, tmp_path / "into")
    assert Counter(item.state for item in found) == {"same": len(found)}
    assert len(found) > 20
    desk.close()


NEWS = Role(
    id="news", title="news analyst", kind="analyst", tier="quick",
    focus={"momentum": "primary"}, needs=("news.",), evidence=("news.",),
)  # fmt: skip
"""An analyst that abstains before it asks anybody."""


@dataclass(frozen=True)
class Strict:
    """Pays for a stage or refuses it, for the reason given (torra.tick.debate.Payer)."""

    refuses: tuple[str, ...]
    reason: str
    mode: str = ""

    def degradation_level(
        self, told: AgentSettings, _agents: object = None, *, reserved_usd: float = 0.0
    ) -> DegradationLevel:
        del reserved_usd
        lower = told.model_copy(update={"mode": self.mode}) if self.mode else told
        return DegradationLevel(lower, self.mode, calls_models=True)

    def purse(self, _key: object, _told: object, submit: Any, **_: object) -> Any:
        def reserve(stage: str, _bounds: object) -> bool:
            if stage in self.refuses and self.reason != "budget":
                raise ModelUnavailable(self.reason)
            return stage not in self.refuses

        return SimpleNamespace(reserve=reserve, submit=submit, settled=lambda told: told)


def abstaining(monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Seat an analyst that abstains beside the others."""
    seat = Agent(NEWS, lambda *_: AgentReport.abstain("news", "no news evidence"))
    agents = {**AGENTS, "news": seat}
    monkeypatch.setattr(tick_debate, "AGENTS", agents)
    monkeypatch.setattr(registry, "AGENTS", agents)
    desk = ["technical", "news", "bull_researcher", "bear_researcher"]
    return validate(Profile, {"agents": {"active_agents": desk}}, "a test")


@pytest.mark.journey
@pytest.mark.parametrize("reason", ["budget", "deadline"])
@pytest.mark.parametrize(
    "refused",
    [(), ("analysts",), ("research",), ("gate",), ("analysts", "research"),
     ("analysts", "research", "fallback")],
)  # fmt: skip
def test_a_refused_stage_is_refused_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...], reason: str
) -> None:
    """Else whoever abstains without asking anybody is heard in it."""
    strict = Strict(refused, reason)
    found, then, now = once_and_again(tmp_path, monkeypatch, abstaining(monkeypatch), strict)
    assert (found.state, found.misses) == ("same", {}), found.differences
    assert set(then["failures"].values()) == ({reason} if refused else set())
    for name in ("failures", "reports", "adjustments", "source_type"):
        assert now[name] == then[name], name


def test_a_tick_on_a_lower_rung_is_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = validate(Profile, {"agents": {"mode": "full"}}, "a test")
    strict = Strict((), "budget", mode="budget")
    found, then, now = once_and_again(tmp_path, monkeypatch, profile, strict)
    assert (found.state, found.misses) == ("same", {}), found.differences
    assert "ladder:budget" in then["flags"] and now["flags"] == then["flags"]


def once_and_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, profile: Profile, strict: Strict
) -> tuple[Comparison, dict[str, Any], dict[str, Any]]:
    """Run one tick that `strict` pays for, and run it again; return both deliberations too."""
    (folder / "live").mkdir()
    desk = desks.open_desk(
        folder / "live", (desks.EUR,), profile=profile, provider=scripted.Scripted()
    )
    desks.open_for_work(desk)
    desk.database.apply_profile("EURUSD", profile.model_dump_json(), profile.digest())
    edges = desk._edges
    monkeypatch.setattr(
        desk,
        "_edges",
        lambda *told, **more: replace(edges(*told, **more), account=cast(Payer, strict)),
    )
    desks.step(desk)
    into = desks.open_database(folder)
    (found,) = replay(desk.database, into, desks.EUR.id)
    then, now = (each.latest_tick("EURUSD", "H1") for each in (desk.database, into))
    desk.database.close()
    into.close()
    return found, then["deliberation"], now["deliberation"]


def test_a_stage_was_refused_when_all_say_so_and_nobody_was_asked() -> None:
    def refused(asked: tuple[str, int, int] | None, **words: str) -> str:
        told = StoredDebate(
            calls={},
            requests=frozenset([asked] if asked else []),
            words={(role, 2): word for role, word in words.items()},
        )
        return told.refused(("bull", "bear"), 2)

    assert refused(None, bull="budget", bear="budget") == "budget"
    assert refused(None, bull="deadline", bear="deadline") == "deadline"
    assert refused(("bull", 1, 1), bull="budget", bear="budget") == "budget", "another round"
    assert refused(("bull", 2, 1), bull="budget", bear="budget") == ""
    assert refused(None, bull="budget", bear="deadline") == ""
    assert refused(None, bull="budget", bear="abstained") == ""
    assert refused(None, bull="timeout", bear="timeout") == ""
    assert refused(None, bull="budget") == "", "a role that is not told of"


def test_a_replay_shows_the_picture_of_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn anew it would be another one, and the request would not be found."""
    drawn = itertools.count()
    monkeypatch.setattr(
        chart_renderer, "render", lambda *_, **__: b"\x89PNG\r\n\x1a\n%d" % next(drawn)
    )
    voice = scripted.Scripted()
    folder = tmp_path / "seen"
    folder.mkdir()
    profile = validate(Profile, {"agents": {"picture": "rendered"}}, "a test")
    desk = desks.open_desk(folder, profile=profile, provider=voice)
    desks.open_for_work(desk)
    desk.database.apply_profile("BTCUSD", profile.model_dump_json(), profile.digest())
    for _ in range(3):
        desks.step(desk)
    into = tmp_path / "into"
    into.mkdir()
    found = again(desk.database, into)
    pictures = {request.picture for request in voice.requests if request.picture}
    desk.database.close()
    assert len(pictures) == len(found) >= 3
    assert [item.state for item in found] == ["same"] * len(found)
    assert not misses(found)
