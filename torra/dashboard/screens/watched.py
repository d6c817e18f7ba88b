"""The state of a debate, read from its events: who is at work, who is done, what the result is.

`follow` reads the events of one attempt at a tick, in order, however many there are. A reload, a
second visitor and a debate that ended long ago all get the same picture. Unknown events and fields
are skipped. Text of models is cleaned. Pure functions: `now` is an argument, from which the time of
an agent at work is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypedDict, get_args

from pydantic import Field

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.lenient import Flag, LenientModel, Number, Numbers, Whole, Word, Words
from torra.dashboard.record import surroundings
from torra.dashboard.record.reasoning import SENTENCE
from torra.dashboard.record.shown import NOT_COUNTED
from torra.exhibits import figures
from torra.exhibits.figures import Cell, cell
from torra.words.badge import Badge
from torra.words.orders import REASONS
from torra.words.ticks import BADGES

State = Literal["pending", "running", "done", "abstained", "failed", "not asked"]
STATES: Final = get_args(State)
PHASES: Final = {
    "analysts": "analysts",
    "debate": "debate, round {}",
    "experts": "experts and reader, at once",
    "judgement": "judge",
    "gate": "gate",
    "decision": "manager and gate",
    "thesis": "trader, on the opening",
    "fallback": "fallback",
}

ENDS: Final = {
    "producer_lost": (
        "The desk ended while it ran.",
        "The next desk runs this tick again if its bar is not too old; then it is a new debate.",
    ),
    "store": (
        "The database could not be used.",
        "What was decided may be stored all the same: the tick's own page tells. If not, the desk "
        "tries again while its bar is at most two bars old.",
    ),
    "failed": (
        "The tick failed.",
        "The desk lets its claim go and tries again while the bar is at most two bars old.",
    ),
    "skipped": (
        "The tick was skipped.",
        "Nothing was computed or sent; the row stays with its reason, and the next bar is next.",
    ),
}
"""Meaning and consequence of an error's code; of `skipped:<reason>` the first word counts."""

SUMMARY_CHARS: Final = 600
SILENT_SECONDS: Final = 60.0
"""A debate without an event for longer than this is not called live."""


class Statement(LenientModel):
    """A case of a round of the debate."""

    agent: Word = None


class Payload(LenientModel):
    """What an event tells; each kind of event has some of it."""

    instance: Word = None
    timeframe: Word = None
    bar_time: Word = None
    close_time: Word = None
    agent: Word = None
    phase: Word = None
    round: Number = None
    ms: Number = None
    abstained: Flag = False
    confidence: Word = None
    adjustments: Numbers = Field(default_factory=dict)
    summary: Word = None
    error: Word = None
    statements: tuple[Statement, ...] = ()
    multiplier: Number = None
    veto: Flag = False
    shadow: Flag = False
    source_type: Word = None
    verdict: Word = None
    l1_verdict: Word = None
    action: Word = None
    consensus: Number = None
    reason: Word = None
    sentence: Word = None
    denied: Words = ()
    cost_usd: Number = None
    elapsed_ms: Number = None
    code: Word = None
    message: Word = None
    recoverable: Flag = False


class DebateEvent(LenientModel):
    """A stored event of a debate; `at` is ISO text in real time."""

    seq: Whole = None
    event: Word = None
    at: Word = None
    payload: Payload = Payload()


class VoteCell(Cell):
    """An adjustment of an agent."""

    name: str


class EventText(TypedDict):
    """An event in words."""

    seq: int
    who: str
    tone: str
    head: str
    words: str
    where: str
    votes: list[VoteCell]


class AgentShown(TypedDict):
    """An agent; `elapsed` are seconds so far of one that is at work."""

    name: str
    title: str
    state: State
    mark: str
    tone: str
    where: str
    elapsed: float | None
    took: str
    about: str


class DebateDecision(TypedDict):
    """The end of a debate that came to a decision."""

    kind: Literal["decision"]
    verdict: Badge
    l1_verdict: Badge
    action: Badge
    consensus: str
    reason: str
    sentence: str
    denied: list[str]
    source: Badge
    cost: str
    took: str


class Failure(TypedDict):
    """The end of a debate that came to nothing; `again` is whether it will be tried again."""

    kind: Literal["error"]
    code: str
    what: str
    then: str
    message: str
    again: bool


class DebatePicture(TypedDict):
    """The state of a debate for a page."""

    seq: int
    over: bool
    end: DebateDecision | Failure | None
    stage: str
    agents: list[AgentShown]
    log: list[EventText]
    counts: str
    elapsed: float | None
    silent: bool
    silence: str
    instance: str
    timeframe: str
    bar_time: str | None
    close: str


