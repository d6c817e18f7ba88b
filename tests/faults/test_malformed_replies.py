"""Malformed replies: a failed report each, never a clamped number and never a neutral vote (L1).

Every kind of tests.faults.malformed in every seat. What is compared is the whole desk: one whose
replies are spoilt must come to the same scores, to the bit, as one whose calls raised.
"""

from __future__ import annotations

import random
from typing import Any

from agents.contracts import Request, SourceType
from tests.agents.test_debate_invariants import bits, holds
from tests.cases import cases
from tests.doubles.scripted import Raises, Scripted, context, debate, settings
from tests.faults import malformed
from torra.tick.debate import score_chart

SEATS = ("technical", "bull_researcher", "bear_researcher", "risk_gate")
SCORER = "chart_scorer"


class Spoiling:
    """An entry of a script: spoils every reply of its seat in one kind, and counts them."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind, self.count = kind, 0
        self._chance = random.Random(seed)

    def __call__(self, request: Request) -> Any:
        self.count += 1
        return malformed.spoilt(self.kind, request, self._chance)


def heard(script: dict[str, Any], fallback: Any) -> Any:
    return debate(Scripted(script), config=settings(second_look="never"), fallback=fallback)


def spoil(kinds: dict[str, str], seed: int) -> int:
    """Play a desk whose seats are spoilt in these kinds; return how many replies were."""
    entries = {seat: Spoiling(kind, seed) for seat, kind in kinds.items()}
    fallback = score_chart if seed % 2 else None
    record = heard(dict(entries), fallback)
    down = heard(dict.fromkeys(kinds, Raises(RuntimeError())), fallback)
    holds(record, context().scores)
    assert record.source_type is down.source_type
    assert all(bits_of(record, told) == bits_of(down, told) for told in ("scores", "ungated"))
    assert record.reports == down.reports, "a spoilt reply left a report"
    asked = {seat for seat, entry in entries.items() if entry.count} - {SCORER}
    assert record.failures == {s: malformed.REASON.get(kinds[s], "garbage") for s in asked}
    return sum(entry.count for entry in entries.values())


def bits_of(record: Any, told: str) -> bytes:
    return bits({vector: entry["score"] for vector, entry in getattr(record, told).items()})


@cases("kind", malformed.KINDS)
@cases("seat", SEATS)
def test_each_kind_in_each_seat_is_a_failed_report(seat: str, kind: str) -> None:
    assert spoil({seat: kind}, seed=1) >= 1


@cases("kind", malformed.KINDS)
def test_a_single_model_that_is_spoilt_leaves_l1(kind: str) -> None:
    down = dict.fromkeys(SEATS, RuntimeError())
    record = heard({**down, SCORER: Spoiling(kind, 3)}, score_chart)
    assert record.source_type is SourceType.L1_ONLY
    assert bits_of(record, "scores") == bits(context().scores)


def test_ten_thousand_malformed_replies(scaled: Any, record_property: Any) -> None:
    """Any of the kinds in any of the seats, several at once and again on the second attempt."""
    wanted, replies, desks, seed = scaled(10_000), 0, 0, 0
    while replies < wanted:
        seed += 1
        chance = random.Random(seed)
        every = [kind for kind in malformed.KINDS if kind != "10_mb" or seed % 20 == 0]
        seats = [*SEATS, SCORER]
        kinds = {s: chance.choice(every) for s in chance.sample(seats, chance.randint(1, 5))}
        replies += spoil(kinds, seed)
        desks += 1
    record_property("seen", f"{replies:,} malformed replies at {desks:,} desks: no report of any")
