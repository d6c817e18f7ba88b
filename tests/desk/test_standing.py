"""Agents that have to earn their influence: what a desk counts, when it looks, what it notes."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from click.testing import CliRunner

from agent_config import GateSettings
from agents.contracts import VECTORS
from instance_database import Database
from tests.cases import cases
from tests.conftest import Scale
from tests.worlds import desks
from tests.worlds.busy_desk import go_on, run, trading
from tests.worlds.homes import desk_file, profile_file
from torra.commands import promotion as standing_commands
from torra.config import Instance, Profile, validate
from torra.dashboard.screens import health_checks
from torra.dashboard.view.health_context import HealthContext
from torra.desk import promotion
from torra.desk.promotion import Promotions, PromotionSubject, fingerprint
from torra.desk.schedule import Desk
from torra.errors import StoreUnavailable
from torra.evaluation import promotion_evidence
from torra.evaluation.promotion_rule import PromotionEvidence, PromotionStatus, Rule
from torra.providers.rules.provider import RulesProvider
from torra.replay import live
from torra.replay.rerun import trial_tick as one_tick
from torra.replay.shards.seen import tick_seen
from torra.store import audit as audit_chain
from torra.store import replay_queries
from torra.store import standings as standing_table

EARNED = trading("earned")
MARK = fingerprint(EARNED)
SHORT = Rule(looks=(20, 40), later=40, least_blocks=1, least_flips=0)
ROW: dict[str, Any] = {
    "trial": 1,
    "look": 1,
    "promoted": True,
    "reason": "promoted: told",
    "figures": {"ic": 0.1},
}
INSTANCE = {"symbol": "BTCUSD", "timeframes": ["M15", "H1"]}
BARS = 48
COUNTED = 43


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk whose agents have looked on for twelve hours."""
    desk = run(tmp_path_factory.mktemp("lived"), RulesProvider(), "earned", BARS)
    with closing(desk.database):
        yield desk


def subject(profile: Profile = EARNED) -> PromotionSubject:
    return PromotionSubject("default", profile, (desks.BTC,))


def test_a_setting_stands_as_its_newest_look_says(database: Database) -> None:
    assert promotion.standing_of(database, "f1") == (PromotionStatus(), 1)
    standing_table.write_standing(database, "other", "f2", **ROW)
    assert promotion.standing_of(database, "f1") == (PromotionStatus(), 2)
    standing_table.write_standing(database, "mine", "f1", **{**ROW, "trial": 2})
    newest = {**ROW, "trial": 2, "look": 2, "promoted": False, "reason": "not yet"}
    standing_table.write_standing(database, "mine", "f1", **newest)
    assert promotion.standing_of(database, "f1") == (PromotionStatus(False, 2, "not yet"), 2)


# --- settings ---


@cases(
    ("section", "changes", "same"),
    [
        pytest.param("agents", {"influence": "full"}, True, id="influence"),
        pytest.param("agents", {"max_api_cost_per_hour": 9.0}, True, id="ceiling"),
        pytest.param("risk", {"capital": 5.0}, True, id="capital"),
        pytest.param("agents", {"mode": "full"}, False, id="desk"),
        pytest.param("agents", {"memory": {"use": "on"}}, False, id="told of lessons"),
        pytest.param("agents", {"memory": {"notes": 1}}, True, id="notes that nobody is told"),
        pytest.param("agents", {"role_caps": {"technical": {}}}, True, id="no cap"),
        pytest.param(
            "agents", {"role_caps": {"technical": {"output_tokens": 700}}}, False, id="a cap"
        ),
        pytest.param("gate", {"disagreement_floor": 0.5}, False, id="gate"),
        pytest.param("thresholds", {"buy": 0.4}, False, id="thresholds"),
        pytest.param("sentiment_weights", {"ath": 0.2}, False, id="weights"),
        pytest.param("record_score", "high", False, id="record score"),
    ],
)
def test_a_setting_that_matters_begins_anew(section: str, changes: Any, same: bool) -> None:
    other = validate(Profile, {section: changes}, "a test")
    assert (fingerprint(other) == fingerprint(Profile())) is same


