"""The rules' gate and the bar's own spread: it lowers and vetoes, and enlarges nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_config import GateSettings
from agents.contracts import VECTORS, Feature
from torra.providers.rules import gate_rules

LIMIT = GateSettings().max_spread_atr


def ruling(own: float | None, assumed: float | None = 0.05, **more: Any) -> dict[str, Any]:
    told = {"market.spread_atr": assumed, "spread.last_atr": own, **more}
    features = {name: Feature(name, value) for name, value in told.items()}
    request = SimpleNamespace(
        symbol="XAUUSD", features=features, reports=(), scores=dict.fromkeys(VECTORS, 0.0),
        role=SimpleNamespace(id="risk_gate"),
    )  # fmt: skip
    return gate_rules.gate(cast(Any, request))


def test_a_bar_that_is_dearer_than_assumed_cuts_and_then_vetoes() -> None:
    plain = ruling(None)
    assert (plain["multiplier"], plain["veto"]) == (1.0, False)
    assert ruling(LIMIT) == plain
    half = ruling(1.5 * LIMIT)
    assert (half["multiplier"], half["veto"]) == (pytest.approx(0.5), False)
    assert half["reason_code"] == "WIDE_SPREAD"
    assert half["evidence"] == [{"id": "spread.last_atr", "value": 1.5 * LIMIT}]
    said = f"The spread of the bar is {1.5 * LIMIT:.2f} ATR, and size is cut from {LIMIT:.2f} on."
    assert said in half["reasoning"]
    assert (ruling(2 * LIMIT)["multiplier"], ruling(2 * LIMIT)["veto"]) == (0.0, True)


def test_a_narrow_spread_makes_nothing_larger() -> None:
    """Nor one that the profile assumed: by that the gate's own arithmetic has judged."""
    volatile = {"technical.volatility_percentile": 95.0}
    before = ruling(None, **volatile)
    assert before["multiplier"] < 1.0
    for own in (0.0, 0.01, LIMIT):
        assert ruling(own, **volatile) == before
    assert ruling(0.25, 0.25, **volatile) == ruling(None, 0.25, **volatile)


def test_the_cut_begins_where_the_assumed_spread_ends() -> None:
    """A wide one that the profile's own limit let pass is no danger, nor is a hair more."""
    assumed = 2.0 * LIMIT
    assert ruling(assumed, assumed)["multiplier"] == 1.0
    assert ruling(1.01 * assumed, assumed)["multiplier"] == pytest.approx(0.99)
    assert not ruling(1.2 * assumed, assumed)["veto"]


def test_it_never_raises_a_multiplier_or_lifts_a_veto() -> None:
    for assumed in (None, 0.0, 0.1, 0.2, 0.5):
        for percentile in (10.0, 85.0, 99.0):
            more = {"technical.volatility_percentile": percentile}
            before = ruling(None, assumed, **more)
            for own in (0.0, 0.1, 0.16, 0.2, 0.29, 0.31, 5.0, 1000.0):
                now = ruling(own, assumed, **more)
                assert now["multiplier"] <= before["multiplier"]
                assert now["veto"] >= before["veto"]
