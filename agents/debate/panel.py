"""The panel: how far the desk agrees, as arithmetic (spread, push, agreement, conviction, quorum).

    push         which way an opinion's own words lean: over the vectors, the weight of the vector x
                 f k a (an analyst's), x k a / 2 (a researcher's) or x k a (a judge's); the desk's
                 is their sum

Per side of an opening, BUY or SELL:

    opposition   analysts that push against it / analysts that push at all; 0 without any
    dissent      what pushes against it / all that pushes either way; 0 when nothing does
    raw          mean trust of the analysts and of the surer researcher; who pushes against it, or
                 failed, lends 0; 1 when no opinion was heard
    conviction   raw x (1 - OPPOSITION_COST x the greater of opposition and dissent), and at most
                 LEANING_SHARE of raw where the desk as a whole pushes against it

Where an arbiter or a judge sits, raw is at most what its own word weighs, a low one's where it
failed. One that names the other side counts as full opposition. One that names nobody costs
`none_cost` at least where an analyst is opposed, and nothing where none is. A debate that was not
held, because too few analysts were heard, counts as full opposition, and raw is at most UNHELD_RAW.

An abstainer changes nothing. Who opposes, opposes more strongly or fails never makes an opening
larger. By office one of the two researchers has no case for a side, so the surer one speaks for
both. Where no opinion was heard and somebody failed, raw and conviction are those of `outage`.

Conviction scales the size of an opening, downwards only; it leaves the scores alone. Sums are exact
and every number is rounded to 1e-8, so neither order nor names change one, and the mirrored market
has the mirrored panel. Nothing here asks, waits or fails. The falsifiers, which are prose, are for
pages only. (docs/debate.md, "Disagreement and conviction".)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, fsum
from types import MappingProxyType
from typing import Any, Final

from agent_config import (
    CONFIDENCE_WEIGHT,
    FOCUS_WEIGHT,
    LEANING_SHARE,
    NONE_COST,
    OPPOSITION_COST,
    QUORUM_FROM,
    UNGROUNDED_WEIGHT,
)

from ..contracts import (
    EMPTY,
    OPINIONS,
    RESEARCHER_BOUND,
    SCORE_DECIMALS,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
)
from ..evidence import trust
from ..registry import Agent
from .synthesis import CountedReport, clamp, spreads

APART_FROM: Final = 0.05
"""Two adjustments of opposite sign, each at least this large, are a key disagreement."""

DIRECTIONS: Final[Mapping[str, int]] = MappingProxyType({"BUY": 1, "SELL": -1})

STEPS: Final = 10**SCORE_DECIMALS
"""Steps of a push in 1."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the desk agrees with an opening of one side.

    `opposed` counts the analysts that push against it; `opposition`, `dissent`, `raw` and
    `conviction` lie in [0, 1]. `leans_against`: the desk as a whole pushes against it.
    """

    opposed: int = 0
    opposition: float = 0.0
    dissent: float = 0.0
    raw: float = 1.0
    conviction: float = 1.0
    leans_against: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Panel:
    """The agreement and disagreement among the answers of a desk.

    `spread` is the range of the analysts' adjustments per vector, `pushes` says which way each
    opinion leans, in [-0.3, +0.3], and `push` which way all of them do. `sided` and `abstained`
    count analysts, `sided` those that push at all. `disagreements` are made of ids and numbers
    alone; `falsifiers`, by researcher, are prose and enter no prompt. Without any answer it is
    `NEUTRAL`.
    """

    spread: Mapping[str, float]
    pushes: Mapping[str, float] = field(default_factory=dict)
    push: float = 0.0
    sided: int = 0
    abstained: int = 0
    buy: Agreement = Agreement()
    sell: Agreement = Agreement()
    disagreements: tuple[str, ...] = ()
    falsifiers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def agreement(self, side: str) -> Agreement:
        """Return how far the desk agrees with an opening BUY or SELL; in full with anything else.

        So it is where nobody answered.
        """
        return {"BUY": self.buy, "SELL": self.sell}.get(side, IN_FULL)

    def as_json(self) -> dict[str, Any]:
        """Return the panel as JSON values."""
        return {
            "spread": dict(self.spread),
            "pushes": dict(self.pushes),
            "push": self.push,
            "sided": self.sided,
            "abstained": self.abstained,
            "buy": self.buy.as_json(),
            "sell": self.sell.as_json(),
            "disagreements": list(self.disagreements),
            "falsifiers": {name: list(told) for name, told in self.falsifiers.items()},
        }


UNJUDGED: Final = AgentReport("arbiter")
"""Stands for an arbiter that was asked and gave no report: its word counts as a low one."""

UNHELD: Final = AgentReport("arbiter", flags=("unheld",))
"""Stands for the arbiter of a debate that was not held."""

UNHELD_RAW: Final = CONFIDENCE_WEIGHT["low"] * UNGROUNDED_WEIGHT
"""Most of raw where no debate was held: what the weakest word of an arbiter weighs."""

IN_FULL: Final = Agreement()
NEUTRAL: Final = Panel(MappingProxyType(dict.fromkeys(VECTORS, 0.0)))
"""The panel of a tick on which nobody was to be asked, or everybody who was asked abstained."""


def outage(desk: Sequence[Agent], most: float, *, degraded: bool = False) -> Panel:
    """Return the panel of a desk of which no opinion was heard and somebody failed.

    What it leaves of an opening is `most` (AgentSettings.outage_size), and never more than one of
    the words in `raw`: an analyst's, the researchers', a judge's. A `degraded` desk of an arbiter
    held no debate.
    """
    kinds = [seat.role.kind for seat in desk]
    words = kinds.count("analyst") + kinds.count("judge") + ("researcher" in kinds)
    unheld = degraded and "arbiter" in kinds
    cost, most = (OPPOSITION_COST, min(most, UNHELD_RAW)) if unheld else (0.0, most)
    # Rounded down: a third of a size is never more than a third.
    share = floor(min(most, 1.0 / max(1, words)) * STEPS) / STEPS
    agreed = Agreement(raw=share, conviction=round(share * (1.0 - cost), SCORE_DECIMALS))
    return replace(NEUTRAL, buy=agreed, sell=agreed)


def panel_of(
    answers: Iterable[CountedReport],
    failed: Collection[str] = (),
    weights: Mapping[str, float] = EMPTY,
    judged: AgentReport | None = None,
    trusted: Mapping[str, float] = EMPTY,
    most: float = 1.0,
    none_cost: float = NONE_COST,
) -> Panel:
    """Return the panel of the answers that count.

    `failed` names the opinions that gave no report and could have; `weights` says how much each
    vector weighs in the composite (their sum does not matter; equally much without any). `judged`
    is an arbiter's or a judge's report, UNJUDGED where it was asked and gave none, UNHELD where
    there was no debate to judge. `trusted` says how much the focus of an analyst counts
    (agents.debate.synthesis), `most` bounds conviction, `none_cost` is AgentSettings.none_cost.
    """
    # By id, so that the record does not depend on which model answered first.
    told = sorted(answers, key=lambda answer: answer.role.id)
    analysts = [answer for answer in told if answer.role.kind == "analyst"]
    heard = [answer for answer in told if not answer.report.abstained]
    opinions = [answer for answer in heard if answer.role.kind in OPINIONS]
    shares = _shares(weights)
    steps = {answer.role.id: _push(answer, shares, trusted) for answer in opinions}
    sided = [steps[a.role.id] for a in opinions if a.role.kind == "analyst" and steps[a.role.id]]
    buy, sell = (
        _bounded(_agreement(opinions, failed, steps, sided, side, judged, none_cost), most)
        for side in (DIRECTIONS["BUY"], DIRECTIONS["SELL"])
    )
    return Panel(
        spread={v: round(apart, SCORE_DECIMALS) for v, apart in spreads(told).items()},
        pushes={name: step / STEPS for name, step in steps.items()},
        push=sum(steps.values()) / STEPS,
        sided=len(sided),
        abstained=sum(answer.report.abstained for answer in analysts),
        buy=buy,
        sell=sell,
        disagreements=tuple(_disagreements(opinions)),
        falsifiers={
            answer.role.id: answer.report.falsifiers
            for answer in opinions
            if answer.report.falsifiers
        },
    )


def opposed(answers: Iterable[CountedReport], weights: Mapping[str, float] = EMPTY) -> bool:
    """Return whether analysts push both ways."""
    shares = _shares(weights)
    told = [_push(one, shares, EMPTY) for one in answers if not one.report.abstained]
    return any(step > 0 for step in told) and any(step < 0 for step in told)


def has_quorum(heard: int, seats: int, quorum: int) -> bool:
    """Return whether enough of the seated analysts gave a report, abstentions included.

    Desks of fewer than QUORUM_FROM analysts need no quorum, nor does one whose `quorum` is 0.
    """
    return seats < QUORUM_FROM or heard >= quorum


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of the vectors, made to sum to 1; equal ones where there are none."""
    given = {vector: weights.get(vector, 0.0) for vector in VECTORS}
    whole = fsum(given.values())
    if whole <= 0.0:
        return dict.fromkeys(VECTORS, 1.0 / len(VECTORS))
    return {vector: weight / whole for vector, weight in given.items()}


