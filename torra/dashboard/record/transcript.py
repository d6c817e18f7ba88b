"""The debate of one tick as a conversation: who spoke when, what each said, and on what evidence.

Stages come in the order in which the desk held them. Each lists everyone who was asked, including
those who abstained, failed or were left out. A case that a later round replaced stays in its own
round. A page reads an agent's words in its report; its citations are judged against the evidence
(citations), and a clamped number stands beside the intended one while the reply is still stored.
Pure functions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pydantic import JsonValue

from agent_config import MODES
from agents.contracts import OPINIONS, VECTORS, AgentReport, Feature, GateRuling, Point, Rebuttal
from agents.debate.scoring import CountedReport, panel_of
from agents.registry import AGENTS, SCORER
from torra.dashboard.record import agreement, arithmetic, citations, surroundings
from torra.dashboard.record.citations import CitationCheck
from torra.exhibits import figures
from torra.tick.tick_record import DebateRecord, StageRecord, StoredCall, TickRecord, statement
from torra.words.badge import Badge
from torra.words.ticks import BADGES

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
STATES_OF_AGENTS: Final = (*ANSWERS, "failed", "not asked")
"""What may become of an agent of a tick."""

SMALL_DESK: Final = 4
"""Seats of the budget desk; only a larger desk gets a tally of answers and silences."""

RAW_CHARS: Final = 100_000
"""Most characters of a reply that is parsed again to find the numbers before clamping."""

Place = tuple[str, int, str]
"""Stage, round and agent."""


@dataclass(frozen=True, slots=True)
class Voice:
    """What one agent said, or why it said nothing: its report and its calls, as stored.

    `word` is how its stage ended for it: answered, abstained or why not; "" if that is not stored.
    A voice of a stage has its anchor, its citations, and in `push` which way it alone pushes, None
    of one that does not. The scorer makes no report: its `reply` is all that is stored of it.
    """

    name: str
    report: AgentReport | None
    calls: Sequence[StoredCall]
    debate: DebateRecord
    word: str
    anchor: str
    phase: str = ""
    replaced: bool = False
    evidence: Sequence[CitationCheck] = ()
    push: float | None = None
    reply: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def shown_report(self) -> AgentReport:
        """Its report; an empty one where it made none."""
        return self.report or AgentReport(self.name)

    @property
    def kind(self) -> str:
        """The kind of its role; "" of an agent that a host brought."""
        role = citations.role_of(self.name)
        return role.kind if role else ""

    @property
    def state(self) -> str:
        """Whether it answered, abstained, failed or was not asked."""
        if self.report:
            return "abstained" if self.report.abstained else "answered"
        if self.debate.silences.get(self.name):
            return "failed"
        if self.name == SCORER.id and any(call.status == "ok" for call in self.calls):
            return "answered"
        return self.word if self.word in ANSWERS else "failed" if self.calls else "not asked"

    @property
    def mark(self) -> Badge:
        """The mark of its state."""
        return figures.mark(self.state)

    @property
    def why_silent(self) -> str:
        """Why it abstained, failed or was not asked; "" of one that answered."""
        if self.report:
            return surroundings.plain_reason(self.report.reason) if self.report.abstained else ""
        if unasked := agreement.unasked(self.debate, self.name):
            return unasked
        state, failure = self.state, self.debate.silences.get(self.name) or self.word
        if state in ANSWERS:
            return ""
        if state == "not asked" and failure in agreement.UNASKED:
            return agreement.UNASKED[failure]
        last = self.calls[-1] if self.calls else None
        words = [failure or last.status, last.detail] if last else [failure]
        words = [figures.sanitize(word, 300) for word in words]
        return ": ".join(dict.fromkeys(filter(None, words))) or "no call was made"

    @property
    def text(self) -> str:
        """What it says in a sentence."""
        claim = statement(self.report) if self.report else ""
        return figures.sanitize(claim or self.reply.get("summary"))

    @property
    def trust(self) -> float | None:
        """Its trust; None without an opinion, and of one that is asked alone: nothing weighs it."""
        weighed = self.report if self.kind != "trader" else None
        return arithmetic.trust(weighed) if weighed else None

    @property
    def confidence(self) -> str:
        """Its confidence; "" where it has no opinion."""
        return self.shown_report.confidence if self.state == "answered" and self.report else ""

    @property
    def missing(self) -> str:
        """Why it has no adjustment."""
        return SCORES_NOTHING.get(self.kind, "not scored") if self.report else self.state

    @property
    def votes(self) -> dict[str, float]:
        """Its adjustments, or the scorer's scores, by vector."""
        scores = {v: row.get("score") for v, row in self.reply.items() if isinstance(row, dict)}
        return _votes(scores) or _votes(self.shown_report.adjustments)

    @property
    def meant(self) -> dict[str, float]:
        """The adjustments that were clamped, as the model gave them."""
        # the flag says that the report was clamped, not which of its numbers
        meant = raw_votes(self.calls) if "clamped" in self.shown_report.flags else {}
        votes = _votes(self.shown_report.adjustments)
        return {v: value for v, value in meant.items() if abs(value - votes.get(v, value)) > 1e-9}


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


