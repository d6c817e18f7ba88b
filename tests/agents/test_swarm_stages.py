"""A swarm at work: who is asked when, who sees what, and what its settings take away.

What a host's desk makes of it, down the ladder and in shadow, is tried on real ticks at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import (
    EXPERTS,
    GATE_ID,
    JUDGE_ID,
    MODES,
    READER_ID,
    REGIME_BUDGET,
    THIN_CONVICTION,
    TRUST_FLOOR,
    DebateSettings,
)
from agents.contracts import VECTORS, DebateContext, SourceType
from agents.debate.deliberation import Deliberation
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import (
    SWARM_FEATURES,
    Scripted,
    context,
    debate,
    reporting,
    settings,
)
from tests.worlds import desks, swarm_ticks
from torra.config import Profile, validate
from torra.providers.prices import PriceList
from torra.tick.degradation import tick_worst_case
from torra.tick.record import TickDebate

SIDES: Final = ("BUY", "SELL")
PUSHING: Final = {name: reporting(value=0.1) for name in EXPERTS}


def about(market: Mapping[str, Any] | None = None, **changes: Any) -> DebateContext:
    return context(features={**SWARM_FEATURES, **(market or {})}, **changes)


def swarm(gate: Mapping[str, Any] | None = None, **agents: Any) -> DebateSettings:
    return settings(gate, mode="swarm", **agents)


def deciding(**changes: Any) -> Any:
    """Return an entry of a script: a judge's decision with these changes."""
    return lambda request: scripted.decision(request, **changes)


# --- the order ------------------------------------------------------------------------------------


# --- who sees what --------------------------------------------------------------------------------


def test_the_chart_expert_alone_sees_the_picture() -> None:
    for picture, shown in (("rendered", ["geometry"]), ("off", [])):
        provider = Scripted()
        told = about(picture=b"png")
        debate(provider, about=told, config=swarm(picture=picture))
        assert [one.role.id for one in provider.requests if one.picture] == shown


# --- the fast pass --------------------------------------------------------------------------------


@cases("pivotal", [False, True])
def test_where_nothing_can_open_the_gate_is_not_asked_and_its_rules_stand(pivotal: bool) -> None:
    """`gate_call: openings`: nobody is missing, and a veto of the rules holds without a model."""
    strict = {GATE_ID: lambda request: scripted.ruling(request, multiplier=0.25)}
    market = {"derivs.funding_rank": 99.0, "market.spread_atr": 9.0, "macro.vix_rank": 99.0}
    for features in ({}, market):
        provider = Scripted(strict)
        told = about(features, pivotal=pivotal)
        record = debate(provider, about=told, config=swarm(gate_call="openings"))
        assert len(provider.asked(GATE_ID)) == pivotal
        assert record.source_type == SourceType.AGENT_SWARM
        assert not record.failures and not record.unasked
        assert record.veto == bool(features)
        assert record.ruling.veto_sides == (("BUY",) if features else ())
        rules = record.rule_ruling
        assert record.ruling.multiplier == (0.25 if pivotal else rules.multiplier)
        assert rules.multiplier == (0.5 if features else 1.0)
        (gate,) = (stage for stage in record.stages if stage["name"] == "gate")
        assert (gate["status"] == "skipped") == (not pivotal), gate


def test_at_a_firm_the_manager_is_asked_where_the_gate_is_not() -> None:
    provider = Scripted()
    config = settings(mode="firm", second_look="never", gate_call="openings")
    told = context(features={**SWARM_FEATURES, "company.pe": 20.0})
    record = debate(provider, about=told, config=config)
    assert provider.asked("research_manager") and not provider.asked(GATE_ID)
    assert record.source_type == SourceType.AGENT_FIRM and not record.failures


# --- the judge's hold and a thin swarm ------------------------------------------------------------


def sizes(record: Deliberation) -> tuple[float, float]:
    buy, sell = (0.0 if record.vetoes(side) else record.size_share(side) for side in SIDES)
    return buy, sell


