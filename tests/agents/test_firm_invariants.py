"""What no firm can break: bounds, symmetry, order, and that its words on size only take away.

Manager and trader beside random analysts and cases. A manager's weights re-weigh two cases, so they
may move a score either way, inside the bounds; its word, a decline and a latch only shrink or deny.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from agent_config import MODES
from agents.contracts import SIDES, VECTORS, WINNERS, AgentReport, SourceType
from agents.debate.scoring import DIRECTIONS, UNJUDGED, CountedReport, panel_of, synthesise
from agents.registry import AGENTS
from tests.agents.test_debate_invariants import (
    as_text,
    broken,
    cases,
    confidences,
    gates,
    holds,
    mostly_good,
    scores_on_grid,
    seats,
)
from tests.doubles import scripted
from tests.doubles.scripted import FULL_FEATURES, Scripted, a_report, context, debate, settings
from torra.config import Thresholds
from torra.verdict.risk_engine import HeldSide, intent
from torra.verdict.sentiment_rules import SIDES as BOTH
from torra.verdict.sentiment_rules import opening_stands, release_latch, verdict, veto_latch

Scaled = Callable[..., int]
FIRM: Final = MODES["firm"].seats
FEATURES: Final = {**FULL_FEATURES, "company.pe": 20.0}
"""Evidence for every seat."""

OTHER: Final = {"LONG": "SHORT", "SHORT": "LONG", "NONE": "NONE"}

weights = st.fixed_dictionaries(dict.fromkeys(SIDES, st.floats(0, 1)))
judged = st.builds(
    lambda winner, given, confidence, flags: AgentReport(
        "research_manager", dict.fromkeys(VECTORS), confidence, winner=winner, weights=given,
        flags=flags,
    ),
    st.sampled_from([*WINNERS]),
    weights,
    confidences,
    st.sampled_from([(), ("ungrounded",)]),
)  # fmt: skip
judges = st.one_of(st.none(), st.just(UNJUDGED), judged)


def desk_of(told: tuple[Mapping[str, Any], ...]) -> list[CountedReport]:
    """Return the answers of analysts and cases; a case is never against its own side."""
    found = []
    for name, said in zip(FIRM, told, strict=False):
        way = SIDES.get(name)
        moves = said["adjustments"]
        if way:
            moves = {v: None if a is None else way * abs(a) for v, a in moves.items()}
        found.append(
            CountedReport(AGENTS[name].role, a_report(name, **{**said, "adjustments": moves}))
        )
    return found


def mirrored(answers: list[CountedReport]) -> list[CountedReport]:
    """Return the desk of the mirrored market, in which bull and bear have changed places."""
    other = dict(zip(SIDES, reversed([*SIDES]), strict=True))
    found = []
    for role, report in answers:
        name = other.get(role.id, role.id)
        moves = {v: None if a is None else -a for v, a in report.adjustments.items()}
        turned = replace(report, agent_id=name, adjustments=moves)
        found.append(CountedReport(AGENTS[name].role, turned))
    return found


def turned_judge(judge: AgentReport | None) -> AgentReport | None:
    if judge is None or not judge.winner:
        return judge
    swapped = dict(zip(SIDES, reversed([judge.weights[name] for name in SIDES]), strict=True))
    return replace(judge, winner=OTHER[judge.winner], weights=swapped)  # type: ignore[arg-type]


def weighed(judge: AgentReport | None) -> Mapping[str, float]:
    return {} if judge is None else judge.weights


six = st.tuples(*[seats] * 6)


def test_a_managers_weights_keep_the_bounds_the_hull_and_the_mirror(scaled: Scaled) -> None:
    @cases(scaled(10_000))
    @given(six, judges)
    def check(told: Any, judge: Any) -> None:
        answers = desk_of(told)
        found = synthesise(answers, weighed(judge))
        for vector in VECTORS:
            shift = found.debate[vector] - found.analyst_avg[vector]
            assert abs(shift) <= 0.15 + 1e-12
            asked = [
                synthesise(answers, dict(zip(SIDES, pair, strict=True))).debate[vector]
                for pair in itertools.product((0.0, 1.0), repeat=2)
            ]
            assert min(asked) - 1e-12 <= found.debate[vector] <= max(asked) + 1e-12
        turned = synthesise(mirrored(answers), weighed(turned_judge(judge)))
        for vector in VECTORS:
            assert turned.debate[vector] == -found.debate[vector]
        assert synthesise(reversed(answers), weighed(judge)) == found

    check()


def test_a_manager_only_shrinks_an_opening_and_a_failed_one_too(scaled: Scaled) -> None:
    met = {"less": 0, "same": 0}

    @cases(scaled(10_000))
    @given(six, judges)
    def check(told: Any, judge: Any) -> None:
        answers = desk_of(told)
        alone, beside = panel_of(answers), panel_of(answers, judged=judge)
        failed = panel_of(answers, judged=UNJUDGED)
        turned = panel_of(mirrored(answers), judged=turned_judge(judge))
        for side, other in (("BUY", "SELL"), ("SELL", "BUY")):
            one, without = beside.agreement(side), alone.agreement(side)
            assert one.conviction <= without.conviction <= without.raw
            assert failed.agreement(side).conviction <= without.conviction
            assert turned.agreement(other) == one
            met["less" if one.conviction < without.conviction else "same"] += 1
        assert panel_of(reversed(answers), judged=judge) == beside

    check()
    assert all(met.values())


def test_who_fails_leaves_the_scores_of_a_desk_without_it_and_no_larger_size(
    scaled: Scaled,
) -> None:
    """Against the same desk at which those abstained; the manager read them all the same."""

    @cases(scaled(10_000))
    @given(six, judges, st.sets(st.sampled_from(FIRM[:6])))
    def check(told: Any, judge: Any, failing: set[str]) -> None:
        answers = desk_of(told)
        left = [one for one in answers if one.role.id not in failing]
        quiet = [
            one
            if one.role.id not in failing
            else CountedReport(one.role, AgentReport.abstain(one.role.id, "a test"))
            for one in answers
        ]
        assert synthesise(left, weighed(judge)).debate == synthesise(quiet, weighed(judge)).debate
        for side in DIRECTIONS:
            fails = panel_of(left, failing, judged=judge).agreement(side).conviction
            assert fails <= panel_of(quiet, judged=judge).agreement(side).conviction

    check()


# --- the desk -------------------------------------------------------------------------------------


judgements = st.builds(
    lambda winner, bull, bear, confidence: scripted.judgement(
        winner=winner,
        weights={"bull_researcher": bull, "bear_researcher": bear},
        confidence=confidence,
    ),
    st.sampled_from([*WINNERS, "BOTH"]),
    st.one_of(st.floats(-1, 3), st.sampled_from([1e300, -0.0, "1", None])),
    st.floats(0, 1),
    confidences,
)


def test_no_reply_to_a_firm_raises_or_leaves_the_bounds(scaled: Scaled) -> None:
    seen: set[SourceType] = set()

    @cases(scaled(10_000, 40))
    @given(
        scores_on_grid,
        st.tuples(*[mostly_good] * 6),
        st.one_of(judgements.map(as_text), judgements.map(as_text), broken),
        gates,
        st.sampled_from(["auto", "always", "never"]),
    )
    def check(l1: Any, told: Any, manager: Any, gate: Any, rebuttal: str) -> None:
        script = dict(zip(FIRM, (*told, manager, gate), strict=True))
        provider = Scripted(script)
        record = debate(
            provider,
            about=context(scores=l1, features=FEATURES),
            config=settings(mode="firm", provider="anthropic", rebuttal=rebuttal),
        )
        holds(record, l1)
        assert len(provider.requests) == len(record.calls) <= 14
        seen.add(record.source_type)

    check()
    assert seen >= {SourceType.AGENT_PARTIAL}


# --- declines and latches -------------------------------------------------------------------------


LIMITS: Final = Thresholds(buy=0.3, sell=0.3)
near = st.builds(
    lambda middle, off: round(middle + off, 8),
    st.sampled_from((-0.4, -0.3, 0.0, 0.3, 0.4)),
    st.floats(-0.06, 0.06),
)
outers = st.builds(lambda low, wide: (low, round(low + wide, 8)), near, st.floats(0, 0.1))
consensuses = st.tuples(outers, st.floats(0, 1))
holdings = st.sampled_from(
    [None, None, None, HeldSide("LONG", "FILLED"), HeldSide("SHORT", "CLOSING")]
)
vetoes = st.sampled_from([(), ("BUY",), ("SELL",), ("BUY", "SELL")])


def openings(
    told: Any, vetoed: tuple[str, ...], latched: Mapping[str, bool], held: HeldSide | None
) -> tuple[set[str], dict[str, bool]]:
    """Return the sides on which a tick opens, and the latch after it, as a tick decides it."""
    (low, high), part = told
    outer = (low, high)
    said = verdict(low + part * (high - low), LIMITS)
    before = release_latch(latched, outer, LIMITS)
    legs = {
        side: any(leg.kind == "open" for leg in intent(side, held, "reverse").legs) for side in BOTH
    }
    opens = (
        said in legs
        and legs[said]
        and opening_stands(said, low, high, LIMITS)
        and said not in vetoed
        and not before[said]
    )
    after = veto_latch(before, outer, LIMITS, vetoes=vetoed, openings=legs)
    return ({said} if opens else set()), after


def test_a_veto_or_a_decline_denies_its_side_alone_at_once_and_later(scaled: Scaled) -> None:
    """With the same scores and positions; on the ticks after it by the latch."""
    met = {"denied at once": 0, "denied later": 0}

    @cases(scaled(10_000, 400))
    @given(
        st.lists(st.tuples(consensuses, vetoes, holdings), min_size=2, max_size=4),
        st.sampled_from(BOTH),
    )
    def check(ticks: Any, side: str) -> None:
        (other,) = {*BOTH} - {side}
        free = bound = dict.fromkeys(BOTH, False)
        for number, (told, vetoed, held) in enumerate(ticks):
            more = () if number else (side,)
            without, free = openings(told, vetoed, free, held)
            given_more, bound = openings(told, (*vetoed, *more), bound, held)
            assert {other} & given_more == {other} & without
            assert bound[other] == free[other] and bound[side] >= free[side]
            assert given_more <= without and not {*more} & given_more
            if given_more < without:
                met["denied later" if number else "denied at once"] += 1

    check()
    assert all(met.values()), met
