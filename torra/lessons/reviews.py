"""What the rules write of a lesson."""

from __future__ import annotations

from datetime import datetime

from torra.lessons.lesson import LessonFacts, Words


def rules_words(facts: LessonFacts, known_at: datetime) -> Words:
    """Return the words of the rules about a lesson."""
    return Words(facts.side, facts.outcome, "One trade, not a rule.", "rules", known_at)
