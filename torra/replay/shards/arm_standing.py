"""The past of the seats of an arm of a replay: its own calls, and none of another arm's.

`ArmPast` counts what an arm's ticks said, as a desk does from its journal (torra.desk.memory
.experts_past), and tells it to the ticks that follow. Its state is part of the arm's checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from torra.config import Profile
from torra.desk.memory.experts_past import calls_of, chance_of
from torra.evaluation.standing.past_calls import HitRates, PastTick, WinRateByBin
from torra.evaluation.standing.track_record import (
    TrackRecord,
    TrackRecordQuery,
    track_record,
    wanted,
)
from torra.lessons.lesson import LessonFacts
from torra.tick.record import TickResult

SIDES: Final = {"BUY": "LONG", "SELL": "SHORT"}
WON: Final = "win"


class ArmPast:
    """The books of an arm, one for each timeframe."""

    def __init__(self) -> None:
        self._books: dict[str, HitRates] = {}
        self._chances = WinRateByBin()
        self._said: dict[str, float] = {}

    def __call__(self, asked: TrackRecordQuery) -> TrackRecord:
        """Return what a tick is told (torra.evaluation.standing.track_record.TrackRecordOf)."""
        book = self._book(asked.timeframe)
        book.reach(asked.as_of, asked.close)
        return track_record(book, self._chances, asked)

    def take(self, result: TickResult) -> None:
        """Take in a tick that is over."""
        inputs, reports = result.inputs, result.debated.deliberation.reports
        regime = inputs.bundle.regime.name
        tick = PastTick(inputs.as_of, inputs.close, regime, calls_of(reports))
        self._book(inputs.timeframe).take(tick)
        for row in result.signals:
            if row["kind"] == "open":
                said = chance_of(reports, SIDES[row["side"]])
                if said is not None:
                    self._said[row["sid"]] = said

    def end(self, facts: LessonFacts) -> None:
        """Take in what a trade came to."""
        said = self._said.pop(facts.sid, None)
        if said is not None:
            self._chances.take(facts.known_at, said, won=facts.outcome == WON)

    def as_json(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        return {
            "books": [book.as_json() for book in self._books.values()],
            "chances": self._chances.as_json(),
            "said": dict(self._said),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> ArmPast:
        """Return what `as_json` described."""
        past = cls()
        books: Iterable[HitRates] = map(HitRates.of, state["books"])
        past._books = {book.timeframe: book for book in books}
        past._chances, past._said = WinRateByBin.of(state["chances"]), dict(state["said"])
        return past

    def _book(self, timeframe: str) -> HitRates:
        return self._books.setdefault(timeframe, HitRates(timeframe))


def past_of(profile: Profile, *, asks: bool) -> ArmPast | None:
    """Return the past of an arm; None where nobody `asks`, or its profile wants none."""
    return ArmPast() if asks and wanted(profile.agents) else None
