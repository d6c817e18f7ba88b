"""The debate of one tick as a conversation: who spoke when, what each said, and on what evidence.

Stages come in the order in which the desk held them. Each lists everyone who was asked, including
those who abstained, failed or were left out. A case that a later round replaced stays in its own
round. An agent's words are shown as stored, with its citations judged against the evidence
(citations). A clamped number stands beside the intended one while the reply is still stored.
A record may lack anything; nothing raises. Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from agent_config import MODES
from agents.contracts import OPINIONS, VECTORS, AgentReport, Feature, GateRuling, Point, Rebuttal
from agents.debate.panel import panel_of
from agents.debate.synthesis import CountedReport
from agents.feature_words import name_of
from agents.registry import AGENTS, SCORER, TRADER
from torra.dashboard.record import (
    agreement,
    arithmetic,
    citations,
    surroundings,
    swarm,
    thesis,
)
from torra.dashboard.record.rows import (
    PointLine,
    PointList,
    RulingShown,
    StageShown,
    Stance,
    TranscriptEntry,
    TranscriptVoice,
    Vote,
)
from torra.exhibits import figures
from torra.exhibits.figures import cell
from torra.tick.marks import GATE
from torra.tick.tick_record import (
    DebateRecord,
    StageRecord,
    StoredCall,
    TickRecord,
    is_gate,
    statement,
)

PHASES: Final = {
    "analysts": ("Analysts", "asked at once; none of them sees another's words"),
    "research": ("Debate", "bull and bear at once, each with the analysts' reports"),
    "experts": (
        "Experts and reader",
        "asked at once; none of them sees another's words, and the reader moves no score",
    ),
    "judgement": ("Judge", "reads every expert and the board; takes a side or none"),
    "gate": ("Gate", "sees every report; may only lower the multiplier or add a veto"),
    "decision": (
        "Manager and gate",
        "at once: the manager weighs both cases; the gate may only lower the multiplier or add a "
        "veto",
    ),
    "thesis": ("Trader", "asked alone after the debate; may write a thesis or decline the opening"),
    "fallback": ("Fallback", "nobody answered: one model scores the chart instead"),
    "": ("Agents", "no stage is recorded"),
}
"""Title and description of each stage of a debate (agents.debate.sitting)."""

DEBATING: Final = frozenset(
    stage.name for row in MODES.values() for stage in row.stages if stage.debates
)
"""Stages that are held in rounds."""

AGAIN: Final = "bull and bear again, each with the other's case of the round before"
STAGES: Final = {
    "ok": "everybody answered or abstained",
    "partial": "some gave no answer",
    "failed": "nobody gave an answer",
    "skipped": "left out",
}
"""Meanings of the status of a stage."""

POINTS_FOR: Final = "Why"
REBUTTALS: Final = "On the other side's case"
POINTS_AGAINST: Final = "What it grants"
OF_NEITHER: Final = ("For LONG", "For SHORT")
SCORES_NOTHING: Final = {
    "gate": "the gate scores nothing",
    "reader": "it reads the regime and scores nothing",
    "arbiter": "it weighs the cases and scores nothing",
    "trader": "it writes the thesis and scores nothing",
}
"""Why an agent of a kind has no adjustments."""

SPOKE: Final = ("answered", "abstained")
RAW_CHARS: Final = 100_000
"""Most characters of a reply that is parsed again to find the numbers before clamping."""


NO_REPORT: Final = AgentReport("")
"""What an agent says that said nothing."""

Place = tuple[str, int, str]
"""Stage, round and agent."""


class ScorerAnswer(NamedTuple):
    """The answer of the single-model scorer."""

    votes: list[Vote]
    summary: JsonValue


def conversation(
    record: TickRecord, features: Mapping[str, Feature], anchors: citations.Anchors
) -> list[StageShown]:
    """Return the stages in order, each with its entries; the anchors count through all of them."""
    deliberation = record.deliberation
    calls = _called(record)
    kept = _kept(deliberation)
    stages, number = [], 0
    for stage in _stages(deliberation, calls):
        entries = []
        for name, word in stage.agents.items():
            number += 1
            place = (stage.name, stage.round, name)
            said, made = kept.get(place), calls.get(place, [])
            spoken = voice(name, said, made, deliberation, word, f"said-{number}", record.timeframe)
            scored = _scored(made) if name == SCORER.id and not said else None
            entry: TranscriptEntry = {
                **spoken,
                "reasoning": figures.sanitize(scored.summary) if scored else spoken["reasoning"],
                "evidence": citations.chips(said or NO_REPORT, features, anchors),
                "stance": _stance(name, said, record) if said else None,
                "votes": scored.votes if scored else _votes(said or NO_REPORT, made),
                "scored": bool(scored and scored.votes),
                "round": place[1],
                "phase": place[0],
                "replaced": bool(said) and _is_replaced(place, kept),
            }
            entries.append(entry)
        stages.append(_stage(stage, entries))
    return stages


def voice(
    name: str,
    report: AgentReport | None,
    calls: Sequence[StoredCall],
    deliberation: DebateRecord,
    word: str = "",
    anchor: str = "",
    timeframe: str | None = None,
) -> TranscriptVoice:
    """Return what one agent said, or why it said nothing.

    `word` is how its stage ended for it: answered, abstained or why not; "" if that is not stored.
    """
    said = report or NO_REPORT
    weight = arithmetic.trust(report) if report else None
    failure = deliberation.silences.get(name)
    unasked = agreement.unasked(deliberation, name)
    state = _state(name, report, calls, failure, word)
    missing = SCORES_NOTHING.get(_kind(name), "not scored")
    return {
        "name": figures.sanitize(name, 40),
        "title": figures.title(name),
        "who": figures.title(name),
        "mark": figures.mark(state),
        "anchor": anchor,
        "confidence": figures.sanitize(said.confidence, 20) if weight is not None else "",
        # no trust weighs the words of one that is asked alone
        "trust": figures.plain(None if _kind(name) == "trader" else weight, 3),
        "adjustments": [cell(said.adjustments.get(v), 3, missing if report else state)
                        for v in VECTORS],
        "reasoning": figures.sanitize(statement(said)),
        "key_points": [figures.sanitize(p, 400) for p in said.key_points],
        "points": list(_points(said)),
        "flags": [figures.sanitize(flag, 60) for flag in said.flags],
        "looks": agreement.looks(deliberation, name),
        "ordinals": agreement.ordinals(said),
        "falsifiers": [figures.sanitize(text, 400) for text in said.falsifiers],
        "why_silent": _why_silent(report, calls, failure or word, state) if report or not unasked
        else unasked,
        "ruling": ruling("", said.ruling) if said.ruling else None,
        "judged": thesis.judged(said),
        "horizon": thesis.horizon(said, timeframe),
        "risks": [figures.sanitize(one, 400) for one in said.risks],
        "finds": swarm.extra_findings(said),
        "counts": figures.plain(swarm.trusted(deliberation.swarm).get(name), 2),
        "declined": said.declined,
        "ms": figures.plain(summed([call.elapsed_ms for call in calls]), 0),
        "cost": figures.money(summed([call.cost_usd for call in calls])),
        "tries": len(calls),
    }  # fmt: skip


def _kind(name: str) -> str:
    """Return the kind of an agent of this program; "" of anybody else."""
    seat = TRADER if name == TRADER.role.id else AGENTS.get(name)
    return seat.role.kind if seat else ""


def _points(said: AgentReport) -> Iterator[PointList]:
    """Yield what a report argues with, kind by kind; kinds without a point are left out."""
    sides = {
        *(one.side for one in said.points_for),
        *(-one.side for one in said.points_against),
    }
    both = said.winner == "NONE" and -1 not in sides
    fields = OF_NEITHER if both else (POINTS_FOR, POINTS_AGAINST)
    kinds = (
        (fields[0], said.points_for),
        (REBUTTALS, said.rebuttals),
        (fields[1], said.points_against),
    )
    for name, told in kinds:
        lines = [_point(point) for point in told]
        if lines:
            yield {"name": name, "points": lines}


def _point(told: Point | Rebuttal) -> PointLine:
    why = figures.sanitize(told.why, 400) if isinstance(told, Point) else ""
    says = figures.sanitize(told.says, 400).rstrip(".")
    return {"says": says, "why": why, "name": name_of(figures.sanitize(told.id, 60))}


def ruling(name: str, told: GateRuling | None, missing: str = "") -> RulingShown:
    """Return a ruling of the gate as a page shows it; `missing` says why there is none."""
    if told is None:
        return {
            "name": name,
            "multiplier": figures.DASH,
            "veto": "",
            "reasons": [],
            "note": missing,
        }
    reasons = [figures.sanitize(r, 60) for r in told.reasons if r != "NONE"]
    return {
        "name": name,
        "multiplier": figures.plain(told.multiplier, 3),
        "veto": vetoed(told),
        "reasons": reasons,
        "note": figures.sanitize(told.detail, 600),
    }


def vetoed(told: GateRuling) -> str:
    """Return which openings a ruling vetoes: all, those of one side, or none."""
    if told.veto or not told.veto_sides:
        return figures.mark("VETO").text if told.veto else "no veto"
    sides = ", ".join(figures.sanitize(side, 8) for side in told.veto_sides)
    return f"{figures.mark('VETO').text} of {sides}"


def summed(numbers: Sequence[float | None]) -> float | None:
    """Return the sum of a number over some calls, None without any call."""
    return sum(number or 0.0 for number in numbers) if numbers else None


def raw_votes(calls: Sequence[StoredCall]) -> dict[str, float]:
    """Return the adjustments of the last usable reply as the model gave them, before any bound."""
    votes = _reply(calls).get("adjustments")
    known = {v: figures.number(votes.get(v)) for v in VECTORS} if isinstance(votes, dict) else {}
    return {vector: value for vector, value in known.items() if value is not None}


def _votes(said: AgentReport, calls: Sequence[StoredCall]) -> list[Vote]:
    """Return the adjustments that an agent gave, each with its value before clamping."""
    meant = raw_votes(calls) if "clamped" in said.flags else {}
    rows: list[Vote] = []
    for vector in VECTORS:
        value = said.adjustments.get(vector)
        if value is None:
            continue
        # the flag says that the report was clamped, not which of its numbers
        cut = vector in meant and abs(meant[vector] - value) > 1e-9
        rows.append(
            {
                "name": figures.title(vector),
                "value": cell(value),
                "meant": figures.format_signed(meant[vector]) if cut else "",
            }
        )
    return rows


def _stance(name: str, report: AgentReport, record: TickRecord) -> Stance | None:
    """Return which way an agent leans, by the panel's own arithmetic; None without."""
    seat = AGENTS.get(name)
    if seat is None or report.abstained or seat.role.kind not in OPINIONS:
        return None
    if not arithmetic.in_role(seat.role, report):
        return None
    alone = panel_of([CountedReport(seat.role, report)], weights=arithmetic.vector_weights(record))
    return agreement.stance(name, alone.pushes.get(name))


