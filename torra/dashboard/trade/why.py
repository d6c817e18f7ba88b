"""Why and why not: what speaks for a proposed order and what against it.

A point stands where the evidence put it when the report was read (`agents.arguments`), whoever
made it. An agent that leans to a side without a point there is heard with its claim. The gate has a
place where it cuts, and the parts of the four L1 scores speak last. Each fact counts once on each
side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from agents.contracts import WINNERS, AgentReport, Point
from agents.debate.scoring import DIRECTIONS
from agents.features import name_of
from agents.phrases import PHRASES
from torra.dashboard.record import arithmetic
from torra.dashboard.record.thesis import objection
from torra.exhibits import figures
from torra.tick.marks import GATE, INVENTED_IDS
from torra.tick.sentence import BELOW_ZERO
from torra.tick.tick_record import TickRecord, is_gate, statement
from torra.verdict.vetoed import SIDED, sided
from torra.words.badge import capital
from torra.words.ticks import GATE_REASONS

BULLETS: Final = 3
BARS: Final = "Bars"
"""Who speaks where a part of an L1 score does: nobody but the bars."""

RESEARCHERS: Final = {"BUY": "bull_researcher", "SELL": "bear_researcher"}

PART: Final = "component."
OF_ONE: Final = re.compile(r" at ([+-]?\d\.\d+) of 1(?!\.?\d)")
"""How the value of a part is said to a model: it lies between -1 and +1."""

LONGEST: Final = 140
"""Most characters of a point."""

NO_SIDE: Final = "No side: "
"""How the words of a judge begin that takes none, where the page has said so already."""

UNSIDED: Final = "misplaced"
"""Flag of a report that made points which are on no side."""

NO_CUT: Final = 0.995
"""Multiplier from which the gate's cut shows in no decimal."""

LEAST_PART: Final = 0.05
"""Value of a part of a score from which it is worth a line."""


@dataclass(frozen=True, slots=True)
class SidePoint:
    """A point of an agent or of the bars alone, with the feature that it cites and its name."""

    who: str
    text: str
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """The points for a side and against it, and what would refute it."""

    why: list[SidePoint]
    why_not: list[SidePoint]
    falsifiers: list[str]


def case(record: TickRecord, side: str) -> Case:
    """Return the points for a side and against it, three each, and what would refute it."""
    debate, towards = record.deliberation, DIRECTIONS.get(side, 0)
    gate = [*_of_one_side(record, side), *_manager(record, side), *_gate(record)]
    # Places are left for manager and gate where they cut: that holds whatever the agents say.
    places, contrary = BULLETS - len(gate), list(_agents(record, -towards))
    disagreements = (
        SidePoint("Disagreement", shortened(text, LONGEST).replace("_", " "))
        for text in debate.panel.disagreements
    )
    against = (
        *contrary[:places], *gate, *contrary[places:], *disagreements, *_parts(record, -towards),
    )  # fmt: skip
    reports = {report.agent_id: report for report in debate.reports}
    champion = reports.get(RESEARCHERS.get(side, ""))
    if (judge := debate.judge) and WINNERS.get(judge.winner, 0) == towards:
        champion = judge
    for_it, parts = list(_agents(record, towards)), list(_parts(record, towards))
    # Where the agents lean against it, L1 is who wants it.
    alone = debate.panel.push * towards < 0.0
    return Case(
        why=_once((*parts[:2], *for_it, *parts) if alone else (*for_it, *parts)),
        why_not=_once(against),
        falsifiers=[shortened(end, 160) for end in champion.falsifiers[:BULLETS]]
        if champion
        else [],
    )


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence, cut at a word if it is longer than `limit`."""
    sentences = re.split(r"(?<=[.!?;])\s", figures.sanitize(text).strip())
    return shortened(sentences[0].rstrip(";"), limit)


def shortened(text: str, limit: int) -> str:
    """Return a text, cut at a word if it is longer than `limit`."""
    line = " ".join(figures.sanitize(text).split())
    if len(line) <= limit:
        return line
    return line[:limit].rsplit(" ", 1)[0].rstrip(",;:") + "…"


def short_name(agent: str) -> str:
    """Return an agent's name in few words: Bull for the bull researcher."""
    return figures.title(agent.removesuffix("_researcher"))


def plain(text: str) -> str:
    """Return what is said of a part of a score as a trader reads it: "leans down (−0.96)"."""
    return BELOW_ZERO.sub(figures.MINUS, OF_ONE.sub(r" (\1)", text))


def _once(points: Iterable[SidePoint]) -> list[SidePoint]:
    """Return the first points, none of a fact or in words that one before it had."""
    distinct: list[SidePoint] = []
    known: set[str] = set()
    for point in points:
        # the same words in other punctuation or case are no second point
        marks = {point.id or point.text, re.sub(r"\W+", " ", point.text).strip().casefold()}
        if not marks & known:
            distinct.append(point)
        known |= marks
    return distinct[:BULLETS]


