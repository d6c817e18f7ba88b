"""The risk officer's rows: below, at and above each limit, and of one storm the smallest factor.

A row without data is silent and flagged. A veto of a side is of that side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

from agent_config import REGIME_BUDGET, GateSettings
from agent_framework import l1_only_record
from agents.contracts import REGIMES, Feature
from agents.debate.scoring import DIRECTIONS
from agents.risk_officer import FUNDING, LIQUIDATED, PANIC, TRIAGE, RiskOverlay, rows
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import SWARM_FEATURES, Scripted, context, debate, settings

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


@cases("gate", GATES)
def test_of_a_storm_the_smallest_factor_counts(gate: Mapping[str, float]) -> None:
    """Where nobody is asked; of a debate test_size_oracle.py proves it."""
    config = settings(gate, mode="swarm")
    factors = {
        ("technical.volatility_percentile", 96.0): config.gate.volatility_multiplier,
        ("macro.vix_rank", 99.0): config.gate.panic_multiplier,
        ("derivs.short_liquidations_rank", 99.5): config.gate.liquidations_multiplier,
    }
    for held, worn, regime in product(product([False, True], repeat=3), [False, True], REGIMES):
        storms = [key for key, holds in zip(factors, held, strict=True) if holds]
        triage = {"market.triage": "exhaustion" if worn else None, "market.regime": regime}
        about = context(features={**SWARM_FEATURES, **CALM, **dict(storms), **triage})
        storm = min([1.0, *(factors[key] for key in storms)])
        tired = config.gate.exhaustion_multiplier if worn else 1.0
        record = l1_only_record(about, config)
        assert record.ruling.multiplier == round(storm * tired, 8)
        assert record.swarm is not None and record.swarm.storm == storm
        least = round(min(storm, REGIME_BUDGET[regime]) * tired, 8)
        assert [record.size_share(side) for side in DIRECTIONS] == [least, least]


def reply(**changes: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda request: scripted.ruling(request, **changes)


def test_rows_veto_their_side_alone_and_nothing_of_the_other() -> None:
    config = settings(mode="swarm")
    calm = debate(Scripted(), about=context(features={**SWARM_FEATURES, **CALM}), config=config)
    for rank, side, other in [(99.0, "BUY", "SELL"), (1.0, "SELL", "BUY")]:
        about = context(features={**SWARM_FEATURES, **CALM, "derivs.funding_rank": rank})
        stricter = {"risk_gate": reply(multiplier=0.5, reason_code="WEAK_CASE")}
        lower = debate(Scripted(stricter), about=about, config=config)
        whole = debate(Scripted(), about=about, config=config)
        for record in (lower, whole, l1_only_record(about, config)):
            assert record.vetoes(side) and not record.vetoes(other) and not record.veto
            assert record.ruling.reasons[0] == "CROWDED"
        assert lower.ruling.multiplier == 0.5
        assert whole.size_share(other) == calm.size_share(other)
