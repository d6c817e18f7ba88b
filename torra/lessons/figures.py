"""The numbers of a lesson: what each is called, how many decimals are shown, and its unit.

A writer is shown these numbers (`evidence`) and may say no other. `spoken` adds the same facts in
other units: 3.5 hours are 14 bars of M15, and a loss of 1.02 R is 102 % of the risk.

Pure. A number that is not known or not finite is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from agents.contracts import Feature
from agents.features import COMPONENTS
from torra.clock import TIMEFRAMES, iso
from torra.lessons.lesson import DIRECTION, SCALES, LessonFacts

PARTS: Final[Mapping[str, str]] = {
    name: words.replace(" against ", " versus ") for name, words in COMPONENTS.items()
}
"""The parts of the scores in a lesson: there "against" says that one spoke against the trade."""

RESULTS: Final = {
    "result": "r", "planned": "planned_r", "cost_of_fill": "slipped_r", "worst": "mae_r",
    "best": "mfe_r", "surprise": "surprise",
}  # fmt: skip
"""The results of a trade in R, each with the field of the facts that has it."""

SHARES: Final = ("volume_ratio", "spread_atr", "up_bars")
"""Numbers of a situation that may be said in percent."""


class LessonNumber(NamedTuple):
    """A number of a lesson, the decimals with which it is shown, and its unit."""

    name: str
    value: float
    decimals: int
    unit: str


def evidence(facts: LessonFacts) -> dict[str, Feature]:
    """Return the facts of a lesson as a writer is shown them, by id."""
    moment = iso(facts.known_at)
    features = [
        Feature(f"lesson.{name}", word, as_of=moment) for name, word in _words(facts) if word
    ]
    features += [
        Feature(f"lesson.{name}", value, unit, moment, decimals=decimals)
        for name, value, decimals, unit in _shown(facts)
        if math.isfinite(value)
    ]
    return {feature.id: feature for feature in features}


def spoken(facts: LessonFacts) -> list[LessonNumber]:
    """Return the numbers of a lesson that may be said: those of the evidence and their like."""
    hours, step = facts.hours_held, TIMEFRAMES.get(facts.timeframe)
    numbers = facts.situation.numbers if facts.situation else {}
    shares = [getattr(facts, field) for field in RESULTS.values()]
    shares += [share for name in SHARES if (share := numbers.get(name)) is not None]
    derived = [LessonNumber("share", 100.0 * share, 0, "%") for share in shares]
    derived += [LessonNumber("held", hours * 60.0, 0, "min")]
    derived += [LessonNumber("held", hours / 24.0, 1, "day")]
    if step:
        derived += [LessonNumber("held", hours * (timedelta(hours=1) / step), 0, "bar")]
    return [number for number in (*_shown(facts), *derived) if math.isfinite(number.value)]


def _words(facts: LessonFacts) -> Iterator[tuple[str, str]]:
    yield from (("kind", facts.kind), ("side", facts.side), ("outcome", facts.outcome))
    yield from (("thesis", facts.evolution), ("ended", facts.reason))
    situation = facts.situation
    if situation is None:
        return
    yield from (("regime", situation.regime), ("session", situation.session))
    yield "flags", ", ".join(situation.triage)
    for name, sign in (("spoke_for", 1), ("spoke_against", -1)):
        wanted = sign * DIRECTION[facts.side]
        parts = [PARTS.get(part, "") for part, way in situation.strongest if way == wanted]
        yield name, "; ".join(filter(None, parts))
    yield "news_of", ", ".join(situation.events)


def _shown(facts: LessonFacts) -> Iterator[LessonNumber]:
    for name, field in RESULTS.items():
        yield LessonNumber(name, float(getattr(facts, field)), 2, "R")
    yield LessonNumber("held", facts.hours_held, 1, "h")
    if facts.profit is not None:
        yield LessonNumber("profit", facts.profit, 2, "of the account")
    numbers = facts.situation.numbers if facts.situation else {}
    for name, scale in SCALES.items():
        if (value := numbers.get(name)) is not None:
            yield LessonNumber(name, value, scale.decimals, scale.unit)
