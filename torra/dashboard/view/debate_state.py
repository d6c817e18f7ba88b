"""The state of a debate, read from its events: who is at work, who is done, what the result is.

`follow` reads the events of one attempt at a tick, in order, however many there are. A reload, a
second visitor and a debate that ended long ago all get the same state. Unknown events and fields
are skipped. Text of models is cleaned. Pure functions: `now` is an argument, from which the time of
an agent at work is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import Field

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.lenient import Flag, LenientModel, Number, Numbers, Word, Words
from torra.dashboard.record import surroundings
from torra.dashboard.record.reasoning import SENTENCE
from torra.dashboard.record.shown import NOT_COUNTED
from torra.exhibits import figures
from torra.store.trade.rows import DeskEvent
from torra.words.orders import REASONS
from torra.words.ticks import BADGES

STATES: Final = ("pending", "running", "done", "abstained", "failed", "not asked")
"""What an agent of a debate may be at."""

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

Json = dict[str, Any]


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
    statements: tuple[dict[str, Word], ...] = ()
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


@dataclass
class Seat:
    """An agent of the desk, as far as its events tell; `since` is when it was asked."""

    name: str
    state: str = "pending"
    where: str = ""
    since: str | None = None
    ms: float | None = None
    about: str = ""

    def as_json(self, now: datetime) -> Json:
        """Return its state in words; `elapsed` are the seconds so far of one that is at work."""
        badge = BADGES[self.state]
        elapsed = _seconds_since(self.since, now) if self.state == "running" else None
        took = figures.DASH if self.ms is None else f"{self.ms / 1000:.1f} s"
        return {
            "name": self.name,
            "title": figures.title(self.name),
            "state": self.state,
            "mark": badge.text,
            "tone": badge.tone,
            "where": self.where,
            "elapsed": None if elapsed is None else round(elapsed, 1),
            "took": took if elapsed is None else f"{elapsed:.0f} s",
            "about": self.about,
        }


def follow(events: Iterable[DeskEvent], seats: Sequence[str], now: datetime) -> Json:
    """Return the state of a debate as JSON.

    `seats` are the agents of the desk in asking order, as far as they are known. `end` is None
    while it runs; its `kind` is "decision", or "error" of a debate that came to nothing.
    """
    state = DebateProgress(seats)
    for event in events:
        state.take(event)
    return state.as_json(now)


class DebateProgress:
    """The state of a debate after the events so far; `on_x` takes in what an event x tells."""

    def __init__(self, seats: Sequence[str]) -> None:
        self.seats = {name: Seat(name) for name in seats}
        self.log: list[Json] = []
        self.start = Payload()
        self.stage = ""
        self.end: Json | None = None
        self.newest = DeskEvent()
        self.began: str | None = None

    def take(self, event: DeskEvent) -> None:
        """Take in one event, whose line the log gets; an unknown one is only counted."""
        self.newest, self.began = event, self.began or event.at
        handler = getattr(self, f"on_{event.event}", None)
        line = handler(Payload.read(event.body)) if handler else None
        self.log += [{"seq": event.seq, **line}] if line else []

    def as_json(self, now: datetime) -> Json:
        """Return the state of the debate in words."""
        over = self.end is not None
        if over:
            # nobody is at work or to come
            ended = {"pending": "not asked", "running": "failed"}
            for seat in self.seats.values():
                seat.state = ended.get(seat.state, seat.state)
        count = Counter(seat.state for seat in self.seats.values())
        silent = None if over else _seconds_since(self.newest.at, now)
        return {
            "seq": self.newest.seq,
            "over": over,
            "end": self.end,
            "stage": "" if over else self.stage,
            "agents": [seat.as_json(now) for seat in self.seats.values()],
            "log": self.log,
            "counts": ", ".join(
                f"{count[name]} {BADGES[name].word}" for name in STATES if count[name]
            ),
            "elapsed": None if over else _seconds_since(self.began, now),
            "silent": silent is not None and silent > SILENT_SECONDS,
            "silence": figures.span(silent),
            "instance": figures.sanitize(self.start.instance, 40),
            "timeframe": figures.sanitize(self.start.timeframe, 8),
            "bar_time": self.start.bar_time,
            "close": figures.moment(self.start.close_time),
        }

    def seat(self, payload: Payload, state: str) -> Seat:
        """Return the agent of an event in its new state."""
        name, phase = figures.sanitize(payload.agent, 40), figures.sanitize(payload.phase, 20)
        seat = self.seats.setdefault(name, Seat(name))
        seat.state, seat.ms = state, payload.ms
        seat.where = PHASES.get(phase, phase).format(figures.plain(payload.round, 0))
        return seat

    def on_tick_start(self, payload: Payload) -> Json:
        """Name the tick."""
        self.start = payload
        what = " ".join(
            figures.sanitize(part, 40) for part in (payload.instance, payload.timeframe)
        )
        closed = figures.moment(payload.close_time)
        return _line(f"The tick of {what} began, on the bar that closed {closed}.")

    def on_agent_start(self, payload: Payload) -> None:
        """Note who is asked, without a line."""
        seat = self.seat(payload, "running")
        seat.since, self.stage = self.newest.at, seat.where

    def on_agent_complete(self, payload: Payload) -> Json:
        """Tell what an agent says, or why it abstains."""
        seat = self.seat(payload, "abstained" if payload.abstained else "done")
        seat.about = "" if payload.abstained else figures.sanitize(payload.confidence, 20)
        words = figures.sanitize(payload.summary, SUMMARY_CHARS)
        badge, sure = BADGES[seat.state], f", {seat.about} confidence" if seat.about else ""
        line = _line(
            surroundings.plain_reason(words) if payload.abstained else words,
            f"{badge.word}{sure}",
            figures.title(seat.name),
            badge.tone,
            seat.where,
        )
        votes = {vector: payload.adjustments.get(vector) for vector in VECTORS}
        return line | {
            "votes": [
                {
                    "name": figures.title(vector),
                    "text": figures.format_signed(value),
                    "tone": figures.tone(value),
                    "title": "",
                }
                for vector, value in votes.items()
                if value is not None
            ]
        }

    def on_agent_error(self, payload: Payload) -> Json:
        """Tell why an agent failed."""
        seat = self.seat(payload, "failed")
        seat.about = figures.sanitize(payload.error, 200) or "no reason is told"
        return _line(seat.about, "failed", figures.title(seat.name), "warn", seat.where)

    def on_debate_round(self, payload: Payload) -> Json:
        """Tell who made a case in a round."""
        agents = filter(None, (statement.get("agent") for statement in payload.statements))
        who = " and ".join(map(figures.title, agents)) or "nobody"
        number = figures.plain(payload.round, 0)
        return _line(f"Round {number} of the debate is over: {who} made a case.")

    def on_synthesis(self, payload: Payload) -> Json:
        """Tell what the gate ruled."""
        self.stage = "verdict"
        veto = "openings are vetoed" if payload.veto else "no veto"
        words = f"Multiplier × {figures.plain(payload.multiplier, 2)}, {veto}; "
        words += f"{figures.mark(payload.source_type).text}."
        shadow = f" {NOT_COUNTED.capitalize()}." if payload.shadow else ""
        return _line(words + shadow, "ruled", "Gate")

    def on_decision(self, payload: Payload) -> Json:
        """End with a decision."""
        verdict, action = figures.mark(payload.verdict), figures.mark(payload.action)
        consensus = figures.format_signed(payload.consensus)
        reason = figures.sanitize(payload.reason, 200)
        self.end = {
            "kind": "decision",
            "verdict": verdict,
            "l1_verdict": figures.mark(payload.l1_verdict),
            "action": action,
            "consensus": consensus,
            "reason": ": ".join(filter(None, (reason, REASONS.get(reason)))),
            "sentence": figures.sanitize(payload.sentence, SENTENCE),
            "denied": [figures.sanitize(code, 60) for code in payload.denied],
            "source": figures.mark(payload.source_type),
            "cost": figures.money(payload.cost_usd),
            "took": figures.plain(payload.elapsed_ms, 0),
        }
        words = f"{verdict.text}, consensus {consensus}; action {action.text}."
        return _line(words, "decided", "Verdict", verdict.tone)

    def on_error(self, payload: Payload) -> Json:
        """End with nothing."""
        code, message = figures.sanitize(payload.code, 80), figures.sanitize(payload.message, 400)
        what, consequence = ENDS.get(code.partition(":")[0], ("It ended without a result.", ""))
        self.end = {
            "kind": "error",
            "code": code,
            "what": what,
            "then": consequence,
            "message": message,
            "again": payload.recoverable,
        }
        return _line(f"{what} {message}".strip(), code, "End", "warn")


def _line(words: str, head: str = "", who: str = "", tone: str = "flat", where: str = "") -> Json:
    """Return a line of the log without adjustments: who says what, under which heading."""
    return {"who": who, "tone": tone, "head": head, "words": words, "where": where, "votes": []}


def _seconds_since(at: str | None, now: datetime) -> float | None:
    try:
        return max(0.0, (now - clock.parse(str(at))).total_seconds())
    except (ValueError, OverflowError):
        return None