def test_a_judge_that_holds_costs_size_or_by_setting_the_opening() -> None:
    """`judge_hold`: by itself it costs what the size oracle says; `veto` takes both sides."""
    hold = {**PUSHING, JUDGE_ID: deciding(side="NONE", value=0.0)}
    heard, vetoed, named, failed = (
        debate(Scripted(script), about=about(), config=swarm(judge_hold=how))
        for script, how in (
            (hold, "size"),
            (hold, "veto"),
            (PUSHING, "veto"),
            ({**PUSHING, JUDGE_ID: "no JSON"}, "veto"),
        )
    )
    assert not heard.veto and not named.veto and sizes(heard)[0] > 0.0
    assert not failed.veto, "who was not heard holds nothing"
    assert vetoed.veto and "JUDGE_HOLD" in vetoed.ruling.reasons and sizes(vetoed) == (0.0, 0.0)
    assert vetoed.adjustments == heard.adjustments


def test_a_judge_that_nothing_could_prove_wrong_leaves_less() -> None:
    told = [deciding(), deciding(counter=""), deciding(falsifiers=[])]
    sure, *others = (
        debate(Scripted({**PUSHING, JUDGE_ID: one}), about=about(), config=swarm()) for one in told
    )
    assert "unfalsified" not in {flag for one in sure.reports for flag in one.flags}
    for record in others:
        (judged,) = (one for one in record.reports if one.agent_id == JUDGE_ID)
        assert "unfalsified" in judged.flags
        assert sizes(record)[0] == 0.3 < sizes(sure)[0], "a third of a word that is sure"
        for vector in VECTORS:
            assert abs(record.debate[vector]) < abs(sure.debate[vector])


def test_a_judge_that_failed_is_worth_no_more_than_an_unsure_one() -> None:
    told = (deciding(), deciding(confidence="low"), "no JSON")
    sure, unsure, failed = (
        sizes(debate(Scripted({**PUSHING, JUDGE_ID: one}), about=about(), config=swarm()))[0]
        for one in told
    )
    assert 0.0 < failed <= unsure < sure


def test_what_came_of_a_chance_before_is_held_against_it() -> None:
    """The judge says 0.6 of its side; when it had said as much, 0.3 of the trades won."""
    script = {**PUSHING, JUDGE_ID: deciding(win_share=0.6)}
    for known, vetoed in ((None, False), (0.9, False), (0.3, True)):
        told = about({"standing.win_share_6": known})
        record = debate(Scripted(script), about=told, config=swarm())
        assert record.vetoes("BUY") == vetoed and not record.vetoes("SELL")


def test_who_goes_first_silences_nobody() -> None:
    """In a volatile market of short bars the chart expert is at the floor as it is."""
    script = {READER_ID: lambda request: scripted.regime(request, first="liquidity")}
    told = about({"market.regime": "volatile"})
    swarms = [debate(Scripted(one), about=told, config=swarm()).swarm for one in (script, {})]
    first, plain = ({} if one is None else one.directive.trusted for one in swarms)
    assert first["liquidity"] == 1.0 and first["geometry"] == plain["geometry"] == TRUST_FLOOR
    assert first["microstructure"] < plain["microstructure"]


def test_a_swarm_of_one_expert_is_thin_and_its_conviction_is_bounded() -> None:
    for spoke in range(5):
        down = dict.fromkeys(EXPERTS[spoke:], "no JSON")
        record = debate(Scripted({**PUSHING, **down}), about=about(), config=swarm())
        assert ("thin_swarm" in record.flags) == (spoke == 1)
        if spoke == 1:
            assert record.swarm is not None and record.swarm.thin
            assert max(map(record.conviction_for, SIDES)) <= THIN_CONVICTION
    alone = {"liquidity.vwap_atr": None, "liquidity.sweep_high": None, "macro.us10y": None}
    only = {"micro.spread_percentile": None}
    record = debate(Scripted(PUSHING), about=about({**alone, **only}), config=swarm())
    assert not record.failures and "thin_swarm" in record.flags, "geometry alone had evidence"
    assert record.conviction_for("BUY") == THIN_CONVICTION


