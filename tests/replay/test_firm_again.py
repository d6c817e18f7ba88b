"""A firm's ticks run again to the bit: manager, trader and decline; what was altered is named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import pytest

from agents.contracts import WINNERS, Completion, ModelUnavailable, Request
from instance_database import Database, TickKey
from tests.doubles import scripted
from tests.worlds import journals
from tests.worlds.journals import again, change
from torra.clock import duration
from torra.replay.rerun.differences import TickDiffers
from torra.replay.rerun.journal_replay import Comparison
from torra.store import replay_queries

FIRM: Final = {"mode": "firm", "second_look": "never", "escalation": {"at": 0.2}}
COUNTS: Final = {**FIRM, "influence": "full"}
PARTS: Final = (
    {"thresholds": {"buy": 0.05, "sell": 0.05}, "agents": COUNTS},
    {"execution": "approve", "agents": {**COUNTS, "escalation": {"when": "pivotal"}}},
    {"agents": FIRM},
    {"execution": "approve", "agents": COUNTS},
)
"""A firm that trades, that asks a person, that has yet to earn its influence, and that asks again.

Where a person is asked nothing is held, so the trader is asked again and again.
"""


class Divided(journals.Moody):
    """Moody, but its gate vetoes two of five, and its trader has moods of its own."""

    TRADER: Final = {"makes": 5, "declines": 4, "garbage": 1, "timeout": 1, "error": 1}

    def chance(self, request: Request) -> random.Random:
        """Not by the prompt, which quotes marks of fences: the same in every life."""
        values = [feature.value for feature in request.features.values()]
        return random.Random(f"{request.role.id} {values}")

    def submit(self, request: Request) -> Future[Completion]:
        chance, kind = self.chance(request), request.role.kind
        if kind == "gate" and chance.random() < 0.6:
            return immediately(journals.said(scripted.ruling(request, multiplier=0.8)))
        if kind != "trader":
            return super().submit(request)
        mood = chance.choices([*self.TRADER], [*self.TRADER.values()])[0]
        if mood == "garbage":
            return immediately(journals.said("}{"))
        if mood in ("timeout", "error"):
            return immediately(ModelUnavailable(mood))
        thesis = scripted.thesis(request, decline=mood == "declines", reason_code="WEAK_CASE")
        return immediately(journals.said(thesis))


def immediately(answer: Completion | ModelUnavailable) -> Future[Completion]:
    future: Future[Completion] = Future()
    if isinstance(answer, ModelUnavailable):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]) -> Path:
    """The file of a firm that lived through much."""
    folder = tmp_path_factory.mktemp("firm")
    journals.live(folder, scaled(500, 32), Divided(), parts=PARTS).close()
    return folder / "torra.db"


def debates(source: Database) -> dict[str, dict[str, Any]]:
    """Return what was said on each tick, by its key."""
    sql = (
        "SELECT c.torra_key AS key, s.agent_deliberation AS said FROM chains c "
        "JOIN sentiment s ON s.id = c.sentiment_id ORDER BY s.id"
    )
    return {row["key"]: json.loads(row["said"]) for row in source.connection().query(sql)}


def asked(source: Database) -> dict[str, dict[str, Any]]:
    """Return what the trader was asked and said on those ticks on which it was asked."""
    found = debates(source).items()
    return {key: said["consulted"] for key, said in found if "consulted" in said}


def a_thesis(source: Database, *, declined: bool) -> str:
    """Return the last tick whose trader answered so."""
    answered = {key: told["report"] for key, told in asked(source).items() if told["report"]}
    return [k for k, told in answered.items() if bool(told.get("declined")) is declined][-1]


def alone(record: Mapping[str, Any]) -> bool:
    """Tell whether a tick was the first of its close, and no signal took a step during it."""
    before = record["before"]
    return "looked" not in before and before["signal_event"] == record["desk"]["signal_event"]


def alter_reply(source: Database, key: str, role: str, **changes: Any) -> None:
    sql = "SELECT reply FROM calls WHERE torra_key = ? AND role = ? AND status = 'ok'"
    text = next(source.connection().query(sql, (key, role)))["reply"]
    change(
        source,
        "UPDATE calls SET reply = ? WHERE torra_key = ? AND role = ? AND status = 'ok'",
        json.dumps({**json.loads(text), **changes}), key, role,
    )  # fmt: skip


def alter_record(source: Database, key: str, place: str, value: object) -> None:
    sql = "UPDATE journal SET record = json_set(record, ?, json(?)) WHERE torra_key = ?"
    change(source, sql, place, json.dumps(value), key)


def why(source: Database, found: Comparison) -> tuple[str, str]:
    """Return which digest fails, and the place of the first difference."""
    assert found.state == "different"
    told = TickDiffers.of(source, found)
    return told.cause, told.field


# --- the same again -------------------------------------------------------------------------------


@pytest.mark.journey
def test_the_source_is_a_firm_that_lived_through_much(source: Database) -> None:
    """Without this the replay below would prove little."""
    told, records = (
        debates(source),
        [replay_queries.journal_row(source, key)[0] for key in debates(source)],
    )
    flags = {flag.partition(":")[0] for said in told.values() for flag in said["flags"]}
    assert flags >= {"shadow", "no_thesis"}
    assert {said["source_type"] for said in told.values()} >= {"AGENT_FIRM", "AGENT_PARTIAL"}
    assert {one["tier"] for one in asked(source).values()} == {"deep", "chief"}
    assert {record["reason"] for record in records} >= {"TRADER_DECLINED", "GATE_VETO", "VERDICT"}
    assert any(record["company"]["held"] for record in records)
    assert any(record["company"]["latched"] for record in records)
    assert any(record["together"] for record in records)
    reports = [report for said in told.values() for report in said["reports"]]
    assert {report["winner"] for report in reports if "winner" in report} == {*WINNERS}


def test_every_tick_of_a_firm_runs_again_to_the_same_record(
    source: Database, tmp_path: Path, scaled: Callable[..., int]
) -> None:
    sql = "SELECT record FROM journal"
    records = [json.loads(row["record"]) for row in source.connection().query(sql)]
    pairs = [(r["company"]["latched"], r["before"]["latches"]) for r in records if r.get("company")]
    assert any(foreseen != stood for foreseen, stood in pairs), "no close moved a latch by itself"
    found = again(source, tmp_path).values()
    assert len(found) >= scaled(500, 32)
    assert [(one.key, dict(one.differences)) for one in found if one.state != "same"] == []
    assert not any(one.misses for one in found)


# --- what was altered -----------------------------------------------------------------------------


def test_an_altered_thesis_is_named(source: Database, tmp_path: Path) -> None:
    key = a_thesis(source, declined=True)
    alter_reply(source, key, "trader", decline=False, reason_code="NONE")
    found = again(source, tmp_path, key)[key]
    assert why(source, found)[0] == "unknown" and "debate.consulted" in found.differences


def test_an_altered_state_is_named(source: Database, tmp_path: Path) -> None:
    """Also on a tick whose trader would not have been asked anyway."""
    records = {key: replay_queries.journal_row(source, key)[0] for key in debates(source)}
    first, *_, last = [key for key, record in records.items() if alone(record)]
    for key, place, value in ((first, "held", ["LONG", "FILLED"]), (last, "latched", ["SELL"])):
        alter_record(source, key, f"$.company.{place}", value)
        kind, what = why(source, again(source, tmp_path / place, key)[key])
        assert kind == "unknown" and what.startswith(f"company.{place}")


def test_an_altered_escalation_is_named(source: Database, tmp_path: Path) -> None:
    key = a_thesis(source, declined=False)
    digest = replay_queries.journal_row(source, key)[0]["profile"]
    change(
        source,
        "UPDATE trading_config SET profile = json_set(profile, '$.agents.escalation.at', 0.91) "
        "WHERE id = (SELECT max(id) FROM trading_config WHERE digest = ? AND instance = ?)",
        digest, key.partition("|")[0],
    )  # fmt: skip
    assert why(source, again(source, tmp_path, key)[key])[0] == "setting"


@pytest.mark.journey
@pytest.mark.parametrize("earlier", [False, True], ids=["as now", "as before there was a rule"])
def test_what_a_fault_parted_from_its_close_runs_again_the_same(
    earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: Callable[..., int]
) -> None:
    """By its elder's record; an older one, by what the elder left, is no altered one."""
    parted: set[str] = set()
    finish = Database.finish_tick

    def fails_once(database: Database, key: TickKey) -> None:
        if key.timeframe == "M15" and key.text not in parted:
            elder = TickKey(key.instance, "H1", key.close_time - duration("H1"))
            if key.timeframe in database.record(elder.text).get("together", ()):
                parted.add(key.text)
                raise RuntimeError("as good as a death")
        finish(database, key)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "finish_tick", fails_once)
        if earlier:
            patched.setattr(Database, "_same_close_records", lambda *_: {})
        journals.live(tmp_path, scaled(200, 48), Divided(), parts=PARTS[:1]).close()
    with journals.copied(tmp_path / "torra.db", tmp_path / "source") as source:
        ran = again(source, tmp_path / "again")
    assert parted & ran.keys()
    for key in parted & ran.keys():
        assert ran[key].state == "same", (key, ran[key].differences)