def _push(answer: CountedReport, shares: Mapping[str, float], trusted: Mapping[str, float]) -> int:
    """Return which way an opinion's own words lean, in steps of 1e-8.

    Counted in whole steps, so that sums and shares of them are exact and keep their order.
    """
    report = answer.report
    words = (
        shares[vector] * _word(answer, vector, value, trusted)
        for vector in VECTORS
        if (value := report.adjustments.get(vector)) is not None
    )
    return round(trust(report) * fsum(words) * STEPS)


def _word(answer: CountedReport, vector: str, value: float, trusted: Mapping[str, float]) -> float:
    """Return an adjustment as the synthesis counts it, its trust aside."""
    if answer.role.kind == "researcher":
        return clamp(value, RESEARCHER_BOUND) / len(SIDES)
    if answer.role.kind == "judge":
        return clamp(value, RESEARCHER_BOUND)
    return FOCUS_WEIGHT[answer.role.focus[vector]] * trusted.get(answer.role.id, 1.0) * value


def _agreement(
    opinions: Sequence[CountedReport],
    failed: Collection[str],
    steps: Mapping[str, int],
    sided: Sequence[int],
    side: int,
    judged: AgentReport | None,
    none_cost: float,
) -> Agreement:
    """Return how far the desk agrees with an opening of a side, +1 or -1."""
    if not opinions and judged is None:
        return IN_FULL
    opposed = sum(side * step < 0 for step in sided)
    against = sum(abs(step) for step in steps.values() if side * step < 0)
    opposition = _share(opposed, len(sided))
    dissent = _share(against, sum(map(abs, steps.values())))
    raw = _raw(opinions, failed, steps, side)
    loss = OPPOSITION_COST * max(opposition, dissent)
    if judged is UNHELD:
        raw, loss = min(raw, UNHELD_RAW), OPPOSITION_COST
    elif judged is not None and not judged.abstained:
        raw = min(raw, trust(judged))
        loss = max(loss, _loss(judged.winner, side, opposed, none_cost))
    leans_against = side * sum(steps.values()) < 0
    conviction = raw * (1.0 - loss)
    if leans_against:
        conviction = min(conviction, LEANING_SHARE * raw)
    return Agreement(
        opposed, opposition, dissent, raw, round(conviction, SCORE_DECIMALS), leans_against
    )


