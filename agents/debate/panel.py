"""The panel: how far the desk agrees, as arithmetic (spread, opposition, conviction, quorum).

    view         L1 + adjustment: how an analyst, or the debate, scores a vector
    stance       focus-weighted mean of an analyst's views of the vectors that it scored
    side         sign of a stance, or of the mean of the debate's views; 0 nearer than SIDE_FROM
    opposition   analysts on the other side than the debate / analysts that took one; 0 without any
    raw          mean trust of the analysts and of the surer researcher, one that failed counted as
                 of low confidence; 1 when no opinion was heard
    conviction   raw x (1 - OPPOSITION_COST x opposition), never above raw

Only analysts that took a side count, so abstainers and the neutral dilute nothing: one that opposes
beside three that abstain is full opposition (document 000). By design one of the two researchers
has no case, so the surer one speaks for both. An agent that failed makes nobody surer. Where nobody
was heard there is no conviction to go by, and the size is the deterministic one.

Conviction scales the size of an opening, downwards only; it leaves the scores alone. Sums are exact
and every number is rounded to 1e-8, so neither order nor names change one. Nothing here asks, waits
or fails. The falsifiers, which are prose, are for pages only. (docs/debate.md, "Disagreement and
conviction".)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from types import MappingProxyType
from typing import Any, Final

from agent_config import CONFIDENCE_WEIGHT, FOCUS_WEIGHT, OPPOSITION_COST, QUORUM_FROM, SIDE_FROM

from ..contracts import SCORE_DECIMALS, VECTORS
from .synthesis import SIDES, Answer, spreads, trust

APART_FROM: Final = 0.05
"""Two adjustments of opposite sign, each at least this large, are a key disagreement."""

DIRECTIONS: Final[Mapping[str, int]] = MappingProxyType({"BUY": 1, "SELL": -1})


@dataclass(frozen=True, slots=True)
class Panel:
    """The agreement and disagreement among the answers of a desk.

    `spread` is the range of the analysts' adjustments per vector. `side` is which way the debate
    sees the market (-1, 0, +1), `stances` how each analyst that scored something does. `sided`,
    `opposed` and `abstained` count analysts. `disagreements` are made of ids and numbers alone;
    `falsifiers`, by researcher, are prose and enter no prompt. Without any answer it is `NEUTRAL`.
    """

    spread: Mapping[str, float]
    side: int = 0
    stances: Mapping[str, float] = field(default_factory=dict)
    sided: int = 0
    opposed: int = 0
    abstained: int = 0
    opposition: float = 0.0
    conviction_raw: float = 1.0
    conviction: float = 1.0
    disagreements: tuple[str, ...] = ()
    falsifiers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def conviction_for(self, side: str) -> float:
        """Return the share, in [0, 1], that conviction leaves of an opening BUY or SELL.

        It is the conviction where the debate sees the market that way or nowhere. Where the debate
        sees it the other way, it is the conviction under full opposition. It is 1 where nobody
        answered.
        """
        if self.side * DIRECTIONS.get(side, 0) >= 0:
            return self.conviction
        return _calibrated(self.conviction_raw, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Return the panel as JSON values."""
        return {
            "spread": dict(self.spread),
            "side": self.side,
            "stances": dict(self.stances),
            "sided": self.sided,
            "opposed": self.opposed,
            "abstained": self.abstained,
            "opposition": self.opposition,
            "conviction_raw": self.conviction_raw,
            "conviction": self.conviction,
            "disagreements": list(self.disagreements),
            "falsifiers": {name: list(told) for name, told in self.falsifiers.items()},
        }


NEUTRAL: Final = Panel(MappingProxyType(dict.fromkeys(VECTORS, 0.0)))
"""The panel of a tick on which no opinion answered: nothing is known against an opening."""


