"""What no debate can break: bounds, hull, symmetry, order, and the direction of trust and gate.

Each holds of every mode. A manager's weights, an expert's trust and a judge re-weigh and move
scores inside the bounds; a gate, a veto and a decline only take away.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent_config import CONFIDENCE_WEIGHT, EXPERTS, GATE_ID, MODES, TRUST_FLOOR
from agent_framework import blend
from agents.contracts import (
    OPINIONS,
    REGIMES,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    GateRuling,
    SourceType,
    Winner,
)
from agents.debate.deliberation import Deliberation
from agents.debate.scoring import (
    UNJUDGED,
    CountedReport,
    Synthesis,
    adjust,
    blended,
    synthesise,
)
from agents.evidence import trust
from agents.registry import AGENTS
from agents.risk_gate import merged
from tests.doubles import scripted
from tests.doubles.scripted import (
    FULL_FEATURES,
    OWN_FIELDS,
    SWARM_FEATURES,
    SWARM_FIELDS,
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
from torra.tick.debate import score_chart
from torra.verdict.risk_engine import OpenSide, intent
from torra.verdict.sentiment_rules import SIDES as BOTH
from torra.verdict.sentiment_rules import (
    composite,
    consensus,
    low_high,
    opening_stands,
    release_latch,
    verdict,
    veto_latch,
)

Scaled = Callable[..., int]
GRID = 10**8
EVIDENCE: Final = {**FULL_FEATURES, **SWARM_FEATURES, "company.pe": 20.0}
"""Evidence for every seat of every mode."""

numbers = st.one_of(
    st.none(),
    st.floats(-0.4, 0.4),
    st.sampled_from([0.0, -0.0, 0.3, -0.3, 0.15, -0.15, 1e9, -1e300, 5e-324, 10**30, -(10**400)]),
    st.sampled_from([math.nan, math.inf, -math.inf, True, False, "0.4", "N/A", [], {}]),
)
finite = st.floats(-1, 1)
scores_on_grid = st.fixed_dictionaries(
    {v: st.integers(-GRID, GRID).map(lambda n: -(n / GRID)) for v in VECTORS}
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
gates = st.one_of(rulings.map(as_text), rulings.map(as_text), broken)
charts = st.one_of(st.none(), finite.map(lambda score: as_text(chart(score=score))), broken)
judgements = st.builds(
    lambda winner, bull, bear, confidence: scripted.judgement(
        winner=winner, weights=dict(zip(SIDES, (bull, bear), strict=True)), confidence=confidence
    ),
    st.sampled_from([*WINNERS, "BOTH"]),
    st.one_of(st.floats(-1, 3), st.sampled_from([1e300, -0.0, "1", None])),
    st.floats(0, 1),
    confidences,
)
shares = st.one_of(st.sampled_from([0.0, 0.25, 0.4, 0.5, 0.6, 0.7, 1.0]), st.floats(0, 1))
decisions = st.builds(
    lambda side, share, value, counter: scripted.decision(
        side=side, win_share=share, value=value, counter=counter
    ),
    st.sampled_from([*WINNERS, "BOTH"]),
    shares | st.sampled_from([9.0, -1e300, "0.6", None]),
    st.floats(-1, 1),
    st.sampled_from(["", "It may turn."]),
)
readings = st.builds(
    lambda regime, budget, first: scripted.regime(regime=regime, budget_pct=budget, first=first),
    st.sampled_from([*REGIMES, "bull"]),
    st.one_of(*[st.floats(-50, 150)] * 3, st.sampled_from([1e300, None, "50"])),
    st.sampled_from([*EXPERTS, "none", "judge", "risk_gate"]),
)


def with_findings(reply: Any) -> Any:
    """Return a reply with what an expert says beside a report; what is no report stays as it is."""
    try:
        read = json.loads(reply)
    except (TypeError, ValueError, RecursionError):
        return reply
    is_report = isinstance(read, dict) and "claim" in read
    return as_text({**SWARM_FIELDS, **read}) if is_report else reply


REPLIES: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    **dict.fromkeys(EXPERTS, mostly_good.map(with_findings)),
    **{
        name: st.one_of(some.map(as_text), some.map(as_text), broken)
        for name, some in (
            ("research_manager", judgements),
            ("judge", decisions),
            ("regime_reader", readings),
        )
    },
    GATE_ID: gates,
}
"""What seats reply that give no report of an analyst or a researcher, and experts."""


def bits(scores: Mapping[str, float]) -> bytes:
    return b"".join(struct.pack("<d", scores[vector]) for vector in VECTORS)


def cases(count: int) -> hypothesis_settings:
    return hypothesis_settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


MET: Final[Mapping[str, set[str]]] = {
    "budget": {"AGENT_PARTIAL", "L1_ONLY"},
    "full": {"AGENT_PARTIAL", "L1_ONLY", "degraded", "second_look", "first_look_stands", *SIDES},
    "firm": {"AGENT_PARTIAL", "L1_ONLY", *SIDES, "research_manager"},
    "swarm": {"AGENT_PARTIAL", "L1_ONLY", "judge", "regime_reader"},
}
"""Source types, flags and heard seats without which a mode's debates would prove little."""


