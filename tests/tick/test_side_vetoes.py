"""A veto of one side frees or blocks nothing of the other one, on this tick or a later one."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from agents.contracts import GateRuling, OfficerReason
from instance_database import TickKey
from tests.cases import cases
from tests.conftest import Scale
from torra.config import Instance, Profile
from torra.tick import decision
from torra.tick.sentence import Finished, sentence
from torra.verdict import sentiment_rules as rules
from torra.verdict.vetoed import REFUSERS, SIDED, refusal, sided
from torra.words.deny_reasons import DenyReason
from torra.words.ticks import GATE_REASONS

PROFILE = Profile()
THRESHOLDS = PROFILE.thresholds
GOLD = Instance(symbol="XAUUSD", timeframes=("M15",))
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TICKS = 5
OTHER = {"BUY": "SELL", "SELL": "BUY"}


class Latches:
    """A store that holds nothing but latches."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def latches(self, instance: str) -> frozenset[str]:
        return frozenset(self.held)

    def set_latch(self, instance: str, side: str, latched: bool = True) -> None:
        (self.held.add if latched else self.held.discard)(side)

    def position(self, instance: str) -> None:
        return None

    def signal(self, sid: str) -> None:
        return None


def outer(chance: random.Random) -> tuple[float, float]:
    """Return the consensus of the low and the high composites, often at a threshold."""
    edges = (0.5, -0.5, 0.49999999, -0.49999999, 0.0, chance.uniform(-1, 1))
    low, high = sorted((chance.choice(edges), chance.choice(edges)))
    return low, high


def vetoes(chance: random.Random) -> set[str]:
    return {side for side in rules.SIDES if chance.random() < 0.4}


def reviewed(
    store: Latches, at: tuple[float, float], ruling: GateRuling, declined: str
) -> tuple[str, tuple[DenyReason, ...]]:
    """Return the verdict of a tick that opens where nothing objects, and what denied it."""
    low, high = at
    verdict = rules.verdict(low if low > 0 else high, THRESHOLDS)
    spoken = SimpleNamespace(
        ruling=ruling, declined=declined, size_share=lambda side: ruling.multiplier
    )
    inputs = SimpleNamespace(
        instance=GOLD,
        profile=PROFILE,
        close=2_000.0,
        atr=5.0,
        now=NOON,
        as_of=NOON,
        timeframe="M15",
        bar_time=NOON,
        key=TickKey(GOLD.id, "M15", NOON),
    )  # the rest of a tick decides nothing here
    saved = SimpleNamespace(verdict=verdict, low_consensus=low, high_consensus=high)
    desk = {"trading_state": "ACTIVE", "exposure": {}}
    debated = SimpleNamespace(counted=spoken)
    parts: Any = (inputs, debated, saved, store, desk)
    asked, action = decision._review(*parts)
    assert asked.veto is (DenyReason.GATE_VETO in action.denied) or verdict == "HOLD"
    return verdict, action.denied


def test_a_decision_on_a_side_hangs_on_no_veto_of_the_other(
    scaled: Scale, record_property: Any
) -> None:
    count, vetoed, opened = scaled(10_000, least=200), 0, 0
    for number in range(count):
        chance = random.Random(number)
        changed = chance.choice(rules.SIDES)
        kept = OTHER[changed]
        one, twin = Latches(), Latches()
        for _ in range(TICKS):
            at, objected = outer(chance), vetoes(chance)
            swapped = objected ^ {changed} if chance.random() < 0.5 else objected
            declined = chance.choice(("", "", kept))
            found = [
                reviewed(store, at, GateRuling(veto_sides=tuple(sorted(sides))), declined)
                for store, sides in ((one, objected), (twin, swapped))
            ]
            assert (kept in one.held) == (kept in twin.held), number
            if found[0][0] != changed:
                assert found[0] == found[1], number
            if found[0][0] == kept:
                # no looser either: what the ruling vetoes is vetoed on this very tick
                assert kept not in objected or DenyReason.GATE_VETO in found[0][1], number
                vetoed += DenyReason.GATE_VETO in found[0][1]
                opened += not found[0][1]
    record_property("seen", f"{count:,} courses, {vetoed:,} vetoes, {opened:,} openings")
    assert min(vetoed, opened) > count * 0.02


def test_a_veto_of_a_side_holds_on_later_ticks_until_its_own_consensus_is_back() -> None:
    store = Latches()
    crowded = GateRuling(reasons=("CROWDED",), veto_sides=("BUY",))
    assert reviewed(store, (0.6, 0.6), crowded, "") == ("BUY", (DenyReason.GATE_VETO,))
    assert reviewed(store, (0.6, 0.6), GateRuling(), "") == ("BUY", (DenyReason.GATE_VETO,))
    assert reviewed(store, (-0.6, -0.6), crowded, "") == ("SELL", ())
    assert reviewed(store, (0.6, 0.6), GateRuling(), "") == ("BUY", ())


# --- why, in words --------------------------------------------------------------------------------

VETOED = Finished(
    symbol="BTCUSD", timeframe="M15", verdict="BUY", l1_verdict="BUY", consensus=0.53,
    l1_consensus=0.53, buy=0.5, sell=0.5, reason="GATE_VETO", denied=("GATE_VETO",),
    vetoed=True, source="AGENT_SWARM", push=0.2,
)  # fmt: skip


def test_every_reason_of_the_officer_has_its_words() -> None:
    assert {*map(str, OfficerReason)} <= set(GATE_REASONS)
    assert all(len(GATE_REASONS[str(code)].split()) <= 6 for code in OfficerReason)
    assert len({GATE_REASONS[str(code)] for code in OfficerReason}) == len(OfficerReason)


@cases("code", SIDED)
def test_the_sentence_names_why_one_side_is_vetoed(code: str) -> None:
    said = sentence(replace(VETOED, vetoed_for=(code,)))
    assert f"as the gate vetoes it ({GATE_REASONS[code]})" in said
    assert code not in said


def test_only_a_veto_of_one_side_has_its_reason() -> None:
    reasons = ("HIGH_VOLATILITY", "MACRO_PANIC", "CROWDED")
    ruling = GateRuling(0.5, reasons=reasons, veto_sides=("BUY",))
    assert sided(ruling, "BUY") == ("CROWDED",)
    assert sided(ruling, "SELL") == sided(ruling, "HOLD") == ()
    assert sided(replace(ruling, veto=True), "BUY") == ()


@cases(
    ("ruling", "refused"),
    [
        (GateRuling(0.5, reasons=("HIGH_VOLATILITY", "CROWDED"), veto_sides=("BUY",)), "CROWDED"),
        (GateRuling(reasons=("NEGATIVE_EV",), veto_sides=("BUY",)), "NEGATIVE_EV"),
        (GateRuling(reasons=("NEGATIVE_EV",), veto_sides=("SELL",)), ""),
        (GateRuling(veto=True, reasons=("HIGH_VOLATILITY", "JUDGE_HOLD")), "JUDGE_HOLD"),
        (GateRuling(veto=True, reasons=("SCHEDULED_EVENT", "JUDGE_HOLD")), ""),
        (GateRuling(veto=True, reasons=("WIDE_SPREAD",)), ""),
        (GateRuling(reasons=("JUDGE_HOLD",)), ""),
    ],
)
def test_a_ruling_says_whether_a_judge_or_an_officer_refuses(
    ruling: GateRuling, refused: str
) -> None:
    assert refusal(ruling, "BUY") == refused
    assert refused == "" or REFUSERS[refused] in ("judge", "risk officer")