def _loss(winner: str, side: int, opposed: int, none_cost: float) -> float:
    """Return the least share of conviction that is lost where somebody judges the debate."""
    # One that failed has no winner, and opposes nobody.
    if not winner or WINNERS[winner] == side:
        return 0.0
    if winner == "NONE":
        return none_cost if opposed else 0.0
    return OPPOSITION_COST


def _bounded(found: Agreement, most: float) -> Agreement:
    return found if found.conviction <= most else replace(found, conviction=most)


def _share(part: int, whole: int) -> float:
    return round(part / whole, SCORE_DECIMALS) if whole else 0.0


def _raw(
    opinions: Sequence[CountedReport], failed: Collection[str], steps: Mapping[str, int], side: int
) -> float:
    """Return the mean trust of the analysts and the surer researcher in an opening of a side."""

    def lent(answer: CountedReport) -> float:
        return 0.0 if side * steps[answer.role.id] < 0 else trust(answer.report)

    words = [lent(answer) for answer in opinions if answer.role.kind != "researcher"]
    words += [0.0 for name in failed if name not in SIDES]
    cases = [lent(answer) for answer in opinions if answer.role.kind == "researcher"]
    if cases or any(name in SIDES for name in failed):
        # One word for the two: by their office one of them has no case.
        words.append(max(cases, default=0.0))
    # Nobody spoke: what is lent then is the arbiter's to say.
    return round(fsum(words) / len(words), SCORE_DECIMALS) if opinions else 1.0


def _disagreements(opinions: Sequence[CountedReport]) -> Iterable[str]:
    """Yield, per vector, the two analysts furthest apart, then bull against bear where widest."""
    analysts = [answer for answer in opinions if answer.role.kind == "analyst"]
    yield from (told for vector in VECTORS if (told := _apart(analysts, vector)))
    sides = [answer for answer in opinions if answer.role.kind == "researcher"]
    apart = spreads(sides, kind="researcher")
    widest = max(VECTORS, key=lambda vector: apart[vector])
    if told := _apart(sides, widest):
        yield told


def _apart(answers: Sequence[CountedReport], vector: str) -> str:
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