@cases("mode", ["budget", "full", "firm"])
def test_what_another_desk_may_set_leaves_the_standing_of_other_desks(mode: str) -> None:
    plain = validate(Profile, {"agents": {"mode": mode}}, "a test")
    agents = {"mode": mode, "judge_hold": "veto", "judge_close": "off", "trust": "flat"}
    gate = {"panic_percentile": 90.0, "panic_multiplier": 0.1, "crowded_percentile": 90.0,
            "liquidations_percentile": 90.0, "liquidations_multiplier": 0.1,
            "exhaustion_multiplier": 0.1}  # fmt: skip
    told = {"agents": {**agents, "standing": "on"}, "gate": gate}
    assert fingerprint(validate(Profile, told, "a test")) == fingerprint(plain)
    firm = {"escalation": {"when": "off"}, "chief_think_model": "x", "rebuttal": "never"}
    told = {"agents": {"mode": mode, **(firm if mode != "firm" else {})}}
    assert fingerprint(validate(Profile, told, "a test")) == fingerprint(plain)
    asked = validate(Profile, {"agents": {"mode": mode, "gate_call": "openings"}}, "a test")
    assert fingerprint(asked) != fingerprint(plain)


OFFICER: Final = [one for one in GateSettings.model_fields if one.startswith(promotion.OFFICERS)]


def one_by_one(agents: dict[str, Any], *changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"agents": {**agents, **more}} for more in ({}, *changes)]


@cases(
    "told",
    [
        [
            {"agents": {"memory": {"use": "on", **more}}}
            for more in ({}, {"notes": 1}, {"roles": ["technical"]}, {"embedder": "a"},
                         {"review": "model"})
        ],
        one_by_one(
            {"mode": "firm", "provider": "anthropic"},
            {"rebuttal": "always"}, {"rebuttal": "never"}, {"escalation": {"when": "off"}},
            {"escalation": {"when": "pivotal"}}, {"escalation": {"at": 0.5}},
            {"chief_think_model": "anthropic:x"}, {"deep_think_model": "anthropic:x"},
            {"role_models": {"trader": "anthropic:x"}},
            {"memory": {"roles": ["bull_researcher", "bear_researcher"]}},
        ),
        [
            *one_by_one(
                {"mode": "swarm"}, {"judge_hold": "veto"}, {"judge_close": "off"},
                {"trust": "flat"}, {"standing": "on"}, {"gate_call": "openings"},
                {"role_models": {"judge": "anthropic:x"}}, {"memory": {"roles": ["trader"]}},
            ),
            *({"agents": {"mode": "swarm"}, "gate": {n: 50.0 if "percentile" in n else 0.25}}
              for n in OFFICER),
        ],
    ],
)  # fmt: skip
def test_every_setting_that_a_desk_uses_is_part_of_what_it_is_judged_by(
    told: list[dict[str, Any]],
) -> None:
    profiles = [validate(Profile, one, "a test") for one in told]
    marks = {fingerprint(one, "rubric") for one in profiles}
    assert len(marks) == len(told) and len(OFFICER) == 6


def test_prompts_and_the_rules_own_version_are_part_of_a_setting() -> None:
    paid = validate(Profile, {"agents": {"provider": "anthropic"}}, "a test")
    assert fingerprint(paid, "9") != fingerprint(paid)
    assert fingerprint(Profile(), code="99.0") != fingerprint(Profile())
    assert fingerprint(paid, code="99.0") == fingerprint(paid), "a vendor's model is not our code"


# --- looks ---


def promotions(desk: Desk, rule: Rule = SHORT) -> Promotions:
    return Promotions(desk.database, lambda: [subject()], rule)


def passing(*_: Any) -> PromotionEvidence:
    return PromotionEvidence(20, 30, 0.2, 0.1, 0.3, 30, 0.5, -0.5, 1.0)


def test_only_ticks_of_this_setting_with_agents_and_an_outcome_count(lived: Desk) -> None:
    """Four hours are open at the end: those of the newest H1 ticks, and what came after them."""
    ticks = promotion.ticks_of(lived.database, subject())
    pool = promotion.pooled(lived.database, subject())
    assert len(ticks) == 60 and pool.count == COUNTED
    assert pool.counted[:COUNTED].all() and ticks[COUNTED].timeframe == "H1"
    other = trading("earned").model_copy(update={"thresholds": Profile().thresholds})
    assert promotion.pooled(lived.database, subject(other)).count == 0


