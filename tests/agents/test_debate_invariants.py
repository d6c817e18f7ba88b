"""What no debate can break: the bounds, the symmetry, the direction of trust and of the gate."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent_config import CONFIDENCE_WEIGHT, MODES
from agent_framework import blend
from agents.contracts import SIDES, VECTORS, Focus, GateRuling, SourceType
from agents.debate.deliberation import Deliberation
from agents.debate.scoring import CountedReport, adjust, synthesise
from agents.evidence import trust
from agents.registry import AGENTS
from agents.risk_gate import merged
from tests.doubles.scripted import (
    FULL_FEATURES,
    OWN_FIELDS,
    SWARM_FEATURES,
    Scripted,
    a_report,
    all_finite,
    chart,
    context,
    debate,
    report,
    reporting,
    ruling,
    settings,
)
from torra.config import SentimentWeights, Thresholds
from torra.tick.chart_scorer import score_chart
from torra.verdict.sentiment_rules import composite, consensus, low_high, opening_stands, verdict

Scaled = Callable[..., int]
GRID = 10**8

numbers = st.one_of(
    st.none(),
    st.floats(-0.4, 0.4),
    st.sampled_from([0.0, -0.0, 0.3, -0.3, 0.15, -0.15, 1e9, -1e300, 5e-324, 10**30, -(10**400)]),
    st.sampled_from([math.nan, math.inf, -math.inf, True, False, "0.4", "N/A", [], {}]),
)
finite = st.floats(-1, 1)
scores_on_grid = st.fixed_dictionaries(
    {v: st.integers(-GRID, GRID).map(lambda n: n / GRID) for v in VECTORS}
)
adjustments = st.fixed_dictionaries(dict.fromkeys(VECTORS, st.none() | st.floats(-0.3, 0.3)))
confidences = st.sampled_from(["high", "medium", "low"])
cited = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["technical.rsi14", "scores.momentum", "technical.kijun", "no"]),
            "value": st.one_of(st.sampled_from([61.2, 0.3, "LONDON", math.nan, None]), finite),
        }
    ),
    max_size=3,
)


def changed(base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The valid reply with one field set to something odd, or taken away."""
    odd = st.one_of(st.none(), numbers, st.text(max_size=5), st.lists(numbers, max_size=2))
    spoilt = st.tuples(st.sampled_from(sorted(base)), odd).map(lambda pair: base | dict([pair]))
    short = st.sampled_from(sorted(base)).map(lambda key: {k: base[k] for k in base if k != key})
    return st.one_of(spoilt, short)


def as_text(reply: Any) -> str:
    return json.dumps(reply)


whole = report(**OWN_FIELDS)
"""A reply that is well-formed for an analyst, the news agent and a researcher alike."""

reports = st.builds(
    lambda given, confidence, evidence, abstained: {
        **whole,
        "adjustments": given,
        "confidence": confidence,
        "evidence": evidence,
        "abstained": abstained,
    },
    st.fixed_dictionaries(dict.fromkeys(VECTORS, numbers)) | adjustments,
    confidences,
    cited,
    st.sampled_from([False, False, False, True]),
)
rulings = st.builds(
    lambda multiplier, veto, code: ruling(multiplier=multiplier, veto=veto, reason_code=code),
    st.floats(0, 1) | numbers,
    st.booleans(),
    st.sampled_from(["NONE", "WEAK_CASE", "STALE_DATA", "NO_SUCH"]),
)
broken = st.one_of(
    st.text(max_size=20),
    changed(whole).map(as_text),
    changed(ruling()).map(as_text),
    st.sampled_from(
        ["", "null", "[]", "{", '{"a":1,"a":2}', "[" * 60_000, "\ufeff{}", '"\\ud800"', "9" * 5000]
    ),
    st.sampled_from(
        [RuntimeError("x"), SystemExit(1), OSError(), TimeoutError(), KeyboardInterrupt()]
    ),
)
plain = st.builds(
    lambda given, confidence: {**whole, "adjustments": given, "confidence": confidence},
    adjustments,
    confidences,
)
mostly_good = st.one_of(*[plain.map(as_text)] * 4, reports.map(as_text), broken)
opinions = st.one_of(reports.map(as_text), reports.map(as_text), broken)
gates = st.one_of(rulings.map(as_text), rulings.map(as_text), broken)
charts = st.one_of(st.none(), finite.map(lambda score: as_text(chart(score=score))), broken)


