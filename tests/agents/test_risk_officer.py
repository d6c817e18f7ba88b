"""The risk officer's rows: below, at and above each limit, and of one storm the smallest factor.

A row without data is silent and flagged. A veto of a side is of that side alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

from agent_config import REGIME_BUDGET, GateSettings
from agent_framework import l1_only_record
from agents.contracts import Feature
from agents.debate.scoring import DIRECTIONS
from agents.risk_officer import FUNDING, LIQUIDATED, PANIC, TRIAGE, RiskOverlay, rows
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import SWARM_FEATURES, Scripted, context, debate, settings

Scaled = Callable[..., int]
CALM: Final[Mapping[str, Any]] = {
    "macro.vix_rank": 50.0,
    "derivs.long_liquidations_rank": 50.0,
    "derivs.funding_rank": 50.0,
    "market.triage": "",
}
OTHER_SETTINGS: Final[Mapping[str, Any]] = {
    "panic_percentile": 60.0,
    "panic_multiplier": 0.25,
    "liquidations_percentile": 70.0,
    "liquidations_multiplier": 0.1,
    "crowded_percentile": 80.0,
    "exhaustion_multiplier": 0.0,
}
DEFAULT: Final = GateSettings()
OTHER: Final = GateSettings(**OTHER_SETTINGS)


def market(told: Mapping[str, Any] | None = None) -> dict[str, Feature]:
    return {name: Feature(name, value) for name, value in {**CALM, **(told or {})}.items()}


def check(gate: GateSettings, told: Mapping[str, Any], **expected: Any) -> None:
    assert rows(market(told), gate) == RiskOverlay(**expected), told


@cases("gate", [DEFAULT, OTHER], ids=["default", "other"])
def test_each_row_holds_from_its_limit_on_and_does_one_thing(gate: GateSettings) -> None:
    panic, flush, crowd = (
        gate.panic_percentile, gate.liquidations_percentile, gate.crowded_percentile,
    )  # fmt: skip
    check(gate, {})
    for beyond in (-0.001, 0.0, 0.001):
        reached = beyond >= 0.0
        storm = {"storm": gate.panic_multiplier, "reasons": ("MACRO_PANIC",)}
        for name in PANIC:
            check(gate, {name: panic + beyond}, **(storm if reached else {}))
        storm = {"storm": gate.liquidations_multiplier, "reasons": ("LIQUIDATIONS",)}
        for name in LIQUIDATED:
            check(gate, {name: flush + beyond}, **(storm if reached else {}))
        for side, rank in (("BUY", crowd + beyond), ("SELL", 100.0 - crowd - beyond)):
            veto = {"veto_sides": (side,), "reasons": ("CROWDED",)}
            check(gate, {FUNDING[0]: rank}, **(veto if reached else {}))
    worn = {"worn": gate.exhaustion_multiplier, "reasons": ("EXHAUSTION",)}
    for words in ("exhaustion", "volume_spike exhaustion gap"):
        check(gate, {TRIAGE: words}, **worn)
    for odd in ("", "breakout", "exhaustion_top", "no_exhaustion", 1.0, None):
        check(gate, {TRIAGE: odd})


def test_both_sides_may_be_crowded() -> None:
    gate = GateSettings(crowded_percentile=50.0)
    check(gate, {FUNDING[0]: 50.0}, veto_sides=("BUY", "SELL"), reasons=("CROWDED",))


@cases(
    ("slope", "rank", "holds"),
    [
        (-0.01, 5.0, True),
        (-0.01, 5.1, False),
        (0.0, 1.0, False),
        (None, 1.0, False),
        (-0.5, None, False),
    ],
)
def test_an_inverted_yield_curve_is_panic_at_the_low_end_of_its_own_past(
    slope: float | None, rank: float | None, holds: bool
) -> None:
    told = {"macro.slope": slope, "macro.slope_rank": rank}
    check(DEFAULT, told, **({"storm": 0.5, "reasons": ("MACRO_PANIC",)} if holds else {}))
    unknown = () if rank is not None else ("silent:macro.vix_rank",)
    assert rows(market({**told, "macro.vix_rank": None}), DEFAULT).flags == unknown


def test_a_row_without_data_is_silent_and_flagged() -> None:
    flags = tuple(f"silent:{row}" for row in (PANIC[0], LIQUIDATED[0], FUNDING[0], TRIAGE))
    assert rows({}, DEFAULT) == RiskOverlay(flags=flags)
    for odd in (None, float("nan"), float("inf"), "99", True, 10**400):
        shown = {name: Feature(name, odd) for name in (*PANIC, *LIQUIDATED, *FUNDING)}
        assert rows(shown, DEFAULT) == RiskOverlay(flags=flags), odd
    for name, flag in zip(CALM, flags, strict=True):
        without = market()
        without.pop(name)
        assert rows(without, DEFAULT) == RiskOverlay(flags=(flag,))
    # One of several numbers of a row is enough, and the highest of them counts.
    known = {"macro.vix_rank": None, "derivs.dvol_rank": 96.0, "companion.vix.percentile": 1.0}
    check(DEFAULT, known, storm=0.5, reasons=("MACRO_PANIC",))


# --- the smallest of one storm --------------------------------------------------------------------

GATES: Final[tuple[Mapping[str, float], ...]] = (
    {},
    {"volatility_multiplier": 0.3, "panic_multiplier": 0.45, "liquidations_multiplier": 0.9},
    {"volatility_multiplier": 1.0, "panic_multiplier": 0.9, "liquidations_multiplier": 0.2},
)


def smallest(gate: GateSettings, *, volatile: bool, panic: bool, flushed: bool) -> float:
    return min(
        gate.volatility_multiplier if volatile else 1.0,
        gate.panic_multiplier if panic else 1.0,
        gate.liquidations_multiplier if flushed else 1.0,
    )


def test_of_a_storm_the_smallest_factor_counts(scaled: Scaled) -> None:
    flags = [False, True]
    every = [*product(GATES, flags, flags, flags, flags, REGIME_BUDGET, [None, 0.75, 0.25])]
    seen = set()
    for case in random.Random(17).sample(every, scaled(len(every), 40)):
        gate, volatile, panic, flushed, worn, regime, model = case
        config = settings(gate, mode="swarm")
        about = context(features={
            **SWARM_FEATURES, **CALM,
            "technical.volatility_percentile": 96.0 if volatile else 95.0,
            "macro.vix_rank": 99.0 if panic else 1.0,
            "derivs.short_liquidations_rank": 99.5 if flushed else 1.0,
            "market.triage": "exhaustion" if worn else None,
            "market.regime": regime,
        })  # fmt: skip
        storm = smallest(config.gate, volatile=volatile, panic=panic, flushed=flushed)
        tired = config.gate.exhaustion_multiplier if worn else 1.0
        budget = REGIME_BUDGET[regime]
        script = {"risk_gate": reply(multiplier=1.0 if model is None else model)}
        record = debate(Scripted(script), about=about, config=config)
        alone = l1_only_record(about, config)
        assert record.rule_ruling.multiplier == alone.ruling.multiplier == round(storm * tired, 8)
        rule = round(storm * tired, 8)
        assert record.ruling.multiplier == (rule if model is None else min(rule, model)), case
        least = round(min(storm, budget) * tired, 8)
        cut = 1.0 if model is None else min(1.0, model / rule)
        share = least if cut == 1.0 else least * min(rule, 1.0 if model is None else model) / rule
        for side in DIRECTIONS:
            assert record.size_share(side) == share * record.conviction_for(side), case
            assert alone.size_share(side) == least, case
        assert record.swarm is not None and record.swarm.storm == storm
        assert abs(record.ruling.multiplier * record.swarm.budget - share) < 1e-7
        seen.add((volatile, panic, flushed, worn, model))
    assert len(seen) > 20


def reply(**changes: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda request: scripted.ruling(request, **changes)


def test_rows_veto_their_side_alone_and_nothing_of_the_other() -> None:
    config = settings(mode="swarm")
    calm = debate(Scripted(), about=context(features={**SWARM_FEATURES, **CALM}), config=config)
    for rank, side, other in [(99.0, "BUY", "SELL"), (1.0, "SELL", "BUY")]:
        crowd = {**SWARM_FEATURES, **CALM, "derivs.funding_rank": rank}
        stricter = {"risk_gate": reply(multiplier=0.5, reason_code="WEAK_CASE")}
        lower = debate(Scripted(stricter), about=context(features=crowd), config=config)
        assert lower.vetoes(side) and not lower.vetoes(other) and lower.ruling.multiplier == 0.5
        for record in (
            debate(Scripted(), about=context(features=crowd), config=config),
            l1_only_record(context(features=crowd), config),
        ):
            assert record.vetoes(side) and not record.vetoes(other) and not record.veto
            assert record.ruling.reasons == ("CROWDED",)
        assert debate(Scripted(), about=context(features=crowd), config=config).size_share(
            other
        ) == calm.size_share(other)


def test_without_a_risk_officer_no_row_counts() -> None:
    storm = {**CALM, "macro.vix_rank": 99.0, "derivs.funding_rank": 99.0}
    about = context(features={**SWARM_FEATURES, **storm, "market.triage": "exhaustion"})
    for mode in ("budget", "full", "firm"):
        record = l1_only_record(about, settings(mode=mode))
        assert record.ruling.multiplier == 1.0 and not record.ruling.veto_sides
        assert not record.ruling.reasons and record.swarm is None