@pytest.mark.parametrize("mode", MODES)
def test_no_reply_raises_or_leaves_the_bounds(mode: str, scaled: Scaled) -> None:
    """Rounds, rebuttals, second looks, retries and quorum all at work, within the cap.

    With nobody answering L1 stands bit for bit, and no judge and no gate is asked.
    """
    met: set[str] = set()
    script = {
        name: st.tuples(reply, reply).map(list)
        for name in MODES[mode].seats
        for reply in (REPLIES.get(name, mostly_good | reports.map(as_text)),)
    }
    choices = {
        "debate_rounds": st.integers(1, 3),
        "rebuttal": st.sampled_from(["auto", "always", "never"]),
        "gate_call": st.sampled_from(["always", "openings"]),
        "judge_hold": st.sampled_from(["size", "veto"]),
    }

    @cases(scaled(10_000, 120))
    @given(
        scores_on_grid, st.fixed_dictionaries(script), charts, st.fixed_dictionaries(choices),
        st.sampled_from([False] * 4 + [True]),
    )  # fmt: skip
    def check(l1: Any, replies: Any, fallback: Any, chosen: Any, down: bool) -> None:
        if down:
            replies = dict.fromkeys(AGENTS, RuntimeError("down"))
        provider = Scripted({**replies, "chart_scorer": fallback})
        record = debate(
            provider,
            about=context(scores=l1, features=EVIDENCE),
            config=settings(mode=mode, provider="anthropic", **chosen),
            fallback=None if fallback is None else score_chart,
        )
        holds(record, l1)
        if down:
            assert str(record.source_type) in ("L1_ONLY", *(["LEGACY"] if fallback else []))
            assert not provider.asked("judge") and not provider.asked("risk_gate")
        assert len(provider.requests) == len(record.calls) <= 14
        met.update(flag.partition(":")[0] for flag in record.flags)
        met.update([str(record.source_type), *(report.agent_id for report in record.reports)])

    check()
    assert met >= MET[mode], MET[mode] - met


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
        assert 0.0 <= record.size_share(side) <= record.rule_ruling.multiplier
    if record.source_type is SourceType.L1_ONLY:
        chart_scores = {vector: record.scores[vector]["score"] for vector in VECTORS}
        final = blend(l1, record.scores)
        assert bits(chart_scores) == bits(l1)
        assert bits({vector: final[vector]["score"] for vector in VECTORS}) == bits(l1)
    json.dumps(record.as_json(), allow_nan=False).encode()


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


class Desk(NamedTuple):
    """Opinions of some seats, who judged them, and how much their words count."""

    answers: list[CountedReport]
    judged: AgentReport | None
    trusted: Mapping[str, float]

    @property
    def weights(self) -> Mapping[str, float]:
        """A manager's weights of both cases."""
        return {} if self.judged is None else self.judged.weights

    def debate(self, **changes: Any) -> Synthesis:
        """Return what the desk comes to."""
        return synthesise(
            changes.get("answers", self.answers), changes.get("weights", self.weights), self.trusted
        )


trusts: st.SearchStrategy[dict[str, float]] = st.just({}) | st.fixed_dictionaries(
    dict.fromkeys(EXPERTS, st.floats(TRUST_FLOOR, 1))
)
flags_of_a_judge = st.sampled_from(
    [(), ("ungrounded",), ("unfalsified",), ("ungrounded", "unfalsified")]
)
case_weights = st.fixed_dictionaries(dict.fromkeys(SIDES, st.floats(0, 1)))


