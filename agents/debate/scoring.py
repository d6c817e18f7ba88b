"""The arithmetic of a debate: synthesis, gated scores, and how far the desk agrees. Nothing fails.

    f_i          focus weight of analyst i on the vector: primary 1.0, secondary 0.5; in a swarm
                 times the weight of the expert in this regime (agent_config.TRUST)
    k_i          trust of a report: confidence (high 1.0, medium 0.75, low 0.5; conceded at most
                 0.5), x 0.3 if ungrounded
    analyst_avg  sum(f_i k_i a_i) / sum(f_i) over the analysts that scored the vector, else 0
    debate       analyst_avg + (w_bull k_bull bull + w_bear k_bear bear) / 2, each side clamped to
                 +-0.15; w is an arbiter's weight of the case, in [0, 1], 1 without an arbiter
                 analyst_avg + k_judge judge, clamped to +-0.15, where a judge sits
    adjustment   clamp(debate x multiplier, -0.3, +0.3)

Trust is in the numerator only, so it shrinks an adjustment towards L1. Abstainers and failures
leave both sums. A missing side removes both sides, and a researcher's null is a missing side on
that vector. Only when a single opinion answered at the whole desk is it used alone, times its
trust. (docs/debate.md, "Synthesis".)

    push         sum over the vectors of weight x word; word = f k a (analyst), k a / 2
                 (researcher), k a (judge); the desk's push is the sum of its opinions'

Per side of an opening, BUY or SELL:

    opposition   analysts that push against it / analysts that push at all; 0 without any
    dissent      what pushes against it / all that pushes either way; 0 when nothing does
    raw          mean trust of the analysts and of the surer researcher; an opinion that pushes
                 against it, or failed, lends 0; 1 without opinions
    conviction   raw x (1 - OPPOSITION_COST x the greater of opposition and dissent), and at most
                 LEANING_SHARE of raw where the desk as a whole pushes against it

Where an arbiter or a judge sits, raw is at most its trust, a low one's where it failed. Naming the
other side counts as full opposition. Naming nobody costs `none_cost` at least where an analyst is
opposed, and nothing where none is. A debate that was not held, because too few analysts gave a
report, counts as full opposition, and raw is at most UNHELD_RAW. Bull and bear count as one voice:
the one with more trust. More opposition or more failures never make an opening larger. Without an
opinion, where an agent failed, raw and conviction are those of `outage`.

Conviction scales the size of an opening, downwards only; it leaves the scores alone. Sums are exact
(fsum) and rounded to 1e-8, so neither order nor names change one, and the mirrored market has the
mirrored panel. (docs/debate.md, "Disagreement and conviction".)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import floor, fsum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

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
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    EMPTY,
    OPINIONS,
    RESEARCHER_BOUND,
    SCORE_DECIMALS,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Role,
)
from ..evidence import trust
from ..registry import Agent

APART_FROM: Final = 0.05
"""Two adjustments of opposite sign, each at least this large, are a key disagreement."""

DIRECTIONS: Final[Mapping[str, int]] = MappingProxyType({"BUY": 1, "SELL": -1})

STEPS: Final = 10**SCORE_DECIMALS
"""Steps of a push in 1."""


class CountedReport(NamedTuple):
    """A report that counts, with the role of its author."""

    role: Role
    report: AgentReport


class Synthesis(NamedTuple):
    """What the desk thinks of each vector, before the gate."""

    analyst_avg: dict[str, float]
    debate: dict[str, float]


NO_MOVE: Final = Synthesis(dict.fromkeys(VECTORS, 0.0), dict.fromkeys(VECTORS, 0.0))


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


IN_FULL: Final = Agreement()


@dataclass(frozen=True, slots=True)
class Panel:
    """The agreement and disagreement among the reports of a desk.

    `spread` is the range of the analysts' adjustments per vector, `pushes` says which way each
    opinion leans, in [-0.3, +0.3], and `push` which way all of them do. `sided` and `abstained`
    count analysts, `sided` those that push at all. `disagreements` are made of ids and numbers
    alone; `falsifiers`, by researcher, are prose and enter no prompt. Without any report it is
    `NEUTRAL`.
    """

    spread: Mapping[str, float]
    pushes: Mapping[str, float] = field(default_factory=dict)
    push: float = 0.0
    sided: int = 0
    abstained: int = 0
    buy: Agreement = IN_FULL
    sell: Agreement = IN_FULL
    disagreements: tuple[str, ...] = ()
    falsifiers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def agreement(self, side: str) -> Agreement:
        """Return how far the desk agrees with a BUY or SELL; in full with anything else."""
        return {"BUY": self.buy, "SELL": self.sell}.get(side, IN_FULL)


NEUTRAL: Final = Panel(MappingProxyType(dict.fromkeys(VECTORS, 0.0)))
"""The panel of a tick on which nobody was to be asked, or everybody who was asked abstained."""

UNJUDGED: Final = AgentReport("arbiter")
"""In place of an arbiter that was asked and gave no report: its word counts as a low one."""

UNHELD: Final = AgentReport("arbiter", flags=("unheld",))
"""In place of the arbiter of a debate that was not held."""

UNHELD_RAW: Final = CONFIDENCE_WEIGHT["low"] * UNGROUNDED_WEIGHT
"""Most of raw where no debate was held: what the weakest word of an arbiter weighs."""


def plain(value: Any) -> Any:
    """Return a value as JSON has it: rows by their fields, tuples as lists."""
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


# --- scores ---------------------------------------------------------------------------------------


def synthesise(
    answers: Iterable[CountedReport],
    weights: Mapping[str, float] = EMPTY,
    trusted: Mapping[str, float] = EMPTY,
) -> Synthesis:
    """Reconcile the reports of analysts, researchers and a judge; abstaining ones are left out.

    `weights` are an arbiter's, in [0, 1], by researcher; they count where both gave a report.
    `trusted` says how much the focus of an analyst counts, in (0, 1], 1 for who is not named.
    """
    opinions = [answer for answer in answers if not answer.report.abstained]
    lent = {role.id: trust(report) for role, report in opinions}
    average, debate = {}, {}
    for vector in VECTORS:
        scored = _of(opinions, "analyst", vector)
        focus = [FOCUS_WEIGHT[role.focus[vector]] * trusted.get(role.id, 1.0) for role, _ in scored]
        words = (f * lent[role.id] * a for f, (role, a) in zip(focus, scored, strict=True))
        average[vector] = fsum(words) / fsum(focus) if scored else 0.0
        sides = {
            role.id: lent[role.id] * clamp(value, RESEARCHER_BOUND)
            for role, value in _of(opinions, "researcher", vector)
        }
        shift = 0.0
        # One side alone would push every score its own way.
        if len(sides) == len(SIDES):
            words = (weights.get(name, 1.0) * word for name, word in sides.items())
            shift = fsum(words) / len(SIDES)
        elif len(opinions) == 1:
            shift = fsum(sides.values())
        judged = fsum(
            lent[role.id] * clamp(value, RESEARCHER_BOUND)
            for role, value in _of(opinions, "judge", vector)
        )
        debate[vector] = average[vector] + (shift + judged)
    return Synthesis(average, debate)


def adjust(debate: Mapping[str, float], multiplier: float) -> dict[str, float]:
    """Return the adjustment of each vector under a multiplier in [0, 1], rounded to 1e-8."""
    return {
        vector: round(clamp(debate[vector] * multiplier, ADJUSTMENT_BOUND), SCORE_DECIMALS)
        for vector in VECTORS
    }


def add_adjustments(l1: Mapping[str, float], adjustments: Mapping[str, float]) -> dict[str, float]:
    """Return L1 plus adjustment, within [-1, +1]; an adjustment of 0 leaves L1 bit for bit."""
    return {
        vector: round(clamp(l1[vector] + adjustments[vector], 1.0), SCORE_DECIMALS)
        if adjustments[vector]
        else l1[vector]
        for vector in VECTORS
    }


def blended(l1: float, agent_score: float) -> float:
    """Return 0.80 L1 + 0.20 agent score, rounded to 1e-8; L1 bit for bit where the two agree."""
    # The rounding below could move an L1 score whose agents said nothing.
    if agent_score == l1:
        return l1
    return round(l1 + BLEND_WEIGHT * (agent_score - l1), SCORE_DECIMALS)


def spread(answers: Iterable[CountedReport]) -> float:
    """Return the widest range of the analysts' adjustments on a vector, 0 to 0.6."""
    return max(_ranges(answers, "analyst").values())


