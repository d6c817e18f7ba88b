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
from agents.risk_officer import LIQUIDATED, PANIC, rows
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


def market(**changes: Any) -> dict[str, Feature]:
    told = {**CALM, **{name.replace("__", "."): value for name, value in changes.items()}}
    return {name: Feature(name, value) for name, value in told.items()}


def around(limit: float, *, up: bool = True) -> list[tuple[float, bool]]:
    """Return ranks below, at and above a limit, and whether the row holds there."""
    return [(limit - 0.001, not up), (limit, True), (limit + 0.001, up)]


@cases("gate", [DEFAULT, OTHER], ids=["default", "other"])
def test_a_calm_market_leaves_everything(gate: GateSettings) -> None:
    assert rows(market(), gate) == (1.0, 1.0, (), (), ())


@cases("gate", [DEFAULT, OTHER], ids=["default", "other"])
@cases("name", PANIC)
def test_panic(gate: GateSettings, name: str) -> None:
    for rank, holds in around(gate.panic_percentile):
        found = rows(market(**{name.replace(".", "__"): rank}), gate)
        factor, reasons = (gate.panic_multiplier, ("MACRO_PANIC",)) if holds else (1.0, ())
        assert found == (factor, 1.0, (), reasons, ()), rank


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
    found = rows(market(macro__slope=slope, macro__slope_rank=rank), DEFAULT)
    assert (found.storm, found.reasons) == ((0.5, ("MACRO_PANIC",)) if holds else (1.0, ()))
    alone = rows(market(macro__vix_rank=None, macro__slope_rank=rank), DEFAULT)
    assert alone.flags == (() if rank is not None else ("silent:macro.vix_rank",))


@cases("gate", [DEFAULT, OTHER], ids=["default", "other"])
@cases("name", LIQUIDATED)
def test_liquidations_of_either_side(gate: GateSettings, name: str) -> None:
    for rank, holds in around(gate.liquidations_percentile):
        found = rows(market(**{name.replace(".", "__"): rank}), gate)
        factor = gate.liquidations_multiplier if holds else 1.0
        assert found == (factor, 1.0, (), ("LIQUIDATIONS",) if holds else (), ()), rank


@cases("gate", [DEFAULT, OTHER], ids=["default", "other"])
def test_who_is_crowded_is_not_joined(gate: GateSettings) -> None:
    limit = gate.crowded_percentile
    for edge, up, side in [(limit, True, "BUY"), (100.0 - limit, False, "SELL")]:
        for rank, holds in around(edge, up=up):
            found = rows(market(derivs__funding_rank=rank), gate)
            sides, reasons = ((side,), ("CROWDED",)) if holds else ((), ())
            assert found == (1.0, 1.0, sides, reasons, ()), rank
    both = rows(market(derivs__funding_rank=50.0), GateSettings(crowded_percentile=50.0))
    assert both.veto_sides == ("BUY", "SELL") and both.reasons == ("CROWDED",)


@cases("gate", [DEFAULT, OTHER], ids=["default", "other"])
@cases(
    ("words", "holds"),
    [
        ("", False),
        ("breakout", False),
        ("exhaustion", True),
        ("volume_spike exhaustion gap", True),
        ("exhaustion_top", False),
        ("no_exhaustion", False),
        (1.0, False),
    ],
)
def test_exhaustion(gate: GateSettings, words: Any, holds: bool) -> None:
    found = rows(market(market__triage=words), gate)
    worn = gate.exhaustion_multiplier if holds else 1.0
    assert found == (1.0, worn, (), ("EXHAUSTION",) if holds else (), ())


def test_a_row_without_data_is_silent_and_flagged() -> None:
    told = ("silent:macro.vix_rank", "silent:derivs.long_liquidations_rank",
            "silent:derivs.funding_rank", "silent:market.triage")  # fmt: skip
    assert rows({}, DEFAULT) == (1.0, 1.0, (), (), told)
    for odd in (None, float("nan"), float("inf"), "99", True, 10**400):
        shown = dict.fromkeys([*PANIC, *LIQUIDATED, "derivs.funding_rank"], odd)
        found = rows({name: Feature(name, value) for name, value in shown.items()}, DEFAULT)
        assert found == (1.0, 1.0, (), (), told), odd
    for name, flag in zip(CALM, told, strict=True):
        without = market()
        without.pop(name)
        assert rows(without, DEFAULT).flags == (flag,)
    # One of several numbers of a row is enough, and the highest of them counts.
    known = market(macro__vix_rank=None, derivs__dvol_rank=96.0, companion__vix__percentile=1.0)
    assert rows(known, DEFAULT).reasons == ("MACRO_PANIC",) and not rows(known, DEFAULT).flags
    # A bar without anything odd has no word: the flags were worked out.
    assert not rows(market(market__triage=None), DEFAULT).flags


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