@st.composite
def judges(draw: st.DrawFn, name: str) -> AgentReport | None:
    """A manager or a judge, of which one in four failed, abstained, or does not sit."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([None, UNJUDGED, AgentReport.abstain(name, "a test")]))
    winner: Winner = draw(st.sampled_from([*WINNERS]))
    flags = draw(flags_of_a_judge)
    if name == "research_manager":  # a judge alone names what would prove it wrong
        flags = tuple(flag for flag in flags if flag != "unfalsified")
    report = a_report(name, **draw(seats) | {"abstained": False, "flags": flags})
    if name == "research_manager":
        moves: Mapping[str, float | None] = dict.fromkeys(VECTORS)
        return replace(report, winner=winner, adjustments=moves, weights=draw(case_weights))
    moves = sided(report.adjustments, WINNERS[winner])
    return replace(report, winner=winner, adjustments=moves, win_share=draw(shares))


def sided(moves: Mapping[str, float | None], way: int) -> dict[str, float | None]:
    """Return adjustments of which none is against a side; 0 is no side."""
    return {v: a if a is None or not way else way * abs(a) for v, a in moves.items()}


@st.composite
def desks(draw: st.DrawFn, mode: str) -> Desk:
    """The opinions of a desk of some mode, each of which may be missing."""
    answers: list[CountedReport] = []
    judged = None
    for name in MODES[mode].seats:
        role = AGENTS[name].role
        if role.kind in ("arbiter", "judge"):
            judged = draw(judges(name))
            if role.kind == "judge" and judged and judged is not UNJUDGED:
                answers.append(CountedReport(role, judged))
        elif role.kind in OPINIONS and draw(st.integers(0, 7)):
            report = a_report(name, **draw(seats))
            moves = sided(report.adjustments, SIDES.get(name, 0))
            if role.kind == "analyst":
                moves = {v: a if v in role.focus else None for v, a in moves.items()}
            answers.append(CountedReport(role, replace(report, adjustments=moves)))
    return Desk(answers, judged, draw(trusts) if MODES[mode].weighs else {})


OTHER: Final[Mapping[Winner | Literal[""], Winner | Literal[""]]] = {
    "LONG": "SHORT",
    "SHORT": "LONG",
    "NONE": "NONE",
    "": "",
}
RIVAL: Final = dict(zip(SIDES, reversed([*SIDES]), strict=True))


def turned_report(report: AgentReport) -> AgentReport:
    """Return what its seat, or its rival's, says of the mirrored market."""
    moves = {v: None if a is None else -a for v, a in report.adjustments.items()}
    weights = {RIVAL[name]: weight for name, weight in report.weights.items()}
    return replace(
        report, agent_id=RIVAL.get(report.agent_id, report.agent_id), adjustments=moves,
        weights=weights, winner=OTHER[report.winner],
    )  # fmt: skip


def turned(desk: Desk) -> Desk:
    """Return the desk of the mirrored market, in which bull and bear have changed places."""
    reports = (turned_report(report) for _, report in desk.answers)
    answers = [CountedReport(AGENTS[report.agent_id].role, report) for report in reports]
    judged = desk.judged
    if judged is not None and judged is not UNJUDGED:
        judged = turned_report(judged)
    return desk._replace(answers=answers, judged=judged)


