"""What no swarm can break: bounds, hull, symmetry, order, and that what it adds only takes away.

Trust, the reader's `first` and the judge re-weigh and move scores inside the bounds. Budget,
conviction, the officer's rows, the judge's expected value and vetoes of a side shrink or deny.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_config import EXPERTS, HIERARCHY, MODES, REGIME_BUDGET, TRUST, TRUST_FLOOR, tabled_trust
from agent_framework import l1_only_record
from agents.contracts import (
    BIASES,
    REGIMES,
    VECTORS,
    WINNERS,
    AgentReport,
    DebateContext,
    Feature,
    GateRuling,
    SourceType,
)
from agents.debate.scoring import (
    DIRECTIONS,
    UNJUDGED,
    CountedReport,
    adjust,
    blended,
    panel_of,
    synthesise,
)
from agents.debate.swarm import directive, expected_value
from agents.evidence import trust
from agents.registry import AGENTS
from agents.risk_gate import merged
from tests.agents.test_debate_invariants import (
    as_text,
    broken,
    cases,
    gates,
    holds,
    mostly_good,
    scores_on_grid,
    seats,
)
from tests.agents.test_firm_invariants import OTHER
from tests.doubles import scripted
from tests.doubles.scripted import (
    SWARM_FEATURES,
    SWARM_FIELDS,
    Scripted,
    a_report,
    context,
    debate,
    reporting,
    settings,
)
from torra.verdict.sentiment_rules import SIDES as BOTH

Scaled = Callable[..., int]
SWARM: Final = MODES["swarm"].seats
ABOUT: Final = context(features=SWARM_FEATURES)

regimes = st.sampled_from([*REGIMES, ""])
shares = st.one_of(st.sampled_from([0.0, 0.25, 0.4, 0.5, 0.6, 0.7, 1.0]), st.floats(0, 1))
trusts: st.SearchStrategy[dict[str, float]] = st.one_of(
    st.just({}), st.fixed_dictionaries(dict.fromkeys(EXPERTS, st.floats(TRUST_FLOOR, 1)))
)


def _judge(winner: str, told: Mapping[str, Any], share: float, flags: tuple[str, ...]) -> Any:
    way = WINNERS[winner]
    moves = {
        v: None if a is None else way * abs(a) if way else a for v, a in told["adjustments"].items()
    }
    more = {"winner": winner, "win_share": share, "flags": flags, "adjustments": moves}
    return a_report("judge", **{**told, **more})


judges = st.builds(
    _judge,
    st.sampled_from([*WINNERS]),
    seats,
    shares,
    st.sampled_from([(), ("ungrounded",), ("unfalsified",), ("ungrounded", "unfalsified")]),
)
silent_judges = st.sampled_from([None, UNJUDGED, AgentReport.abstain("judge", "a test")])
readings = st.one_of(
    st.none(),
    st.builds(
        lambda regime, bias, budget, first: AgentReport(
            "regime_reader", dict.fromkeys(VECTORS), "high",
            regime=regime, bias=bias, budget=budget, first=first,
        ),
        st.sampled_from(REGIMES), st.sampled_from([*BIASES]), shares,
        st.sampled_from([*EXPERTS, ""]),
    ),
)  # fmt: skip
four = st.tuples(*[seats] * 4)


def desk_of(told: tuple[Mapping[str, Any], ...], judge: AgentReport | None) -> list[CountedReport]:
    """Return the answers of experts and, where one spoke, the judge."""
    found = []
    for name, said in zip(EXPERTS, told, strict=True):
        role = AGENTS[name].role
        moves = {v: a if v in role.focus else None for v, a in said["adjustments"].items()}
        found.append(CountedReport(role, a_report(name, **{**said, "adjustments": moves})))
    sits = judge is not None and judge is not UNJUDGED
    return [*found, CountedReport(AGENTS["judge"].role, judge)] if judge and sits else found


def turned(answers: list[CountedReport]) -> list[CountedReport]:
    """Return the desk of the mirrored market."""
    return [CountedReport(role, turned_report(report)) for role, report in answers]


def turned_report(told: AgentReport) -> AgentReport:
    moves = {v: None if a is None else -a for v, a in told.adjustments.items()}
    other = OTHER.get(told.winner, told.winner)
    return replace(told, adjustments=moves, winner=other)  # type: ignore[arg-type]


# --- scores ---------------------------------------------------------------------------------------


def test_a_swarm_keeps_the_bounds_the_hull_and_the_mirror(scaled: Scaled) -> None:
    met = {"beyond flat": 0}

    @cases(scaled(10_000))
    @given(four, judges | silent_judges, trusts, scores_on_grid)
    def check(told: Any, judge: Any, trusted: Any, l1: Any) -> None:
        answers = desk_of(told, judge)
        found, flat = synthesise(answers, trusted=trusted), synthesise(answers)
        for vector in VECTORS:
            assert abs(found.debate[vector] - found.analyst_avg[vector]) <= 0.15 + 1e-12
            asked = [
                trust(one.report) * value
                for one in answers[:4]
                if not one.report.abstained
                and (value := one.report.adjustments.get(vector)) is not None
            ] or [0.0]
            assert min(asked) - 1e-12 <= found.analyst_avg[vector] <= max(asked) + 1e-12
            met["beyond flat"] += found.analyst_avg[vector] != flat.analyst_avg[vector]
        for vector, moved in adjust(found.debate, 1.0).items():
            assert abs(moved) <= 0.3
            score = max(-1.0, min(1.0, l1[vector] + moved))
            assert abs(blended(l1[vector], score) - l1[vector]) <= 0.06 + 1e-9
        mirror = synthesise(turned(answers), trusted=trusted)
        assert all(mirror.debate[vector] == -found.debate[vector] for vector in VECTORS)
        assert synthesise(reversed(answers), trusted=trusted) == found

    check()
    assert met["beyond flat"]


def test_the_tabled_weight_is_the_product_of_both_tables() -> None:
    for regime in REGIMES:
        for timeframe in ("M15", "H1", "H4", "D1"):
            rank = HIERARCHY["long" if timeframe in ("H4", "D1") else "short"]
            for name, weight in tabled_trust(timeframe, regime).items():
                product = rank[name] * TRUST[regime][name]
                assert weight == pytest.approx(max(TRUST_FLOOR, product), abs=1e-8)


def test_what_the_regime_makes_of_trust_and_budget_stays_in_its_bounds(scaled: Scaled) -> None:
    """The code's word stays; a reader only lowers, and has one expert go first."""

    @cases(scaled(10_000))
    @given(
        regimes,
        readings,
        st.sampled_from(["M15", "H1", "H4", "D1"]),
        st.sampled_from(["prior", "flat"]),
    )
    def check(regime: str, told: Any, timeframe: str, trusts_by: str) -> None:
        features = {"market.regime": Feature("market.regime", regime or None)}
        found = directive(features, timeframe, told, trusts_by)
        alone = directive(features, timeframe, None, trusts_by)
        assert found.regime == regime
        assert 0.0 <= found.budget <= alone.budget == REGIME_BUDGET.get(regime, 1.0)
        assert found.trusted.keys() == alone.trusted.keys()
        assert all(TRUST_FLOOR <= weight <= 1.0 for weight in found.trusted.values())
        assert not (trusts_by == "flat" and found.trusted)
        first = told.first if told else ""
        if first in found.trusted:
            assert found.trusted[first] == 1.0
        others = {name for name in found.trusted if name != first}
        assert all(found.trusted[name] <= alone.trusted[name] for name in others)
        assert found.trusted == alone.trusted or first

    check()


