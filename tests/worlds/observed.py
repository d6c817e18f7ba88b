"""Recorded arms for tests of torra.evaluation: random desks, put together by the product itself.

`random_arm` lets agents.debate.scoring, agents.risk_gate, agent_framework.blend and
torra.verdict.sentiment_rules make every tick out of random reports; `plain_tick` is a tick with the
few fields that a test cares about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np

from agent_config import MODES
from agent_framework import blend
from agents import risk_gate
from agents.contracts import SIDES, VECTORS, WINNERS, AgentReport, Feature, GateRuling
from agents.debate.deliberation import with_bias
from agents.debate.scoring import (
    UNJUDGED,
    CountedReport,
    add_adjustments,
    adjust,
    spread,
    synthesise,
)
from agents.registry import AGENTS
from torra.clock import duration
from torra.config import Profile
from torra.desk.journal_ticks import opinions
from torra.evaluation.observations import ArmObservation, TickObservation, four
from torra.verdict import sentiment_rules

START = datetime(2024, 1, 1, tzinfo=UTC)
ANALYSTS = ("technical", "sentiment", "news", "key_levels", "momentum")
DESK = (*ANALYSTS, "bull_researcher", "bear_researcher", "risk_gate")
ALONE = (*ANALYSTS, "risk_gate")
"""Every analyst and the gate's rules; nobody debates."""
FIRM = MODES["firm"].seats
"""With a research manager, whose weights lessen the cases and whose word lowers the conviction."""


def random_report(rng: np.random.Generator, name: str, lean: float = 0.0) -> AgentReport | None:
    """A report within its role, an abstention, or None for a failure."""
    role, fate = AGENTS[name].role, rng.random()
    if fate < 0.1:
        return None
    if role.kind == "gate":
        model = GateRuling(float(rng.choice([1.0, 0.8, 0.55])), bool(rng.random() < 0.1))
        return AgentReport(name, {}, ruling=model)
    if fate < 0.2:
        return AgentReport.abstain(name, "no evidence")
    if role.kind == "arbiter":
        return _judgement(rng, name)
    given = {
        vector: None
        if vector not in role.focus or rng.random() < 0.2
        else float(np.clip(round(rng.normal(lean, 0.15), 2), -role.bound, role.bound))
        for vector in VECTORS
    }
    words: Sequence[Literal["high", "medium", "low"]] = ("high", "medium", "low")
    word = words[rng.choice(3)]
    flags = ("ungrounded",) if rng.random() < 0.2 else ()
    return AgentReport(name, given, word, flags=flags)


def _judgement(rng: np.random.Generator, name: str) -> AgentReport:
    weights = {side: float(rng.choice([0.0, 0.3, 1.0])) for side in SIDES}
    winner: Any = [*WINNERS][rng.choice(len(WINNERS))]
    confident: Any = ["high", "medium", "low"][rng.choice(3)]
    return AgentReport(name, dict.fromkeys(VECTORS), confident, winner=winner, weights=weights)


def deliberated(
    tick: TickObservation,
    answers: Mapping[str, CountedReport | None],
    profile: Profile,
    **features: float,
) -> TickObservation:
    """Return a tick on which these agents answered, or failed; consensus and verdict are left."""
    told = {name: Feature(name, value) for name, value in features.items()}
    heard = {name: found for name, found in answers.items() if found is not None}
    gate, manager = heard.pop("risk_gate", None), heard.pop("research_manager", None)
    judged = manager.report if manager else UNJUDGED if "research_manager" in answers else None
    said = synthesise(heard.values(), judged.weights if judged else {})
    apart = spread(found for found in heard.values() if found.role.kind == "analyst")
    rule = risk_gate.rules(told, profile.gate, apart).ruling
    asked = heard and gate is not None
    ruling = risk_gate.merged(rule, gate.report.ruling if asked and gate else None)
    adjusted = adjust(said.debate, ruling.multiplier)
    l1 = dict(zip(VECTORS, tick.l1, strict=True))
    chart = {v: {"score": s, "note": ""} for v, s in add_adjustments(l1, adjusted).items()}
    blended = blend(l1, with_bias(chart, ""))
    beside = [found for found in (manager, gate) if heard and found]
    spoken = [found.report for found in (*heard.values(), *beside)]
    failed = [name for name, found in answers.items() if found is None]
    return replace(
        tick,
        debate=four(said.debate),
        adjustments=four(adjusted),
        scores=four({v: blended[v]["score"] for v in VECTORS}),
        multiplier=ruling.multiplier,
        veto=ruling.veto,
        rule_multiplier=rule.multiplier,
        rule_veto=rule.veto,
        source_type="AGENT_FULL" if heard else "L1_ONLY",
        opinions=opinions(spoken, failed),
    )