def bits(scores: Mapping[str, float]) -> bytes:
    return b"".join(struct.pack("<d", scores[vector]) for vector in VECTORS)


def cases(count: int) -> hypothesis_settings:
    return hypothesis_settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def test_no_reply_raises_or_leaves_the_bounds(scaled: Scaled) -> None:
    seen: set[SourceType] = set()
    moved: list[float] = []

    @cases(scaled(10_000))
    @given(scores_on_grid, opinions, opinions, opinions, gates, charts, st.integers(1, 2))
    def check(
        l1: Any, technical: Any, bull: Any, bear: Any, gate: Any, fallback: Any, rounds: int
    ) -> None:
        provider = Scripted(
            {
                "technical": technical,
                "bull_researcher": bull,
                "bear_researcher": bear,
                "risk_gate": gate,
                "chart_scorer": fallback,
            }
        )
        record = debate(
            provider,
            about=context(scores=l1),
            config=settings(debate_rounds=rounds),
            fallback=None if fallback is None else score_chart,
        )
        seen.add(record.source_type)
        moved.extend(filter(None, record.adjustments.values()))
        holds(record, l1)
        assert len(provider.requests) == len(record.calls) <= 14

    check()
    assert {SourceType.AGENT_PARTIAL, SourceType.L1_ONLY} <= seen
    assert moved


@pytest.mark.parametrize("way", [1.0, -1.0], ids=["up", "down"])
def test_a_desk_of_one_mind_goes_to_every_bound_and_not_beyond(way: float) -> None:
    l1 = dict.fromkeys(VECTORS, 0.0)
    seats = ("technical", *SIDES)
    provider = Scripted(dict.fromkeys(seats, reporting(value=9.0 * way)))
    record = debate(provider, about=context(scores=l1))
    holds(record, l1)
    final = blend(l1, record.scores)
    for vector in VECTORS:
        assert record.analyst_avg[vector] == pytest.approx(0.3 * way)
        # by its office the other researcher can only vote 0
        assert record.debate[vector] == pytest.approx((0.3 + 0.15 / 2) * way)
        assert record.adjustments[vector] == pytest.approx(0.3 * way)
        assert final[vector]["score"] == pytest.approx(0.06 * way)


def holds(record: Deliberation, l1: Mapping[str, float]) -> None:
    """Assert what no reply can break."""
    for told in (record.scores, record.ungated):
        final = blend(l1, told)
        for vector in VECTORS:
            assert abs(final[vector]["score"] - l1[vector]) <= 0.06 + 1e-9
            assert abs(told[vector]["score"]) <= 1.0
        assert all_finite([entry["score"] for entry in final.values()])
    for vector in VECTORS:
        assert abs(record.debate[vector] - record.analyst_avg[vector]) <= 0.15 + 1e-12 or (
            record.source_type is SourceType.LEGACY
        )
        assert abs(record.adjustments[vector]) <= 0.3
    assert 0.0 <= record.ruling.multiplier <= record.rule_ruling.multiplier
    assert record.ruling.veto or not record.rule_ruling.veto
    for side in ("BUY", "SELL"):
        raw = record.panel.agreement(side).raw
        # an arbiter's or a judge's own word, 0.75 x 0.3, is not rounded
        assert 0.0 <= record.conviction_for(side) <= raw + 1e-12 and raw <= 1.0
    if record.source_type is SourceType.L1_ONLY:
        chart_scores = {vector: record.scores[vector]["score"] for vector in VECTORS}
        final = blend(l1, record.scores)
        assert bits(chart_scores) == bits(l1)
        assert bits({vector: final[vector]["score"] for vector in VECTORS}) == bits(l1)
    json.dumps(record.as_json(), allow_nan=False).encode()


FULL = MODES["full"].seats