# --- sizes ----------------------------------------------------------------------------------------


def test_a_judge_only_shrinks_an_opening_and_a_failed_one_too(scaled: Scaled) -> None:
    met = {"less": 0, "same": 0}

    @cases(scaled(10_000))
    @given(four, judges | silent_judges, trusts, shares)
    def check(told: Any, judge: Any, trusted: Any, most: float) -> None:
        answers = desk_of(told, judge)
        alone = panel_of(answers, trusted=trusted)
        beside = panel_of(answers, judged=judge, trusted=trusted)
        failed = panel_of(answers, judged=UNJUDGED, trusted=trusted)
        thin = panel_of(answers, judged=judge, trusted=trusted, most=most)
        turned_judge = turned_report(judge) if judge else judge
        mirror = panel_of(turned(answers), judged=turned_judge, trusted=trusted)
        for side, other in (("BUY", "SELL"), ("SELL", "BUY")):
            one, without = beside.agreement(side), alone.agreement(side)
            assert one.conviction <= without.conviction <= without.raw
            assert thin.agreement(side).conviction == min(most, one.conviction)
            assert failed.agreement(side).conviction <= without.conviction
            assert mirror.agreement(other) == one
            met["less" if one.conviction < without.conviction else "same"] += 1
        assert panel_of(reversed(answers), judged=judge, trusted=trusted) == beside

    check()
    assert all(met.values())