class CitedFeature(NamedTuple):
    """A feature that is cited, None where there is none, and who cites it with which value."""

    id: str
    feature: Feature | None
    by: list[tuple[Voice, CitationCheck]]

    @property
    def is_true(self) -> bool:
        """Whether everybody cites it as it is in the evidence."""
        return all(citation.state == citations.EQUAL for _, citation in self.by)


class Transcript(NamedTuple):
    """A debate: its stages, every agent in the order of speaking, and what it rests on.

    `features` is the evidence by id, `shown` that which the prompt of each agent lists.
    """

    stages: list[DebateStage]
    agents: list[Voice]
    features: Mapping[str, Feature]
    cited: list[CitedFeature]
    shown: Mapping[str, Mapping[str, Feature]]

    @property
    def counts(self) -> dict[str, int]:
        """How many agents ended in each state; states without an agent are left out."""
        count = Counter(agent.state for agent in self.agents)
        return {state: count[state] for state in STATES_OF_AGENTS if count[state]}

    @property
    def tally(self) -> list[tuple[Badge, list[str]]]:
        """How many agents ended in each state, and who with what reason; [] of a small desk."""
        rows = []
        for state, many in self.counts.items() if len(self.agents) > SMALL_DESK else ():
            who = [] if state == "answered" else self._silent(state)
            badge = BADGES[state]
            words = ", ".join(filter(None, (f"{many} {state}", badge.meaning)))
            rows.append((badge._replace(word=words + "." * bool(who)), who))
        return rows

    def _silent(self, state: str) -> list[str]:
        """Return the names of the agents in a state, those of one reason together with it."""
        names: dict[str, list[str]] = {}
        for agent in self.agents:
            if agent.state == state:
                names.setdefault(agent.why_silent.rstrip("."), []).append(figures.title(agent.name))
        return [": ".join(filter(None, [", ".join(titles), why])) for why, titles in names.items()]

    @property
    def uncited(self) -> dict[str, Feature]:
        """The evidence that nobody cites."""
        cited = {row.id for row in self.cited}
        return {name: row for name, row in self.features.items() if name not in cited}


def conversation(record: TickRecord) -> Transcript:
    """Return the debate of a tick; the anchors count through all of its stages."""
    features, debate, calls = citations.evidence(record), record.deliberation, _called(record)
    reports, stages, number = _reports_by_place(debate), [], 0
    ids = (str(item.id) for row in reports.values() for item in row.evidence)
    anchors = citations.anchors(ids)
    for stage in _stages(debate, calls):
        entries = []
        for name, word in stage.agents.items():
            number += 1
            place = (stage.name, stage.round, name)
            report, requests = reports.get(place), calls.get(place, [])
            entries.append(
                Voice(
                    name,
                    report,
                    requests,
                    debate,
                    word,
                    f"said-{number}",
                    phase=stage.name,
                    replaced=bool(report) and _is_replaced(place, reports),
                    evidence=citations.check_citations(report.evidence, features, anchors)
                    if report
                    else (),
                    push=_push(name, report, record) if report else None,
                    reply=_reply(requests) if name == SCORER.id and not report else {},
                )
            )
        stages.append(DebateStage(stage, entries))
    agents = people(record, stages)
    return Transcript(
        stages,
        agents,
        features,
        cited(stages, features),
        {agent.name: citations.shown_to(agent.name, features) for agent in agents},
    )


