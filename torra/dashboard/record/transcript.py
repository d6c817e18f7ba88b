"""The debate of one tick as a conversation: who spoke when, what each said, and on what evidence.

Stages come in the order in which the desk held them. Each lists everyone who was asked, including
those who abstained, failed or were left out. A case that a later round replaced stays in its own
round. A page reads an agent's words in its report; its citations are judged against the evidence
(citations), and a clamped number stands beside the intended one while the reply is still stored.
Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pydantic import JsonValue

from agent_config import MODES
from agents.contracts import OPINIONS, VECTORS, AgentReport, Feature, GateRuling, Point, Rebuttal
from agents.debate.scoring import CountedReport, panel_of
from agents.registry import AGENTS, SCORER
from torra.dashboard.record import agreement, arithmetic, citations, surroundings
from torra.dashboard.record.rows import Stance, Voice
from torra.exhibits import figures
from torra.tick.tick_record import DebateRecord, StageRecord, StoredCall, TickRecord, statement

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
"""Title and description of each stage of a debate (agents.debate.debate)."""

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

ANSWERS: Final = ("answered", "abstained")
RAW_CHARS: Final = 100_000
"""Most characters of a reply that is parsed again to find the numbers before clamping."""

Place = tuple[str, int, str]
"""Stage, round and agent."""


class DebateStage(NamedTuple):
    """A stage of a debate with its entries."""

    record: StageRecord
    entries: list[Voice]

    @property
    def title(self) -> str:
        """Its title, and the round where it is held in rounds."""
        name = self.record.name
        title = PHASES.get(name, (figures.title(name), ""))[0]
        return f"{title}, round {self.record.round}" if name in DEBATING else title

    @property
    def note(self) -> str:
        """What is done in it; "" of a stage that is not known."""
        again = self.record.name in DEBATING and self.record.round > 1
        return AGAIN if again else PHASES.get(self.record.name, ("", ""))[1]


def conversation(
    record: TickRecord, features: Mapping[str, Feature], anchors: citations.Anchors
) -> list[DebateStage]:
    """Return the stages in order, each with its entries; the anchors count through all of them."""
    debate, calls = record.deliberation, _called(record)
    kept = _kept(debate)
    stages, number = [], 0
    for stage in _stages(debate, calls):
        entries = []
        for name, word in stage.agents.items():
            number += 1
            place = (stage.name, stage.round, name)
            report, made = kept.get(place), calls.get(place, [])
            reply = _reply(made) if name == SCORER.id and not report else {}
            spoken = _voice(name, report, made, debate, word)
            entry = replace(
                spoken,
                anchor=f"said-{number}",
                # the scorer makes no report: its reply is all that is stored of it
                text=spoken.text or figures.sanitize(reply.get("summary")),
                phase=stage.name,
                replaced=bool(report) and _is_replaced(place, kept),
                evidence=citations.chips(spoken.said, features, anchors),
                stance=_stance(name, report, record) if report else None,
                votes=_scores(reply) or _votes(spoken.said.adjustments),
                meant=_clamped(spoken.said, made),
            )
            entries.append(entry)
        stages.append(DebateStage(stage, entries))
    return stages


def people(record: TickRecord, stages: Iterable[DebateStage] = ()) -> list[Voice]:
    """Return every agent that was asked or reported, in the order in which they spoke.

    `stages` are those of the conversation: each agent leads to its last entry there.
    """
    debate = record.deliberation
    reports = {report.agent_id: report for report in debate.every_report}
    calls: dict[str, list[StoredCall]] = {}
    for call in record.made_calls:
        calls.setdefault(call.role_id, []).append(call)
    last = {entry.name: entry.anchor for entry in entries_of(stages)}
    seated = [name for stage in debate.stages for name in stage.agents]
    left_out = {
        name: word
        for stage in debate.stages
        if stage.status == "skipped"
        for name, word in stage.agents.items()
    }
    # seats are in the order of speaking; an agent outside of them must not be lost
    return [
        _voice(
            name,
            reports.get(name),
            calls.get(name, []),
            debate,
            left_out.get(name, ""),
            last.get(name, ""),
        )
        for name in dict.fromkeys([*seated, *calls, *reports])
    ]


def _voice(
    name: str,
    report: AgentReport | None,
    calls: Sequence[StoredCall],
    debate: DebateRecord,
    word: str,
    anchor: str = "",
) -> Voice:
    """Return what one agent said, or why it said nothing.

    `word` is how its stage ended for it: answered, abstained or why not; "" if that is not stored.
    """
    failure = debate.silences.get(name)
    unasked = "" if report else agreement.unasked(debate, name)
    state = _state(name, report, calls, failure, word)
    role = citations.role_of(name)
    kind, trust = role.kind if role else "", arithmetic.trust(report) if report else None
    return Voice(
        name,
        report,
        calls,
        figures.mark(state),
        unasked or _why_silent(report, calls, failure or word, state),
        figures.sanitize(statement(report)) if report else "",
        # no trust weighs the words of one that is asked alone
        trust=None if kind == "trader" else trust,
        confidence=report.confidence if report and trust is not None else "",
        missing=SCORES_NOTHING.get(kind, "not scored") if report else state,
        anchor=anchor,
    )


def points(report: AgentReport) -> Iterator[tuple[str, Sequence[Point | Rebuttal]]]:
    """Yield what a report argues with under its heading; kinds without a point are left out."""
    sides = {
        *(point.side for point in report.points_for),
        *(-point.side for point in report.points_against),
    }
    both = report.winner == "NONE" and -1 not in sides
    own, granted = OF_NEITHER if both else (POINTS_FOR, POINTS_AGAINST)
    kinds: tuple[tuple[str, Sequence[Point | Rebuttal]], ...] = (
        (own, report.points_for),
        (REBUTTALS, report.rebuttals),
        (granted, report.points_against),
    )
    return (kind for kind in kinds if kind[1])


def vetoed(ruling: GateRuling) -> str:
    """Return which openings a ruling vetoes: all, those of one side, or none."""
    if ruling.veto or not ruling.veto_sides:
        return figures.mark("VETO").text if ruling.veto else "no veto"
    sides = ", ".join(figures.sanitize(side, 8) for side in ruling.veto_sides)
    return f"{figures.mark('VETO').text} of {sides}"


def raw_votes(calls: Sequence[StoredCall]) -> dict[str, float]:
    """Return the adjustments of the last usable reply as the model gave them, before any bound."""
    votes = _reply(calls).get("adjustments")
    return _votes(votes) if isinstance(votes, dict) else {}


def _votes(adjustments: Mapping[str, JsonValue] | Mapping[str, float | None]) -> dict[str, float]:
    known = {vector: figures.number(adjustments.get(vector)) for vector in VECTORS}
    return {vector: value for vector, value in known.items() if value is not None}


def _clamped(report: AgentReport, calls: Sequence[StoredCall]) -> dict[str, float]:
    """Return the adjustments that were clamped, as the model gave them."""
    # the flag says that the report was clamped, not which of its numbers
    meant = raw_votes(calls) if "clamped" in report.flags else {}
    votes = _votes(report.adjustments)
    return {v: value for v, value in meant.items() if abs(value - votes.get(v, value)) > 1e-9}


def _stance(name: str, report: AgentReport, record: TickRecord) -> Stance | None:
    """Return which way an agent leans, by the panel's own arithmetic; None without."""
    seat = AGENTS.get(name)
    if seat is None or report.abstained or seat.role.kind not in OPINIONS:
        return None
    if not arithmetic.in_role(seat.role, report):
        return None
    alone = panel_of([CountedReport(seat.role, report)], weights=arithmetic.vector_weights(record))
    return agreement.stance(name, alone.pushes.get(name))