def _scored(calls: Sequence[StoredCall]) -> ScorerAnswer:
    """Return the scores of the single-model scorer, from its reply."""
    # the scorer makes no report: its reply is all that is stored of it
    told = _reply(calls)
    votes: list[Vote] = []
    for vector in VECTORS:
        found = told.get(vector)
        value = figures.number(found.get("score")) if isinstance(found, dict) else None
        if value is not None:
            votes.append({"name": figures.title(vector), "value": cell(value), "meant": ""})
    return ScorerAnswer(votes, told.get("summary"))


def _reply(calls: Sequence[StoredCall]) -> dict[str, JsonValue]:
    """Return what a model replied last that could be used, as it gave it."""
    good = [call.reply for call in calls if call.status == "ok"]
    if not good or len(good[-1]) > RAW_CHARS:
        return {}
    try:
        told = json.loads(good[-1])
    # a model may nest its JSON deeper than Python reads
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _called(record: TickRecord) -> dict[Place, list[StoredCall]]:
    """Return the calls by stage, round and agent."""
    found: dict[Place, list[StoredCall]] = {}
    for call in record.made_calls:
        stage = "fallback" if call.role_id == SCORER.id else call.stage
        found.setdefault((stage, call.round, call.role_id), []).append(call)
    return found


def _stages(deliberation: DebateRecord, calls: Iterable[Place]) -> list[StageRecord]:
    """Return every stage with the word of each agent; an agent of no stage gets one at the end."""
    stages = deliberation.stages
    seated = {(stage.name, stage.round, name) for stage in stages for name in stage.agents}
    known = {name for _, _, name in seated}
    stray: dict[tuple[str, int], dict[str, str]] = {}
    for name, number, role in calls:
        if (name, number, role) not in seated:
            stray.setdefault((name, number), {})[role] = ""
            known.add(role)
    for report in deliberation.every_report:
        if report.agent_id not in known:
            stray.setdefault(("", 1), {})[report.agent_id] = ""
    more = [
        StageRecord(name=name, round=number, agents=them, status="")
        for (name, number), them in stray.items()
    ]
    return [*stages, *more]