def _agents(record: TickRecord, towards: int) -> Iterator[SidePoint]:
    """Yield what the agents said for a side: its researcher's points first, then who leans most.

    One place is left for a voice other than the researcher's.
    """
    stances = record.deliberation.panel.pushes
    own = next((RESEARCHERS[side] for side, way in DIRECTIONS.items() if way == towards), "")
    points = {
        report.agent_id: _of(report, towards, stances.get(report.agent_id) or 0.0)
        for report in record.deliberation.reports
        if report.agent_id != GATE and not report.abstained
    }
    order = sorted(points, key=lambda name: (name != own, -towards * (stances.get(name) or 0.0)))
    places = {name: BULLETS - 1 if name == own else 1 for name in order}
    first = (points[name][: places[name]] for name in order)
    # a second point of an agent after the first ones of all
    rest = (points[name][places[name] :] for name in order)
    for point in chain(*first, *rest):
        invented = record.invented and point.id.startswith(INVENTED_IDS)
        yield replace(point, text=f"Invented: {point.text}") if invented else point


def _of(report: AgentReport, towards: int, push: float) -> Sequence[SidePoint]:
    """Return an agent's points for a side; what it claims, where those it made do not stand."""
    who = short_name(report.agent_id)
    given = (*report.points_for, *report.points_against)
    points = [point for point in given if towards and point.side == towards and point.says]
    unsided = UNSIDED in report.flags
    if not points and unsided and push * towards > 0.0 and statement(report):
        return [SidePoint(who, first_sentence(statement(report), LONGEST))]
    return [_bullet(who, point) for point in points]


def _bullet(who: str, point: Point) -> SidePoint:
    name, text = figures.sanitize(point.id, 60), shortened(plain(point.says), LONGEST)
    return SidePoint(who, text if text.endswith("…") else f"{text}.", name, name_of(name))


def _parts(record: TickRecord, towards: int) -> Iterator[SidePoint]:
    """Yield the parts of the L1 scores that lean to a side, those that weigh most first."""
    weights = arithmetic.vector_weights(record)
    weighted = [
        (towards * part.value * part.weight * weights.get(vector, 1.0), part)
        for vector, parts in record.components.items()
        for part in parts
        if part.value is not None and part.name
    ]
    for strength, part in sorted(weighted, key=lambda one: -one[0]):
        name, value = f"{PART}{part.name}", part.value or 0.0
        saying = PHRASES.get((name,))
        if strength > 0.0 and abs(value) >= LEAST_PART and saying is not None:
            text = capital(plain(saying.words((value,), towards)[0]))
            yield SidePoint(BARS, f"{text}.", name, name_of(name))


def _manager(record: TickRecord, side: str) -> Iterator[SidePoint]:
    """Yield that manager or judge does not name a side, which lowers the conviction in it."""
    debate = record.deliberation
    judge, says = debate.manager or debate.judge, capital(objection(debate, side))
    if says and judge is not None and not debate.in_shadow:
        # what names no side twice says it once
        more = first_sentence(statement(judge).removeprefix(NO_SIDE), LONGEST - len(says))
        yield SidePoint(short_name(judge.agent_id), f"{says}: {more}" if more else f"{says}.")


def _of_one_side(record: TickRecord, side: str) -> Iterator[SidePoint]:
    """Yield that the judge or the risk officer vetoes openings of this side alone."""
    words = [GATE_REASONS.get(code, code) for code in sided(record.gate.ruling, side)]
    if words:
        yield SidePoint("Veto", f"Every {side} is vetoed: {', '.join(words)}.")


def _gate(record: TickRecord) -> Iterator[SidePoint]:
    """Yield what the gate takes off the size, and why."""
    gate, multiplier = record.gate, record.gate.multiplier
    codes = [code for code in gate.reasons if code not in ("NONE", *SIDED)]
    if not codes or (multiplier >= NO_CUT and not gate.veto):
        return
    words = ", ".join(GATE_REASONS.get(code, figures.sanitize(code, 60)) for code in codes)
    own = next((report for report in record.deliberation.reports if is_gate(report)), None)
    ruled = own.ruling.multiplier if own and own.ruling else None
    by_rules = ""
    if own and ruled == multiplier and not gate.rule.veto:
        # The agent's own ruling is in force: a code is less than what it says after its first
        # sentence, which is the size.
        second = re.split(r"(?<=[.!?])\s+", figures.sanitize(own.reasoning), maxsplit=2)[1:2]
        words = shortened("".join(second).rstrip("."), LONGEST) or words
    elif ruled is not None and multiplier == gate.rule.multiplier < ruled:
        # a page shows the number of the gate's agent too
        by_rules = f" by the gate's rules (its agent said × {figures.plain(ruled, 2)})"
    what = "An opening's size" if record.verdict == "HOLD" else "Size"
    # after a colon an abbreviation keeps its capitals
    words = words if words[1:2].isupper() else words[:1].lower() + words[1:]
    yield SidePoint("Gate", f"{what} × {figures.plain(multiplier, 2)}{by_rules}: {words}.")