def test_the_full_desk_keeps_the_bounds_too(scaled: Scaled) -> None:
    """Rounds, second looks, retries and quorum all at work, within the cap."""
    seen: set[SourceType] = set()
    met = {"degraded": 0, "second_look": 0, "first_look_stands": 0, "answered": 0}

    @cases(scaled(3_000, 70))
    @given(
        scores_on_grid,
        st.tuples(*[st.tuples(mostly_good, mostly_good)] * (len(FULL) - 1)),
        gates,
        charts,
        st.integers(1, 3),
    )
    def check(l1: Any, told: Any, gate: Any, fallback: Any, rounds: int) -> None:
        script = {name: list(pair) for name, pair in zip(FULL, told, strict=False)}
        provider = Scripted({**script, "risk_gate": gate, "chart_scorer": fallback})
        record = debate(
            provider,
            about=context(scores=l1, features=FULL_FEATURES),
            config=settings(mode="full", provider="anthropic", debate_rounds=rounds),
            fallback=None if fallback is None else score_chart,
        )
        holds(record, l1)
        assert len(provider.requests) == len(record.calls) <= 14
        seen.add(record.source_type)
        for name in met:
            met[name] += any(flag.startswith(name) for flag in record.flags)
        met["answered"] += any(report.agent_id in SIDES for report in record.reports)

    check()
    assert SourceType.AGENT_PARTIAL in seen
    assert all(met.values()), met


@pytest.mark.parametrize("mode", ["budget", "firm", "swarm"])
def test_with_nobody_answering_any_l1_stands_bit_for_bit(mode: str, scaled: Scaled) -> None:
    @cases(scaled(10_000, 12))
    @example(dict.fromkeys(VECTORS, -0.0))
    @given(scores_on_grid)
    def check(l1: Any) -> None:
        provider = Scripted(dict.fromkeys(AGENTS, RuntimeError("down")))
        about = context(scores=l1, features=SWARM_FEATURES)
        record = debate(provider, about=about, config=settings(mode=mode))
        final = blend(l1, record.scores)
        assert record.source_type is SourceType.L1_ONLY
        assert bits({vector: final[vector]["score"] for vector in VECTORS}) == bits(l1)
        assert not provider.asked("judge") and not provider.asked("risk_gate")

    check()


def answers(told: Mapping[str, Any]) -> list[CountedReport]:
    return [CountedReport(AGENTS[name].role, one) for name, one in told.items()]


seats = st.builds(
    lambda given, confidence, flags, abstained: {
        "adjustments": given,
        "confidence": confidence,
        "flags": flags,
        "abstained": abstained,
    },
    adjustments,
    confidences,
    st.sampled_from([(), (), ("ungrounded",)]),
    st.sampled_from([False, False, True]),
)


def test_the_mirrored_desk_debates_the_mirror_and_the_sides_shift_little(scaled: Scaled) -> None:
    def turned(said: dict[str, Any]) -> dict[str, Any]:
        moves = {v: None if value is None else -value for v, value in said["adjustments"].items()}
        return {**said, "adjustments": moves}

    @cases(scaled(10_000))
    @given(seats, seats, seats)
    def check(first: Any, second: Any, third: Any) -> None:
        def desk(technical, bull, bear):
            return answers(
                {
                    "technical": a_report(**technical),
                    "bull_researcher": a_report("bull_researcher", **bull),
                    "bear_researcher": a_report("bear_researcher", **bear),
                }
            )

        expected = synthesise(desk(first, second, third))
        mirrored = synthesise(desk(turned(first), turned(third), turned(second)))
        for vector in VECTORS:
            assert mirrored.debate[vector] == -expected.debate[vector]
            assert mirrored.analyst_avg[vector] == -expected.analyst_avg[vector]
            assert abs(expected.debate[vector] - expected.analyst_avg[vector]) <= 0.15 + 1e-12
        for order in itertools.permutations(desk(first, second, third)):
            assert synthesise(order) == expected

    check()


def test_the_order_of_the_desk_changes_nothing() -> None:
    bull = reporting(value=0.12, confidence="medium")
    bear = reporting(value=-0.31, reasoning="Lower highs.")

    def scores(order):
        provider = Scripted({"bull_researcher": bull, "bear_researcher": bear})
        record = debate(provider, config=settings(active_agents=order))
        return {vector: record.scores[vector]["score"] for vector in VECTORS}

    desk = ("technical", "bull_researcher", "bear_researcher")
    expected = scores(desk)
    assert expected != dict(context().scores)
    for order in itertools.permutations(desk):
        assert scores(order) == expected


