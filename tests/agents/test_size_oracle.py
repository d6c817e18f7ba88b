"""What is left of an opening's size, against an oracle that was written from docs/debate.md alone.

It reads the record of a debate as JSON, the evidence and the settings, and knows no module of the
panel, of the gate's rules, of the officer's rows or of the synthesis.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from agent_config import EXPERTS, MODES, DebateSettings
from agents.contracts import SIDES, VECTORS, ModelUnavailable
from agents.registry import AGENTS
from tests.doubles import scripted
from tests.doubles.scripted import FULL_FEATURES, SWARM_FEATURES, Scripted, context, debate

Scaled = Callable[..., int]
DOWN: Final = ModelUnavailable("error", "503", again=False)
WORDS: Final = {"high": 1.0, "medium": 0.75, "low": 0.5}
FOCUS: Final = {"primary": 1.0, "secondary": 0.5}
WAYS: Final = {"BUY": 1, "SELL": -1}
NAMED: Final = {"LONG": 1, "SHORT": -1, "NONE": 0}
REGIMES: Final = {"trend_up": 1.0, "trend_down": 1.0, "range": 0.7, "quiet": 0.6, "volatile": 0.4}


# --- the oracle -----------------------------------------------------------------------------------


def k(report: Mapping[str, Any]) -> float:
    word = WORDS[report["confidence"]]
    word = min(word, 0.5) if "conceded" in report["flags"] else word
    return word * (0.3 if {"ungrounded", "unfalsified"} & set(report["flags"]) else 1.0)


def push(
    report: Mapping[str, Any], weights: Mapping[str, float], trust: Mapping[str, Any]
) -> float:
    """Return which way an opinion leans, in the whole steps of 1e-8 in which it is counted."""
    role = AGENTS[report["agent_id"]].role
    asked = {v: a for v, a in report["adjustments"].items() if a is not None}
    factor = {
        "analyst": lambda v: FOCUS[role.focus[v]] * trust.get(role.id, 1.0),
        "researcher": lambda _: 0.5,
        "judge": lambda _: 1.0,
    }[role.kind]
    whole = sum(weights.values())
    total = sum(weights[v] / whole * factor(v) * k(report) * a for v, a in asked.items())
    return round(total, 8)


def conviction(spoken: Mapping[str, Any], config: DebateSettings, mode: str, way: int) -> float:
    reports = {one["agent_id"]: one for one in spoken["reports"] if not one["abstained"]}
    kinds = {name: AGENTS[name].role.kind for name in MODES[mode].seats}
    opinions = {n: r for n, r in reports.items() if kinds[n] in ("analyst", "researcher", "judge")}
    failed = [n for n in spoken["failures"] if kinds.get(n) in ("analyst", "researcher", "judge")]
    unheld = any(flag.startswith("degraded:") for flag in spoken["flags"]) and mode == "firm"
    words = sum(kind in ("analyst", "judge") for kind in kinds.values()) + (
        "researcher" in kinds.values()
    )
    if not opinions:
        if not failed:
            return 1.0
        share = min(config.agents.outage_size, 1 / words)
        return min(share, 0.15) * 0.4 if unheld else share
    trust = (spoken.get("swarm") or {}).get("trust") or {}
    pushes = {n: push(r, config.weights, trust) for n, r in opinions.items()}
    lent = {n: 0.0 if way * pushes[n] < 0 else k(r) for n, r in opinions.items()}
    sides = [n for n in kinds if kinds[n] == "researcher"]
    voices = [lent[n] for n in opinions if n not in sides] + [0.0 for n in failed if n not in sides]
    if unheld or {*opinions, *failed} & {*sides}:
        voices.append(max((lent[n] for n in sides if n in opinions), default=0.0))
    raw = sum(voices) / len(voices)
    pushing = [pushes[n] for n in opinions if kinds[n] == "analyst" and pushes[n]]
    against = sum(way * one < 0 for one in pushing)
    opposition = against / len(pushing) if pushing else 0.0
    loud = sum(abs(one) for one in pushes.values())
    dissent = sum(abs(one) for one in pushes.values() if way * one < 0) / loud if loud else 0.0
    cost = 0.60 * max(opposition, dissent)
    judges = [n for n in kinds if kinds[n] in ("arbiter", "judge")]
    if unheld:
        raw, cost = min(raw, 0.15), 0.60
    elif judges and judges[0] in spoken["failures"]:
        raw = min(raw, 0.5)
    elif judges and judges[0] in reports:
        ruling = reports[judges[0]]
        raw, named = min(raw, k(ruling)), NAMED[ruling["winner"]]
        if named == -way:
            cost = max(cost, 0.60)
        elif named == 0 and against:
            cost = max(cost, config.agents.none_cost)
    left = raw * (1 - cost)
    if way * round(sum(pushes.values()), 8) < 0:
        left = min(left, 0.5 * raw)
    experts = sum(n in opinions for n in EXPERTS)
    return min(left, 0.5) if mode == "swarm" and experts < 2 else left


def share(
    spoken: Mapping[str, Any], config: DebateSettings, mode: str, about: Mapping[str, Any], way: int
) -> float:
    gate, officer = config.gate, mode == "swarm"
    storm = [1.0]
    if about["technical.volatility_percentile"] > gate.volatility_percentile:
        storm.append(gate.volatility_multiplier)
    if officer and about["macro.vix_rank"] >= gate.panic_percentile:
        storm.append(gate.panic_multiplier)
    if officer and about["derivs.long_liquidations_rank"] >= gate.liquidations_percentile:
        storm.append(gate.liquidations_multiplier)
    scored = [
        one["adjustments"]
        for one in spoken["reports"]
        if not one["abstained"] and AGENTS[one["agent_id"]].role.kind == "analyst"
    ]
    by_vector = ([one[v] for one in scored if one[v] is not None] for v in VECTORS)
    spread = max((max(given) - min(given) for given in by_vector if given), default=0.0)
    rest = min(1.0, max(gate.disagreement_floor, 1 - spread / gate.disagreement_scale))
    if officer and about["market.triage"] == "exhaustion":
        rest *= gate.exhaustion_multiplier
    if about["memory.losing_streak"] >= gate.losing_streak:
        rest *= gate.losing_streak_multiplier
    budgets = [REGIMES[about["market.regime"]]] if officer else []
    for one in spoken["reports"]:
        if officer and AGENTS[one["agent_id"]].role.kind == "reader" and not one["abstained"]:
            budgets += [REGIMES[one["regime"]], one["budget"]]
    rules = min(storm) * rest
    most = min([*storm, *budgets]) * rest
    cut = spoken["ruling"]["multiplier"] / rules if rules else 0.0
    return most * min(1.0, cut) * conviction(spoken, config, mode, way)


# --- drawn ticks ----------------------------------------------------------------------------------


MARKET: Final[Mapping[str, tuple[Any, ...]]] = {
    "technical.volatility_percentile": (40.0, 99.0),
    "macro.vix_rank": (30.0, 97.0),
    "derivs.long_liquidations_rank": (30.0, 99.5),
    "market.triage": (None, "exhaustion"),
    "market.regime": tuple(REGIMES),
    "memory.losing_streak": (0.0, 3.0),
}


def script(rng: random.Random, mode: str) -> dict[str, Any]:
    """Return an answer of every seat; now and then one fails, and at times most of them do."""
    lean, failing = rng.choice([-1, 1]), rng.choice([0.05, 0.05, 0.3, 1.0])
    return {
        name: DOWN if rng.random() < failing else answer(rng, name, lean)
        for name in MODES[mode].seats
    }


def answer(rng: random.Random, name: str, lean: int) -> Callable[[Any], dict[str, Any]]:
    way = SIDES.get(name) or lean * rng.choice([1, 1, 1, -1, 0])
    amounts = (None, 0.0, 0.04, 0.25, round(rng.uniform(0.0, 0.3), 6))
    drawn: dict[str, Any] = {v: rng.choice(amounts) for v in VECTORS}
    moves = {v: None if a is None else way * a for v, a in drawn.items()}
    false = {"evidence": [{"id": "x", "value": 1}], "points_for": []}
    opinion = {"adjustments": moves, **(false if rng.random() < 0.2 else {})}
    read = {"regime": rng.choice([*REGIMES]), "budget_pct": rng.choice([100, 50, 0])}
    replies: Mapping[str, tuple[Callable[..., dict[str, Any]], Mapping[str, Any]]] = {
        "gate": (scripted.ruling, {"multiplier": rng.choice([1.0, 1.0, 0.5, 0.0])}),
        "arbiter": (scripted.judgement, {"winner": rng.choice([*NAMED])}),
        "reader": (scripted.regime, read),
        "judge": (scripted.decision, {"side": rng.choice([*NAMED])}),
    }
    reply, changes = replies.get(AGENTS[name].role.kind, (scripted.report, opinion))
    sure = rng.choice([*WORDS])
    return lambda request: reply(request, **{"confidence": sure, **changes})


def close_to(value: float) -> Any:
    """Every number of a record is rounded to 1e-8, and a quotient of two of them is not exact."""
    return pytest.approx(value, abs=2e-7)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", list(MODES))
def test_a_size_is_the_product_of_the_docs(mode: str, scaled: Scaled, record_property: Any) -> None:
    rng, met = random.Random(mode), dict.fromkeys(("whole", "cut", "none"), 0)
    base = {**FULL_FEATURES, "company.pe": 20.0, **(SWARM_FEATURES if mode == "swarm" else {})}
    for number in range(scaled(10_000, 60)):
        about = {name: rng.choice(values) for name, values in MARKET.items()}
        config = scripted.settings(
            mode=mode,
            second_look="never",
            none_cost=rng.choice([0.0, 0.3, 0.6]),
            outage_size=rng.choice([0.1, 0.25, 1.0]),
        ).model_copy(
            update={"weights": {v: rng.choice([0.1, 0.25, rng.random()]) for v in VECTORS}}
        )
        record = debate(
            Scripted(script(rng, mode)), about=context(features={**base, **about}), config=config
        )
        spoken = record.as_json()
        for side, way in WAYS.items():
            expected = share(spoken, config, mode, about, way)
            assert record.size_share(side) == close_to(expected), (number, side, spoken)
            met["none" if expected == 0 else "whole" if expected >= 0.99 else "cut"] += 1
    record_property("seen", f"{mode}: {met}")
    assert met["cut"] and met["none"]