FACTORS: Final[Mapping[str, tuple[str, float | str]]] = {
    "panic_multiplier": ("macro.vix_rank", 99.0),
    "liquidations_multiplier": ("derivs.long_liquidations_rank", 99.5),
    "exhaustion_multiplier": ("market.triage", "exhaustion"),
    "volatility_multiplier": ("technical.volatility_percentile", 99.0),
    "losing_streak_multiplier": ("memory.losing_streak", 9.0),
}
"""Multipliers of the gate and a number at which each of them counts."""
STORMS: Final = ("panic_multiplier", "liquidations_multiplier", "volatility_multiplier")
CROWDED: Final[Mapping[str, tuple[str, ...]]] = {"BUY": ("BUY",), "SELL": ("SELL",), "": ()}

rows = st.sets(st.sampled_from([*FACTORS]))


def in_the_market(counted: set[str], crowd: str, regime: str) -> DebateContext:
    """Return a tick on which these factors count, and one side is crowded."""
    found = dict(map(FACTORS.__getitem__, counted))
    ranks = {"BUY": {"derivs.funding_rank": 98.0}, "SELL": {"derivs.funding_rank": 1.0}}
    usual = {"market.triage": None, "technical.volatility_percentile": 40.0}
    return context(
        features={**SWARM_FEATURES, **usual, "market.regime": regime or None, **found,
                  **ranks.get(crowd, {})}
    )  # fmt: skip


def test_no_row_and_no_budget_enlarges_a_size_or_frees_a_side(scaled: Scaled) -> None:
    """Scores held: more rows, a smaller size, and never one above the word of the gate's model.

    A row that brings the rules down to what the model left takes its cut away, and the budget of
    the same storm with it: then the size is the model's own (docs/debate.md, "Size").
    """
    met = {"less": 0, "denied": 0}

    @cases(scaled(10_000, 60))
    @given(
        regimes, rows, rows, st.sampled_from([*CROWDED]), st.booleans(),
        st.fixed_dictionaries(dict.fromkeys(FACTORS, shares)), shares | st.just(1.0),
    )  # fmt: skip
    def check(
        regime: str,
        few: set[str],
        more: set[str],
        crowd: str,
        crowds: bool,
        values: Any,
        model: float,
    ) -> None:
        config = settings(mode="swarm", gate=values)
        left: list[dict[str, float]] = []
        uncut = False
        for counted, side in ((few, ""), (few | more, crowd if crowds else "")):
            record = l1_only_record(in_the_market(counted, side, regime), config)
            told = merged(record.ruling, GateRuling(model, reasons=("WEAK_CASE",)))
            held = replace(record, ruling=told)
            for name in BOTH:
                assert held.vetoes(name) == (name in CROWDED[side])
            storms = (values[one] for one in STORMS if one in counted)
            storm = min(REGIME_BUDGET.get(regime, 1.0), 1.0, *storms)
            rest = 1.0
            for one in counted - {*STORMS}:
                rest *= values[one]
            assert held.size_share("BUY") == held.size_share("SELL")
            rules = held.rule_ruling.multiplier
            cut = held.ruling.multiplier / rules if rules else 0.0
            assert abs(held.size_share("BUY") - storm * rest * cut) <= 1e-7
            assert held.size_share("BUY") <= min(held.ruling.multiplier, storm * rest) + 1e-8
            assert held.swarm is not None
            shown = held.ruling.multiplier * held.swarm.budget
            assert abs(shown - held.size_share("BUY")) <= 1e-7
            uncut = uncut or (not left and model >= rules)
            left.append({n: 0.0 if held.vetoes(n) else held.size_share(n) for n in BOTH})
        for name in BOTH:
            assert left[1][name] <= (left[0][name] if uncut else model + 1e-12)
            met["less"] += left[1][name] < left[0][name]
        met["denied"] += crowds and bool(crowd)

    check()
    assert all(met.values()), met


# --- the mirror of what is told beside the scores -------------------------------------------------


def test_a_mirrored_market_mirrors_the_worth(scaled: Scaled) -> None:
    stakes = {
        name: Feature(name, value) for name, value in (("stakes.reward_r", 1.5),
        ("stakes.cost_r", 0.1), ("standing.win_share_6", 0.3))
    }  # fmt: skip

    @cases(scaled(10_000))
    @given(judges)
    def check(judge: Any) -> None:
        one, other = expected_value(judge, stakes), expected_value(turned_report(judge), stakes)
        if one is None or other is None:
            assert one is other
            return
        assert (one.value_r, one.used) == (other.value_r, other.used)
        swapped = {"BUY": "SELL", "SELL": "BUY", "": ""}
        assert (OTHER[one.side], swapped[one.vetoes]) == (other.side, other.vetoes)
        assert one.vetoes in ("", {"LONG": "BUY", "SHORT": "SELL"}[judge.winner])

    check()