def measure(
    answers: Iterable[Answer],
    debate: Mapping[str, float],
    scores: Mapping[str, float],
    failed: Collection[str] = (),
) -> Panel:
    """Return the panel of the answers that count and of the debate that resulted from them.

    `scores` are the four of L1; `failed` names the opinions that were asked and gave no report.
    """
    # By id, so that the record does not depend on which model answered first.
    told = sorted(answers, key=lambda answer: answer.role.id)
    analysts = [answer for answer in told if answer.role.kind == "analyst"]
    heard = [answer for answer in told if not answer.report.abstained]
    opinions = [answer for answer in heard if answer.role.kind != "gate"]
    side = _side(fsum(scores[vector] + debate[vector] for vector in VECTORS) / len(VECTORS))
    stances = {
        answer.role.id: stance
        for answer in heard
        if answer.role.kind == "analyst" and (stance := _stance(answer, scores)) is not None
    }
    sides = [taken for stance in stances.values() if (taken := _side(stance))]
    opposed = sum(taken == -side for taken in sides) if side else 0
    opposition = round(opposed / len(sides), SCORE_DECIMALS) if sides else 0.0
    raw = _raw(opinions, failed)
    return Panel(
        spread={v: round(apart, SCORE_DECIMALS) for v, apart in spreads(told).items()},
        side=side,
        stances=stances,
        sided=len(sides),
        opposed=opposed,
        abstained=sum(answer.report.abstained for answer in analysts),
        opposition=opposition,
        conviction_raw=raw,
        conviction=_calibrated(raw, opposition),
        disagreements=tuple(_disagreements(opinions)),
        falsifiers={
            answer.role.id: answer.report.falsifiers
            for answer in opinions
            if answer.report.falsifiers
        },
    )


def quorate(heard: int, seats: int, quorum: int) -> bool:
    """Return whether enough of the seated analysts gave a report, abstentions included.

    Desks of fewer than QUORUM_FROM analysts need no quorum, nor does one whose `quorum` is 0.
    """
    return seats < QUORUM_FROM or heard >= quorum


def _calibrated(raw: float, opposition: float) -> float:
    return round(raw * (1.0 - OPPOSITION_COST * opposition), SCORE_DECIMALS)


def _raw(opinions: Sequence[Answer], failed: Collection[str]) -> float:
    """Return the mean trust of the analysts and the surer researcher; 1 without any opinion."""
    if not opinions:
        return 1.0
    low = CONFIDENCE_WEIGHT["low"]
    words = [trust(answer.report) for answer in opinions if answer.role.kind == "analyst"]
    words += [low for name in failed if name not in SIDES]
    cases = [trust(answer.report) for answer in opinions if answer.role.kind == "researcher"]
    if cases or any(name in SIDES for name in failed):
        # One word for the two: by their office one of them has no case.
        words.append(max(cases, default=low))
    return round(fsum(words) / len(words), SCORE_DECIMALS)


def _stance(answer: Answer, scores: Mapping[str, float]) -> float | None:
    """Return the mean of an analyst's views by its focus; None when it scored nothing."""
    scored = [
        (FOCUS_WEIGHT[answer.role.focus[vector]], scores[vector] + value)
        for vector in VECTORS
        if (value := answer.report.adjustments.get(vector)) is not None
    ]
    if not scored:
        return None
    mean = fsum(focus * value for focus, value in scored) / fsum(focus for focus, _ in scored)
    return round(mean, SCORE_DECIMALS)


def _side(lean: float) -> int:
    if abs(lean) < SIDE_FROM:
        return 0
    return 1 if lean > 0 else -1


def _disagreements(opinions: Sequence[Answer]) -> Iterable[str]:
    """Yield, per vector, the two analysts furthest apart, then bull against bear where widest."""
    analysts = [answer for answer in opinions if answer.role.kind == "analyst"]
    yield from (told for vector in VECTORS if (told := _apart(analysts, vector)))
    sides = [answer for answer in opinions if answer.role.kind == "researcher"]
    apart = spreads(sides, kind="researcher")
    widest = max(VECTORS, key=lambda vector: apart[vector])
    if told := _apart(sides, widest):
        yield told


def _apart(answers: Sequence[Answer], vector: str) -> str:
    """Return who stands furthest apart on a vector; "" unless clearly on both sides of 0."""
    given = [
        (value, answer.role.id)
        for answer in answers
        if (value := answer.report.adjustments.get(vector)) is not None
    ]
    if not given:
        return ""
    low, below = min(given)
    # Not max(): of two that are equally high the first by name, as for the low end.
    high, above = min(given, key=lambda one: (-one[0], one[1]))
    if low > -APART_FROM or high < APART_FROM:
        return ""
    return f"{vector}: {above} {high:+.4f} against {below} {low:+.4f}"
