"""What a lesson is: the facts of a closed trade, the market in which it began, and words about it.

A lesson has two parts. Its facts are arithmetic, written in the transaction that closes the trade,
and never change. Its words say what can be learned, in three sentences: the setup, the outcome, and
a rule. The rules write them with the facts; a model may add its own later, or never.

An opening that the gate took away is a lesson too (`vetoed`): the first of a stretch of vetoes of
one side, followed on paper with its own levels until an end. No trade was made of it.

A situation is what 16 numbers and a few words say of the market at the opening. Its numbers stand
as they were; `vector` scales them and turns those with a direction to the side of the trade, so
that a long in a rising market is like a short in the same market upside down.

Values alone; a time is aware and in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from agents.features import rows_of
from torra.clock import iso, parse
from torra.verdict.risk_engine import PositionSide
from torra.verdict.vetoed import REFUSERS

Kind = Literal["trade", "vetoed"]
KINDS: Final[tuple[Kind, ...]] = ("trade", "vetoed")


class NumberScale(NamedTuple):
    """How a number of a situation comes to about -1 to +1: less `middle`, over `width`.

    `turns` says whether its sign depends on the side of the trade. It is shown with so many
    decimals and its unit; `feature` is that of a tick which it is as it stands, "" for none.
    """

    middle: float
    width: float
    turns: bool
    decimals: int
    unit: str
    feature: str


SCALES: Final[Mapping[str, NumberScale]] = {
    row["number"]: NumberScale(
        float(row["middle"]), float(row["width"]), row["turns"] == "yes", int(row["decimals"]),
        row["unit"], row["feature"],
    )
    for row in rows_of(Path(__file__).with_name("situation.csv"))
}  # fmt: skip
"""The 16 numbers of a situation. Fixed scales: one that is learned from the lessons would move what
an old lesson is like with each new one. Distances to support and resistance change places with the
side.
"""

LEVELS: Final = ("support_distance_atr", "resistance_distance_atr")

DIRECTION: Final[Mapping[PositionSide, int]] = {"LONG": 1, "SHORT": -1}
"""The direction of a side."""

MIRRORED: Final[Mapping[str, str]] = {"trend_up": "with_trend", "trend_down": "against_trend"}
"""What a trend is to a long; to a short it is the other."""


class Thesis(NamedTuple):
    """Why an opening was made, as the trader wrote it: no number of it is a fact of the trade.

    `ends` are the closes that were to end it, `bars` how many bars it was to take, `tier` the
    models that were asked.
    """

    claim: str
    ends: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    bars: int = 0
    tier: str = ""
    declined: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**self._asdict(), "ends": [*self.ends], "risks": [*self.risks]}


class Judgement(NamedTuple):
    """What a swarm's judge said at an opening.

    `side` is LONG, SHORT or NONE, `counter` what spoke against it, `chance` in [0, 1].
    """

    side: str
    counter: str
    chance: float


@dataclass(frozen=True, slots=True)
class Situation:
    """The market at an opening, as its tick saw it.

    `numbers` are those of SCALES by name, in their own units, None where one was not known.
    `regime`, `session` and `triage` are words of torra.market.regime and of the memory context;
    `strongest` are the components of L1 that weighed most, each with the sign of its value;
    `events` the classes of the headlines that were known. `thesis` is the trader's, None of a desk
    that asks none, `judgement` a swarm's judge's; no agent is told of either.
    """

    numbers: Mapping[str, float | None]
    regime: str = ""
    session: str = ""
    triage: tuple[str, ...] = ()
    strongest: tuple[tuple[str, int], ...] = ()
    events: tuple[str, ...] = ()
    thesis: Thesis | None = None
    judgement: Judgement | None = None

    def vector(self, side: PositionSide) -> tuple[float, ...]:
        """Return the scaled numbers as a trade of a side sees them, each -1 to +1; 0 for None."""
        seen = dict(self.numbers)
        if side == "SHORT":
            support, resistance = LEVELS
            seen |= {support: self.numbers.get(resistance), resistance: self.numbers.get(support)}
        way = DIRECTION[side]
        return tuple(_scaled(seen.get(name), scale, way) for name, scale in SCALES.items())

    def terms(self, side: PositionSide) -> tuple[str, ...]:
        """Return the words by which lessons are compared, as a trade of a side sees them.

        Symbol, timeframe, side and session are none: nearly every lesson would share them.
        """
        return tuple(self._terms(side))

    def _terms(self, side: PositionSide) -> Iterator[str]:
        way = DIRECTION[side]
        if trend := MIRRORED.get(self.regime):
            turned = {"with_trend": "against_trend", "against_trend": "with_trend"}
            yield trend if way > 0 else turned[trend]
        elif self.regime:
            yield self.regime
        yield from self.triage
        for name, sign in self.strongest:
            yield f"{name}_{'for' if sign * way > 0 else 'against'}"
        yield from (f"event_{name}" for name in self.events)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON; `of` makes the same of it again."""
        return {
            "numbers": dict(self.numbers),
            "regime": self.regime,
            "session": self.session,
            "triage": [*self.triage],
            "strongest": [[*one] for one in self.strongest],
            "events": [*self.events],
            **({"thesis": self.thesis.as_dict()} if self.thesis else {}),
            **({"judgement": self.judgement._asdict()} if self.judgement else {}),
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Situation:
        """Return the situation that `as_dict` described."""
        return cls(
            dict(told["numbers"]),
            told["regime"],
            told["session"],
            tuple(told["triage"]),
            tuple((name, sign) for name, sign in told["strongest"]),
            tuple(told["events"]),
            _thesis_of(told.get("thesis")),
            Judgement(**told["judgement"]) if "judgement" in told else None,
        )


def _thesis_of(told: Mapping[str, Any] | None) -> Thesis | None:
    if told is None:
        return None
    listed = {name: tuple(told[name]) for name in ("ends", "risks")}
    return Thesis(**{**told, **listed})


@dataclass(frozen=True, slots=True)
class LessonFacts:
    """What a trade came to: arithmetic alone.

    `sid` is its opening's id; `asset` the asset class of the symbol. R multiples are of the planned
    risk, signs as a trader has them: `mae_r` <= 0 is the furthest that it stood against the trade,
    `mfe_r` >= 0 the furthest in its favour, over the whole bars between fill and end and the end
    itself. `surprise` is how far `r` lies from what was to be expected of the plan. `profit` is in
    account currency, None for a vetoed opening. `reason` is why it ended. `known_at` is when the
    desk knew of it: a tick at `as_of` is told of lessons with `known_at` < `as_of` alone.
    `situation` is None for an opening of which no market was stored. `refused` is for what a
    swarm's judge or risk officer took an opening away (torra.verdict.vetoed), "" elsewhere.
    """

    sid: str
    kind: Kind
    instance: str
    symbol: str
    asset: str
    timeframe: str
    side: PositionSide
    bar_time: datetime
    opened_at: datetime
    closed_at: datetime
    known_at: datetime
    outcome: str
    evolution: str
    reason: str
    r: float
    planned_r: float
    slipped_r: float
    mae_r: float
    mfe_r: float
    hours_held: float
    surprise: float
    profit: float | None = None
    situation: Situation | None = None
    refused: str = ""

    @property
    def thesis(self) -> Thesis | None:
        """What the trader wrote of the opening; None of a desk that asks none."""
        return self.situation.thesis if self.situation else None

    @property
    def declined(self) -> bool:
        """Whether it was the trader that took the opening away, and not the gate."""
        return self.kind == "vetoed" and self.thesis is not None and self.thesis.declined

    @property
    def refuser(self) -> str:
        """Who took the opening away, of one that was: the gate unless another is known."""
        return "trader" if self.declined else REFUSERS.get(self.refused, "gate")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON; `of` makes the same of it again."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        # the lessons of most desks have no such reason
        if not self.refused:
            del known["refused"]
        times = {name: iso(known[name]) for name in TIMES}
        situation = None if self.situation is None else self.situation.as_dict()
        return {**known, **times, "situation": situation}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> LessonFacts:
        """Return the facts that `as_dict` described."""
        times = {name: parse(told[name]) for name in TIMES}
        found = told["situation"]
        return cls(**{**told, **times, "situation": None if found is None else Situation.of(found)})


TIMES: Final = ("bar_time", "opened_at", "closed_at", "known_at")


@dataclass(frozen=True, slots=True)
class LessonText:
    """What a lesson says: three sentences or fewer in each part, plain text.

    `setup` is what was done and in which market, `outcome` what came of it, `rule` what to heed
    next time. `author` is "rules" or the model that wrote them; `request_hash` names the question,
    `cost_usd` what it cost. `flags` say what code took out.
    """

    setup: str
    outcome: str
    rule: str
    author: str
    known_at: datetime
    request_hash: str = ""
    cost_usd: float = 0.0
    flags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it, in one line."""
        return " ".join(part for part in (self.setup, self.outcome, self.rule) if part)

    def as_dict(self) -> dict[str, Any]:
        """Return them as plain JSON; `of` makes the same of it again."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**known, "known_at": iso(self.known_at), "flags": [*self.flags]}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> LessonText:
        """Return the words that `as_dict` described."""
        moment = parse(told["known_at"])
        return cls(**{**told, "known_at": moment, "flags": tuple(told["flags"])})


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as it is stored: its number, its facts, and words, the oldest first."""

    number: int
    facts: LessonFacts
    words: tuple[LessonText, ...] = ()

    def words_at(self, as_of: datetime) -> LessonText | None:
        """Return the newest words that were known before a moment."""
        known = [words for words in self.words if words.known_at < as_of]
        return known[-1] if known else None


class Fresh(NamedTuple):
    """What a store has that is newer than two of its row numbers.

    `lessons` are new ones with all their words, `words` later words by the number of their lesson;
    `facts` and `words_number` are the newest numbers now.
    """

    lessons: list[Lesson]
    words: list[tuple[int, LessonText]]
    facts: int
    words_number: int


def _scaled(value: float | None, scale: NumberScale, way: int) -> float:
    """Return a number of a situation, scaled and turned; nothing known is the middle."""
    if value is None or not math.isfinite(value):
        return 0.0
    found = (value - scale.middle) / scale.width
    return max(-1.0, min(1.0, found * way if scale.turns else found)) + 0.0