@pytest.mark.parametrize("mode", MODES)
def test_a_desk_keeps_the_bounds_the_hull_the_mirror_and_the_order(
    mode: str, scaled: Scaled
) -> None:
    met = dict.fromkeys(("shifted", "trusted", "weighed"), 0)

    @cases(scaled(10_000))
    @given(desks(mode), scores_on_grid, st.randoms(use_true_random=False))
    def check(desk: Desk, l1: Any, dice: Any) -> None:
        found = desk.debate()
        analysts = [report for role, report in desk.answers if role.kind == "analyst"]
        corners = [
            desk.debate(weights=dict(zip(SIDES, pair, strict=True))).debate
            for pair in itertools.product((0.0, 1.0), repeat=2)
        ]
        for vector in VECTORS:
            shift = found.debate[vector] - found.analyst_avg[vector]
            assert abs(shift) <= 0.15 + 1e-12
            met["shifted"] += bool(shift)
            asked = [
                trust(report) * value
                for report in analysts
                if not report.abstained and (value := report.adjustments[vector]) is not None
            ] or [0.0]
            assert min(asked) - 1e-12 <= found.analyst_avg[vector] <= max(asked) + 1e-12
            values = [corner[vector] for corner in corners]
            if desk.weights:
                assert min(values) - 1e-12 <= found.debate[vector] <= max(values) + 1e-12
        for vector, moved in adjust(found.debate, 1.0).items():
            assert abs(moved) <= 0.3
            score = max(-1.0, min(1.0, l1[vector] + moved))
            assert abs(blended(l1[vector], score) - l1[vector]) <= 0.06 + 1e-9
        mirror = turned(desk).debate()
        for vector in VECTORS:
            assert mirror.debate[vector] == -found.debate[vector]
            assert mirror.analyst_avg[vector] == -found.analyst_avg[vector]
        assert desk.debate(answers=dice.sample(desk.answers, len(desk.answers))) == found
        met["trusted"] += desk._replace(trusted={}).debate() != found
        met["weighed"] += desk.debate(weights={}) != found

    check()
    assert met["shifted"]
    assert bool(met["trusted"]) == MODES[mode].weighs
    assert bool(met["weighed"]) == ("research_manager" in MODES[mode].seats)


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_the_seats_changes_nothing(mode: str, scaled: Scaled) -> None:
    seats = [name for name in MODES[mode].seats if name != GATE_ID]
    script = {
        name: reporting(value=round(0.07 * (number - 2), 2), confidence="medium")
        for number, name in enumerate(seats)
        if AGENTS[name].role.kind in ("analyst", "researcher")
    }
    dice, seen = random.Random(mode), set()
    for _ in range(scaled(700, 8)):
        config = settings(mode=mode, active_agents=dice.sample(seats, len(seats)))
        record = debate(Scripted(script), about=context(features=EVIDENCE), config=config)
        assert any(record.adjustments.values()) and not record.failures
        parts = record.as_json()
        names = ("debate", "adjustments", "ruling", "panel", *(["swarm"] if record.swarm else []))
        seen.add(json.dumps({name: parts[name] for name in names}, sort_keys=True))
    assert len(seen) == 1


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


# --- declines and latches -------------------------------------------------------------------------


edges = st.builds(
    lambda middle, off: round(middle + off, 8),
    st.sampled_from((-0.4, -0.3, 0.0, 0.3, 0.4)),
    st.floats(-0.06, 0.06),
)
outers = st.builds(lambda low, wide: (low, round(low + wide, 8)), edges, st.floats(0, 0.1))
consensuses = st.tuples(outers, st.floats(0, 1))
holdings = st.sampled_from(
    [None, None, None, OpenSide("LONG", "FILLED"), OpenSide("SHORT", "CLOSING")]
)
vetoes = st.sampled_from([(), ("BUY",), ("SELL",), ("BUY", "SELL")])


def openings(
    told: Any, vetoed: tuple[str, ...], latched: frozenset[str], held: OpenSide | None
) -> tuple[set[str], frozenset[str]]:
    """Return the sides on which a tick opens, and the latch after it, as a tick decides it."""
    (low, high), part = told
    outer = (low, high)
    said = verdict(low + part * (high - low), THRESHOLDS)
    before = release_latch(latched, outer, THRESHOLDS)
    legs = [
        side
        for side in BOTH
        if any(leg.kind == "open" for leg in intent(side, held, "reverse").legs)
    ]
    opens = (
        said in legs
        and opening_stands(said, low, high, THRESHOLDS)
        and said not in vetoed
        and said not in before
    )
    after = veto_latch(before, outer, THRESHOLDS, vetoes=vetoed, openings=legs)
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
        free = bound = frozenset[str]()
        for number, (told, vetoed, held) in enumerate(ticks):
            more = () if number else (side,)
            without, free = openings(told, vetoed, free, held)
            given_more, bound = openings(told, (*vetoed, *more), bound, held)
            assert {other} & given_more == {other} & without
            assert {other} & bound == {other} & free and bound >= free
            assert given_more <= without and not {*more} & given_more
            if given_more < without:
                met["denied later" if number else "denied at once"] += 1

    check()
    assert all(met.values()), met