def clamp(value: float, bound: float) -> float:
    """Return a finite value within [-bound, +bound]."""
    return max(-bound, min(bound, value))


def _of(answers: Iterable[CountedReport], kind: str, vector: str) -> list[tuple[Role, float]]:
    """Return who of a kind scored a vector, and how."""
    return [
        (role, value)
        for role, report in answers
        if role.kind == kind and (value := report.adjustments.get(vector)) is not None
    ]


def _ranges(answers: Iterable[CountedReport], kind: str) -> dict[str, float]:
    """Return, per vector, the range of the adjustments of a kind; abstainers are left out."""
    opinions = [answer for answer in answers if not answer.report.abstained]
    values = {vector: [a for _, a in _of(opinions, kind, vector)] for vector in VECTORS}
    return {vector: max(row) - min(row) if row else 0.0 for vector, row in values.items()}


# --- agreement ------------------------------------------------------------------------------------


def outage(desk: Sequence[Agent], most: float, *, degraded: bool = False) -> Panel:
    """Return the panel of a desk without an opinion of which an agent failed.

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
    """Return the panel of the reports that count.

    `failed` names the opinions that gave no report and could have; `weights` says how much each
    vector weighs in the composite (their sum does not matter; equally much without any). `judged`
    is an arbiter's or a judge's report, UNJUDGED where it was asked and gave none, UNHELD where
    there was no debate to judge. `trusted` says how much the focus of an analyst counts, `most`
    bounds conviction, `none_cost` is AgentSettings.none_cost.
    """
    # By id, so that the record does not depend on which model answered first.
    reported = sorted(answers, key=lambda answer: answer.role.id)
    opinions = [a for a in reported if a.role.kind in OPINIONS and not a.report.abstained]
    steps = pushes(opinions, weights, trusted)
    analysts = [a.role.id for a in opinions if a.role.kind == "analyst"]
    sided = [steps[name] for name in analysts if steps[name]]
    buy, sell = (
        _agreement(opinions, failed, steps, sided, side, judged, most, none_cost)
        for side in DIRECTIONS.values()
    )
    return Panel(
        spread={v: round(r, SCORE_DECIMALS) for v, r in _ranges(opinions, "analyst").items()},
        pushes={name: step / STEPS for name, step in steps.items()},
        push=sum(steps.values()) / STEPS,
        sided=len(sided),
        abstained=sum(a.report.abstained for a in reported if a.role.kind == "analyst"),
        buy=buy,
        sell=sell,
        disagreements=tuple(_disagreements(opinions)),
        falsifiers={a.role.id: a.report.falsifiers for a in opinions if a.report.falsifiers},
    )


def opposed(answers: Iterable[CountedReport], weights: Mapping[str, float] = EMPTY) -> bool:
    """Return whether opinions push both ways."""
    steps = pushes(answers, weights, EMPTY).values()
    return min(steps, default=0) < 0 < max(steps, default=0)


def has_quorum(reports: int, seats: int, quorum: int) -> bool:
    """Return whether enough of the seated analysts gave a report, abstentions included.

    Desks of fewer than QUORUM_FROM analysts need no quorum, nor does one whose `quorum` is 0.
    """
    return seats < QUORUM_FROM or reports >= quorum


def pushes(
    opinions: Iterable[CountedReport], weights: Mapping[str, float], trusted: Mapping[str, float]
) -> dict[str, int]:
    """Return which way each opinion's own words lean, in whole steps of 1e-8.

    Whole, so that sums and shares of them are exact and keep their order.
    """
    whole = fsum(weights.get(vector, 0.0) for vector in VECTORS)
    steps = {}
    for role, report in opinions:
        words = []
        for vector in VECTORS:
            value = report.adjustments.get(vector)
            if value is None:
                continue
            share = weights.get(vector, 0.0) / whole if whole > 0.0 else 1.0 / len(VECTORS)
            if role.kind == "analyst":
                word = FOCUS_WEIGHT[role.focus[vector]] * trusted.get(role.id, 1.0) * value
            else:
                voices = len(SIDES) if role.kind == "researcher" else 1
                word = clamp(value, RESEARCHER_BOUND) / voices
            words.append(share * word)
        steps[role.id] = round(trust(report) * fsum(words) * STEPS)
    return steps


def _agreement(
    opinions: Sequence[CountedReport],
    failed: Collection[str],
    steps: Mapping[str, int],
    sided: Sequence[int],
    side: int,
    judged: AgentReport | None,
    most: float,
    none_cost: float,
) -> Agreement:
    """Return how far the desk agrees with an opening of a side, +1 or -1."""
    if not opinions and judged is None:
        return replace(IN_FULL, conviction=min(1.0, most))
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
        if judged.winner == "NONE":
            loss = max(loss, none_cost if opposed else 0.0)
        elif judged.winner and WINNERS[judged.winner] != side:  # one that failed names nobody
            loss = max(loss, OPPOSITION_COST)
    leans_against = side * sum(steps.values()) < 0
    conviction = raw * (1.0 - loss)
    if leans_against:
        conviction = min(conviction, LEANING_SHARE * raw)
    conviction = min(round(conviction, SCORE_DECIMALS), most)
    return Agreement(opposed, opposition, dissent, raw, conviction, leans_against)


def _share(part: int, whole: int) -> float:
    return round(part / whole, SCORE_DECIMALS) if whole else 0.0


def _raw(
    opinions: Sequence[CountedReport], failed: Collection[str], steps: Mapping[str, int], side: int
) -> float:
    """Return the mean trust of the analysts and the surer researcher in an opening of a side."""
    words = [0.0 for name in failed if name not in SIDES]
    cases = [0.0 for name in failed if name in SIDES]
    for role, report in opinions:
        lent = 0.0 if side * steps[role.id] < 0 else trust(report)
        (cases if role.kind == "researcher" else words).append(lent)
    if cases:
        # One word for the two: by their office one of them has no case.
        words.append(max(cases))
    # Without opinions the word of the arbiter alone bounds it.
    return round(fsum(words) / len(words), SCORE_DECIMALS) if opinions else 1.0


def _disagreements(opinions: Sequence[CountedReport]) -> Iterator[str]:
    """Yield, per vector, the two analysts furthest apart, then bull against bear where widest."""
    widest = max(VECTORS, key=_ranges(opinions, "researcher").__getitem__)
    for kind, vector in (*(("analyst", vector) for vector in VECTORS), ("researcher", widest)):
        scored = [(value, role.id) for role, value in _of(opinions, kind, vector)]
        if not scored:
            continue
        low, below = min(scored)
        # Not max(): of two that are equally high the first by name, as for the low end.
        high, above = min(scored, key=lambda score: (-score[0], score[1]))
        if low <= -APART_FROM and high >= APART_FROM:
            yield f"{vector}: {above} {high:+.4f} against {below} {low:+.4f}"