def test_looks_are_taken_in_their_order_and_once(lived: Desk, tmp_path: Path) -> None:
    with closing(copied(lived, tmp_path)) as database:
        mine = Promotions(database, lambda: [subject()], SHORT)
        taken = [standing.look for _, standing in mine.look()]
        assert taken == [1, 2]
        assert mine.look() == [] and Promotions(database, lambda: [subject()], SHORT).look() == []
        rows = standing_table.standings(database, MARK)
        assert [row["figures"]["ticks"] for row in rows] == [20, 40]
        entries = audit_chain.audit_entries(database, action=promotion.ACTION)
        assert [json.loads(row["after"])["look"] for row in entries] == [2, 1]
        assert audit_chain.broken_entry(database) is None


def copied(desk: Desk, folder: Path) -> Database:
    Database.copy(desk.database.path, folder / "torra.db")
    return desks.open_database(folder)


def test_a_look_sees_the_same_whenever_it_is_taken(
    lived: Desk, tmp_path: Path, monkeypatch: Any
) -> None:
    """By the first ticks that there were, with a draw of its own: nobody can try again."""

    def drawn(pool: Any, look: Any, chance: Any) -> PromotionEvidence:
        return replace(passing(), ticks=int(pool.within(look).sum()), beats=chance.random())

    monkeypatch.setattr(promotion_evidence, "evidence", drawn)
    found = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        with closing(copied(lived, tmp_path / str(number))) as database:
            Promotions(database, lambda: [subject()], SHORT).look()
            found.append([row["figures"] for row in standing_table.standings(database, MARK)])
    assert found[0] == found[1]
    assert len({row["beats"] for row in found[0]}) == 2


def test_nothing_is_read_before_a_look_can_be_due(
    lived: Desk, tmp_path: Path, monkeypatch: Any
) -> None:
    read: list[int] = []
    whole = promotion.pooled

    def counting(*words: Any) -> Any:
        read.append(1)
        return whole(*words)

    monkeypatch.setattr(promotion, "pooled", counting)
    mine = promotions(lived, Rule())
    assert mine.look() == [] and not read, "3,000 ticks are not there"
    mine.rule = Rule(looks=(COUNTED + 1,))  # fewer count than are stored
    assert mine.look() == mine.look() == [] and read == [1], "no tick has come since"
    shadow = PromotionSubject("default", trading("shadow"), (desks.BTC,))
    assert Promotions(lived.database, lambda: [shadow], SHORT).look() == [] and read == [1]


