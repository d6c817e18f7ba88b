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
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import BeforeValidator, TypeAdapter

from agents.features import rows_of
from torra.clock import iso, time_of
from torra.verdict.risk_engine import PositionSide
from torra.verdict.vetoed import REFUSERS

Kind = Literal["trade", "vetoed"]
KINDS: Final[tuple[Kind, ...]] = ("trade", "vetoed")


class NumberScale(NamedTuple):
    """How a number of a situation comes to about -1 to +1: less `middle`, over `width`.

    `turns` says whether its sign depends on the side of the trade. It is shown with so many
    decimals and its unit; `feature` is that of a tick which it is as it stands, "" for none. One of
    the words `about` says it in a sentence; `share_of` is what it is a share of, "" for nothing.
    """

    middle: float
    width: float
    turns: bool
    decimals: int
    unit: str
    feature: str
    about: str
    share_of: str


SCALES: Final[Mapping[str, NumberScale]] = {
    row["number"]: NumberScale(
        float(row["middle"]), float(row["width"]), row["turns"] == "yes", int(row["decimals"]),
        row["unit"], row["feature"], row["about"], row["share_of"],
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


TRENDS: Final[Mapping[PositionSide, Mapping[str, str]]] = {
    "LONG": {"trend_up": "with_trend", "trend_down": "against_trend"},
    "SHORT": {"trend_up": "against_trend", "trend_down": "with_trend"},
}
"""What a trend is to a side."""

Moment = Annotated[datetime, BeforeValidator(time_of)]

OMITTED: Final = frozenset(("thesis", "judgement", "refused"))
"""Fields that are stored only where they say something: most desks have none."""


class StoredValue:
    """A dataclass that is stored as JSON."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON; `of` makes the same of it again."""
        fields: Mapping[str, Any] = vars(type(self))["__dataclass_fields__"]
        values = {name: getattr(self, name) for name in fields}
        return {
            name: _plain(value) for name, value in values.items() if value or name not in OMITTED
        }

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return what `as_dict` described; raises ValueError for anything else."""
        value: Self = _adapter(cls).validate_python(row)  # type: ignore[arg-type]
        return value


@cache
def _adapter(kind: type[StoredValue]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, StoredValue):
        return value.as_dict()
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True, slots=True)
class Thesis(StoredValue):
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


@dataclass(frozen=True, slots=True)
class Judgement(StoredValue):
    """What a swarm's judge said at an opening.

    `side` is LONG, SHORT or NONE, `counter` what spoke against it, `chance` in [0, 1].
    """

    side: str
    counter: str
    chance: float


@dataclass(frozen=True, slots=True)
class Situation(StoredValue):
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
        numbers = dict(self.numbers)
        if side == "SHORT":
            support, resistance = LEVELS
            numbers |= {
                support: self.numbers.get(resistance),
                resistance: self.numbers.get(support),
            }
        scaled = []
        for name, scale in SCALES.items():
            value = numbers.get(name)
            if value is None or not math.isfinite(value):
                value = scale.middle
            turned = DIRECTION[side] if scale.turns else 1
            place = (value - scale.middle) / scale.width * turned
            scaled.append(max(-1.0, min(1.0, place)) + 0.0)
        return tuple(scaled)

    def terms(self, side: PositionSide) -> tuple[str, ...]:
        """Return the words by which lessons are compared, as a trade of a side sees them.

        Symbol, timeframe, side and session are none: nearly every lesson would share them.
        """
        trend = TRENDS[side].get(self.regime, self.regime)
        way = DIRECTION[side]
        return (
            *((trend,) if trend else ()),
            *self.triage,
            *(f"{name}_{'for' if sign * way > 0 else 'against'}" for name, sign in self.strongest),
            *(f"event_{name}" for name in self.events),
        )


@dataclass(frozen=True, slots=True)
class LessonFacts(StoredValue):
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
    bar_time: Moment
    opened_at: Moment
    closed_at: Moment
    known_at: Moment
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


@dataclass(frozen=True, slots=True)
class LessonText(StoredValue):
    """What a lesson says: three sentences or fewer in each part, plain text.

    `setup` is what was done and in which market, `outcome` what came of it, `rule` what to heed
    next time. `author` is "rules" or the model that wrote them; `request_hash` names the question,
    `cost_usd` what it cost. `flags` say what code took out.
    """

    setup: str
    outcome: str
    rule: str
    author: str
    known_at: Moment
    request_hash: str = ""
    cost_usd: float = 0.0
    flags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it, in one line."""
        return " ".join(part for part in (self.setup, self.outcome, self.rule) if part)


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