def _scores(reply: Mapping[str, JsonValue]) -> dict[str, float]:
    """Return the scores of the single-model scorer, from its reply."""
    scores = {vector: reply.get(vector) for vector in VECTORS}
    return _votes({v: one.get("score") for v, one in scores.items() if isinstance(one, dict)})


def _reply(calls: Sequence[StoredCall]) -> dict[str, JsonValue]:
    """Return what a model replied last that could be used, as it gave it."""
    good = [call.reply for call in calls if call.status == "ok"]
    if not good or len(good[-1]) > RAW_CHARS:
        return {}
    try:
        reply = json.loads(good[-1])
    # a model may nest its JSON deeper than Python reads
    except (ValueError, RecursionError):
        return {}
    return reply if isinstance(reply, dict) else {}


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
            if name in places and word in (*ANSWERS, "") and not quiet:
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
    if word in ANSWERS:
        return word
    return "failed" if calls else "not asked"


def _why_silent(
    said: AgentReport | None, calls: Sequence[StoredCall], failure: str, state: str
) -> str:
    if said or state in ANSWERS:
        return surroundings.plain_reason(said.reason) if said and said.abstained else ""
    if state == "not asked" and failure in agreement.UNASKED:
        return agreement.UNASKED[failure]
    told = [failure or calls[-1].status, calls[-1].detail] if calls else [failure]
    words = [figures.sanitize(word, 300) for word in told if word]
    return ": ".join(dict.fromkeys(words)) or "no call was made"


def entries_of(stages: Iterable[DebateStage]) -> list[Voice]:
    """Return the entries of all stages in order."""
    return [entry for stage in stages for entry in stage.entries]