def people(record: TickRecord, stages: Iterable[DebateStage] = ()) -> list[Voice]:
    """Return every agent that was asked or reported, in the order in which they spoke.

    `stages` are those of the conversation: each agent leads to its last entry there.
    """
    debate = record.deliberation
    reports = {report.agent_id: report for report in debate.every_report}
    calls: dict[str, list[StoredCall]] = {}
    for call in record.made_calls:
        calls.setdefault(call.role_id, []).append(call)
    anchors = {entry.name: entry.anchor for stage in stages for entry in stage.entries}
    seated = [name for stage in debate.stages for name in stage.agents]
    words = {
        name: word
        for stage in debate.stages
        if stage.status == "skipped"
        for name, word in stage.agents.items()
    }
    # seats are in the order of speaking; an agent outside of them must not be lost
    return [
        Voice(
            name,
            reports.get(name),
            calls.get(name, []),
            debate,
            words.get(name, ""),
            anchors.get(name, ""),
        )
        for name in dict.fromkeys([*seated, *calls, *reports])
    ]


def cited(stages: Iterable[DebateStage], features: Mapping[str, Feature]) -> list[CitedFeature]:
    """Return the cited features by id, each with the agents that cite it and how each is judged.

    A cited id that does not exist has its row too. An agent that cites the same in several rounds
    is listed once, with its last one.
    """
    citers: dict[str, dict[tuple[str, str], tuple[Voice, CitationCheck]]] = {}
    for entry in (entry for stage in stages for entry in stage.entries):
        for item in entry.evidence:
            value = "" if item.state == citations.EQUAL else item.text
            citers.setdefault(item.id, {})[entry.name, value] = entry, item
    return [
        CitedFeature(name, features.get(name), [*by.values()])
        for name, by in sorted(citers.items())
    ]


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
    votes = {vector: figures.number(adjustments.get(vector)) for vector in VECTORS}
    return {vector: value for vector, value in votes.items() if value is not None}


def _push(name: str, report: AgentReport, record: TickRecord) -> float | None:
    """Return which way an agent pushes, by the panel's own arithmetic; None without."""
    seat = AGENTS.get(name)
    if seat is None or report.abstained or seat.role.kind not in OPINIONS:
        return None
    if not arithmetic.in_role(seat.role, report):
        return None
    alone = panel_of([CountedReport(seat.role, report)], weights=arithmetic.vector_weights(record))
    return alone.pushes.get(name)


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
    calls: dict[Place, list[StoredCall]] = {}
    for call in record.made_calls:
        stage = "fallback" if call.role_id == SCORER.id else call.stage
        calls.setdefault((stage, call.round, call.role_id), []).append(call)
    return calls


def _stages(deliberation: DebateRecord, calls: Iterable[Place]) -> list[StageRecord]:
    """Return every stage with the word of each agent; an agent of no stage gets one at the end."""
    stages = deliberation.stages
    seated = {(stage.name, stage.round, name) for stage in stages for name in stage.agents}
    names = {name for _, _, name in seated}
    stray: dict[tuple[str, int], dict[str, str]] = {}
    for name, number, role in calls:
        if (name, number, role) not in seated:
            stray.setdefault((name, number), {})[role] = ""
            names.add(role)
    for report in deliberation.every_report:
        if report.agent_id not in names:
            stray.setdefault(("", 1), {})[report.agent_id] = ""
    more = [
        StageRecord(name=name, round=number, agents=them, status="")
        for (name, number), them in stray.items()
    ]
    return [*stages, *more]


def _reports_by_place(deliberation: DebateRecord) -> dict[Place, AgentReport]:
    """Return each report by the stage, round and agent that it came of.

    Of several rounds the last answered one counts and stands among `reports`; the cases that it
    replaced stand in `earlier`, oldest first.
    """
    reports: dict[str, list[AgentReport]] = {}
    for report in (*deliberation.earlier, *deliberation.every_report):
        reports.setdefault(report.agent_id, []).append(report)
    places: dict[str, list[Place]] = {name: [] for name in reports}
    answered: set[str] = set()
    for stage in deliberation.stages:
        for name, word in stage.agents.items():
            # who abstains after an answer keeps that answer, so the report is of the round before
            quiet = word == "abstained" and name in answered
            if name in places and word in (*ANSWERS, "") and not quiet:
                places[name].append((stage.name, stage.round, name))
                answered |= {name} if word == "answered" else set()
    by_place: dict[Place, AgentReport] = {}
    for name, rows in reports.items():
        free = places[name] or [("", 1, name)]
        # from the end: the newest report is of the newest round, and odd records lack old ones
        by_place |= dict(zip(free[-len(rows) :], rows[-len(free) :], strict=True))
    return by_place


def _is_replaced(place: Place, places: Iterable[Place]) -> bool:
    stage, number, name = place
    return any(s == stage and who == name and n > number for s, n, who in places)