@pytest.mark.journey
def test_a_promotion_counts_from_the_next_tick_on(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(promotion_evidence, "evidence", passing)
    desk = run(tmp_path, RulesProvider(), "earned", 24)
    desk.promotions.rule = Rule(looks=(10,), later=1_000)
    assert desk.look_at_agents() == 1
    go_on(desk, 4)
    records = [
        desk.database.tick_without_calls(key)
        for key in replay_queries.journalled(desk.database, "BTCUSD")
    ]
    shadow = ["shadow" in record["deliberation"]["flags"] for record in records if record]
    assert shadow == [True] * 30 + [False] * 5
    assert desk.promotions.promoted("default", EARNED)
    assert not desk.promotions.promoted("default", Profile()), "another setting"
    setups = [(one.instance, one.profile) for one in desk.setups.values()]
    pages: Any = SimpleNamespace(desk=desk, database=desk.database, setups=setups)
    (sign,) = health_checks.agents(HealthContext(pages, desk.clock.real_now()))
    assert sign.level == "ok" and "promoted" in sign.detail


@pytest.mark.journey
def test_a_look_that_fails_changes_nothing_and_stops_nobody(
    lived: Desk, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(promotion_evidence, "evidence", lambda *_: 1 / 0)
    with caplog.at_level(logging.ERROR, logger="torra"):
        assert promotions(lived).look() == []
    assert "the agents of default could not be looked at" in caplog.text
    assert standing_table.standings(lived.database, MARK) == []


def test_while_the_database_cannot_be_read_agents_are_in_shadow(database: Database) -> None:
    class Broken:
        def value(self, *_: Any) -> bool:
            raise StoreUnavailable("locked")

    broken: Any = Broken()
    mine = Promotions(broken, lambda: [subject()], SHORT)
    assert not mine.promoted("default", EARNED)
    mine.database = database
    standing_table.write_standing(database, "default", MARK, **ROW)
    assert mine.promoted("default", EARNED), "it is asked again"


def test_a_desk_looks_at_agents_each_hour_and_at_clocks_each_day(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path)
    desk.open()
    try:
        jobs = {name: desk._timers.job(name) for name in ("prune", "agents", "clocks")}
        hours = {name: job.trigger.interval // timedelta(hours=1) for name, job in jobs.items()}
        assert hours == {"prune": 1, "agents": 1, "clocks": 24}
        assert jobs["agents"].func == desk.look_at_agents
        desk.active = False
        desk.promotions.subjects = lambda: 1 / 0  # type: ignore[assignment,return-value]
        assert desk.look_at_agents() == 0
    finally:
        desk.close()


def test_instances_of_one_profile_are_one_subject_and_two_settings_two() -> None:
    one, two = Instance(symbol="BTCUSD"), Instance(symbol="EURUSD")
    mine = Instance(symbol="XAUUSD", profile="mine")
    same = promotion.subjects_of([(one, EARNED), (two, EARNED), (mine, EARNED)])
    assert [(s.name, len(s.instances)) for s in same] == [("default", 2), ("mine", 1)]
    assert len(promotion.subjects_of([(one, EARNED), (two, Profile())])) == 2


# --- a running desk's scorecard ---


def test_a_stored_tick_is_observed_as_the_tick_that_ran(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path, profile=trading("full"))
    desks.open_for_work(desk)
    outcomes = desk.wake("BTCUSD")
    desks.clock_of(desk).set(desk.clock.now() + desks.QUARTER)
    outcomes += desk.wake("BTCUSD")
    seen = [tick_seen(one.result, one.result.elapsed_ms) for one in outcomes if one.result]
    read = live.arm_seen(desk.database, subject(trading("full")))
    assert len(seen) == 3
    for one, other in zip(seen, read.ticks, strict=True):
        assert one.elapsed_ms == pytest.approx(other.elapsed_ms, abs=1e-3)
    assert [replaced(one) for one in seen] == [replaced(one) for one in read.ticks]


def replaced(tick: Any) -> Any:
    return type(tick)(**{n: getattr(tick, n) for n in tick.__slots__ if n != "elapsed_ms"})


def test_the_trades_of_l1_alone_are_those_that_a_desk_in_shadow_made(lived: Desk) -> None:
    """There the desk itself is the control, so that the two can be held against each other."""
    final = live.arm_seen(lived.database, subject())
    frames = live.frames_of(lived.database, subject(), final.ticks)
    swept = live.l1_trades(final, subject(), frames, {})
    assert len(final.trades) >= 3
    facts = ("side", "decided", "opened", "closed", "entry", "exit", "lots", "reason")
    mine, theirs = ([[getattr(t, n) for n in facts] for t in arm] for arm in (final.trades, swept))
    assert mine == theirs


def test_agents_in_shadow_are_judged_by_verdicts_and_by_no_trade(lived: Desk) -> None:
    found = live.made(lived.database, subject())
    assert [arm.name for arm in found.arms] == ["l1", live.WOULD_BE]
    assert not {one.name for one in found.exhibits} & live.OF_TRADES
    assert found.document is not None and "in shadow" in found.document.warnings[0]
    l1, would_be = (arm.ticks for arm in found.arms)
    assert [tick.verdict for tick in l1] == [tick.l1_verdict for tick in would_be]
    assert any(tick.consensus != tick.l1_consensus for tick in would_be)


# --- commands ---


@pytest.fixture
def home(lived: Desk, tmp_path: Path) -> Path:
    copied(lived, tmp_path).close()
    return desk_file(profile_file(tmp_path, EARNED), INSTANCE)


def called(command: Any, home: Path, *words: str) -> str:
    result = CliRunner().invoke(command, words, obj=home, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.journey
def test_a_scorecard_is_told_drawn_and_kept(home: Path) -> None:
    page = home / "out.html"
    said = called(standing_commands.scorecard, home, "btcusd", "--full", "--report", str(page))
    assert "Verdicts that an arm changed" in said
    assert "Verdicts that an arm changed" in page.read_text("utf-8")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    kept = home / "replays"
    assert [path.name for path in kept.glob("*.json")] == ["scorecard-default-BTCUSD.json"]
    told = json.loads(called(standing_commands.scorecard, home, "--json"))
    assert told["ticks_with_agents"] == 60 and told["document"]["kind"] == "scorecard"
    assert (kept / "scorecard-default.json").exists(), "that of the profile is another document"


def test_a_scorecard_of_agents_in_shadow_says_so_and_not_how_it_is_computed(home: Path) -> None:
    said = called(standing_commands.scorecard, home, "btcusd")
    title, _, profile, thresholds, _, sentence, *_ = said.splitlines()
    assert (title, profile) == ("BTCUSD: profile default", "Profile: default")
    assert thresholds == "Thresholds: BUY from +0.10, SELL to \N{MINUS SIGN}0.10"
    assert sentence.startswith("Agents sent no order here, so they are judged by what they said")
    assert "60 of 60 ticks were debated." in " ".join(said.split())
    assert "How this is computed" not in said and "--full" in said


@pytest.mark.journey
def test_a_scorecard_begins_with_money(tmp_path: Path, scaled: Scale) -> None:
    desk = run(tmp_path, RulesProvider(), "full", 60 if scaled.whole else 40)
    desk.close()
    desk_file(profile_file(tmp_path, trading("full")), INSTANCE)
    said = " ".join(called(standing_commands.scorecard, tmp_path, "btcusd").split())
    assert re.search(
        r" [Tt]he bars alone \S+ R a trade, this desk \S+ R: .*, and \d+ trades? ", said
    )
    assert "Who traded" in said and "this desk" in said.partition("Who traded")[2]
    trades = tmp_path / "replays" / "scorecard-default-BTCUSD" / "trades.csv"
    arms = {line.partition(",")[0] for line in trades.read_text("utf-8").splitlines()[1:]}
    assert arms == {"l1", "final"}


@pytest.mark.journey
def test_a_period_without_ticks_is_told_where_there_are_some(home: Path) -> None:
    said = called(standing_commands.scorecard, home, "--to", "2001-01-01")
    assert said.startswith("No ticks with agents in that period; there are 60 from 20")


def test_what_need_not_be_earned_has_no_number_and_no_look(home: Path) -> None:
    said = called(standing_commands.promotion, home)
    assert f"number 1: {COUNTED} ticks with agents, {60 - COUNTED} more wait for their" in said
    profile_file(home, trading("full"))
    said = called(standing_commands.promotion, home)
    assert "influence full" in said and "number 1" not in said and "next look" not in said
    (row,) = json.loads(called(standing_commands.promotion, home, "--json"))["profiles"]
    assert row["setting_number"] is row["next_look"] is None


def test_standing_tells_a_promotion_and_the_name_under_which_a_look_was_taken(home: Path) -> None:
    with closing(desks.open_database(home)) as database:
        standing_table.write_standing(database, "former", MARK, **ROW)
        said = called(standing_commands.promotion, home)
        assert "its agents have a say" in said and "next look at 6,000" in said
        standing_table.write_standing(
            database, "default", MARK, **{**ROW, "look": 2, "promoted": False}
        )
    said = called(standing_commands.promotion, home)
    assert "as profile former: promoted: told" in said and "next look at 12,000" in said


def test_a_trial_tick_runs_as_the_desk_would(home: Path) -> None:
    """`torra tick` asks the standing too."""

    def moved() -> bool:
        record = one_tick.run(home, "BTCUSD", "M15")
        return any(record["scores"][v]["score"] != record["l1"][v] for v in VECTORS)

    assert not moved()
    with closing(desks.open_database(home)) as database:
        standing_table.write_standing(database, "default", MARK, **ROW)
    assert moved()
