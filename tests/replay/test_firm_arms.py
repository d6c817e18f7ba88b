"""Arms of a firm: which there are, which would be another one, and how many a report has."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from agent_config import AgentSettings
from agents.contracts import SourceType
from tests.cases import cases
from tests.worlds.arm_trades import trade
from tests.worlds.observed import quiet_ticks
from torra.config import ROOT, Profile
from torra.errors import ConfigError
from torra.evaluation.arm_tables import ReportInput, _gates
from torra.evaluation.exhibits import MOST_LETTERS
from torra.evaluation.gate_value import VetoResult, gate_exhibit
from torra.evaluation.observations import ArmObservation
from torra.evaluation.wording import arm_called
from torra.replay import arms, reporting
from torra.replay.arms import ARMS, CONTROL, EVIDENCE, MOST_ARMS
from torra.replay.job_kinds import USUAL_ARMS
from torra.replay.shards import arm_words

PAID = {"provider": "anthropic"}
FIRM_ARMS = ("firm", "firm_rebuttal", "firm_escalated", "firm_no_memory", "placebo_memory_firm")


def test_a_firm_has_its_arms_and_counts_in_all_of_them() -> None:
    for name in FIRM_ARMS:
        settings = ARMS[name].profile(Profile()).agents
        assert (settings.mode, settings.influence) == ("firm", "full")
        assert ARMS[name].whole == {SourceType.AGENT_FIRM}
        assert settings.remembers() is (name != "firm_no_memory")
        assert arm_called(name, FIRM_ARMS).startswith("firm desk")
    assert ARMS["firm_rebuttal"].profile(Profile()).agents.rebuttal == "always"
    rule = ARMS["firm_escalated"].profile(Profile()).agents.escalation
    assert (rule.when, rule.at) == ("conviction", 0.0)
    assert [name for name in FIRM_ARMS if ARMS[name].is_placebo] == ["placebo_memory_firm"]


@cases(
    ("name", "agents", "why"),
    [
        ("firm_escalated", {}, "the trader is asked of rules in either"),
        ("firm_escalated", {"provider": "recorded"}, "the trader is asked of recorded in either"),
        ("firm_escalated", {**PAID, "role_models": {"trader": "one"}}, "asked of one in either"),
        ("firm_escalated", {**PAID, "escalation": {"at": 0.0}}, "every opening is asked of the"),
        ("firm_escalated", PAID, ""),
        ("firm_escalated", {**PAID, "escalation": {"when": "off", "at": 0.0}}, ""),
        ("firm_rebuttal", {"rebuttal": "always"}, "always answer each other too"),
        ("firm_rebuttal", {"debate_rounds": 2}, "always answer each other too"),
        ("firm_rebuttal", {}, ""),
        ("firm_rebuttal", {"rebuttal": "never"}, ""),
        ("firm", {}, ""),
        ("swarm_picture", {}, "the rules read numbers and no picture"),
        ("swarm_picture", {**PAID, "picture": "rendered"}, "the chart is drawn there|drawn too"),
        ("swarm_picture", PAID, ""),
        ("swarm_flat", {"trust": "flat"}, "all experts count alike too"),
        ("swarm_flat", {}, ""),
        ("swarm_no_reader", {}, ""),
    ],
)
def test_an_arm_that_would_be_another_one_is_refused_with_a_word(
    name: str, agents: dict[str, Any], why: str
) -> None:
    settings = AgentSettings.model_validate(agents)
    if not why:
        arms.check(arms.chosen([name]), settings)
        return
    desk = name.partition("_")[0]
    with pytest.raises(ConfigError, match=f"--arms {name}: .*(?:{why}).* would be {desk} itself"):
        arms.check(arms.chosen([name]), settings)


def test_a_report_has_at_most_eight_arms() -> None:
    eight = ["budget", "full", *FIRM_ARMS[:2], *FIRM_ARMS[3:], "placebo_shuffled"]
    assert len(arms.chosen(eight)) == MOST_ARMS == 8
    with pytest.raises(ConfigError, match="9 arms, and a report has at most 8, l1 among them"):
        arms.chosen([*eight, "pivotal"])
    assert len(arms.chosen(USUAL_ARMS.split(","))) <= MOST_ARMS
    for group in arms.GROUPS:
        assert len(arms.chosen([group, "budget"])) <= MOST_ARMS


@cases("page", ["evidence.md", "replaying.md", "memory.md", "outside.md"])
def test_the_docs_ask_for_arms_that_a_report_may_have(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    asked = re.findall(r"(?:--arms |^\$ [A-Z]+=)([a-z][a-z0-9_,]*)", text, re.MULTILINE)
    assert asked
    for names in asked:
        assert arms.chosen(names.split(","))


def test_a_title_names_arms_whole_without_placebos_and_counts_the_rest() -> None:
    named = ["l1", "budget", "full", *FIRM_ARMS, "placebo_shuffled"]
    told = reporting._arms_told([ARMS[name] for name in named])
    assert len(told) <= reporting.LONGEST_TOLD < MOST_LETTERS
    assert told.startswith("the bars alone, the budget desk, the full desk, the firm desk, ")
    assert told.endswith("the firm desk whose bull and bear always answer each other and 2 more")
    assert reporting._arms_told([ARMS["l1"], ARMS["firm"]]) == "the bars alone and the firm desk"


@cases(
    ("name", "desk"),
    [("placebo_memory_firm", "firm"), ("placebo_memory_swarm", "swarm"), (EVIDENCE, "swarm")],
)
def test_a_placebo_of_its_own_words_needs_the_desk_that_it_is_like(name: str, desk: str) -> None:
    with pytest.raises(ConfigError, match=f"add {desk}"):
        arms.chosen([name, "budget"])


# --- what a trader declined -----------------------------------------------------------------------


def test_what_a_trader_declined_stays_with_the_words() -> None:
    (tick,) = quiet_ticks(1, verdict="BUY", consulted="BUY", declined=True)
    assert arm_words.stopped(tick)
    for made in ({"declined": False}, {"declined": None}, {"verdict": "HOLD"}):
        (other,) = quiet_ticks(1, **{"verdict": "BUY", "consulted": "BUY", "declined": True} | made)
        assert not arm_words.stopped(other)


def test_declines_are_a_row_of_their_own_with_their_own_alarm() -> None:
    ticks = quiet_ticks(60, verdict="BUY", consulted="BUY", reason="TRADER_DECLINED")
    openings = [VetoResult(tick.key, "BUY", -1.0, "trader") for tick in ticks]
    openings.append(VetoResult(ticks[0].key, "BUY", 2.0))
    arm = ArmObservation("firm", ticks, ())
    found = _gates(ReportInput((arm,), control=CONTROL, vetoed={"firm": tuple(openings)}))
    assert [(one.called, one.vetoed, one.net, one.alarm) for one in found] == [
        ("firm", 1, -2.0, False), ("firm, its trader", 60, 60.0, True),
    ]  # fmt: skip
    told = gate_exhibit(found)
    assert "firm, its trader: the declines avoided 60.0 R" in told.says
    assert "R a decline" in told.says and "A trader that declines as many by lot" in told.says
    assert "100 % of signals are declined" in told.says and "the trader blocks" in told.says
    assert told.figures["firm.net"] == -2.0 and told.figures["firm.trader.net"] == 60.0


def test_a_traders_signals_are_the_trades_that_it_was_asked_about() -> None:
    asked, unasked = quiet_ticks(2, verdict="BUY", consulted="BUY")
    ticks = (asked, replace(unasked, consulted=""))
    trades = tuple(
        trade(tick.close_time, 1.0, instance=tick.instance, timeframe=tick.timeframe)
        for tick in ticks
    )
    found = _gates(
        ReportInput((ArmObservation("firm", ticks, trades),), control=CONTROL, vetoed={"firm": ()})
    )
    assert [one.signals for one in found] == [2, 1]
    says = gate_exhibit(found).says
    assert "firm, its trader: the trader declined none of 1 trade that it was asked about." in says
    assert "firm: the gate vetoed none of 2 signals." in says


def test_a_desk_that_asks_no_trader_has_no_such_row() -> None:
    arm = ArmObservation("full", quiet_ticks(3), ())
    assert len(_gates(ReportInput((arm,), control=CONTROL, vetoed={"full": ()}))) == 1
