"""The eight agents of the full desk: turned round, cited wrongly, and what each may move.

What holds of every agent is tried on every agent, through the framework and the prompt that decides
what each of them is shown.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings

from agent_config import MODES, UNGROUNDED_WEIGHT
from agent_framework import deliberate
from agents.contracts import SIDES, VECTORS, AgentReport, Feature
from agents.debate.deliberation import Deliberation
from agents.registry import AGENTS
from docs import generate
from tests.cases import cases
from tests.doubles.scripted import (
    FULL_FEATURES,
    Scripted,
    context,
    debate,
    report,
    ruling,
    settings,
)
from tests.worlds.mirrors import MARKET, MARKETS, SCORES, mirrored
from torra.config import ROOT
from torra.providers.rules.provider import RulesProvider

DESK = MODES["full"].seats
VOICES = DESK[:-1]
"""All but the gate, which scores nothing."""
TWIN = {"bull_researcher": "bear_researcher", "bear_researcher": "bull_researcher"}
FULL = settings(mode="full", second_look="never")

BULLISH = MARKET | {
    "technical.close": 103.0,
    "technical.ema20": 101.0,
    "technical.bb_lower": 97.0,
    "technical.kijun": 99.0,
    "technical.fib_500": 99.5,
    "technical.macd": 0.5,
    "technical.macd_hist": 0.25,
    "technical.macd_signal": 0.25,
    "technical.plus_di": 32.0,
    "technical.minus_di": 12.0,
    "technical.trend_state": 1.0,
    "technical.body_atr": 0.5,
    "sentiment.news": 0.25,
    "sentiment.up_bars": 0.75,
    "sentiment.up_volume": 0.625,
    "sentiment.streak": 4.0,
    "news.score": 0.25,
    "news.macro_score": 0.5,
    "news.item.1": "Gold climbs",
    "market.regime": "trend_up",
    "market.valid_bars": 750.0,
    "market.bar_age": 0.0,
    "market.spread_atr": 0.05,
}


def by_rules(values: dict[str, Any], scores: dict[str, float]) -> Deliberation:
    about = context(scores=scores, memory={}, notes={})
    features = {name: Feature(name, value) for name, value in values.items()}
    return deliberate(
        replace(about, features=features),
        FULL,
        RulesProvider().submit,
        monotonic=time.monotonic,
        deadline=time.monotonic() + 30,
    )


def reports(record: Deliberation) -> dict[str, AgentReport]:
    return {told.agent_id: told for told in record.reports}


# --- turned round ---------------------------------------------------------------------------------


def check_mirrored(values: dict[str, Any], scores: dict[str, float]) -> None:
    here = by_rules(values, scores)
    there = by_rules(mirrored(values), {name: -score for name, score in scores.items()})
    assert not here.failures and not there.failures
    assert reports(here).keys() == reports(there).keys() == set(DESK)
    for role in VOICES:
        told, turned = reports(here)[role], reports(there)[TWIN.get(role, role)]
        assert not told.abstained
        assert told.confidence == turned.confidence
        for vector in VECTORS:
            value, other = told.adjustments[vector], turned.adjustments[vector]
            assert (value is None) == (other is None) == (vector not in AGENTS[role].role.focus)
            assert value is None or value == -(other or 0.0), (role, vector)
        for name, ordinal in told.ordinals.items():
            assert turned.ordinals[name] == (ordinal if name == "relevance" else -ordinal)
    rulings = [reports(record)["risk_gate"].ruling for record in (here, there)]
    assert rulings[0].multiplier == pytest.approx(rulings[1].multiplier)
    assert rulings[0].veto == rulings[1].veto
    for vector in VECTORS:
        assert here.adjustments[vector] == pytest.approx(-there.adjustments[vector], abs=1e-9)


@pytest.mark.parametrize("way", [1, -1])
def test_evidence_turned_round_turns_round_what_every_agent_says(way: int) -> None:
    """With the scores turned too, so that up is down."""
    values = BULLISH if way > 0 else mirrored(BULLISH)
    spoken = reports(by_rules(values, dict.fromkeys(VECTORS, way * 0.125)))
    for role in VOICES:
        move = way * sum(value or 0.0 for value in spoken[role].adjustments.values())
        assert move > 0.01 or (SIDES.get(role) == -way and move <= 0.0), role


@example(BULLISH, dict.fromkeys(VECTORS, 0.125))
@hypothesis_settings(deadline=None, max_examples=25)
@given(MARKETS, SCORES)
def test_any_market_turned_round_turns_the_desk(
    market: dict[str, Any], scores: dict[str, float]
) -> None:
    """Up is down, and the gate, which has no side, rules alike."""
    check_mirrored({**BULLISH, **market}, scores)


# --- cited wrongly --------------------------------------------------------------------------------

WRONG = [
    pytest.param([{"id": "technical.invented", "value": 1.0}], id="not in the bundle"),
    pytest.param([{"id": "technical.rsi14", "value": 71.2}], id="another value"),
    pytest.param([{"id": "technical.rsi14", "value": "61.2"}], id="a word for a number"),
    pytest.param([{"id": "technical.unknown", "value": 1.0}], id="a feature without a value"),
    pytest.param([], id="nothing at all"),
]


@cases("cited", WRONG)
@cases("role", VOICES)
def test_a_value_that_is_not_in_the_bundle_moves_the_score_less(role: str, cited: Any) -> None:
    seen = context(features={**FULL_FEATURES, "technical.unknown": None})
    alone = settings(active_agents=(role,), second_look="never")

    way = SIDES.get(role, 1)

    def moved(**changes: Any) -> Deliberation:
        provider = Scripted({role: lambda request: report(request, value=0.1 * way, **changes)})
        return debate(provider, about=seen, config=alone)

    honest, invented = moved(), moved(evidence=cited, points_for=[])
    assert "ungrounded" not in reports(honest)[role].flags
    assert "ungrounded" in reports(invented)[role].flags
    for vector in AGENTS[role].role.focus:
        move = honest.adjustments[vector]
        assert move * way > 0.0
        assert invented.adjustments[vector] == pytest.approx(UNGROUNDED_WEIGHT * move)


def test_a_gate_that_cites_wrongly_is_flagged_and_still_may_only_lower() -> None:
    moves = {}
    for rsi, flags in ((27.5, ()), (9.9, ("ungrounded",))):
        cited = [{"id": "technical.adx14", "value": rsi}]
        entry = ruling(multiplier=0.5, reason_code="WEAK_CASE", evidence=cited)
        record = debate(
            Scripted({"risk_gate": entry}), about=context(features=FULL_FEATURES), config=FULL
        )
        assert reports(record)["risk_gate"].flags == flags
        moves[flags] = [abs(move) for move in record.adjustments.values()]
    honest, invented = moves.values()
    assert all(less <= more for less, more in zip(invented, honest, strict=True))


# --- what each of them is -------------------------------------------------------------------------


def test_the_page_of_the_agents_is_written_from_their_roles() -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    assert page == generate.render_agents_docs(generate.by_hand(page)), "python -m docs.generate"
    assert all(f"### `{name}`" in page for name in AGENTS)