@dataclass
class _Agent:
    """What is told of an agent so far."""

    name: str
    state: State = "pending"
    where: str = ""
    since: str | None = None
    ms: float | None = None
    confidence: str = ""
    votes: list[VoteCell] = field(default_factory=list)
    why: str = ""

    @property
    def title(self) -> str:
        return figures.title(self.name)


def follow(events: Iterable[DebateEvent], seats: Sequence[str], now: datetime) -> DebatePicture:
    """Return the state of a debate.

    `seats` are the agents of the desk in asking order, as far as they are known.
    """
    told = _Telling(seats, now)
    for event in events:
        told.take(event)
    return told.picture()


class _Telling:
    """The state of a debate after the events so far."""

    def __init__(self, seats: Sequence[str], now: datetime) -> None:
        self._now = now
        self._agents = {name: _Agent(name) for name in seats}
        self._log: list[EventText] = []
        self._start = Payload()
        self._began: str | None = None
        self._newest: str | None = None
        self._stage = ""
        self._seq = 0
        self._end: DebateDecision | Failure | None = None

    def take(self, event: DebateEvent) -> None:
        """Take in one event; an unknown one is only counted."""
        self._seq = max(self._seq, event.seq or 0)
        self._newest = event.at
        self._began = self._began or event.at
        heard: dict[str, Callable[[Payload, DebateEvent], None]] = {
            "tick_start": self._tick_start,
            "agent_start": self._agent_start,
            "agent_complete": self._agent_complete,
            "agent_error": self._agent_error,
            "debate_round": self._debate_round,
            "synthesis": self._synthesis,
            "decision": self._decision,
            "error": self._error,
        }
        hear = heard.get(event.event or "")
        if hear is not None:
            hear(event.payload, event)

    def picture(self) -> DebatePicture:
        """Return the state of the debate for a page."""
        over = self._end is not None
        agents = list(self._agents.values())
        for agent in agents:
            if over and agent.state in ("pending", "running"):
                # it is over: nobody is at work or to come
                agent.state = "not asked" if agent.state == "pending" else "failed"
        silent = None if over else _since(self._newest, self._now)
        return {
            "seq": self._seq,
            "over": over,
            "end": self._end,
            "stage": "" if over else self._stage,
            "agents": [_shown(agent, self._now) for agent in agents],
            "log": self._log,
            "counts": _counts(agents),
            "elapsed": None if over else _since(self._began, self._now),
            "silent": silent is not None and silent > SILENT_SECONDS,
            "silence": figures.span(silent),
            "instance": figures.sanitize(self._start.instance, 40),
            "timeframe": figures.sanitize(self._start.timeframe, 8),
            "bar_time": self._start.bar_time,
            "close": figures.moment(self._start.close_time),
        }

    def _tick_start(self, payload: Payload, event: DebateEvent) -> None:
        self._start = payload
        where = (payload.instance, payload.timeframe)
        what = " ".join(figures.sanitize(part, 40) for part in where)
        closed = figures.moment(payload.close_time)
        self._say(event, "", "flat", f"The tick of {what} began, on the bar that closed {closed}.")

    def _agent_start(self, payload: Payload, event: DebateEvent) -> None:
        agent = self._of(payload)
        agent.state, agent.since, agent.where = "running", event.at, _where(payload)
        self._stage = agent.where

    def _agent_complete(self, payload: Payload, event: DebateEvent) -> None:
        agent, quiet = self._of(payload), payload.abstained
        agent.state = "abstained" if quiet else "done"
        agent.ms, agent.where, agent.votes = payload.ms, _where(payload), _votes(payload)
        agent.confidence = "" if quiet else figures.sanitize(payload.confidence, 20)
        words = figures.sanitize(payload.summary, SUMMARY_CHARS)
        words = surroundings.plain_reason(words) if quiet else words
        mark = BADGES[agent.state]
        sure = f", {agent.confidence} confidence" if agent.confidence else ""
        self._say(event, agent.title, mark.tone, words, f"{mark.word}{sure}", agent)

    def _agent_error(self, payload: Payload, event: DebateEvent) -> None:
        agent = self._of(payload)
        agent.why = figures.sanitize(payload.error, 200) or "no reason is told"
        agent.state, agent.ms, agent.where = "failed", payload.ms, _where(payload)
        self._say(event, agent.title, "warn", agent.why, "failed", agent)

    def _debate_round(self, payload: Payload, event: DebateEvent) -> None:
        said = [one.agent for one in payload.statements]
        who = " and ".join(figures.title(name) for name in said if name) or "nobody"
        number = figures.plain(payload.round, 0)
        self._say(event, "", "flat", f"Round {number} of the debate is over: {who} made a case.")

    def _synthesis(self, payload: Payload, event: DebateEvent) -> None:
        multiplier = figures.plain(payload.multiplier, 2)
        veto = "openings are vetoed" if payload.veto else "no veto"
        source = figures.mark(payload.source_type).text
        self._stage = "verdict"
        words = f"Multiplier × {multiplier}, {veto}; {source}."
        words += f" {NOT_COUNTED.capitalize()}." if payload.shadow else ""
        self._say(event, "Gate", "flat", words, "ruled")

    def _decision(self, payload: Payload, event: DebateEvent) -> None:
        verdict, action = figures.mark(payload.verdict), figures.mark(payload.action)
        consensus = figures.format_signed(payload.consensus)
        denied = [figures.sanitize(one, 60) for one in payload.denied]
        self._end = {
            "kind": "decision",
            "verdict": verdict,
            "l1_verdict": figures.mark(payload.l1_verdict),
            "action": action,
            "consensus": consensus,
            "reason": _reason(payload.reason),
            "sentence": figures.sanitize(payload.sentence, SENTENCE),
            "denied": denied,
            "source": figures.mark(payload.source_type),
            "cost": figures.money(payload.cost_usd),
            "took": figures.plain(payload.elapsed_ms, 0),
        }
        words = f"{verdict.text}, consensus {consensus}; action {action.text}."
        self._say(event, "Verdict", verdict.tone, words, "decided")

    def _error(self, payload: Payload, event: DebateEvent) -> None:
        code = figures.sanitize(payload.code, 80)
        what, then = ENDS.get(code.partition(":")[0], ("It ended without a result.", ""))
        message = figures.sanitize(payload.message, 400)
        self._end = {"kind": "error", "code": code, "what": what, "then": then,
                     "message": message, "again": payload.recoverable}  # fmt: skip
        self._say(event, "End", "warn", f"{what} {message}".strip(), code)

    def _of(self, payload: Payload) -> _Agent:
        name = figures.sanitize(payload.agent, 40)
        return self._agents.setdefault(name, _Agent(name))

    def _say(
        self,
        event: DebateEvent,
        who: str,
        tone: str,
        words: str,
        head: str = "",
        agent: _Agent | None = None,
    ) -> None:
        self._log.append(
            {
                "seq": event.seq or 0,
                "who": who,
                "tone": tone,
                "head": head,
                "words": words,
                "where": agent.where if agent else "",
                # an agent that fails keeps the votes of an earlier round: they are not of this
                # event
                "votes": agent.votes if agent and head != "failed" else [],
            }
        )


