"""What no swarm can break: what the regime makes of trust and budget, and the rows.

Bounds, hull, mirror and order stand for every mode in test_debate_invariants.py and test_panel.py.
Budget and the officer's rows only shrink or deny. Who sees what stands in the goldens of prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_config import EXPERTS, HIERARCHY, REGIME_BUDGET, TRUST, TRUST_FLOOR, tabled_trust
from agent_framework import l1_only_record
from agents.contracts import (
    BIASES,
    REGIMES,
    VECTORS,
    AgentReport,
    DebateContext,
    Feature,
    GateRuling,
)
from agents.debate.swarm import directive
from agents.risk_gate import merged
from tests.agents.test_debate_invariants import cases, shares
from tests.doubles.scripted import (
    SWARM_FEATURES,
    context,
    settings,
)
from torra.verdict.sentiment_rules import SIDES as BOTH

Scaled = Callable[..., int]

regimes = st.sampled_from([*REGIMES, ""])
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
        assert found.code == regime
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
