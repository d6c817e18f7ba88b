"""The settings of practice on the demo, and how a profile that was practised with is known."""

from __future__ import annotations

from typing import Final

from torra.config import Profile, Thresholds

EASY: Final = 0.05
"""Consensus from which a verdict opens in practice."""


def ease(profile: Profile) -> Profile:
    """Return a profile as practice has it: low thresholds, a person is asked, agents look on."""
    low = Thresholds(buy=EASY, sell=EASY)
    agents = profile.agents.model_copy(update={"influence": "shadow"})
    changes = {"execution": "approve", "thresholds": low, "agents": agents}
    return profile.model_copy(update=changes)


def is_eased(profile: Profile) -> bool:
    """Return whether a profile is one of practice."""
    return ease(profile) == profile