def weighed(ticks: Sequence[TickObservation], profile: Profile) -> tuple[TickObservation, ...]:
    """Return ticks with the consensus and verdicts that the brain gives them, in their order."""
    latest: dict[str, dict[tuple[str, str], tuple[datetime, float]]] = {"l1": {}, "final": {}}
    found = []
    for tick in ticks:
        told: dict[str, Any] = {}
        for chain, scores in (("l1", tick.l1), ("final", tick.scores)):
            table = dict(zip(VECTORS, scores, strict=True))
            own = sentiment_rules.composite(table, tick.ath, profile.sentiment_weights)
            latest[chain][tick.instance, tick.timeframe] = (tick.close_time, own)
            told[chain] = sentiment_rules.consensus(
                {tf: value for (name, tf), value in latest[chain].items() if name == tick.instance},
                profile.timeframe_weights,
                tick.close_time,
            )
        found.append(
            replace(
                tick,
                l1_consensus=told["l1"],
                consensus=told["final"],
                l1_verdict=sentiment_rules.verdict(told["l1"], profile.thresholds),
                verdict=sentiment_rules.verdict(told["final"], profile.thresholds),
            )
        )
    return tuple(found)


def plain_tick(close_time: datetime, timeframe: str = "M15", **fields: Any) -> TickObservation:
    zero = (0.0, 0.0, 0.0, 0.0)
    given: dict[str, Any] = {
        "instance": "XAUUSD",
        "symbol": "XAUUSD",
        "timeframe": timeframe,
        "bar_time": close_time - duration(timeframe),
        "close_time": close_time,
        "close": 100.0,
        "atr": 1.0,
        "ath": 0.0,
        "l1": zero,
        "debate": zero,
        "adjustments": zero,
        "scores": zero,
        "l1_consensus": 0.0,
        "consensus": 0.0,
        "l1_verdict": "HOLD",
        "verdict": "HOLD",
        "action": "HOLD",
        "reason": "",
        "source_type": "AGENT_FULL",
    }
    return TickObservation(**(given | fields))


def quiet_ticks(count: int, **fields: Any) -> tuple[TickObservation, ...]:
    """Return ticks of one M15 stream, one after the other."""
    return tuple(plain_tick(START + timedelta(minutes=15 * n), **fields) for n in range(count))


def random_arm(
    seed: int,
    closes: int = 40,
    desk: Sequence[str] = DESK,
    profile: Profile | None = None,
    symbols: Sequence[str] = ("XAUUSD", "EURUSD"),
    lean: float = 0.0,
    absent: str = "",
) -> ArmObservation:
    """Return M15 and H1 ticks, the longer first where they close together, with gaps.

    `lean` is what the agents' adjustments are on average; one that is `absent` never sat there.
    """
    rng, profile = np.random.default_rng(seed), profile or Profile()
    ticks = []
    for number in range(closes):
        close = START + timedelta(minutes=15 * number)
        names = ("H1", "M15") if close.minute == 0 else ("M15",)
        for symbol in symbols:
            for timeframe in names:
                if rng.random() < 0.1:
                    continue  # no bar
                tick = _random_tick(rng, close, timeframe, symbol, desk, profile, lean, absent)
                ticks.append(tick)
    return ArmObservation("full", weighed(ticks, profile), ())


def _random_tick(
    rng: np.random.Generator,
    close: datetime,
    timeframe: str,
    symbol: str,
    desk: Sequence[str],
    profile: Profile,
    lean: float,
    absent: str,
) -> TickObservation:
    scores = [round(float(value), 8) for value in np.clip(rng.normal(0.3, 0.4, 4), -1, 1)]
    tick = plain_tick(
        close,
        timeframe,
        instance=symbol,
        symbol=symbol,
        ath=round(float(rng.uniform(-1, 1)), 8),
        l1=(scores[0], scores[1], scores[2], scores[3]),
    )
    answers = {
        name: None if report is None else CountedReport(AGENTS[name].role, report)
        for name, report in [(name, random_report(rng, name, lean)) for name in desk]
        if name != absent
    }
    return deliberated(
        tick,
        answers,
        profile,
        **{
            "technical.volatility_percentile": float(rng.choice([50.0, 99.0])),
            "memory.losing_streak": float(rng.choice([0, 4])),
            "memory.open_elsewhere": float(rng.choice([0, 1])),
            "market.spread_atr": float(rng.choice([0.05, 0.5], p=[0.9, 0.1])),
        },
    )