# --- the desk -------------------------------------------------------------------------------------


def with_findings(reply: Any) -> Any:
    """Return a reply with what an expert says beside a report; what is no report stays as it is."""
    try:
        told = json.loads(reply)
    except (TypeError, ValueError, RecursionError):
        return reply
    is_report = isinstance(told, dict) and "claim" in told
    return as_text({**SWARM_FIELDS, **told}) if is_report else reply


findings = mostly_good.map(with_findings)
decisions = st.builds(
    lambda side, share, value, counter: scripted.decision(
        side=side, win_share=share, value=value, counter=counter
    ),
    st.sampled_from([*WINNERS, "BOTH"]),
    shares | st.sampled_from([9.0, -1e300, "0.6", None]),
    st.floats(-1, 1),
    st.sampled_from(["", "It may turn."]),
)
regime_replies = st.builds(
    lambda regime, budget, first: scripted.regime(regime=regime, budget_pct=budget, first=first),
    st.sampled_from([*REGIMES, "bull"]),
    st.floats(-50, 150) | st.sampled_from([1e300, None, "50"]),
    st.sampled_from([*EXPERTS, "none", "judge", "risk_gate"]),
)


def test_no_reply_to_a_swarm_raises_or_leaves_the_bounds(scaled: Scaled) -> None:
    seen: set[SourceType] = set()
    dispute: set[bool] = set()

    @cases(scaled(10_000, 40))
    @given(
        scores_on_grid,
        st.one_of(regime_replies.map(as_text), regime_replies.map(as_text), broken),
        st.tuples(*[findings] * 4),
        st.one_of(decisions.map(as_text), decisions.map(as_text), broken),
        gates,
        st.sampled_from(["always", "openings"]),
        st.sampled_from(["size", "veto"]),
    )
    def check(l1: Any, reader: Any, told: Any, judge: Any, gate: Any, call: str, hold: str) -> None:
        provider = Scripted(dict(zip(SWARM, (reader, *told, judge, gate), strict=True)))
        record = debate(
            provider,
            about=context(scores=l1, features=SWARM_FEATURES),
            config=settings(mode="swarm", provider="anthropic", gate_call=call, judge_hold=hold),
        )
        holds(record, l1)
        assert len(provider.requests) == len(record.calls) <= 14
        assert record.swarm is not None
        for side in DIRECTIONS:
            assert 0.0 <= record.size_share(side) <= record.rule_ruling.multiplier
        record.as_json()
        seen.add(record.source_type)
        dispute.add(record.swarm.directive.disputed)

    check()
    assert seen >= {SourceType.AGENT_PARTIAL} and dispute == {True, False}


def test_the_order_of_the_seats_changes_nothing(scaled: Scaled) -> None:
    script = {
        name: reporting(value=round(0.07 * (number - 2), 2), confidence="medium")
        for number, name in enumerate(EXPERTS)
    }
    orders = list(itertools.permutations((*EXPERTS, "judge", "regime_reader")))
    told = set()
    for order in orders[:: len(orders) // scaled(720, 10)]:
        config = settings(mode="swarm", active_agents=order)
        record = debate(Scripted(script), about=ABOUT, config=config)
        said = record.as_json()
        parts = ("debate", "adjustments", "ruling", "panel", "swarm", "failures")
        told.add(repr([sorted(said[part].items()) for part in parts]))
    assert len(told) == 1


def test_experts_and_reader_are_blind_to_each_other_and_to_what_each_says(scaled: Scaled) -> None:
    first = SWARM[:5]
    asked: dict[str, set[str]] = {name: set() for name in first}
    seen: set[str] = set()
    for number in range(scaled(200, 4)):
        way = (-1) ** number
        script: dict[str, Any] = {
            name: reporting(value=way * 0.05 * (number % 6), claim=f"At {number}, {name}.")
            for name in EXPERTS
        }
        script["regime_reader"] = lambda request, n=number: scripted.regime(
            request, regime=REGIMES[n % 5], first=EXPERTS[n % 4], budget_pct=n
        )
        provider = Scripted(script)
        debate(provider, about=ABOUT, config=settings(mode="swarm"))
        for name in first:
            (request,) = provider.asked(name)
            assert request.reports == ()
            asked[name].add(repr((request.system, request.user, sorted(request.features))))
        (judged,) = provider.asked("judge")
        assert {one.agent_id for one in judged.reports} == {*first}
        seen.add(judged.user)
    assert {len(told) for told in asked.values()} == {1}
    assert len(seen) > 1, "the judge hears them"