def _kept(deliberation: DebateRecord) -> dict[Place, AgentReport]:
    """Return each report by the stage, round and agent that it came of.

    Of several rounds the last answered one counts and stands among `reports`; the cases that it
    replaced stand in `earlier`, oldest first.
    """
    told: dict[str, list[AgentReport]] = {}
    for report in (*deliberation.earlier, *deliberation.every_report):
        told.setdefault(report.agent_id, []).append(report)
    places: dict[str, list[Place]] = {name: [] for name in told}
    spoken: dict[str, bool] = {}
    for stage in deliberation.stages:
        for name, word in stage.agents.items():
            # who abstains after an answer keeps that answer, so the report is of the round before
            quiet = word == "abstained" and spoken.get(name, False)
            if name in places and word in (*SPOKE, "") and not quiet:
                places[name].append((stage.name, stage.round, name))
                spoken[name] = spoken.get(name, False) or word == "answered"
    found: dict[Place, AgentReport] = {}
    for name, rows in told.items():
        free = places[name] or [("", 1, name)]
        # from the end: the newest report is of the newest round, and odd records lack old ones
        found |= dict(zip(free[-len(rows) :], rows[-len(free) :], strict=True))
    return found


def _is_replaced(place: Place, kept: Iterable[Place]) -> bool:
    stage, number, name = place
    return any(s == stage and who == name and n > number for s, n, who in kept)