def _where(payload: Payload) -> str:
    phase = figures.sanitize(payload.phase, 20)
    return PHASES.get(phase, phase).format(figures.plain(payload.round, 0))


def _votes(payload: Payload) -> list[VoteCell]:
    votes = payload.adjustments
    return [
        {"name": figures.title(vector), **cell(votes[vector])}
        for vector in VECTORS
        if votes.get(vector) is not None
    ]


def _shown(agent: _Agent, now: datetime) -> AgentShown:
    state = BADGES[agent.state]
    elapsed = _since(agent.since, now) if agent.state == "running" else None
    took = figures.DASH if agent.ms is None else f"{agent.ms / 1000:.1f} s"
    return {
        "name": agent.name,
        "title": agent.title,
        "state": agent.state,
        "mark": state.text,
        "tone": state.tone,
        "where": agent.where,
        "elapsed": None if elapsed is None else round(elapsed, 1),
        "took": f"{elapsed:.0f} s" if elapsed is not None else took,
        "about": agent.why or agent.confidence,
    }


def _counts(agents: Sequence[_Agent]) -> str:
    words = [agent.state for agent in agents]
    told = [f"{words.count(state)} {BADGES[state].word}" for state in STATES if state in words]
    return ", ".join(told)


def _reason(word: str | None) -> str:
    """Return the reason of the action with its meaning."""
    told = figures.sanitize(word, 200)
    meaning = REASONS.get(told, "")
    return f"{told}: {meaning}" if meaning else told


def _since(at: str | None, now: datetime) -> float | None:
    try:
        return max(0.0, (now - clock.parse(str(at))).total_seconds())
    except (ValueError, OverflowError):
        return None