@pytest.mark.parametrize(("side", "way"), SIDES.items())
def test_a_researcher_argues_its_own_side_and_concedes_the_other(side: str, way: int) -> None:
    """Its number against its office counts as 0, and the rest of its report as of low trust."""
    mixed = {"price_action": -0.1 * way, "key_levels": 0.1 * way, "momentum": 0.0}
    said = reporting(adjustments={**mixed, "structure": None}, confidence="high", flags=["own"])
    record = debate(Scripted({side: said}))
    (report,) = [one for one in record.reports if one.agent_id == side]
    assert report.adjustments == {
        "price_action": 0.0, "key_levels": 0.1 * way, "momentum": 0.0, "structure": None,
    }  # fmt: skip
    assert report.flags == ("own", "conceded")
    assert trust(report) == CONFIDENCE_WEIGHT["low"] == 0.5
    pushed = record.panel.pushes[side]
    assert pushed == pytest.approx(0.1 * way / 2 / 4 * 0.5)
    forged = debate(Scripted({side: reporting(value=0.1 * way, flags=["conceded"])}))
    (told,) = [one for one in forged.reports if one.agent_id == side]
    assert (told.flags, trust(told)) == ((), 1.0), "a model sets no flag of ours"


def test_the_order_of_several_analysts_changes_nothing(scaled: Scaled) -> None:
    focuses: tuple[Focus, ...] = ("primary", "secondary", "primary")
    roles = [
        replace(AGENTS["technical"].role, id=f"a{n}", focus=dict.fromkeys(VECTORS, focus))
        for n, focus in enumerate(focuses)
    ]

    @cases(scaled(10_000))
    @given(st.tuples(seats, seats, seats))
    def check(told: Any) -> None:
        desk = [
            CountedReport(role, a_report(role.id, **one))
            for role, one in zip(roles, told, strict=True)
        ]
        expected = synthesise(desk)
        for order in itertools.permutations(desk):
            assert synthesise(order) == expected

    check()


def test_trust_only_shrinks_at_a_desk_of_one_analyst(scaled: Scaled) -> None:
    @cases(scaled(10_000))
    @given(adjustments, confidences, confidences)
    def check(given_numbers: Any, one: Any, other: Any) -> None:
        weight = {"high": 1.0, "medium": 0.75, "low": 0.5}

        def moves(confidence, flags=()):
            desk = answers(
                {
                    "technical": a_report(
                        adjustments=given_numbers, confidence=confidence, flags=flags
                    )
                }
            )
            return synthesise(desk).debate

        strong, weak = sorted((one, other), key=weight.__getitem__, reverse=True)
        for vector in VECTORS:
            trusted, doubted = moves(strong)[vector], moves(weak)[vector]
            ungrounded = moves(strong, ("ungrounded",))[vector]
            assert abs(ungrounded) <= abs(trusted)
            assert abs(doubted) <= abs(trusted)
            assert trusted * doubted >= 0
            assert trusted * ungrounded >= 0
            if abs(trusted) > 1e-6:
                assert abs(ungrounded) < abs(trusted)
                assert strong == weak or abs(doubted) < abs(trusted)

    check()


@pytest.mark.parametrize("agent", ["technical", "bull_researcher"])
@pytest.mark.parametrize(
    "changes",
    [
        {"confidence": "low"},
        {"evidence": [], "points_for": []},
        {"evidence": [{"id": "x", "value": 1}]},
        {"points_for": [{"id": "x", "value": 1, "says": "x stands at 1", "why": ""}]},
    ],
)
def test_a_doubtful_report_moves_less_through_the_whole_desk(
    agent: str, changes: dict[str, Any]
) -> None:
    """Also when it is the only opinion that answers."""
    others = {name: RuntimeError() for name in AGENTS if name not in (agent, "risk_gate")}

    def moved(**more):
        record = debate(Scripted({**others, agent: reporting(value=0.1, **more)}))
        return record.adjustments["momentum"]

    assert 0 < moved(**changes) < moved()


def test_the_gate_is_monotone(scaled: Scaled) -> None:
    @cases(scaled(10_000))
    @given(
        st.fixed_dictionaries(dict.fromkeys(VECTORS, st.floats(-0.45, 0.45))),
        st.floats(0, 1),
        st.floats(0, 1),
    )
    def check(debated: Any, one: float, other: float) -> None:
        low, high = sorted((one, other))
        weak, strong = adjust(debated, low), adjust(debated, high)
        for vector in VECTORS:
            assert abs(weak[vector]) <= abs(strong[vector])
            assert weak[vector] * strong[vector] >= 0
            assert strong[vector] * debated[vector] >= 0

    check()


