"""A home with closed trades that wait for a review, a clock moved by hand, and who answers."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from agent_config import AgentSettings, MemorySettings
from agents.contracts import Completion, Request
from instance_database import Database
from tests.doubles.scripted import Scripted
from tests.worlds.lesson_reviews import SEEN
from tests.worlds.stores import NOON, Hand, open_database
from torra.clock import System
from torra.config import Instance, Profile
from torra.desk.memory.reviews import SPACING, Paying, Reviewer, ReviewRequest
from torra.lessons.lesson import Lesson, LessonFacts, LessonText
from torra.lessons.reviews import rules_words
from torra.providers.prices import PriceList

MODEL: Final = MemorySettings(review="model")
ASKS: Final = AgentSettings(provider="anthropic", memory=MODEL)
SAID: Final = {
    "symbol": "XAUUSD",
    "setup": "A long against the last break of structure.",
    "outcome": "It lost 1.02 R within 3.5 hours. A thousand such trades fail.",
    "rule": "Look at volume before a long in a range.",
}
KEPT: Final = (SAID["setup"], "It lost 1.02 R within 3.5 hours.", SAID["rule"])
"""What of that holds to the facts."""

STREAMS: Final = 2
"""Those of the instance gold, which may close together."""

PRICES: Final = PriceList()
COST: Final = 0.004


class HandClock(System):
    """A clock whose desk time, real time and monotonic time are moved together."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand

    def now(self) -> datetime:
        return self.hand.moment

    def real_now(self) -> datetime:
        return self.hand.moment

    def monotonic(self) -> float:
        return (self.hand.moment - NOON).total_seconds()


class Answers:
    """Who answers a review in a vendor's place: `script` as tests.doubles.scripted has it."""

    def __init__(self, *script: Any) -> None:
        self.scripted = Scripted({"reviewer": list(script) or [answer()]})
        self.opened: list[AgentSettings] = []
        self.clients = SimpleNamespace(ready=lambda _seconds: True)

    @property
    def prices(self) -> PriceList:
        return PRICES

    def provider(self, settings: AgentSettings) -> Scripted:
        self.opened.append(settings)
        return self.scripted

    def local(self, vendor: str) -> bool:
        return False

    def close(self) -> None:
        """Nothing was opened."""

    @property
    def requests(self) -> list[Request]:
        return self.scripted.requests


def answer(usd: float = COST, **changes: Any) -> Completion:
    """Return a vendor's answer to a review."""
    text = json.dumps(SAID | changes)
    return Completion(text, "claude-sonnet-5-5", "anthropic", 900, 80, usd)


class Home:
    """A database with lessons, and a reviewer of them that a test drives step by step."""

    def __init__(self, folder: Path, answers: Any, agents: AgentSettings = ASKS) -> None:
        self.folder = folder
        self.hand = Hand()
        self.clock = HandClock(self.hand)
        self.database: Database = open_database(folder, self.hand)
        self.answers = answers
        self.agents = agents
        instance = Instance(name="gold", symbol="XAUUSD", profile="mine")
        self.reviewer = Reviewer(
            self.database,
            answers,
            lambda: [(instance, Profile(agents=self.agents))],
            lambda: self.clock,
        )

    @property
    def asking(self) -> ReviewRequest:
        return ReviewRequest(self.database, self.answers, self.clock, seconds=1.0)

    @property
    def paying(self) -> Paying:
        return Paying("mine", self.agents, STREAMS)

    def close_trade(self, sid: str = "0123456789ab", **changes: Any) -> Lesson:
        """Write the lesson of a trade that closed now."""
        now = self.hand.moment
        facts: LessonFacts = replace(SEEN, sid=sid, closed_at=now, known_at=now, **changes)
        number = self.database.write_lesson(facts, rules_words(facts, now))
        assert number is not None
        return self.lesson(sid)

    def lesson(self, sid: str = "0123456789ab") -> Lesson:
        found = self.database.lesson(sid)
        assert found is not None
        return found

    def words(self, sid: str = "0123456789ab") -> LessonText | None:
        """Return what a model wrote of a trade, None for nothing."""
        return next((one for one in self.lesson(sid).words if one.author != "rules"), None)

    def later(self, seconds: float = SPACING) -> None:
        self.hand.moment += timedelta(seconds=seconds)
