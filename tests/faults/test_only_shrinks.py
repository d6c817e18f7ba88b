"""What stands between a model and an order only takes away: the overlay, the gate, the size.

However loud the desk, a score leaves L1 by 0.06 at most and the gate neither amplifies nor flips
(L4). Every step keeps the sign, never grows what it is given, and done twice is done once (R3).
"""

from __future__ import annotations

import math
import random
from typing import Any, Final

from agent_framework import blend
from agents.contracts import (
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    VECTORS,
    AgentReport,
    GateReason,
    GateRuling,
)
from agents.debate.scoring import CountedReport, add_adjustments, adjust, synthesise
from agents.registry import AGENTS
from agents.risk_gate import merged
from torra.config import Profile, Risk
from torra.verdict.order_levels import Levels
from torra.verdict.position_size import size

LOUD: Final = (0.3, -0.3, 0.3, -0.3, 0.0, -0.0, 5e-324, 0.15, -0.15, None)
"""What an agent says that wants to move a score as far as it goes, and no number at all."""
DESK: Final = [agent.role for agent in AGENTS.values() if agent.role.kind != "gate"]
EDGES: Final = (0.0, 1.0, -0.0, 5e-324, 1.0 - 2**-53, 0.5)


def said(chance: random.Random) -> float | None:
    return chance.choice(LOUD) if chance.random() < 0.7 else chance.uniform(-0.3, 0.3)


def desk(chance: random.Random) -> list[CountedReport]:
    """Return what a desk of any size said, often all of it as far out as any report may be: a
    researcher's own bound is for `synthesise` to keep.
    """
    heard = chance.sample(DESK, chance.randint(1, len(DESK)))
    # No mode has a turn for a judge and for the two who argue.
    spared = "judge" if chance.random() < 0.5 else "researcher"
    heard = [role for role in heard if role.kind != spared] or [DESK[0]]
    one = {vector: chance.choice((0.3, -0.3)) for vector in VECTORS}
    together = chance.random() < 0.3
    return [
        CountedReport(
            role,
            AgentReport(
                role.id,
                {v: one[v] if together else said(chance)
                 for v in role.focus},
                "high" if together else chance.choice(("high", "medium", "low")),
                flags=() if together or chance.random() < 0.8 else ("ungrounded",),
                abstained=not together and chance.random() < 0.1,
            ),
        )
        for role in heard
    ]  # fmt: skip


def ruling(chance: random.Random) -> GateRuling:
    reasons = chance.sample(list(GateReason), chance.randint(0, 3))
    return GateRuling(share(chance), chance.random() < 0.3, tuple(map(str, reasons)))


def share(chance: random.Random) -> float:
    return chance.choice(EDGES) if chance.random() < 0.3 else chance.random()


def same_side(value: float, other: float) -> bool:
    return value == 0 or other == 0 or (value > 0) == (other > 0)


def test_no_desk_moves_a_score_past_its_bound(scaled: Any, record_property: Any) -> None:
    cases, furthest, shifted = scaled(100_000), 0.0, 0.0
    for seed in range(cases):
        chance = random.Random(seed)
        l1 = {v: chance.choice((-1.0, 1.0, 0.0, chance.uniform(-1, 1))) for v in VECTORS}
        l1 = {vector: round(value, 8) for vector, value in l1.items()}
        debated = synthesise(desk(chance))
        low, high = sorted((share(chance), share(chance)))
        weak, strong = adjust(debated.debate, low), adjust(debated.debate, high)
        told = {v: {"score": s, "note": ""} for v, s in add_adjustments(l1, strong).items()}
        final = blend(l1, {**told, "composite_bias": {"score": 0.0, "note": ""}})
        for vector in VECTORS:
            shift = abs(debated.debate[vector] - debated.analyst_avg[vector])
            distance = abs(final[vector]["score"] - l1[vector])
            assert shift <= 0.15 + 1e-12
            assert distance <= ADJUSTMENT_BOUND * BLEND_WEIGHT + 1e-9
            assert (
                abs(weak[vector])
                <= abs(strong[vector])
                <= min(0.3, abs(debated.debate[vector]) + 1e-8)
            )
            assert same_side(strong[vector], debated.debate[vector])
            assert same_side(final[vector]["score"] - l1[vector], strong[vector])
            assert math.isfinite(final[vector]["score"]) and abs(final[vector]["score"]) <= 1.0
            furthest, shifted = max(furthest, distance), max(shifted, shift)
    assert furthest > 0.0599, "no case went near the bound"
    assert shifted > 0.1499
    record_property("seen", f"{cases:,} desks: furthest {furthest:.4f}, shift {shifted:.4f}")


def test_the_gate_twice_is_the_gate_once(scaled: Any) -> None:
    stricter = 0
    for seed in range(scaled(50_000)):
        chance = random.Random(seed)
        rule, model, debated = ruling(chance), ruling(chance), synthesise(desk(chance)).debate
        both = merged(rule, model)
        assert both.multiplier <= min(rule.multiplier, model.multiplier) <= rule.multiplier
        assert both.veto is (rule.veto or model.veto)
        assert merged(both, model) == merged(both, both) == both
        assert merged(rule, None) == rule
        once = adjust(debated, both.multiplier)
        assert adjust(once, 1.0) == once
        stricter += both != rule
    assert stricter


def test_a_size_only_shrinks(scaled: Any) -> None:
    """By the multiplier, the capital and each limit; sized again at one it stays as it is."""
    profile, taken = Profile(), 0
    for seed in range(scaled(20_000)):
        chance = random.Random(seed)
        spec = profile.symbol(chance.choice(("EURUSD", "BTCUSD", "XAUUSD")))
        entry = chance.choice((1.13, 60_000.0, 2_034.5)) * chance.uniform(0.5, 2.0)
        stop = entry * (1 - chance.uniform(0.001, 0.05))
        levels = Levels(entry, stop, entry * 1.1, entry * 0.01)
        risk = Risk(capital=chance.choice((500.0, 10_000.0, 1e6)))
        low, high = sorted((share(chance), share(chance)))
        small, large, whole = (size(levels, spec, risk, m) for m in (low, high, 1.0))
        assert 0.0 <= small <= large <= whole
        tighter = risk.model_copy(update={"capital": risk.capital * 0.5})
        assert size(levels, spec, tighter, high) <= large
        capped = spec.model_copy(update={"lot_max": large}) if large else spec
        assert not large or size(levels, capped, risk) == large, "what was cut is not cut again"
        taken += large > 0
    assert taken
    assert all(size(levels, spec, risk, m) == 0.0 for m in (math.nan, -1.0, -math.inf, 0.0))
    assert size(levels, spec, risk, 1.5) == size(levels, spec, risk, math.inf) == whole
