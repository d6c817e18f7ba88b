"""One question to the committee: evidence, votes and the card, by rules alone."""

from __future__ import annotations

from torra.clock import System
from torra.committee import seats
from torra.committee.card import DecisionCard, card_of
from torra.committee.evidence import evidence
from torra.committee.example import SYMBOL, example_desk
from torra.committee.votes import RiskProfile
from torra.tools.desk_reader import DeskReader

MONOTONIC = System().monotonic


def by_rules(reader: DeskReader, name: str, profile: RiskProfile) -> DecisionCard:
    """Return the card of an instance as the rules vote, without key or network.

    A seat that knows too little abstains. Raises ConfigError for an unknown instance, and
    StoreUnavailable.
    """
    begun = MONOTONIC()
    known = evidence(reader, name)
    reports = {seat: seats.by_rules(seat, known) for seat in known.facts}
    elapsed_ms = round((MONOTONIC() - begun) * 1000, 1)
    card = card_of(known, reports, profile, now=reader.now, elapsed_ms=elapsed_ms)
    assert card is not None, "rules never fail"  # noqa: S101 - a seat without facts is not asked
    return card


def example_card(profile: RiskProfile, *, turned: bool = False) -> DecisionCard:
    """Return the card of the invented company, of the good year or of the bad one."""
    with example_desk(turned=turned) as reader:
        return by_rules(reader, SYMBOL, profile)