def test_a_model_never_loosens_the_rules(scaled: Scaled) -> None:
    rulings_of_both = st.builds(GateRuling, st.floats(0, 1), st.booleans(), st.just(("NONE",)))

    @cases(scaled(10_000))
    @given(rulings_of_both, rulings_of_both)
    def check(rule: Any, model: Any) -> None:
        both = merged(rule, model)
        assert both.multiplier <= rule.multiplier
        assert both.veto or not rule.veto
        assert both == rule or "NONE" not in both.reasons[len(rule.reasons) :]

    check()


WEIGHTS = SentimentWeights()
THRESHOLDS = Thresholds(buy=0.3, sell=0.3)
NOON = datetime(2021, 12, 1, 12, tzinfo=UTC)
near = st.floats(-0.6, 0.6).map(lambda value: round(value, 8))


@st.composite
def l1_scores(draw: st.DrawFn) -> dict[str, float]:
    """Scores that lean one way together, so that both sides and the thresholds are met often."""
    lean = draw(st.sampled_from((-0.3, 0.0, 0.3)))
    return {name: round(lean + draw(st.floats(-0.3, 0.3)), 8) for name in VECTORS}


l1_near = l1_scores()
thoughts = st.fixed_dictionaries(dict.fromkeys(VECTORS, st.floats(-0.45, 0.45)))


def test_lowering_a_multiplier_never_adds_or_reverses_an_opening(scaled: Scaled) -> None:
    """On this tick, nor on the next one of another timeframe that still weighs this composite."""
    opened = []

    @cases(scaled(10_000))
    @given(
        l1_near,
        thoughts,
        st.floats(0, 1),
        st.floats(0, 1),
        l1_near,
        thoughts,
        st.floats(0, 1),
        near,
    )
    def check(l1, debated, one, other, later_l1, later_thought, later_multiplier, ath) -> None:
        low, high = sorted((one, other))
        lenient = ticks(l1, debated, high, later_l1, later_thought, later_multiplier, ath)
        strict = ticks(l1, debated, low, later_l1, later_thought, later_multiplier, ath)
        for before, after in zip(lenient, strict, strict=True):
            assert after in ("HOLD", before)
            opened.append(after)

    check()
    assert {"BUY", "SELL", "HOLD"} <= set(opened)


def ticks(
    l1: Any, debated: Any, multiplier: float, later_l1: Any, later_thought: Any,
    later_multiplier: float, ath: float,
) -> list[str]:  # fmt: skip
    """The opening (or HOLD) of a tick on H1 and of a later one on M15, as the brain decides."""
    first = blended_triple(l1, debated, multiplier, ath)
    second = blended_triple(later_l1, later_thought, later_multiplier, ath)
    return [
        opening({"H1": (NOON, first)}, NOON),
        opening(
            {"H1": (NOON, first), "M15": (NOON + timedelta(minutes=15), second)},
            NOON + timedelta(minutes=15),
        ),
    ]


def blended_triple(
    l1: Any, debated: Any, multiplier: float, ath: float
) -> tuple[float, float, float]:
    def final(value):
        moved = adjust(debated, value)
        told: dict[str, Any] = {
            v: {"score": max(-1.0, min(1.0, l1[v] + moved[v])), "note": ""} for v in VECTORS
        }
        told["composite_bias"] = {"score": 0.0, "note": ""}
        return {v: entry["score"] for v, entry in blend(l1, told).items() if v in VECTORS}

    gated, ungated = final(multiplier), final(1.0)
    low, high = low_high(gated, ungated)
    middle, lowest, highest = (composite(part, ath, WEIGHTS) for part in (gated, low, high))
    return middle, lowest, highest


def opening(told: Mapping[str, Any], as_of: datetime) -> str:
    weights = {"M15": 0.4, "H1": 0.6}
    final, low, high = (
        consensus({tf: (at, three[place]) for tf, (at, three) in told.items()}, weights, as_of)
        for place in range(3)
    )
    said = verdict(final, THRESHOLDS)
    return said if opening_stands(said, low, high, THRESHOLDS) else "HOLD"