# --- on a desk ------------------------------------------------------------------------------------

PRICES: Final = PriceList(
    {"quick": {"input": 1.0, "output": 5.0}, "deep": {"input": 2.0, "output": 10.0}},
    now=lambda: desks.START,
)
NAMED: Final = {
    "provider": "anthropic", "quick_think_model": "quick", "deep_think_model": "deep",
}  # fmt: skip


def a_profile(**agents: Any) -> Profile:
    told = {"mode": "swarm", "influence": "full", "call_policy": "always", **NAMED, **agents}
    return validate(Profile, {"agents": told}, "a test")


def newest(folder: Path, profile: Profile, *, paid: bool = False) -> TickDebate:
    """Return the debate of the first quarter of an hour of a desk of the shipped bars."""
    script = {JUDGE_ID: lambda request: swarm_ticks.decided(request, win_share=0.2)}
    desk: Any = desks.open_desk(folder, provider=Scripted(script), profile=profile)
    if paid:
        desks.charge(desk, PRICES, lambda: desks.START)
    desks.open_for_work(desk)
    desks.clock_of(desk).set(desks.START + desks.QUARTER)
    (outcome,) = (one for one in desk.wake("BTCUSD") if one.key.timeframe == "M15")
    desk.database.close()
    found: TickDebate = outcome.result.debated
    return found


def test_a_swarm_that_steps_down_keeps_its_officer_and_the_budget_of_the_regime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No desk is below a swarm any more; records of the time when one was are replayed."""
    mode = "budget"
    monkeypatch.setitem(MODES, "swarm", replace(MODES["swarm"], below=mode))
    cheap, dear = (
        tick_worst_case(PRICES, a_profile(mode=name).agents, lambda _: False)
        for name in (mode, "swarm")
    )
    assert cheap < dear
    held = newest(tmp_path, a_profile(max_api_cost_per_hour=(cheap + dear) / 2), paid=True)
    said = held.deliberation
    assert str(said.source_type) == MODES[mode].complete and f"ladder:{mode}" in said.flags
    assert "silent:derivs.funding_rank" in said.flags, "the officer looked"
    assert said.swarm is not None and said.swarm.worth is None and said.swarm.board.stands == ()
    told = said.swarm.directive
    assert told.budget == REGIME_BUDGET[told.code] < 1.0 and told.reader == ""
    assert said.size_share("BUY") <= told.budget
    chosen = newest(tmp_path / "chosen", a_profile(mode=mode), paid=True).deliberation
    assert chosen.source_type == said.source_type and chosen.swarm is None
    assert not [flag for flag in chosen.flags if "funding_rank" in flag]


def test_in_shadow_no_word_of_a_swarm_counts_and_its_officer_does(tmp_path: Path) -> None:
    heard = newest(tmp_path / "full", a_profile()).deliberation
    assert heard.vetoes("BUY") and heard.size_share("SELL") < 1.0
    held = newest(tmp_path / "shadow", a_profile(influence="shadow"))
    assert held.deliberation.vetoes("BUY") and held.deliberation.swarm == heard.swarm
    alone = held.standing_in
    assert alone is not None and alone.swarm is not None
    assert not alone.vetoes("BUY") and alone.conviction_for("BUY") == 1.0
    assert alone.swarm.directive.reader == "" != held.deliberation.swarm.directive.reader
    assert not [name for name in alone.ruling.reasons if name == "NEGATIVE_EV"]
    assert {name: one["score"] for name, one in held.gated.items() if name in VECTORS} == {
        name: one["score"] for name, one in alone.scores.items() if name in VECTORS
    }