def _stage(stage: StageRecord, entries: list[TranscriptEntry]) -> StageShown:
    name, number = stage.name, stage.round
    title, note = PHASES.get(name, (figures.title(name), ""))
    rounds = name in DEBATING
    return {
        "name": figures.sanitize(name, 20),
        "gate": GATE in stage.agents,
        "title": f"{title}, round {number}" if rounds else title,
        "note": AGAIN if rounds and number > 1 else note,
        "ms": figures.plain(stage.ms, 0),
        "status": figures.sanitize(stage.status, 20),
        "meaning": STAGES.get(stage.status, ""),
        "entries": entries,
    }


def _state(
    name: str,
    said: AgentReport | None,
    calls: Sequence[StoredCall],
    failure: str | None,
    word: str,
) -> str:
    if said:
        return "abstained" if said.abstained else "answered"
    if failure:
        return "failed"
    if name == SCORER.id and any(call.status == "ok" for call in calls):
        return "answered"
    if word in SPOKE:
        return word
    return "failed" if calls else "not asked"


def _why_silent(
    said: AgentReport | None, calls: Sequence[StoredCall], failure: str, state: str
) -> str:
    if said or state in SPOKE:
        return surroundings.plain_reason(said.reason) if said and said.abstained else ""
    if state == "not asked" and failure in agreement.UNASKED:
        return agreement.UNASKED[failure]
    told = [failure or calls[-1].status, calls[-1].detail] if calls else [failure]
    words = [figures.sanitize(word, 300) for word in told if word]
    return ": ".join(dict.fromkeys(words)) or "no call was made"


def entries_of(stages: Iterable[StageShown]) -> list[TranscriptEntry]:
    """Return the entries of all stages in order."""
    return [entry for stage in stages for entry in stage["entries"]]


def rules(record: TickRecord) -> RulingShown:
    """Return the ruling of the gate's rules, before its agent was asked."""
    return ruling("Rules", record.gate.rule)


def gate_report(deliberation: DebateRecord) -> AgentReport | None:
    """Return the gate agent's own report; None when it gave none."""
    return next((report for report in deliberation.reports if is_gate(report)), None)
